"""JSON values, their one canonical text, and hashes of it."""

import hashlib
import json
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


def digest(text: str) -> str:
    """SHA-256 of a text in hexadecimal (64 characters)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
