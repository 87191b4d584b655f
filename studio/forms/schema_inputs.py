"""Which input asks for a value of a JSON Schema; objects and lists of them are inputs of several."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from django.http import QueryDict

from engine.arguments import (
    allows_null,
    canonical_numbers,
    choices_of,
    plain_schema,
    reason_against,
)
from engine.canonical import JsonObject, canonical_json
from studio.forms.inputs import (
    ABSENT,
    About,
    CheckInput,
    ChoiceInput,
    ChoicesInput,
    Input,
    JsonInput,
    LineInput,
    LinesInput,
    NumberInput,
    SecretInput,
    TextInput,
)

_DEEPEST_GROUP = 3
_MOST_PARTS = 30  # fields of an object that are asked for one by one
_MOST_ROWS_INPUTS = 300  # inputs of a list of objects; a longer one is written as JSON
_SPARE_ROWS = 2
_MORE_ROWS = 3
_SHORT_TEXT = 200  # characters of a text that is asked for in one line


def input_for(about: About, schema: JsonObject, *, secret: bool = False, depth: int = 0) -> Input:
    """The empty input for a value of `schema`; `depth` counts the objects around it."""
    if secret:
        return SecretInput(about, schema)
    plain = plain_schema(schema)
    if plain.get("type") == "array":
        return _list_input(about, schema, plain, depth)
    if choices := choices_of(plain):
        return ChoiceInput(about, schema, choices)
    match plain.get("type"):
        case "string":
            return _text_input(about, schema, plain)
        case "integer" | "number":
            return NumberInput(about, schema)
        case "boolean" if about.required and not allows_null(schema):
            return CheckInput(about, schema)
        case "boolean":
            return ChoiceInput(about, schema, (True, False))
        case "object" if _can_be_group(plain, depth):
            return GroupInput(about, schema, depth=depth)
        case _:
            return _json_input(about, schema)


def loaded(about: About, schema: JsonObject, data: QueryDict, *, secret: bool = False) -> Input:
    """The input with what was sent for it."""
    if about.name + JsonInput.SUFFIX in data and not secret:
        found: Input = _json_input(about, schema)
    else:
        found = input_for(about, schema, secret=secret)
    found.load(data)
    return found


def filled(about: About, schema: JsonObject, value: Any) -> Input:
    """The input that shows this value; one for JSON where no other can say it."""
    found = input_for(about, schema)
    if value is ABSENT:
        return found
    found.fill(value)
    said = found.value()
    if said is ABSENT or canonical_json(said) != canonical_json(canonical_numbers(value)):
        found = _json_input(about, schema)
        found.fill(value)
    found.error = ""
    return found


def _json_input(about: About, schema: JsonObject) -> JsonInput:
    return JsonInput(replace(about, name=about.name + JsonInput.SUFFIX), schema)


def _text_input(about: About, schema: JsonObject, plain: JsonObject) -> Input:
    short = plain.get("maxLength", _SHORT_TEXT + 1) <= _SHORT_TEXT
    if "format" in plain or "pattern" in plain or short:
        return LineInput(about, schema)
    return TextInput(about, schema)


def _list_input(about: About, schema: JsonObject, plain: JsonObject, depth: int) -> Input:
    items = plain.get("items")
    if "prefixItems" in plain or not isinstance(items, dict):
        return _json_input(about, schema)
    if choices := choices_of(items):
        is_list = plain_schema(items).get("type") == "array"
        return _json_input(about, schema) if is_list else ChoicesInput(about, schema, choices)
    inner = plain_schema(items)
    if inner.get("type") in ("string", "integer", "number"):
        return LinesInput(about, schema)
    if inner.get("type") == "object" and _can_be_group(inner, depth + 1) and depth == 0:
        return RowsInput(about, schema)
    return _json_input(about, schema)


def _can_be_group(plain: JsonObject, depth: int) -> bool:
    parts = plain.get("properties", {})
    open_ended = isinstance(plain.get("additionalProperties"), dict)
    return 0 < len(parts) <= _MOST_PARTS and not open_ended and depth < _DEEPEST_GROUP


def _inside(name: str, key: str) -> str:
    """The place of a part: dots go down, so that one in a name is written otherwise."""
    for character, written in (("%", "%25"), (".", "%2E"), (":", "%3A")):
        key = key.replace(character, written)
    return f"{name}.{key}"


class GroupInput(Input):
    """An object: an input for each of its fields. It is given as soon as one of them is, or where it is required."""

    kind = "group"

    def __init__(self, about: About, schema: JsonObject, *, depth: int = 0) -> None:
        super().__init__(about, schema)
        required = self.plain.get("required", ())
        self.parts = [
            input_for(
                About(
                    name=_inside(about.name, key),
                    key=key,
                    label=part.get("title") or key.replace("_", " "),
                    help=part.get("description", ""),
                    required=key in required,
                    default=canonical_numbers(part.get("default")),
                    examples=tuple(part.get("examples", ())),
                ),
                part,
                depth=depth + 1,
            )
            for key, part in self.plain["properties"].items()
        ]

    @property
    def is_empty(self) -> bool:
        return all(part.is_empty for part in self.parts)

    def load(self, data: QueryDict) -> None:
        for part in self.parts:
            part.load(data)

    def fill(self, value: Any) -> None:
        given = value if isinstance(value, Mapping) else {}
        for part in self.parts:
            if part.about.key in given:
                part.fill(given[part.about.key])

    def value(self) -> Any:
        self.error = ""
        if self.is_empty and not self.about.required:
            return ABSENT
        if self.is_empty and allows_null(self.schema):
            return None
        values = {part.about.key: part.value() for part in self.parts}
        given = {key: value for key, value in values.items() if value is not ABSENT}
        if not self.errors() and (reason := reason_against(self.schema, given)):
            self.refuse(reason)
        return ABSENT if self.errors() else given

    def typed(self) -> Any:
        if self.is_empty:
            return self.value()
        values = {part.about.key: part.typed() for part in self.parts}
        return {key: value for key, value in values.items() if value is not ABSENT}

    def errors(self) -> list[tuple[Input, str]]:
        return super().errors() + [error for part in self.parts for error in part.errors()]


class RowsInput(Input):
    """A list of objects: a row for each, and empty ones after the last; rows that stay empty are no items."""

    kind = "rows"
    MORE: ClassVar = "more"  # the name of the button that asks for further rows

    def __init__(self, about: About, schema: JsonObject) -> None:
        super().__init__(about, schema)
        self.rows: list[GroupInput] = []
        self._add(_SPARE_ROWS)

    @property
    def most(self) -> int:
        return max(1, _MOST_ROWS_INPUTS // _inputs_of(plain_schema(self.plain["items"])))

    def _add(self, count: int) -> None:
        first = len(self.rows)
        for place in range(first, min(first + count, self.most)):
            about = About(
                name=f"{self.name}.{place}", key=str(place), label=str(place + 1), required=False
            )
            self.rows.append(GroupInput(about, self.plain["items"], depth=1))

    def _spare(self) -> None:
        used = max((at for at, row in enumerate(self.rows, start=1) if not row.is_empty), default=0)
        self._add(used + _SPARE_ROWS - len(self.rows))

    @property
    def is_empty(self) -> bool:
        return all(row.is_empty for row in self.rows)

    def load(self, data: QueryDict) -> None:
        place = re.compile(rf"{re.escape(self.name)}\.(\d{{1,4}})\.", re.ASCII)
        found = [int(match[1]) for name in data if (match := place.match(name))]
        self._add(max(found, default=0) + 1 - len(self.rows))
        for row in self.rows:
            row.load(data)
        self._spare()
        if data.get(self.MORE) == self.name:
            self._add(_MORE_ROWS)

    def fill(self, value: Any) -> None:
        items = value if isinstance(value, list) else []
        self._add(len(items) - len(self.rows))
        for row, item in zip(self.rows, items, strict=False):
            row.fill(item)
        self._spare()

    def read(self) -> list[Any]:
        return [row.value() for row in self.rows if not row.is_empty]

    def value(self) -> Any:
        self.error = ""
        if self.is_empty:
            return self._left_empty()
        given = self.read()
        if not self.errors() and (reason := reason_against(self.schema, given)):
            self.refuse(reason)
        return ABSENT if self.errors() else given

    def typed(self) -> Any:
        return [row.typed() for row in self.rows if not row.is_empty] or ABSENT

    def errors(self) -> list[tuple[Input, str]]:
        return super().errors() + [error for row in self.rows for error in row.errors()]


def _inputs_of(plain: JsonObject) -> int:
    """How many inputs an object takes."""
    parts = [plain_schema(part) for part in plain.get("properties", {}).values()]
    return sum(_inputs_of(part) if part.get("type") == "object" else 1 for part in parts) or 1
