"""What the engine knows in a turn: as the turn begins, and as a recorded turn was at a moment of it."""

from datetime import datetime

from django.db.models import Q

from engine import spec, trail
from engine.canonical import JsonObject
from engine.events import RecordedEvent
from engine.kit import Models
from engine.prompts.transcript import WINDOW_TURNS
from engine.state import Checkpoint, Step, TurnState
from studio import bridge
from studio.models import Event, Session, Turn
from studio.models.session import EventQuerySet

REMEMBERED_KINDS = (
    "message",
    "tool.started",
    "tool.finished",
    "confirmation.asked",
    "confirmation.answered",
    "mode",
    "briefing",
)


def beginning(turn: Turn) -> TurnState:
    """What the engine knows as it takes the turn up; the turn has its version."""
    return _state(turn, turn.session.line.events)


def ran_with(session: Session, models: Models, variables: JsonObject) -> JsonObject:
    """What a turn runs with besides its version, for its row (studio.operations.recordings.RanWith)."""
    return {
        "format": 1,
        "variables": variables,
        "customer": session.customer.uid if session.customer else "",
        "judging": models.judging.name,
        "writing": models.writing.name,
        "batch_size": models.judging.batch_size,
        "judging_style": models.judging.judging_style.value,
        "connection": session.connection.name if session.connection else "",
    }


def situation_at(turn: Turn, moment: datetime, *, iteration: int = 1) -> TurnState:
    """What a judgement of a recorded turn rested on that began at this moment: nothing that the turn did since.

    The guidelines that results of this turn brought by then belong to the agent.
    """
    recorded = bridge.read_trail(turn)
    whole = _state(turn, _until_the_end(turn))
    whole.recall(recorded)
    then = _state(turn, Event.objects.none())
    then.history = whole.history_at(moment)
    then.recall(entry for entry in recorded if _was_there(entry, moment))
    then.checkpoint = Checkpoint(step=Step.MATCHING, iteration=iteration)
    return then


def last_judgement(turn: Turn, uid: str) -> trail.GuidelineMatch | None:
    """The last time that a model judged this guideline in the turn, as it was judged; else what is first on record.

    What relationships made of it, and the reason asked for afterwards, are entries of their own, with its `model_call`.
    """
    entries = [
        entry
        for entry in bridge.read_trail(turn)
        if isinstance(entry, trail.GuidelineMatch) and entry.guideline == uid
    ]
    asked = [entry.model_call for entry in entries if entry.model_call]
    wanted = asked[-1] if asked else ""
    return next((entry for entry in entries if entry.model_call == wanted), None)


def guideline_in(turn: Turn, uid: str) -> spec.Guideline | None:
    """The guideline as it was in force in the turn's version, or as a result brought it; None where it was unknown."""
    if turn.version is None:
        return None
    found = bridge.agent_spec(turn.version).guideline_by_uid.get(uid)
    if found is not None:
        return found
    state = _state(turn, Event.objects.none())
    state.recall(bridge.read_call(row) for row in turn.calls.order_by("pk"))
    return state.agent.guideline_by_uid.get(uid)


def _state(turn: Turn, events: EventQuerySet) -> TurnState:
    if turn.version is None:
        raise ValueError(f"Turn {turn} has no version yet: it has not begun.")
    customer = turn.session.customer
    kept = turn.ran_with.get("variables")
    variables = kept if kept is not None else (customer.variables if customer else {})
    return TurnState(
        agent=bridge.agent_spec(turn.version),
        turn=turn.number,
        history=_remembered(turn, events),
        variables=dict(variables),
    )


def _remembered(turn: Turn, events: EventQuerySet) -> tuple[RecordedEvent, ...]:
    """Of these events the window of turns that prompts show."""
    oldest = turn.number - WINDOW_TURNS
    first = (
        turn.session.line.turns.filter(number=oldest).values_list("first_offset", flat=True).first()
        if oldest > 0
        else None
    )
    rows = (
        events.filter(kind__in=REMEMBERED_KINDS, offset__gte=first or 0)
        .order_by("offset")
        .values_list("offset", "turn__number", "kind", "source", "data")
    )
    return bridge.recorded_events(rows)


def _until_the_end(turn: Turn) -> EventQuerySet:
    """Its own events and earlier ones; what belongs to no turn if it was there as the turn began."""
    begun = turn.started_at or turn.created_at
    loose = Q(turn__isnull=True) & (Q(offset__lt=turn.first_offset) | Q(created_at__lte=begun))
    return turn.session.line.events.filter(Q(turn__number__lte=turn.number) | loose)


def _was_there(entry: trail.TrailEntry, moment: datetime) -> bool:
    match entry:
        case trail.ToolCall() | trail.GuidelineMatch() | trail.ToolDecision():
            return entry.ended_at is not None and entry.ended_at <= moment
        case _:  # what no judgement rests on
            return False
