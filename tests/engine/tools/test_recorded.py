"""What earlier calls gave, in place of calls."""

from typing import Any

import pytest

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind
from engine.events import ToolFinishedEvent
from engine.outbox import Emission
from engine.spec import Agent
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
from engine.tools.recorded import Record, RecordedOutcomes
from engine.trail import CallState, Served, ToolCall
from tests.engine.agents import agent, guideline, parameter, tool, turn_of


def an_agent(**options: Any) -> Agent:
    find = tool("find", parameter("book"), **options)
    return agent(guideline("a", "asks for a book", "find it", tools=("find",)), tools=[find])


class Records:
    """A FindRecord that knows one call, and keeps what it was asked."""

    def __init__(self, record: Record | None = None, error: Exception | None = None) -> None:
        self._record = record
        self._error = error
        self.asked: list[tuple[str, JsonObject]] = []

    async def __call__(self, name: str, arguments: JsonObject) -> Record | None:
        self.asked.append((name, arguments))
        if self._error is not None:
            raise self._error
        return self._record


async def ask(records: Records, **options: Any) -> tuple[list[Emission], ScriptedModel]:
    model = ScriptedModel(matches("G1"), infers("find", {"book": said("Emma")}), replies("Well."))
    tools = ScriptedTools()  # any call of a tool would fail
    kit = scripted_kit(model, tools, stand_in=RecordedOutcomes(records))
    emitted = await play(turn_of(an_agent(**options), "Where is Emma?"), kit)
    model.assert_used_up()
    assert tools.called == []
    return emitted, model


def the_call(emitted: list[Emission]) -> ToolCall:
    call: ToolCall = entries(emitted, ToolCall)[-1]
    return call


async def test_an_earlier_result_stands_for_the_call_and_the_trail_says_where_it_came_from() -> (
    None
):
    result = {"data": {"shelf": 7}, "metadata": {"map": "m.png"}}
    records = Records(Record(place="12/3/c1", result=result))

    emitted, model = await ask(records)

    assert records.asked == [("find", {"book": "Emma"})]
    call = the_call(emitted)
    assert (call.state, call.served, call.served_from) == (
        CallState.DONE,
        Served.RECORDED,
        "12/3/c1",
    )
    assert call.result == result
    assert entries(emitted, ToolFinishedEvent)[0].data == {"shelf": 7}
    assert "shelf" in "".join(message.content for message in model.requests[-1].messages)


async def test_already_its_start_says_that_the_tool_does_not_run() -> None:
    emitted, _model = await ask(Records())

    assert entries(emitted, ToolCall)[0].state is CallState.STARTED
    assert entries(emitted, ToolCall)[0].served is Served.RECORDED


async def test_a_failure_is_repeated_as_that_failure() -> None:
    error = ToolError(kind=ToolErrorKind.TIMEOUT, public="it took too long", detail="after 5 s")

    emitted, _model = await ask(Records(Record(place="12/3/c1", error=error)))

    call = the_call(emitted)
    assert (call.state, call.error, call.served_from) == (CallState.FAILED, error, "12/3/c1")


async def test_without_a_record_the_tool_is_unavailable_and_the_remedy_is_named() -> None:
    emitted, _model = await ask(Records())

    error = the_call(emitted).error
    assert error is not None
    assert error.kind is ToolErrorKind.UNAVAILABLE
    assert error.detail == (
        "'find' has no recorded result for these arguments: run it live once, or mock it."
    )
    assert the_call(emitted).served_from == ""


async def test_records_that_cannot_be_read_fail_the_call_and_not_the_turn() -> None:
    emitted, _model = await ask(Records(error=OSError("disk gone")))

    error = the_call(emitted).error
    assert error is not None
    assert error.kind is ToolErrorKind.UNAVAILABLE
    assert "could not be read" in error.detail


@pytest.mark.parametrize("result", [{"data": 1, "shape": "new"}, {"data": 1, "control": 7}])
async def test_a_result_of_another_shape_is_a_failure_that_says_so(result: JsonObject) -> None:
    emitted, _model = await ask(Records(Record(place="12/3/c1", result=result)))

    call = the_call(emitted)
    assert call.state is CallState.FAILED
    assert call.error is not None


async def test_what_a_result_brought_along_is_brought_again() -> None:
    result = {
        "data": 1,
        "metadata": {},
        "guidelines": [{"condition": "", "action": "say where", "criticality": "medium"}],
    }

    emitted, _model = await ask(Records(Record(place="12/3/c1", result=result)))

    assert the_call(emitted).result == result
