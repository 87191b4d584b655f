"""What the writer of a reply is told (ENGINE.md §1 step 8, §3 insights)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.errors import ToolError, ToolErrorKind
from engine.events import (
    Answer,
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    MessageEvent,
    Source,
    ToolFinishedEvent,
)
from engine.outbox import Emission
from engine.spec import Criticality, RelationKind, Relationship
from engine.state import Checkpoint, Step
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
from engine.tools.base import ToolResult, TransientGuideline
from engine.trail import CallState, ToolCall
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of
from tests.engine.sessions import HOSTILE

KIND = agent(guideline("kind", action="be kind"))


def the_briefing(emitted: list[Emission]) -> dict[str, Any]:
    (briefing,) = entries(emitted, BriefingEvent)
    content: dict[str, Any] = briefing.content
    return content


def the_reply(emitted: list[Emission]) -> MessageEvent:
    message: MessageEvent = entries(emitted, MessageEvent)[-1]
    return message


class TestTheBriefing:
    async def test_guidelines_are_told_with_condition_action_and_weight(self) -> None:
        spec = agent(
            guideline("a", "asks for a refund", "explain", criticality=Criticality.HIGH),
            guideline("b", action="be brief", criticality=Criticality.LOW),
            guideline("c", "greets"),
            guideline("d", "not this one", "x"),
        )
        model = ScriptedModel(matches("G1", "G3"), replies("Ok."))
        emitted = await play(turn_of(spec, "Refund!"), scripted_kit(model))
        assert the_briefing(emitted) == {
            "guidelines": [
                {"id": "G1", "when": "asks for a refund", "then": "explain", "weight": "must hold"},
                {"id": "G3", "when": "greets"},
                {"id": "G2", "then": "be brief", "weight": "advice"},
            ]
        }

    async def test_when_no_guideline_applies_the_writer_is_told_so(self) -> None:
        spec = agent(guideline("a", "asks for a refund", "explain"))
        model = ScriptedModel(matches(), replies("I cannot help with that here."))
        emitted = await play(turn_of(spec, "Sing!"), scripted_kit(model))
        assert the_briefing(emitted) == {
            "guidelines": "none applies to the customer's newest messages"
        }

    async def test_it_is_the_last_line_that_the_writer_reads(self) -> None:
        model = ScriptedModel(replies("Ok."))
        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(model))
        last = model.requests[0].messages[-1].content.splitlines()[-1]
        assert last == '{"briefing": {"guidelines": [{"id": "G1", "then": "be kind"}]}}'
        assert emitted.index(entries(emitted, BriefingEvent)[0]) < emitted.index(the_reply(emitted))

    async def test_earlier_briefings_stay_where_they_were(self) -> None:
        earlier = BriefingEvent(content={"guidelines": [{"id": "G9", "then": "sing"}]})
        model = ScriptedModel(replies("Ok."))
        state = turn_of(KIND, "Hello", earlier, said_by(Source.AGENT, "La!"), "Again")
        await play(state, scripted_kit(model))
        told = model.requests[0].messages[1].content.splitlines()
        assert '"then": "sing"' in told[2]
        assert told[3] == '{"agent": "La!"}'

    async def test_only_failures_of_this_turn_are_told_as_failed(self) -> None:
        error = ToolError(kind=ToolErrorKind.EXCEPTION, public="it failed")
        earlier = ToolFinishedEvent(call="c", tool="look", arguments={}, error=error)
        model = ScriptedModel(replies("Ok."))
        state = turn_of(KIND, "Hello", earlier, said_by(Source.AGENT, "Sorry"), "Again")
        emitted = await play(state, scripted_kit(model))
        assert "failed" not in the_briefing(emitted)

    @pytest.mark.parametrize("text", HOSTILE)
    async def test_any_text_is_told_as_it_was_written(self, text: str) -> None:
        spec = agent(guideline("a", action=text or "x"))
        model = ScriptedModel(replies("Ok."))
        emitted = await play(turn_of(spec, text), scripted_kit(model))
        assert the_briefing(emitted)["guidelines"][0]["then"] == text
        assert len(model.requests[0].messages[1].content.splitlines()) == 3


AT = datetime.now(UTC)
SEND = tool(
    "send_money",
    parameter("amount", "number"),
    parameter("to", display_name="recipient"),
    parameter("ledger_id", hidden=True),
    consequential=True,
    description="Sends money to somebody.\nAt once.",
)


def asked(call: str = "c1", to: str = "Ann") -> ConfirmationAskedEvent:
    return ConfirmationAskedEvent(
        call=call,
        tool="send_money",
        arguments={"amount": 50, "to": to, "ledger_id": "L-1"},
        guidelines=("send",),
        labels={"amount": "amount", "to": "recipient"},
        asked_at=AT,
    )


def answered(answer: Answer, call: str = "c1") -> ConfirmationAnsweredEvent:
    return ConfirmationAnsweredEvent(call=call, tool="send_money", answer=answer)


async def told_when_writing(*events: Any, calls: tuple[ToolCall, ...] = ()) -> dict[str, Any]:
    """The briefing of a turn with these events behind it and nothing in force."""
    spec = agent(
        guideline("send", "wants to send money", "send it", tools=("send_money",)), tools=[SEND]
    )
    state = turn_of(spec, *events)
    for call in calls:
        state.learn(call)
    state.checkpoint = Checkpoint(step=Step.WRITING)
    return the_briefing(await play(state, scripted_kit(ScriptedModel(replies("Well.")))))


class TestWhatAwaitsTheCustomersWord:
    SENDING = {"what": "send money", "with": {"amount": 50, "recipient": "Ann"}}

    async def test_it_is_told_in_words_with_each_value_and_without_what_is_hidden(self) -> None:
        told = await told_when_writing("Send Ann 50", asked())
        assert told == {"confirm": [self.SENDING]}

    async def test_it_is_told_again_while_it_is_open_even_if_no_guideline_is_in_force(self) -> None:
        told = await told_when_writing(
            "Send Ann 50", asked(), said_by(Source.AGENT, "Shall I?"), "Hm"
        )
        assert told == {"confirm": [self.SENDING | {"asked before": True}]}

    @pytest.mark.parametrize(
        ("answer", "key"), [(Answer.DECLINED, "declined"), (Answer.EXPIRED, "expired")]
    )
    async def test_an_answer_of_this_turn_is_told_as_what_it_is(
        self, answer: Answer, key: str
    ) -> None:
        asking = [*("Send Ann 50", asked()), said_by(Source.AGENT, "Shall I?")]
        assert await told_when_writing(*asking, "No", answered(answer)) == {key: [self.SENDING]}

    async def test_an_answer_of_an_earlier_turn_is_over(self) -> None:
        told = await told_when_writing(
            "Send Ann 50",
            asked(),
            "No",
            answered(Answer.DECLINED),
            said_by(Source.AGENT, "Ok."),
            "Hi",
        )
        assert told == {"guidelines": "none applies to the customer's newest messages"}

    async def test_what_was_confirmed_and_ran_is_told_as_done(self) -> None:
        call = ToolCall(
            uid="c1", tool="send_money", arguments={}, state=CallState.DONE, iteration=1,
            guidelines=("send",), started_at=AT, ended_at=AT, result={"data": "ok", "metadata": {}},
        )  # fmt: skip
        done = ToolFinishedEvent(call="c1", tool="send_money", arguments={}, data="ok")
        told = await told_when_writing(
            "Send Ann 50", asked(), "Yes", answered(Answer.CONFIRMED), done, calls=(call,)
        )
        assert told == {"done as confirmed": [self.SENDING]}

    async def test_what_was_confirmed_and_failed_is_told_as_failed_and_not_as_done(self) -> None:
        error = ToolError(kind=ToolErrorKind.UNKNOWN_OUTCOME, public="nobody saw how it ended")
        call = ToolCall(
            uid="c1", tool="send_money", arguments={}, state=CallState.FAILED, iteration=1,
            guidelines=("send",), started_at=AT, ended_at=AT, error=error,
        )  # fmt: skip
        failed = ToolFinishedEvent(call="c1", tool="send_money", arguments={}, error=error)
        told = await told_when_writing(
            "Send Ann 50", asked(), "Yes", answered(Answer.CONFIRMED), failed, calls=(call,)
        )
        assert told == {"failed": [{"tool": "send_money", "because": "nobody saw how it ended"}]}

    async def test_of_two_the_answered_one_and_the_open_one_are_told_apart(self) -> None:
        told = await told_when_writing(
            "Send 50 to Ann and Bob",
            asked(),
            asked("c2", "Bob"),
            "Not to Ann",
            answered(Answer.DECLINED),
        )
        assert [item["with"]["recipient"] for item in told["declined"]] == ["Ann"]
        assert [item["with"]["recipient"] for item in told["confirm"]] == ["Bob"]

    async def test_a_call_that_just_became_ready_is_to_be_confirmed_and_not_asked_for(self) -> None:
        spec = agent(
            guideline("send", "sends money", "", tools=("send_money",)),
            tools=[
                tool("send_money", parameter("to"), consequential=True, description="Sends it.")
            ],
        )
        model = ScriptedModel(
            matches("G1"), infers("send_money", {"to": said("Ann")}), replies("Shall I?")
        )
        told = the_briefing(await play(turn_of(spec, "Send it to Ann"), scripted_kit(model)))
        assert told == {
            "guidelines": [{"id": "G1", "when": "sends money", "then": "Sends it."}],
            "confirm": [{"what": "send money", "with": {"to": "Ann"}}],
        }


async def test_which_of_several_is_meant_is_to_be_asked() -> None:
    spec = agent(
        guideline("unclear", "it is unclear which card is meant", "find out"),
        guideline("credit", "wants to block the credit card", "block it"),
        guideline("debit", "wants to block the debit card", "block it"),
        relationships=(
            Relationship(
                uid="x",
                kind=RelationKind.DISAMBIGUATES,
                source="unclear",
                targets=("credit", "debit"),
            ),
        ),
    )
    model = ScriptedModel(matches("G1", "G2", "G3"), replies("Which card?"))
    told = the_briefing(await play(turn_of(spec, "Block my card"), scripted_kit(model)))
    assert told["ask which"] == [
        {
            "guideline": "G1",
            "the customer may mean": [
                "wants to block the credit card",
                "wants to block the debit card",
            ],
        }
    ]
    assert [g["id"] for g in told["guidelines"]] == ["G1"]


async def test_a_tool_attached_to_a_condition_alone_says_what_to_do() -> None:
    look = tool("look", description="Look the branch up.\nNeeds nothing.")
    spec = agent(guideline("a", "asks for a branch", tools=("look",)), tools=[look])
    model = ScriptedModel(matches("G1"), replies("There."))
    kit = scripted_kit(model, ScriptedTools({"look": lambda _a, _c: "Main St"}))
    told = the_briefing(await play(turn_of(spec, "Where?"), kit))
    assert told["guidelines"] == [
        {"id": "G1", "when": "asks for a branch", "then": "Look the branch up."}
    ]


async def test_a_guideline_that_a_result_brought_is_told_in_its_turn() -> None:
    spec = agent(guideline("a", "asks", "look", tools=("look",)), tools=[tool("look")])

    def look(_arguments: Any, _context: Any) -> ToolResult:
        warn = TransientGuideline(action="warn of the flood", criticality=Criticality.HIGH)
        return ToolResult(data=1, guidelines=(warn,))

    model = ScriptedModel(matches("G1"), replies("Mind the flood."))
    kit = scripted_kit(model, ScriptedTools({"look": look}))
    told = the_briefing(await play(turn_of(spec, "Look"), kit))
    assert told["guidelines"][0] == {
        "id": "G2",
        "then": "warn of the flood",
        "weight": "must hold",
    }


async def test_what_a_tool_lacked_is_not_asked_for_once_its_guideline_is_out_of_force() -> None:
    spec = agent(
        guideline("loan", "wants a loan", "apply", tools=("apply", "check")),
        guideline("barred", "they are barred", "refuse", reevaluate_after=("check",)),
        tools=[tool("apply", parameter("salary", "number")), tool("check")],
        relationships=(
            Relationship(
                uid="x", kind=RelationKind.HAS_PRIORITY_OVER, source="barred", targets=("loan",)
            ),
        ),
    )
    model = ScriptedModel(
        matches("G1"), infers("apply", {"salary": None}), matches("G2"), replies("No.")
    )
    kit = scripted_kit(model, ScriptedTools({"check": lambda _a, _c: "barred"}))
    told = the_briefing(await play(turn_of(spec, "A loan please"), kit))
    assert "ask for" not in told
    assert [g["id"] for g in told["guidelines"]] == ["G2"]
