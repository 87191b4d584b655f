"""What a result brings along (ENGINE.md §4): each part is checked, and lasts as long as it should."""

from datetime import date
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind, ToolErrorKind
from engine.events import BriefingEvent, Event, MessageEvent, Mode, ModeEvent, ToolFinishedEvent
from engine.outbox import Emission
from engine.outcomes import given_fields, given_responses
from engine.spec import Agent, Criticality
from engine.state import Checkpoint, Step, TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    matches,
    play,
    replies,
    scripted_kit,
)
from engine.tools.base import Control, Lifespan, ToolContext, ToolResult, TransientGuideline
from engine.tools.function import FunctionToolService
from engine.tools.function import tool as tool_function
from engine.tools.results import LONGEST_TEXT, MOST_GUIDELINES, MOST_RESPONSES
from engine.trail import CallState, GuidelineMatch, LimitReached, MatchState, ToolCall, ToolDecision
from engine.turn import run_turn
from tests.engine.agents import agent, guideline, history, tool, turn_of

SECRET = {"pin": 4711}


def an_agent(*tools: str, **options: Any) -> Agent:
    names = tools or ("look",)
    return agent(
        guideline("a", "asks", "look", tools=names),
        tools=[tool(name) for name in names],
        **options,
    )


async def look(
    result: Any, *further: Expected, spec: Agent | None = None
) -> tuple[list[Emission], ScriptedModel]:
    """A turn whose tool `look` returns this; what it yielded, and the model that played it."""
    model = ScriptedModel(matches("G1"), *further, replies("Well."))
    tools = ScriptedTools({"look": lambda _a, _c: result})
    emitted = await play(turn_of(spec or an_agent(), "Look!"), scripted_kit(model, tools))
    return emitted, model


def the_call(emitted: list[Emission]) -> ToolCall:
    call: ToolCall = entries(emitted, ToolCall)[-1]
    return call


def asked_last(model: ScriptedModel) -> str:
    return "".join(message.content for message in model.requests[-1].messages)


def remembered(emitted: list[Emission]) -> list[Any]:
    """What the session stores of a turn and gives to the next one."""
    kinds = (ToolFinishedEvent, BriefingEvent, ModeEvent, MessageEvent)
    return entries(emitted, kinds)  # type: ignore[arg-type]


def resumed(emitted: list[Emission], step: Step, spec: Agent | None = None) -> TurnState:
    """The state of the turn that goes on at `step`, from what is on record."""
    state = TurnState(
        agent=spec or an_agent(), turn=1, history=history("Look!", *remembered(emitted))
    )
    state.checkpoint = Checkpoint(step=step)
    state.recall(entries(emitted, (GuidelineMatch, ToolDecision, ToolCall)))  # type: ignore[arg-type]
    return state


