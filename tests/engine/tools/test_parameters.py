"""A signature says everything about a tool's parameters; what it says wrong is refused when it is imported."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, EmailStr, Field, ValidationError
from typing_extensions import TypedDict

from engine.errors import SpecError
from engine.spec import ParameterSource, ToolParameter
from engine.tools.base import ToolContext
from engine.tools.parameters import (
    Email,
    FunctionParameter,
    ToolParameterOptions,
    build_parameter,
    read_signature,
)


class Currency(enum.Enum):
    EUR = "eur"
    USD = "usd"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Leg(BaseModel):
    """One part of a journey."""

    title: str
    seats: int = Field(ge=1, le=9)
    fare: Annotated[Decimal, Field(gt=0, decimal_places=2)] = Decimal("1.5")


class Search(BaseModel):
    category: str
    price_range: tuple[float, float]
    legs: list[Leg] = []


class Node(BaseModel):
    children: "list[Node]"


@dataclass
class Point:
    x: int
    y: int = 0


class Address(TypedDict):
    street: str


def built(annotation: Any, **overrides: Any) -> FunctionParameter:
    return build_parameter("value", annotation, **overrides)


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "received"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, 3, 3),
        (float, {"type": "number"}, 3, 3.0),
        (bool, {"type": "boolean"}, False, False),
        (Decimal, {"type": "number"}, 19.99, Decimal("19.99")),
        (date, {"type": "string", "format": "date"}, "2026-11-21", date(2026, 11, 21)),
        (
            datetime,
            {"type": "string", "format": "date-time"},
            "2026-11-21T14:30",
            datetime.fromisoformat("2026-11-21T14:30"),
        ),
        (time, {"type": "string", "format": "time"}, "14:30", time(14, 30)),
        (timedelta, {"type": "string", "format": "duration"}, "PT1H", timedelta(hours=1)),
        (UUID, {"type": "string", "format": "uuid"}, str(UUID(int=1)), UUID(int=1)),
        (Email, {"type": "string", "format": "email"}, "a@example.com", "a@example.com"),
        (Currency, {"type": "string", "enum": ["eur", "usd"]}, "eur", Currency.EUR),
        (Level, {"type": "integer", "enum": [1, 2]}, 2, Level.HIGH),
        (Literal["x", 1], {"enum": ["x", 1]}, 1, 1),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [1, 2], {1, 2}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "7", "7"),
        (Point, None, {"x": 1}, Point(1, 0)),
        (Address, None, {"street": "Quay 1"}, {"street": "Quay 1"}),
    ],
)  # fmt: skip
def test_each_type_has_its_schema_and_arrives_as_itself(
    annotation: Any, schema: dict[str, Any] | None, given: Any, received: Any
) -> None:
    parameter = built(annotation)
    assert schema is None or parameter.spec.schema == schema
    value = parameter.read(given)
    assert value == received
    assert type(value) is type(received)


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (bool, "false"),
        (bool, 1),
        (int, "5"),
        (int, True),
        (float, "1,500"),
        (str, 5),
        (date, 1234567890),
        (Currency, "EUR"),
        (list[int], "1,2"),
        (Leg, {"title": "a", "seats": "2"}),
    ],
)
def test_nothing_is_cast(annotation: Any, given: Any) -> None:
    with pytest.raises(ValidationError):
        built(annotation).read(given)


def test_a_nested_model_is_written_out_with_its_constraints() -> None:
    parameter = built(Search)
    leg = parameter.spec.schema["properties"]["legs"]["items"]
    assert "$ref" not in str(parameter.spec.schema)
    assert leg["properties"]["seats"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert leg["properties"]["title"] == {"type": "string"}, "a field may be called title"
    assert leg["properties"]["fare"]["multipleOf"] == 0.01
    search = parameter.read(
        {"category": "x", "price_range": [1, 2.5], "legs": [{"title": "t", "seats": 2}]}
    )
    assert search == Search(category="x", price_range=(1.0, 2.5), legs=[Leg(title="t", seats=2)])


class TestOptional:
    def test_a_union_with_none_may_be_left_out(self) -> None:
        for annotation in (Optional[int], int | None, Annotated[int | None, Field(ge=1)]):  # noqa: UP045
            assert not built(annotation).spec.required
        assert built(int | None).spec.schema == {"anyOf": [{"type": "integer"}, {"type": "null"}]}

    def test_a_default_makes_a_parameter_optional_and_is_kept_as_json(self) -> None:
        cases: list[tuple[Any, Any, Any]] = [
            (int, 10, 10),
            (float, 0, 0),
            (Decimal, Decimal("1.5"), 1.5),
            (Currency, Currency.EUR, "eur"),
            (date, date(2026, 11, 21), "2026-11-21"),
            (timedelta, timedelta(hours=1), "PT1H"),
            (list[Decimal], (Decimal("1.1"),), [1.1]),
            (Leg, Leg(title="a", seats=1), {"title": "a", "seats": 1, "fare": 1.5}),
            (int, None, None),
        ]
        for annotation, default, as_json in cases:
            spec = built(annotation, default=default, has_default=True).spec
            assert not spec.required
            assert spec.default == as_json

    @pytest.mark.parametrize("default", ["ten", object(), float("nan")])
    def test_a_default_of_another_type_is_refused(self, default: Any) -> None:
        with pytest.raises(SpecError, match="default"):
            built(int, default=default, has_default=True)


class TestOptions:
    def test_every_option_reaches_the_parameter(self) -> None:
        options = ToolParameterOptions(
            description="How much",
            source="customer",
            hidden=True,
            precedence=2,
            significance="We need it to pay",
            examples=["YYYY-MM-DD", date(2026, 11, 21)],
            display_name="day of payment",
        )
        assert built(
            Annotated[date, options], description="from the docstring"
        ).spec == ToolParameter(
            name="value",
            schema={"type": "string", "format": "date"},
            description="How much",
            source=ParameterSource.CUSTOMER,
            hidden=True,
            precedence=2,
            significance="We need it to pay",
            examples=("YYYY-MM-DD", "2026-11-21"),
            display_name="day of payment",
        )

    def test_they_are_found_inside_an_optional_too(self) -> None:
        options = ToolParameterOptions(source="customer", examples=["a"])
        for annotation in (Annotated[str, options] | None, Annotated[str | None, options]):
            assert built(annotation).spec.source is ParameterSource.CUSTOMER

    def test_on_a_part_of_the_value_they_are_refused_instead_of_ignored(self) -> None:
        with pytest.raises(SpecError, match="around the whole"):
            built(list[Annotated[str, ToolParameterOptions(source="customer")]])

    def test_choices_become_the_only_values(self) -> None:
        def choices_of(annotation: Any, *choices: Any) -> dict[str, Any]:
            return built(Annotated[annotation, ToolParameterOptions(choices=choices)]).spec.schema

        assert choices_of(str, "a", "b") == {"type": "string", "enum": ["a", "b"]}
        assert choices_of(date, date(2026, 11, 21))["enum"] == ["2026-11-21"]
        assert choices_of(list[str], "a")["items"] == {"type": "string", "enum": ["a"]}
        assert choices_of(str | None, "a")["anyOf"] == [
            {"type": "string", "enum": ["a"]},
            {"type": "null"},
        ]

    @pytest.mark.parametrize(
        ("annotation", "problem"),
        [
            (
                Annotated[int, ToolParameterOptions(choices=["x"])],
                "choice 'x', which must be a whole number",
            ),
            (Annotated[int | str, ToolParameterOptions(choices=["x"])], "give it one type"),
            (Annotated[int, ToolParameterOptions(source="user")], "use any, customer or context"),  # type: ignore[arg-type]
            (Annotated[int, ToolParameterOptions], "without calling it"),
            (Annotated[int, ToolParameterOptions(examples=[object()])], "JSON cannot hold"),
        ],
    )
    def test_options_that_cannot_be_meant_are_refused(self, annotation: Any, problem: str) -> None:
        with pytest.raises(SpecError, match=problem) as caught:
            built(annotation)
        assert caught.value.field == "value"


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (Any, "give every part a type"),
        (object, "give every part a type"),
        (list, "give every part a type"),
        (bytes, "JSON cannot hold"),
        (complex, "JSON cannot hold"),
        (Callable[[], int], "JSON cannot hold"),
        (int | Callable[[], int], "JSON cannot hold"),
        (type("Plain", (), {}), "pydantic cannot read"),
        (Node, "contains itself"),
        (EmailStr, r"engine\.tools\.parameters\.Email"),
        (Annotated[int, Field(default=3)], "has its default in Field"),
    ],
)
def test_a_type_that_json_cannot_hold_is_refused_with_a_remedy(
    annotation: Any, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem) as caught:
        built(annotation)
    assert caught.value.field == "value"


class TestSignature:
    @pytest.mark.parametrize(
        ("function", "field", "remedy"),
        [
            (lambda: None, "", "context first"),
            (lambda context: None, "context", "context first"),
        ],
    )
    def test_the_context_comes_first(self, function: Any, field: str, remedy: str) -> None:
        with pytest.raises(SpecError, match=remedy) as caught:
            read_signature(function)
        assert caught.value.field == field

    def test_the_context_must_be_passable_by_position(self) -> None:
        def by_keyword(*, context: ToolContext) -> None: ...
        def method(self: object, context: ToolContext) -> None: ...

        for function in (by_keyword, method):
            with pytest.raises(SpecError, match="context first"):
                read_signature(function)

    def test_parameters_that_a_tool_cannot_have_are_named(self) -> None:
        def many(context: ToolContext, *rest: str) -> None: ...
        def named(context: ToolContext, **rest: str) -> None: ...
        def positional(context: ToolContext, rest: str, /) -> None: ...
        def bare(context: ToolContext, rest) -> None: ...  # type: ignore[no-untyped-def]
        def unknown(context: ToolContext, rest: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821
        def field(context: ToolContext, rest: int = Field(default=3)) -> None: ...

        for function, remedy in (
            (many, "name each parameter"),
            (named, "name each parameter"),
            (positional, "remove the '/'"),
            (bare, "no annotation; write rest: str"),
            (unknown, "at module level"),
            (field, "Annotated"),
        ):
            with pytest.raises(SpecError, match=remedy) as caught:
                read_signature(function)
            assert caught.value.field in {"rest", ""}
            assert "rest" in str(caught.value) or "Nowhere" in str(caught.value)

    def test_descriptions_come_from_the_docstring_where_it_has_them(self) -> None:
        def google(context: ToolContext, amount: float, to: str, note: str = "") -> None:
            """Transfers money.

            Args:
                amount (float): How much,
                    in euros.
                to: Whom.

            Returns:
                note: nothing
            """

        def sphinx(context: ToolContext, amount: float, to: str, note: str = "") -> None:
            """Transfers money.

            :param float amount: How much,
                in euros.
            :param to: Whom.
            :returns: nothing
            """

        for function in (google, sphinx):
            descriptions = [parameter.spec.description for parameter in read_signature(function)]
            assert descriptions == ["How much, in euros.", "Whom.", ""]

    def test_keyword_only_parameters_are_fine(self) -> None:
        def transfer(context: ToolContext, *, amount: float) -> None: ...

        assert [parameter.spec.name for parameter in read_signature(transfer)] == ["amount"]
