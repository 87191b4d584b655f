"""Expectations of a conversation: what holds, what fails, what cannot be told, and the sentence that says why."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Event, MessageEvent, Mode, ModeEvent, Source
from engine.expecting import (
    ArgumentExpectation,
    Aspect,
    BelowExpectation,
    Comparing,
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    JudgedExpectation,
    Measure,
    NoPromiseExpectation,
    OrderExpectation,
    Outcome,
    OutcomeState,
    ReplyContainsExpectation,
    ReplyMatchesExpectation,
    ToolExpectation,
    about,
    check,
    needs_model,
)
from engine.expecting.kinds import Checked
from engine.trail import CallState, DecisionState, MatchState, ModelCall, TrailEntry
from engine.turn_record import TurnRecord
from tests.engine.turn_records import NOON, called, decided, matched, model_call, record, replied

HELD, FAILED, UNKNOWN = OutcomeState.HELD, OutcomeState.FAILED, OutcomeState.UNKNOWN


def talk(*turns: Sequence[TrailEntry | Event], **options: Any) -> list[TurnRecord]:
    """A conversation whose turns, from 1 on, left these entries."""
    return [record(*entries, number=n, **options) for n, entries in enumerate(turns, start=1)]


def broken(turn: TurnRecord, error: str = "The model cannot be reached.") -> TurnRecord:
    return replace(turn, error=error)


def told(expectation: Checked, conversation: Sequence[TurnRecord]) -> tuple[OutcomeState, Any, str]:
    outcome = check(expectation, conversation)
    return outcome.state, outcome.turn, outcome.because


def state(expectation: Checked, *conversation: TurnRecord) -> OutcomeState:
    return check(expectation, conversation).state


ANY_CHECKED: tuple[Checked, ...] = (
    GuidelineExpectation(guideline="fine"),
    ToolExpectation(tool="find_fine"),
    DecisionExpectation(tool="find_fine", state=DecisionState.NEEDS_TO_RUN),
    OrderExpectation(tools=("find_fine", "renew")),
    ReplyContainsExpectation(text="fine"),
    ReplyMatchesExpectation(pattern="f"),
    HandedOverExpectation(),
)
ANY_UNWANTED: tuple[Checked, ...] = (
    GuidelineExpectation(guideline="fine", matches=False),
    ToolExpectation(tool="find_fine", runs=False),
    ReplyContainsExpectation(text="fine", contains=False),
    ReplyMatchesExpectation(pattern="f", matches=False),
    HandedOverExpectation(expected=False),
    BelowExpectation(measure=Measure.TOKENS, limit=10),
)


class TestTurns:
    @pytest.mark.parametrize("expectation", ANY_CHECKED, ids=lambda e: e.kind)
    def test_what_is_wanted_in_a_turn_that_does_not_exist_is_missing(
        self, expectation: Checked
    ) -> None:
        beyond = replace(expectation, turn=4)
        assert told(beyond, talk([], [], [])) == (
            FAILED,
            None,
            "The conversation has only 3 turns.",
        )
        assert told(expectation, []) == (FAILED, None, "The conversation has no turns.")

    @pytest.mark.parametrize("expectation", ANY_UNWANTED, ids=lambda e: e.kind)
    def test_what_is_not_wanted_there_was_not_put_to_the_test(self, expectation: Checked) -> None:
        beyond = replace(expectation, turn=2)
        assert told(beyond, talk([])) == (UNKNOWN, None, "The conversation has only 1 turn.")
        assert told(expectation, []) == (UNKNOWN, None, "The conversation has no turns.")

    def test_a_gap_and_a_late_beginning_are_told_as_they_are(self) -> None:
        late = [record(number=4), record(number=6)]
        expectation = HandedOverExpectation(turn=5)
        assert told(expectation, late)[2] == "The conversation has no turn 5."
        assert told(replace(expectation, turn=7), late)[2] == "The conversation ends with turn 6."

    @pytest.mark.parametrize("expectation", ANY_CHECKED, ids=lambda e: e.kind)
    def test_what_is_missing_where_a_turn_failed_is_not_known(self, expectation: Checked) -> None:
        first, second = talk([], [])
        told_so = "Turn 2 failed: The model cannot be reached."
        assert told(expectation, [first, broken(second)]) == (UNKNOWN, 2, told_so)
        assert state(replace(expectation, turn=1), first, broken(second)) is FAILED

    @pytest.mark.parametrize("expectation", ANY_UNWANTED, ids=lambda e: e.kind)
    def test_that_nothing_was_seen_before_a_turn_failed_proves_nothing(
        self, expectation: Checked
    ) -> None:
        first, second = talk([], [])
        assert state(expectation, first, broken(second)) is UNKNOWN
        assert state(expectation, first, second) is HELD

    def test_what_is_on_record_counts_though_its_turn_failed(self) -> None:
        (turn,) = talk([matched("fine"), called("c", "renew", {})])
        assert state(GuidelineExpectation(guideline="fine"), broken(turn)) is HELD
        assert state(ToolExpectation(tool="renew", runs=False), broken(turn)) is FAILED

    def test_without_a_turn_one_turn_is_enough_and_one_too_much(self) -> None:
        conversation = talk([], [matched("fine", because="They ask for it.")], [])
        because = "G1 matched: They ask for it."
        assert told(GuidelineExpectation(guideline="fine"), conversation) == (HELD, 2, because)
        unwanted = GuidelineExpectation(guideline="fine", matches=False)
        assert told(unwanted, conversation) == (FAILED, 2, because)
        assert state(replace(unwanted, turn=3), *conversation) is HELD

    def test_the_turn_that_comes_nearest_is_told_of(self) -> None:
        conversation = talk([called("c", "renew", {"loan": "L-1"})], [], [])
        wanted = ToolExpectation(
            tool="renew", arguments=(ArgumentExpectation(name="loan", value="L-2"),)
        )
        assert told(wanted, conversation) == (
            FAILED,
            1,
            "In none of 3 turns. Turn 1: renew ran with loan = 'L-1', not 'L-2'.",
        )


class TestGuideline:
    @pytest.mark.parametrize(
        ("entries", "because"),
        [
            (
                [matched("fine", MatchState.NOT_MATCHED, because="they greet")],
                "G1 did not match: they greet.",
            ),
            ([matched("fine", MatchState.DROPPED, dropped_by="polite", because="")],
             "G1 was dropped by G3."),
            ([matched("fine", MatchState.NOT_EVALUATED, because="It is off.")],
             "G1 was not evaluated: It is off."),
            ([], "G1 was not evaluated."),
        ],
    )  # fmt: skip
    def test_only_one_in_force_matches(self, entries: list[TrailEntry], because: str) -> None:
        (turn,) = talk(entries)
        assert told(GuidelineExpectation(guideline="fine"), [turn]) == (FAILED, 1, because)
        assert state(GuidelineExpectation(guideline="fine", matches=False), turn) is HELD

    def test_the_last_word_of_the_turn_counts(self) -> None:
        changed = [matched("fine", MatchState.NOT_MATCHED), matched("fine", iteration=2)]
        assert state(GuidelineExpectation(guideline="fine"), *talk(changed)) is HELD

    def test_one_that_the_agent_does_not_have_cannot_match(self) -> None:
        gone = GuidelineExpectation(guideline="gone")
        assert told(gone, talk([])) == (FAILED, 1, "The agent has no guideline 'gone'.")
        assert state(replace(gone, matches=False), *talk([])) is HELD

    def test_one_that_a_result_brings_is_known_by_its_lasting_uid(self) -> None:
        rule = {"condition": "the fine is small", "action": "waive it", "criticality": "medium"}
        call = called(
            "c9", "find_fine", {}, result={"data": 1, "metadata": {}, "guidelines": [rule]}
        )
        (turn,) = talk([call, matched("c9-1", because="It is 3.")])
        wanted = GuidelineExpectation(guideline="find_fine:1")
        assert told(wanted, [turn]) == (HELD, 1, "“the fine is small” matched: It is 3.")


def argument(how: str, value: Any, **options: Any) -> ArgumentExpectation:
    return ArgumentExpectation(name="x", how=Comparing(how), value=value, **options)


class TestTool:
    @pytest.mark.parametrize(
        ("call_state", "expected"),
        [(s, FAILED if s is CallState.CANCELLED else HELD) for s in CallState],
    )
    def test_a_call_counts_whatever_came_of_it_unless_it_was_cancelled(
        self, call_state: CallState, expected: OutcomeState
    ) -> None:
        turns = talk([called("c", "renew", {}, state=call_state)])
        assert state(ToolExpectation(tool="renew"), *turns) is expected

    def test_that_it_did_not_run_comes_with_what_was_decided(self) -> None:
        wanted = ToolExpectation(tool="renew")
        blocked = decided("renew", "renew", state=DecisionState.CANNOT_RUN, because="No loan.")
        assert told(wanted, talk([blocked]))[2] == "renew did not run; it cannot run: No loan."
        nobody = "renew did not run; no guideline in force asked for it."
        assert told(wanted, talk([]))[2] == nobody
        gone = ToolExpectation(tool="sell")
        assert told(gone, talk([]))[2] == "sell did not run; the agent has no such tool."

    def test_one_call_has_to_have_all_arguments(self) -> None:
        turns = talk(
            [called("c", "renew", {"x": 1, "y": 1}), called("d", "renew", {"x": 2, "y": 2})]
        )
        both = (ArgumentExpectation(name="x", value=1), ArgumentExpectation(name="y", value=2))
        outcome = check(ToolExpectation(tool="renew", arguments=both), turns)
        assert outcome == Outcome(
            state=FAILED, turn=1, because="renew ran with y = 1, not 2; with x = 2, not 1."
        )
        assert state(ToolExpectation(tool="renew", arguments=both[:1]), *turns) is HELD

    def test_an_argument_that_is_not_there_is_none(self) -> None:
        wanted = ToolExpectation(
            tool="renew", arguments=(ArgumentExpectation(name="x", value=None),)
        )
        assert told(wanted, talk([called("c", "renew", {})]))[2] == (
            "renew ran without x, not with null."
        )
        assert state(wanted, *talk([called("c", "renew", {"x": None})])) is HELD

    def test_what_must_not_run_may_run_with_other_arguments(self) -> None:
        unwanted = ToolExpectation(tool="renew", runs=False, arguments=(argument("equal", 1),))
        assert state(unwanted, *talk([called("c", "renew", {"x": 2})])) is HELD
        outcome = told(unwanted, talk([called("c", "renew", {"x": 1, "day": "today"})]))
        assert outcome == (FAILED, 1, "renew ran with x = 1, day = 'today'.")
        anyhow = ToolExpectation(tool="renew", runs=False)
        assert state(anyhow, *talk([called("c", "renew", {"x": 2})])) is FAILED

    @pytest.mark.parametrize(
        ("expected", "fitting", "unfitting"),
        [
            (argument("equal", 1), [1, 1.0], [True, "1", 1.5, None, [1]]),
            (argument("equal", "A-1"), ["A-1"], ["a-1", "A-1 ", "A-12"]),
            (argument("equal", {"a": [1.0, {"b": 2}]}), [{"a": [1, {"b": 2.0}]}], [{"a": [1]}]),
            (argument("equal", None), [None], [False, 0, "", []]),
            (argument("contains", "new  Shoes"), ["My NEW shoes", ["red", "New shoes"]],
             ["shoes", ["my new shoes"], 5, {"new shoes": 1}]),
            (argument("contains", 3), [[1, 3.0]], [3, "3", [13], ["3"]]),
            (argument("about", 200), [198, 202, 199.5], [197.99, 202.01, "200", True, None]),
            (argument("about", 0.3), [0.3, 0.303, 0.297], [0.30301, 0.29699]),
            (argument("about", -50), [-50.5, -49.5], [-50.51, 50]),
            (argument("about", 0), [0, 0.0], [0.001]),
            (argument("about", 0.1, tolerance=0.2), [0.3, -0.1], [0.31, -0.11]),
            (argument("one_of", ["a", 2]), ["a", 2, 2.0], ["A", "2", ["a", 2], "b"]),
        ],
    )  # fmt: skip
    def test_arguments_are_compared_as_is_said(
        self, expected: ArgumentExpectation, fitting: list[Any], unfitting: list[Any]
    ) -> None:
        wanted = ToolExpectation(tool="renew", arguments=(expected,))
        for value in fitting:
            assert state(wanted, *talk([called("c", "renew", {"x": value})])) is HELD, value
        for value in unfitting:
            assert state(wanted, *talk([called("c", "renew", {"x": value})])) is FAILED, value

    @pytest.mark.parametrize(
        ("expected", "words"),
        [
            (argument("contains", "b"), "one containing 'b'"),
            (argument("about", 20), "about 20 (± 1 %)"),
            (argument("about", 20, tolerance=0.5), "about 20 (± 0.5)"),
            (argument("one_of", ["b", 3]), "one of 'b', 3"),
        ],
    )
    def test_what_was_found_instead_is_told(
        self, expected: ArgumentExpectation, words: str
    ) -> None:
        wanted = ToolExpectation(tool="renew", arguments=(expected,))
        because = told(wanted, talk([called("c", "renew", {"x": "a"})]))[2]
        assert because == f"renew ran with x = 'a', not {words}."


class TestDecision:
    def test_any_decision_of_the_turn_may_be_the_one(self) -> None:
        turns = talk(
            [
                decided("fine", "find_fine", state=DecisionState.CANNOT_RUN, because="No account."),
                decided("fine", "find_fine", iteration=2),
            ]
        )
        blocked = DecisionExpectation(tool="find_fine", state=DecisionState.CANNOT_RUN)
        assert told(blocked, turns) == (HELD, 1, "find_fine cannot run: No account.")
        needless = replace(blocked, state=DecisionState.NOT_NEEDED)
        assert told(needless, turns)[2] == (
            "It was decided that find_fine needs to run, not that it is not needed: It is needed."
        )

    def test_the_guideline_may_be_said(self) -> None:
        turns = talk([decided("renew", "find_fine")])
        wanted = DecisionExpectation(
            tool="find_fine", state=DecisionState.NEEDS_TO_RUN, guideline="renew"
        )
        assert state(wanted, *turns) is HELD
        outcome = told(replace(wanted, guideline="fine"), turns)
        assert outcome == (FAILED, 1, "Nothing was decided about find_fine under G1.")
        assert told(replace(wanted, tool="renew", guideline=""), turns)[2] == (
            "Nothing was decided about renew."
        )


class TestOrder:
    def test_first_calls_count_across_turns(self) -> None:
        a, b, c = (called(uid, uid, {}) for uid in ("a", "b", "c"))
        again = called("a2", "a", {})
        turns = talk([a, c], [b, again])
        assert state(OrderExpectation(tools=("a", "b")), *turns) is HELD
        assert state(OrderExpectation(tools=("a", "c", "b")), *turns) is HELD
        wrong = OrderExpectation(tools=("a", "b", "c"))
        assert told(wrong, turns) == (FAILED, 1, "c ran before b.")

    def test_within_a_turn_only_its_calls_count(self) -> None:
        turns = talk([called("a", "a", {})], [called("b", "b", {}), called("a2", "a", {})])
        wanted = OrderExpectation(tools=("a", "b"), turn=2)
        assert told(wanted, turns) == (FAILED, 2, "b ran before a.")
        assert state(replace(wanted, turn=None), *turns) is HELD

    def test_what_did_not_run_has_no_place(self) -> None:
        cancelled = called("b", "b", {}, state=CallState.CANCELLED)
        turns = talk([called("a", "a", {}), cancelled])
        assert told(OrderExpectation(tools=("a", "b", "c")), turns) == (
            FAILED,
            1,
            "b and c did not run.",
        )


class TestReply:
    @pytest.mark.parametrize(
        "text",
        ["REFUND", "your refund", "a  \n refund", "'your refund'", "10-12 days", "don't", "don’t"],
    )
    def test_case_space_quotes_and_dashes_do_not_count(self, text: str) -> None:
        reply = "We send ‘your\u00a0refund’ in 10–12 days, don’t worry:\na refund."
        turns = talk([replied(reply)])
        assert state(ReplyContainsExpectation(text=text), *turns) is HELD
        assert state(ReplyContainsExpectation(text=text, contains=False), *turns) is FAILED

    def test_what_is_said_instead_is_told(self) -> None:
        turns = talk([replied("Your fine is 3 euros.")])
        assert told(ReplyContainsExpectation(text="4 euros"), turns) == (
            FAILED,
            1,
            "The reply does not say “4 euros”; it is “Your fine is 3 euros.”.",
        )
        assert told(ReplyContainsExpectation(text="x"), talk([]))[2] == "There is no reply."

    def test_only_the_agents_words_are_its_reply(self) -> None:
        turns = talk(
            [
                MessageEvent(source=Source.CUSTOMER, text="secret"),
                MessageEvent(source=Source.AGENT, text="secret", model="tool find_fine"),
                MessageEvent(source=Source.OPERATOR, text="secret"),
                replied("Nothing."),
            ]
        )
        assert state(ReplyContainsExpectation(text="secret", contains=False), *turns) is HELD

    def test_a_pattern_is_searched_for_as_it_is_written(self) -> None:
        turns = talk([replied("Order AB-12 is late.")])
        assert told(ReplyMatchesExpectation(pattern=r"[A-Z]{2}-\d+"), turns) == (
            HELD,
            1,
            "The reply says “AB-12”.",
        )
        assert state(ReplyMatchesExpectation(pattern="ab-12"), *turns) is FAILED
        assert state(ReplyMatchesExpectation(pattern="(?i)ab-12"), *turns) is HELD
        unwanted = ReplyMatchesExpectation(pattern=r"\d", matches=False)
        assert state(unwanted, *turns) is FAILED
        assert state(unwanted, *talk([replied("No number.")])) is HELD

    @pytest.mark.parametrize("matches", [True, False])
    def test_a_pattern_that_would_never_end_is_given_up_on(self, matches: bool) -> None:
        turns = talk([replied("a" * 10_000 + "!")])
        expectation = ReplyMatchesExpectation(pattern=r"(a+)+$", matches=matches)
        outcome = told(expectation, turns)
        assert outcome[0] is UNKNOWN
        assert "Make it simpler" in outcome[2]

    def test_only_so_much_of_a_reply_is_searched(self) -> None:
        turns = talk([replied("a" * 20_000 + "b")])
        assert state(ReplyMatchesExpectation(pattern="b"), *turns) is FAILED
        assert state(ReplyMatchesExpectation(pattern="a{20000}"), *turns) is HELD


class TestHandedOver:
    def test_a_tool_hands_over_and_a_person_who_takes_over_does_not(self) -> None:
        by_tool = talk([], [ModeEvent(mode=Mode.MANUAL, tool="renew")])
        by_person = talk([ModeEvent(mode=Mode.MANUAL, source=Source.OPERATOR)])
        assert told(HandedOverExpectation(), by_tool) == (
            HELD,
            2,
            "The session was handed over to a person.",
        )
        assert state(HandedOverExpectation(expected=False), *by_tool) is FAILED
        assert state(HandedOverExpectation(), *by_person) is FAILED
        assert state(HandedOverExpectation(expected=False), *by_person) is HELD


def asked(uid: str, start: float, end: float, tokens: int = 0, **options: Any) -> ModelCall:
    """A model call from one second to another."""
    return replace(
        model_call(uid),
        started_at=NOON + timedelta(seconds=start),
        ended_at=NOON + timedelta(seconds=end),
        prompt_tokens=tokens,
        **options,
    )


def below(measure: Measure, limit: float, **options: Any) -> BelowExpectation:
    return BelowExpectation(measure=measure, limit=limit, **options)


class TestBelow:
    def test_the_slowest_turn_counts_and_what_reaches_the_limit_is_not_below(self) -> None:
        turns = talk([asked("a", 0, 1)], [asked("a", 0, 1), asked("b", 1, 2), asked("c", 1, 2)])
        limit = below(Measure.ROUND_TRIPS, 2)
        assert told(limit, turns) == (FAILED, 2, "It took 2 round trips, not below 2.")
        assert told(replace(limit, limit=3), turns) == (HELD, 2, "It took 2 round trips, below 3.")
        assert told(replace(limit, turn=1), turns) == (HELD, 1, "It took 1 round trip, below 2.")

    def test_seconds_are_those_of_the_slowest_turn(self) -> None:
        quick, slow = talk([], [])
        quick = replace(quick, ended_at=NOON + timedelta(milliseconds=300))
        slow = replace(slow, ended_at=NOON + timedelta(seconds=2))
        seconds = below(Measure.SECONDS, 2)
        assert told(seconds, [quick, slow]) == (FAILED, 2, "It took 2 s, not below 2.")
        assert told(replace(seconds, turn=1), [quick, slow]) == (HELD, 1, "It took 0.3 s, below 2.")
        open_ended = replace(quick, ended_at=None)
        assert told(seconds, [open_ended]) == (
            UNKNOWN,
            1,
            "When turn 1 began and ended is not on record.",
        )

    def test_tokens_are_summed(self) -> None:
        turns = talk([asked("a", 0, 1, tokens=60)], [asked("a", 0, 1, 30, completion_tokens=10)])
        assert told(below(Measure.TOKENS, 100), turns) == (
            FAILED,
            None,
            "It took 100 tokens, not below 100.",
        )
        assert state(below(Measure.TOKENS, 101), *turns) is HELD
        assert state(below(Measure.TOKENS, 41, turn=2), *turns) is HELD

    def test_cost_is_summed_without_the_dust_of_floating_point(self) -> None:
        turns = [replace(turn, cost=0.1) for turn in talk([], [], [])]
        outcome = told(below(Measure.COST, 0.4), turns)
        assert outcome == (HELD, None, "It cost 0.3, below 0.4.")
        assert state(below(Measure.COST, 0.3), *turns) is FAILED

    def test_an_unknown_price_leaves_it_unknown_unless_what_is_known_is_too_much(self) -> None:
        first, second = talk([], [asked("a", 0, 1, model="new-model")])
        turns = [replace(first, cost=0.5), replace(second, cost=None)]
        assert told(below(Measure.COST, 1), turns) == (
            UNKNOWN,
            2,
            "What turn 2 cost is not known: the price list lacks new-model.",
        )
        assert state(below(Measure.COST, 0.5), *turns) is FAILED

    def test_a_turn_that_failed_may_have_taken_too_much_already(self) -> None:
        (turn,) = talk([asked("a", 0, 1, tokens=60)])
        assert state(below(Measure.TOKENS, 60), broken(turn)) is FAILED
        assert state(below(Measure.TOKENS, 61), broken(turn)) is UNKNOWN


ALL: tuple[Expectation, ...] = (
    *ANY_CHECKED,
    BelowExpectation(measure=Measure.COST, limit=1),
    NoPromiseExpectation(text="a refund"),
    JudgedExpectation(statement="The reply is kind."),
)


def test_decisions_wording_and_effort_are_told_apart() -> None:
    kinds = {aspect: [e.kind for e in ALL if about(e) is aspect] for aspect in Aspect}
    assert kinds == {
        Aspect.DECISIONS: ["guideline", "tool", "decision", "order", "handed_over"],
        Aspect.WORDING: ["reply_contains", "reply_matches", "no_promise", "judged"],
        Aspect.EFFORT: ["below"],
    }
    assert [e.kind for e in ALL if needs_model(e)] == ["no_promise", "judged"]


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=10))
def test_a_text_stands_in_every_reply_that_is_made_with_it(
    before: str, text: str, after: str
) -> None:
    turns = talk([replied(f"{before} {text} {after}")])
    assert state(ReplyContainsExpectation(text=text), *turns) is HELD
