"""Writing what a turn yields: events, trail and checkpoint of one hand-over in one transaction."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import F
from django.utils import timezone

from engine.events import (
    Event,
    MessageEvent,
    MessagePartEvent,
    ModeEvent,
    Phase,
    Source,
    StatusEvent,
)
from engine.outbox import Emission
from engine.state import Checkpoint, Step
from studio import bridge
from studio.models import Event as EventRow
from studio.models import Session, Turn
from studio.operations.pumping import EVENTS


class TurnLostError(Exception):
    """The turn is no longer this worker's: it was taken for dead, and another claim writes now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ended: its state, the event that says so, and further changes of its row."""

    state: Turn.State
    event: StatusEvent
    changes: dict[str, Any] = field(default_factory=dict)


class Record:
    """Writes for one claim of a turn; each call belongs in a transaction of the caller's.

    Raises TurnLostError where the turn belongs to another claim by now.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._session_id = turn.session_id
        self.reached: Step | None = None  # the last step that the engine reported
        self._has_parts = turn.checkpoint.get("step") == Step.WRITING

    def write(self, items: Iterable[Emission], ending: Ending | None = None) -> None:
        """Store what was yielded and, with `ending`, that the turn is over."""
        rows = bridge.TrailRows(self._turn)
        events: list[Event] = []
        changes: dict[str, Any] = {
            "heartbeat_at": timezone.now(),
            "version": self._turn.version,
            "tool_mode": self._turn.tool_mode,
            "ran_with": self._turn.ran_with,
        }
        for item in items:
            if isinstance(item, Checkpoint):
                self.reached = item.step
                if item.step is not Step.STOPPED:  # a stopped turn can go on from where it was
                    changes["checkpoint"] = asdict(item)
            elif isinstance(item, EVENTS):
                events.append(item)
            else:
                rows.add(item)
        if ending is not None:
            events.append(ending.event)
            changes |= {"state": ending.state, "finished_at": timezone.now(), "heartbeat_at": None}
            changes |= ending.changes
        rows.save()
        self._append(events)
        self._update(changes | rows.totals())

    def _update(self, changes: dict[str, Any]) -> None:
        claimed = Turn.objects.running().filter(pk=self._turn.pk, claims=self._turn.claims)
        if claimed.update(**changes) != 1:
            raise TurnLostError(f"Turn {self._turn} was claimed by another worker.")

    def _append(self, events: list[Event]) -> None:
        if not events:
            return
        count = len(events)
        changes: dict[str, Any] = {"next_offset": F("next_offset") + count}
        if any(isinstance(event, MessageEvent) for event in events):
            # Lists are in this order: what else happens in a turn need not move the session in its index.
            changes["last_event_at"] = timezone.now()
        for event in events:
            if isinstance(event, ModeEvent):
                changes["mode"] = event.mode.value
        Session.objects.filter(pk=self._session_id).update(**changes)
        after = Session.objects.values_list("next_offset", flat=True).get(pk=self._session_id)
        EventRow.objects.bulk_create(
            bridge.event_row(self._session_id, self._turn.pk, after - count + place, event)
            for place, event in enumerate(events)
        )
        if any(isinstance(event, MessagePartEvent) for event in events):
            self._has_parts = True
        if self._has_parts and any(_ends_parts(event) for event in events):
            self._turn.events.filter(kind="message.part").delete()
            self._has_parts = False


def _ends_parts(event: Event) -> bool:
    """The whole message replaces its pieces; a failed or stopped turn has none any more either."""
    whole = isinstance(event, MessageEvent) and event.source is Source.AGENT
    over = isinstance(event, StatusEvent) and event.phase in _OVER
    return whole or over


_OVER = frozenset({Phase.FINISHED, Phase.FAILED, Phase.STOPPED, Phase.SUPERSEDED})
