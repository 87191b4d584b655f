"""Regular expressions of foreign hands: bounded in size, and searched for with a deadline, so that none can hold a
worker up.
"""

import re
from functools import lru_cache
from typing import Any

import regex

from engine.errors import SpecError

SEARCHED = 20_000
"""Characters of a reply that a pattern is looked for in."""
_SECONDS = 1.0
_MOST_COPIES = 50_000
"""Repeats with a count are copied out when a pattern is compiled, those within others as often as these."""
_COUNTED = re.compile(r"(?P<nested>(?<=[)}])(?<!\\[)}]))?\{(?P<least>\d*)(?:,(?P<most>\d*))?\}")


class TooSlow(Exception):  # noqa: N818 - says what the pattern is
    """A pattern was given up on: it tries too many ways on this text."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Raises SpecError of the field "pattern" where it is no regular expression, or one that grows too large."""
    if _copies(pattern) > _MOST_COPIES:
        raise SpecError(
            f"The pattern repeats too much: more than {_MOST_COPIES} times in all. Lower the numbers in braces.",
            field="pattern",
        )
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


def _copies(pattern: str) -> int:
    """How many signs the counted repeats are copied out to, at most: all of them, as often as any groups repeat."""
    single, groups = len(pattern), 1
    for found in _COUNTED.finditer(pattern):
        count = max(int(digits[:9]) for digits in (found["least"], found["most"], "1") if digits)
        if found["nested"] is None:
            single += count
        else:
            groups *= count
    return single * groups
