"""A turn played to its end with nobody watching: what is kept of it, and how it ends where it cannot go on."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import BY_TOOL, MessageEvent, MessagePartEvent, Mode, ModeEvent, Source
from engine.playing import Played, play_turn
from engine.spec import Agent
from engine.state import Step
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    infers,
    matches,
    replies,
    said,
    scripted_kit,
)
from engine.tools.base import ToolContext, ToolResult
from engine.trail import CallState, GuidelineMatch, ModelCall
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of

ASKED = "Where is Emma?"
SCRIPT = (
    matches("G1"),
    infers("find", {"book": said("Emma")}),
    replies("On shelf 7.", "G1"),
)


def an_agent() -> Agent:
    find = tool("find", parameter("book"))
    return agent(guideline("a", "asks for a book", "find it", tools=("find",)), tools=[find])


async def played(*script: Expected, **functions: Any) -> Played:
    kit = scripted_kit(ScriptedModel(*script), ScriptedTools(functions))
    return await play_turn(turn_of(an_agent(), ASKED), kit)


def on_shelf(_given: Any, _context: ToolContext) -> Any:
    return {"shelf": 7}


async def test_everything_that_the_turn_yielded_is_kept_apart_by_what_it_is() -> None:
    before = datetime.now(UTC)
    found = await played(*SCRIPT, find=on_shelf)
    assert found.error is None
    assert not found.not_recorded
    assert (found.number, found.step) == (1, Step.FINISHED)
    assert before <= found.started_at <= found.ended_at <= before + timedelta(seconds=60)
    kinds = [event.kind for event in found.events if event.kind != "status"]
    assert kinds == ["tool.started", "tool.finished", "briefing", "message"]
    assert [e.guideline for e in found.trail if isinstance(e, GuidelineMatch)] == ["a"]
    assert len([e for e in found.trail if isinstance(e, ModelCall)]) == 3


async def test_pieces_of_a_message_are_replaced_by_the_whole() -> None:
    found = await played(*SCRIPT, find=on_shelf)
    assert not any(isinstance(event, MessagePartEvent) for event in found.events)
    assert [e.text for e in found.events if isinstance(e, MessageEvent)] == ["On shelf 7."]


async def test_its_record_begins_with_what_was_said() -> None:
    found = await played(*SCRIPT, find=on_shelf)
    record = found.record(said_by(Source.CUSTOMER, ASKED), cost=0.5)
    assert (record.said, record.reply) == ((ASKED,), "On shelf 7.")
    assert [call.state for call in record.calls] == [CallState.DONE]
    assert record.matched == {"a"}
    assert (record.error, record.cost) == ("", 0.5)
    assert record.duration_ms is not None


async def test_what_a_tool_says_is_no_part_of_the_reply() -> None:
    async def speaks(_given: Any, context: ToolContext) -> Any:
        await context.emit_message("One moment.")
        return 7

    found = await played(*SCRIPT, find=speaks)
    told = [(e.text, e.model) for e in found.events if isinstance(e, MessageEvent)]
    assert told == [("One moment.", f"{BY_TOOL}find"), ("On shelf 7.", "scripted")]
    assert found.record().reply == "On shelf 7."


@pytest.mark.parametrize(
    ("kind", "not_recorded"),
    [(ModelErrorKind.SERVER, False), (ModelErrorKind.NOT_RECORDED, True)],
)
async def test_a_models_failure_ends_it_and_is_kept_with_what_was_done_before(
    kind: ModelErrorKind, not_recorded: bool
) -> None:
    error = ModelError("It is down.", kind=kind, retryable=False)
    failing = Expected(question="ComposeReply", answer=error)
    found = await played(*SCRIPT[:2], failing, find=on_shelf)
    assert found.error is error
    assert found.not_recorded is not_recorded
    assert found.step is Step.WRITING
    record = found.record()
    assert (record.error, record.reply) == ("It is down.", "")
    assert [call.state for call in record.calls] == [CallState.DONE]


async def test_it_fails_before_its_first_step_was_through() -> None:
    error = ModelError("It is down.", kind=ModelErrorKind.SERVER, retryable=False)
    found = await played(Expected(question="MatchGuidelines", answer=error))
    assert found.error is error
    assert found.step is Step.MATCHING


async def test_a_hand_over_stands_in_the_record() -> None:
    def hands_over(_given: Any, _context: ToolContext) -> ToolResult:
        return ToolResult(data="ask Ann", control={"mode": "manual"})

    found = await played(*SCRIPT, find=hands_over)
    assert found.record().handed_over
    modes = [(e.mode, e.source) for e in found.events if isinstance(e, ModeEvent)]
    assert modes == [(Mode.MANUAL, Source.SYSTEM)]


async def test_what_else_goes_wrong_is_not_swallowed() -> None:
    with pytest.raises(AssertionError, match="Nobody expected"):
        await played()
