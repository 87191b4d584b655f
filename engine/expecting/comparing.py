"""How what was found is compared with what was expected, and how values are written in a sentence."""

import re
import unicodedata
from decimal import Decimal
from typing import Any, assert_never

from engine.canonical import JsonObject
from engine.expecting.kinds import ArgumentExpectation, Comparing
from engine.replaying.pairing import comparable, same_json
from engine.trail import ToolCall
from engine.written import as_number

_SHARE = Decimal("0.01")
_SHOWN = 120

_ALIKE = str.maketrans(
    dict.fromkeys("‘’‚‛`´ʼ′", "'")
    | dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‐‑‒–—―−﹘﹣", "-")
    # Soft hyphens, spaces without width and joiners of words show nothing.
    | dict.fromkeys("\u00ad\u200b\u2060\ufeff")
)
_ASIDE = re.compile(r"\s+")


def plain(text: str) -> str:
    """The text for comparison: no case, one kind of quotes, of dashes and of white space."""
    folded = unicodedata.normalize("NFKC", text.translate(_ALIKE)).casefold()
    return _ASIDE.sub(" ", folded.translate(_ALIKE)).strip()


def fits(expected: ArgumentExpectation, arguments: JsonObject) -> bool:
    """Is there such an argument, and is it what is expected?"""
    if expected.name not in arguments:
        return False
    found = arguments[expected.name]
    match expected.how:
        case Comparing.EQUAL:
            return same_json(found, expected.value)
        case Comparing.CONTAINS:
            return _contains(found, expected.value)
        case Comparing.ABOUT:
            return _about(found, expected.value, expected.tolerance)
        case Comparing.ONE_OF:
            return any(same_json(found, value) for value in expected.value)
        case _:
            assert_never(expected.how)


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, list):
        return any(same_json(item, wanted) or _same_text(item, wanted) for item in found)
    if isinstance(found, str) and isinstance(wanted, str):
        return plain(wanted) in plain(found)
    return False


def _same_text(one: Any, other: Any) -> bool:
    return isinstance(one, str) and isinstance(other, str) and plain(one) == plain(other)


def _about(found: Any, value: float, tolerance: float) -> bool:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    middle = as_number(value)
    allowed = as_number(tolerance) if tolerance else abs(middle) * _SHARE
    return abs(as_number(found) - middle) <= allowed


def difference(call: ToolCall, expected: tuple[ArgumentExpectation, ...]) -> str:
    """How a call's arguments differ: "with account = 'A-2', not 'A-1'"; empty where all of them fit."""
    return " and ".join(
        f"with {e.name} = {shown(call.arguments[e.name])}, not {described(e)}"
        if e.name in call.arguments
        else f"without {e.name}, not with {described(e)}"
        for e in expected
        if not fits(e, call.arguments)
    )


def described(expected: ArgumentExpectation) -> str:
    """What is expected: "'A-1'", "about 20 (± 0.5)", "one containing 'refund'", "one of 'a', 'b'"."""
    match expected.how:
        case Comparing.EQUAL:
            return shown(expected.value)
        case Comparing.CONTAINS:
            return f"one containing {shown(expected.value)}"
        case Comparing.ABOUT:
            margin = shown(expected.tolerance) if expected.tolerance else "1 %"
            return f"about {shown(expected.value)} (± {margin})"
        case Comparing.ONE_OF:
            return "one of " + ", ".join(shown(value) for value in expected.value)
        case _:
            assert_never(expected.how)


def shown(value: Any) -> str:
    """A JSON value in a sentence, shortened."""
    return shortened(repr(value) if isinstance(value, str) else comparable(value))


def shortened(text: str, longest: int = _SHOWN) -> str:
    """On one line, and cut off where it is longer."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
