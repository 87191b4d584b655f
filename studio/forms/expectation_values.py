"""Values of arguments as people write them in a row of a form, read by what the tool's parameter takes."""

import json
from typing import Any

from django.utils.translation import gettext as _

from engine import spec
from engine.arguments import plain_schema
from engine.canonical import JsonObject
from engine.expecting import Comparing
from studio.forms.written_values import UnreadableError, json_of, number_of, types_of


class ValueRefusedError(Exception):
    """What was typed is no such value; the text says what to write."""


def value_of(text: str, name: str, how: str, tool: spec.Tool | None) -> Any:
    """The value that the text stands for; one of several is written between commas. Raises ValueRefusedError."""
    if not text:
        raise ValueRefusedError(_("Write the value of %(name)s.") % {"name": name})
    schema = _schema(name, tool)
    if how == Comparing.ABOUT:
        schema = {"type": "number"}
    if how == Comparing.CONTAINS:
        return text
    if how != Comparing.ONE_OF:
        return _value(text, name, schema)
    if text.startswith("["):
        return _value(text, name, {"type": "array"})
    return [_value(part.strip(), name, schema) for part in text.split(",") if part.strip()]


def value_text(value: Any, how: str) -> str:
    """The text that `value_of` reads back."""
    if how == Comparing.ONE_OF and isinstance(value, list):
        parts = [value_text(one, "") for one in value]
        if not any("," in part or part != part.strip() for part in parts):
            return ", ".join(parts)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _schema(name: str, tool: spec.Tool | None) -> JsonObject:
    for parameter in tool.parameters if tool is not None else ():
        if parameter.name == name:
            return plain_schema(parameter.schema)
    return {}


def _value(text: str, name: str, schema: JsonObject) -> Any:
    types = set(types_of(schema)) - {"null"}
    try:
        if types and types <= {"integer", "number"}:
            return number_of(text, schema)
        if types == {"boolean"}:
            return _yes_or_no(text)
        if types and types <= {"array", "object"}:
            return json_of(text, schema)
    except UnreadableError as error:
        raise ValueRefusedError(
            _("%(name)s %(why)s.") % {"name": name, "why": str(error)}
        ) from error
    return text if types else _guessed(text)


def _guessed(text: str) -> Any:
    """Where nobody says what a parameter takes: numbers, yes and no as JSON writes them, and else the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value


def tolerance_of(text: str, name: str) -> float:
    """Raises ValueRefusedError."""
    try:
        return float(number_of(text, {"type": "number"}))
    except (UnreadableError, OverflowError) as error:
        raise ValueRefusedError(
            _("How far %(name)s may be away is a number, such as 0.5.") % {"name": name}
        ) from error


def _yes_or_no(text: str) -> bool:
    if text.casefold() in {"true", "yes", _("yes").casefold()}:
        return True
    if text.casefold() in {"false", "no", _("no").casefold()}:
        return False
    raise UnreadableError(_("must be yes or no"))
