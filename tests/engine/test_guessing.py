"""Calls inferred beside matching (ENGINE.md §1 step 4): a saved round trip, and nothing rests on a wrong guess."""

import asyncio
from typing import Any

from engine.errors import ModelError, ModelErrorKind
from engine.events import Source
from engine.guessing import likely_tools
from engine.model.base import JudgingStyle, ModelReply, ModelRequest, TextDelta
from engine.state import Limits
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    infers,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.trail import ModelCall, ToolCall, ToolDecision
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of

FIND = tool("find_book", parameter("title"))
RENEW = tool("renew_loan", parameter("loan"), consequential=True)
HOURS = tool("opening_hours")
LIBRARY = agent(
    guideline("find", "the customer asks for a book", "find it", tools=("find_book",)),
    guideline("renew", "the customer wants to renew a loan", "renew it", tools=("renew_loan",)),
    guideline("hours", "the customer asks for opening hours", "say", tools=("opening_hours",)),
    guideline("swear", "the customer swears", "stay calm", tools=("find_book",), enabled=False),
    tools=[FIND, RENEW, HOURS],
)
ASKS = "I ask for a book, Emma"


def guessed(text: str, *before: Any, **options: Any) -> list[str]:
    state = turn_of(LIBRARY, *before, text, **options)
    return [found.name for found, _owners in likely_tools(state)]


class TestWhatIsLikely:
    def test_the_tool_of_the_guideline_closest_by_words(self) -> None:
        assert guessed(ASKS)[:1] == ["find_book"]
        assert guessed("Please renew my loan")[:1] == ["renew_loan"]

    def test_words_that_are_close_to_nothing_guess_nothing(self) -> None:
        assert guessed("Good evening") == []

    def test_a_tool_that_needs_no_question_is_not_guessed(self) -> None:
        assert "opening_hours" not in guessed("What are your opening hours?")

    def test_a_switched_off_guideline_makes_nothing_likely(self) -> None:
        assert guessed("the customer swears") == []

    def test_the_limit_bounds_and_switches_off(self) -> None:
        both = "I ask for a book and want to renew a loan"
        assert len(guessed(both)) == 2
        assert len(guessed(both, limits=Limits(likely_tools=1))) == 1
        assert guessed(both, limits=Limits(likely_tools=0)) == []

    def test_everything_said_since_the_last_reply_counts_and_nothing_before_it(self) -> None:
        reply = said_by(Source.AGENT, "Shelf 4.")
        assert guessed("Emma", "I ask for a book") == ["find_book"]
        assert guessed("Thanks", "I ask for a book", reply) == []

    def test_a_message_that_came_before_the_last_reply_was_out_still_counts(self) -> None:
        from engine.events import RecordedEvent

        state = turn_of(LIBRARY, "Hello", ASKS)
        late = RecordedEvent(offset=3, turn=1, event=said_by(Source.AGENT, "Good morning!"))
        state.history += (late,)
        assert [found.name for found, _owners in likely_tools(state)] == ["find_book"]


async def test_a_guess_whose_guideline_matched_is_used_and_not_asked_again() -> None:
    model = ScriptedModel(matches("G1"), infers("find_book", {"title": said("Emma")}), replies("."))
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})

    emitted = await play(turn_of(LIBRARY, ASKS), scripted_kit(model, tools))

    model.assert_used_up()
    assert tools.called == [("find_book", {"title": "Emma"})]
    (call,) = (c for c in entries(emitted, ModelCall) if c.question == "InferToolCalls")
    assert call.used
    assert entries(emitted, ToolDecision)[0].model_call == call.uid


async def test_a_guess_whose_guideline_did_not_match_runs_nothing_and_is_on_record_as_unused() -> (
    None
):
    model = ScriptedModel(matches(), infers("find_book", {"title": said("Emma")}), replies("."))
    tools = ScriptedTools()

    emitted = await play(turn_of(LIBRARY, ASKS), scripted_kit(model, tools))

    assert tools.called == []
    assert entries(emitted, ToolDecision) == entries(emitted, ToolCall) == []
    (call,) = (c for c in entries(emitted, ModelCall) if c.question == "InferToolCalls")
    assert not call.used
    assert call.answer_text


