"""What earlier calls gave, in place of calls."""

from typing import Any

import pytest

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind
from engine.events import MessageEvent, Source, ToolFinishedEvent
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
from engine.tools.recorded import Record, RecordedCall, RecordedCalls, RecordedOutcomes
from engine.tools.standing_in import StoodIn
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


# --- the calls of one turn


def call(place: str, book: str = "Emma", **outcome: Any) -> RecordedCall:
    return RecordedCall(
        tool="find", arguments={"book": book}, record=Record(place=place, **outcome)
    )


def found(shelf: int) -> JsonObject:
    return {"data": {"shelf": shelf}, "metadata": {}}


async def outcomes(calls: RecordedCalls, *books: str) -> list[StoodIn]:
    find = an_agent().tools[0]
    return [await calls.outcome_of(find, {"book": book}) for book in books]


async def test_each_call_ends_as_it_did_and_the_last_of_the_same_again_and_again() -> None:
    said_then = (("One moment.", "tool:find"),)
    calls = RecordedCalls(
        [
            call("1/1/a", result=found(1)),
            call("1/1/b", "Persuasion", result=found(2)),
            call("1/1/c", result=found(3), said=said_then),
        ]
    )
    given = await outcomes(calls, "Emma", "Persuasion", "Emma", "Emma", "Persuasion")
    assert [each.served_from for each in given] == ["1/1/a", "1/1/b", "1/1/c", "1/1/c", "1/1/b"]
    assert [each.outcome.data["shelf"] for each in given] == [1, 2, 3, 3, 2]
    assert [each.said for each in given] == [(), (), said_then, said_then, ()]


async def test_arguments_are_the_same_however_their_parts_are_ordered() -> None:
    record = Record(place="1/1/a", result=found(1))
    calls = RecordedCalls(
        [RecordedCall(tool="find", arguments={"book": "Emma", "in": [1, 2.0]}, record=record)]
    )
    find = an_agent().tools[0]
    assert (await calls.outcome_of(find, {"in": [1, 2.0], "book": "Emma"})).served_from == "1/1/a"
    assert (await calls.outcome_of(find, {"in": [2.0, 1], "book": "Emma"})).served_from == ""


async def test_another_tool_or_other_arguments_have_no_outcome_unless_somebody_knows_one() -> None:
    calls = RecordedCalls([call("1/1/a", result=found(1))])
    other = tool("renew", parameter("book"))
    for asked_of, book in ((an_agent().tools[0], "Persuasion"), (other, "Emma")):
        outcome = (await calls.outcome_of(asked_of, {"book": book})).outcome
        assert isinstance(outcome, ToolError)
        assert outcome.kind is ToolErrorKind.UNAVAILABLE
    records = Records(Record(place="9/9/z", result=found(9)))
    calls = RecordedCalls([call("1/1/a", result=found(1))], otherwise=records)
    given = await outcomes(calls, "Persuasion", "Emma")
    assert [each.served_from for each in given] == ["9/9/z", "1/1/a"]
    assert records.asked == [("find", {"book": "Persuasion"})]


def test_calls_have_the_places_in_which_they_ended_and_unknown_ones_come_last() -> None:
    calls = RecordedCalls([call("a"), call("b", "Persuasion"), call("c")])
    find = an_agent().tools[0]
    places = [calls.place_of(find, {"book": b}) for b in ("Emma", "Persuasion", "Sanditon")]
    assert places == sorted(set(places))


@pytest.mark.parametrize("only", [True, False])
def test_where_tools_run_only_those_that_change_something_are_stood_in_for(only: bool) -> None:
    calls = RecordedCalls([], only_consequential=only)
    assert calls.answers(tool("renew", consequential=True))
    assert calls.answers(tool("find")) is not only


async def test_calls_at_once_end_in_the_order_in_which_they_ended_and_say_what_was_said() -> None:
    model = ScriptedModel(
        matches("G1"),
        infers("find", {"book": said("Emma")}, {"book": said("Persuasion")}),
        replies("Well."),
    )
    calls = RecordedCalls(
        [
            call("1/1/b", "Persuasion", result=found(2), said=(("I look.", "tool:find"),)),
            call("1/1/a", result=found(1)),
        ]
    )
    tools = ScriptedTools()
    kit = scripted_kit(model, tools, stand_in=calls)
    emitted = await play(turn_of(an_agent(), "Where are Emma and Persuasion?"), kit)
    ended = [event.data["shelf"] for event in entries(emitted, ToolFinishedEvent)]
    assert ended == [2, 1]
    told = [item for item in emitted if isinstance(item, MessageEvent | ToolFinishedEvent)]
    assert isinstance(told[0], MessageEvent)
    assert (told[0].text, told[0].model, told[0].source) == ("I look.", "tool:find", Source.AGENT)
    assert tools.called == []
