"""What an upgrade of a tool template breaks, and what it does not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arguments import reason_against
from engine.tools.narrowing import differences
from engine.tools.schema_changes import FieldChange, field_changes
from engine.tools.template import Report, TemplateField

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
NULL = {"type": "null"}


def field(name: str = "a", **more: Any) -> TemplateField:
    usual = {
        "type": "str",
        "schema": TEXT,
        "required": True,
        "required_by_pydantic": True,
    }
    return TemplateField(name=name, **(usual | more))


def report(*, user: tuple[TemplateField, ...] = (), tool: tuple[TemplateField, ...] = ()) -> Report:
    return Report(name="T", user_parameters=user, tool_parameters=tool)


def change(before: TemplateField, after: TemplateField) -> FieldChange:
    (found,) = field_changes(report(tool=(before,)), report(tool=(after,)))
    assert (found.group, found.name, found.kind) == ("tool", before.name, "changed")
    return found


def schemas(before: dict[str, Any], after: dict[str, Any]) -> FieldChange:
    return change(field(schema=before), field(schema=after))


def test_two_versions_with_the_same_fields_do_not_differ() -> None:
    same = report(user=(field("key", secret=True),), tool=(field("query"), field("limit")))
    assert field_changes(same, Report.from_json(same.to_json())) == ()


def test_the_line_and_the_spelling_of_a_type_are_no_change() -> None:
    assert (
        field_changes(
            report(tool=(field(type="Optional[str]", line=3),)),
            report(tool=(field(type="str | None", line=9),)),
        )
        == ()
    )


@pytest.mark.parametrize(
    ("group", "required", "breaking", "said"),
    [
        ("user", True, True, "required, and has no value yet"),
        ("user", False, False, "may be left out"),
        ("tool", True, True, "a call without it is refused"),
        ("tool", False, False, "may be left out"),
    ],
)
def test_what_is_added_breaks_where_it_is_required(
    group: str, required: bool, breaking: bool, said: str
) -> None:
    new = field("fresh", required=required)
    (found,) = field_changes(report(), report(**{group: (new,)}))
    assert (found.group, found.name, found.kind) == (group, "fresh", "added")
    assert (found.breaking, said in found.because) == (breaking, True)


def test_an_argument_that_is_removed_breaks_and_a_setting_that_is_removed_does_not() -> None:
    before = report(user=(field("old"),), tool=(field("gone"),))
    user, tool = field_changes(before, report())
    assert (user.name, user.kind, user.breaking) == ("old", "removed", False)
    assert (tool.name, tool.kind, tool.breaking) == ("gone", "removed", True)
    assert "Calls, examples" in tool.because


def test_optional_becoming_required_breaks_and_the_other_way_does_not() -> None:
    optional = field(required=False)
    assert change(optional, field()).breaking
    eased = change(field(), optional)
    assert (eased.breaking, eased.because) == (False, "It may be left out now.")


def test_a_new_default_or_description_is_said_and_breaks_nothing() -> None:
    before = field(required=False, has_default=True, default=10, description="How many")
    after = field(required=False, has_default=True, default=20, description="The most")
    found = change(before, after)
    assert not found.breaking
    assert found.because == "Its default is 20, not 10. Its description is another."


def test_one_and_true_are_different_defaults() -> None:
    before = field(required=False, has_default=True, default=True)
    after = field(required=False, has_default=True, default=1)
    assert "Its default is 1, not true." in change(before, after).because


def test_the_default_of_a_secret_is_not_cited() -> None:
    before = field(required=False, secret=True, has_default=True, default="hunter2")
    after = field(required=False, secret=True, has_default=True, default="hunter3")
    assert change(before, after).because == "Its default is another."


def test_becoming_a_secret_is_said() -> None:
    assert change(field(), field(secret=True)).because == "It is kept secret now."


def test_what_breaks_is_said_first() -> None:
    before = field(required=False, schema=TEXT, has_default=True, default="a", description="x")
    after = field(schema={"type": "string", "maxLength": 3}, description="y")
    found = change(before, after)
    assert found.breaking
    assert found.because.startswith(
        "It is required now. It must have at most 3 characters now. It has no default"
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (TEXT, WHOLE, "It no longer accepts text. It accepts whole numbers too."),
        (NUMBER, WHOLE, "It accepts whole numbers only."),
        ({"anyOf": [TEXT, NULL]}, TEXT, "It no longer accepts null."),
        ({}, TEXT, "It accepts text only."),
        (TEXT, {"type": "string", "enum": ["a", "b"]}, "It accepts a, b only."),
        ({"enum": ["a", "b"]}, {"enum": ["a"], "type": "string"}, "It no longer accepts b."),
        ({"enum": [1, 2]}, {"enum": [2]}, "It no longer accepts 1."),
        (
            {"enum": [1, 2]},
            {"enum": [True, 2]},
            "It no longer accepts 1. It accepts true and false too.",
        ),
        ({"const": "a"}, {"const": "b"}, "It no longer accepts a. It accepts b too."),
        (WHOLE, {"type": "integer", "minimum": 1}, "It must be at least 1 now."),
        (
            {"type": "integer", "minimum": 1},
            {"type": "integer", "exclusiveMinimum": 1},
            "It must be more than 1 now.",
        ),
        (
            {"type": "number", "maximum": 9},
            {"type": "number", "maximum": 8.5},
            "It must be at most 8.5 now.",
        ),
        (WHOLE, {"type": "integer", "multipleOf": 5}, "It must be a multiple of 5 now."),
        (
            {"type": "string", "minLength": 1},
            {"type": "string", "minLength": 2},
            "It must have at least 2 characters now.",
        ),
        (TEXT, {"type": "string", "pattern": "^a"}, "It must have the pattern ^a now."),
        (TEXT, {"type": "string", "format": "date"}, "It must have the format date now."),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": {"type": "string", "maxLength": 2}},
            "Each item must have at most 2 characters now.",
        ),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": TEXT, "uniqueItems": True},
            "It must not name anything twice now.",
        ),
        (
            {"type": "object", "properties": {"zip": TEXT}},
            {"type": "object", "properties": {"zip": TEXT, "city": TEXT}, "required": ["city"]},
            "Its field 'city' is new, and required.",
        ),
        (
            {"type": "object", "properties": {"zip": TEXT}},
            {"type": "object", "properties": {}},
            "Its field 'zip' is gone.",
        ),
        (
            {"type": "object", "properties": {"at": {"type": "array", "items": NUMBER}}},
            {"type": "object", "properties": {"at": {"type": "array", "items": WHOLE}}},
            "Each item of its field 'at' accepts whole numbers only.",
        ),
        (
            {"type": "object"},
            {"type": "object", "additionalProperties": False},
            "Each further field is no longer accepted.",
        ),
    ],
)
def test_what_accepts_less_breaks(before: dict[str, Any], after: dict[str, Any], said: str) -> None:
    found = schemas(before, after)
    assert (found.because, found.breaking) == (said, True)
    eased = schemas(after, before)
    if "too" not in said:  # in those, each direction loses something
        assert not eased.breaking or "gone" in eased.because, eased.because


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (WHOLE, NUMBER, "It accepts numbers too."),
        (TEXT, {"anyOf": [TEXT, NULL]}, "It accepts null too."),
        (TEXT, {"anyOf": [TEXT, WHOLE]}, "It accepts whole numbers too."),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
            "Each item accepts a only.",
        ),
    ],
)
def test_other_types_are_named(before: dict[str, Any], after: dict[str, Any], said: str) -> None:
    assert said in schemas(before, after).because


# --- Against what a validator says

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from([0.5, 2.5])
    | st.text("ab", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=4,
)
_NUMERIC = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": st.integers(0, 5),
        "exclusiveMinimum": st.integers(0, 5),
        "maximum": st.integers(3, 9),
        "exclusiveMaximum": st.integers(3, 9),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
    },
)
_WORDS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(1, 4),
        "pattern": st.sampled_from(["^a", "b$"]),
    },
)
_CHOICES = st.lists(
    st.sampled_from(["a", "b", 1, 2, True, None]), min_size=1, max_size=3, unique_by=repr
).map(lambda choices: {"enum": choices})


def _lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.integers(0, 2), "maxItems": st.integers(1, 3)},
    )


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
            # Without it, unknown fields are ignored: giving them a type later breaks nothing that anybody meant.
            "additionalProperties": st.booleans() | inner,
        },
        optional={"required": st.lists(st.sampled_from("xy"), max_size=2, unique=True)},
    )


_SCHEMAS = st.recursive(
    _NUMERIC | _WORDS | _CHOICES | st.just({"type": "boolean"}) | st.just({}),
    lambda inner: (
        _lists(inner)
        | _objects(inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    ),
    max_leaves=4,
)


def accepted(schema: dict[str, Any], values: list[Any]) -> set[str]:
    return {repr(value) for value in values if not reason_against(schema, value)}


@given(before=_SCHEMAS, after=_SCHEMAS, values=st.lists(_VALUES, max_size=20))
@settings(max_examples=300)
def test_whatever_is_refused_from_now_on_is_said_to_break_and_whatever_is_new_is_said(
    before: dict[str, Any], after: dict[str, Any], values: list[Any]
) -> None:
    had, has = accepted(before, values), accepted(after, values)
    found = differences(before, after)
    if had - has:
        assert any(each.narrower for each in found)
    if has - had:
        assert found


@given(schema=_SCHEMAS)
def test_a_schema_never_differs_from_itself(schema: dict[str, Any]) -> None:
    assert differences(schema, {**schema, "description": "Other words", "title": "Other"}) == []
