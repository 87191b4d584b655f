"""Checking a connection's judging model against the labelled set, in the background, and taking its proposal over."""

import asyncio
import logging
import queue
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from celery import shared_task
from django.db import transaction
from django.utils.translation import gettext as _

from engine.errors import SpecError
from engine.model.base import ChatModel
from engine.model.check import Answered, Ended, Report, check, plan, report
from engine.model.retrying import RetryingModel
from studio.connecting import Endpoint, new_client
from studio.models import ModelCheck, ModelConnection
from studio.operations.pumping import engine_loop

if TYPE_CHECKING:
    from django.contrib.auth.models import User

log = logging.getLogger(__name__)

NOTED_EVERY = 1.0  # seconds
KEPT = 10  # checks of a connection; older ones are deleted

Told: TypeAlias = Answered | Ended


class NoProposalError(Exception):
    """The check proposes nothing that could be taken over."""


def start_check(connection: ModelConnection, *, by: "User") -> ModelCheck:
    """Ask for a check; the one that runs already is returned instead."""
    ModelCheck.objects.give_up_lost()
    with transaction.atomic():
        ModelConnection.objects.select_for_update().get(pk=connection.pk)
        running: ModelCheck | None = connection.checks.unfinished().first()
        if running is not None:
            return running
        row = ModelCheck.objects.create(
            connection=connection,
            model=connection.model,
            cases=sum(len(query.failed) for queries in plan().values() for query in queries),
            started_by=by.get_username(),
        )
        old = connection.checks.values_list("pk", flat=True)[KEPT:]
        ModelCheck.objects.filter(pk__in=list(old)).delete()
        transaction.on_commit(lambda: run_check.delay(row.pk))
    return row


@transaction.atomic
def apply_proposal(row: ModelCheck) -> ModelConnection:
    """The connection asks from now on as the check proposes; raises NoProposalError."""
    proposal = result_of(row).proposal
    if proposal is None:
        raise NoProposalError(_("This check proposes nothing."))
    connection = ModelConnection.objects.select_for_update().get(pk=row.connection_id)
    connection.batch_size = proposal.batch_size
    connection.judging_style = proposal.style.value
    connection.save(update_fields=["batch_size", "judging_style", "updated_at"])
    return connection


def result_of(row: ModelCheck) -> Report:
    """What is known so far."""
    return report([]) if row.result is None else Report.from_json(row.result)


@shared_task
def run_check(pk: int) -> None:
    """Claim the check and run it to its end; does nothing where it is taken or over."""
    if not ModelCheck.objects.claim(pk):
        return
    row = ModelCheck.objects.select_related("connection").get(pk=pk)
    try:
        client = new_client(Endpoint.of(row.connection, row.model))
    except SpecError as error:
        row.end(ModelCheck.State.FAILED, error=str(error))
        return
    model = RetryingModel(client, attempts=2, deadline=row.connection.timeout)
    try:
        _run(row, _Asking(model, client.aclose))
    except Exception:
        log.exception("The check %s could not be run.", pk)
        row.end(ModelCheck.State.FAILED, error=_("It went wrong here; the log says how."))


class _Over:
    """The asking is through, with the error that ended it, if any."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Asking:
    """Asks on the engine's loop, then closes; what comes is taken from `items` by the task's thread, which writes."""

    def __init__(self, model: ChatModel, close: Callable[[], Awaitable[None]]) -> None:
        self._model = model
        self._close = close
        self.items: queue.SimpleQueue[Told | _Over] = queue.SimpleQueue()
        self._future = asyncio.run_coroutine_threadsafe(self._ask(), engine_loop())

    async def _ask(self) -> None:
        over = _Over()
        try:
            async for told in check(self._model):
                self.items.put(told)
        except Exception as error:  # noqa: BLE001 - the thread says what it means for the check
            over = _Over(error)
        finally:
            await self._close()
            self.items.put(over)

    def stop(self) -> None:
        self._future.cancel()


def _run(row: ModelCheck, asking: _Asking) -> None:
    told: list[Told] = []
    noted = 0.0
    try:
        while True:
            item = _next(asking)
            if isinstance(item, _Over):
                _finish(row, told, item)
                return
            if item is not None:
                told.append(item)
            if time.monotonic() - noted >= NOTED_EVERY:
                noted = time.monotonic()
                if not row.note(**_progress(told)):
                    row.end(ModelCheck.State.STOPPED, **_progress(told))
                    return
    finally:
        asking.stop()


def _next(asking: _Asking) -> Told | _Over | None:
    try:
        return asking.items.get(timeout=NOTED_EVERY)
    except queue.Empty:
        return None


def _finish(row: ModelCheck, told: list[Told], over: _Over) -> None:
    if over.error is not None:
        raise over.error
    result = report(told)
    answered = any(isinstance(each, Answered) and not each.error for each in told)
    if not answered:
        row.end(ModelCheck.State.FAILED, error=result.ended, **_progress(told))
        return
    row.end(ModelCheck.State.FINISHED, **_progress(told))


def _progress(told: list[Told]) -> dict[str, object]:
    result = report(told)
    return {"asked": sum(row.asked for row in result.rows), "result": result.to_json()}
