"""Results written by hand, in place of calls."""

from typing import Any

import pytest

from engine.errors import ToolErrorKind
from engine.events import (
    Answer,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    RecordedEvent,
)
from engine.outbox import Emission
from engine.spec import Agent, Confirm
from engine.state import Checkpoint, Step, TurnState
from engine.testing import (
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
from engine.tools.mocked import Mock, MockedOutcomes
from engine.trail import CallState, DecisionState, Served, ToolCall, ToolDecision
from tests.engine.agents import agent, guideline, history, parameter, tool, turn_of


def a_bank(**options: Any) -> Agent:
    send = tool("send", parameter("amount"), consequential=True, **options)
    return agent(guideline("a", "wants to send money", "send it", tools=("send",)), tools=[send])


def never(*_given: Any) -> None:
    pytest.fail("the tool ran")


async def send(state: TurnState, *script: Any, **mocks: Mock) -> list[Emission]:
    model = ScriptedModel(*script)
    tools = ScriptedTools({"send": never})
    emitted = await play(state, scripted_kit(model, tools, stand_in=MockedOutcomes(mocks)))
    model.assert_used_up()
    return emitted


UNASKED = {"confirm": Confirm.INFERRED}


def asked() -> tuple[Any, ...]:
    return matches("G1"), infers("send", {"amount": said("250")}), replies("Well.")


async def test_a_mock_is_what_the_tool_answers_and_the_trail_says_so() -> None:
    state = turn_of(a_bank(**UNASKED), "Send 250")

    emitted = await send(state, *asked(), send=Mock(data={"sent": True}))

    call = entries(emitted, ToolCall)[-1]
    assert (call.state, call.served, call.served_from) == (CallState.DONE, Served.MOCK, "")
    assert call.result == {"data": {"sent": True}, "metadata": {}}


@pytest.mark.parametrize("kind", list(ToolErrorKind))
async def test_a_failure_of_every_kind_can_be_tried(kind: ToolErrorKind) -> None:
    state = turn_of(a_bank(**UNASKED), "Send 250")

    emitted = await send(state, *asked(), send=Mock(failure=kind))

    call = entries(emitted, ToolCall)[-1]
    lost = kind is ToolErrorKind.UNKNOWN_OUTCOME
    assert call.state is (CallState.UNKNOWN if lost else CallState.FAILED)
    assert call.error.kind is kind
    assert call.error.public
    assert "mocked" in call.error.detail


async def test_a_tool_without_a_mock_is_unavailable_and_says_so() -> None:
    emitted = await send(turn_of(a_bank(**UNASKED), "Send 250"), *asked())

    error = entries(emitted, ToolCall)[-1].error
    assert error.kind is ToolErrorKind.UNAVAILABLE
    assert error.detail == ("'send' has no mock in this session: write one, or run the tools live.")


async def test_a_mock_that_is_no_result_fails_like_the_tool_would() -> None:
    state = turn_of(a_bank(**UNASKED), "Send 250")

    emitted = await send(state, *asked(), send=Mock(data="x" * 2_000_000))

    assert entries(emitted, ToolCall)[-1].error.kind is ToolErrorKind.TOO_LARGE


async def test_what_changes_something_is_asked_about_first_all_the_same() -> None:
    emitted = await send(turn_of(a_bank(), "Send 250"), *asked(), send=Mock(data=1))

    assert entries(emitted, ToolCall) == []
    assert len(entries(emitted, ConfirmationAskedEvent)) == 1
    last = entries(emitted, ToolDecision)[-1]
    assert last.state is DecisionState.AWAITING_CONFIRMATION


async def test_what_was_confirmed_is_mocked_and_not_done() -> None:
    spec = a_bank()
    first = await send(turn_of(spec, "Send 250"), *asked(), send=Mock(data=1))
    question = entries(first, ConfirmationAskedEvent)[0]
    word = ConfirmationAnsweredEvent(call=question.call, tool="send", answer=Answer.CONFIRMED)
    pressed = RecordedEvent(offset=3, turn=2, event=word)
    state = TurnState(agent=spec, turn=2, history=(*history("Send 250", question), pressed))

    emitted = await send(state, matches(), replies("Sent."), send=Mock(data={"sent": True}))

    call = entries(emitted, ToolCall)[-1]
    assert (call.uid, call.state, call.served) == (question.call, CallState.DONE, Served.MOCK)


async def test_a_mocked_call_that_was_interrupted_is_simply_answered_again() -> None:
    spec = a_bank(**UNASKED)
    model = ScriptedModel(*asked())
    kit = scripted_kit(
        model, ScriptedTools({"send": never}), stand_in=MockedOutcomes({"send": Mock(data=1)})
    )
    emitted = await play(turn_of(spec, "Send 250"), kit)
    started = entries(emitted, ToolCall)[0]
    assert started.state is CallState.STARTED
    before = emitted[: emitted.index(started) + 1]
    state = turn_of(spec, "Send 250", checkpoint=Checkpoint(step=Step.RUNNING, iteration=1))
    state.recall(item for item in before if isinstance(item, ToolDecision | ToolCall))

    again = await send(state, replies("Well."), send=Mock(data=1))

    assert entries(again, ToolCall)[-1].state is CallState.DONE
