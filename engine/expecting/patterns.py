"""Regular expressions of foreign hands: searched for with a deadline, so that none can hold a worker up."""

from functools import lru_cache
from typing import Any

import regex

from engine.errors import SpecError

SEARCHED = 20_000
"""Characters of a reply that a pattern is looked for in."""
_SECONDS = 1.0


class TooSlow(Exception):  # noqa: N818 - says what the pattern is
    """A pattern was given up on: it tries too many ways on this text."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Raises SpecError of the field "pattern" where it is no regular expression."""
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise SpecError(
            f"The pattern is no regular expression: {error}. Correct it, and write \\ before a sign that stands for "
            "itself.",
            field="pattern",
        ) from error


def found_in(text: str, pattern: str) -> str | None:
    """What the pattern finds first, possibly nothing at all ("" is a finding), or None. Raises TooSlow, SpecError."""
    try:
        found = compiled(pattern).search(text[:SEARCHED], timeout=_SECONDS, concurrent=True)
    except TimeoutError as error:
        raise TooSlow from error
    return None if found is None else str(found.group())
