"""Running a claimed turn in a worker: the engine on its one event loop, the rows written by the task's thread.

The engine never touches the database. What it yields reaches the thread through a queue; the thread writes everything
that has arrived in one transaction, and the engine waits only where something irreversible would rest on it.
"""

import asyncio
import logging
import queue
import secrets
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final, TypeAlias

from django.db import close_old_connections, transaction
from django.db.models import F
from django.utils import timezone

from engine.errors import ModelError
from engine.events import (
    BriefingEvent,
    Event,
    MessageEvent,
    MessagePartEvent,
    Phase,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.kit import Kit
from engine.outbox import Emission
from engine.prompts.transcript import WINDOW_TURNS
from engine.state import Checkpoint, Step, TurnState
from engine.tools.base import ToolContext
from engine.trail import CallState, ToolCall
from engine.turn import run_turn
from studio import bridge
from studio.connecting import models_for
from studio.models import Event as EventRow
from studio.models import Session, Turn
from studio.operations.agents import snapshot
from studio.operations.turns import sweep
from studio.toolbox import tool_service

log = logging.getLogger(__name__)

HEARTBEAT = 1.0  # seconds
STOP_POLL = 0.25
SWEEP = 2.0

_REMEMBERED_KINDS = ("message", "tool.finished", "briefing")


class TurnLostError(Exception):
    """The turn is no longer this worker's: it was taken for dead, and another claim writes now."""


# --- The engine's loop -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def engine_loop() -> asyncio.AbstractEventLoop:
    """The one long-lived event loop of this process, on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="engine", daemon=True).start()
    return loop


# --- What the engine hands to the thread -----------------------------------------------------------------------------


class _End:
    """The engine is through, with the error that ended it, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


_Item: TypeAlias = tuple[Emission | _End, asyncio.Future[None] | None]


class Pump:
    """Moves what `run_turn` yields from the engine's loop to the task's thread."""

    def __init__(self, state: TurnState, kit: Kit) -> None:
        self._state = state
        self._kit = kit
        self.items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._loop = engine_loop()

    def start(self) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(self._run(), self._loop)

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            async for item in run_turn(self._state, self._kit):
                await self._hand_over(item)
        except asyncio.CancelledError:
            raise
        except BaseException as problem:  # noqa: BLE001 - the thread decides what it means for the turn
            error = problem
        self.items.put((_End(error), None))

    async def _hand_over(self, item: Emission) -> None:
        if not self._must_be_on_record(item):
            self.items.put((item, None))
            return
        written: asyncio.Future[None] = self._loop.create_future()
        self.items.put((item, written))
        await written

    def _must_be_on_record(self, item: Emission) -> bool:
        """A consequential call may only start once its start is stored."""
        if not isinstance(item, ToolCall) or item.state is not CallState.STARTED:
            return False
        return self._state.agent.tool_by_name[item.tool].consequential

    def acknowledge(self, written: asyncio.Future[None]) -> None:
        def done() -> None:
            if not written.done():
                written.set_result(None)

        self._loop.call_soon_threadsafe(done)

    def request_stop(self) -> None:
        self._loop.call_soon_threadsafe(self._kit.stop.set)


# --- Watching running turns ------------------------------------------------------------------------------------------


class Watch:
    """One thread per worker: heartbeats of its turns, requests to stop them, and the sweeper."""

    def __init__(self) -> None:
        self._running: dict[int, Pump] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def add(self, turn: Turn, pump: Pump) -> None:
        with self._lock:
            self._running[turn.pk] = pump

    def remove(self, turn: Turn) -> None:
        with self._lock:
            self._running.pop(turn.pk, None)

    def _run(self) -> None:
        beaten = swept = 0.0
        while True:
            time.sleep(STOP_POLL)
            now = time.monotonic()
            try:
                self._stop_requested()
                if now - beaten >= HEARTBEAT:
                    self._beat()
                    beaten = now
                if now - swept >= SWEEP:
                    sweep()
                    swept = now
            except Exception:
                log.exception("Watching the running turns failed; it is tried again.")
                with suppress(Exception):  # without this thread no turn is heard of any more
                    close_old_connections()
                time.sleep(HEARTBEAT)

    def _pks(self) -> list[int]:
        with self._lock:
            return list(self._running)

    def _beat(self) -> None:
        if pks := self._pks():
            Turn.objects.running().filter(pk__in=pks).update(heartbeat_at=timezone.now())

    def _stop_requested(self) -> None:
        pks = self._pks()
        if not pks:
            return
        asked = Turn.objects.running().filter(pk__in=pks).exclude(stop_reason="")
        for pk in asked.values_list("pk", flat=True):
            with self._lock:
                pump = self._running.get(pk)
            if pump:
                pump.request_stop()


@lru_cache(maxsize=1)
def watch() -> Watch:
    """The watch of this process, running."""
    watch = Watch()
    watch.start()
    return watch


# --- Writing ---------------------------------------------------------------------------------------------------------


class Record:
    """Writes what a turn yields: events, trail and checkpoint of one hand-over in one transaction."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._session_id = turn.session_id
        self.reached: Step | None = None  # the last step that the engine reported
        self._has_parts = turn.checkpoint.get("step") == Step.WRITING

    def write(self, items: list[Emission]) -> None:
        """Raises TurnLostError, writing nothing, where the turn belongs to another claim by now."""
        rows = bridge.TrailRows(self._turn)
        events: list[Event] = []
        changes: dict[str, Any] = {"heartbeat_at": timezone.now()}
        for item in items:
            if isinstance(item, Checkpoint):
                self.reached = item.step
                if item.step is not Step.STOPPED:  # a stopped turn can go on from where it was
                    changes["checkpoint"] = asdict(item)
            elif isinstance(item, _EVENTS):
                events.append(item)
            else:
                rows.add(item)
        with transaction.atomic():
            rows.save()
            self._append(events)
            self._update(changes | rows.totals())

    def end(self, state: Turn.State, event: StatusEvent, **changes: Any) -> None:
        """The last write of the turn."""
        with transaction.atomic():
            self._append([event])
            self._update(
                {"state": state, "finished_at": timezone.now(), "heartbeat_at": None, **changes}
            )

    def _update(self, changes: dict[str, Any]) -> None:
        claimed = Turn.objects.running().filter(pk=self._turn.pk, claims=self._turn.claims)
        if claimed.update(**changes) != 1:
            raise TurnLostError(f"Turn {self._turn} was claimed by another worker.")

    def _append(self, events: list[Event]) -> None:
        if not events:
            return
        count = len(events)
        now = timezone.now()
        Session.objects.filter(pk=self._session_id).update(
            next_offset=F("next_offset") + count, last_event_at=now
        )
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


_EVENTS: Final = (
    MessageEvent,
    MessagePartEvent,
    ToolStartedEvent,
    ToolFinishedEvent,
    StatusEvent,
    BriefingEvent,
)


def _ends_parts(event: Event) -> bool:
    """The whole message replaces its pieces; a failed or stopped turn has none any more either."""
    whole = isinstance(event, MessageEvent) and event.source is Source.AGENT
    over = isinstance(event, StatusEvent) and event.phase in _OVER
    return whole or over


_OVER = frozenset({Phase.FINISHED, Phase.FAILED, Phase.STOPPED, Phase.SUPERSEDED})


# --- One turn --------------------------------------------------------------------------------------------------------


def run_claimed(turn: Turn) -> None:
    """Run a turn that this worker has claimed, to whatever end; never raises for what goes wrong inside the turn."""
    record = Record(turn)
    try:
        pump = Pump(*_prepare(turn))
        _play(turn, record, pump)
    except TurnLostError:
        log.warning("Turn %s went on elsewhere.", turn)
    except Exception as error:
        log.exception("Turn %s could not be run.", turn)
        _fail(turn, record, error)


def _prepare(turn: Turn) -> tuple[TurnState, Kit]:
    session = Session.objects.select_related(
        "agent", "version", "agent__published", "customer", "connection"
    ).get(pk=turn.session_id)
    if turn.version is None:
        turn.version = _version_of(session)
        Turn.objects.filter(pk=turn.pk).update(version=turn.version)
    customer = session.customer
    state = TurnState(
        agent=bridge.agent_spec(turn.version),
        turn=turn.number,
        history=_history(session, turn),
        variables=dict(customer.variables) if customer else {},
    )
    if turn.checkpoint:
        state.checkpoint = Checkpoint(
            step=Step(turn.checkpoint["step"]), iteration=turn.checkpoint["iteration"]
        )
        state.recall(bridge.read_trail(turn))
    context = ToolContext(
        agent_id=session.agent.slug,
        session_id=str(session.pk),
        turn_id=f"{session.pk}/{turn.number}",
        customer_id=customer.uid if customer else "",
        variables=state.variables,
    )
    return state, Kit(models=models_for(session), tools=tool_service(), context=context)


def _version_of(session: Session) -> Any:
    """The version that a new turn of the session runs on."""
    match session.follows:
        case Session.Follows.VERSION:
            return session.version
        case Session.Follows.PUBLISHED if session.agent.published is not None:
            return session.agent.published
        case _:
            return snapshot(session.agent)


def _history(session: Session, turn: Turn) -> Any:
    """What the engine is to remember: the window of turns that prompts show."""
    first = (
        session.turns.filter(number__gt=turn.number - WINDOW_TURNS)
        .order_by("number")
        .values_list("first_offset", flat=True)
        .first()
    )
    rows = (
        session.events.filter(kind__in=_REMEMBERED_KINDS, offset__gte=first or 1)
        .order_by("offset")
        .values_list("offset", "turn__number", "kind", "source", "data")
    )
    return bridge.recorded_events(rows)


def _play(turn: Turn, record: Record, pump: Pump) -> None:
    watch().add(turn, pump)
    running = pump.start()
    try:
        while (end := _write_next(record, pump)) is None:
            pass
    except BaseException:
        running.cancel()
        raise
    finally:
        watch().remove(turn)
    if end.error is not None:
        log.error("Turn %s failed: %s", turn, end.error, exc_info=_unexpected(end.error))
        _fail(turn, record, end.error)
        return
    _finish(turn, record)


def _write_next(record: Record, pump: Pump) -> _End | None:
    """Wait for the next item, and write it with all that have arrived meanwhile; the end, if it is among them."""
    taken: list[_Item] = [pump.items.get()]
    while True:
        try:
            taken.append(pump.items.get_nowait())
        except queue.Empty:
            break
    emissions = [item for item, _written in taken if not isinstance(item, _End)]
    if emissions:
        record.write(emissions)
    for _item, written in taken:
        if written is not None:
            pump.acknowledge(written)
    return next((item for item, _written in taken if isinstance(item, _End)), None)


def _finish(turn: Turn, record: Record) -> None:
    """FINISHED; or, where the engine was stopped before it was through, by what."""
    if record.reached is not Step.STOPPED:
        record.end(Turn.State.FINISHED, StatusEvent(phase=Phase.FINISHED))
        return
    reason = Turn.objects.values_list("stop_reason", flat=True).get(pk=turn.pk)
    if reason == Turn.StopReason.MESSAGE:
        record.end(Turn.State.SUPERSEDED, StatusEvent(phase=Phase.SUPERSEDED))
    else:
        record.end(Turn.State.STOPPED, StatusEvent(phase=Phase.STOPPED))


def _fail(turn: Turn, record: Record, error: BaseException) -> None:
    """FAILED, with a reference that a customer may be told and the reason for people of the studio."""
    reference = secrets.token_hex(4)
    text = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
    log.error("Reference %s: turn %s", reference, turn)
    try:
        record.end(
            Turn.State.FAILED,
            StatusEvent(phase=Phase.FAILED, reference=reference),
            reference=reference,
            error=text[:4000],
        )
    except TurnLostError:
        log.warning("Turn %s went on elsewhere.", turn)


def _unexpected(error: BaseException) -> BaseException | None:
    """A model's failure needs no traceback; everything else does."""
    return None if isinstance(error, ModelError) else error