class TestEachPartIsChecked:
    @pytest.mark.parametrize(
        ("parts", "problem"),
        [
            ({"metadata": [1]}, "its metadata is no dict"),
            ({"control": {"mode": "human"}}, "its control.mode is 'human'; use 'auto' or 'manual'"),
            (
                {"control": {"lifespan": "forever"}},
                "its control.lifespan is 'forever'; use 'session' or 'response'",
            ),
            ({"control": {"mod": "manual"}}, "its control has 'mod'; it may have mode, lifespan"),
            ({"control": "manual"}, "its control is 'manual'; use a Control"),
            ({"canned_responses": "Hello"}, "its canned_responses is 'Hello'; use a list"),
            ({"canned_responses": ["Hello", 5]}, "its canned_responses[1] is 5; use text"),
            ({"canned_responses": [" "]}, "one of its canned_responses is empty"),
            (
                {"canned_responses": ["x"] * (MOST_RESPONSES + 1)},
                f"its canned_responses has {MOST_RESPONSES + 1} items",
            ),
            (
                {"canned_responses": ["x" * (LONGEST_TEXT + 1)]},
                f"its canned_responses[0] has {LONGEST_TEXT + 1} characters",
            ),
            ({"canned_response_fields": ["a"]}, "its canned_response_fields is no dict"),
            ({"canned_response_fields": {1: "a"}}, "its canned_response_fields is no dict"),
            ({"guidelines": [{}]}, "its guidelines[0] has neither a condition nor an action"),
            ({"guidelines": [{"actoin": "x"}]}, "its guidelines[0] has 'actoin'"),
            ({"guidelines": [{"action": 5}]}, "its guidelines[0].action is 5; use text"),
            (
                {"guidelines": [{"action": "x", "criticality": "huge"}]},
                "its guidelines[0].criticality is 'huge'; use 'low' or 'medium' or 'high'",
            ),
            (
                {"guidelines": [{"action": "x"}] * (MOST_GUIDELINES + 1)},
                f"its guidelines has {MOST_GUIDELINES + 1} items",
            ),
        ],
    )
    async def test_what_is_no_such_part_is_a_bad_output_that_names_it(
        self, parts: Any, problem: str
    ) -> None:
        emitted, _model = await look(ToolResult(data=1, **parts))
        error = the_call(emitted).error
        assert error is not None
        assert error.kind is ToolErrorKind.BAD_OUTPUT
        assert problem in error.detail
        assert error.public == "its answer could not be read"

    async def test_control_and_guidelines_may_be_given_as_the_dicts_of_the_documents(self) -> None:
        written = await look(
            ToolResult(
                data=1,
                control={"mode": "manual", "lifespan": "response"},
                guidelines=[{"action": "say sorry", "criticality": "high"}],
            )
        )
        as_values = await look(
            ToolResult(
                data=1,
                control=Control(mode=Mode.MANUAL, lifespan=Lifespan.RESPONSE),
                guidelines=(TransientGuideline(action="say sorry", criticality=Criticality.HIGH),),
            )
        )
        assert the_call(written[0]).state is CallState.DONE
        assert the_call(written[0]).result == the_call(as_values[0]).result

    async def test_a_function_may_fill_canned_responses_with_what_pydantic_writes(self) -> None:
        @tool_function
        def look(context: ToolContext) -> ToolResult:
            return ToolResult(
                data="late",
                canned_responses=["Due on {{ due }}."],
                canned_response_fields={"due": date(2026, 11, 21)},
                control={"mode": "manual"},
            )

        model = ScriptedModel(matches("G1"), replies("Well."))
        kit = scripted_kit(model)
        object.__setattr__(kit, "tools", FunctionToolService([look]))
        emitted = await play(turn_of(an_agent(), "Look!"), kit)
        assert the_call(emitted).result == {
            "data": "late",
            "metadata": {},
            "canned_responses": ["Due on {{ due }}."],
            "canned_response_fields": {"due": "2026-11-21"},
            "control": {"mode": "manual", "lifespan": "session"},
        }


class TestLifespan:
    passing = ToolResult(data=SECRET, metadata={"m": 1}, control={"lifespan": "response"})

    async def test_a_result_for_the_response_is_known_to_the_writer_and_not_kept_as_an_event(
        self,
    ) -> None:
        emitted, model = await look(self.passing)

        assert '"result": {"pin": 4711}' in asked_last(model)
        (event,) = entries(emitted, ToolFinishedEvent)
        assert (event.withheld, event.data, event.metadata) == (True, None, {})
        result = the_call(emitted).result
        assert result is not None
        assert result["data"] == SECRET  # people can read it in the trail

    async def test_later_turns_know_that_it_ran_and_not_what_it_said(self) -> None:
        emitted, _model = await look(self.passing)
        later = ScriptedModel(matches(), replies("Well."))
        past: list[Event] = remembered(emitted)
        await play(turn_of(an_agent(), "Look!", *past, "And now?"), scripted_kit(later))
        asked = "".join(m.content for r in later.requests for m in r.messages)
        assert '"tool": "look", "arguments": {}, "result": "not kept"' in asked
        assert "4711" not in asked

    async def test_after_a_crash_the_reply_still_rests_on_it(self) -> None:
        emitted, _model = await look(self.passing)
        state = resumed(
            [i for i in emitted if not isinstance(i, BriefingEvent | MessageEvent)], Step.WRITING
        )
        model = ScriptedModel(replies("Well."))
        again = await play(state, scripted_kit(model))
        assert '"result": {"pin": 4711}' in asked_last(model)
        assert entries(again, ToolFinishedEvent) == []

    async def test_a_result_for_the_session_is_kept(self) -> None:
        emitted, _model = await look(ToolResult(data=SECRET, control={"lifespan": "session"}))
        (event,) = entries(emitted, ToolFinishedEvent)
        assert (event.withheld, event.data) == (False, SECRET)


