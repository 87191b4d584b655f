"""The loop of ENGINE.md §1, scene by scene."""

import asyncio
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import (
    BriefingEvent,
    ConfirmationAskedEvent,
    MessageEvent,
    MessagePartEvent,
    Source,
    StatusEvent,
    ToolFinishedEvent,
)
from engine.model.base import ModelRequest
from engine.spec import Confirm
from engine.state import Checkpoint, Limits, Step
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    chooses,
    entries,
    inferred,
    infers,
    known,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.trail import (
    Adherence,
    CallState,
    DecisionState,
    GuidelineMatch,
    LimitReached,
    MatchState,
    ModelCall,
    ToolCall,
    ToolDecision,
)
from engine.turn import run_turn
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of

FIND = tool("find_book", parameter("title"))
RESERVE = tool("reserve_book", parameter("book_id"), consequential=True, confirm=Confirm.INFERRED)
HOURS = tool("opening_hours")

LIBRARY = agent(
    guideline("find", "the customer asks for a book", "say where it is", tools=("find_book",)),
    guideline("lost", "the book is not there", "say sorry", reevaluate_after=("find_book",)),
    guideline("tone", action="be brief"),
    tools=[FIND],
)


async def test_a_matched_guideline_brings_its_tool_and_its_result_reaches_the_reply() -> None:
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), matches(), replies("Shelf 4.")
    )
    tools = ScriptedTools({"find_book": lambda a, _c: {"title": a["title"], "shelf": 4}})

    emitted = await play(turn_of(LIBRARY, "Have you got Emma?"), scripted_kit(model, tools))

    model.assert_used_up()
    assert tools.called == [("find_book", {"title": "Emma"})]
    assert '"shelf": 4' in model.requests[-1].messages[-1].content
    assert entries(emitted, MessageEvent)[-1].text == "Shelf 4."
    assert emitted[-1] == Checkpoint(step=Step.FINISHED, iteration=2)


async def test_without_a_matched_guideline_no_tool_is_considered() -> None:
    model = ScriptedModel(matches(), replies("I cannot help with that."))

    emitted = await play(turn_of(LIBRARY, "Good evening"), scripted_kit(model))

    assert entries(emitted, ToolDecision) == []
    assert entries(emitted, ToolCall) == []


async def test_a_call_inferred_beside_matching_is_not_used_when_its_guideline_does_not_match() -> (
    None
):
    model = ScriptedModel(
        matches(), infers("find_book", {"title": said("Emma")}), replies("Good evening.")
    )
    tools = ScriptedTools()

    emitted = await play(
        turn_of(LIBRARY, "The customer asks for a book: Emma"), scripted_kit(model, tools)
    )

    model.assert_used_up()
    assert tools.called == []
    assert entries(emitted, ToolDecision) == []
    guess = next(c for c in entries(emitted, ModelCall) if c.question == "InferToolCalls")
    assert guess.used is False


async def test_the_scenario_of_the_budgets_takes_three_round_trips() -> None:
    """Matching with the guess beside it, matching again after the tool, writing."""
    asked: list[list[str]] = [[]]

    def waits(expected: Expected) -> Expected:
        def answer(request: ModelRequest) -> dict[str, Any]:
            asked[-1].append(request.question.name)
            given: Any = expected.answer
            return dict(given(request) if callable(given) else given)

        return Expected(question=expected.question, about=expected.about, answer=answer)

    model = ScriptedModel(
        *map(waits, [matches("G1"), infers("find_book", {"title": said("Emma")}), matches("G2")]),
        waits(replies("Sorry, it is out.")),
    )

    class Gate(ScriptedTools):
        async def call(self, *args: Any) -> Any:
            asked.append([])
            return await super().call(*args)

    tools = Gate({"find_book": lambda _a, _c: None})
    await play(turn_of(LIBRARY, "I ask for a book, Emma"), scripted_kit(model, tools))

    assert sorted(asked[0]) == ["InferToolCalls", "MatchGuidelines"]
    assert asked[1] == ["MatchGuidelines", "ComposeReply"]


