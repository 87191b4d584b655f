"""A recorded conversation as one JSON document: what it consists of.

Rows of the trail stand in it column by column, as the database has them. What they rest on is stored once and named:
the agent's versions by fingerprint, the pieces of prompts by key. Nothing of it is believed that can be worked out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, NotRequired

from django.db import models
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    WrapValidator,
    with_config,
)
from typing_extensions import TypedDict

from engine import spec, trail
from engine.canonical import JsonObject
from engine.errors import ToolError
from engine.model.base import JudgingStyle
from engine.spec import Criticality, RelationKind
from engine.tools.base import Lifespan
from studio.models import (
    Adherence,
    ChoicesOffered,
    Customer,
    Event,
    GuidelineMatch,
    ModelCall,
    Session,
    ToolCall,
    ToolDecision,
    ToolInsight,
    Turn,
)
from studio.models.trail import TrailRow

FORMAT = "guideline-studio-session"
VERSION = 2
"""1: the first. 2: with what is needed to play a turn again: what it ran with, the choices that it was offered, and how
sure a bare verdict was; of sessions of version 1 that is not known.
"""

READABLE = (1, 2)

MOST_PROBLEMS = 20

TRAIL: dict[str, type[TrailRow]] = {
    "matches": GuidelineMatch,
    "decisions": ToolDecision,
    "calls": ToolCall,
    "insights": ToolInsight,
    "adherence": Adherence,
    "choices_offered": ChoicesOffered,
    "model_calls": ModelCall,
}
"""The rows of a turn by their name in the document; each model has this name as its `related_name` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """`place` is the path inside the document, such as `sessions[0].turns[3].state`."""

    place: str
    message: str


class DocumentRefusedError(Exception):
    """The document cannot be imported; `problems` says where and why, at most MOST_PROBLEMS of them."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems[:MOST_PROBLEMS]
        words = (f"{one.place}: {one.message}" if one.place else one.message for one in problems)
        super().__init__(" ".join(words))


# --- What it consists of ---------------------------------------------------------------------------------------------


def _keep(value: Any, read: Callable[[Any], Any]) -> Any:
    read(value)
    return value


def _if_kept(value: Any, read: Callable[[Any], Any]) -> Any:
    return value if value == {} else read(value)


_as_given = WrapValidator(_keep)  # checked to be readable as that, and left as it stands


class _TransientGuideline(TypedDict):
    condition: str
    action: str
    criticality: Criticality


class _Control(TypedDict, total=False):
    mode: Literal["auto", "manual"] | None
    lifespan: Lifespan


class _Result(TypedDict):
    """A ToolResult as JSON."""

    data: Any
    metadata: JsonObject
    control: NotRequired[_Control]
    canned_responses: NotRequired[list[str]]
    canned_response_fields: NotRequired[JsonObject]
    guidelines: NotRequired[list[_TransientGuideline]]


@with_config(ConfigDict(extra="forbid"))
class _RanWith(TypedDict):
    """studio.operations.recordings.RanWith, without the name of the connection: it is this studio's own business."""

    format: Literal[1]
    variables: JsonObject
    customer: str
    judging: str
    writing: str
    batch_size: Annotated[int, Field(ge=1)]
    judging_style: JudgingStyle
    redacted: NotRequired[bool]  # what was asked and answered is not there word for word


# What a column holds, where its type says too little.
_EXACT: dict[tuple[type[models.Model], str], Any] = {
    (Turn, "state"): Literal["FINISHED", "FAILED", "STOPPED", "SUPERSEDED"],
    (Turn, "reply_source"): trail.ReplySource | None,
    (Turn, "ran_with"): Annotated[_RanWith, WrapValidator(_if_kept)],
    (GuidelineMatch, "state"): trail.MatchState,
    (GuidelineMatch, "relation"): RelationKind | Literal[""],
    (ToolDecision, "state"): trail.DecisionState,
    (ToolDecision, "arguments"): list[trail.Argument],
    (ToolDecision, "missing"): list[str],
    (ToolDecision, "invalid"): list[str],
    (ToolCall, "state"): trail.CallState,
    (ToolCall, "guidelines"): list[str],
    (ToolCall, "result"): _Result | None,
    (ToolCall, "error"): ToolError | None,
    (ToolInsight, "kind"): trail.InsightKind,
    (ChoicesOffered, "choices"): dict[str, list[Any]],
    (ModelCall, "messages"): list[tuple[str, list[str]]],
}
_SINCE_2 = {(Turn, "ran_with")}
_NOT_TOLD: dict[type[models.Model], frozenset[str]] = {
    # Of what a worker needs to go on with a turn; an imported one never goes on.
    Turn: frozenset({"session", "version", "checkpoint", "claims", "heartbeat_at", "enqueued_at"}),
    Event: frozenset({"session", "turn"}),
    ToolCall: frozenset({"turn", "arguments_key"}),  # worked out of the arguments
    # Who opened it and what it is connected to is this studio's own business.
    Session: frozenset(
        {
            *("agent", "version", "customer", "connection", "created_by", "root", "ancestry"),
            *("imported_from", "tool_mode", "purpose"),
        }
    ),
    Customer: frozenset({"created_at"}),
}


