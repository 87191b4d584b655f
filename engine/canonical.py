"""JSON values, their one canonical text, and hashes of it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

JsonScalar: TypeAlias = str | int | float | bool | None
JsonValue: TypeAlias = JsonScalar | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
# Plain dictionaries, as `json.loads` makes them; values are JSON by contract, checked at the borders.
JsonObject: TypeAlias = dict[str, Any]


def canonical_json(value: Any) -> str:
    """The one text of a JSON value: sorted keys, no spaces, no NaN; raises ValueError or TypeError otherwise."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


DEEPEST = 100
"""Levels of nesting that values from outside may have; what else reads and writes JSON allows little more."""


def is_too_deep(value: Any) -> bool:
    """Is a JSON value nested deeper than DEEPEST levels?"""
    layer = [value]
    for _level in range(DEEPEST):
        inner = (
            here.values() if isinstance(here, dict) else here
            for here in layer
            if isinstance(here, dict | list)
        )
        layer = [item for items in inner for item in items]
        if not layer:
            return False
    return True


# An escaped NUL, but not an escaped backslash before the characters "u0000".
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def without_nul(text: str) -> str:
    """JSON text without the NUL characters in its strings, which no database stores; `text` is ASCII, as escaped."""
    return _NUL.sub(r"\1", text)


def digest(text: str) -> str:
    """SHA-256 of a text in hexadecimal (64 characters)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
