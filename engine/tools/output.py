"""What a tool printed, read as its result: JSON, else a Python literal, else text (tool-template-specification.md)."""

import ast
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from engine.canonical import DEEPEST, is_too_deep

_LONGEST_LITERAL = (
    512 * 1024
)  # characters: a syntax tree needs hundreds of bytes for each of its nodes
_HUGE = 2**63  # of integers: from here on, who reads JSON rounds or refuses them

# What `repr` writes of plain data, and nothing else: what passes here costs the parser neither depth nor warnings.
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<open>[\[({]) | (?P<close>[\])}]) | (?P<comma>,) | (?P<colon>:)
    | (?P<bytes>b'[^'\\\n]*(?:\\(?:[\\'"nrt]|x[0-9a-f]{2})[^'\\\n]*)*'
        | b"[^"\\\n]*(?:\\(?:[\\'"nrt]|x[0-9a-f]{2})[^"\\\n]*)*")
    | (?P<text>'[^'\\\n]*(?:\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U000[0-9a-f]{5}|U0010[0-9a-f]{4})[^'\\\n]*)*'
        | "[^"\\\n]*(?:\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U000[0-9a-f]{5}|U0010[0-9a-f]{4})[^"\\\n]*)*")
    | (?P<infinity>-?inf\b) | (?P<nan>nan\b)
    | (?P<name>(?:True|False|None)\b) | (?P<empty_set>set\(\))
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?(?![\w.]))
    """,
    re.VERBOSE,
)
_VALUES = frozenset(["bytes", "text", "infinity", "nan", "name", "empty_set", "number"])


def read_output(stdout: str, output_key: str | None) -> tuple[Any, str]:
    """What the tool returned, in plain JSON types, and the rest of what it printed; never raises.

    The result stands after the first `output_key`; it is the whole of `stdout` for a tool without one (None, or
    empty), and where the key was never printed, which the rest then says. NaN, the infinities and integers of more
    than 64 bits become text; of literals, sets and tuples become lists, and bytes text. A literal of more than 262,144
    characters stays text: JSON has no such limit.
    """
    if not output_key:
        return _read(stdout), ""
    before, found, after = stdout.partition(output_key)
    if found:
        return _read(after), before.rstrip()
    return _read(stdout), (
        f"(It did not print its OUTPUT_KEY {output_key!r}: all that it printed is its result.)"
    )


def _read(printed: str) -> Any:
    text = printed.strip().removeprefix("\ufeff")
    for read in (_from_json, _from_literal):
        try:
            value = _plain(read(text))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if not is_too_deep(value):
            return value
    return _sound(text)


def _from_json(text: str) -> Any:
    return json.loads(text, parse_constant=float)


def _from_literal(text: str) -> Any:
    """Raises ValueError for what is no literal, in the sense of `repr`."""
    if len(text) > _LONGEST_LITERAL:
        raise ValueError("too long to be read as a literal")
    return ast.literal_eval("".join(_pieces(text)))


def _pieces(text: str) -> Iterator[str]:
    """The literal token by token; raises ValueError at the first that `repr` would not write there."""
    place = depth = 0
    last = ""
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError(f"no literal at character {place}")
        place = token.end()
        kind = token.lastgroup or ""
        if kind == "space":
            yield " "
            continue
        depth += {"open": 1, "close": -1}.get(kind, 0)
        # "1,234" is no pair, 'a' 'b' are two texts, and f(x) is a call.
        alone = depth == 0 and kind in {"comma", "colon"}
        beside = last in {*_VALUES, "close"} and kind in {*_VALUES, "open"}
        if alone or beside or depth > DEEPEST:
            raise ValueError(f"no literal at character {token.start()}")
        last = kind
        yield _as_literal(kind, token.group())


def _as_literal(kind: str, written: str) -> str:
    match kind:
        case "infinity":
            return written.replace("inf", "1e999")
        case "nan":
            return "'NaN'"
        case _:
            return written


def _plain(value: Any) -> Any:
    """In JSON's own types. Raises RecursionError for what is nested too deep."""
    match value:
        case dict():
            return {_key(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case set():
            return [_plain(item) for item in sorted(value, key=_order)]
        case _:
            return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    match value:
        case str():
            return _sound(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case bool() | None:
            return value
        case int() if abs(value) >= _HUGE:
            return str(value)
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


def _order(value: Any) -> tuple[bool, Any]:
    """Numbers in their order, then everything else by how it is written."""
    number = isinstance(value, int | float)
    return (not number, value if number else repr(value))


def _key(key: Any) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _sound(text: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair is none."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
