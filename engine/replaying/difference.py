"""One thing that differs between two runs of a turn, as it is kept and shown."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from engine.canonical import JsonObject


class DifferenceKind(StrEnum):
    """In the order in which differences are listed."""

    CONFIRMATION = "confirmation"  # what the customer's word was taken for
    GUIDELINE = "guideline"
    DECISION = "decision"
    ARGUMENT = "argument"
    RESULT = "result"
    HANDED_OVER = "handed_over"
    LIMIT = "limit"
    FAILURE = "failure"
    RESPONSE = "response"
    ADHERENCE = "adherence"
    REPLY = "reply"


_WORDING = frozenset({DifferenceKind.RESPONSE, DifferenceKind.ADHERENCE, DifferenceKind.REPLY})


def is_decision(kind: DifferenceKind) -> bool:
    """Is it about what was decided and done, not about how it was put into words?"""
    return kind not in _WORDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`before` and `after` are JSON, null where that run has nothing of the kind:

    - confirmation: {"answer"}
    - guideline: {"state", "dropped_by", "added_by", "relation"}; the state is a MatchState or "absent"
    - decision: {"state", "missing", "invalid"}
    - argument: {"value", "source", "evidence", "verified"}
    - result: {"state", "data"} and what else it brought but for metadata, or {"state", "error", "public"}
    - handed_over: true or false; limit: its name; failure: the error; reply: the text
    - response: {"composition", "responses", "fits"}
    - adherence: {"follows"}

    Guidelines are named by lasting uid (TurnRecord.lasting_uid). `arguments` tell several calls of one tool apart:
    those that both runs call it with, or those of the only run that does. `iteration` is the first one in which a run
    has it, 0 where that is not told. The reasons are those on record, for display only.
    """

    kind: DifferenceKind
    guideline: str = ""
    tool: str = ""
    parameter: str = ""
    arguments: JsonObject = field(default_factory=dict)
    iteration: int = 0
    before: Any
    after: Any
    before_because: str = ""
    after_because: str = ""

    def to_json(self) -> JsonObject:
        """A JSON object that `read` reads back to an equal value."""
        value: JsonObject = difference_adapter().dump_python(self, mode="json")
        return value

    @staticmethod
    def read(value: JsonObject) -> "Difference":
        """Raises pydantic.ValidationError when `value` was not made by `to_json`."""
        return difference_adapter().validate_python(value)


@lru_cache(maxsize=1)
def difference_adapter() -> TypeAdapter[Difference]:
    return TypeAdapter(Difference)
