"""Runs of suites: conversations had anew, checked, repeated; verdicts; stopped, lost, capped and gone on with."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from engine.brief_faults import Does
from engine.errors import ModelError, ModelErrorKind
from engine.expecting import (
    GuidelineExpectation,
    HandedOverExpectation,
    JudgedExpectation,
    NoPromiseExpectation,
    ReplyContainsExpectation,
    ToolExpectation,
    Verdict,
)
from engine.testing import Expected, holds, infers, keeps_to_brief, matches, plays, replies
from engine.tools.base import ToolResult
from studio.models import JobState, RunCell, Session, SuiteRun, Turn
from studio.operations import lanes
from studio.operations.agents import publish, save_guideline
from studio.operations.branches import branch_from
from studio.operations.suite_runs import (
    CREW,
    RunRefusedError,
    newest_run,
    retry_failed,
    start_run,
)
from studio.operations.versions import version_named
from studio.run_reports import ScenarioReport, report
from tests.studio.factories import make_agent, make_customer, make_tool
from tests.studio.tested_bank import BALANCE, Bank, cells_of, play, ran

pytestmark = pytest.mark.django_db


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, db: None) -> Bank:
    return Bank(monkeypatch)


def scenarios(run: SuiteRun) -> dict[str, ScenarioReport]:
    """By title, of a run against one version."""
    return {one.title: one for one in report(run).versions[0].scenarios}


def only(run: SuiteRun) -> ScenarioReport:
    (found,) = scenarios(run).values()
    return found


# --- Verdicts


def test_a_seeded_failure_and_a_flaky_scenario_are_told_from_what_passes(bank: Bank) -> None:
    bank.seed()
    run = ran(bank.suite, repeats=4)

    assert (run.state, run.verdict, run.total) == ("finished", "failed", 12)
    found = scenarios(run)
    assert [one.verdict for one in found.values()] == ["passed", "failed", "flaky"]
    flaky = found["Flaky"].expectations[1]
    assert (flaky.held, flaky.of, flaky.verdict) == (2, 4, "flaky")
    assert found["Flaky"].expectations[0].verdict is Verdict.PASSED
    assert found["Flaky"].passed_times == 2
    assert [one.value for one in found["Flaky"].failing_aspects] == ["wording"]
    assert [one.value for one in found["Fails"].failing_aspects] == ["decisions"]
    because = found["Fails"].expectations[0].instead[0][1].because
    assert because.startswith("G1 did not match")
    assert report(run).counted == {
        "passed": 1, "failed": 1, "flaky": 1, "invalid": 0, "quarantined": 0,
    }  # fmt: skip


def test_an_expectation_that_holds_often_enough_passes(bank: Bank) -> None:
    bank.seed()
    flaky = bank.suite.scenarios.get(title="Flaky")
    row = flaky.expectations.get(data__kind="reply_contains")
    row.data |= {"at_least": 2}
    row.save()
    run = ran(bank.suite, repeats=4, scenarios=[flaky.uid])
    assert (run.verdict, only(run).expectations[1].held) == ("passed", 2)


def test_conversations_are_kept_as_sessions_of_tests_with_their_turns(bank: Bank) -> None:
    bank.seed()
    run = ran(bank.suite)
    kept = Session.objects.filter(pk__in=run.cells.values("session"))
    assert {one.purpose for one in kept} == {"test"}
    assert sorted(one.title for one in kept) == ["Fails", "Flaky", "Passes"]
    turn = Turn.objects.get(session__title="Flaky")
    assert (turn.state, turn.version, turn.tool_mode) == ("FINISHED", run.versions.get(), "live")
    assert turn.calls.get().tool == "get_balance"
    assert [c.duration_ms > 0 for c in run.cells.all()] == [True] * 3


def test_each_version_is_run_and_judged_by_itself(bank: Bank) -> None:
    publish(bank.agent, note="", by=None)
    bank.balance.condition = "the customer swears"
    save_guideline(bank.balance)
    bank.scenario("Balance", GuidelineExpectation(guideline="balance"), tools="recorded")

    run = ran(bank.suite, against=["published", "draft", "1"])

    found = report(run)
    assert [(one.label, one.verdict) for one in found.versions] == [
        (f"draft {version_named(bank.agent, 'draft').fingerprint[:8]}", "failed"),
        ("version 1", "passed"),
    ]
    assert run.verdict == "failed"
    assert run.total == 2  # version 1 once, though it was asked for twice
    assert newest_run(bank.suite, version_named(bank.agent, 1)) == run
    other = make_agent()
    assert newest_run(bank.suite, version_named(other, "draft")) is None


def test_a_report_stays_true_whatever_becomes_of_the_suite(bank: Bank) -> None:
    row = bank.scenario("Balance", GuidelineExpectation(guideline="thanks"))
    run = ran(bank.suite)
    before = only(run)
    row.delete()
    bank.thanks.delete()
    after = only(SuiteRun.objects.get(pk=run.pk))
    assert after == before
    assert "the customer says thanks" in after.expectations[0].sentence


def test_what_expects_nothing_is_invalid_and_so_is_the_run(bank: Bank) -> None:
    bank.scenario("Nothing")
    assert ran(bank.suite).verdict == "invalid"


# --- What the conversations consist of


def test_recorded_results_answer_and_tools_do_not_run(bank: Bank) -> None:
    kept = {"tool": "get_balance", "arguments": {}, "result": {"data": {"balance": 77}}, "said": []}
    bank.scenario("Kept", ReplyContainsExpectation(text="77"), tools="recorded", results=[kept])
    run = ran(bank.suite)
    assert (run.verdict, bank.tools.called) == ("passed", [])


def test_a_call_that_no_recorded_result_fits_is_unavailable(bank: Bank) -> None:
    expected = ToolExpectation(tool="get_balance"), ReplyContainsExpectation(text="77")
    bank.scenario("Unkept", *expected, tools="recorded", results=[])
    run = ran(bank.suite)
    call = Turn.objects.get(session__purpose="test").calls.get()
    assert (call.state, call.error["kind"]) == ("failed", "unavailable")
    assert "no recorded result" in call.error["detail"]
    assert (run.verdict, bank.tools.called) == ("failed", [])


def test_live_tools_run_but_never_those_that_change_something(bank: Bank) -> None:
    bank.tool.consequential, bank.tool.confirm = True, "inferred"
    bank.tool.save()
    save_guideline(bank.balance)
    bank.answers(get_balance=lambda _a, _c: {"balance": 1})
    bank.scenario("Balance", ToolExpectation(tool="get_balance"))
    run = ran(bank.suite)
    assert bank.tools.called == []
    call = Turn.objects.get(session__purpose="test").calls.get()
    assert (call.state, call.served) == ("failed", "recorded")
    assert run.verdict == "passed"  # the call was made; the recording stood in for it


def test_a_button_answers_the_call_that_waits(bank: Bank) -> None:
    move = make_tool(bank.agent, name="move", parameters=[], consequential=True)
    save_guideline(bank.balance, tools=[move])
    bank.scenario(
        "Button",
        ToolExpectation(tool="move", turn=2),
        messages=[{"text": "Move it"}, {"answer": "confirmed", "tool": "move"}],
        tools="recorded",
        results=[{"tool": "move", "arguments": {}, "result": {"data": "moved"}, "said": []}],
    )
    bank.script(
        matches("G1"), infers("move", {}), replies("Shall I move it?"), matches("G1"),
        replies("It is moved."),
    )  # fmt: skip
    run = ran(bank.suite)
    assert only(run).expectations[0].outcomes[0][1].because == "move ran."
    assert (run.verdict, run.cells.get().ended_by) == ("passed", "script")
    pressed = Session.objects.get().events.get(kind="confirmation.answered")
    assert (pressed.data["answer"], pressed.source, pressed.turn.number) == (
        "confirmed", "customer", 2,
    )  # fmt: skip


def test_a_button_that_nothing_waits_for_ends_the_conversation(bank: Bank) -> None:
    bank.scenario(
        "Button",
        ToolExpectation(tool="get_balance", turn=2),
        messages=[{"text": "Hello"}, {"answer": "confirmed", "tool": ""}, {"text": "And?"}],
    )
    run = ran(bank.suite)
    cell = run.cells.get()
    assert (cell.ended_by, cell.session.next_turn) == ("unasked", 2)
    assert "only 1 turn" in only(run).expectations[0].outcomes[0][1].because


def test_several_messages_of_one_turn_stay_together(bank: Bank) -> None:
    messages = [{"text": "Hello"}, {"text": BALANCE, "together": True}, {"text": "Thanks"}]
    bank.scenario(
        "Two at once", GuidelineExpectation(guideline="balance", turn=1), messages=messages
    )
    bank.answers(get_balance=lambda _a, _c: {"balance": 1})
    run = ran(bank.suite)
    assert (run.verdict, run.cells.get().session.next_turn) == ("passed", 3)


def test_a_session_that_is_handed_over_ends_there(bank: Bank) -> None:
    bank.answers(
        get_balance=lambda _a, _c: ToolResult(data={"balance": 1}, control={"mode": "manual"})
    )
    bank.scenario("Over", HandedOverExpectation(), say=(BALANCE, "Are you there?"))
    run = ran(bank.suite)
    cell = run.cells.get()
    assert (run.verdict, cell.ended_by) == ("passed", "handed_over")
    assert (cell.session.next_turn, cell.session.mode) == (2, "manual")


def test_the_agent_knows_the_customer_and_the_variables_of_the_scenario(bank: Bank) -> None:
    customer = make_customer(name="Ada", variables={"tier": "basic"})
    seen = []

    def get_balance(_arguments: Any, context: Any) -> dict[str, int]:
        seen.append((context.customer_id, dict(context.variables)))
        return {"balance": 1}

    bank.answers(get_balance=get_balance)
    bank.scenario(
        "Known",
        ToolExpectation(tool="get_balance"),
        customer_uid=customer.uid,
        variables={"tier": "gold"},
    )
    run = ran(bank.suite)
    assert seen == [(customer.uid, {"tier": "gold"})]
    assert run.cells.get().session.customer == customer
    turn = Turn.objects.get(session__purpose="test")
    assert turn.ran_with["variables"] == {"tier": "gold"}


def test_replies_are_judged_by_the_model_and_its_tokens_count(bank: Bank) -> None:
    bank.scenario(
        "Judged",
        JudgedExpectation(statement="The reply is friendly."),
        NoPromiseExpectation(text="a refund"),
    )
    bank.answers(get_balance=lambda _a, _c: {"balance": 1})
    bank.script(
        matches("G1"), infers("get_balance", {}), replies("You have 1."), holds(True), holds(True)
    )
    run = ran(bank.suite)
    found = only(run).expectations
    assert [one.verdict for one in found] == ["passed", "failed"]
    assert [call["question"] for call in run.cells.get().model_calls] == ["JudgeStatement"] * 2


# --- A simulated customer


BRIEF = {"persona": "In a hurry.", "goal": "Learn the balance.", "stop": "", "turns": 3}


def simulated(bank: Bank, *expected: Expected) -> SuiteRun:
    bank.answers(get_balance=lambda _a, _c: {"balance": 1})
    bank.scenario(
        "Simulated",
        ToolExpectation(tool="get_balance"),
        kind="simulated",
        messages=[],
        brief=BRIEF,
    )
    bank.script(*expected)
    return ran(bank.suite)


TURN = (matches("G1"), infers("get_balance", {}), replies("You have 1."))


def test_a_simulated_customer_speaks_until_they_are_done(bank: Bank) -> None:
    done = Expected(
        question="PlayCustomer", answer={"because": "I know it.", "message": "", "done": True}
    )
    run = simulated(bank, plays("My balance?"), *TURN, done, keeps_to_brief())
    cell = run.cells.get()
    assert (run.verdict, cell.ended_by, cell.session.next_turn) == ("passed", "done", 2)
    asked = [call["question"] for call in cell.model_calls]
    assert asked == ["PlayCustomer", "PlayCustomer", "JudgeCustomer"]


def test_a_conversation_that_its_customer_spoiled_is_invalid_and_says_why(bank: Bank) -> None:
    done = Expected(question="PlayCustomer", answer={"because": "", "message": "", "done": True})
    sang = keeps_to_brief(Does.STRAYS)
    run = simulated(bank, plays("Sing!"), matches(), replies("La."), done, sang)
    why = "The customer asks for something else than the goal: “Sing!”."
    cell = run.cells.get()
    assert (run.verdict, cell.invalid, cell.outcomes) == ("invalid", why, [])
    found = only(run)
    assert (found.verdict, found.expectations[0].outcomes[0][1].because) == (
        "invalid",
        why,
    )


def test_a_customer_that_cannot_be_simulated_says_nothing_of_the_agent(bank: Bank) -> None:
    down = ModelError("Nobody answers.", kind=ModelErrorKind.UNREACHABLE, retryable=False)
    run = simulated(bank, Expected(question="PlayCustomer", answer=down))
    cell = run.cells.get()
    assert "Nobody answers." in cell.error
    assert run.verdict == "invalid"  # and not failed, though the tool did not run


# --- What goes wrong


def test_a_model_that_fails_in_the_middle_leaves_what_is_missing_untold(bank: Bank) -> None:
    bank.scenario(
        "Broken",
        GuidelineExpectation(guideline="thanks", turn=1),
        GuidelineExpectation(guideline="balance", turn=2),
        say=("Thanks", BALANCE),
    )
    down = ModelError("The server is full.", kind=ModelErrorKind.UNREACHABLE, retryable=False)
    bank.script(
        matches("G2"), replies("Welcome."), Expected(question="MatchGuidelines", answer=down)
    )
    run = ran(bank.suite)
    found = only(run)
    assert (found.verdict, found.cells[0].problem) == ("invalid", "The server is full.")
    assert [one.verdict for one in found.expectations] == ["invalid", "invalid"]
    assert run.cells.get().session.next_turn == 3  # what was had of it can be read


def test_what_breaks_while_playing_is_told_of_that_conversation_alone(bank: Bank) -> None:
    broken = bank.scenario("Broken", GuidelineExpectation(guideline="thanks"))
    broken.expectations.update(data={"kind": "telepathy"})
    bank.scenario("Whole", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    run = ran(bank.suite)
    found = scenarios(run)
    assert found["Broken"].verdict is Verdict.INVALID
    assert "telepathy" in found["Broken"].cells[0].problem
    assert found["Whole"].verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("chosen", "field", "words"),
    [
        ({"against": []}, "against", "at least one version"),
        ({"against": ["9"]}, "against", "no version 9"),
        ({"against": ["published"]}, "against", "no published version yet"),
        ({"repeats": 0}, "repeats", "1 to 20"),
        ({"repeats": 21}, "repeats", "1 to 20"),
        ({"cap": -1}, "cap", "0 for none"),
        ({"scenarios": ["nope"]}, "scenarios", "no scenario 'nope'"),
        ({"scenarios": []}, "scenarios", "at least one scenario"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_field(
    bank: Bank, chosen: dict[str, Any], field: str, words: str
) -> None:
    bank.scenario("Balance")
    with pytest.raises(RunRefusedError, match=words) as refused:
        start_run(bank.suite, **chosen)
    assert refused.value.field == field
    assert not SuiteRun.objects.exists()


def test_a_suite_without_scenarios_is_refused(bank: Bank) -> None:
    with pytest.raises(RunRefusedError, match="no scenario yet"):
        start_run(bank.suite)


# --- Quarantine


@pytest.mark.parametrize(("days", "verdict"), [(0, "passed"), (3, "passed"), (-1, "failed")])
def test_failures_in_quarantine_are_told_and_count_only_after_its_last_day(
    bank: Bank, days: int, verdict: str
) -> None:
    until = timezone.localdate() + timedelta(days=days)
    bank.scenario("Passes", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    bank.scenario(
        "Fails",
        GuidelineExpectation(guideline="thanks"),
        quarantined_until=until,
        quarantine_reason="Known.",
    )
    run = ran(bank.suite)
    assert run.verdict == verdict
    failing = scenarios(run)["Fails"]
    assert failing.verdict is Verdict.FAILED
    assert failing.quarantined == (until if days >= 0 else None)
    counted = report(run).counted
    assert (counted["quarantined"], counted["failed"]) == ((1, 0) if days >= 0 else (0, 1))


# --- Held, lost, capped, run again


def test_a_paused_run_begins_nothing_and_goes_on_with_what_is_left(bank: Bank) -> None:
    bank.seed()
    run = start_run(bank.suite, enqueue=False)
    CREW.batches.claim(run.pk)
    lanes._work(CREW, run)
    assert lanes.pause(run)
    assert not lanes.pause(run)
    play(run)
    assert run.cells.over().count() == 1
    done = run.cells.over().get()

    assert lanes.go_on(CREW, run)
    play(run)

    assert (run.state, run.cells.over().count()) == ("finished", 3)
    again = RunCell.objects.get(pk=done.pk)
    assert (again.finished_at, again.session_id) == (done.finished_at, done.session_id)


def test_what_a_killed_worker_had_begun_is_had_anew_and_nothing_finished_is(bank: Bank) -> None:
    bank.seed()
    run = start_run(bank.suite, enqueue=False)
    CREW.batches.claim(run.pk)
    lanes._work(CREW, run)
    done = run.cells.over().get()
    lost = run.cells.waiting().first()
    assert lost is not None
    assert CREW.cells.claim([lost.pk]) == [lost.pk]
    half = Session.objects.create(agent=bank.agent, purpose="test", title="half of it")
    long_ago = timezone.now() - timedelta(minutes=1)
    RunCell.objects.filter(pk=lost.pk).update(session=half, heartbeat_at=long_ago)
    SuiteRun.objects.filter(pk=run.pk).update(heartbeat_at=long_ago)

    lanes.sweep_batches()
    play(run)

    assert run.state == "finished"
    assert not Session.objects.filter(pk=half.pk).exists()
    again = RunCell.objects.get(pk=done.pk)
    assert (again.finished_at, again.session_id) == (done.finished_at, done.session_id)
    assert Session.objects.filter(purpose="test").count() == 3


def test_a_worker_taken_for_dead_writes_nothing_and_leaves_no_session(bank: Bank) -> None:
    bank.scenario("Balance", ToolExpectation(tool="get_balance"))
    run = start_run(bank.suite, enqueue=False)
    CREW.batches.claim(run.pk)
    key = run.cells.get().pk
    CREW.cells.claim([key])
    hand = lanes.Hand(CREW, run, [key])
    lanes.release(run.cells.all())
    CREW.play(run, [key], hand)
    cell = run.cells.get()
    assert (cell.state, cell.outcomes, Session.objects.count()) == ("waiting", [], 0)


@pytest.mark.django_db(transaction=True)
def test_cancelling_ends_a_conversation_and_the_rest_can_be_run_later(
    bank: Bank,
) -> None:
    begun = threading.Event()

    async def slow(_arguments: Any, _context: Any) -> dict[str, int]:
        begun.set()
        await asyncio.sleep(3600)
        return {"balance": 1}

    bank.answers(get_balance=slow)
    bank.scenario("Slow", ToolExpectation(tool="get_balance"))
    run = start_run(bank.suite, enqueue=False)
    working = threading.Thread(target=lanes._stay, args=[CREW, run.pk])
    working.start()
    assert begun.wait(10)

    assert lanes.cancel(CREW, run)
    working.join(30)
    assert not working.is_alive()
    run.refresh_from_db()
    assert (run.state, run.verdict, Session.objects.count()) == ("stopped", "", 0)
    assert not lanes.cancel(CREW, run)

    bank.answers(get_balance=lambda _a, _c: {"balance": 1})
    assert lanes.go_on(CREW, run)
    play(run)
    assert (run.state, run.verdict) == ("finished", "passed")


def test_a_cap_stops_before_it_is_passed_and_gives_no_verdict(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    run = start_run(bank.suite, repeats=5, cap=1_000, enqueue=False)
    spend(monkeypatch, tokens=400)
    play(run)
    assert (run.state, run.capped, run.verdict) == ("stopped", True, "")
    assert lanes.spent(CREW, run) == 800
    assert run.cells.over().count() == 2

    assert lanes.go_on(CREW, run, cap=0)
    play(run)
    assert (run.state, run.capped, run.verdict) == ("finished", False, "passed")
    assert run.cells.over().count() == 5


def test_what_a_first_conversation_would_use_beyond_the_cap_is_not_begun(bank: Bank) -> None:
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    run = start_run(bank.suite, cap=1_000, enqueue=False)
    run.scenarios[0]["tokens"] = 4_300
    run.save()
    play(run)
    assert (run.state, run.capped, run.cells.over().count()) == ("stopped", True, 0)


def spend(monkeypatch: pytest.MonkeyPatch, *, tokens: int) -> None:
    """Each conversation uses so many."""
    from studio.operations import scenario_play

    monkeypatch.setattr(scenario_play.Had, "prompt_tokens", property(lambda _had: tokens))


def test_only_what_did_not_pass_is_run_again_and_the_report_says_so(bank: Bank) -> None:
    bank.seed()
    run = ran(bank.suite, repeats=2)
    before = {cell.pk: cell for cell in run.cells.all()}
    failed = [cell.pk for cell in cells_of(run, "Fails")]
    sessions = Session.objects.filter(purpose="test").count()

    assert retry_failed(run, enqueue=False)
    assert (run.state, run.verdict, run.cells.waiting().count()) == ("queued", "", 3)
    play(run)

    assert run.state == "finished"
    for cell in cells_of(run, "Passes"):
        assert cell.session_id == before[cell.pk].session_id
    for cell in cells_of(run, "Fails"):
        assert cell.pk in failed
        assert cell.session_id != before[cell.pk].session_id
    assert Session.objects.filter(purpose="test").count() == sessions
    assert [cell.retried for cell in scenarios(run)["Fails"].cells] == [1, 1]
    assert [cell.retried for cell in scenarios(run)["Passes"].cells] == [0, 0]


def test_a_conversation_that_somebody_goes_on_from_stays_when_it_is_run_again(bank: Bank) -> None:
    bank.scenario("Fails", GuidelineExpectation(guideline="thanks"), say=("Hello",))
    run = ran(bank.suite)
    kept = run.cells.get().session
    assert kept is not None
    branch_from(kept, 1)
    assert retry_failed(run, enqueue=False)
    play(run)
    assert run.cells.get().session != kept
    assert Session.objects.filter(pk=kept.pk).exists()


def test_nothing_is_run_again_while_it_goes_on_or_where_all_passed(bank: Bank) -> None:
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    run = start_run(bank.suite, enqueue=False)
    assert not retry_failed(run, enqueue=False)
    play(run)
    assert run.state == JobState.FINISHED
    assert not retry_failed(run, enqueue=False)
