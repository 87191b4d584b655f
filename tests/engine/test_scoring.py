"""Scored judging: bare verdicts, probabilities, and reasons asked for afterwards."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import BriefingEvent, MessageEvent, Source
from engine.model.base import ExplainMatch, JudgingStyle, ModelRequest, ScoreGuideline
from engine.model.offline import OfflineModel
from engine.prompts import build
from engine.scoring import unexplained
from engine.spec import Agent, Example
from engine.state import Checkpoint, Step, TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    explains,
    play,
    replies,
    scores,
    scripted_kit,
)
from engine.trail import GuidelineMatch, MatchState, ModelCall, ToolCall
from tests.engine.agents import agent, guideline, said_by, tool, turn_of

FINE = guideline("fine", "the customer asks about a fine", "explain it")
RENEW = guideline("renew", "the customer wants to renew a loan", "renew it")
HOURS = guideline("hours", "the customer asks for opening hours", "tell them")


def scored(*expected: Expected) -> ScriptedModel:
    return ScriptedModel(*expected, judging_style=JudgingStyle.SCORED)


async def turn(
    spec: Agent, *expected: Expected, tools: ScriptedTools | None = None
) -> tuple[list[Any], ScriptedModel, TurnState]:
    model = scored(*expected)
    state = turn_of(spec, "What do I owe, and when are you open?")
    emitted = await play(state, scripted_kit(model, tools))
    model.assert_used_up()
    return emitted, model, state


def judged(emitted: list[Any]) -> dict[str, list[GuidelineMatch]]:
    """Each guideline's entries, oldest first."""
    found: dict[str, list[GuidelineMatch]] = {}
    for match in entries(emitted, GuidelineMatch):
        found.setdefault(match.guideline, []).append(match)
    return found


async def test_each_guideline_is_judged_alone_and_its_probability_is_on_record() -> None:
    emitted, model, _ = await turn(
        agent(FINE, RENEW, HOURS),
        scores("G1", 0.97),
        scores("G2", 0.03),
        scores("G3", 0.31),
        replies("You owe 2."),
        explains("G1", "The customer asks what they owe."),
        explains("G3", "They ask when the library is open, which is close."),
    )
    asked = [question for question in model.questions() if question.startswith("Score")]
    assert sorted(asked) == ["ScoreGuideline G1", "ScoreGuideline G2", "ScoreGuideline G3"]
    last = {uid: found[-1] for uid, found in judged(emitted).items()}
    assert {uid: (m.state, m.score) for uid, m in last.items()} == {
        "fine": (MatchState.MATCHED, 0.97),
        "renew": (MatchState.NOT_MATCHED, 0.03),
        "hours": (MatchState.NOT_MATCHED, 0.31),
    }
    verdicts = {c.uid: c for c in entries(emitted, ModelCall) if c.question == "ScoreGuideline"}
    assert all(match.model_call in verdicts for match in last.values())


async def test_only_what_matched_or_came_close_is_explained_and_the_reason_is_marked_as_afterwards() -> (
    None
):
    emitted, _, _ = await turn(
        agent(FINE, RENEW, HOURS),
        scores("G1", 0.97),
        scores("G2", 0.03),
        scores("G3", 0.2),
        replies("You owe 2."),
        explains("G1", "The customer asks what they owe."),
        explains("G3", "It was close."),
    )
    found = judged(emitted)
    assert [(m.because, m.explained_afterwards) for m in found["fine"]] == [
        ("Scored 0.97.", False),
        ("The customer asks what they owe.", True),
    ]
    assert [(m.because, m.explained_afterwards) for m in found["renew"]] == [
        ("Scored 0.03; no reason was asked for.", False)
    ]
    assert found["hours"][-1].because == "It was close."


