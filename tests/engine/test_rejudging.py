"""One guideline judged again, alone, under another wording; and what a question saw at a moment of its turn."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import BriefingEvent, Mode, ModeEvent, RecordedEvent, Source, ToolFinishedEvent
from engine.model.base import JudgingStyle, MatchGuidelines, ModelReply, ModelRequest, TextDelta
from engine.rejudging import judge_alone, reworded
from engine.spec import Example
from engine.state import TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    explains,
    infers,
    matches,
    play,
    replies,
    said,
    scores,
    scripted_kit,
)
from engine.trail import CallState, MatchState, ToolCall
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of

FINE = guideline("fine", "the customer asks about a fine", "explain it")
RENEW = guideline(
    "renew",
    "the customer wants to renew a loan",
    "renew it",
    examples=(Example(text="Once more, please", matches=True),),
)


def asked_again(condition: str) -> TurnState:
    """The turn in which "renew" is to be judged under another condition."""
    state = turn_of(agent(FINE, RENEW), "What do I owe?", "Can I keep it longer?")
    state.agent = reworded(state.agent, "renew", condition)
    return state


def test_only_the_condition_of_the_one_guideline_is_another() -> None:
    spec = agent(FINE, RENEW, guideline("off", "the moon is full", enabled=False))
    changed = reworded(spec, "off", "the sun shines")
    assert changed.guidelines[:2] == spec.guidelines[:2]
    assert (changed.guidelines[2].condition, changed.guidelines[2].enabled) == (
        "the sun shines",
        True,
    )
    assert changed.label_of == spec.label_of
    with pytest.raises(KeyError):
        reworded(spec, "none", "the sun shines")


async def test_the_question_holds_that_guideline_alone_and_the_whole_conversation() -> None:
    model = ScriptedModel(matches("G2", because="They want to keep it."))
    state = asked_again("the customer wants to keep something longer")
    judged = await judge_alone(state, scripted_kit(model), state.agent.guideline_by_uid["renew"])
    (request,) = model.requests
    assert isinstance(request.question, MatchGuidelines)
    assert [g.uid for g in request.question.guidelines] == ["renew"]
    system, user = (message.content for message in request.messages)
    assert "the customer wants to keep something longer" in system
    assert "renew a loan" not in system
    assert "about a fine" not in system
    assert "Once more, please" in system
    assert "What do I owe?" in user
    assert "Can I keep it longer?" in user
    assert judged.match.state is MatchState.MATCHED
    assert judged.match.because == "They want to keep it."
    assert [call.uid for call in judged.calls] == [judged.match.model_call]


async def test_a_scored_verdict_gets_its_reason_however_far_it_was_from_applying() -> None:
    model = ScriptedModel(
        scores("G2", 0.04), explains("G2", "It is about time."), judging_style=JudgingStyle.SCORED
    )
    state = asked_again("the customer asks for the time")
    judged = await judge_alone(state, scripted_kit(model), state.agent.guidelines[1])
    assert model.questions() == ["ScoreGuideline G2", "ExplainMatch G2"]
    match = judged.match
    assert (match.state, match.score, match.because, match.explained_afterwards) == (
        MatchState.NOT_MATCHED,
        0.04,
        "It is about time.",
        True,
    )
    assert [call.question for call in judged.calls] == ["ScoreGuideline", "ExplainMatch"]


async def test_a_reason_that_does_not_come_leaves_the_verdict() -> None:
    lost = ModelError("Too busy.", kind=ModelErrorKind.RATE_LIMITED, retryable=True)
    model = ScriptedModel(
        scores("G2", 0.9),
        Expected(question="ExplainMatch", about="G2", answer=lost),
        judging_style=JudgingStyle.SCORED,
    )
    state = asked_again("the customer wants more time")
    judged = await judge_alone(state, scripted_kit(model), state.agent.guidelines[1])
    assert (judged.match.score, judged.match.because) == (0.9, "Scored 0.90.")


async def test_a_model_that_fails_says_so_and_nothing_hangs() -> None:
    gone = ModelError("Cannot reach it.", kind=ModelErrorKind.UNREACHABLE, retryable=False)
    model = ScriptedModel(Expected(question="MatchGuidelines", answer=gone))
    state = asked_again("anything")
    async with asyncio.timeout(2):
        with pytest.raises(ModelError, match="Cannot reach it"):
            await judge_alone(state, scripted_kit(model), state.agent.guidelines[1])


class Hanging:
    """Never answers."""

    name = "hanging"
    batch_size = 12
    judging_style = JudgingStyle.REASONED

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ModelReply]:
        self.asked.set()
        await asyncio.Event().wait()
        yield TextDelta(text="never")


async def test_it_can_be_cancelled_while_the_model_is_at_work() -> None:
    model = Hanging()
    state = asked_again("anything")
    work = asyncio.create_task(judge_alone(state, scripted_kit(model), state.agent.guidelines[1]))
    await model.asked.wait()
    work.cancel()
    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await work


# --- what a question saw


async def test_the_history_at_a_moment_is_what_the_judgement_then_was_asked_with() -> None:
    stock = guideline("stock", "the customer asks for stock", tools=("get_stock",))
    late = guideline("low", "fewer than 5 are left", reevaluate_after=("get_stock",))
    spec = agent(stock, late, tools=[tool("get_stock", parameter("item"))])
    model = ScriptedModel(
        matches("G1"),
        infers("get_stock", {"item": said("shoes")}),
        matches("G2"),
        replies("Three are left."),
    )
    tools = ScriptedTools({"get_stock": lambda _a, _c: {"left": 3}})
    state = turn_of(spec, "Are there shoes?")
    await play(state, scripted_kit(model, tools))
    first, second = (r.question for r in model.requests if r.question.name == "MatchGuidelines")
    match = state.matches["low"]
    assert match.iteration == 2
    assert state.history_at(match.started_at) == second.situation.history
    before = match.started_at - timedelta(hours=1)
    assert state.history_at(before) == first.situation.history
    assert len(state.history) > len(second.situation.history) > len(first.situation.history)


def test_what_came_with_or_after_the_reply_was_not_seen() -> None:
    now = datetime.now(UTC)
    state = turn_of(agent(FINE), "Hello", "Bye")
    call = ToolCall(
        uid="c1",
        tool="look",
        arguments={},
        state=CallState.DONE,
        iteration=1,
        guidelines=(),
        started_at=now,
        ended_at=now + timedelta(seconds=1),
    )
    state.learn(call)
    events = (
        ModeEvent(source=Source.OPERATOR, mode=Mode.AUTO),
        ToolFinishedEvent(call="c1", tool="look", arguments={}, data=1),
        BriefingEvent(content={}, guidelines=()),
        said_by(Source.AGENT, "Goodbye."),
        ModeEvent(source=Source.SYSTEM, mode=Mode.MANUAL),
    )
    for event in events:
        state.witness(event)

    def seen(moment: datetime) -> list[RecordedEvent]:
        return [e for e in state.history_at(moment) if e.offset > 2]

    assert [entry.event for entry in seen(now)] == [events[0]]
    assert [entry.event for entry in seen(now + timedelta(seconds=2))] == list(events[:2])
