"""Sessions kept as scenarios, and rows of a turn as expectations."""

from datetime import timedelta

import pytest
from django.utils import timezone

from engine.expecting import (
    ArgumentExpectation,
    DecisionExpectation,
    GuidelineExpectation,
    HandedOverExpectation,
    ReplyContainsExpectation,
    ToolExpectation,
)
from engine.model.base import JudgingStyle
from engine.trail import DecisionState
from studio.models import RunCell, Scenario, Suite, SuiteRun, Turn, Variant
from studio.operations import proposals
from studio.operations.keeping import keep_at, keepable, places_for
from studio.operations.removal import delete_guideline
from studio.operations.scenarios import (
    ScenarioRefusedError,
    add_expectation,
    duplicate,
    end_quarantine,
    is_quarantined,
    keep_session,
    quarantine,
    read,
    recorded_calls,
    turns_said,
)
from studio.operations.suites import default_suite, move_scenario
from tests.studio.conversations import Recorded
from tests.studio.factories import make_customer

pytestmark = pytest.mark.django_db

FOUND = {"data": {"balance": 7}}


def made_call(recorded: Recorded, turn: Turn, uid: str) -> None:
    """A call that is on record as row and as event, as a worker leaves it."""
    arguments = {"account": "A-1", "day": None}
    recorded.call(turn, uid, arguments=arguments, result=FOUND)
    told = {"call": uid, "tool": "get_balance", "arguments": arguments, "data": FOUND["data"]}
    recorded.event(turn, "tool.finished", "system", **told)


def balance_session() -> Recorded:
    """Turn 1 asks for the balance, which a tool answers; turn 2 says thanks."""
    recorded = Recorded()
    turn = recorded.turn("What is my balance?")
    recorded.match(turn, 0)
    made_call(recorded, turn, "c1")
    recorded.decide(turn, "NEEDS_TO_RUN", call="c1")
    recorded.answer(turn, "It is 7 EUR.")
    recorded.answer(recorded.turn("Thanks"), "Goodbye.")
    return recorded


def a_suite(recorded: Recorded) -> Suite:
    return default_suite(recorded.agent)


def test_what_was_said_found_and_known_is_kept() -> None:
    recorded = balance_session()
    recorded.session.customer = make_customer(uid="ana", variables={"tier": "gold"})
    recorded.session.save()
    scenario = keep_session(recorded.session, a_suite(recorded), by="bee")
    assert scenario.messages == [{"text": "What is my balance?"}, {"text": "Thanks"}]
    assert scenario.results == [
        {
            "tool": "get_balance",
            "arguments": {"account": "A-1", "day": None},
            "result": FOUND,
            "said": [],
        }
    ]
    assert (scenario.customer_uid, scenario.variables) == ("ana", {"tier": "gold"})
    assert scenario.title == "What is my balance?"
    assert (scenario.kept_from, scenario.created_by) == (recorded.session, "bee")
    (call,) = recorded_calls(scenario)
    assert (call.tool, call.record.result) == ("get_balance", FOUND)


def test_variables_are_those_that_the_first_turn_ran_with() -> None:
    recorded = Recorded()
    recorded.session.customer = make_customer(variables={"tier": "gold"})
    recorded.session.save()
    ran_with = {
        "format": 1,
        "variables": {"tier": "silver"},
        "customer": "",
        "judging": "offline",
        "writing": "offline",
        "batch_size": 10,
        "judging_style": next(iter(JudgingStyle)).value,
    }
    recorded.turn("Hello", ran_with=ran_with)
    assert keep_session(recorded.session, a_suite(recorded)).variables == {"tier": "silver"}


def test_only_the_turns_up_to_the_chosen_one_are_kept() -> None:
    recorded = balance_session()
    made_call(recorded, recorded.turn("Again"), "c2")
    scenario = keep_session(recorded.session, a_suite(recorded), up_to=2)
    assert [message["text"] for message in scenario.messages] == ["What is my balance?", "Thanks"]
    assert len(scenario.results) == 1


def test_messages_of_one_turn_and_of_a_superseded_one_stay_together() -> None:
    recorded = Recorded()
    first = recorded.turn("My card", state="SUPERSEDED")
    recorded.event(first, "message", "customer", text="is")
    recorded.turn("lost")
    recorded.turn("Hello?")
    scenario = keep_session(recorded.session, a_suite(recorded))
    assert turns_said(scenario.messages) == [
        [{"text": "My card"}, {"text": "is"}, {"text": "lost"}],
        [{"text": "Hello?"}],
    ]
    # So what was expected in the session's turn 3 is of the scenario's turn 2.
    expectation = ReplyContainsExpectation(text="here", turn=3)
    kept = keep_at(recorded.session, f"{scenario.pk}", [expectation], turn=3)
    assert [read(row).turn for row in kept.expectations.all()] == [2]


