"""Runs of a tool by hand that people watch: started, run by a worker, stopped, kept as examples."""

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Final

from celery import shared_task
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from engine import spec
from engine.canonical import JsonObject
from engine.tools.base import ToolService
from studio.bridge import compile_tool
from studio.models import Customer, Tool, ToolExample, ToolRun
from studio.operations.hand_calls import Ended, call_by_hand, fitting_arguments
from studio.operations.pumping import engine_loop
from studio.toolbox import plugin_data, tools_for

log = logging.getLogger(__name__)

NOTED_EVERY = 0.4  # seconds
KEPT = 50  # runs of a tool; older ones are deleted
MOST_EXAMPLES = 100  # of a tool
MOST_LOG: Final = 200_000  # characters; of a longer log the end is kept
_ENDING = 3.0  # seconds that a call which is stopped may take to end


class TooManyExamplesError(Exception):
    """The tool has MOST_EXAMPLES already."""


class ExampleNameTakenError(Exception):
    """Another example of the tool has this name."""


def start_run(
    tool: Tool, arguments: Mapping[str, Any], *, by: str, customer: Customer | None = None
) -> ToolRun:
    """Ask for a run; raises ArgumentsRefusedError where the arguments do not fit the parameters."""
    fitting = fitting_arguments(compile_tool(tool), arguments)
    ToolRun.objects.give_up_lost()
    with transaction.atomic():
        row = ToolRun.objects.create(tool=tool, arguments=fitting, customer=customer, started_by=by)
        _delete_old(tool)
        transaction.on_commit(lambda: run_by_hand.delay(row.pk))
    return row


def _delete_old(tool: Tool) -> None:
    kept = tool.runs.values_list("pk", flat=True)[:KEPT]
    over = tool.runs.exclude(state__in=[ToolRun.State.QUEUED, ToolRun.State.RUNNING])
    over.exclude(pk__in=list(kept)).delete()


def keep_example(tool: Tool, name: str, arguments: JsonObject, *, by: str) -> ToolExample:
    """Keep the arguments under a name; raises ExampleNameTakenError, TooManyExamplesError."""
    if tool.run_examples.count() >= MOST_EXAMPLES:
        raise TooManyExamplesError(
            _("%(count)d examples are kept of a tool at most; delete one first.")
            % {"count": MOST_EXAMPLES}
        )
    try:
        with transaction.atomic():
            return ToolExample.objects.create(
                tool=tool, name=name, arguments=arguments, created_by=by
            )
    except IntegrityError as error:
        raise ExampleNameTakenError(
            _("Another example of this tool is named “%(name)s” already.") % {"name": name}
        ) from error


@shared_task
def run_by_hand(pk: int) -> None:
    """Claim the run and see it through; does nothing where it is taken or over."""
    if not ToolRun.objects.claim(pk):
        return
    row = ToolRun.objects.select_related("tool", "customer").get(pk=pk)
    try:
        tool = compile_tool(row.tool)
        _watch(row, _Trial(tools_for([tool]), tool, row.arguments, row.customer))
    except Exception:
        log.exception("The run %s of a tool could not be made.", pk)
        row.end(ToolRun.State.FAILED, error=_("It went wrong here; the log says how."))


class _Log:
    """What a tool prints and says, from any thread; of a long one the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""
        self._cut = 0

    def printed(self, text: str) -> None:
        with self._lock:
            self._text += text.replace("\x00", "")
            if len(self._text) > 2 * MOST_LOG:
                self._shorten()

    async def message(self, text: str) -> None:
        self._line(_("says to the customer: %(text)s") % {"text": text})

    async def status(self, text: str) -> None:
        self._line(_("is doing: %(text)s") % {"text": text})

    def _line(self, text: str) -> None:
        """On a line of its own."""
        with self._lock:
            apart = "" if not self._text or self._text.endswith("\n") else "\n"
        self.printed(f"{apart}{text}\n")

    def _shorten(self) -> None:
        self._cut += len(self._text) - MOST_LOG
        self._text = self._text[-MOST_LOG:]

    @property
    def text(self) -> str:
        with self._lock:
            if len(self._text) > MOST_LOG:
                self._shorten()
            cut = _("… %(count)d characters before") % {"count": self._cut}
            shown = f"{cut}\n{self._text}" if self._cut else self._text
            return shown.encode("utf-8", "replace").decode()


class _Trial:
    """One call on the engine's loop; the task's thread, which writes, asks how far it is."""

    def __init__(
        self,
        service: ToolService,
        tool: spec.Tool,
        arguments: JsonObject,
        customer: Customer | None,
    ) -> None:
        self._service = service
        self._tool = tool
        self._arguments = arguments
        self._customer = customer
        self._plugin_data = plugin_data()
        self._over = threading.Event()
        self.log = _Log()
        self._future: Future[Ended] = asyncio.run_coroutine_threadsafe(self._call(), engine_loop())

    def wait(self, seconds: float) -> Ended | None:
        """How it ended, or None where it goes on; raises what nobody foresaw."""
        if not self._over.wait(seconds):
            return None
        return self._future.result()

    def stop(self) -> None:
        """Return as soon as it has ended, or after a few seconds."""
        self._future.cancel()
        self._over.wait(_ENDING)

    async def _call(self) -> Ended:
        try:
            return await call_by_hand(
                self._service,
                self._tool,
                self._arguments,
                customer=self._customer,
                plugin_data=self._plugin_data,
                hearing=self.log,
            )
        finally:
            self._over.set()


def _watch(row: ToolRun, trial: _Trial) -> None:
    """Write what it says as it comes, until it is over or somebody stops it."""
    started = time.monotonic()
    try:
        while (ended := trial.wait(NOTED_EVERY)) is None:
            if not row.note(log=trial.log.text):
                trial.stop()
                spent = round((time.monotonic() - started) * 1000)
                row.end(ToolRun.State.STOPPED, log=trial.log.text, duration_ms=spent)
                return
    except BaseException:
        trial.stop()
        raise
    _finish(row, ended, trial.log.text)


def _finish(row: ToolRun, ended: Ended, said: str) -> None:
    if ended.result is not None:
        row.end(
            ToolRun.State.FINISHED,
            log=said or _storable(ended.result.log),
            duration_ms=ended.duration_ms,
            result=ended.result.to_json(),
        )
        return
    failure = {name: _storable(str(text)) for name, text in asdict(ended.failure).items()}  # type: ignore[arg-type]
    row.end(ToolRun.State.FAILED, log=said, duration_ms=ended.duration_ms, failure=failure)


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