async def test_of_many_that_came_close_only_the_closest_are_explained() -> None:
    spec = agent(*(guideline(f"g{n}", f"the customer asks for {n}") for n in range(1, 13)))
    emitted, _, state = await turn(
        spec,
        *(scores(f"G{n}", 0.3 + n / 100) for n in range(1, 13)),
        replies("Hello."),
        *(explains(f"G{n}", "It was close.") for n in range(8, 13)),
    )
    last = {uid: found[-1].because for uid, found in judged(emitted).items()}
    assert (last["g7"], last["g8"]) == ("Scored 0.37.", "It was close.")
    assert unexplained(state) == []


async def test_a_server_without_probabilities_gives_verdicts_without_scores() -> None:
    emitted, _, _ = await turn(
        agent(FINE, RENEW),
        scores("G1", True),
        scores("G2", False),
        replies("You owe 2."),
        explains("G1", "It is asked."),
    )
    found = judged(emitted)
    assert found["fine"][-1].state is MatchState.MATCHED
    assert (found["fine"][-1].score, found["fine"][-1].because) == (None, "It is asked.")
    assert [m.because for m in found["renew"]] == ["Judged without a reason; none was asked for."]


async def test_the_probability_decides_where_the_answer_was_drawn_otherwise() -> None:
    drawn = Expected(
        question="ScoreGuideline", about="G1", answer={"applies": True}, probability=0.4
    )
    emitted, _, _ = await turn(agent(FINE), drawn, replies("Hello."), explains("G1", "Close."))
    assert judged(emitted)["fine"][-1].state is MatchState.NOT_MATCHED


async def test_always_and_disabled_guidelines_take_no_question() -> None:
    spec = agent(guideline("always", "", "be kind"), replace(FINE, enabled=False))
    emitted, model, _ = await turn(spec, replies("Hello."))
    assert model.questions() == ["ComposeReply"]
    states = {uid: found[-1].state for uid, found in judged(emitted).items()}
    assert states == {"always": MatchState.MATCHED, "fine": MatchState.NOT_EVALUATED}


async def test_the_tool_of_a_scored_guideline_runs_and_guidelines_are_scored_again_after_it() -> (
    None
):
    spec = agent(
        replace(FINE, tools=("get_fines",)),
        guideline("high", "the fine is above 10", "offer rates", reevaluate_after=("get_fines",)),
        tools=[tool("get_fines")],
    )
    emitted, model, _ = await turn(
        spec,
        scores("G1", 0.9),
        scores("G2", 0.1),
        scores("G2", 0.8),
        replies("You owe 12."),
        explains("G1", "They ask what they owe."),
        explains("G2", "12 is above 10."),
        tools=ScriptedTools({"get_fines": lambda _a, _c: {"fine": 12}}),
    )
    assert [call.tool for call in entries(emitted, ToolCall) if call.ended_at] == ["get_fines"]
    assert [(m.iteration, m.score, m.because) for m in judged(emitted)["high"]] == [
        (1, 0.1, "Scored 0.10; no reason was asked for."),
        (2, 0.8, "Scored 0.80."),
        (2, 0.8, "12 is above 10."),
    ]
    first, second = (r for r in model.requests if r.question.name == "ExplainMatch")
    by_guideline = {r.subject: r for r in (first, second)}
    # The explanation sees what the judgement saw.
    assert '"result"' not in by_guideline["G1"].messages[-1].content
    assert '"fine": 12' in by_guideline["G2"].messages[-1].content