async def test_every_guideline_ends_the_turn_with_a_recorded_state() -> None:
    spec = agent(
        guideline("on", "the customer greets", "greet"),
        guideline("off", "the customer swears", "stay calm", enabled=False),
        guideline("always", action="be kind"),
    )
    model = ScriptedModel(matches("G1"), replies("Hello!"))

    emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))

    states = {m.guideline: m.state for m in entries(emitted, GuidelineMatch)}
    assert states == {
        "on": MatchState.MATCHED,
        "off": MatchState.NOT_EVALUATED,
        "always": MatchState.MATCHED,
    }
    assert all(m.because for m in entries(emitted, GuidelineMatch))
    labels = [g.uid for g in model.requests[0].question.guidelines]  # type: ignore[union-attr]
    assert labels == ["on"]


async def test_an_agent_without_conditions_asks_no_matching_question() -> None:
    model = ScriptedModel(replies("Hello!"))

    await play(turn_of(agent(guideline("a", action="be kind")), "Hello"), scripted_kit(model))

    assert model.questions() == ["ComposeReply"]


async def test_guidelines_are_judged_in_batches_of_a_stable_composition() -> None:
    spec = agent(*(guideline(f"g{n}", f"condition {n}", "act") for n in range(1, 8)))
    model = ScriptedModel(matches("G2"), matches("G4"), matches(), replies("Yes."), batch_size=3)

    await play(turn_of(spec, "Hello"), scripted_kit(model))

    assert sorted(model.questions()[:3]) == [
        "MatchGuidelines G1–G3",
        "MatchGuidelines G4–G6",
        "MatchGuidelines G7",
    ]


async def test_what_a_batch_leaves_out_is_asked_again_and_what_it_invents_is_ignored() -> None:
    spec = agent(guideline("a", "one", "x"), guideline("b", "two", "y"))

    def partly(_request: ModelRequest) -> dict[str, Any]:
        return {
            "judgements": [
                {"guideline": "G1", "because": "Yes.", "applies": True},
                {"guideline": "G99", "because": "Invented.", "applies": True},
            ]
        }

    model = ScriptedModel(
        Expected(question="MatchGuidelines", answer=partly), matches("G2"), replies("Hm.")
    )

    emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))

    assert model.questions()[:2] == ["MatchGuidelines G1–G2", "MatchGuidelines G2"]
    found = {m.guideline: m.state for m in entries(emitted, GuidelineMatch)}
    assert found == {"a": MatchState.MATCHED, "b": MatchState.MATCHED}


async def test_a_guideline_that_is_never_judged_is_recorded_as_not_evaluated() -> None:
    spec = agent(guideline("a", "one", "x"), guideline("b", "two", "y"))
    only_a = {"judgements": [{"guideline": "G1", "because": "Yes.", "applies": True}]}
    nothing: dict[str, Any] = {"judgements": []}
    model = ScriptedModel(
        Expected(question="MatchGuidelines", answer=only_a),
        Expected(question="MatchGuidelines", answer=nothing),
        Expected(question="MatchGuidelines", answer=nothing),
        replies("Hm."),
    )

    emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))

    states = {m.guideline: m.state for m in entries(emitted, GuidelineMatch)}
    assert states["b"] is MatchState.NOT_EVALUATED


async def test_a_model_that_judges_nothing_at_all_ends_the_turn_with_its_error() -> None:
    nothing = Expected(question="MatchGuidelines", answer={"judgements": []})
    model = ScriptedModel(nothing, nothing, nothing)

    with pytest.raises(ModelError, match="judged none of G1"):
        await play(turn_of(agent(guideline("a", "one", "x")), "Hello"), scripted_kit(model))


