"""Overlapping tools are judged together, and the better one wins (ENGINE.md §1 step 4)."""

import pytest

from engine.outbox import Emission
from engine.spec import Agent
from engine.state import Checkpoint, Limits, Step, TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    chooses,
    entries,
    infers,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.trail import DecisionState, GuidelineMatch, ModelCall, ToolDecision
from tests.engine.agents import agent, guideline, parameter, tool, turn_of

ONE = tool("one_order", parameter("number"))
ALL = tool("all_orders")
HELP = tool("help_page")
SHOP = agent(
    guideline("orders", "asks for orders", "say", tools=("one_order", "all_orders")),
    guideline("help", "wants help", "help", tools=("help_page",)),
    tools=[ONE, ALL, HELP],
    overlaps=(("one_order", "all_orders"),),
)
TOOLS = {name: (lambda _a, _c: 1) for name in ("one_order", "all_orders", "help_page")}


def a_turn(text: str = "Where is order 7?", spec: Agent = SHOP, likely: int = 0) -> TurnState:
    return turn_of(spec, text, limits=Limits(likely_tools=likely))


async def run(
    *script: Expected, state: TurnState | None = None
) -> tuple[list[Emission], list[str], ScriptedModel]:
    model, tools = ScriptedModel(*script), ScriptedTools(dict(TOOLS))
    emitted = await play(state or a_turn(), scripted_kit(model, tools))
    model.assert_used_up()
    return emitted, sorted(name for name, _arguments in tools.called), model


def states(emitted: list[Emission]) -> dict[str, DecisionState]:
    return {d.tool: d.state for d in entries(emitted, ToolDecision)}


async def test_the_winner_goes_on_as_usual_and_the_loser_is_not_needed() -> None:
    emitted, ran, _model = await run(
        matches("G1"),
        chooses("one_order", "One order is asked about."),
        infers("one_order", {"number": said("7")}),
        replies("Here."),
    )
    assert ran == ["one_order"]
    assert states(emitted) == {
        "all_orders": DecisionState.NOT_NEEDED,
        "one_order": DecisionState.NEEDS_TO_RUN,
    }
    lost = next(d for d in entries(emitted, ToolDecision) if d.tool == "all_orders")
    assert lost.because == "one_order serves better: One order is asked about."
    asked = next(c for c in entries(emitted, ModelCall) if c.question == "ChooseTool")
    assert lost.model_call == asked.uid


async def test_a_winner_that_needs_no_question_runs_without_one() -> None:
    emitted, ran, _model = await run(matches("G1"), chooses("all_orders"), replies("Here."))
    assert ran == ["all_orders"]
    assert states(emitted)["one_order"] is DecisionState.NOT_NEEDED


@pytest.mark.parametrize("answer", ["", "help_page", "no_such_tool"])
async def test_an_answer_that_names_none_of_them_runs_none(answer: str) -> None:
    emitted, ran, _model = await run(matches("G1"), chooses(answer), replies("Hm."))
    assert ran == []
    assert set(states(emitted).values()) == {DecisionState.NOT_NEEDED}


async def test_one_candidate_of_a_group_has_no_rival() -> None:
    spec = agent(
        guideline("a", "asks for one", "say", tools=("one_order",)),
        guideline("b", "asks for all", "say", tools=("all_orders",)),
        tools=[ONE, ALL],
        overlaps=(("one_order", "all_orders"),),
    )
    _emitted, ran, model = await run(
        matches("G1"),
        infers("one_order", {"number": said("7")}),
        replies("Here."),
        state=a_turn(spec=spec),
    )
    assert ran == ["one_order"]
    assert not any(q.startswith("ChooseTool") for q in model.questions())


async def test_tools_outside_the_group_are_decided_beside_it() -> None:
    emitted, ran, _model = await run(matches("G1", "G2"), chooses("all_orders"), replies("Here."))
    assert ran == ["all_orders", "help_page"]
    assert len(states(emitted)) == 3


async def test_a_tool_in_two_groups_must_win_both() -> None:
    spec = agent(
        guideline("g", "asks", "say", tools=("one_order", "all_orders", "help_page")),
        tools=[ONE, ALL, HELP],
        overlaps=(("one_order", "all_orders"), ("all_orders", "help_page")),
    )
    emitted, ran, _model = await run(
        matches("G1"),
        chooses("all_orders"),
        chooses("help_page"),
        replies("Here."),
        state=a_turn(spec=spec),
    )
    assert ran == ["help_page"]
    assert states(emitted)["all_orders"] is DecisionState.NOT_NEEDED


async def test_the_guess_about_a_loser_is_dropped() -> None:
    emitted, ran, _model = await run(
        matches("G1"),
        infers("one_order", {"number": said("7")}),
        chooses("all_orders"),
        replies("Here."),
        state=a_turn("Somebody asks for orders: 7", likely=2),
    )
    assert ran == ["all_orders"]
    guess = next(c for c in entries(emitted, ModelCall) if c.question == "InferToolCalls")
    assert not guess.used


async def test_a_choice_on_record_is_not_made_again() -> None:
    first, _ran, _model = await run(matches("G1"), chooses("all_orders"), replies("Here."))
    state = a_turn()
    state.checkpoint = Checkpoint(step=Step.CALLING)
    state.recall(entries(first, GuidelineMatch))
    state.recall([d for d in entries(first, ToolDecision) if d.tool == "one_order"])
    _emitted, ran, _model = await run(replies("Here."), state=state)
    assert ran == ["all_orders"]