async def test_a_guess_that_is_still_out_when_matching_says_no_is_not_waited_for() -> None:
    class SlowGuess(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            if request.question.name == "InferToolCalls":
                await asyncio.sleep(30)
            async for item in super().stream(request):
                yield item

    model = SlowGuess(matches(), replies("."))
    emitted = await asyncio.wait_for(play(turn_of(LIBRARY, ASKS), scripted_kit(model)), 5)

    (call,) = (c for c in entries(emitted, ModelCall) if c.question == "InferToolCalls")
    assert not call.used
    assert "not needed" in call.error


async def test_a_guess_that_failed_is_asked_again_when_it_is_needed() -> None:
    down = ModelError("down", kind=ModelErrorKind.SERVER, retryable=True)
    model = ScriptedModel(
        matches("G1"),
        Expected(question="InferToolCalls", about="find_book", answer=down),
        infers("find_book", {"title": said("Emma")}),
        replies("."),
    )
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})

    emitted = await play(turn_of(LIBRARY, ASKS), scripted_kit(model, tools))

    assert len(tools.called) == 1
    found = [c for c in entries(emitted, ModelCall) if c.question == "InferToolCalls"]
    assert sorted((c.used, bool(c.error)) for c in found) == [(False, True), (True, False)]


async def test_a_guess_rests_on_the_guidelines_that_matched_not_on_all_that_own_the_tool() -> None:
    """A value that only stands in a guideline which did not match comes from nowhere."""
    spec = agent(
        guideline("a", "the customer asks for a book", "find it", tools=("find_book",)),
        guideline("b", "the customer asks for the classic", "find Emma", tools=("find_book",)),
        tools=[FIND],
    )
    claim = {"value": "Emma", "source": "guideline", "evidence": "find Emma"}
    for matched, verified in (("G1", False), ("G2", True)):
        model = ScriptedModel(matches(matched), infers("find_book", {"title": claim}), replies("."))
        tools = ScriptedTools({"find_book": lambda _a, _c: 1})
        state = turn_of(spec, "I ask for a book")
        emitted = await play(state, scripted_kit(model, tools))
        (decision,) = entries(emitted, ToolDecision)
        assert decision.arguments[0].verified is verified
        assert [decision.guideline] == [{"G1": "a", "G2": "b"}[matched]]


async def test_a_guess_about_a_tool_that_changes_something_runs_nothing_by_itself() -> None:
    model = ScriptedModel(matches(), infers("renew_loan", {"loan": said("7")}), replies("."))
    tools = ScriptedTools()
    await play(turn_of(LIBRARY, "I want to renew loan 7"), scripted_kit(model, tools))
    model.assert_used_up()
    assert tools.called == []


async def test_guess_and_later_question_are_the_same_prompt() -> None:
    """So that a server that caches prompts, or a recording, serves both."""
    requests: list[ModelRequest] = []

    class Keeping(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            if request.question.name == "InferToolCalls":
                requests.append(request)
            async for item in super().stream(request):
                yield item

    for likely in (2, 0):
        model = Keeping(matches("G1"), infers("find_book", {"title": said("Emma")}), replies("."))
        tools = ScriptedTools({"find_book": lambda _a, _c: 1})
        state = turn_of(LIBRARY, ASKS, limits=Limits(likely_tools=likely))
        await play(state, scripted_kit(model, tools))
    ahead, after = requests
    assert ahead.request_key == after.request_key


async def test_stopping_the_turn_stops_the_guesses_too() -> None:
    running: list[asyncio.Task[Any]] = []

    class Never:
        name, batch_size, judging_style = "never", 12, JudgingStyle.REASONED

        async def stream(self, _request: ModelRequest) -> Any:
            running.append(asyncio.current_task())  # type: ignore[arg-type]
            await asyncio.sleep(60)
            yield TextDelta(text="")
            yield ModelReply(answer={}, text="", model="never")

    kit = scripted_kit(Never())
    asyncio.get_running_loop().call_later(0.05, kit.stop.set)
    emitted = await asyncio.wait_for(play(turn_of(LIBRARY, ASKS), kit), 5)
    assert len(running) == 2
    assert all(task.done() for task in running)
    assert {c.question for c in entries(emitted, ModelCall)} == {
        "MatchGuidelines",
        "InferToolCalls",
    }
    assert not any(c.used for c in entries(emitted, ModelCall))