async def test_only_guidelines_marked_for_it_are_judged_again_after_a_tool() -> None:
    spec = agent(
        guideline("find", "asks for a book", "say where", tools=("find_book",)),
        guideline("lost", "the book is out", "say sorry", reevaluate_after=("find_book",)),
        guideline("other", "asks for the time", "say it"),
        tools=[FIND],
    )
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), matches("G2"), replies("Sorry")
    )

    emitted = await play(
        turn_of(spec, "Emma?"), scripted_kit(model, ScriptedTools({"find_book": lambda _a, _c: 0}))
    )

    again = [m for m in entries(emitted, GuidelineMatch) if m.iteration == 2]
    assert [(m.guideline, m.state) for m in again] == [("lost", MatchState.MATCHED)]


async def test_only_newly_matched_guidelines_bring_new_tools() -> None:
    spec = agent(
        guideline("find", "asks for a book", "find it", tools=("find_book",)),
        guideline("out", "it is out", "offer hours", tools=("opening_hours",),
                  reevaluate_after=("find_book",)),
        tools=[FIND, HOURS],
    )  # fmt: skip
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), matches("G2"), replies("Ok")
    )
    tools = ScriptedTools(
        {"find_book": lambda _a, _c: "out", "opening_hours": lambda _a, _c: "9–5"}
    )

    await play(turn_of(spec, "Emma?"), scripted_kit(model, tools))

    assert [name for name, _arguments in tools.called] == ["find_book", "opening_hours"]


async def test_reaching_the_iteration_limit_with_work_left_is_recorded() -> None:
    spec = agent(
        guideline("find", "asks for a book", "find it", tools=("find_book",)),
        guideline("out", "it is out", "say so", reevaluate_after=("find_book",)),
        tools=[FIND],
        max_iterations=1,
    )
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), replies("Ok")
    )

    emitted = await play(
        turn_of(spec, "Emma?"), scripted_kit(model, ScriptedTools({"find_book": lambda _a, _c: 1}))
    )

    (limit,) = entries(emitted, LimitReached)
    assert limit.limit == "max_iterations"
    assert "G2" in limit.detail


async def test_a_tool_without_parameters_runs_without_a_question() -> None:
    spec = agent(
        guideline("h", "asks for the hours", "say", tools=("opening_hours",)), tools=[HOURS]
    )
    model = ScriptedModel(matches("G1"), replies("9 to 5."))
    tools = ScriptedTools({"opening_hours": lambda _a, _c: "9–5"})

    emitted = await play(turn_of(spec, "When are you open?"), scripted_kit(model, tools))

    assert len(tools.called) == 1
    assert entries(emitted, ToolDecision)[0].state is DecisionState.NEEDS_TO_RUN


async def test_a_tool_of_two_matched_guidelines_is_one_call_and_a_decision_under_each() -> None:
    spec = agent(
        guideline("find", "asks for a book", "find it", tools=("find_book",)),
        guideline("gift", "wants a present", "find it", tools=("find_book",)),
        tools=[FIND],
    )
    model = ScriptedModel(
        matches("G1", "G2"), infers("find_book", {"title": said("Emma")}), replies("Here.")
    )
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})

    emitted = await play(turn_of(spec, "Emma as a present?"), scripted_kit(model, tools))

    assert len(tools.called) == 1
    decisions = entries(emitted, ToolDecision)
    assert {d.guideline for d in decisions} == {"find", "gift"}
    assert len({d.call for d in decisions}) == 1
    assert set(entries(emitted, ToolCall)[-1].guidelines) == {"find", "gift"}


async def test_several_calls_of_one_tool_in_a_turn_run_in_parallel() -> None:
    both = asyncio.Barrier(2)

    async def find(arguments: dict[str, Any]) -> str:
        await asyncio.wait_for(both.wait(), 5)
        return str(arguments["title"])

    model = ScriptedModel(
        matches("G1"),
        infers("find_book", {"title": said("Emma")}, {"title": said("Ivanhoe")}),
        matches(),
        replies("Both are here."),
    )
    tools = ScriptedTools({"find_book": lambda a, _c: find(a)})

    await play(turn_of(LIBRARY, "Emma and Ivanhoe?"), scripted_kit(model, tools))

    assert {a["title"] for _name, a in tools.called} == {"Emma", "Ivanhoe"}


