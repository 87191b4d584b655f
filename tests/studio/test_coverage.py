"""Which guidelines and tools are put to the proof, which tests are missing, and how an agent's suites stand."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.expecting import (
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    OrderExpectation,
    ToolExpectation,
    Verdict,
)
from engine.trail import DecisionState
from studio.coverage import Heat, Missing, Source, Standing, coverage_of, heats_of
from studio.coverage_turns import turns_of
from studio.guards import Guards, ScenarioKey, guards_of, share_of
from studio.missing_tests import matching_test, silent_test, tool_test
from studio.models import Agent, Guideline, GuidelineMatch, JobState, Session, Suite
from studio.models import Expectation as ExpectationRow
from studio.suite_status import newest_runs, status_of, verdicts_by_scenario
from tests.studio.conversations import Recorded
from tests.studio.factories import make_agent, make_guideline, make_tool
from tests.studio.played_suites import make_played, make_run, make_scenario, make_suite, play

pytestmark = pytest.mark.django_db

FIRED, SILENT, DROPPED = {"refund": "matched"}, {"refund": "not_matched"}, {"refund": "dropped"}


@pytest.fixture
def agent() -> Agent:
    agent = make_agent()
    make_guideline(agent, uid="refund", tools=[make_tool(agent, name="check_order")])
    return agent


@pytest.fixture
def suite(agent: Agent) -> Suite:
    return make_suite(agent)


def refund(agent: Agent, source: Source = Source.RUNS) -> Standing:
    return next(one for one in coverage_of(agent, source).standings if one.uid == "refund")


def must(uid: str = "refund", **more: Any) -> GuidelineExpectation:
    return GuidelineExpectation(guideline=uid, **more)


def must_not(uid: str = "refund") -> GuidelineExpectation:
    return GuidelineExpectation(guideline=uid, matches=False)


# --- What a run put to the proof


def test_a_guideline_fired_where_it_was_in_force_at_the_end_of_a_turn(
    agent: Agent, suite: Suite
) -> None:
    scenario = make_scenario(suite)
    play(make_run(suite), scenario, SILENT, FIRED)
    assert (refund(agent).fired, refund(agent).silent) == (True, True)


def test_what_was_judged_again_counts_as_it_stood_at_the_end(agent: Agent, suite: Suite) -> None:
    scenario = make_scenario(suite)
    cell = play(make_run(suite), scenario, FIRED)
    turn = cell.session.turns.get()
    GuidelineMatch.objects.create(
        turn=turn, guideline="refund", state="dropped", iteration=2, started_at=timezone.now()
    )
    assert (refund(agent).fired, refund(agent).silent) == (False, True)
    columns = coverage_of(agent, Source.RUNS).record.columns
    assert heats_of(columns, ["refund"])["refund", columns[0].key] == Heat(dropped=1)


def test_only_the_newest_finished_run_of_a_suite_counts(agent: Agent, suite: Suite) -> None:
    scenario = make_scenario(suite)
    play(make_run(suite), scenario, FIRED)
    assert refund(agent).fired
    newer = make_run(suite)
    play(newer, scenario, SILENT)
    play(make_run(suite, state=JobState.RUNNING, finished_at=None), scenario, FIRED)
    play(make_run(suite, state=JobState.STOPPED), scenario, FIRED)
    found = coverage_of(agent, Source.RUNS)
    assert [run.pk for run in found.record.runs] == [newer.pk]
    assert not refund(agent).fired


def test_suites_add_up_and_other_agents_do_not_count(agent: Agent, suite: Suite) -> None:
    play(make_run(suite), make_scenario(suite), SILENT)
    other = make_suite(agent)
    play(make_run(other), make_scenario(other), FIRED)
    elsewhere = make_agent()
    make_guideline(elsewhere, uid="refund")
    strange = make_suite(elsewhere)
    play(make_run(strange), make_scenario(strange), {"refund": "matched"})
    assert (refund(agent).fired, refund(agent).silent) == (True, True)
    assert len(coverage_of(agent, Source.RUNS).record.columns) == 2
    assert not refund(elsewhere).silent


@pytest.mark.parametrize("why", [{"invalid": "It gave up its brief."}, {"error": "No model."}])
def test_a_conversation_that_says_nothing_of_the_agent_does_not_count(
    agent: Agent, suite: Suite, why: dict[str, str]
) -> None:
    play(make_run(suite), make_scenario(suite), FIRED, **why)
    assert not refund(agent).fired


def test_chats_and_replays_do_not_count_as_runs(agent: Agent, suite: Suite) -> None:
    make_scenario(suite)
    version = make_run(suite).versions.get()
    make_played(agent, version, [FIRED])
    make_played(agent, version, [FIRED], purpose=Session.Purpose.REPLAY)
    assert not refund(agent).fired


def test_repeats_stand_together_in_the_column_of_their_scenario(agent: Agent, suite: Suite) -> None:
    scenario = make_scenario(suite)
    run = make_run(suite)
    play(run, scenario, FIRED, SILENT, repeat=1)
    play(run, scenario, FIRED, DROPPED, repeat=2)
    found = coverage_of(agent, Source.RUNS)
    (column,) = found.record.columns
    heat = heats_of([column], ["refund"])["refund", column.key]
    assert heat == Heat(fired=2, silent=1, dropped=1)
    assert (heat.state, heat.turns) == ("fired", 2)
    assert found.record.repeats == found.record.repeats_read == 2


def test_of_very_many_conversations_the_first_repeats_are_read(
    agent: Agent, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.coverage.SESSIONS", 2)
    run = make_run(suite)
    for scenario in (make_scenario(suite), make_scenario(suite)):
        play(run, scenario, SILENT, repeat=1)
        play(run, scenario, FIRED, repeat=2)
    record = coverage_of(agent, Source.RUNS).record
    assert (record.repeats, record.repeats_read) == (2, 1)
    assert not refund(agent).fired


def test_a_scenario_that_was_deleted_since_has_no_column_and_counts_no_more(
    agent: Agent, suite: Suite
) -> None:
    scenario = make_scenario(suite)
    play(make_run(suite), scenario, FIRED)
    scenario.delete()
    assert coverage_of(agent, Source.RUNS).record.columns == ()
    assert not refund(agent).fired


def test_a_scenario_that_was_not_run_yet_has_an_empty_column(agent: Agent, suite: Suite) -> None:
    scenario = make_scenario(suite, title="New")
    (column,) = coverage_of(agent, Source.RUNS).record.columns
    assert (column.title, column.scenario, column.sessions) == (
        "New",
        ScenarioKey(suite.pk, scenario.uid),
        (),
    )


# --- Chats


def test_chats_of_the_last_30_days_count_and_older_ones_do_not(agent: Agent) -> None:
    recorded = Recorded(agent=agent)
    recorded.match(recorded.turn(), 0)
    assert refund(agent, Source.CHATS).fired
    long_ago = timezone.now() - timedelta(days=31)
    GuidelineMatch.objects.update(started_at=long_ago)
    Session.objects.update(last_event_at=long_ago)
    assert not refund(agent, Source.CHATS).fired
    assert coverage_of(agent, Source.CHATS).record.columns == ()


def test_what_tests_and_replays_made_fire_did_not_fire_in_a_chat(
    agent: Agent, suite: Suite
) -> None:
    play(make_run(suite), make_scenario(suite), FIRED, calls=["check_order"])
    found = coverage_of(agent, Source.CHATS)
    assert not refund(agent, Source.CHATS).fired
    assert [tool.name for tool in found.uncalled] == ["check_order"]
    assert found.record.columns == ()


# --- Tools


def test_a_tool_of_an_enabled_guideline_that_no_scenario_called_is_named(
    agent: Agent, suite: Suite
) -> None:
    make_guideline(agent, enabled=False, tools=[make_tool(agent, name="never_used")])
    make_guideline(agent, tools=[make_tool(agent, name="send_mail")])
    play(make_run(suite), make_scenario(suite), FIRED, calls=["check_order"])
    found = coverage_of(agent, Source.RUNS)
    assert [(tool.name, tool.called) for tool in found.tools] == [
        ("check_order", True),
        ("send_mail", False),
    ]


def test_a_call_that_was_cancelled_is_no_call(agent: Agent, suite: Suite) -> None:
    cell = play(make_run(suite), make_scenario(suite), FIRED, calls=["check_order"])
    cell.session.turns.get().calls.update(state="cancelled")
    assert [tool.name for tool in coverage_of(agent, Source.RUNS).uncalled] == ["check_order"]


# --- What expectations guard


def guards(agent: Agent, *expectations: Expectation) -> Guards:
    make_scenario(make_suite(agent), *expectations)
    return guards_of(agent)


def test_a_decision_under_a_guideline_expects_it_to_match(agent: Agent) -> None:
    decided = DecisionExpectation(
        tool="check_order", state=DecisionState.CANNOT_RUN, guideline="refund"
    )
    found = guards(agent, decided)
    assert set(found.positive) == {"refund"}
    assert set(found.tools) == {"check_order"}
    assert not found.negative


def test_what_names_no_guideline_and_no_tool_guards_nothing(agent: Agent) -> None:
    found = guards(agent, HandedOverExpectation(), OrderExpectation(tools=("check_order", "b")))
    assert set(found.tools) == {"check_order", "b"}
    assert not found.positive
    assert not found.negative


def test_an_expectation_that_nobody_can_read_guards_nothing(agent: Agent, suite: Suite) -> None:
    scenario = make_scenario(suite)
    ExpectationRow.objects.create(scenario=scenario, data={"kind": "guideline", "colour": "red"})
    assert not guards_of(agent).positive


def test_scenarios_guard_a_guideline_by_itself_or_by_its_tools_once_each(agent: Agent) -> None:
    suite = make_suite(agent)
    make_scenario(suite, must(), must_not(), ToolExpectation(tool="check_order"))
    make_scenario(suite, ToolExpectation(tool="check_order"))
    make_scenario(suite, must("other"))
    assert len(guards_of(agent).of("refund", ["check_order"])) == 2
    assert len(guards_of(agent).of("refund", [])) == 1


# --- How much is covered, and what is missing


def test_a_guideline_is_covered_by_a_test_that_it_matches_and_one_that_it_does_not(
    agent: Agent, suite: Suite
) -> None:
    make_guideline(agent, uid="greet", condition="")  # always
    make_guideline(agent, uid="off", enabled=False)
    make_guideline(agent, uid="other")
    assert share_of(agent, guards_of(agent)).percent == 0
    make_scenario(suite, must(), must("greet"), must("other"), must("off"))
    share = share_of(agent, guards_of(agent))
    assert (share.covered, share.enabled, share.percent) == (1, 3, 33)
    make_scenario(suite, must_not())
    share = share_of(agent, guards_of(agent))
    assert (share.covered, share.percent) == (2, 66)
    assert coverage_of(agent, Source.RUNS).share == share


def test_an_agent_without_enabled_guidelines_is_not_covered() -> None:
    agent = make_agent()
    make_guideline(agent, enabled=False)
    assert share_of(agent, guards_of(agent)).percent == 0


def test_what_is_missing_is_named_and_weighed(agent: Agent, suite: Suite) -> None:
    assert refund(agent).missing == (Missing.FIRED, Missing.POSITIVE, Missing.NEGATIVE)
    scenario = make_scenario(suite, must())
    without_run = refund(agent)
    assert without_run.missing == (Missing.FIRED, Missing.NEGATIVE)
    play(make_run(suite), scenario, FIRED)
    fired = refund(agent)
    assert fired.missing == (Missing.NEGATIVE,)
    make_scenario(suite, must_not())
    assert refund(agent).missing == ()
    assert without_run.need > fired.need > refund(agent).need == 0


def test_one_that_always_applies_needs_no_test_that_it_does_not(agent: Agent, suite: Suite) -> None:
    Guideline.objects.filter(uid="refund").update(condition="  ")
    make_scenario(suite, must())
    assert Missing.NEGATIVE not in refund(agent).missing


def test_one_that_is_switched_off_lacks_nothing(agent: Agent) -> None:
    Guideline.objects.filter(uid="refund").update(enabled=False)
    assert refund(agent).missing == ()


def test_an_observation_without_action_and_tools_is_told_apart(agent: Agent) -> None:
    make_guideline(agent, uid="seen", action="")
    found = coverage_of(agent, Source.RUNS)
    assert [one.uid for one in found.unseen_observations] == ["seen"]


# --- The turns behind a cell


def test_turns_are_listed_with_what_was_said_those_that_fired_first(
    agent: Agent, suite: Suite
) -> None:
    play(make_run(suite), make_scenario(suite), SILENT, DROPPED, FIRED)
    found = turns_of(coverage_of(agent, Source.RUNS).record.columns, "refund")
    assert [(turn.number, turn.state, turn.said) for turn in found] == [
        (3, "matched", "Message 3"),
        (2, "dropped", "Message 2"),
        (1, "not_matched", "Message 1"),
    ]
    assert found[0].because == "matched because."


# --- The missing test


def guideline(agent: Agent, **examples: Any) -> Guideline:
    found = make_guideline(agent, condition="the parcel is late", **examples)
    return agent.guidelines.select_related("agent").get(pk=found.pk)


def chat(agent: Agent, uid: str, state: str, *said: str) -> None:
    """A chat in whose last turn the guideline ended like this."""
    recorded = Recorded(agent=agent)
    for text in said:
        turn = recorded.turn(text)
    GuidelineMatch.objects.create(
        turn=turn, guideline=uid, state=state, started_at=timezone.now(), score=0.4
    )


def test_the_missing_test_says_an_example_of_the_guideline(agent: Agent) -> None:
    row = guideline(agent, matching=["Where is it?"], not_matching=["It came."])
    chat(agent, row.uid, "matched", "Hm.")
    assert matching_test(row).said == ("Where is it?",)
    assert matching_test(row).expectation == must(row.uid)
    assert silent_test(row).said == ("It came.",)
    assert silent_test(row).expectation == must_not(row.uid)


def test_without_an_example_it_says_what_was_said_in_the_newest_chat_where_it_fired(
    agent: Agent,
) -> None:
    row = guideline(agent)
    assert matching_test(row).said == ()
    chat(agent, row.uid, "dropped", "Nearly.")
    assert matching_test(row).said == ("Nearly.",)
    chat(agent, row.uid, "matched", "Hello", "It is late.")
    chat(agent, row.uid, "not_matched", "Bye")
    assert matching_test(row).said == ("Hello", "It is late.")


def test_that_it_does_not_match_is_said_where_it_was_dropped_or_came_closest(agent: Agent) -> None:
    row = guideline(agent)
    chat(agent, row.uid, "not_matched", "Close.")
    GuidelineMatch.objects.update(score=0.45)
    chat(agent, row.uid, "not_matched", "Far.")
    assert silent_test(row).said == ("Close.",)
    chat(agent, row.uid, "dropped", "Dropped.")
    assert silent_test(row).said == ("Dropped.",)


def test_what_tests_said_is_not_taken_for_a_chat(agent: Agent, suite: Suite) -> None:
    play(make_run(suite), make_scenario(suite), FIRED, calls=["check_order"])
    row = agent.guidelines.select_related("agent").get(uid="refund")
    assert matching_test(row).said == ()
    assert tool_test(agent, "check_order").said == ()


def test_the_test_of_a_tool_says_what_made_it_run_or_an_example_of_its_guideline(
    agent: Agent,
) -> None:
    make_guideline(agent, tools=[agent.tools.get()], matching=["Check my order."])
    assert tool_test(agent, "check_order").said == ("Check my order.",)
    recorded = Recorded(agent=agent)
    recorded.call(recorded.turn("Order 5?"), "c1", tool="check_order")
    found = tool_test(agent, "check_order")
    assert found.said == ("Order 5?",)
    assert found.expectation == ToolExpectation(tool="check_order")


def test_of_much_that_was_said_the_end_is_kept_so_that_an_address_can_carry_it(
    agent: Agent,
) -> None:
    row = guideline(agent)
    chat(agent, row.uid, "matched", "a" * 2_000, "b" * 2_000, "c" * 1_000)
    assert [text[0] for text in matching_test(row).said] == ["b", "c"]
    chat(agent, row.uid, "matched", "x" * 9_000)
    (only,) = matching_test(row).said
    assert 0 < len(only) < 9_000


def test_the_missing_test_stands_in_an_address_as_the_form_reads_it(agent: Agent) -> None:
    row = guideline(agent, matching=["Is it & late?"])
    read = parse_qs(matching_test(row).query)
    assert read["say"] == ["Is it & late?"]
    assert "the parcel is late" in read["title"][0]
    assert '"guideline"' in read["expect"][0]


# --- How suites stand


def test_failing_scenarios_of_the_newest_runs_are_counted(agent: Agent, suite: Suite) -> None:
    good, bad = make_scenario(suite, must()), make_scenario(suite, must(), title="Bad")
    uid = bad.expectations.get().uid
    play(make_run(suite, verdict=Verdict.FAILED), good, FIRED)
    run = make_run(suite, verdict=Verdict.FAILED)
    play(run, good, FIRED)
    play(run, bad, SILENT, failed=[uid])
    make_suite(agent, name="Z, never run")
    stands = status_of([agent])[agent.pk]
    assert [(one.run, [s.title for s in one.failing]) for one in stands.suites] == [
        (run, ["Bad"]),
        (None, []),
    ]
    assert (stands.failing, stands.passed) == (1, False)


def test_an_agent_passes_where_every_suite_was_run_and_passed(agent: Agent, suite: Suite) -> None:
    assert not status_of([agent])[agent.pk].passed
    play(make_run(suite), make_scenario(suite, must()), FIRED)
    assert status_of([agent])[agent.pk].passed
    make_suite(agent)
    assert not status_of([agent])[agent.pk].passed
    nobody = make_agent()
    assert not status_of([nobody])[nobody.pk].passed


def test_what_is_set_aside_is_not_counted_as_failing(agent: Agent, suite: Suite) -> None:
    aside = make_scenario(suite, must(), quarantined_until=timezone.localdate() + timedelta(days=3))
    other = make_scenario(suite, must(), title="Other")
    run = make_run(suite, verdict=Verdict.FAILED)
    for scenario in (aside, other):
        play(run, scenario, SILENT, failed=[scenario.expectations.get().uid])
    (stands,) = status_of([agent])[agent.pk].suites
    assert [one.title for one in stands.failing] == ["Other"]


def test_a_run_that_goes_on_is_told_beside_the_newest_finished_one(
    agent: Agent, suite: Suite
) -> None:
    play(make_run(suite), make_scenario(suite, must()), FIRED)
    running = make_run(suite, state=JobState.RUNNING, finished_at=None)
    (stands,) = status_of([agent])[agent.pk].suites
    assert stands.going_on == running
    assert stands.run is not None
    assert stands.run != running


def test_verdicts_are_found_by_suite_and_scenario(agent: Agent, suite: Suite) -> None:
    scenario = make_scenario(suite, must())
    play(make_run(suite), scenario, FIRED)
    found = verdicts_by_scenario(newest_runs([agent]))
    assert found[suite.pk, scenario.uid].verdict is Verdict.PASSED


# --- Queries


def test_much_of_it_takes_as_many_queries_as_little(agent: Agent, suite: Suite) -> None:
    counts = []
    for scenarios in (1, 8):
        for _ in range(scenarios):
            uid = make_guideline(agent, tools=[make_tool(agent)]).uid
            make_scenario(suite, must(uid), must_not(uid))
        run = make_run(suite, verdict=Verdict.FAILED)
        for scenario in suite.scenarios.all():
            ended = dict.fromkeys(agent.guidelines.values_list("uid", flat=True), "matched")
            play(run, scenario, ended, ended, calls=["check_order"])
        with CaptureQueriesContext(connection) as seen:
            found = coverage_of(agent, Source.RUNS)
            heats_of(found.record.columns, [one.uid for one in found.standings])
            turns_of(found.record.columns, "refund")
            status_of([agent])
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 22
