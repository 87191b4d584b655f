"""Forms made of a tool's parameters: what is asked how, what is read of it, and that nothing typed is lost."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import spec
from engine.arguments import canonical_numbers, check_arguments, reason_against
from engine.canonical import JsonObject, canonical_json
from studio.forms.arguments import ArgumentsForm
from studio.forms.inputs import Input
from studio.forms.schema_inputs import GroupInput, RowsInput

TEXT = {"type": "string"}
ADDRESS = {
    "type": "object",
    "properties": {"street": TEXT, "number": {"type": "integer"}, "lift": {"type": "boolean"}},
    "required": ["street", "lift"],
}


def tool_of(**schemas: Any) -> spec.Tool:
    """A tool with a required parameter for each schema; `(schema, default)` makes an optional one."""
    parameters = [
        spec.ToolParameter(name=name, schema=schema[0], required=False, default=schema[1])
        if isinstance(schema, tuple)
        else spec.ToolParameter(name=name, schema=schema)
        for name, schema in schemas.items()
    ]
    return spec.Tool(uid="u", name="try_me", description="", parameters=tuple(parameters))


def sent(**values: Any) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in values.items():
        data.setlist(f"arguments.{name}", value if isinstance(value, list) else [value])
    return data


def read(tool: spec.Tool, **values: Any) -> ArgumentsForm:
    form = ArgumentsForm(tool, sent(**values))
    form.is_valid()
    return form


def said(form: ArgumentsForm) -> dict[str, str]:
    return {each.name.removeprefix("arguments."): message for each, message in form.errors}


def one(schema: Any, value: Any = "") -> Input:
    return ArgumentsForm(tool_of(x=schema), sent(x=value)).inputs[0]


# --- which input asks for what


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (TEXT, "text"),
        ({"type": "string", "format": "date"}, "line"),
        ({"type": "string", "maxLength": 40}, "line"),
        ({"type": "integer"}, "number"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number"),
        ({"type": "boolean"}, "check"),
        (({"type": "boolean"}, None), "choice"),
        ({"enum": ["a", 1, None]}, "choice"),
        ({"const": "a"}, "choice"),
        ({"type": "array", "items": TEXT}, "lines"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "choices"),
        ({"type": "array", "items": ADDRESS}, "rows"),
        (ADDRESS, "group"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "json"),
        ({"type": "array", "items": {"type": "array", "items": TEXT}}, "json"),
        ({"anyOf": [TEXT, {"type": "integer"}]}, "json"),
    ],
)
def test_each_type_is_asked_for_by_an_input_of_its_own(schema: Any, kind: str) -> None:
    assert one(schema).kind == kind


def test_an_object_far_inside_others_is_asked_for_as_json() -> None:
    schema: JsonObject = {"type": "object", "properties": {"text": TEXT}}
    for _level in range(5):
        schema = {"type": "object", "properties": {"inner": schema}}
    found: Any = one(schema)
    kinds = []
    while isinstance(found, GroupInput):
        kinds.append(found.kind)
        found = found.parts[0]
    assert (kinds, found.kind) == (["group"] * 3, "json")


# --- what is read


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        (TEXT, "two\r\nlines", "two\nlines"),
        (TEXT, " as it was typed ", " as it was typed "),
        ({"type": "integer"}, " 12 ", 12),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "number"}, "-.5", -0.5),
        ({"type": "number"}, "1e3", 1000),
        ({"type": "boolean"}, "on", True),
        ({"enum": [1, "1"]}, '"1"', "1"),
        ({"type": "array", "items": {"type": "integer"}}, "1\r\n\r\n 2", [1, 2]),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, ['"c"', '"a"'], ["a", "c"]),
        ({"anyOf": [TEXT, {"type": "integer"}]}, "12", 12),
        ({"anyOf": [TEXT, {"type": "integer"}]}, "twelve", "twelve"),
        ({"type": "object", "additionalProperties": TEXT}, '{"a": "b"}', {"a": "b"}),
    ],
)
def test_what_is_typed_becomes_a_value_of_the_type(schema: Any, typed: Any, value: Any) -> None:
    form = ArgumentsForm(tool_of(x=schema), sent(**{name_of(schema): typed}))
    assert form.is_valid(), form.errors
    assert canonical_json(form.arguments["x"]) == canonical_json(value)


def name_of(schema: Any) -> str:
    """Where JSON is typed, the name of the field says so."""
    return one(schema).name.removeprefix("arguments.")


def test_a_required_yes_or_no_that_is_not_ticked_is_no() -> None:
    assert read(tool_of(x={"type": "boolean"})).arguments == {"x": False}


def test_what_is_optional_and_left_empty_is_not_sent() -> None:
    tool = tool_of(
        text=(TEXT, "usual"),
        number=({"type": "integer"}, None),
        sure=({"type": "boolean"}, None),
        tags=({"type": "array", "items": TEXT}, None),
        place=(ADDRESS, None),
        stops=({"type": "array", "items": ADDRESS}, None),
    )
    form = read(tool, text="", number=" ", sure="", tags="\r\n")
    assert (form.arguments, form.errors) == ({}, [])


def test_what_is_required_and_left_empty_is_named_and_null_is_sent_where_it_will_do() -> None:
    nullable = {"anyOf": [TEXT, {"type": "null"}]}
    form = read(tool_of(text=TEXT, note=nullable, tags={"type": "array", "items": TEXT}))
    assert said(form) == {"text": "It is required.", "tags": "It is required."}
    assert read(tool_of(note=nullable)).arguments == {"note": None}


@pytest.mark.parametrize(
    ("schema", "typed", "message"),
    [
        ({"type": "integer"}, "4.5", "It must be a whole number."),
        ({"type": "integer"}, "four", "It must be a whole number."),
        ({"type": "integer"}, "9" * 5000, "It has more than 400 digits."),
        ({"type": "number"}, "1e999", "It must be a finite number."),
        ({"type": "number"}, "nan", "It must be a number."),
        ({"type": "integer", "minimum": 1}, "0", "It must be at least 1."),
        ({"enum": ["a"]}, "b", "It must be one of these."),
        ({"type": "string", "format": "date"}, "soon", "It must be a date such as 2026-11-21."),
        (
            {"type": "array", "items": {"type": "integer"}},
            "1\nx",
            "It must be a whole number in line 2.",
        ),
        ({"type": "array", "items": {"enum": ["a"]}}, ['"z"'], "It must be some of these."),
        (TEXT, "a\x00b", "It contains a character that cannot be stored."),
        (TEXT, "a\ud800b", "It contains a character that cannot be stored."),
    ],
)
def test_what_is_no_value_is_refused_at_its_input_and_stays_there(
    schema: Any, typed: Any, message: str
) -> None:
    form = read(tool_of(x=schema), x=typed)
    assert said(form) == {"x": message}
    assert form.inputs[0].raw == typed


@pytest.mark.parametrize("typed", ['{"a": ', "[" * 5000, '{"a": NaN}', '{"a": "\\u0000"}', "[1]"])
def test_json_that_is_none_is_refused_and_stays(typed: str) -> None:
    form = read(tool_of(x={"type": "object"}), **{"x:json": typed})
    assert list(said(form)) == ["x:json"]
    assert form.inputs[0].raw == typed


def test_an_error_inside_an_object_stands_at_the_field_inside() -> None:
    form = read(
        tool_of(place=ADDRESS), **{"place.street": "Quay", "place.number": "x", "place.lift": "on"}
    )
    assert said(form) == {"place.number": "It must be a whole number."}


def test_an_optional_object_is_given_as_soon_as_one_of_its_fields_is() -> None:
    tool = tool_of(place=(ADDRESS, None))
    assert said(read(tool, **{"place.number": "5"})) == {"place.street": "It is required."}
    form = read(tool, **{"place.street": "Quay"})
    assert form.arguments == {"place": {"street": "Quay", "lift": False}}


def test_rows_that_stay_empty_are_no_items_and_there_are_always_empty_ones_to_fill() -> None:
    tool = tool_of(stops={"type": "array", "items": ADDRESS})
    form = read(tool, **{"stops.0.street": "A", "stops.1.street": "", "stops.4.street": "B"})
    assert form.arguments == {
        "stops": [{"street": "A", "lift": False}, {"street": "B", "lift": False}]
    }
    rows = form.inputs[0]
    assert isinstance(rows, RowsInput)
    assert [row.is_empty for row in rows.rows] == [False, True, True, True, False, True, True]


def test_a_sent_row_far_down_makes_no_more_rows_than_are_offered() -> None:
    rows = read(
        tool_of(stops={"type": "array", "items": ADDRESS}), **{"stops.9999.street": "A"}
    ).inputs[0]
    assert isinstance(rows, RowsInput)
    assert len(rows.rows) == rows.most == 100


# --- all of them as JSON


def test_all_arguments_can_be_written_as_json() -> None:
    tool = tool_of(text=TEXT, number=({"type": "integer"}, None))
    data = sent()
    data["as"] = "json"
    data["arguments:json"] = '{"text": "", "number": 4}'
    form = ArgumentsForm(tool, data)
    assert form.is_valid()
    assert form.arguments == {"text": "", "number": 4}


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ('{"nmber": 4}', "“text” is required. “nmber” is no parameter of this tool."),
        ("", "“text” is required."),
        ("[1]", "It must be an object with named fields."),
    ],
)
def test_json_of_wrong_arguments_says_what_is_wrong(typed: str, message: str) -> None:
    data = sent()
    data["as"], data["arguments:json"] = "json", typed
    form = ArgumentsForm(tool_of(text=TEXT), data)
    assert not form.is_valid()
    assert [text for _input, text in form.errors] == [message]
    assert form.whole is not None
    assert form.whole.raw == typed


def test_what_was_typed_goes_along_to_the_other_form_even_where_it_is_no_value() -> None:
    tool = tool_of(text=TEXT, number={"type": "integer"}, place=ADDRESS)
    form = ArgumentsForm(
        tool, sent(text="Hi", number="four", **{"place.street": "Q", "place.number": "x"})
    )
    whole = form.in_the_other_form().whole
    assert whole is not None
    assert json.loads(whole.raw) == {
        "text": "Hi",
        "number": "four",
        "place": {"street": "Q", "number": "x", "lift": False},
    }


def test_json_with_a_name_that_is_no_parameter_stays_json() -> None:
    data = sent()
    data["as"], data["arguments:json"] = "json", '{"text": "Hi", "other": 1}'
    form = ArgumentsForm(tool_of(text=TEXT), data).in_the_other_form()
    assert form.whole is not None
    assert [text for _input, text in form.errors] == ["“other” is no parameter of this tool."]


# --- round trips


def browser(form: ArgumentsForm) -> QueryDict:
    """What a browser sends of the form as it is shown, untouched."""
    data = QueryDict(mutable=True)
    for name, value in fields(form.inputs):
        data.appendlist(name, value)
    return data


def fields(inputs: list[Any]) -> Iterator[tuple[str, str]]:
    for each in inputs:
        match each.kind:
            case "group":
                yield from fields(each.parts)
            case "rows":
                yield from fields(each.rows)
            case "check":
                if each.raw:
                    yield each.name, "on"
            case "choice" | "choices":
                yield from ((each.name, option.text) for option in each.options if option.chosen)
            case "text" | "lines" | "json":
                text = each.raw.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
                yield each.name, text
            case _:
                yield each.name, each.raw.replace("\r", "").replace("\n", "")


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
scalars: list[tuple[JsonObject, st.SearchStrategy[Any]]] = [
    (TEXT, texts | st.sampled_from(["", " ", "null", "a\r\nb", "\r", '"x"', "5", "true"])),
    ({"type": "string", "maxLength": 20}, texts),
    ({"type": "string", "format": "date"}, st.dates().map(str)),
    ({"type": "string", "format": "email"}, st.just("name@example.com")),
    ({"type": "integer"}, st.integers()),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers()),
    ({"type": "boolean"}, st.booleans()),
    ({"enum": ["a", "", 1, True, None]}, st.sampled_from(["a", "", 1, True, None])),
]
choices = {"type": "array", "items": {"enum": ["a", "b", "c"]}}


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> tuple[JsonObject, Any]:
    """A schema, and a value of it."""
    kinds = ["scalar", "nullable", "choices", "list", "union"] + ["object", "rows", "map"] * (
        depth > 0
    )
    match draw(st.sampled_from(kinds)):
        case "scalar":
            schema, inside = draw(st.sampled_from(scalars))
            return schema, draw(inside)
        case "nullable":
            schema, value = draw(values(depth - 1))
            return {"anyOf": [schema, {"type": "null"}]}, draw(st.sampled_from([value, None]))
        case "choices":
            return choices, draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=4))
        case "list":
            schema, inside = draw(st.sampled_from(scalars))
            return {"type": "array", "items": schema}, draw(st.lists(inside, max_size=4))
        case "union":
            union = {"anyOf": [TEXT, {"type": "integer"}]}
            return union, draw(texts | st.integers())
        case "map":
            schema, value = draw(values(0))
            return {"type": "object", "additionalProperties": schema}, {"k": value}
        case "rows":
            schema, value = draw(objects(depth - 1))
            return {"type": "array", "items": schema}, draw(st.lists(st.just(value), max_size=3))
        case _:
            return draw(objects(depth - 1))


@st.composite
def objects(draw: st.DrawFn, depth: int) -> tuple[JsonObject, Any]:
    names = draw(st.lists(st.sampled_from(["a", "b.c", "d:json", "e%"]), min_size=1, unique=True))
    drawn = {name: draw(values(depth)) for name in names}
    schema = {
        "type": "object",
        "properties": {name: part for name, (part, _value) in drawn.items()},
        "required": [name for name in names if draw(st.booleans())],
    }
    left = draw(st.sets(st.sampled_from(names)))
    value = {
        name: value
        for name, (_part, value) in drawn.items()
        if name in schema["required"] or name not in left
    }
    return schema, value


@settings(max_examples=250, deadline=None)
@given(values(), st.booleans())
def test_a_form_that_shows_arguments_gives_the_same_arguments_back(
    drawn: tuple[JsonObject, Any], required: bool
) -> None:
    schema, value = drawn
    assert not reason_against(schema, value)
    parameter = spec.ToolParameter(name="x", schema=schema, required=required)
    tool = spec.Tool(uid="u", name="try_me", description="", parameters=(parameter,))
    expected = check_arguments(tool, {"x": value}).values
    form = ArgumentsForm(tool, browser(ArgumentsForm(tool, arguments=expected)))
    assert form.is_valid(), form.errors
    assert canonical_json(canonical_numbers(form.arguments)) == canonical_json(expected)


@settings(max_examples=100, deadline=None)
@given(values())
def test_arguments_go_to_json_and_back_unchanged(drawn: tuple[JsonObject, Any]) -> None:
    schema, value = drawn
    tool = tool_of(x=schema)
    expected = check_arguments(tool, {"x": value}).values
    shown = ArgumentsForm(tool, arguments=expected, as_json=True)
    assert shown.whole is not None
    data = QueryDict(mutable=True)
    data["as"], data[shown.whole.name] = "json", shown.whole.raw
    form = ArgumentsForm(tool, data).in_the_other_form()
    assert form.whole is None
    again = ArgumentsForm(tool, browser(form))
    assert again.is_valid(), again.errors
    assert canonical_json(again.arguments) == canonical_json(expected)