async def test_the_same_call_twice_in_one_answer_runs_once() -> None:
    model = ScriptedModel(
        matches("G1"),
        infers("find_book", {"title": said("Emma")}, {"title": said("Emma")}),
        matches(),
        replies("Here."),
    )
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})

    await play(turn_of(LIBRARY, "Emma, Emma!"), scripted_kit(model, tools))

    assert len(tools.called) == 1


async def test_the_reply_is_streamed_in_pieces_that_add_up_to_it() -> None:
    text = "A longer answer. " * 40
    model = ScriptedModel(matches(), replies(text))

    emitted = await play(turn_of(LIBRARY, "Hello"), scripted_kit(model))

    pieces = entries(emitted, MessagePartEvent)
    assert pieces
    assert text.startswith("".join(piece.text for piece in pieces))
    assert entries(emitted, MessageEvent)[-1].text == text.strip()


async def test_the_writer_reports_which_guidelines_its_reply_follows() -> None:
    model = ScriptedModel(matches("G1"), infers("find_book", decision=DecisionState.NOT_NEEDED),
                          replies("Hm.", "G3", "G77"))  # fmt: skip

    emitted = await play(turn_of(LIBRARY, "Hello"), scripted_kit(model))

    assert [(a.guideline, a.follows) for a in entries(emitted, Adherence)] == [("tone", True)]


async def test_the_briefing_lists_guidelines_by_criticality_then_priority() -> None:
    from engine.spec import Criticality

    spec = agent(
        guideline("low", action="l", criticality=Criticality.LOW, priority=9),
        guideline("mid", action="m"),
        guideline("first", action="f", priority=5),
        guideline("high", action="h", criticality=Criticality.HIGH),
    )
    model = ScriptedModel(replies("Ok."))

    emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))

    assert entries(emitted, BriefingEvent)[0].guidelines == ("high", "first", "mid", "low")


async def test_the_next_turn_is_told_what_was_acted_on() -> None:
    earlier = BriefingEvent(guidelines=("find",), content={})
    model = ScriptedModel(matches(), replies("You are welcome."))
    state = turn_of(LIBRARY, "Emma?", earlier, said_by(Source.AGENT, "Shelf 4."), "Thanks")

    await play(state, scripted_kit(model))

    assert '{"acted on": ["G1"]}' in model.requests[0].messages[-1].content


async def test_a_result_of_an_earlier_turn_can_fill_an_argument() -> None:
    spec = agent(
        guideline("r", "wants to reserve", "reserve it", tools=("reserve_book",)), tools=[RESERVE]
    )
    found = ToolFinishedEvent(
        call="c1", tool="find_book", arguments={}, data={"items": [{"id": "b-1"}, {"id": "b-2"}]}
    )
    model = ScriptedModel(
        matches("G1"),
        infers("reserve_book", {"book_id": known("b-2", "find_book.items[1].id")}),
        replies("Reserved."),
    )
    tools = ScriptedTools({"reserve_book": lambda _a, _c: "ok"})
    state = turn_of(
        spec, "Books by Austen?", found, said_by(Source.AGENT, "Two."), "The second one"
    )

    emitted = await play(state, scripted_kit(model, tools))

    argument = entries(emitted, ToolDecision)[0].arguments[0]
    assert (argument.verified, argument.evidence) == (True, "find_book.items[1].id")
    assert tools.called == [("reserve_book", {"book_id": "b-2"})]


