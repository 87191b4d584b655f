"""Event rows ↔ engine.events."""

from collections.abc import Iterable

from engine.canonical import JsonObject
from engine.events import Event as EngineEvent
from engine.events import RecordedEvent, event_adapter
from studio.models import Event


def event_row(session_id: int, turn_id: int | None, offset: int, event: EngineEvent) -> Event:
    """An unsaved row."""
    data: JsonObject = event_adapter().dump_python(event, mode="json")
    kind, source = data.pop("kind"), data.pop("source")
    return Event(
        session_id=session_id, turn_id=turn_id, offset=offset, kind=kind, source=source, data=data
    )


def read_event(row: Event) -> EngineEvent:
    return event_adapter().validate_python({"kind": row.kind, "source": row.source, **row.data})


def recorded_events(
    rows: Iterable[tuple[int, int | None, str, str, JsonObject]],
) -> tuple[RecordedEvent, ...]:
    """From (offset, turn number, kind, source, data) in order; what belongs to no turn counts to the one before."""
    found = []
    number = 0
    for offset, turn, kind, source, data in rows:
        number = turn or number
        event = event_adapter().validate_python({"kind": kind, "source": source, **data})
        found.append(RecordedEvent(offset=offset, turn=number, event=event))
    return tuple(found)
