"""What was said and done in a session: the Event union, discriminated by `kind` (DESIGN.md §2)."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from engine.canonical import JsonObject
from engine.errors import ToolError


class Source(StrEnum):
    """Who said or did it."""

    CUSTOMER = "customer"
    AGENT = "agent"
    OPERATOR = "operator"
    SYSTEM = "system"


class Phase(StrEnum):
    """What a turn is busy with; screens speak it in words."""

    QUEUED = "queued"
    MATCHING = "matching"
    INFERRING = "inferring"
    RUNNING = "running"
    WRITING = "writing"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


BY_TOOL = "tool "
"""How the `model` of a message begins that a tool sent while it worked; the tool's name follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEvent:
    """A whole message. `model` names the model that wrote it, empty for people; `partial` marks a stopped one."""

    kind: Literal["message"] = "message"
    source: Source
    text: str
    model: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePartEvent:
    """The next piece of a message being written; the MessageEvent that follows replaces all pieces.

    `restart` says that the pieces before it are void (the model was asked again).
    """

    kind: Literal["message.part"] = "message.part"
    source: Source = Source.AGENT
    text: str
    restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStartedEvent:
    kind: Literal["tool.started"] = "tool.started"
    source: Source = Source.SYSTEM
    call: str
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinishedEvent:
    """A call's outcome: `data` (all that the model sees) and `metadata` (front ends only), or `error`."""

    kind: Literal["tool.finished"] = "tool.finished"
    source: Source = Source.SYSTEM
    call: str
    tool: str
    arguments: JsonObject
    data: Any = None
    metadata: JsonObject = field(default_factory=dict)
    error: ToolError | None = None
    # The result was for that reply only (lifespan "response"): it is kept in the trail, and not told here.
    withheld: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEvent:
    """Progress of the turn: `count` of guidelines, `tools` by name, a tool's own `text`, a failure's `reference`."""

    kind: Literal["status"] = "status"
    source: Source = Source.SYSTEM
    phase: Phase
    count: int = 0
    tools: tuple[str, ...] = ()
    text: str = ""
    reference: str = ""


class Answer(StrEnum):
    """What became of a call that awaited the customer's word."""

    CONFIRMED = "confirmed"
    DECLINED = "declined"
    CHANGED = "changed"  # dropped, and inferred again
    EXPIRED = "expired"  # dropped: nobody answered in time


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationAskedEvent:
    """A consequential call is ready and awaits the customer's word; it runs with exactly these `arguments`, or not.

    `call` will be the uid of its ToolCall. `guidelines` are the uids that asked for it. `labels` name the arguments
    to people.
    """

    kind: Literal["confirmation.asked"] = "confirmation.asked"
    source: Source = Source.SYSTEM
    call: str
    tool: str
    arguments: JsonObject
    guidelines: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationAnsweredEvent:
    """`because` is the judging model's reason; empty where a person pressed a button.

    `also` is what else the customer's message says or asks. Of several answers about one call the last one counts.
    """

    kind: Literal["confirmation.answered"] = "confirmation.answered"
    source: Source = Source.CUSTOMER
    call: str
    tool: str
    answer: Answer
    because: str = ""
    also: str = ""


class Mode(StrEnum):
    """Who answers the customer."""

    AUTO = "auto"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeEvent:
    """The session was handed over to a person, or back; `tool` names the tool whose result asked for it."""

    kind: Literal["mode"] = "mode"
    source: Source = Source.SYSTEM
    mode: Mode
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingEvent:
    """What the writer of the reply was told in this turn, word for word.

    Kept as an event so that later turns repeat it unchanged (prompts stay a prefix of the next) and people can read it.
    """

    kind: Literal["briefing"] = "briefing"
    source: Source = Source.SYSTEM
    guidelines: tuple[str, ...] = ()  # uids of the guidelines in force
    content: JsonObject = field(default_factory=dict)  # what engine.composing.brief put together


Event: TypeAlias = (
    MessageEvent
    | MessagePartEvent
    | ToolStartedEvent
    | ToolFinishedEvent
    | StatusEvent
    | ConfirmationAskedEvent
    | ConfirmationAnsweredEvent
    | ModeEvent
    | BriefingEvent
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """An event at its place in a session: `offset` is unique there, `turn` is the turn's number."""

    offset: int
    turn: int
    event: Event


@lru_cache(maxsize=1)
def event_adapter() -> TypeAdapter[Event]:
    """Reads and writes events as JSON objects with their `kind`."""
    return TypeAdapter(Annotated[Event, Field(discriminator="kind")])
