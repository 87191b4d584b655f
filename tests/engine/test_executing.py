"""Running the calls (ENGINE.md §4): deadlines, failure as data, what tools say, and what must not happen twice."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.events import (
    BriefingEvent,
    Event,
    MessageEvent,
    MessagePartEvent,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
    event_adapter,
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
from engine.tools.base import ToolResult
from engine.tools.results import MAX_RESULT_BYTES
from engine.trail import CallState, DecisionState, ToolCall, ToolDecision
from engine.turn import run_turn
from tests.engine.agents import agent, guideline, history, parameter, tool, turn_of

SECRET = "sqlite:///secret.db"


def an_agent(**options: Any) -> Agent:
    """One guideline with one tool that is called without a question."""
    return agent(guideline("a", "asks", "look", tools=("look",)), tools=[tool("look", **options)])


def a_changing_agent(**options: Any) -> Agent:
    options = {"confirm": Confirm.INFERRED} | options  # what the customer said needs no second word
    book = tool("book", parameter("room"), consequential=True, **options)
    return agent(guideline("a", "wants a room", "book it", tools=("book",)), tools=[book])


async def look(function: Any, **options: Any) -> list[Emission]:
    """A turn in which a tool without parameters runs this function."""
    model = ScriptedModel(matches("G1"), replies("Well."))
    tools = ScriptedTools({"look": function})
    return await play(turn_of(an_agent(**options), "Look!"), scripted_kit(model, tools))


def a_booking(function: Any, **options: Any) -> tuple[TurnState, Any, ScriptedModel]:
    """A turn in which a tool that changes something runs this function: its state, its kit, its model."""
    model = ScriptedModel(matches("G1"), infers("book", {"room": said("7")}), replies("Well."))
    state = turn_of(a_changing_agent(**options), "Book room 7")
    return state, scripted_kit(model, ScriptedTools({"book": function})), model


def the_error(emitted: list[Emission]) -> ToolError:
    call = entries(emitted, ToolCall)[-1]
    assert call.state in {CallState.FAILED, CallState.UNKNOWN}
    assert call.error is not None
    error: ToolError = call.error
    return error


def the_briefing(emitted: list[Emission]) -> dict[str, Any]:
    content: dict[str, Any] = entries(emitted, BriefingEvent)[0].content
    return content


def events_as_sent(emitted: list[Emission]) -> str:
    """Everything of the turn that a client of the API can read."""
    kinds = Event.__args__  # type: ignore[attr-defined]
    return "".join(event_adapter().dump_json(item).decode() for item in entries(emitted, kinds))


async def forever(*_given: Any) -> None:
    await asyncio.sleep(60)


class TestFailureIsData:
    async def test_what_a_tool_raises_is_told_in_public_words_and_kept_in_full_in_the_trail(
        self,
    ) -> None:
        """A trap of systems that came before: the agent never learning why a tool failed."""

        def broken(_arguments: Any, _context: Any) -> None:
            raise RuntimeError(f"cannot open {SECRET}")

        emitted = await look(broken)

        error = the_error(emitted)
        assert error.kind is ToolErrorKind.EXCEPTION
        assert SECRET in error.detail
        assert "Traceback" in error.detail
        assert the_briefing(emitted)["failed"] == [{"tool": "look", "because": "it failed"}]
        assert emitted[-1] == Checkpoint(step=Step.FINISHED)

    async def test_no_event_holds_a_traceback_or_the_words_of_an_exception(self) -> None:
        """A trap of systems that came before: a traceback in a customer-readable event."""

        def broken(_arguments: Any, _context: Any) -> None:
            raise RuntimeError(f"cannot open {SECRET}")

        sent = events_as_sent(await look(broken))

        assert '"kind":"exception"' in sent
        for secret in (SECRET, "Traceback", "RuntimeError", "executing.py"):
            assert secret not in sent

    async def test_a_failure_that_the_service_reports_passes_through(self) -> None:
        def unavailable(_arguments: Any, _context: Any) -> None:
            error = ToolError(
                kind=ToolErrorKind.UNAVAILABLE, public="the branch is closed", detail=SECRET
            )
            raise ToolFailure(error)

        emitted = await look(unavailable)

        error = the_error(emitted)
        assert (error.kind, error.public) == (ToolErrorKind.UNAVAILABLE, "the branch is closed")
        assert error.detail == SECRET
        assert SECRET not in events_as_sent(emitted)
        assert the_briefing(emitted)["failed"][0]["because"] == "the branch is closed"

    @pytest.mark.parametrize("kind", list(ToolErrorKind))
    async def test_every_kind_of_failure_can_be_reported(self, kind: ToolErrorKind) -> None:
        def failing(_arguments: Any, _context: Any) -> None:
            raise ToolFailure(ToolError(kind=kind, public="no"))

        assert the_error(await look(failing)).kind is kind

    async def test_a_call_is_stopped_at_its_deadline(self) -> None:
        started = asyncio.get_running_loop().time()
        emitted = await look(forever, timeout=0.05)
        assert asyncio.get_running_loop().time() - started < 5
        error = the_error(emitted)
        assert (error.kind, error.public) == (ToolErrorKind.TIMEOUT, "it took too long")
        assert "0.05 s" in error.detail

    async def test_a_timeout_inside_the_tool_is_not_taken_for_the_deadline(self) -> None:
        def inner(_arguments: Any, _context: Any) -> None:
            raise TimeoutError("the database did not answer")

        error = the_error(await look(inner))
        assert error.kind is ToolErrorKind.EXCEPTION
        assert "the database did not answer" in error.detail

    async def test_a_tool_that_cancels_itself_has_failed_and_the_turn_goes_on(self) -> None:
        async def cancelling(_arguments: Any, _context: Any) -> None:
            raise asyncio.CancelledError

        emitted = await look(cancelling)
        assert the_error(emitted).kind is ToolErrorKind.EXCEPTION
        assert emitted[-1] == Checkpoint(step=Step.FINISHED)

    @pytest.mark.parametrize(
        "data",
        [
            float("nan"),
            {"rate": float("inf")},
            object(),
            {"when": {1, 2}},
            b"bytes",
            {(1, 2): "tuple keys"},
            "half \ud83d a character",
        ],
        ids=["nan", "infinity", "object", "set", "bytes", "tuple keys", "half a character"],
    )
    async def test_what_json_cannot_hold_is_a_bad_output(self, data: Any) -> None:
        emitted = await look(lambda _a, _c: data)
        assert the_error(emitted).kind is ToolErrorKind.BAD_OUTPUT
        assert the_briefing(emitted)["failed"][0]["because"] == "its answer could not be read"

    async def test_a_value_that_holds_itself_is_a_bad_output(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        assert the_error(await look(lambda _a, _c: endless)).kind is ToolErrorKind.BAD_OUTPUT

    @pytest.mark.parametrize("levels", [101, 500, 100_000])
    async def test_a_result_nested_too_deeply_is_a_bad_output(self, levels: int) -> None:
        deep: Any = 1
        for _ in range(levels):
            deep = [deep]
        assert the_error(await look(lambda _a, _c: deep)).kind is ToolErrorKind.BAD_OUTPUT

    async def test_metadata_that_is_no_object_is_a_bad_output(self) -> None:
        result = ToolResult(data=1, metadata=None)  # type: ignore[arg-type]
        assert the_error(await look(lambda _a, _c: result)).kind is ToolErrorKind.BAD_OUTPUT

    async def test_a_service_that_returns_no_result_at_all_fails_its_call_and_not_the_turn(
        self,
    ) -> None:
        class Odd(ScriptedTools):
            async def call(self, *_given: Any) -> Any:
                return None

        model = ScriptedModel(matches("G1"), replies("Well."))
        emitted = await play(turn_of(an_agent(), "Look!"), scripted_kit(model, Odd()))
        assert the_error(emitted).kind is ToolErrorKind.BAD_OUTPUT

    async def test_five_megabytes_are_too_large_and_stand_nowhere(self) -> None:
        emitted = await look(lambda _a, _c: "x" * 5_000_000)
        error = the_error(emitted)
        assert error.kind is ToolErrorKind.TOO_LARGE
        assert "5,000," in error.detail
        assert len(events_as_sent(emitted)) < 10_000

    async def test_a_result_at_the_limit_is_kept(self) -> None:
        room = len('{"data":"","metadata":{}}')
        emitted = await look(lambda _a, _c: "x" * (MAX_RESULT_BYTES - room))
        assert entries(emitted, ToolCall)[-1].state is CallState.DONE

    async def test_an_endless_error_is_cut(self) -> None:
        def failing(_arguments: Any, _context: Any) -> None:
            error = ToolError(
                kind=ToolErrorKind.EXCEPTION, public="p\x00" * 9000, detail="d" * 10**6 + "end"
            )
            raise ToolFailure(error)

        error = the_error(await look(failing))
        assert len(error.public) <= 500
        assert "\x00" not in error.public
        assert len(error.detail) <= 20_000
        assert error.detail.endswith("end")

    async def test_one_failing_tool_does_not_take_the_others_along(self) -> None:
        spec = agent(
            guideline("a", "asks", "look", tools=("bad", "good")), tools=[tool("bad"), tool("good")]
        )
        model = ScriptedModel(matches("G1"), replies("Well."))

        def broken(_arguments: Any, _context: Any) -> None:
            raise RuntimeError

        tools = ScriptedTools({"bad": broken, "good": lambda _a, _c: 1})
        emitted = await play(turn_of(spec, "Look!"), scripted_kit(model, tools))

        ends = {c.tool: c.state for c in entries(emitted, ToolCall)}
        assert ends == {"bad": CallState.FAILED, "good": CallState.DONE}

    async def test_an_error_is_no_result_for_later_turns(self) -> None:
        error = ToolError(kind=ToolErrorKind.EXCEPTION, public="it failed")
        past = ToolFinishedEvent(call="c", tool="look", arguments={}, data={"x": 1}, error=error)
        model = ScriptedModel(matches(), replies("Well."))
        await play(turn_of(an_agent(), "Look!", past, "Well?"), scripted_kit(model))
        assert '{"tool": "look", "arguments": {}, "failed": "it failed"}' in (
            model.requests[0].messages[1].content
        )

    async def test_guidelines_wait_for_a_tool_that_worked_not_for_one_that_failed(self) -> None:
        spec = agent(
            guideline("a", "asks", "look", tools=("look",)),
            guideline("b", "it is late", "hurry", reevaluate_after=("look",)),
            tools=[tool("look")],
        )
        model = ScriptedModel(matches("G1"), replies("Well."))

        def broken(_arguments: Any, _context: Any) -> None:
            raise RuntimeError

        emitted = await play(
            turn_of(spec, "Look!"), scripted_kit(model, ScriptedTools({"look": broken}))
        )
        assert emitted[-1] == Checkpoint(step=Step.FINISHED, iteration=1)


class TestResults:
    async def test_data_reaches_the_writer_and_metadata_only_the_event(self) -> None:
        result = ToolResult(data={"shelf": 4}, metadata={"map": "blue"})
        model = ScriptedModel(matches("G1"), replies("Well."))
        kit = scripted_kit(model, ScriptedTools({"look": lambda _a, _c: result}))

        emitted = await play(turn_of(an_agent(), "Look!"), kit)

        (event,) = entries(emitted, ToolFinishedEvent)
        assert (event.data, event.metadata) == ({"shelf": 4}, {"map": "blue"})
        told = model.requests[-1].messages[1].content
        assert '"result": {"shelf": 4}' in told
        assert "blue" not in told

    async def test_a_result_is_kept_as_it_was_when_the_call_ended(self) -> None:
        data = {"items": [1]}
        emitted = await look(lambda _a, _c: data)
        data["items"].append(2)
        assert entries(emitted, ToolCall)[-1].result == {"data": {"items": [1]}, "metadata": {}}

    async def test_started_and_finished_stand_around_each_call(self) -> None:
        emitted = await look(lambda _a, _c: 1)
        kinds = (ToolCall, ToolStartedEvent, ToolFinishedEvent)
        order = [type(item).__name__ for item in entries(emitted, kinds)]  # type: ignore[arg-type]
        assert order == ["ToolCall", "ToolStartedEvent", "ToolCall", "ToolFinishedEvent"]
        first, last = entries(emitted, ToolCall)
        assert (first.state, last.state, first.uid) == (
            CallState.STARTED,
            CallState.DONE,
            last.uid,
        )
        assert last.ended_at >= last.started_at

    @given(st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ))  # fmt: skip
    @settings(max_examples=40, deadline=None)
    async def test_whatever_a_tool_returns_the_turn_ends_with_its_reply(self, data: Any) -> None:
        emitted = await look(lambda _a, _c: data)
        assert entries(emitted, MessageEvent)[-1].text == "Well."
        assert entries(emitted, ToolCall)[-1].state in {CallState.DONE, CallState.FAILED}
        assert "\\u0000" not in events_as_sent(emitted)


class TestWhatToolsSay:
    async def test_a_message_is_an_event_in_its_place_and_the_writer_sees_it(self) -> None:
        async def talking(_arguments: Any, context: Any) -> int:
            await context.emit_status("opening the cupboard")
            await context.emit_message("One moment, please.")
            return 7

        model = ScriptedModel(matches("G1"), replies("Seven."))
        kit = scripted_kit(model, ScriptedTools({"look": talking}))

        emitted = await play(turn_of(an_agent(), "Look!"), kit)

        first, last = entries(emitted, MessageEvent)
        assert (first.text, first.source) == ("One moment, please.", Source.AGENT)
        assert last.text == "Seven."
        assert emitted.index(first) < emitted.index(entries(emitted, ToolFinishedEvent)[0])
        told = model.requests[-1].messages[1].content
        assert told.index("One moment, please.") < told.index('"result": 7')
        status = next(s for s in entries(emitted, StatusEvent) if s.text)
        assert (status.text, status.tools) == ("opening the cupboard", ("look",))
        assert "opening the cupboard" not in told

    async def test_what_a_tool_says_is_stored_whatever_it_is(self) -> None:
        async def babbling(_arguments: Any, context: Any) -> int:
            for words in ("", "  ", "nul\x00", "half \ud83d", "x" * 10**6, 5):
                await context.emit_message(words)
                await context.emit_status(words)
            return 7

        emitted = await look(babbling)
        said_by_tool = [m.text for m in entries(emitted, MessageEvent)[:-1]]
        assert said_by_tool == ["nul", "half ?", "x" * 10_000, "5"]

    async def test_a_tool_that_speaks_after_its_end_is_not_heard(self) -> None:
        late: list[asyncio.Task[None]] = []

        async def leaving(_arguments: Any, context: Any) -> int:
            async def speak() -> None:
                await asyncio.sleep(0.02)
                await context.emit_message("And another thing")
                await context.emit_status("still here")

            late.append(asyncio.create_task(speak()))
            return 7

        model = ScriptedModel(matches("G1"), replies("Seven."))

        class Slow(ScriptedModel):
            async def stream(self, request: Any) -> Any:
                if request.stream:
                    await asyncio.sleep(0.1)
                async for item in model.stream(request):
                    yield item

        kit = scripted_kit(Slow(), ScriptedTools({"look": leaving}))
        emitted = await play(turn_of(an_agent(), "Look!"), kit)

        await asyncio.wait_for(late[0], 1)
        assert [m.text for m in entries(emitted, MessageEvent)] == ["Seven."]
        assert not any(s.text for s in entries(emitted, StatusEvent))

    async def test_the_order_within_the_turn_is_the_order_in_which_it_is_stored(self) -> None:
        """Else the prompts of later turns would not begin with those of this one."""
        spec = agent(
            guideline("a", "asks", "look", tools=("one", "two")), tools=[tool("one"), tool("two")]
        )

        async def one(_arguments: Any, _context: Any) -> int:
            await asyncio.sleep(0.01)
            return 1

        async def two(_arguments: Any, context: Any) -> int:
            for number in range(20):
                await context.emit_message(f"number {number}")
            return 2

        state = turn_of(spec, "Look!")
        model = ScriptedModel(matches("G1"), replies("Well."))
        kit = scripted_kit(model, ScriptedTools({"one": one, "two": two}))
        emitted: list[Emission] = []
        async for item in run_turn(state, kit):
            await asyncio.sleep(0.002)  # the time it takes to write
            emitted.append(item)

        remembered = (MessageEvent, ToolFinishedEvent, BriefingEvent)
        stored = entries(emitted, remembered)  # type: ignore[arg-type]
        witnessed = [entry.event for entry in state.history[1:]]
        assert witnessed == stored[: len(witnessed)]
        assert len(witnessed) == 23

    async def test_a_tool_knows_where_it_runs(self) -> None:
        seen: list[Any] = []
        await look(lambda _a, context: seen.append(context))
        (context,) = seen
        assert (context.agent_id, context.session_id, context.turn_id, context.customer_id) == (
            "a",
            "s",
            "t",
            "c",
        )


class TestWhatChangesSomething:
    async def test_its_start_is_on_record_before_it_starts(self) -> None:
        recorded: list[Any] = []

        def book(_arguments: Any, _context: Any) -> str:
            assert [c.state for c in recorded if isinstance(c, ToolCall)] == [CallState.STARTED]
            return "booked"

        state, kit, _model = a_booking(book)
        async for item in run_turn(state, kit):
            await asyncio.sleep(0)  # the time it takes to write
            recorded.append(item)
        assert entries(recorded, ToolCall)[-1].state is CallState.DONE

    async def test_one_that_was_started_before_a_crash_is_not_run_again(self) -> None:
        first, kit, _model = a_booking(lambda _a, _c: "booked")
        on_record: list[Any] = []
        turn = run_turn(first, kit)
        async for item in turn:
            on_record.append(item)
            if isinstance(item, ToolCall):
                break
        await turn.aclose()  # type: ignore[attr-defined]

        ran: list[Any] = []
        model = ScriptedModel(replies("A person will look."))
        resumed = turn_of(a_changing_agent(), "Book room 7")
        resumed.checkpoint = Checkpoint(step=Step.RUNNING)
        resumed.recall(entries(on_record, (ToolDecision, ToolCall)))  # type: ignore[arg-type]
        emitted = await play(
            resumed, scripted_kit(model, ScriptedTools({"book": lambda a, _c: ran.append(a)}))
        )

        assert ran == []
        assert entries(emitted, ToolCall)[-1].state is CallState.UNKNOWN
        assert the_error(emitted).kind is ToolErrorKind.UNKNOWN_OUTCOME
        assert "a person has to look" in the_briefing(emitted)["failed"][0]["because"]

    async def test_at_its_deadline_nobody_claims_that_it_was_not_done(self) -> None:
        state, kit, _model = a_booking(forever, timeout=0.05)
        emitted = await play(state, kit)
        assert entries(emitted, ToolCall)[-1].state is CallState.UNKNOWN
        assert the_error(emitted).kind is ToolErrorKind.UNKNOWN_OUTCOME
        assert "not known whether it was done" in the_briefing(emitted)["failed"][0]["because"]

    async def test_it_is_awaited_when_the_reader_goes_away(self) -> None:
        done: list[str] = []

        async def book(_arguments: Any, _context: Any) -> str:
            await asyncio.sleep(0.05)
            done.append("booked")
            return "booked"

        state, kit, _model = a_booking(book)
        turn = run_turn(state, kit)
        async for item in turn:
            if isinstance(item, ToolStartedEvent):
                break
        following = asyncio.ensure_future(anext(turn))
        await asyncio.sleep(0.01)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        await turn.aclose()  # type: ignore[attr-defined]

        assert done == ["booked"]
        assert list(state.calls.values())[-1].state is CallState.DONE

    async def test_it_is_not_started_when_the_reader_goes_away_before_its_start_is_on_record(
        self,
    ) -> None:
        tools = ScriptedTools({"book": lambda _a, _c: "booked"})
        calls = [{"room": said(str(number))} for number in range(7, 10)]
        model = ScriptedModel(matches("G1"), infers("book", *calls), replies("Well."))
        state = turn_of(a_changing_agent(), "Book room 7, 8 and 9")
        turn = run_turn(state, scripted_kit(model, tools))
        async for item in turn:
            await asyncio.sleep(0.005)  # the others wait to be read meanwhile
            if isinstance(item, ToolCall):
                break
        await turn.aclose()  # type: ignore[attr-defined]
        assert tools.called == []

    async def test_it_is_not_started_once_the_turn_was_asked_to_stop(self) -> None:
        ran: list[Any] = []
        state, kit, _model = a_booking(lambda a, _c: ran.append(a))
        emitted: list[Emission] = []
        async for item in run_turn(state, kit):
            emitted.append(item)
            if isinstance(item, ToolCall) and item.state is CallState.STARTED:
                kit.stop.set()
                await asyncio.sleep(0.01)  # still being written when the stop arrives
        assert ran == []
        assert [c.state for c in entries(emitted, ToolCall)] == [
            CallState.STARTED,
            CallState.CANCELLED,
        ]
        assert emitted[-1] == Checkpoint(step=Step.STOPPED)

    @pytest.mark.parametrize("failing", [True, False])
    async def test_an_identical_call_is_not_made_twice_in_a_turn(self, failing: bool) -> None:
        book = tool("book", parameter("room"), consequential=True, confirm=Confirm.INFERRED)
        spec = agent(
            guideline("a", "wants a room", "book it", tools=("book", "look")),
            guideline(
                "b", "it is free", "book it now", tools=("book",), reevaluate_after=("look",)
            ),
            tools=[book, tool("look")],
        )
        ran: list[Any] = []

        def once(arguments: Any, _context: Any) -> str:
            ran.append(arguments)
            if failing:
                raise RuntimeError
            return "booked"

        model = ScriptedModel(
            matches("G1"),
            infers("book", {"room": said("7")}),
            matches("G2"),
            infers("book", {"room": said("7")}),
            replies("Well."),
        )
        tools = ScriptedTools({"book": once, "look": lambda _a, _c: "free"})

        emitted = await play(turn_of(spec, "Book room 7"), scripted_kit(model, tools))

        model.assert_used_up()
        assert len(ran) == 1
        second = [d for d in entries(emitted, ToolDecision) if d.iteration == 2]
        assert [d.state for d in second] == [DecisionState.DATA_ALREADY_IN_CONTEXT]
        assert second[0].call == next(c.uid for c in entries(emitted, ToolCall) if c.tool == "book")


class TestGoingOn:
    def resumed(self, done: list[Emission]) -> TurnState:
        events = entries(done, ToolFinishedEvent)
        state = TurnState(agent=an_agent(), turn=1, history=history("Look!", *events))
        state.checkpoint = Checkpoint(step=Step.RUNNING)
        state.recall(entries(done, (ToolDecision, ToolCall)))  # type: ignore[arg-type]
        return state

    async def test_a_call_that_changes_nothing_runs_again_after_a_crash(self) -> None:
        done = await look(lambda _a, _c: 1)
        on_record = [i for i in done if not isinstance(i, ToolFinishedEvent)]
        started = [i for i in on_record if not (isinstance(i, ToolCall) and i.ended_at)]
        tools = ScriptedTools({"look": lambda _a, _c: 2})
        emitted = await play(
            self.resumed(started), scripted_kit(ScriptedModel(replies("Well.")), tools)
        )
        assert len(tools.called) == 1
        assert entries(emitted, ToolFinishedEvent)[0].data == 2

    async def test_an_outcome_whose_event_was_lost_is_told_and_not_fetched_again(self) -> None:
        done = await look(lambda _a, _c: {"shelf": 4})
        on_record = [i for i in done if not isinstance(i, ToolFinishedEvent)]
        model = ScriptedModel(replies("Well."))
        tools = ScriptedTools()
        emitted = await play(self.resumed(on_record), scripted_kit(model, tools))
        assert tools.called == []
        assert [e.data for e in entries(emitted, ToolFinishedEvent)] == [{"shelf": 4}]
        assert '"shelf": 4' in model.requests[0].messages[1].content

    async def test_an_outcome_that_is_known_is_not_told_twice(self) -> None:
        done = await look(lambda _a, _c: {"shelf": 4})
        emitted = await play(self.resumed(done), scripted_kit(ScriptedModel(replies("Well."))))
        assert entries(emitted, ToolFinishedEvent) == []
        assert entries(emitted, MessagePartEvent)