class TestHandingOver:
    manual = ToolResult(data="A person comes.", control={"mode": "manual"})

    def modes(self, emitted: list[Emission]) -> list[ModeEvent]:
        return entries(emitted, ModeEvent)

    async def test_it_happens_once_and_after_the_reply(self) -> None:
        emitted, _model = await look(self.manual)
        assert self.modes(emitted) == [ModeEvent(mode=Mode.MANUAL, tool="look")]
        order = [type(item) for item in emitted]
        assert order.index(MessageEvent) < order.index(ModeEvent)
        assert emitted[-1] == Checkpoint(step=Step.FINISHED)

    @pytest.mark.parametrize("control", [{}, {"mode": None}, {"mode": "auto"}])
    async def test_a_result_without_a_mode_or_with_auto_changes_nothing(self, control: Any) -> None:
        emitted, _model = await look(ToolResult(data=1, control=control))
        assert self.modes(emitted) == []

    async def test_manual_wins_over_whatever_other_results_say(self) -> None:
        """A trap of systems that came before: a later result resetting manual mode."""
        spec = agent(
            guideline("a", "asks", "look", tools=("first", "second")),
            guideline("b", "it is late", "tell", tools=("third",), reevaluate_after=("second",)),
            tools=[tool("first"), tool("second"), tool("third")],
        )
        model = ScriptedModel(matches("G1"), matches("G2"), replies("Well."))
        tools = ScriptedTools(
            {
                "first": lambda _a, _c: self.manual,
                "second": lambda _a, _c: ToolResult(data=2, control={"mode": "auto"}),
                "third": lambda _a, _c: ToolResult(data=3),
            }
        )
        emitted = await play(turn_of(spec, "Look!"), scripted_kit(model, tools))
        assert self.modes(emitted) == [ModeEvent(mode=Mode.MANUAL, tool="first")]

    async def test_a_failed_call_hands_nothing_over(self) -> None:
        emitted, _model = await look(ToolResult(data=object(), control={"mode": "manual"}))
        assert self.modes(emitted) == []

    async def test_a_turn_that_is_stopped_before_its_reply_hands_over_all_the_same(self) -> None:
        model = ScriptedModel(matches("G1"))
        kit = scripted_kit(model, ScriptedTools({"look": lambda _a, _c: self.manual}))
        emitted: list[Emission] = []
        async for item in run_turn(turn_of(an_agent(), "Look!"), kit):
            emitted.append(item)
            if isinstance(item, ToolFinishedEvent):
                kit.stop.set()
        assert self.modes(emitted) == [ModeEvent(mode=Mode.MANUAL, tool="look")]
        assert emitted[-1] == Checkpoint(step=Step.STOPPED, iteration=1)

    async def test_a_reply_that_cannot_be_written_keeps_nobody_from_a_person(self) -> None:
        error = ModelError("down", kind=ModelErrorKind.UNREACHABLE, retryable=False)
        model = ScriptedModel(matches("G1"), Expected(question="ComposeReply", answer=error))
        kit = scripted_kit(model, ScriptedTools({"look": lambda _a, _c: self.manual}))
        emitted: list[Emission] = []

        async def until_it_fails() -> None:
            async for item in run_turn(turn_of(an_agent(), "Look!"), kit):
                emitted.append(item)  # noqa: PERF401 - kept when the turn raises

        with pytest.raises(ModelError):
            await until_it_fails()
        assert self.modes(emitted) == [ModeEvent(mode=Mode.MANUAL, tool="look")]

    @pytest.mark.parametrize("told", [True, False])
    async def test_after_a_crash_it_is_told_exactly_once(self, told: bool) -> None:
        emitted, _model = await look(self.manual)
        on_record = [i for i in emitted if told or not isinstance(i, ModeEvent)]
        again = await play(resumed(on_record, Step.WRITING), scripted_kit(ScriptedModel()))
        assert len(self.modes(on_record)) + len(self.modes(again)) == 1


