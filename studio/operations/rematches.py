"""Trying another wording on one turn: one guideline judged again in exactly the situation of that turn.

It is tried afterwards and no part of the record: a Rematch is written, and nothing of the turn.
"""

import asyncio
import logging
from concurrent.futures import Future, wait
from typing import Final

from celery import shared_task
from django.db import transaction
from django.utils.translation import gettext as _

from engine import trail
from engine.canonical import JsonObject
from engine.errors import ModelError, SpecError
from engine.kit import Kit
from engine.rejudging import Judged, judge_alone, reworded
from engine.spec import Guideline
from engine.state import TurnState
from engine.tools.base import ToolContext
from studio.connecting import models_for
from studio.models import Rematch, Turn
from studio.operations.pumping import engine_loop
from studio.operations.situations import guideline_in, last_judgement, situation_at
from studio.toolbox import tools_for

log = logging.getLogger(__name__)

NOTED_EVERY = 0.4  # seconds
KEPT: Final = 50  # tries of a guideline on a turn; older ones are deleted


class RematchRefusedError(Exception):
    """It cannot be tried; the message says why."""


class GuidelineUnknownError(Exception):
    """The turn knows no such guideline."""


def guideline_of(turn: Turn, uid: str) -> Guideline:
    """The guideline as it was in force in the turn; raises GuidelineUnknownError."""
    found = guideline_in(turn, uid)
    if found is None:
        raise GuidelineUnknownError(
            _("Turn %(number)d has no guideline %(uid)r.") % {"number": turn.number, "uid": uid}
        )
    return found


def start_rematch(turn: Turn, guideline: str, condition: str | None = None, *, by: str) -> Rematch:
    """Ask for it; without a condition the one on record is judged again.

    What is on its way already is returned instead. Raises RematchRefusedError, GuidelineUnknownError.
    """
    recorded = guideline_of(turn, guideline)
    if not turn.is_over:
        raise RematchRefusedError(_("The turn is still running: stop it, or wait for its end."))
    wording = (recorded.condition if condition is None else condition).strip()
    if not wording:
        raise RematchRefusedError(
            _("Without a condition it always applies, and there is nothing to judge: write one.")
        )
    Rematch.objects.give_up_lost()
    with transaction.atomic():
        Turn.objects.select_for_update().get(pk=turn.pk)
        tried = turn.rematches.filter(guideline=guideline)
        running: Rematch | None = tried.unfinished().filter(condition=wording).first()
        if running is not None:
            return running
        row = Rematch.objects.create(
            turn=turn, guideline=guideline, condition=wording, started_by=by
        )
        kept = tried.values_list("pk", flat=True)[:KEPT]
        tried.exclude(pk__in=list(kept)).delete()
        transaction.on_commit(lambda: rematch.delay(row.pk))
    return row


@shared_task
def rematch(pk: int) -> None:
    """Claim it and see it through; does nothing where it is taken or over."""
    if not Rematch.objects.claim(pk):
        return
    row = Rematch.objects.select_related(
        "turn__version", "turn__session__agent", "turn__session__customer"
    ).get(pk=pk)
    try:
        state, kit = _prepare(row)
        asking = judge_alone(state, kit, state.agent.guideline_by_uid[row.guideline])
        _watch(row, asyncio.run_coroutine_threadsafe(asking, engine_loop()))
    except (ModelError, SpecError) as error:
        row.end(Rematch.State.FAILED, error=str(error)[:4000])
    except Exception:
        log.exception("The rematch %s could not be made.", pk)
        row.end(Rematch.State.FAILED, error=_("It went wrong here; the log says how."))


def _prepare(row: Rematch) -> tuple[TurnState, Kit]:
    """The situation of the guideline's last judgement in the turn, in which its condition alone is another."""
    turn = row.turn
    judged = last_judgement(turn, row.guideline)
    if judged is not None:
        state = situation_at(turn, judged.started_at, iteration=judged.iteration)
    else:
        state = situation_at(turn, turn.started_at or turn.created_at)
    state.agent = reworded(state.agent, row.guideline, row.condition)
    context = ToolContext(
        agent_id=turn.session.agent.slug,
        session_id=str(turn.session_id),
        turn_id=str(turn),
        customer_id="",
    )
    return state, Kit(models=models_for(turn.session), tools=tools_for(()), context=context)


def _watch(row: Rematch, asking: "Future[Judged]") -> None:
    """Until the model has answered or somebody stops it; raises what the judging raises."""
    try:
        while not wait([asking], timeout=NOTED_EVERY).done:
            if not row.note():
                row.end(Rematch.State.STOPPED)
                return
        row.end(Rematch.State.FINISHED, result=_result(asking.result()))
    finally:
        asking.cancel()


def _result(judged: Judged) -> JsonObject:
    match, calls = judged.match, judged.calls
    spent = (calls[-1].ended_at - calls[0].started_at).total_seconds()
    return {
        "state": match.state.value,
        "because": match.because,
        "score": match.score,
        "explained_afterwards": match.explained_afterwards,
        "model": _answering(calls, match).model,
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "duration_ms": round(spent * 1000),
    }


def _answering(calls: tuple[trail.ModelCall, ...], match: trail.GuidelineMatch) -> trail.ModelCall:
    return next((call for call in calls if call.uid == match.model_call), calls[-1])