def test_a_pressed_button_is_kept_and_an_answer_in_words_is_what_was_said() -> None:
    recorded = Recorded()
    recorded.turn("Send 50")
    pressed = recorded.turn("")
    pressed.events.all().delete()
    answer = {"call": "c1", "tool": "send", "answer": "confirmed"}
    recorded.event(pressed, "confirmation.answered", "customer", **answer)
    said = recorded.turn("Yes, do")
    recorded.event(said, "confirmation.answered", "customer", because="They agree.", **answer)
    messages = keep_session(recorded.session, a_suite(recorded)).messages
    assert messages == [
        {"text": "Send 50"},
        {"answer": "confirmed", "tool": "send"},
        {"text": "Yes, do"},
    ]


def test_results_are_as_a_variant_edits_them() -> None:
    recorded = balance_session()
    edits = [{"turn": 1, "call": "c1", "tool": "get_balance", "kind": "timeout", "data": None}]
    variant = Variant.objects.create(session=recorded.session, title="Late", edits=edits)
    scenario = keep_session(recorded.session, a_suite(recorded), variant=variant)
    assert scenario.results[0]["error"]["kind"] == "timeout"
    assert "result" not in scenario.results[0]
    error = recorded_calls(scenario)[0].record.error
    assert error is not None
    assert error.kind == "timeout"


def test_a_session_without_words_and_a_foreign_suite_are_refused() -> None:
    recorded, other = Recorded(), Recorded()
    with pytest.raises(ScenarioRefusedError, match="said nothing"):
        keep_session(recorded.session, a_suite(recorded))
    other.turn("Hello")
    with pytest.raises(ScenarioRefusedError, match="another agent") as refusal:
        keep_session(other.session, a_suite(recorded))
    assert refusal.value.field == "suite"


def test_a_matched_guideline_must_match_and_a_silent_one_must_not() -> None:
    recorded = balance_session()
    turn = recorded.session.turns.get(number=2)
    recorded.match(turn, 0, "not_matched")
    uid = recorded.uid()
    for number, matches in ((1, True), (2, False)):
        record = proposals.record_of(recorded.session, number)
        assert record is not None
        first, always = proposals.of_guideline(record, uid)
        wanted = GuidelineExpectation(guideline=uid, matches=matches, turn=number)
        assert (first.expectation, first.likely) == (wanted, True)
        assert (always.expectation.turn, always.likely) == (None, False)
        assert proposals.of_guideline(record, "nobody") == []


def test_a_call_must_run_with_exactly_the_arguments_that_it_was_given() -> None:
    recorded = balance_session()
    record = proposals.record_of(recorded.session, 1)
    assert record is not None
    exact, loose, never = (one.expectation for one in proposals.of_call(record, "c1"))
    argument = ArgumentExpectation(name="account", value="A-1")  # the day was left empty
    assert exact == ToolExpectation(tool="get_balance", turn=1, arguments=(argument,))
    assert loose == ToolExpectation(tool="get_balance", turn=1)
    assert never == ToolExpectation(tool="get_balance", turn=1, runs=False)
    assert proposals.of_decision(record, 1) == proposals.of_call(record, "c1")
    assert proposals.of_decision(record, 2) == []


def test_a_decision_that_kept_a_tool_from_running_is_expected_as_it_is() -> None:
    recorded = Recorded()
    turn = recorded.turn()
    recorded.match(turn, 0)
    recorded.decide(turn, "CANNOT_RUN", missing=["account"])
    record = proposals.record_of(recorded.session, 1)
    assert record is not None
    first = proposals.of_decision(record, 1)[0].expectation
    assert first == DecisionExpectation(
        tool="get_balance", state=DecisionState.CANNOT_RUN, guideline=recorded.uid(), turn=1
    )


def test_of_a_whole_session_what_was_decided_is_proposed() -> None:
    recorded = balance_session()
    turn = recorded.turn("A person please")
    recorded.event(turn, "mode", "system", mode="manual", tool="")
    found = [one.expectation for one in proposals.of_session(recorded.session)]
    argument = ArgumentExpectation(name="account", value="A-1")
    assert found == [
        GuidelineExpectation(guideline=recorded.uid(), turn=1),
        ToolExpectation(tool="get_balance", turn=1, arguments=(argument,)),
        HandedOverExpectation(turn=3),
    ]


def test_what_the_draft_no_longer_has_is_told_apart() -> None:
    recorded = balance_session()
    offered = proposals.of_session(recorded.session)
    delete_guideline(recorded.agent.guidelines.get())
    can, cannot = keepable(recorded.session, offered)
    assert [one.expectation.kind for one in can] == ["tool"]
    assert [one.expectation.kind for one in cannot] == ["guideline"]


def test_the_first_thing_that_is_kept_makes_the_first_suite() -> None:
    recorded = balance_session()
    (place,) = places_for(recorded.session, turn=1)
    assert (place.suite, place.name) == (None, "new")
    expectation = GuidelineExpectation(guideline=recorded.uid(), turn=1)
    scenario = keep_at(recorded.session, "new", [expectation], turn=1, because="So.", by="bee")
    assert scenario.suite.name == "Regression"
    assert scenario.messages == [{"text": "What is my balance?"}]
    (row,) = scenario.expectations.all()
    assert (read(row), row.because, row.created_by) == (expectation, "So.", "bee")