async def test_explanations_are_asked_for_beside_the_reply_and_recorded_before_the_turn_ends() -> (
    None
):
    explained = asyncio.Event()
    spec = agent(FINE)

    class Slow(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            if request.question.name == "ComposeReply":
                await asyncio.wait_for(explained.wait(), 5)  # the reply waits for the explanation
            if request.question.name == "ExplainMatch":
                explained.set()
            async for item in super().stream(request):
                yield item

    model = Slow(
        scores("G1", 0.9),
        explains("G1", "It is asked."),
        replies("You owe 2."),
        judging_style=JudgingStyle.SCORED,
    )
    emitted = await play(turn_of(spec, "What do I owe?"), scripted_kit(model))
    reason = next(i for i, item in enumerate(emitted) if _is_reason(item))
    end = next(
        i
        for i, item in enumerate(emitted)
        if isinstance(item, Checkpoint) and item.step is Step.FINISHED
    )
    assert reason < end


def _is_reason(item: Any) -> bool:
    return isinstance(item, GuidelineMatch) and item.explained_afterwards


async def test_a_reason_that_does_not_come_is_no_failure() -> None:
    error = ModelError("down", kind=ModelErrorKind.SERVER, retryable=False)
    emitted, _, _ = await turn(
        agent(FINE),
        scores("G1", 0.9),
        replies("You owe 2."),
        Expected(question="ExplainMatch", about="G1", answer=error),
    )
    assert entries(emitted, Checkpoint)[-1].step is Step.FINISHED
    assert [m.because for m in judged(emitted)["fine"]] == ["Scored 0.90."]
    (failed,) = [c for c in entries(emitted, ModelCall) if c.question == "ExplainMatch"]
    assert "down" in failed.error


async def test_a_failed_verdict_fails_the_turn() -> None:
    error = ModelError("down", kind=ModelErrorKind.SERVER, retryable=False)
    model = scored(Expected(question="ScoreGuideline", about="G1", answer=error))
    with pytest.raises(ModelError, match="down"):
        await play(turn_of(agent(FINE), "Hello"), scripted_kit(model))


async def test_stopping_ends_explanations_that_are_on_their_way() -> None:
    ended = asyncio.Event()

    class Endless(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            if request.question.name == "ExplainMatch":
                kit.stop.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()
            async for item in super().stream(request):
                yield item

    model = Endless(scores("G1", 0.9), replies("You owe 2."), judging_style=JudgingStyle.SCORED)
    kit = scripted_kit(model)
    emitted = await play(turn_of(agent(FINE), "What do I owe?"), kit)
    assert ended.is_set()
    assert entries(emitted, Checkpoint)[-1].step is Step.STOPPED


async def test_a_resumed_turn_scores_only_what_is_left_and_asks_for_the_reasons_it_still_owes() -> (
    None
):
    spec = agent(FINE, RENEW)
    emitted, _, _ = await turn(
        spec,
        scores("G1", 0.9),
        scores("G2", 0.1),
        replies("You owe 2."),
        explains("G1", "It is asked."),
    )
    first = judged(emitted)["fine"][0]
    again = turn_of(spec, "What do I owe, and when are you open?")
    again.recall([first])
    model = scored(scores("G2", 0.1), replies("You owe 2."), explains("G1", "It is asked."))
    resumed = await play(again, scripted_kit(model))
    model.assert_used_up()
    assert judged(resumed)["fine"][-1].because == "It is asked."
    assert unexplained(again) == []


async def test_many_guidelines_are_asked_about_a_few_at_a_time() -> None:
    running = most = 0

    class Counting(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            try:
                async for item in super().stream(request):
                    yield item
            finally:
                running -= 1

    spec = agent(*(guideline(f"g{n}", f"the customer asks for {n}") for n in range(1, 101)))
    expected = [scores(f"G{n}", 0.01) for n in range(1, 101)]
    model = Counting(*expected, replies("Hello."), judging_style=JudgingStyle.SCORED)
    emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))
    assert len(judged(emitted)) == 100
    assert 1 < most <= 16


# --- the prompts


def request_about(state: TurnState, uid: str) -> ModelRequest:
    spec = state.agent
    question = ScoreGuideline(situation=state.situation, guideline=spec.guideline_by_uid[uid])
    return build(question)


def text_of(request: ModelRequest) -> str:
    return "".join(message.content for message in request.messages)


def shared(one: str, other: str) -> float:
    """How much of `other` is the beginning that it has in common with `one`."""
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return (len(one) if common is None else common) / len(other)


def test_the_questions_of_a_turn_share_all_but_their_last_lines_and_so_does_the_next_turn() -> None:
    spec = agent(*(guideline(f"g{n}", f"the customer asks for {n}") for n in range(1, 30)))
    talk: list[Any] = []
    for number in range(8):
        talk += [f"Question {number} of mine", BriefingEvent(guidelines=("g1", "g7")), answered()]
    before = turn_of(spec, *talk[:-2])
    one, other = (text_of(request_about(before, uid)) for uid in ("g3", "g20"))
    assert shared(one, other) > 0.9
    after = turn_of(spec, *talk, "And now?")
    opening = one[: one.rindex("The guideline:")]
    assert text_of(request_about(after, "g20")).startswith(opening)


def answered() -> MessageEvent:
    return said_by(Source.AGENT, "An answer.")


def test_the_explanation_begins_like_the_verdict() -> None:
    state = turn_of(agent(FINE, RENEW), "What do I owe?")
    verdict = text_of(request_about(state, "fine"))
    why = text_of(build(ExplainMatch(situation=state.situation, guideline=FINE, applies=True)))
    end = verdict.rindex("The guideline:")
    assert why.startswith(verdict[:end])
    assert "was judged that this guideline applies" in why


def test_the_examples_are_answered_turns_written_like_the_question_and_mostly_false() -> None:
    request = request_about(turn_of(agent(FINE), "What do I owe?"), "fine")
    _rules, *shown, asked = request.messages
    answers = [message.content for message in shown if message.role == "assistant"]
    assert len(shown) == 2 * len(answers)
    assert {*answers} == {'{"applies": true}', '{"applies": false}'}
    assert answers.count('{"applies": false}') > len(answers) / 2
    last_line = asked.content.splitlines()[-1]
    assert all(m.content.splitlines()[-1] == last_line for m in shown if m.role == "user")


def test_a_guideline_that_was_acted_on_and_its_examples_are_told() -> None:
    taught = replace(
        FINE,
        examples=(
            Example(text="what do I have to pay", matches=True),
            Example(text="fine, thanks", matches=False),
        ),
    )
    spec = agent(taught, RENEW)
    earlier = ["Do I owe you money?", BriefingEvent(guidelines=("fine",)), answered()]
    text = text_of(request_about(turn_of(spec, *earlier, "Fine, thanks"), "fine"))
    assert '{"acted on": ["G1"]}' in text
    task = text[text.rindex("The guideline:") :]
    assert '"applies to": ["what do I have to pay"]' in task
    assert '"does not apply to": ["fine, thanks"]' in task
    assert '"acted on before": true' in task
    other = text_of(request_about(turn_of(spec, *earlier, "Fine, thanks"), "renew"))
    assert "acted on before" not in other[other.rindex("The guideline:") :]


def test_the_request_asks_for_the_probability_of_the_verdict() -> None:
    request = request_about(turn_of(agent(FINE), "What do I owe?"), "fine")
    assert request.verdict == "applies"
    assert request.schema["properties"] == {"applies": {"type": "boolean"}}


# --- the offline model


@pytest.mark.parametrize(("text", "applies"), [("I want to renew my loan", True), ("Bye!", False)])
def test_the_offline_model_scores_as_it_judges_and_says_why(text: str, applies: bool) -> None:
    state = turn_of(agent(FINE, RENEW), text)
    model = OfflineModel()
    verdict = model.answer(ScoreGuideline(situation=state.situation, guideline=RENEW))
    assert verdict == {"applies": applies}
    why = ExplainMatch(situation=state.situation, guideline=RENEW, applies=applies)
    assert "otherwise" not in model.answer(why)["because"]
    other = ExplainMatch(situation=state.situation, guideline=RENEW, applies=not applies)
    assert "judged otherwise" in model.answer(other)["because"]
