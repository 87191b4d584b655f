"""What the chat shows, as values: lines with their messages, calls and requests, and what the session is busy with."""

from dataclasses import dataclass
from typing import Any

from engine.canonical import JsonObject
from studio.models import Event, Session, ToolCall, Turn
from studio.operations.confirmations import Confirmation

_LONG = 6_000  # characters of a message, past which it is folded
_SHOWN_OF_LONG = 600
_OFFLINE_MODEL = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """A message as it is shown. `writing` marks one of which only the first pieces are there."""

    offset: int
    source: str
    text: str
    model: str = ""
    partial: bool = False
    writing: bool = False

    @property
    def offline(self) -> bool:
        return self.model.startswith(_OFFLINE_MODEL)

    @property
    def beginning(self) -> str:
        """What is shown of a very long message until it is unfolded; empty where it is shown as it is."""
        return self.text[:_SHOWN_OF_LONG].rstrip() + "…" if len(self.text) > _LONG else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that awaits the customer's word, or did, as the chat shows it: in words, with what a customer is told."""

    confirmation: Confirmation
    about: str  # what the tool does, in its own first line
    told: tuple[tuple[str, Any], ...]  # (label, value)
    waits: bool

    @property
    def outcome(self) -> str:
        """What became of it; one that nobody answered in time is expired, although nobody has said so yet."""
        answer = self.confirmation.answer
        return answer.value if answer is not None else "" if self.waits else "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """From the agent to a person ("manual") or back; `tool` names the tool whose result asked for it."""

    offset: int
    mode: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """What a tool brought after the turn that started it was over; `turn` is that turn, None where it is not known."""

    offset: int
    tool: str
    data: Any
    error: str
    turn: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One item of the chat: a turn with all of its messages, or an event outside of turns (`turn` is None)."""

    offset: int  # of its first event: its place in the chat
    through: int  # the last event that it shows; later pieces go on from there
    turn: Turn | None
    asked: tuple[Bubble, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    answered: tuple[Bubble, ...] = ()
    matched: int = 0
    pressed: tuple[Event, ...] = ()  # the customer's word to calls, by button
    lost: tuple[str, ...] = ()  # tools whose calls of earlier turns nobody saw end
    waiting: tuple[Asked, ...] = ()  # what this turn asked the customer to confirm
    handovers: tuple[Handover, ...] = ()
    later: tuple[Later, ...] = ()
    changing: tuple[str, ...] = ()  # tools that ran and that change something

    @property
    def opening(self) -> tuple[Handover, ...]:
        """A hand-back that asked for this turn stands before all else in it."""
        return tuple(one for one in self.handovers if one.mode == Session.Mode.AUTO)

    @property
    def closing(self) -> tuple[Handover, ...]:
        return tuple(one for one in self.handovers if one.mode != Session.Mode.AUTO)

    @property
    def shows_waiting(self) -> bool:
        """Buttons come with the reply that asks; before that, nobody has read what to confirm."""
        return self.turn is not None and (self.turn.is_over or bool(self.answered))

    @property
    def ran(self) -> int:
        return sum(call.state == "done" for call in self.calls)

    @property
    def failed_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if call.state in {"failed", "unknown"})

    @property
    def offline(self) -> bool:
        return any(bubble.offline for bubble in self.answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of a conversation, oldest first; `before` is the turn from which the next older stretch is reached."""

    lines: tuple[Line, ...]
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the session is busy with; `turn` is the turn that can be stopped."""

    words: str
    state: str  # ready, busy, failed, stopped, manual
    turn: Turn | None = None
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a session has used up to now, along its line."""

    turns: int
    milliseconds: float
    tokens: int
    cost: JsonObject  # of studio.costs
