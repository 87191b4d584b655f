"""What the chat shows: a session's turns with their messages and calls, and in words what it is busy with."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Q, Subquery, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from studio.models import Event, GuidelineMatch, Session, ToolCall, Turn

TURNS_AT_ONCE = 50
_LOOSE_AT_ONCE = 200
_SHOWN = ("message", "message.part")
OFFLINE_MODEL = "offline"


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
        return self.model.startswith(OFFLINE_MODEL)


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
    """What a session has used up to now."""

    turns: int
    milliseconds: float
    tokens: int


@dataclass(slots=True)
class _Parts:
    """The pieces of one turn while they are gathered."""

    messages: list[Event] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    matched: dict[str, str] = field(default_factory=dict)


def page_of(session: Session, *, before: int | None = None) -> Page:
    """The last turns, or those before the turn `before`. A constant number of queries."""
    turns = session.turns.order_by("-number")
    if before is not None:
        turns = turns.filter(number__lt=before)
    newest_first = list(turns[: TURNS_AT_ONCE + 1])
    more = len(newest_first) > TURNS_AT_ONCE
    shown = newest_first[:TURNS_AT_ONCE][::-1]
    loose = session.events.filter(turn=None, kind="message").order_by("-offset")
    if more:
        loose = loose.filter(offset__gte=shown[0].first_offset)
    if before is not None:
        until = session.turns.filter(number=before).values("first_offset")
        loose = loose.filter(offset__lt=Subquery(until))
    lines = _lines(session, shown) + [loose_line(event) for event in loose[:_LOOSE_AT_ONCE]]
    lines.sort(key=lambda line: line.offset)
    return Page(lines=tuple(lines), before=shown[0].number if more else None)


def lines_of(session: Session, numbers: Iterable[int]) -> list[Line]:
    """These turns as they are now."""
    turns = session.turns.filter(number__in=list(numbers))
    return _lines(session, list(turns.order_by("number")))


def loose_line(event: Event) -> Line:
    """An event that belongs to no turn, such as a message in manual mode."""
    return Line(
        offset=event.offset, through=event.offset, turn=None, asked=(_bubble(event, event.data),)
    )


def _lines(session: Session, turns: Sequence[Turn]) -> list[Line]:
    parts = _parts(session, turns)
    return [_line(turn, parts[turn.pk]) for turn in turns]


def _parts(session: Session, turns: Sequence[Turn]) -> dict[int, _Parts]:
    keys = [turn.pk for turn in turns]
    parts: dict[int, _Parts] = defaultdict(_Parts)
    for event in session.events.filter(turn__in=keys, kind__in=_SHOWN).order_by("offset"):
        parts[event.turn_id or 0].messages.append(event)
    calls = ToolCall.objects.filter(turn__in=keys).order_by("pk")
    # What a tool returned may be long, and the chat does not show it.
    for call in calls.defer("result", "arguments"):
        parts[call.turn_id].calls.append(call)
    told = GuidelineMatch.objects.filter(turn__in=keys, state__in=["matched", "dropped"])
    for turn, guideline, state in told.order_by("pk").values_list("turn", "guideline", "state"):
        parts[turn].matched[guideline] = state
    return parts


def _line(turn: Turn, parts: _Parts) -> Line:
    whole = [event for event in parts.messages if event.kind == "message"]
    asked = tuple(_bubble(e, e.data) for e in whole if e.source == "customer")
    answered = [_bubble(e, e.data) for e in whole if e.source != "customer"]
    if not turn.is_over:
        answered += _being_written([e for e in parts.messages if e.kind == "message.part"])
    offsets = [event.offset for event in parts.messages]
    return Line(
        offset=turn.first_offset,
        through=max(offsets, default=0),
        turn=turn,
        asked=asked,
        calls=tuple(parts.calls),
        answered=tuple(answered),
        matched=Counter(parts.matched.values())["matched"],
    )


def _bubble(event: Event, data: dict[str, Any]) -> Bubble:
    return Bubble(
        offset=event.offset,
        source=event.source,
        text=str(data.get("text", "")),
        model=str(data.get("model", "")),
        partial=bool(data.get("partial")),
    )


def _being_written(pieces: Sequence[Event]) -> list[Bubble]:
    text = ""
    for piece in pieces:
        # A model that was asked again begins anew.
        text = ("" if piece.data.get("restart") else text) + str(piece.data.get("text", ""))
    if not pieces:
        return []
    return [Bubble(offset=pieces[0].offset, source="agent", text=text, writing=True)]


def status_of(session: Session) -> Status:
    """What the session is busy with now, in words."""
    # A running turn before the queued ones: the names happen to sort that way.
    turn = session.turns.unfinished().order_by("-state", "number").first()
    if turn is not None:
        said = turn.events.filter(kind="status").order_by("-offset").first()
        return Status(words=busy_words(said.data if said else {}), state="busy", turn=turn)
    if session.mode == Session.Mode.MANUAL:
        return Status(words=_("Manual mode: the agent does not answer by itself."), state="manual")
    last = session.turns.order_by("-number").first()
    if last is not None and last.state == Turn.State.FAILED:
        return Status(
            words=_("Turn %(number)d failed.") % {"number": last.number},
            state="failed",
            reference=last.reference,
        )
    if last is not None and last.state == Turn.State.STOPPED:
        return Status(words=_("Stopped. Ready for the next message."), state="stopped")
    return Status(words=_("Ready."), state="ready")


def busy_words(data: dict[str, Any]) -> str:
    """The data of a status event as a phrase: "Matching 42 guidelines…"."""
    if data.get("text"):
        return str(data["text"])  # in the tool's own words
    count = int(data.get("count") or 0)
    tools = ", ".join(str(name) for name in data.get("tools") or ())
    match data.get("phase"):
        case "matching":
            if not count:
                return _("Matching guidelines…")
            words = ngettext(
                "Matching %(count)d guideline…", "Matching %(count)d guidelines…", count
            )
            return words % {"count": count}
        case "inferring":
            return _("Considering %(tools)s…") % {"tools": tools} if tools else _("Considering…")
        case "running":
            return _("Running %(tools)s…") % {"tools": tools} if tools else _("Running tools…")
        case "writing":
            return _("Writing…")
        case _:
            return _("Waiting for a worker…")


def spend_of(session: Session) -> Spend:
    answered = Sum(F("finished_at") - F("created_at"), filter=Q(finished_at__isnull=False))
    used = session.turns.aggregate(
        turns=Count("pk"),
        took=answered,
        tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
    )
    took = (used["took"] or timedelta()) / timedelta(milliseconds=1)
    return Spend(turns=used["turns"], milliseconds=took, tokens=used["tokens"] or 0)
