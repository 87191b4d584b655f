"""What the chat shows: a session's turns with their messages and calls, and in words what it is busy with."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Subquery, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.canonical import JsonObject
from studio.audit import LOST
from studio.bridge import agent_spec
from studio.costs import cost_of_turns
from studio.models import Event, GuidelineMatch, Session, ToolCall, Turn
from studio.operations.confirmations import (
    ANSWERED,
    ASKED,
    Confirmation,
    confirmations_of,
    pending_confirmations,
)
from studio.views.chat_lines import Asked, Bubble, Handover, Later, Line, Page, Spend, Status

TURNS_AT_ONCE = 30
_LOOSE_AT_ONCE = 200
ARRIVED = "tool.finished"  # outside of a turn: a result that came when the turn which asked for it was over
LOOSE = ("message", "mode", ARRIVED)  # what may stand in the chat outside of turns
_SHOWN = ("message", "message.part", "mode", ASKED, ANSWERED)


@dataclass(slots=True)
class _Parts:
    """The pieces of one turn while they are gathered."""

    messages: list[Event] = field(default_factory=list)
    modes: list[Event] = field(default_factory=list)
    pressed: list[Event] = field(default_factory=list)
    lost: list[Event] = field(default_factory=list)
    asked: list[Event] = field(default_factory=list)
    waiting: list[Confirmation] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    matched: dict[str, str] = field(default_factory=dict)


def page_of(session: Session, *, before: int | None = None) -> Page:
    """The last turns, or those before the turn `before`. A constant number of queries."""
    turns = _turns(session).order_by("-number")
    if before is not None:
        turns = turns.filter(number__lt=before)
    newest_first = list(turns[: TURNS_AT_ONCE + 1])
    more = len(newest_first) > TURNS_AT_ONCE
    shown = newest_first[:TURNS_AT_ONCE][::-1]
    loose = session.line.events.filter(turn=None, kind__in=LOOSE).order_by("-offset")
    if more:
        loose = loose.filter(offset__gte=shown[0].first_offset)
    if before is not None:
        until = session.line.turns.filter(number=before).values("first_offset")
        loose = loose.filter(offset__lt=Subquery(until))
    lines = _lines(session, shown) + [loose_line(event) for event in loose[:_LOOSE_AT_ONCE]]
    lines.sort(key=lambda line: line.offset)
    return Page(lines=tuple(lines), before=shown[0].number if more else None)


def lines_of(session: Session, numbers: Iterable[int]) -> list[Line]:
    """These turns as they are now."""
    turns = _turns(session).filter(number__in=list(numbers))
    return _lines(session, list(turns.order_by("number")))


def _turns(session: Session) -> QuerySet[Turn]:
    return session.line.turns.select_related("version").defer("version__spec", "checkpoint")


def asking_turns(session: Session, numbers: Iterable[int]) -> set[int]:
    """The turns whose calls were answered in these turns: what they show changes with that."""
    turns = session.line.turns.filter(number__in=list(numbers)).values_list("pk", flat=True)
    answers = session.line.events_in(list(turns)).filter(kind=ANSWERED)
    calls = [data["call"] for data in answers.values_list("data", flat=True)]
    if not calls:
        return set()
    asked = session.line.events.filter(kind=ASKED, data__call__in=calls, turn__isnull=False)
    return set(asked.values_list("turn__number", flat=True))


def loose_line(event: Event) -> Line:
    """An event that belongs to no turn, such as a message in manual mode."""
    at = event.offset
    if event.kind == "mode":
        return Line(offset=at, through=at, turn=None, handovers=(_handover(event),))
    if event.kind == ARRIVED:
        return Line(offset=at, through=at, turn=None, later=(_later(event),))
    return Line(offset=at, through=at, turn=None, asked=(_bubble(event, event.data),))


def _later(event: Event) -> Later:
    error = event.data.get("error") or {}
    started = event.session.line.events.filter(
        kind="tool.started", data__call=event.data["call"], turn__isnull=False
    )
    return Later(
        offset=event.offset,
        tool=event.data["tool"],
        data=event.data.get("data"),
        error=str(error.get("public", "")),
        turn=started.values_list("turn__number", flat=True).first(),
    )


def _handover(event: Event) -> Handover:
    return Handover(
        offset=event.offset, mode=event.data["mode"], tool=str(event.data.get("tool", ""))
    )


def _lines(session: Session, turns: Sequence[Turn]) -> list[Line]:
    parts = _parts(session, turns)
    return [_line(session, turn, parts[turn.pk]) for turn in turns]


def _parts(session: Session, turns: Sequence[Turn]) -> dict[int, _Parts]:
    keys = [turn.pk for turn in turns]
    parts: dict[int, _Parts] = defaultdict(_Parts)
    numbers = {turn.pk: turn for turn in turns}
    shown = session.line.events_in(keys).filter(Q(kind__in=_SHOWN) | LOST)
    for event in shown.order_by("offset"):
        event.turn = numbers[event.turn_id or 0]
        _sort_in(parts[event.turn.pk], event)
    asked = [event for turn in turns for event in parts[turn.pk].asked]
    for event, found in zip(asked, confirmations_of(session, asked), strict=True):
        parts[event.turn_id or 0].waiting.append(found)
    calls = ToolCall.objects.filter(turn__in=keys).order_by("pk")
    # What a tool returned may be long, and the chat does not show it.
    for call in calls.defer("result", "arguments"):
        parts[call.turn_id].calls.append(call)
    told = GuidelineMatch.objects.filter(turn__in=keys, state__in=["matched", "dropped"])
    for turn, guideline, state in told.order_by("pk").values_list("turn", "guideline", "state"):
        parts[turn].matched[guideline] = state
    return parts


def _sort_in(parts: _Parts, event: Event) -> None:
    match event.kind:
        case "mode":
            parts.modes.append(event)
        case "tool.finished":
            parts.lost.append(event)
        case _ if event.kind == ASKED:
            parts.asked.append(event)
        case _ if event.kind == ANSWERED:
            # Whoever said it in words has said it in the chat already.
            if event.source == "customer" and not event.data.get("because"):
                parts.pressed.append(event)
        case _:
            parts.messages.append(event)


def _line(session: Session, turn: Turn, parts: _Parts) -> Line:
    whole = [event for event in parts.messages if event.kind == "message"]
    asked = tuple(_bubble(e, e.data) for e in whole if e.source == "customer")
    answered = [_bubble(e, e.data) for e in whole if e.source != "customer"]
    if not turn.is_over:
        answered += _being_written([e for e in parts.messages if e.kind == "message.part"])
    offsets = [event.offset for event in parts.messages]
    own = {call.uid for call in parts.calls}
    return Line(
        offset=turn.first_offset,
        through=max(offsets, default=0),
        turn=turn,
        asked=asked,
        calls=tuple(parts.calls),
        answered=tuple(answered),
        matched=Counter(parts.matched.values())["matched"],
        pressed=tuple(parts.pressed),
        lost=tuple(e.data["tool"] for e in parts.lost if e.data["call"] not in own),
        waiting=tuple(_asked(session, turn, found) for found in parts.waiting),
        handovers=tuple(_handover(event) for event in parts.modes),
        changing=_changing(turn, parts.calls),
    )


def _changing(turn: Turn, calls: Sequence[ToolCall]) -> tuple[str, ...]:
    if turn.version is None or not calls:
        return ()
    tools = agent_spec(turn.version).tool_by_name
    names = dict.fromkeys(call.tool for call in calls)
    return tuple(name for name in names if name in tools and tools[name].consequential)


def _asked(session: Session, turn: Turn, found: Confirmation) -> Asked:
    tools = agent_spec(turn.version).tool_by_name if turn.version is not None else {}
    tool = tools.get(found.tool)
    return Asked(
        confirmation=found,
        about=tool.description.partition("\n")[0] if tool is not None else "",
        told=_told(found.arguments, found.labels),
        waits=found.waits(session),
    )


def _told(arguments: JsonObject, labels: dict[str, str]) -> tuple[tuple[str, Any], ...]:
    """Parameters that are hidden from customers have no label; what is left empty need not be confirmed."""
    return tuple(
        (label, arguments[name])
        for name, label in labels.items()
        if arguments.get(name) not in (None, "", [], {})
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
        return Status(
            words=_("Manual mode: a person answers until you hand back."),
            state="manual",
        )
    last = session.line.turns.order_by("-number").first()
    if last is not None and last.state == Turn.State.FAILED:
        return Status(
            words=_("Turn %(number)d failed.") % {"number": last.number},
            state="failed",
            reference=last.reference,
        )
    if last is not None and last.state == Turn.State.STOPPED:
        return Status(words=_("Stopped. Ready for the next message."), state="stopped")
    if waiting := len(pending_confirmations(session)):
        words = ngettext(
            "Ready. One call waits for confirmation.",
            "Ready. %(count)d calls wait for confirmation.",
            waiting,
        )
        return Status(words=words % {"count": waiting}, state="ready")
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
    used = session.line.turns.aggregate(
        turns=Count("pk"),
        took=answered,
        tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
    )
    took = (used["took"] or timedelta()) / timedelta(milliseconds=1)
    return Spend(
        turns=used["turns"],
        milliseconds=took,
        tokens=used["tokens"] or 0,
        cost=cost_of_turns(session.line.turns),
    )