async def test_stopping_ends_the_turn_at_the_next_safe_point_and_keeps_the_trail() -> None:
    model = ScriptedModel(matches("G1"), infers("find_book", {"title": said("Emma")}))
    started = asyncio.Event()

    async def forever() -> None:
        started.set()
        await asyncio.sleep(60)

    kit = scripted_kit(model, ScriptedTools({"find_book": lambda _a, _c: forever()}))

    async def stop_it() -> None:
        await started.wait()
        kit.stop.set()

    stopper = asyncio.create_task(stop_it())
    emitted = await play(turn_of(LIBRARY, "Emma?"), kit)
    await stopper

    assert emitted[-1] == Checkpoint(step=Step.STOPPED, iteration=1)
    assert entries(emitted, ToolCall)[-1].state is CallState.CANCELLED
    assert entries(emitted, GuidelineMatch)


async def test_a_started_consequential_call_is_awaited_and_kept_when_the_turn_is_stopped() -> None:
    spec = agent(guideline("r", "reserve", "do", tools=("reserve_book",)), tools=[RESERVE])
    model = ScriptedModel(matches("G1"), infers("reserve_book", {"book_id": said("b-1")}))
    started = asyncio.Event()

    async def reserve() -> str:
        started.set()
        await asyncio.sleep(0.1)
        return "reserved"

    kit = scripted_kit(model, ScriptedTools({"reserve_book": lambda _a, _c: reserve()}))

    async def stop_it() -> None:
        await started.wait()
        kit.stop.set()

    stopper = asyncio.create_task(stop_it())
    emitted = await play(turn_of(spec, "Reserve b-1"), kit)
    await stopper

    last = entries(emitted, ToolCall)[-1]
    assert (last.state, last.result["data"]) == (CallState.DONE, "reserved")
    assert emitted[-1] == Checkpoint(step=Step.STOPPED, iteration=1)


async def test_a_stopped_reply_keeps_what_was_written() -> None:
    class Dawdler(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            async for item in super().stream(request):
                yield item
                if request.stream:
                    kit.stop.set()
                    await asyncio.sleep(60)

    model = Dawdler(matches(), replies("This was to be long."))
    kit = scripted_kit(model)

    emitted = await play(turn_of(LIBRARY, "Hello"), kit)

    message = entries(emitted, MessageEvent)[-1]
    assert message.partial
    assert "This was to be long.".startswith(message.text)


async def test_a_turn_goes_on_from_its_checkpoint_without_repeating_what_was_done() -> None:
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), matches("G2"), replies("Sorry")
    )
    tools = ScriptedTools({"find_book": lambda _a, _c: "out"})
    state = turn_of(LIBRARY, "Emma?")
    told = []
    async for item in run_turn(state, scripted_kit(model, tools)):
        told.append(item)
        if item == Checkpoint(step=Step.MATCHING, iteration=2):
            break
    resumed = turn_of(LIBRARY, "Emma?", *entries(told, ToolFinishedEvent))
    resumed.checkpoint = Checkpoint(step=Step.MATCHING, iteration=2)
    resumed.recall(entries(told, (GuidelineMatch, ToolDecision, ToolCall)))  # type: ignore[arg-type]
    second = ScriptedModel(matches("G2"), replies("Sorry"))

    emitted = await play(resumed, scripted_kit(second, tools))

    second.assert_used_up()
    assert len(tools.called) == 1
    assert entries(emitted, MessageEvent)[-1].text == "Sorry"


async def test_an_empty_reply_is_an_error_and_not_a_message() -> None:
    model = ScriptedModel(matches(), replies("  "))

    with pytest.raises(ModelError) as caught:
        await play(turn_of(LIBRARY, "Hello"), scripted_kit(model))

    assert caught.value.kind is ModelErrorKind.EMPTY


async def test_no_more_calls_run_than_a_turn_may_make() -> None:
    calls = [{"title": said(f"T{n}")} for n in range(5)]
    model = ScriptedModel(matches("G1"), infers("find_book", *calls), matches(), replies("Ok"))
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})
    state = turn_of(LIBRARY, "T0 T1 T2 T3 T4", limits=Limits(max_calls=3))

    emitted = await play(state, scripted_kit(model, tools))

    assert len(tools.called) == 3
    assert {limit.limit for limit in entries(emitted, LimitReached)} == {"max_calls"}


