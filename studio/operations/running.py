"""Running a claimed turn in a worker: the engine on its one event loop, the rows written by the task's thread.

The engine never touches the database. What it yields reaches the thread through a queue; the thread writes what has
arrived in one transaction, and the engine waits only where something irreversible would rest on it.
"""

import logging
import secrets
from typing import Any

from django.db import transaction

from engine.errors import ModelError
from engine.events import Phase, StatusEvent
from engine.kit import Kit
from engine.prompts.transcript import WINDOW_TURNS
from engine.state import Checkpoint, Step, TurnState
from engine.tools.base import ToolContext
from studio import bridge
from studio.connecting import models_for
from studio.models import AgentVersion, Session, Turn
from studio.operations.agents import snapshot
from studio.operations.pumping import End, Pump
from studio.operations.recording import Record, TurnLostError
from studio.operations.watching import watch
from studio.toolbox import tool_service

log = logging.getLogger(__name__)

_REMEMBERED_KINDS = ("message", "tool.finished", "briefing")


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
    session = Session.objects.select_related("agent", "customer", "connection").get(
        pk=turn.session_id
    )
    version = _version_of(turn, session)
    customer = session.customer
    state = TurnState(
        agent=bridge.agent_spec(version),
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


def _version_of(turn: Turn, session: Session) -> AgentVersion:
    """The version that the turn runs on, chosen when it first starts."""
    chosen = turn.version_id or (
        session.version_id
        if session.follows == Session.Follows.VERSION
        else session.agent.published_id
        if session.follows == Session.Follows.PUBLISHED
        else None
    )
    version = (
        AgentVersion.objects.without_spec().get(pk=chosen) if chosen else snapshot(session.agent)
    )
    if turn.version_id is None:
        Turn.objects.filter(pk=turn.pk).update(version=version)
    return version


def _history(session: Session, turn: Turn) -> Any:
    """What the engine is to remember: the window of turns that prompts show."""
    oldest = turn.number - WINDOW_TURNS
    first = (
        session.turns.filter(number=oldest).values_list("first_offset", flat=True).first()
        if oldest > 0
        else None
    )
    rows = (
        session.events.filter(kind__in=_REMEMBERED_KINDS, offset__gte=first or 0)
        .order_by("offset")
        .values_list("offset", "turn__number", "kind", "source", "data")
    )
    return bridge.recorded_events(rows)


def _play(turn: Turn, record: Record, pump: Pump) -> None:
    watch().add(turn, pump)
    running = pump.start()
    try:
        while not _write_next(turn, record, pump):
            pass
    except BaseException:
        running.cancel()
        raise
    finally:
        watch().remove(turn)


def _write_next(turn: Turn, record: Record, pump: Pump) -> bool:
    """Wait for what comes next and write it; is the turn over with it?"""
    taken = pump.take()
    end = next((item for item, _written in taken if isinstance(item, End)), None)
    with transaction.atomic():
        emissions = [item for item, _written in taken if not isinstance(item, End)]
        if emissions:
            record.write(emissions)
        if end is not None and end.error is None:
            _finish(turn, record)
    for _item, written in taken:
        if written is not None:
            pump.acknowledge(written)
    if end is not None and end.error is not None:
        log.error("Turn %s failed: %s", turn, end.error, exc_info=_unexpected(end.error))
        _fail(turn, record, end.error)
    return end is not None


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
        with transaction.atomic():
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
