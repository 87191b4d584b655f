"""Runs of a tool by hand: begun, run by a worker that writes as it goes, stopped, given up, kept within bounds."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext, ToolResult
from engine.tools.function import FunctionToolService, tool
from studio.models import Tool, ToolExample, ToolRun
from studio.operations import tool_trials
from studio.operations.hand_calls import ArgumentsRefusedError
from studio.operations.tool_trials import (
    ExampleNameTakenError,
    TooManyExamplesError,
    keep_example,
    run_by_hand,
    start_run,
)
from tests.studio.factories import make_customer, make_tool

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = [{"name": "number", "schema": {"type": "integer"}}]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_trials, "NOTED_EVERY", 0.03)


@pytest.fixture
def shed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tool]:
    """Puts a function into the shed, as the only code that there is."""

    def put(function: Any, **row: Any) -> Tool:
        service = FunctionToolService([function])
        monkeypatch.setattr(tool_trials, "tools_for", lambda _tools: service)
        return make_tool(name=function.spec.name, parameters=row.pop("parameters", NUMBER), **row)

    return put


def ran(row: Tool, number: Any = 2, **more: Any) -> ToolRun:
    run = start_run(row, {"number": number} if row.parameters else {}, by="dana", **more)
    run_by_hand(run.pk)
    run.refresh_from_db()
    return run


# --- works


def test_a_run_waits_in_the_queue_and_no_worker_runs_it_twice(
    shed: Callable[..., Tool], django_capture_on_commit_callbacks: Any
) -> None:
    calls = []

    @tool
    def count(context: ToolContext, number: int) -> int:
        """Counts."""
        calls.append(number)
        return number + 1

    row = shed(count)
    run = start_run(row, {"number": 4}, by="dana")
    assert (run.state, run.arguments, run.started_by) == ("queued", {"number": 4}, "dana")
    run_by_hand(run.pk)
    run_by_hand(run.pk)
    run.refresh_from_db()
    assert calls == [4]
    assert (run.state, run.result, run.failure) == (
        "finished",
        {"data": 5, "metadata": {}},
        None,
    )
    assert run.duration_ms is not None
    assert run.heartbeat_at is None


def test_a_tool_is_run_for_the_customer_who_was_named(shed: Callable[..., Tool]) -> None:
    @tool
    def who(context: ToolContext) -> dict[str, Any]:
        """Says for whom it runs."""
        return {"customer": context.customer_id, "variables": context.variables}

    row = shed(who, parameters=[])
    customer = make_customer(uid="c-7", variables={"plan": "gold"})
    assert ran(row, customer=customer).result["data"] == {
        "customer": "c-7",
        "variables": {"plan": "gold"},
    }
    assert ran(row).result["data"] == {"customer": "", "variables": {}}


def test_what_it_says_and_prints_is_written_while_it_runs(shed: Callable[..., Tool]) -> None:
    heard, go_on = threading.Event(), threading.Event()

    @tool
    async def talk(context: ToolContext) -> ToolResult:
        """Talks."""
        context.show_log("half a ")
        context.show_log("line\x00")
        await context.emit_status("Looking")
        await context.emit_message("Nearly there")
        heard.set()
        await asyncio.to_thread(go_on.wait, 10)
        return ToolResult(data=None)

    run = start_run(shed(talk, parameters=[]), {}, by="dana")
    worker = threading.Thread(target=run_by_hand, args=(run.pk,))
    worker.start()
    assert heard.wait(10)
    said = "half a line\nis doing: Looking\nsays to the customer: Nearly there\n"
    until = time.monotonic() + 5
    while run.log != said and time.monotonic() < until:
        time.sleep(0.02)
        run.refresh_from_db()
    assert (run.log, run.state) == (said, "running")
    assert run.heartbeat_at is not None
    go_on.set()
    worker.join(10)
    run.refresh_from_db()
    assert (run.log, run.state) == (said, "finished")


def test_of_a_log_without_end_the_end_is_kept(
    shed: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_trials, "MOST_LOG", 1_000)

    @tool
    def chatter(context: ToolContext) -> str:
        """Prints."""
        for line in range(1_000):
            context.show_log(f"line {line}\n")
        return "done"

    log = ran(shed(chatter, parameters=[])).log
    assert log.startswith("… 7890 characters before\n")
    assert log.endswith("line 999\n")
    assert len(log) < 1_100


# --- it fails


@pytest.mark.parametrize(
    ("failure", "kind", "detail"),
    [
        (
            ToolFailure(
                ToolError(
                    kind=ToolErrorKind.UNAVAILABLE, public="it cannot be reached", detail="a\x00b"
                )
            ),
            "unavailable",
            "ab",
        ),
        (RuntimeError("The till is closed"), "exception", "The till is closed"),
    ],
)
def test_a_failure_is_kept_with_its_kind_and_its_reason(
    shed: Callable[..., Tool], failure: Exception, kind: str, detail: str
) -> None:
    @tool
    def fail(context: ToolContext) -> str:
        """Fails."""
        raise failure

    run = ran(shed(fail, parameters=[]))
    assert (run.state, run.failure["kind"], run.result) == ("failed", kind, None)
    assert detail in run.failure["detail"]


def test_a_tool_that_takes_too_long_is_stopped_at_its_limit(shed: Callable[..., Tool]) -> None:
    @tool
    async def dawdle(context: ToolContext) -> str:
        """Dawdles."""
        await asyncio.sleep(60)
        return "late"

    run = ran(shed(dawdle, parameters=[], timeout=0.2))
    assert (run.state, run.failure["kind"]) == ("failed", "timeout")
    assert 150 <= run.duration_ms < 3_000


def test_what_breaks_outside_of_the_tool_ends_the_run_too(
    shed: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def fine(context: ToolContext) -> str:
        """Fine."""
        return "fine"

    row = shed(fine, parameters=[])

    def broken(_tools: Any) -> Any:
        raise OSError("no disk")

    monkeypatch.setattr(tool_trials, "tools_for", broken)
    run = ran(row)
    assert (run.state, run.error) == ("failed", "It went wrong here; the log says how.")


def test_arguments_that_do_not_fit_start_nothing(shed: Callable[..., Tool]) -> None:
    row = make_tool(parameters=NUMBER)
    for wrong in ({}, {"number": "x"}, {"number": 1, "more": 2}):
        with pytest.raises(ArgumentsRefusedError):
            start_run(row, wrong, by="dana")
    assert not ToolRun.objects.exists()


# --- it is stopped, or lost


def test_a_running_tool_ends_within_a_second_of_being_stopped(
    shed: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # with the real intervals
    began, ended = threading.Event(), threading.Event()

    @tool(timeout=60)
    async def wait(context: ToolContext) -> str:
        """Waits."""
        context.show_log("begun\n")
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "never"

    service = FunctionToolService([wait])
    monkeypatch.setattr(tool_trials, "tools_for", lambda _tools: service)
    run = start_run(make_tool(name="wait", parameters=[], timeout=60), {}, by="dana")
    worker = threading.Thread(target=run_by_hand, args=(run.pk,))
    worker.start()
    assert began.wait(10)
    asked = time.monotonic()
    assert run.request_stop()
    worker.join(10)
    assert time.monotonic() - asked < 1
    assert ended.is_set()
    run.refresh_from_db()
    assert (run.state, run.log, run.result, run.failure) == ("stopped", "begun\n", None, None)


def test_a_run_that_is_stopped_while_it_waits_never_begins(shed: Callable[..., Tool]) -> None:
    run = start_run(make_tool(parameters=[]), {}, by="dana")
    assert run.request_stop()
    run_by_hand(run.pk)
    run.refresh_from_db()
    assert (run.state, run.started_at) == ("stopped", None)
    assert not run.request_stop()


def test_a_run_whose_worker_is_gone_is_given_up() -> None:
    row = make_tool(parameters=[])
    long_ago = timezone.now() - timedelta(minutes=10)
    lost = ToolRun.objects.create(tool=row, state="running", heartbeat_at=long_ago)
    start_run(row, {}, by="dana")
    lost.refresh_from_db()
    assert lost.state == "failed"
    assert "Start it again." in lost.error


# --- what is kept


def test_of_old_runs_those_that_are_over_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_trials, "KEPT", 3)
    row, other = make_tool(parameters=[]), make_tool(parameters=[])
    running = ToolRun.objects.create(tool=row, state="running", heartbeat_at=timezone.now())
    for each in (row, other):
        ToolRun.objects.bulk_create(ToolRun(tool=each, state="finished") for _each in range(5))
    newest = start_run(row, {}, by="dana")
    left = list(row.runs.values_list("pk", flat=True))
    assert left[0] == newest.pk
    assert left[-1] == running.pk
    assert len(left) == 4
    assert other.runs.count() == 5


def test_an_example_has_a_name_of_its_own_and_there_are_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = make_tool(parameters=NUMBER)
    keep_example(row, "usual", {"number": 1}, by="dana")
    with pytest.raises(ExampleNameTakenError, match="“usual” already"):
        keep_example(row, "usual", {"number": 2}, by="dana")
    keep_example(make_tool(), "usual", {}, by="dana")
    monkeypatch.setattr(tool_trials, "MOST_EXAMPLES", 1)
    with pytest.raises(TooManyExamplesError, match="delete one first"):
        keep_example(row, "second", {}, by="dana")
    assert ToolExample.objects.filter(tool=row).get().arguments == {"number": 1}
