"""Expectations as JSON, and what is wrong with JSON that is none."""

import json
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from engine.canonical import JsonObject, canonical_json, is_too_deep, without_nul
from engine.errors import SpecError
from engine.expecting.comparing import plain
from engine.expecting.kinds import (
    LONGEST_PATTERN,
    LONGEST_TEXT,
    ArgumentExpectation,
    Comparing,
    Expectation,
    Measure,
    OrderExpectation,
    ReplyContainsExpectation,
    ReplyMatchesExpectation,
    ToolExpectation,
)
from engine.expecting.patterns import compiled
from engine.trail import DecisionState

_YES_OR_NO = "Give true or false."
_SHORT_NAME = "of 1 to 200 characters"
_SOME_TEXT = f"of 1 to {LONGEST_TEXT} characters"


def _one_of(names: type[Comparing | Measure | DecisionState]) -> str:
    return f"Choose one of: {', '.join(names)}."


_REMEDIES = {
    "turn": "Give the number of a turn, from 1 on, or leave it out for the whole conversation.",
    "at_least": "Give the number of repeats that must hold, from 1 on, or leave it out for all.",
    "guideline": f"Give the uid of a guideline, {_SHORT_NAME}.",
    "tool": f"Give the name of a tool, {_SHORT_NAME}.",
    "tools": f"Give a list of at least two names of tools, each {_SHORT_NAME}.",
    "matches": _YES_OR_NO,
    "runs": _YES_OR_NO,
    "contains": _YES_OR_NO,
    "expected": _YES_OR_NO,
    "arguments": "Give a list of objects with a name, how it is compared, and a value.",
    "name": f"Give the name of a parameter, {_SHORT_NAME}.",
    "how": _one_of(Comparing),
    "value": "Give the value that is expected.",
    "tolerance": "Give a number from 0 on; 0 stands for 1 % of the value.",
    "state": _one_of(DecisionState),
    "text": f"Give a text {_SOME_TEXT}.",
    "statement": f"Give a statement {_SOME_TEXT}.",
    "pattern": f"Give a regular expression of 1 to {LONGEST_PATTERN} characters.",
    "measure": _one_of(Measure),
    "limit": "Give a number above 0.",
}


@lru_cache(maxsize=1)
def expectation_adapter() -> TypeAdapter[Expectation]:
    """Reads and writes expectations as JSON objects with their `kind`; `read_expectation` also says what is wrong."""
    return TypeAdapter(Annotated[Expectation, Field(discriminator="kind")])


def to_json(expectation: Expectation) -> JsonObject:
    """A JSON object that `read_expectation` reads back to an equal value."""
    value: JsonObject = expectation_adapter().dump_python(expectation, mode="json")
    return value


def read_expectation(value: Any) -> Expectation:
    """The expectation that a JSON value is. Raises SpecError, whose `field` is a path such as "arguments.0.value"."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"An expectation has to be JSON: {error}.") from error
    if is_too_deep(value) or without_nul(text) != text:
        raise SpecError(
            "An expectation may not hold NUL characters or values nested deeper than 100 levels. Leave them out."
        )
    try:
        expectation = expectation_adapter().validate_json(text, strict=True)
    except ValidationError as error:
        raise _spec_error(error.errors(include_url=False)[0]) from error
    _make_sure_it_means_something(expectation)
    return expectation


def _spec_error(detail: ErrorDetails) -> SpecError:
    """The first thing that pydantic found, in words: the field, what is wrong with it, and the remedy."""
    kind, path = (detail["loc"] or ("",))[0], detail["loc"][1:]
    match detail["type"]:
        case "json_invalid":
            return SpecError("An expectation may hold whole characters only. Write the text anew.")
        case "union_tag_not_found" | "dict_type" | "dataclass_type" if not path:
            return SpecError(
                f"An expectation is an object with a kind, one of: {_kinds()}.", field="kind"
            )
        case "union_tag_invalid":
            told = detail["ctx"]["tag"]
            return SpecError(
                f"There is no expectation of kind {told!r}. Choose one of: {_kinds()}.",
                field="kind",
            )
    names = [part for part in path if isinstance(part, str)]
    field = ".".join(str(part) for part in path)
    problem, remedy = f"cannot be {_told(detail['input'])}", _REMEDIES.get(names[-1], "")
    if detail["type"] == "missing":
        problem = "is missing"
    elif detail["type"] == "unexpected_keyword_argument":
        problem, remedy = "is not known", "Leave it out."
    return SpecError(f"{field!r} of a {kind!r} expectation {problem}. {remedy}", field=field)


@lru_cache(maxsize=1)
def _kinds() -> str:
    options = expectation_adapter().json_schema()["discriminator"]["mapping"]
    return ", ".join(options)


def _told(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _make_sure_it_means_something(expectation: Expectation) -> None:
    """Refuse what would hold, or fail, whatever the conversation is."""
    match expectation:
        case ToolExpectation():
            for number, argument in enumerate(expectation.arguments):
                _make_sure_it_compares(argument, f"arguments.{number}")
        case OrderExpectation(tools=tools) if len(set(tools)) < len(tools):
            raise SpecError(
                "'tools' names a tool twice, but only its first call counts. Name each tool once.",
                field="tools",
            )
        case ReplyContainsExpectation(text=text) if not plain(text):
            raise SpecError(f"'text' shows nothing. {_REMEDIES['text']}", field="text")
        case ReplyMatchesExpectation(pattern=pattern):
            compiled(pattern)
        case _:
            pass


def _make_sure_it_compares(argument: ArgumentExpectation, place: str) -> None:
    value, problem = argument.value, ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if argument.how is Comparing.ONE_OF and not (isinstance(value, list) and value):
        problem = "needs a list of values, at least one, where one of them is expected"
    elif argument.how is Comparing.ABOUT and not is_number:
        problem = "needs a number where about that much is expected"
    elif argument.how is Comparing.CONTAINS and (
        value is None or (isinstance(value, str) and not plain(value))
    ):
        problem = "needs a text or an item to be contained; every text contains the empty one"
    if problem:
        raise SpecError(f"The value of {argument.name!r} {problem}.", field=f"{place}.value")
    if argument.tolerance and argument.how is not Comparing.ABOUT:
        raise SpecError(
            f"The tolerance of {argument.name!r} counts only with 'about'. Leave it out.",
            field=f"{place}.tolerance",
        )
