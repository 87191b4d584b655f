"""What a type means for a form and for an agent: optional, usual, choices, secret."""

import types
import typing
from typing import Any

import typing_extensions

from engine.canonical import JsonObject
from engine.tools.extraction.secret_names import names_a_secret

_PLAIN = (str, int, float, bool)
_UNIONS = (typing.Union, types.UnionType)
_LITERALS = (typing.Literal, typing_extensions.Literal)
_NOTHING = type(None)


def is_optional(kind: Any) -> bool:
    """Whether it is Optional[T], however that is written."""
    kind = _bare(kind)
    return typing.get_origin(kind) in _UNIONS and any(
        _bare(part) in (None, _NOTHING) for part in typing.get_args(kind)
    )


def is_usual(kind: Any) -> bool:
    """Whether it is of the specification's list: str, int, float, bool, List[T], Optional[T], Literal."""
    kind = _bare(kind)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in _LITERALS:
        return True
    if origin is list:
        return all(is_usual(part) for part in parts)
    if origin in _UNIONS:
        rest = [part for part in parts if _bare(part) not in (None, _NOTHING)]
        return len(rest) == 1 and len(parts) == 2 and is_usual(rest[0])
    return any(kind is plain for plain in _PLAIN)


def choices_in(schema: JsonObject) -> tuple[Any, ...]:
    """The values to choose from: of the value itself, of what it is if given, or of the items of a list."""
    if "enum" in schema:
        return tuple(schema["enum"])
    if "const" in schema:
        return (schema["const"],)
    if "items" in schema and isinstance(schema["items"], dict):
        return choices_in(schema["items"])
    branches = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    found = [choices_in(branch) for branch in branches]
    return tuple(value for values in found for value in values) if all(found) else ()


def holds_secret(name: str, schema: JsonObject) -> bool:
    """Whether a value of this name and schema is to be hidden: it says so itself, or is text of such a name."""
    if any(
        part.get("format") == "password" and part.get("writeOnly") for part in _branches(schema)
    ):
        return True
    text = not (schema.keys() - {"description", "default"}) or any(
        part.get("type") == "string" and not choices_in(part) for part in _branches(schema)
    )
    return text and names_a_secret(name)


def _branches(schema: JsonObject) -> list[JsonObject]:
    """The schema, what it may be one of, and its items, all the way down."""
    parts = [schema]
    for part in parts:
        parts.extend(branch for key in ("anyOf", "oneOf", "allOf") for branch in part.get(key, ()))
        parts.extend(
            inner
            for key in ("items", "additionalProperties")
            if isinstance(inner := part.get(key), dict)
        )
    return parts


def _bare(kind: Any) -> Any:
    while typing.get_origin(kind) in (typing.Annotated, typing_extensions.Annotated):
        kind = typing.get_args(kind)[0]
    return kind
