"""Arguments are what their parameter asks for, or they are named with the reason why not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arguments import (
    canonical_numbers,
    check_arguments,
    choices_of,
    plain_schema,
    reason_against,
    refuse_unsupported,
)
from engine.errors import SpecError
from engine.spec import Tool, ToolParameter

CURRENCY = {"type": "string", "enum": ["EUR", "USD"]}


def make_tool(*parameters: ToolParameter) -> Tool:
    return Tool(uid="t1", name="transfer", description="", parameters=parameters)


def make_parameter(schema: dict[str, Any], **overrides: Any) -> ToolParameter:
    return ToolParameter(**{"name": "amount", "schema": schema, **overrides})


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


class TestSorting:
    tool = make_tool(
        make_parameter({"type": "number", "exclusiveMinimum": 0}),
        make_parameter(CURRENCY, name="currency", required=False, default="EUR"),
        make_parameter(nullable({"type": "string"}), name="note", required=False),
    )

    def test_valid_arguments_are_ready_to_call_with(self) -> None:
        checked = check_arguments(self.tool, {"amount": 12.5, "currency": "USD", "note": None})
        assert checked.ready
        assert checked.values == {"amount": 12.5, "currency": "USD", "note": None}
        assert checked.defaults == {}

    def test_absent_optional_ones_are_not_invented_but_their_defaults_are_known(self) -> None:
        checked = check_arguments(self.tool, {"amount": 5})
        assert checked.ready
        assert checked.values == {"amount": 5}
        assert checked.defaults == {"currency": "EUR"}

    @pytest.mark.parametrize("arguments", [{}, {"amount": None}])
    def test_a_required_one_that_is_absent_or_null_is_missing(
        self, arguments: dict[str, Any]
    ) -> None:
        checked = check_arguments(self.tool, arguments)
        assert not checked.ready
        assert checked.missing == ("amount",)
        assert checked.invalid == ()

    def test_an_optional_one_with_a_wrong_value_is_invalid_and_not_silently_dropped(self) -> None:
        checked = check_arguments(self.tool, {"amount": 5, "currency": "GBP"})
        assert not checked.ready
        (invalid,) = checked.invalid
        assert (invalid.name, invalid.value) == ("currency", "GBP")
        assert invalid.reason == "must be one of EUR, USD"
        assert checked.values == {"amount": 5}

    def test_null_for_a_parameter_that_knows_no_null_means_not_given(self) -> None:
        checked = check_arguments(self.tool, {"amount": 5, "currency": None})
        assert checked.ready
        assert checked.defaults == {"currency": "EUR"}

    def test_names_that_the_tool_does_not_have_are_listed_and_left_out(self) -> None:
        checked = check_arguments(self.tool, {"amount": 5, "iban": "DE1"})
        assert checked.ready
        assert checked.unknown == ("iban",)
        assert "iban" not in checked.values

    def test_5_0_becomes_5_so_that_equal_calls_have_one_text(self) -> None:
        value = check_arguments(self.tool, {"amount": 5.0}).values["amount"]
        assert (value, type(value)) == (5, int)


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "boolean"}, "false", "must be true or false"),
        ({"type": "integer"}, True, "must be a whole number"),
        ({"type": "number"}, False, "must be a number"),
        ({"type": "number"}, "1,500", "must be a number"),
        ({"type": "integer"}, 2.5, "must be a whole number"),
        ({"type": "string"}, 7, "must be text"),
        ({"type": "number"}, float("nan"), "must be a finite number"),
        ({"type": "array", "items": {"type": "number"}}, [float("inf")], "must be a finite number"),
        ({"type": "integer", "minimum": 1}, 0, "must be at least 1"),
        ({"type": "integer", "maximum": 9}, 10, "must be at most 9"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "must be more than 0"),
        ({"type": "number", "multipleOf": 0.01}, 19.999, "must be a multiple of 0.01"),
        ({"type": "string", "minLength": 1}, "", "must not be empty"),
        ({"type": "string", "maxLength": 3}, "abcd", "must have at most 3 characters"),
        ({"enum": [1, 2]}, 3, "must be one of 1, 2"),
        ({"enum": [1, 2]}, True, "must be one of 1, 2"),
        ({"type": "array", "items": CURRENCY}, ["EUR", "x"], "item 2 must be one of EUR, USD"),
        ({"type": "array", "items": CURRENCY, "minItems": 1}, [], "must have at least 1 item"),
        (
            {"type": "array", "items": CURRENCY, "uniqueItems": True},
            ["EUR", "EUR"],
            "must not name anything twice",
        ),
        (nullable(CURRENCY), "GBP", "must be one of EUR, USD"),
        (nullable({"type": "integer", "minimum": 1}), 0, "must be at least 1"),
        (nullable({"type": "integer", "minimum": 1}), "x", "must be a whole number"),
        ({"type": ["integer", "null"]}, "x", "must be a whole number"),
        (
            {"anyOf": [{"type": "integer"}, CURRENCY]},
            [],
            "must be a whole number, or one of EUR, USD",
        ),
        ({"type": "string", "format": "date"}, "2026-02-30", "must be a date such as 2026-11-21"),
    ],
)
def test_the_reason_says_in_words_what_is_wanted(
    schema: dict[str, Any], value: Any, reason: str
) -> None:
    assert reason_against(schema, value) == reason


def test_the_reason_names_the_place_inside_an_object() -> None:
    schema = {
        "type": "object",
        "properties": {
            "price": {"type": "array", "items": {"type": "number"}},
            "category": {"type": "string"},
        },
        "required": ["price", "category"],
        "additionalProperties": False,
    }
    assert reason_against(schema, {"price": [1, "2"], "category": "x"}) == (
        "field 'price' item 2 must be a number"
    )
    assert reason_against(schema, {"price": []}) == "needs category"
    assert reason_against(schema, {"price": [], "category": "x", "size": 1}) == "must not have size"
    inside_optional = nullable({"type": "object", "properties": {"n": {"type": "integer"}}})
    assert reason_against(inside_optional, {"n": "x"}) == "field 'n' must be a whole number"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "date",
            ["2026-11-21"],
            ["21.11.2026", "tomorrow", "1234567890", "2026-02-30", "2026-11-21\n"],
        ),
        (
            "date-time",
            ["2026-11-21T14:30", "2026-11-21T14:30:00Z", "2026-11-21 14:30:00+01:00"],
            ["2026-11-21", "1234567890", "2026-11-21T25:00", "now"],
        ),
        ("time", ["14:30", "14:30:05", "14:30:05+01:00"], ["25:00", "half past two", "3"]),
        ("duration", ["PT1H30M", "P2D", "P1W"], ["90 minutes", "P", "PT", "3600"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123", "x" * 36]),
        (
            "email",
            ["ann@example.com", "a.b+c@mail.example.co.uk", "jörg@exämple.de"],
            [
                "ann",
                "ann@",
                "@example.com",
                "a b@example.com",
                "a@b@example.com",
                "a..b@example.com",
            ],
        ),
    ],
)
def test_formats_are_checked(name: str, good: list[str], bad: list[str]) -> None:
    schema = {"type": "string", "format": name}
    assert [value for value in good if reason_against(schema, value)] == []
    assert [value for value in bad if not reason_against(schema, value)] == []


@pytest.mark.parametrize("amount", [19.99, 0.07, 1.1, 1e15, 100, 1e300])
def test_cents_divide_as_people_divide_and_not_as_floats_do(amount: float) -> None:
    assert reason_against({"type": "number", "multipleOf": 0.01}, amount) == ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_any_json_value_gets_a_verdict_and_canonical_numbers_equal_it(value: Any) -> None:
    tool = make_tool(make_parameter({"type": "integer", "minimum": 3}))
    checked = check_arguments(tool, {"amount": value})
    assert checked.ready == ("amount" in checked.values)
    assert checked.ready == (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and value >= 3
        and value % 1 == 0
    )
    assert canonical_numbers(value) == value


def test_the_plain_schema_is_that_without_null() -> None:
    assert plain_schema(nullable(CURRENCY)) == CURRENCY
    assert plain_schema({"type": ["string", "null"], "enum": ["EUR", "USD", None]}) == CURRENCY
    assert plain_schema(CURRENCY) == CURRENCY


def test_choices_are_found_in_optional_values_and_in_lists_too() -> None:
    for schema in (CURRENCY, nullable(CURRENCY), nullable({"type": "array", "items": CURRENCY})):
        assert choices_of(schema) == ("EUR", "USD")
    assert choices_of({"type": "string"}) == ()
    assert choices_of({"const": "yes"}) == ("yes",)


class TestRegistration:
    @pytest.mark.parametrize(
        "schema",
        [
            CURRENCY,
            nullable({"type": "string", "format": "date"}),
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            {"type": "array", "prefixItems": [{"type": "number"}], "items": False},
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"const": "yes"},
        ],
    )
    def test_supported_schemas_pass(self, schema: dict[str, Any]) -> None:
        refuse_unsupported(make_parameter(schema))

    @pytest.mark.parametrize(
        ("schema", "remedy"),
        [
            ({}, "give every part a type"),
            ({"type": "array"}, "add `items`"),
            ({"type": "array", "items": {}}, "give every part a type"),
            ({"type": "object", "properties": {"a": {}}}, "give every part a type"),
            ({"anyOf": [{"type": "string"}, {}]}, "give every part a type"),
            ({"$ref": "#/$defs/A"}, "write the referenced schema in its place"),
            ({"type": "string", "format": "binary"}, "use text"),
            ({"type": "money"}, "invalid JSON Schema"),
            ({"type": "string", "pattern": "("}, "invalid JSON Schema"),
            ({"type": "number", "minimum": float("nan")}, "JSON cannot hold"),
        ],
    )
    def test_others_are_refused_naming_the_parameter_and_the_remedy(
        self, schema: dict[str, Any], remedy: str
    ) -> None:
        with pytest.raises(SpecError, match="'amount'") as caught:
            refuse_unsupported(make_parameter(schema))
        assert caught.value.field == "amount"
        assert remedy in str(caught.value)

    def test_a_default_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(SpecError, match="default 'GBP', which must be one of EUR, USD"):
            refuse_unsupported(make_parameter(CURRENCY, required=False, default="GBP"))