class TestTransientGuidelines:
    async def test_without_a_condition_it_applies_at_once(self) -> None:
        result = ToolResult(data=1, guidelines=[{"action": "mention the fine"}])
        emitted, model = await look(result)

        model.assert_used_up()  # nobody was asked about it
        found = entries(emitted, GuidelineMatch)[-1]
        assert found.state is MatchState.MATCHED
        assert found.because == "Given by look, without a condition."
        assert found.guideline.startswith(the_call(emitted).uid[:8])
        (briefing,) = entries(emitted, BriefingEvent)
        assert found.guideline in briefing.guidelines
        assert '"then": "mention the fine"' in asked_last(model)

    async def test_with_a_condition_it_is_judged_in_the_next_iteration_though_nothing_else_waits(
        self,
    ) -> None:
        result = ToolResult(
            data=1,
            guidelines=[
                {"condition": "the customer is a child", "action": "be gentle"},
                {"condition": "the customer is angry", "action": "be calm"},
            ],
        )
        emitted, model = await look(result, matches("G2", because="She is nine."))

        model.assert_used_up()
        found = {m.guideline[-2:]: m for m in entries(emitted, GuidelineMatch) if m.iteration == 2}
        assert (found["-1"].state, found["-1"].because) == (MatchState.MATCHED, "She is nine.")
        assert found["-2"].state is MatchState.NOT_MATCHED
        assert "be gentle" in asked_last(model)
        assert "be calm" not in asked_last(model)

    async def test_at_the_last_iteration_it_is_named_as_not_judged(self) -> None:
        result = ToolResult(data=1, guidelines=[{"condition": "it rains", "action": "lend one"}])
        emitted, model = await look(result, spec=an_agent(max_iterations=1))

        model.assert_used_up()
        (limit,) = entries(emitted, LimitReached)
        assert limit.limit == "max_iterations"
        assert "G2" in limit.detail
        assert entries(emitted, GuidelineMatch)[-1].state is MatchState.NOT_EVALUATED
        assert "lend one" not in asked_last(model)

    @pytest.mark.parametrize("condition", ["", "it rains"])
    async def test_after_a_crash_it_is_still_there(self, condition: str) -> None:
        given = {"condition": condition, "action": "lend an umbrella"}
        further = [matches("G2")] if condition else []
        emitted, _model = await look(ToolResult(data=1, guidelines=[given]), *further)
        until_call = emitted[: emitted.index(the_call(emitted)) + 1]

        model = ScriptedModel(*further, replies("Well."))
        again = await play(resumed(until_call, Step.RUNNING), scripted_kit(model))

        model.assert_used_up()
        assert entries(again, GuidelineMatch)[-1].state is MatchState.MATCHED
        assert "lend an umbrella" in asked_last(model)

    async def test_after_its_judgement_it_is_not_judged_again_on_the_way_on(self) -> None:
        given = {"condition": "it rains", "action": "lend an umbrella"}
        emitted, _model = await look(ToolResult(data=1, guidelines=[given]), matches("G2"))
        state = resumed(
            [i for i in emitted if not isinstance(i, BriefingEvent | MessageEvent)], Step.WRITING
        )
        model = ScriptedModel(replies("Well."))
        await play(state, scripted_kit(model))
        assert "lend an umbrella" in asked_last(model)

    async def test_later_turns_do_not_know_it(self) -> None:
        emitted, _model = await look(
            ToolResult(data=1, guidelines=[{"action": "mention the fine"}])
        )
        later = ScriptedModel(matches(), replies("Well."))
        past: list[Event] = remembered(emitted)
        state = turn_of(an_agent(), "Look!", *past, "And now?")
        await play(state, scripted_kit(later))
        assert len(state.agent.guidelines) == 1
        assert "mention the fine" not in later.requests[0].messages[1].content

    async def test_the_agent_itself_is_not_changed(self) -> None:
        spec = an_agent()
        await look(ToolResult(data=1, guidelines=[{"action": "x"}]), spec=spec)
        assert [g.uid for g in spec.guidelines] == ["a"]

    async def test_a_failed_call_brings_none(self) -> None:
        _emitted, model = await look(
            ToolResult(data=object(), guidelines=[{"action": "mention the fine"}])
        )
        assert "mention the fine" not in asked_last(model)


class TestWordsForTheReply:
    async def test_responses_are_named_by_their_call_and_of_equal_fields_the_later_counts(
        self,
    ) -> None:
        spec = an_agent("first", "second")
        model = ScriptedModel(matches("G1"), replies("Well."))
        tools = ScriptedTools(
            {
                "first": lambda _a, _c: ToolResult(
                    data=1, canned_responses=["A", "B"], canned_response_fields={"x": 1, "y": 1}
                ),
                "second": lambda _a, _c: ToolResult(
                    data=2, canned_responses=["C"], canned_response_fields={"y": 2}
                ),
            }
        )
        state = turn_of(spec, "Look!")
        await play(state, scripted_kit(model, tools))
        first, second = state.calls_done()
        assert given_responses(state.calls_done()) == (
            (f"{first.uid}:1", "A"),
            (f"{first.uid}:2", "B"),
            (f"{second.uid}:1", "C"),
        )
        assert given_fields(state.calls_done()) == {"x": 1, "y": 2}
