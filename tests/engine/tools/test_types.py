"""Every type of ENGINE.md §3, declared by an annotation or by a JSON Schema alone: the same values pass either way."""

import enum
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, model_validator

from engine.arguments import check_arguments, refuse_unsupported
from engine.errors import SpecError, ToolErrorKind, ToolFailure
from engine.spec import Tool, ToolParameter
from engine.tools.base import ToolContext
from engine.tools.function import FunctionToolService, ToolFunction, tool
from engine.tools.parameters import Email, ToolParameterOptions, build_parameter


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Leg(BaseModel):
    start: str = Field(min_length=1)
    seats: int = Field(ge=1, le=9)


class Stay(BaseModel):
    arrive: date
    leave: date

    @model_validator(mode="after")
    def _in_order(self) -> "Stay":
        if self.leave <= self.arrive:
            raise ValueError("leaving comes after arriving")
        return self


LEG = {
    "type": "object",
    "properties": {
        "start": {"type": "string", "minLength": 1},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["start", "seats"],
}

# what it is → annotation, JSON Schema, values that pass, values that do not
TYPES: dict[str, tuple[Any, Any, list[Any], list[Any]]] = {
    "string": (str, {"type": "string"}, ["a", ""], [1, True, None, ["a"]]),
    "integer": (int, {"type": "integer"}, [3, -1, 5.0], ["3", 3.5, True, "1,500", None]),
    "number": (float, {"type": "number"}, [3, 2.5], ["2.5", "1,500", True, float("nan")]),
    "boolean": (bool, {"type": "boolean"}, [True, False], ["false", "true", 0, 1, ""]),
    "date": (
        date,
        {"type": "string", "format": "date"},
        ["2026-11-21"],
        ["21.11.2026", "tomorrow", "2026-02-30", 20261121, "2026-11-21T10:00"],
    ),
    "datetime": (
        datetime,
        {"type": "string", "format": "date-time"},
        ["2026-11-21T14:30", "2026-11-21T14:30:00Z"],
        ["2026-11-21", "14:30", 1795271400],
    ),
    "time": (time, {"type": "string", "format": "time"}, ["14:30", "14:30:15"], ["2 pm", 1430]),
    "duration": (
        timedelta,
        {"type": "string", "format": "duration"},
        ["PT1H30M", "P2D"],
        ["two hours", 5400, "90"],
    ),
    "uuid": (
        UUID,
        {"type": "string", "format": "uuid"},
        ["123e4567-e89b-12d3-a456-426614174000"],
        ["123e4567", "123e4567e89b12d3a456426614174000x", 5],
    ),
    "e-mail": (
        Email,
        {"type": "string", "format": "email"},
        ["ann@example.com"],
        ["ann", "ann@", "@example.com", 5],
    ),
    "enum": (Size, {"enum": ["small", "large"]}, ["small"], ["medium", "SMALL", None]),
    "literal": (Literal["a", 2], {"enum": ["a", 2]}, ["a", 2], ["b", "2", True]),
    "list": (
        list[int],
        {"type": "array", "items": {"type": "integer"}},
        [[], [1, 2]],
        [1, ["1"], "1,2", [None]],
    ),
    "union with null": (
        int | None,
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        [3, None],
        ["3", "null"],
    ),
    "nested object": (
        Leg,
        LEG,
        [{"start": "Lyon", "seats": 2}],
        [
            {"start": "", "seats": 2},
            {"start": "Lyon", "seats": 0},
            {"start": "Lyon"},
            "Lyon",
            '{"start": "Lyon", "seats": 2}',
        ],
    ),
    "list of objects": (
        list[Leg],
        {"type": "array", "items": LEG},
        [[{"start": "Lyon", "seats": 2}]],
        [[{"start": "Lyon", "seats": "2"}], {"start": "Lyon", "seats": 2}],
    ),
    "dictionary": (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [{}, {"a": 1}],
        [{"a": "1"}, [1], "a"],
    ),
}
VALUES = [
    pytest.param(kind, value, passes, id=f"{kind}: {value!r}")
    for kind, (_annotation, _schema, good, bad) in TYPES.items()
    for passes, values in ((True, good), (False, bad))
    for value in values
]


def the_tool(parameter: ToolParameter) -> Tool:
    return Tool(uid="t", name="t", description="", parameters=(parameter,))


@pytest.mark.parametrize(("kind", "value", "passes"), VALUES)
def test_an_annotation_and_a_schema_accept_the_same_values(
    kind: str, value: Any, passes: bool
) -> None:
    annotation, schema, _good, _bad = TYPES[kind]
    by_schema = ToolParameter(name="value", schema=schema)
    refuse_unsupported(by_schema)
    for parameter in (build_parameter("value", annotation).spec, by_schema):
        checked = check_arguments(the_tool(parameter), {"value": value})
        if value is None and not passes:  # null is the absence of a value
            assert checked.values == {}
        else:
            assert checked.ready is passes
            assert bool(checked.invalid) is not passes


@pytest.mark.parametrize(("kind", "value", "passes"), VALUES)
def test_what_passes_the_schema_is_what_a_function_can_read(
    kind: str, value: Any, passes: bool
) -> None:
    if passes:
        parameter = build_parameter("value", TYPES[kind][0])
        checked = check_arguments(the_tool(parameter.spec), {"value": value})
        parameter.read(checked.values["value"])


def test_a_whole_float_is_an_integer_and_two_writings_are_one_call() -> None:
    parameter = build_parameter("value", int).spec
    checked = check_arguments(the_tool(parameter), {"value": 5.0})
    assert checked.values == {"value": 5}
    assert isinstance(checked.values["value"], int)


def test_an_optional_value_may_be_left_out_and_then_holds_its_default() -> None:
    parameter = build_parameter("value", int, default=3, has_default=True).spec
    checked = check_arguments(the_tool(parameter), {})
    assert (checked.ready, checked.values, checked.defaults) == (True, {}, {"value": 3})


# --- nested models ----------------------------------------------------------------------------------------------


async def call(function: ToolFunction[..., Any], **arguments: Any) -> Any:
    context = ToolContext(agent_id="a", session_id="s", turn_id="t", customer_id="c")
    result = await FunctionToolService([function]).call(function.spec, arguments, context)
    return result.data


async def refusal(function: ToolFunction[..., Any], **arguments: Any) -> Any:
    with pytest.raises(ToolFailure) as caught:
        await call(function, **arguments)
    return caught.value.error


async def test_a_models_own_validator_refuses_with_its_words_before_the_function_runs() -> None:
    ran: list[Any] = []

    @tool
    def book(context: ToolContext, stay: Stay) -> str:
        ran.append(stay)
        return "booked"

    wrong = {"arrive": "2026-11-21", "leave": "2026-11-20"}
    assert check_arguments(book.spec, {"stay": wrong}).ready  # a schema cannot say it
    error = await refusal(book, stay=wrong)
    assert error.kind is ToolErrorKind.EXCEPTION
    assert "did not accept its arguments" in error.public
    assert "leaving comes after arriving" in error.public
    assert ran == []


# --- adapters ---------------------------------------------------------------------------------------------------


class Account:
    """A class that pydantic knows nothing of."""

    def __init__(self, number: str) -> None:
        if not number.startswith("A"):
            raise LookupError(f"no account {number} in sqlite:///secret.db")
        self.number = number


@dataclass
class Money:
    amount: Decimal
    currency: str


class Price(BaseModel):
    amount: Decimal = Field(gt=0)
    currency: Literal["EUR", "USD"]


def money_of(price: Price) -> Money:
    return Money(price.amount, price.currency)


def accounts_of(numbers: list[str]) -> list[Account]:
    return [Account(number) for number in numbers]


def account_of(number):  # type: ignore[no-untyped-def]
    return Account(number)


@tool
def show(
    context: ToolContext,
    account: Annotated[Account, ToolParameterOptions(adapter=Account)],
    other: Annotated[Account | None, ToolParameterOptions(adapter=account_of)] = None,
) -> list[str]:
    """Shows accounts."""
    return [account.number, other.number if other else "none"]


class TestAdapters:
    async def test_a_value_arrives_as_the_tools_own_type(self) -> None:
        assert await call(show, account="A1", other="A2") == ["A1", "A2"]

    async def test_null_and_absence_do_not_pass_through_it(self) -> None:
        assert await call(show, account="A1", other=None) == ["A1", "none"]
        assert await call(show, account="A1") == ["A1", "none"]

    @pytest.mark.parametrize(
        ("annotation", "adapter", "schema"),
        [
            (Account, Account, {"type": "string"}),
            (Account, account_of, {"type": "string"}),
            (Decimal, Decimal, {"type": "string"}),
            (list[Account], accounts_of, {"type": "array", "items": {"type": "string"}}),
            (Account | None, Account, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ],
    )
    def test_what_it_takes_is_the_type_that_models_and_forms_see(
        self, annotation: Any, adapter: Any, schema: Any
    ) -> None:
        built = build_parameter(
            "value", Annotated[annotation, ToolParameterOptions(adapter=adapter)]
        )
        assert built.spec.schema == schema

    async def test_it_may_take_a_model_whose_constraints_hold_before(self) -> None:
        @tool
        def pay(
            context: ToolContext,
            price: Annotated[Money, ToolParameterOptions(adapter=money_of)],
        ) -> str:
            return f"{price.amount} {price.currency} {type(price).__name__}"

        assert await call(pay, price={"amount": 2.5, "currency": "EUR"}) == "2.5 EUR Money"
        checked = check_arguments(pay.spec, {"price": {"amount": 2.5, "currency": "GBP"}})
        assert checked.invalid[0].reason == "field 'currency' must be one of EUR, USD"

    async def test_one_that_raises_says_that_the_argument_was_not_accepted_and_nothing_more(
        self,
    ) -> None:
        error = await refusal(show, account="B1")
        assert error.public == "it did not accept its arguments (account was not accepted)"
        assert "no account B1 in sqlite" in error.detail

    async def test_a_default_of_the_tools_own_type_is_the_functions_alone(self) -> None:
        @tool
        def open_account(
            context: ToolContext,
            account: Annotated[Account, ToolParameterOptions(adapter=Account)] = Account("A9"),  # noqa: B008
        ) -> str:
            return account.number

        assert open_account.spec.parameters[0].required is False
        assert open_account.spec.parameters[0].default is None
        assert await call(open_account) == "A9"

    @pytest.mark.parametrize(
        ("adapter", "problem"),
        [
            ("upper", "has the adapter 'upper', which cannot be called; write def adapter"),
            (lambda: 1, "has an adapter that does not take one value"),
            (lambda a, b: 1, "has an adapter that does not take one value"),
        ],
    )
    def test_what_cannot_adapt_is_refused_at_import_with_the_remedy(
        self, adapter: Any, problem: str
    ) -> None:
        with pytest.raises(SpecError, match="parameter 'value'") as caught:
            build_parameter("value", Annotated[Account, ToolParameterOptions(adapter=adapter)])
        assert problem in str(caught.value)
        assert caught.value.field == "value"

    def test_an_async_adapter_is_refused(self) -> None:
        async def slow(value: str) -> str:
            return value

        with pytest.raises(SpecError, match="does not return its value at once"):
            build_parameter("value", Annotated[Account, ToolParameterOptions(adapter=slow)])


# --- choice providers -------------------------------------------------------------------------------------------


def some(_context: ToolContext) -> list[str]:
    return ["a"]


def yielding(_context: ToolContext) -> Any:
    yield "a"


class TestChoiceProviders:
    def test_the_tool_says_that_its_choices_are_named_anew(self) -> None:
        annotation = Annotated[str, ToolParameterOptions(choice_provider=some)]
        built = build_parameter("value", annotation)
        assert built.spec.provides_choices
        assert built.spec.schema == {"type": "string"}

    @pytest.mark.parametrize(
        ("annotation", "options", "problem"),
        [
            (str, {"choice_provider": ["a"]}, "which cannot be called; write def provider"),
            (str, {"choice_provider": lambda: ["a"]}, "does not take the context alone"),
            (str, {"choice_provider": lambda a, b: ["a"]}, "does not take the context alone"),
            (str, {"choice_provider": yielding}, "yields; return a list instead"),
            (str, {"choice_provider": some, "choices": ["a"]}, "keep one of them"),
            (int | str, {"choice_provider": some}, "of several types; give it one type"),
        ],
    )
    def test_what_cannot_name_choices_is_refused_at_import_with_the_remedy(
        self, annotation: Any, options: Any, problem: str
    ) -> None:
        with pytest.raises(SpecError, match="parameter 'value'") as caught:
            build_parameter("value", Annotated[annotation, ToolParameterOptions(**options)])
        assert problem in str(caught.value)
        assert caught.value.field == "value"