def test_a_later_row_of_the_same_session_lets_its_scenario_go_on() -> None:
    recorded = balance_session()
    first = GuidelineExpectation(guideline=recorded.uid(), turn=1)
    scenario = keep_at(recorded.session, "new", [first], turn=1)
    kept = places_for(recorded.session, turn=2)[0]
    assert kept.scenario == scenario
    later = ReplyContainsExpectation(text="Goodbye", turn=2)
    keep_at(recorded.session, kept.name, [later], turn=2)
    scenario.refresh_from_db()
    assert len(scenario.messages) == 2
    assert [read(row) for row in scenario.expectations.all()] == [first, later]
    # The same once more is no other expectation.
    keep_at(recorded.session, kept.name, [later], turn=2)
    assert scenario.expectations.count() == 2


def test_a_rewritten_scenario_is_no_place_for_its_session_any_more() -> None:
    recorded = balance_session()
    scenario = keep_session(recorded.session, a_suite(recorded))
    Scenario.objects.filter(pk=scenario.pk).update(messages=[{"text": "Something else"}])
    assert [place.scenario for place in places_for(recorded.session, turn=1)] == [None]
    with pytest.raises(ScenarioRefusedError, match="Choose where"):
        keep_at(recorded.session, str(scenario.pk), [], turn=1)


@pytest.mark.parametrize(
    ("expectation", "field", "said"),
    [
        (GuidelineExpectation(guideline="gone"), "guideline", "no guideline 'gone'"),
        (ToolExpectation(tool="get_balanse"), "tool", "Did you mean “get_balance”"),
        (DecisionExpectation(tool="x", state=DecisionState.CANNOT_RUN), "tool", "no tool “x”"),
        (ReplyContainsExpectation(text="a", turn=3), "turn", "has 2 turns, not 3"),
    ],
)
def test_an_expectation_that_fits_neither_agent_nor_scenario_is_refused(
    expectation: ReplyContainsExpectation, field: str, said: str
) -> None:
    recorded = balance_session()
    scenario = keep_session(recorded.session, a_suite(recorded))
    with pytest.raises(ScenarioRefusedError, match=said) as refusal:
        add_expectation(scenario, expectation)
    assert refusal.value.field == field
    assert not scenario.expectations.exists()


def test_a_copy_has_the_expectations_but_not_the_quarantine() -> None:
    recorded = balance_session()
    scenario = keep_session(recorded.session, a_suite(recorded))
    add_expectation(scenario, ReplyContainsExpectation(text="7"), because="The balance.")
    quarantine(scenario, until=timezone.localdate() + timedelta(days=3), reason="Flaky.")
    copy = duplicate(scenario, by="bee")
    assert copy.uid != scenario.uid
    assert copy.title == "What is my balance? (copy)"
    assert [row.because for row in copy.expectations.all()] == ["The balance."]
    assert copy.quarantined_until is None
    assert scenario.expectations.count() == 1


def test_a_quarantine_ends_after_its_last_day_and_lasts_ninety_at_most() -> None:
    recorded = balance_session()
    scenario = keep_session(recorded.session, a_suite(recorded))
    today = timezone.localdate()
    for days in (-1, 0, 91):
        with pytest.raises(ScenarioRefusedError, match="from tomorrow on"):
            quarantine(scenario, until=today + timedelta(days=days), reason="Flaky.")
    with pytest.raises(ScenarioRefusedError, match="Say why"):
        quarantine(scenario, until=today + timedelta(days=90), reason=" ")
    quarantine(scenario, until=today + timedelta(days=90), reason="Flaky.")
    assert is_quarantined(scenario)
    scenario.quarantined_until = today
    assert is_quarantined(scenario)
    scenario.quarantined_until = today - timedelta(days=1)
    assert not is_quarantined(scenario)
    end_quarantine(scenario)
    assert scenario.quarantine_reason == ""


def test_scenarios_change_places() -> None:
    recorded = balance_session()
    suite = a_suite(recorded)
    first, second, third = (keep_session(recorded.session, suite, title=title) for title in "abc")
    assert move_scenario(third, down=False)
    assert not move_scenario(first, down=False)
    assert [row.title for row in suite.scenarios.all()] == ["a", "c", "b"]
    assert not move_scenario(second, down=True)


def test_a_run_of_a_scenario_is_kept_in_that_scenario() -> None:
    recorded = balance_session()
    scenario = keep_session(recorded.session, a_suite(recorded))
    Scenario.objects.update(kept_from=None)
    assert places_for(recorded.session, turn=1)[0].scenario is None
    run = SuiteRun.objects.create(suite=scenario.suite)
    version = recorded.session.turns.get(number=1).version
    cell = RunCell(run=run, scenario=scenario.uid, version=version, repeat=1)
    cell.session = recorded.session
    cell.save()
    assert places_for(recorded.session, turn=1)[0].scenario == scenario