async def test_the_status_says_in_turn_what_is_going_on() -> None:
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), matches(), replies("Here.")
    )
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})

    emitted = await play(turn_of(LIBRARY, "Hm, Emma"), scripted_kit(model, tools))

    phases = [(s.phase.value, s.count, s.tools) for s in entries(emitted, StatusEvent)]
    assert phases[0] == ("matching", 2, ())
    assert ("running", 0, ("find_book",)) in phases
    assert phases[-1] == ("writing", 0, ())


async def test_a_default_that_a_call_runs_with_stands_in_its_decision() -> None:
    find = tool("find_book", parameter("title"), parameter("most", required=False, default="ten"))
    spec = agent(guideline("f", "asks for a book", "find it", tools=("find_book",)), tools=[find])
    model = ScriptedModel(
        matches("G1"), infers("find_book", {"title": said("Emma")}), replies("Here.")
    )
    tools = ScriptedTools({"find_book": lambda _a, _c: 1})

    emitted = await play(turn_of(spec, "Emma?"), scripted_kit(model, tools))

    arguments = entries(emitted, ToolDecision)[0].arguments
    assert [(a.name, a.value, a.source.value) for a in arguments] == [
        ("title", "Emma", "customer"),
        ("most", "ten", "default"),
    ]
    assert tools.called == [("find_book", {"title": "Emma"})]


async def test_what_is_only_inferred_does_not_run_what_changes_something() -> None:
    spec = agent(guideline("r", "reserve", "do", tools=("reserve_book",)), tools=[RESERVE])
    model = ScriptedModel(
        matches("G1"), infers("reserve_book", {"book_id": inferred("b-9")}), replies("Which one?")
    )
    tools = ScriptedTools()

    emitted = await play(turn_of(spec, "Reserve it for me"), scripted_kit(model, tools))

    assert tools.called == []
    (decision,) = entries(emitted, ToolDecision)
    assert decision.state is DecisionState.AWAITING_CONFIRMATION
    assert entries(emitted, ConfirmationAskedEvent)[0].arguments == {"book_id": "b-9"}


async def test_a_default_does_not_quietly_replace_what_was_only_inferred() -> None:
    pay = tool(
        "pay", parameter("amount", "number"),
        parameter("currency", required=False, default="EUR"), consequential=True,
    )  # fmt: skip
    spec = agent(guideline("p", "wants to pay", "pay", tools=("pay",)), tools=[pay])
    model = ScriptedModel(
        matches("G1"),
        infers("pay", {"amount": said(50), "currency": inferred("USD")}),
        replies("50 USD?"),
    )
    tools = ScriptedTools()

    emitted = await play(turn_of(spec, "Pay 50"), scripted_kit(model, tools))

    assert tools.called == []
    assert entries(emitted, ConfirmationAskedEvent)[0].arguments == {
        "amount": 50,
        "currency": "USD",
    }


async def test_an_overlapping_tool_that_ran_has_guidelines_judged_again_too() -> None:
    spec = agent(
        guideline("a", "asks for a book", "find it", tools=("find_book", "search_all")),
        guideline("b", "it is out", "say sorry", reevaluate_after=("search_all",)),
        tools=[FIND, tool("search_all", parameter("words"))],
        overlaps=(("find_book", "search_all"),),
    )
    model = ScriptedModel(
        matches("G1"), chooses("search_all"), infers("search_all", {"words": said("Emma")}),
        matches("G2"), replies("Sorry."),
    )  # fmt: skip
    tools = ScriptedTools({"search_all": lambda _a, _c: "out"})

    emitted = await play(
        turn_of(spec, "Emma?", limits=Limits(likely_tools=0)), scripted_kit(model, tools)
    )

    model.assert_used_up()
    judged = [m for m in entries(emitted, GuidelineMatch) if m.guideline == "b"]
    assert judged[-1].state is MatchState.MATCHED
