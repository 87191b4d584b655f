"""The Expectation union: checkable sentences about a conversation, discriminated by `kind` (DESIGN.md §2).

`turn` is the number of the turn that an expectation speaks of. Without one, what is wanted has to be found in some
turn, what is not wanted in none, and a measure is taken of the whole conversation. `at_least` says in how many of the
repeats of a run it has to hold; without it, in all.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, assert_never

from pydantic import ConfigDict, Field, StringConstraints

from engine.trail import DecisionState

LONGEST_TEXT = 2_000
"""Characters of a text, a promise or a statement."""
LONGEST_PATTERN = 500

Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT)]
Pattern: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_PATTERN)]
Count: TypeAlias = Annotated[int, Field(ge=1)]


class Comparing(StrEnum):
    """How an argument is compared with the value that is expected of it."""

    EQUAL = "equal"  # as JSON; 1 is 1.0
    CONTAINS = "contains"  # a part of its text in any case, or one of its list
    ABOUT = "about"  # a number at most `tolerance` away
    ONE_OF = "one_of"  # one of a list of values


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentExpectation:
    """What an argument of a call has to be. A `tolerance` of 0 stands for 1 % of the value."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    name: Name
    how: Comparing = Comparing.EQUAL
    value: Any
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    turn: Count | None = None
    at_least: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineExpectation(_Expected):
    """The guideline of this uid is in force at the end of a turn, or is not (`matches`).

    One that a tool's result brings is named as `TurnRecord.lasting_uid` names it.
    """

    kind: Literal["guideline"] = "guideline"
    guideline: Name
    matches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExpectation(_Expected):
    """A call of the tool with all these arguments is made, whatever comes of it, or none is (`runs`)."""

    kind: Literal["tool"] = "tool"
    tool: Name
    runs: bool = True
    arguments: tuple[ArgumentExpectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionExpectation(_Expected):
    """The tool comes to this decision, under the guideline of this uid or, where it is empty, under any."""

    kind: Literal["decision"] = "decision"
    tool: Name
    state: DecisionState
    guideline: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderExpectation(_Expected):
    """The first calls of these tools begin in this order, across turns or within the one turn."""

    kind: Literal["order"] = "order"
    tools: Annotated[tuple[Name, ...], Field(min_length=2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyContainsExpectation(_Expected):
    """The text stands in a reply, or in none; case, white space and kinds of quotes and dashes do not count."""

    kind: Literal["reply_contains"] = "reply_contains"
    text: Text
    contains: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyMatchesExpectation(_Expected):
    """The regular expression is found in a reply, or in none."""

    kind: Literal["reply_matches"] = "reply_matches"
    pattern: Pattern
    matches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPromiseExpectation(_Expected):
    """No reply promises what `text` names ("a refund"); a model judges it."""

    kind: Literal["no_promise"] = "no_promise"
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedExpectation(_Expected):
    """The statement holds of a reply; a model judges it."""

    kind: Literal["judged"] = "judged"
    statement: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverExpectation(_Expected):
    """A turn hands the session over to a person, or none does (`expected`)."""

    kind: Literal["handed_over"] = "handed_over"
    expected: bool = True


class Measure(StrEnum):
    """What a conversation takes. Of several turns the largest counts, of tokens and cost the sum."""

    ROUND_TRIPS = "round_trips"
    SECONDS = "seconds"
    TOKENS = "tokens"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowExpectation(_Expected):
    """The measure stays below the limit; what reaches it is not below."""

    kind: Literal["below"] = "below"
    measure: Measure
    limit: Annotated[float, Field(gt=0, allow_inf_nan=False)]


JudgedByModel: TypeAlias = NoPromiseExpectation | JudgedExpectation
Checked: TypeAlias = (
    GuidelineExpectation
    | ToolExpectation
    | DecisionExpectation
    | OrderExpectation
    | ReplyContainsExpectation
    | ReplyMatchesExpectation
    | HandedOverExpectation
    | BelowExpectation
)
Expectation: TypeAlias = Checked | JudgedByModel


class Aspect(StrEnum):
    """What an expectation is about: what was decided, how it was said, or what it took."""

    DECISIONS = "decisions"
    WORDING = "wording"
    EFFORT = "effort"


def about(expectation: Expectation) -> Aspect:
    match expectation:
        case (
            GuidelineExpectation()
            | ToolExpectation()
            | DecisionExpectation()
            | OrderExpectation()
            | HandedOverExpectation()
        ):
            return Aspect.DECISIONS
        case (
            ReplyContainsExpectation()
            | ReplyMatchesExpectation()
            | NoPromiseExpectation()
            | JudgedExpectation()
        ):
            return Aspect.WORDING
        case BelowExpectation():
            return Aspect.EFFORT
        case _:
            assert_never(expectation)


def needs_model(expectation: Expectation) -> bool:
    """Is it told by `judge` (with a model), not by `check`?"""
    return isinstance(expectation, NoPromiseExpectation | JudgedExpectation)


def wants(expectation: Expectation) -> bool:
    """Has something to be found for it to hold, or to be nowhere?"""
    match expectation:
        case GuidelineExpectation(matches=wanted) | ReplyMatchesExpectation(matches=wanted):
            return wanted
        case ToolExpectation(runs=wanted) | ReplyContainsExpectation(contains=wanted):
            return wanted
        case HandedOverExpectation(expected=wanted):
            return wanted
        case DecisionExpectation() | OrderExpectation() | JudgedExpectation():
            return True
        case NoPromiseExpectation() | BelowExpectation():
            return False
        case _:
            assert_never(expectation)
