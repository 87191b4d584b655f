"""TurnState learns from the trail, so that a turn can be built up again from what is on record."""

from datetime import UTC, datetime
from typing import Any

from engine.events import BriefingEvent, Source
from engine.spec import Criticality
from engine.state import Checkpoint, TurnState, customer_messages
from engine.trail import (
    CallState,
    DecisionState,
    GuidelineMatch,
    MatchState,
    ToolCall,
    ToolDecision,
)
from tests.engine.agents import agent, guideline, said_by, tool, turn_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def match(uid: str, state: MatchState = MatchState.MATCHED, iteration: int = 1) -> GuidelineMatch:
    return GuidelineMatch(
        guideline=uid, state=state, because="so", iteration=iteration, started_at=NOW, ended_at=NOW
    )


def decision(call: str, guideline_uid: str = "a", **options: Any) -> ToolDecision:
    values: dict[str, Any] = {
        "guideline": guideline_uid,
        "tool": "t",
        "state": DecisionState.NEEDS_TO_RUN,
        "because": "so",
        "iteration": 1,
        "started_at": NOW,
        "ended_at": NOW,
        "call": call,
    }
    return ToolDecision(**values | options)


def call(uid: str, state: CallState, iteration: int = 1) -> ToolCall:
    return ToolCall(
        uid=uid,
        tool="t",
        arguments={},
        state=state,
        iteration=iteration,
        guidelines=("a",),
        started_at=NOW,
    )


def a_turn() -> TurnState:
    return turn_of(agent(guideline("a", "c"), guideline("b", "c"), tools=[tool("t")]), "Hello")


def test_the_latest_judgement_of_a_guideline_is_the_one_in_force() -> None:
    state = a_turn()
    state.recall([match("a", MatchState.NOT_MATCHED), match("b"), match("a", iteration=2)])
    assert [g.uid for g in state.matched()] == ["a", "b"]
    assert [g.uid for g in state.matched_in(2)] == ["a"]


def test_a_guideline_without_a_judgement_is_not_in_force() -> None:
    assert a_turn().matched() == []


def test_one_call_under_two_guidelines_runs_once() -> None:
    state = a_turn()
    state.recall([decision("c1"), decision("c1", "b"), decision("c2")])
    assert [d.call for d in state.to_run()] == ["c1", "c2"]


def test_only_calls_that_were_not_seen_to_their_end_are_still_to_run() -> None:
    state = a_turn()
    state.recall([decision(f"c{n}") for n in range(6)])
    ends = [CallState.DONE, CallState.FAILED, CallState.UNKNOWN, CallState.STARTED]
    state.recall([call(f"c{n}", end) for n, end in enumerate([*ends, CallState.CANCELLED])])
    assert [d.call for d in state.to_run()] == ["c3", "c4", "c5"]


def test_decisions_of_an_earlier_iteration_are_not_run_in_a_later_one() -> None:
    state = a_turn()
    state.recall([decision("c1")])
    state.checkpoint = Checkpoint(iteration=2)
    assert state.to_run() == []


def test_a_later_entry_of_a_call_replaces_the_earlier_one() -> None:
    state = a_turn()
    state.recall([call("c1", CallState.STARTED), call("c1", CallState.DONE)])
    assert [c.state for c in state.calls_done()] == [CallState.DONE]
    assert state.calls_done(iteration=2) == []


def test_guidelines_of_equal_weight_keep_the_authors_order() -> None:
    spec = agent(
        guideline("a", priority=1),
        guideline("b", criticality=Criticality.HIGH),
        guideline("c", priority=1),
        guideline("d", criticality=Criticality.LOW, priority=99),
    )
    state = turn_of(spec, "Hello")
    state.recall([match(uid) for uid in "dcba"])
    assert [g.uid for g in state.matched()] == ["b", "a", "c", "d"]


def test_only_the_briefing_of_this_turn_counts() -> None:
    earlier = BriefingEvent(content={"n": 1})
    state = turn_of(agent(), "Hello", earlier, said_by(Source.AGENT, "Hi"), "Again")
    assert state.briefing() is None
    state.witness(BriefingEvent(content={"n": 2}))
    briefing = state.briefing()
    assert briefing is not None
    assert briefing.content == {"n": 2}


def test_what_is_witnessed_gets_the_next_place_in_this_turn() -> None:
    state = a_turn()
    state.witness(said_by(Source.AGENT, "One moment"))
    assert [(e.offset, e.turn) for e in state.history] == [(1, 1), (2, 1)]


def test_customer_messages_come_newest_first_and_are_only_the_customers() -> None:
    state = turn_of(agent(), "One", said_by(Source.OPERATOR, "Two"), "Three")
    assert customer_messages(state.history) == [(3, "Three"), (1, "One")]
