"""Values as people write them in a page: numbers and JSON read from text, and an example of what a schema asks for."""

import json
import re
from typing import Any

from django.utils.translation import gettext as _

from engine.arguments import plain_schema, reason_against
from engine.canonical import JsonObject

_MOST_DIGITS = 400
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


class UnreadableError(Exception):
    """What was typed is no value; the text continues "It …"."""


def number_of(text: str, schema: JsonObject) -> int | float:
    """The number of a text, as JSON writes it; raises UnreadableError."""
    whole = schema.get("type") == "integer"
    if len(text) > _MOST_DIGITS:
        raise UnreadableError(_("has more than %(count)d digits") % {"count": _MOST_DIGITS})
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    raise UnreadableError(_("must be a whole number") if whole else _("must be a number"))


def json_of(text: str, schema: JsonObject) -> Any:
    """The value of JSON text, or the text itself where the schema takes text; raises UnreadableError."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        if not text.startswith(("{", "[", '"')) and not reason_against(schema, text):
            return text
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableError(_("is no JSON%(where)s") % {"where": where}) from error


def _no_number(name: str) -> Any:
    raise ValueError(name)


def types_of(schema: JsonObject) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


_SIMPLE = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}
_FORMATS = {
    "date": "2026-11-21",
    "date-time": "2026-11-21T14:30",
    "time": "14:30",
    "duration": "PT1H30M",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "email": "name@example.com",
}


def example_of(schema: JsonObject) -> Any:
    """A value of the form that the schema asks for, to show how it is written."""
    plain = plain_schema(schema)
    for keyword in ("examples", "enum"):
        if plain.get(keyword):
            return plain[keyword][0]
    if "const" in plain:
        return plain["const"]
    for keyword in ("anyOf", "oneOf"):
        if plain.get(keyword):
            return example_of(plain[keyword][0])
    return _example_of_type(plain)


def _example_of_type(plain: JsonObject) -> Any:
    match next(iter(types_of(plain)), ""):
        case "object":
            parts = plain.get("properties", {})
            if not parts and isinstance(plain.get("additionalProperties"), dict):
                return {"name": example_of(plain["additionalProperties"])}
            return {name: example_of(part) for name, part in parts.items()}
        case "array":
            items = plain.get("prefixItems") or [plain.get("items") or {"type": "string"}]
            return [example_of(item) for item in items if isinstance(item, dict)]
        case kind:
            return _FORMATS.get(plain.get("format", ""), _SIMPLE.get(kind, "text"))