def columns(model: type[models.Model]) -> list[Any]:
    """The fields of a model that stand in the document."""
    left_out = _NOT_TOLD.get(model, frozenset({"turn"}))
    return [
        field
        for field in model._meta.concrete_fields
        if not field.primary_key and field.name not in left_out
    ]


def _kind(model: type[models.Model], field: Any) -> Any:
    exact = _EXACT.get((model, field.name))
    if exact is not None:
        return Annotated[exact, _as_given]
    kind: Any
    match field:
        case models.DateTimeField():
            kind = AwareDatetime
        case models.BooleanField():
            kind = bool
        case models.PositiveSmallIntegerField():
            kind = Annotated[int, Field(ge=0, le=2**15 - 1)]
        case models.PositiveIntegerField():
            kind = Annotated[int, Field(ge=0, le=2**31 - 1)]
        case models.FloatField():
            kind = Annotated[float, Field(allow_inf_nan=False)]
        case models.JSONField():
            kind = {list: list[Any], dict: JsonObject}.get(field.default, Any)
        case models.CharField() if field.choices:
            blank = ("",) if field.blank else ()
            kind = Literal[tuple(str(value) for value, _label in field.choices) + blank]
        case models.CharField():
            kind = Annotated[str, Field(max_length=field.max_length)]
        case _:
            kind = str  # a text, or the key of a prompt's piece
    return kind | None if field.null else kind


def _shape(model: type[models.Model], **more: Any) -> Any:
    """A TypedDict of the model's columns; those that older studios may not have had may be left out."""
    fields = {}
    for field in columns(model):
        kind = _kind(model, field)
        fields[field.name] = NotRequired[kind] if _may_be_left_out(model, field) else kind
    make: Any = TypedDict
    made = make(f"{model.__name__}Shape", fields | more)
    made.__pydantic_config__ = ConfigDict(extra="forbid", strict=False)
    return made


def _list_of(shape: Any) -> Any:
    return list[shape]


def _may_be_left_out(model: type[models.Model], field: Any) -> bool:
    if field.null or (model, field.name) in _SINCE_2:
        return True
    told = isinstance(field, models.DateTimeField) or field.name.startswith("next_")
    return not told and (model, field.name) not in _EXACT and (field.has_default() or field.blank)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentPart(_Part):
    slug: str = Field(pattern=r"^[-a-zA-Z0-9_]+$", max_length=60)
    name: str = Field(min_length=1, max_length=120)


class VersionPart(_Part):
    """`fingerprint` is the version's name within the document; `spec` is engine.spec.Agent as JSON."""

    fingerprint: str
    number: int | None = Field(None, ge=1, le=2**31 - 1)
    spec: Annotated[spec.Agent, _as_given]


class Document(_Part):
    """`sessions` begins with the one that its branches go on from; `parts` are pieces of prompts by key."""

    format: Literal["guideline-studio-session"]
    version: int
    exported_at: AwareDatetime
    exported_by: str = Field(max_length=150)
    studio: str = Field(max_length=80)
    redacted: dict[str, int] = Field(default_factory=dict)
    session: int  # the id, within the document, of the one that was asked for
    agent: AgentPart
    versions: list[VersionPart]
    customer: Any = None
    parts: dict[str, str] = Field(default_factory=dict)
    sessions: list[Any] = Field(min_length=1)


@lru_cache(maxsize=1)
def document_adapter() -> TypeAdapter[Document]:
    """With the columns of the rows, which are known once the models are loaded."""
    rows: dict[str, Any] = {
        name: NotRequired[_list_of(_shape(model))] for name, model in TRAIL.items()
    }
    turn = _shape(Turn, version=str | None, **rows)
    event = _shape(Event, turn=int | None)
    session = _shape(
        Session,
        id=int,
        version=str | None,
        ancestry=list[tuple[int, int, int]],
        turns=_list_of(turn),
        events=_list_of(event),
    )
    whole = type(
        "WholeDocument",
        (Document,),
        {
            "__annotations__": {
                "customer": _shape(Customer) | None,
                "sessions": Annotated[_list_of(session), Field(min_length=1)],
            }
        },
    )
    return TypeAdapter(whole)
