"""Conversations that the studio has with an agent by itself: replayed turns, scenarios, the demo's first sessions.

The engine plays a turn in memory, on the one loop of the process; a turn that is kept becomes rows like any other, all
in one transaction, in a session whose `purpose` keeps it out of the lists and figures of chats.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.utils import timezone

from engine.canonical import JsonObject
from engine.events import (
    ConfirmationAnsweredEvent,
    Event,
    MessageEvent,
    Mode,
    ModeEvent,
    Phase,
    RecordedEvent,
    StatusEvent,
)
from engine.kit import Kit, Models
from engine.playing import Played, play_turn
from engine.spec import Agent
from engine.state import Checkpoint, TurnState
from engine.tools.base import ToolContext, ToolService
from engine.tools.standing_in import StandIn
from engine.tools.views import AgentView, CustomerView
from engine.trail import ChoicesOffered, TrailEntry
from studio import bridge
from studio.models import Agent as AgentRow
from studio.models import AgentVersion, Customer, ModelConnection, Session, Turn
from studio.models import Event as EventRow
from studio.operations.pumping import EVENTS, engine_loop
from studio.operations.situations import REMEMBERED_KINDS
from studio.toolbox import plugin_data

NOTED_EVERY = 0.25  # seconds

Result = TypeVar("Result")


class NoLongerWantedError(Exception):
    """What was played was stopped in the middle."""


def wait_for(work: Coroutine[Any, Any, Result], wanted: Callable[[], bool]) -> Result:
    """Run it on the engine's loop; asked four times a second whether it is still wanted.

    Raises NoLongerWantedError, and what the work raises.
    """
    running = asyncio.run_coroutine_threadsafe(work, engine_loop())
    try:
        while not wait([running], timeout=NOTED_EVERY).done:
            if not wanted():
                raise NoLongerWantedError
        return running.result()
    finally:
        running.cancel()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Everything that a turn is played with but what was said: the same for all turns of a conversation, or not."""

    agent: Agent
    models: Models
    tools: ToolService
    variables: JsonObject = field(default_factory=dict)
    customer: CustomerView | None = None
    place: str = ""  # what tools are told of where they are: the session
    stand_in: StandIn | None = None
    now: Callable[[], datetime] = timezone.now
    choices: Mapping[str, ChoicesOffered] = field(default_factory=dict)

    def set(self, number: int, history: tuple[RecordedEvent, ...]) -> tuple[TurnState, Kit]:
        """State and kit of the turn `number`; `history` ends with what the customer said to begin it."""
        state = TurnState(
            agent=self.agent, turn=number, history=history, variables=dict(self.variables)
        )
        context = ToolContext(
            agent_id=self.agent.slug,
            session_id=self.place,
            turn_id=f"{self.place}/{number}",
            customer_id=self.customer.id if self.customer else "",
            variables=state.variables,
            plugin_data=plugin_data(),
            agent=AgentView(self.agent),
            customer=self.customer,
        )
        kit = Kit(
            models=self.models,
            tools=self.tools,
            context=context,
            stand_in=self.stand_in,
            now=self.now,
            choices_on_record=self.choices,
        )
        return state, kit

    async def play(self, number: int, history: tuple[RecordedEvent, ...]) -> Played:
        return await play_turn(*self.set(number, history))


def remembered(events: Iterable[Event], turn: int, *, after: int) -> tuple[RecordedEvent, ...]:
    """What later turns know of these events; offsets count on from `after`."""
    kept = [event for event in events if event.kind in REMEMBERED_KINDS]
    return tuple(
        RecordedEvent(offset=after + place, turn=turn, event=event)
        for place, event in enumerate(kept, start=1)
    )


Said = MessageEvent | ConfirmationAnsweredEvent


def open_rehearsal(
    agent: AgentRow,
    version: AgentVersion,
    purpose: "Session.Purpose",
    *,
    title: str = "",
    customer: Customer | None = None,
    connection: ModelConnection | None = None,
    tool_mode: "Session.ToolMode" = Session.ToolMode.RECORDED,
) -> Session:
    """An empty session that `keep_turn` fills; it runs on a published version, or as the draft goes on."""
    published = version.number is not None
    return Session.objects.create(
        agent=agent,
        follows=Session.Follows.VERSION if published else Session.Follows.DRAFT,
        version=version if published else None,
        purpose=purpose,
        title=title[:200],
        customer=customer,
        connection=connection,
        tool_mode=tool_mode,
    )


def keep_turn(
    session: Session,
    version: AgentVersion,
    said: Sequence[Event],
    played: Played,
    *,
    tool_mode: str,
    ran_with: JsonObject,
) -> Turn:
    """Store a turn that was played, after those that the session has; its counters are brought up to date."""
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        turn = _turn_row(locked, version, played, tool_mode=tool_mode, ran_with=ran_with)
        turn.save()
        trail = bridge.TrailRows(turn)
        for entry in played.emissions:
            if isinstance(entry, TrailEntry):
                trail.add(entry)
        trail.save()
        Turn.objects.filter(pk=turn.pk).update(created_at=played.started_at, **trail.totals())
        events = [*said, *(e for e in played.emissions if isinstance(e, EVENTS)), _over(played)]
        EventRow.objects.bulk_create(
            bridge.event_row(locked.pk, turn.pk, locked.next_offset + place, event)
            for place, event in enumerate(events)
        )
        changed: dict[str, Any] = {
            "next_offset": locked.next_offset + len(events),
            "next_turn": turn.number + 1,
            "last_event_at": timezone.now(),
        }
        if any(isinstance(event, ModeEvent) and event.mode is Mode.MANUAL for event in events):
            changed["mode"] = Session.Mode.MANUAL
        Session.objects.filter(pk=locked.pk).update(**changed)
    session.refresh_from_db(fields=[*changed])
    turn.refresh_from_db()
    return turn


def _turn_row(
    session: Session, version: AgentVersion, played: Played, *, tool_mode: str, ran_with: JsonObject
) -> Turn:
    failed = played.error is not None
    reached = [item for item in played.emissions if isinstance(item, Checkpoint)]
    return Turn(
        session=session,
        number=session.next_turn,
        first_offset=session.next_offset,
        state=Turn.State.FAILED if failed else Turn.State.FINISHED,
        error=str(played.error)[:4000] if failed else "",
        version=version,
        tool_mode=tool_mode,
        ran_with=ran_with,
        checkpoint=asdict(reached[-1]) if reached else {},
        claims=1,
        started_at=played.started_at,
        finished_at=played.ended_at,
    )


def _over(played: Played) -> StatusEvent:
    return StatusEvent(phase=Phase.FAILED if played.error is not None else Phase.FINISHED)
