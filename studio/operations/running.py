"""Running a claimed turn in a worker: the engine on its one event loop, the rows written by the task's thread.

The engine never touches the database. What it yields reaches the thread through a queue; the thread writes what has
arrived in one transaction, and the engine waits only where something irreversible would rest on it.
"""

import logging
import secrets

from django.db import transaction

from engine.errors import ModelError
from engine.events import Phase, Source, StatusEvent
from engine.kit import Kit
from engine.outbox import Emission
from engine.state import Checkpoint, Step, TurnState
from engine.tools.base import ToolContext
from engine.tools.views import AgentView
from studio import bridge
from studio.connecting import models_for
from studio.models import AgentVersion, Session, Turn
from studio.operations.agents import snapshot
from studio.operations.pumping import End, Pump
from studio.operations.recording import Ending, Record, TurnLostError
from studio.operations.situations import beginning, ran_with
from studio.operations.tool_modes import stand_in_for
from studio.operations.watching import watch
from studio.toolbox import plugin_data, tools_for

log = logging.getLogger(__name__)


def run_claimed(turn: Turn) -> None:
    """Run a turn that this worker has claimed, to whatever end; never raises for what goes wrong inside the turn."""
    record = Record(turn)
    try:
        if _is_left_to_a_person(turn):
            with transaction.atomic():
                record.write([], _left())
            return
        pump = Pump(*_prepare(turn))
        _play(turn, record, pump)
    except TurnLostError:
        log.warning("Turn %s went on elsewhere.", turn)
    except Exception as error:
        log.exception("Turn %s could not be run.", turn)
        _give_up(turn, record, error)


def _is_left_to_a_person(turn: Turn) -> bool:
    """In manual mode no turn runs, but for one that handed over itself and had only to end when it was interrupted."""
    if turn.session.mode != Session.Mode.MANUAL:
        return False
    handed_over = turn.events.filter(kind="mode", source=Source.SYSTEM)
    replied = turn.events.filter(kind="message", source=Source.AGENT)
    return not (handed_over.exists() and replied.exists())


def _left() -> Ending:
    return Ending(
        state=Turn.State.STOPPED,
        event=StatusEvent(phase=Phase.STOPPED),
        changes={"stop_reason": Turn.StopReason.PERSON},
    )


def _give_up(turn: Turn, record: Record, error: Exception) -> None:
    try:
        with transaction.atomic():
            record.write([], _failure(turn, error))
    except TurnLostError:
        log.warning("Turn %s went on elsewhere.", turn)


def _prepare(turn: Turn) -> tuple[TurnState, Kit]:
    session = turn.session
    turn.version = turn.version or _version_of(session)
    turn.tool_mode = turn.tool_mode or session.tool_mode
    customer = session.customer
    models = models_for(session)
    state = beginning(turn)
    turn.ran_with = turn.ran_with or ran_with(session, models, state.variables)
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
        plugin_data=plugin_data(),
        agent=AgentView(state.agent),
        customer=bridge.customer_view(customer),
    )
    return state, Kit(
        models=models,
        tools=tools_for(state.agent.tools),
        context=context,
        stand_in=stand_in_for(turn),
    )


def _version_of(session: Session) -> AgentVersion:
    """The version that a new turn of the session runs on."""
    match session.follows:
        case Session.Follows.VERSION:
            chosen = session.version_id
        case Session.Follows.PUBLISHED:
            chosen = session.agent.published_id
        case _:
            chosen = None
    if chosen is None:
        return snapshot(session.agent)
    return AgentVersion.objects.without_spec().get(pk=chosen)


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
    emissions = [item for item, _written in taken if not isinstance(item, End)]
    with transaction.atomic():
        record.write(emissions, _ending(turn, end, emissions) if end else None)
    for _item, written in taken:
        if written is not None:
            pump.acknowledge(written)
    return end is not None


def _ending(turn: Turn, end: End, last: list[Emission]) -> Ending:
    """FINISHED, FAILED; or, where the engine was stopped before it was through, by what."""
    if end.error is not None:
        log.error("Turn %s failed: %s", turn, end.error, exc_info=_unexpected(end.error))
        return _failure(turn, end.error)
    reached = [item.step for item in last if isinstance(item, Checkpoint)]
    if reached[-1:] != [Step.STOPPED]:
        return Ending(state=Turn.State.FINISHED, event=StatusEvent(phase=Phase.FINISHED))
    reason = Turn.objects.values_list("stop_reason", flat=True).get(pk=turn.pk)
    if reason == Turn.StopReason.MESSAGE:
        return Ending(state=Turn.State.SUPERSEDED, event=StatusEvent(phase=Phase.SUPERSEDED))
    return Ending(state=Turn.State.STOPPED, event=StatusEvent(phase=Phase.STOPPED))


def _failure(turn: Turn, error: BaseException) -> Ending:
    """With a reference that a customer may be told, and the reason for people of the studio."""
    reference = secrets.token_hex(4)
    text = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
    log.error("Reference %s: turn %s", reference, turn)
    return Ending(
        state=Turn.State.FAILED,
        event=StatusEvent(phase=Phase.FAILED, reference=reference),
        changes={"reference": reference, "error": text[:4000]},
    )


def _unexpected(error: BaseException) -> BaseException | None:
    """A model's failure needs no traceback; everything else does."""
    return None if isinstance(error, ModelError) else error
