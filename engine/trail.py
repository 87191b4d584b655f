"""What was decided in a turn and why: the entries of the Trail (DESIGN.md §2).

Times are aware UTC datetimes. `iteration` counts the rounds of the loop from 1; 0 is the step before them, in which
calls that awaited the customer's word are confirmed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from engine.canonical import JsonObject
from engine.errors import ToolError
from engine.spec import Composition, RelationKind

LONGEST_REASON = 300
"""Characters of a model's reason that are kept; it was asked for one short sentence."""


class MatchState(StrEnum):
    MATCHED = "matched"
    NOT_MATCHED = "not_matched"
    NOT_EVALUATED = "not_evaluated"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineMatch:
    """Did this guideline apply, and why; `model_call` is the uid of the ModelCall that judged it, or empty.

    Where a relationship changed what was judged, `relation` says which kind and `dropped_by` or `added_by` names the
    guideline on its other side. `score` is the probability of a bare verdict (0 to 1); `explained_afterwards` says
    that the reason was asked for after such a verdict.
    """

    guideline: str
    state: MatchState
    because: str
    iteration: int
    started_at: datetime
    ended_at: datetime
    dropped_by: str = ""
    added_by: str = ""
    relation: RelationKind | None = None
    score: float | None = None
    explained_afterwards: bool = False
    model_call: str = ""

    @property
    def judged_to_apply(self) -> bool:
        """Whether it applies by its own judgement, whatever relationships made of it since."""
        return self.state in {MatchState.MATCHED, MatchState.DROPPED} and not self.added_by


class DecisionState(StrEnum):
    """ENGINE.md §2."""

    NEEDS_TO_RUN = "NEEDS_TO_RUN"
    DATA_ALREADY_IN_CONTEXT = "DATA_ALREADY_IN_CONTEXT"
    CANNOT_RUN = "CANNOT_RUN"
    NOT_NEEDED = "NOT_NEEDED"
    AWAITING_CONFIRMATION = "AWAITING_CONFIRMATION"


class ArgumentSource(StrEnum):
    """Where an argument's value came from (ENGINE.md §3)."""

    CUSTOMER = "customer"  # words in a customer message
    RESULT = "tool_result"  # a path in a tool result
    VARIABLE = "variable"  # a customer variable
    DEFAULT = "default"
    GUIDELINE = "guideline"  # words of a guideline
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument with its provenance.

    `evidence` is the words, result path or variable it rests on; `verified` says that the engine found it there;
    `offset` is the event it was found in (None where the source is no event).
    """

    name: str
    value: Any
    source: ArgumentSource
    evidence: str = ""
    verified: bool = False
    offset: int | None = None


class InsightKind(StrEnum):
    MISSING = "missing"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInsight:
    """Why a tool could not run, for one parameter, as the composer is told (MissingData, InvalidData)."""

    tool: str
    parameter: str
    kind: InsightKind
    label: str
    iteration: int
    reason: str = ""
    description: str = ""
    significance: str = ""
    examples: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()
    value: Any = None
    hidden: bool = False
    precedence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecision:
    """For one tool under one guideline.

    `call` is the uid of the ToolCall it led to, or of the one that made it needless; with AWAITING_CONFIRMATION, of
    the one that it will be.
    """

    guideline: str
    tool: str
    state: DecisionState
    because: str
    iteration: int
    started_at: datetime
    ended_at: datetime
    arguments: tuple[Argument, ...] = ()
    missing: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    call: str = ""
    model_call: str = ""


class CallState(StrEnum):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"  # consequential, started, and nobody saw it end
    CANCELLED = "cancelled"


class Served(StrEnum):
    """Where a call's outcome came from."""

    LIVE = "live"  # the tool ran
    RECORDED = "recorded"  # the outcome of an earlier call, once more
    MOCK = "mock"  # written by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call from its start; a later entry of the same `uid` replaces it. `result` is the ToolResult as JSON.

    Where it is `served` RECORDED, `served_from` names the call whose outcome it has, as who keeps the records names it.
    """

    uid: str
    tool: str
    arguments: JsonObject
    state: CallState
    iteration: int
    guidelines: tuple[str, ...]
    started_at: datetime
    ended_at: datetime | None = None
    result: JsonObject | None = None
    error: ToolError | None = None
    log: str = ""  # what it printed beside its result, for developers
    served: Served = Served.LIVE
    served_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt. `parts` concatenated are its content; parts recur between calls and are stored once."""

    role: str
    parts: tuple[str, ...]

    @property
    def content(self) -> str:
        return "".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a language model: an attempt, with what was asked and what came back.

    `used` is False for an answer that nothing rests on (a call inferred beside matching whose guideline did not match).
    """

    uid: str
    question: str
    model: str
    prompt_version: str
    request_key: str
    messages: tuple[Message, ...]
    schema: JsonObject
    iteration: int
    attempt: int
    started_at: datetime
    ended_at: datetime
    subject: str = ""  # what it is about, for people: a tool's name, "G1–G12"
    answer_text: str = ""
    error: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    first_token_at: datetime | None = None
    used: bool = True
    settings: JsonObject = field(default_factory=dict)
    probability: float | None = None  # that a bare verdict is "true", where the server told


@dataclass(frozen=True, slots=True, kw_only=True)
class Adherence:
    """Does the reply follow this guideline: by the writing model's own report or, where `checked`, by JudgeReply.

    `attempt` counts the versions of the reply from 1; one that did not follow was revised.
    """

    guideline: str
    follows: bool
    note: str = ""
    checked: bool = False
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySource:
    """How the reply came about: the composition mode that won, and the canned responses that it rests on.

    `responses` are the uids of those chosen (strict) or shown as style (composited); those that tools gave are named
    `call:number`. `fits` is False where none fitted and the agent's no-match text was said.
    """

    composition: Composition
    responses: tuple[str, ...] = ()
    because: str = ""
    fits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesOffered:
    """What a tool's service named as the choices of its parameters in this turn, or `because`: why it could not."""

    tool: str
    iteration: int
    started_at: datetime
    ended_at: datetime
    choices: dict[str, list[Any]] = field(default_factory=dict)
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """The turn stopped preparing with work left: a limit of TurnState.Limits by name."""

    limit: str
    detail: str


TrailEntry: TypeAlias = (
    GuidelineMatch
    | ToolDecision
    | ToolCall
    | ToolInsight
    | ModelCall
    | Adherence
    | ReplySource
    | ChoicesOffered
    | LimitReached
)
