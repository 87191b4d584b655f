"""Writing the reply (ENGINE.md §1 step 8, §3 insights): what the writer is told, and what reaches the customer."""

from typing import Any

import pytest

from engine.briefing import insights_to_tell
from engine.drafting import reply_so_far
from engine.errors import ModelError, ModelErrorKind
from engine.events import (
    BriefingEvent,
    MessageEvent,
    MessagePartEvent,
    Source,
    ToolFinishedEvent,
)
from engine.model.base import AttemptFailed, JudgingStyle, ModelReply, ModelRequest, TextDelta
from engine.outbox import Emission
from engine.spec import Criticality, ParameterSource
from engine.state import Checkpoint, Step
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    infers,
    known,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.trail import Adherence, DecisionState, ModelCall, ToolDecision, ToolInsight
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of
from tests.engine.sessions import HOSTILE, play_to_its_end
from tests.engine.test_provenance import CURRENCY

KIND = agent(guideline("kind", action="be kind"))


def the_briefing(emitted: list[Emission]) -> dict[str, Any]:
    (briefing,) = entries(emitted, BriefingEvent)
    content: dict[str, Any] = briefing.content
    return content


def the_reply(emitted: list[Emission]) -> MessageEvent:
    message: MessageEvent = entries(emitted, MessageEvent)[-1]
    return message


async def asked_for(*parameters: Any, call: dict[str, Any], text: str = "Please do") -> Any:
    """The briefing of a turn in which a tool with these parameters was inferred to this call."""
    spec = agent(guideline("a", "asks", "do", tools=("act",)), tools=[tool("act", *parameters)])
    model = ScriptedModel(matches("G1"), infers("act", call), replies("Well."))
    emitted = await play(
        turn_of(spec, text), scripted_kit(model, ScriptedTools({"act": lambda _a, _c: 1}))
    )
    return the_briefing(emitted)


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
        from engine.errors import ToolError, ToolErrorKind

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


class TestInsights:
    async def test_a_missing_argument_is_asked_for_with_all_that_helps_to_give_it(self) -> None:
        amount = parameter(
            "amount",
            "number",
            display_name="amount to send",
            description="in euros",
            significance="we need to know how much to send",
            examples=(50, 100),
        )
        assert await asked_for(amount, call={"amount": None}) == {
            "guidelines": [{"id": "G1", "when": "asks", "then": "do"}],
            "ask for": [
                {
                    "what": "amount to send",
                    "needed for": "act",
                    "means": "in euros",
                    "reason": "we need to know how much to send",
                    "examples": [50, 100],
                }
            ],
        }

    async def test_a_value_outside_its_choices_is_to_be_corrected(self) -> None:
        told = await asked_for(
            CURRENCY, call={"currency": said("Galleons")}, text="I want Galleons"
        )
        assert told["ask to correct"] == [
            {
                "what": "currency",
                "needed for": "act",
                "choices": ["EUR", "USD", "GBP"],
                "given": "Galleons",
                "problem": "must be one of EUR, USD, GBP",
            }
        ]

    async def test_a_wrong_value_of_zero_or_false_is_told_as_given(self) -> None:
        schema = parameter("n", "number").schema | {"minimum": 1}
        from engine.spec import ToolParameter

        told = await asked_for(
            ToolParameter(name="n", schema=schema), call={"n": said(0)}, text="0 please"
        )
        assert told["ask to correct"][0]["given"] == 0

    async def test_a_hidden_parameter_blocks_in_silence(self) -> None:
        told = await asked_for(parameter("product_id", hidden=True), call={"product_id": None})
        assert "ask for" not in told

    async def test_what_comes_from_the_context_is_not_asked_of_the_customer(self) -> None:
        context = parameter("session", source=ParameterSource.CONTEXT)
        assert "ask for" not in await asked_for(context, call={"session": None})

    async def test_only_the_lowest_precedence_present_is_asked_for(self) -> None:
        parameters = [
            parameter("later", precedence=2),
            parameter("first", precedence=1),
            parameter("also first", precedence=1),
            parameter("whenever"),
        ]
        told = await asked_for(*parameters, call={p.name: None for p in parameters})
        assert [i["what"] for i in told["ask for"]] == ["first", "also first"]

    async def test_what_two_tools_need_alike_is_asked_for_once(self) -> None:
        one, other = tool("one", parameter("account")), tool("other", parameter("account"))
        spec = agent(guideline("a", "asks", "do", tools=("one", "other")), tools=[one, other])
        model = ScriptedModel(
            matches("G1"),
            infers("one", {"account": None}),
            infers("other", {"account": None}),
            replies("Which account?"),
        )
        emitted = await play(turn_of(spec, "Do it"), scripted_kit(model))
        assert [i["what"] for i in the_briefing(emitted)["ask for"]] == ["account"]
        assert len(entries(emitted, ToolInsight)) == 2

    async def test_what_only_has_the_same_name_is_asked_for_twice(self) -> None:
        one = tool("one", parameter("name", description="of the book"))
        other = tool("other", parameter("name", description="of the customer"))
        spec = agent(guideline("a", "asks", "do", tools=("one", "other")), tools=[one, other])
        model = ScriptedModel(
            matches("G1"),
            infers("one", {"name": None}),
            infers("other", {"name": None}),
            replies("Who wants which book?"),
        )
        emitted = await play(turn_of(spec, "Do it"), scripted_kit(model))
        assert {i["means"] for i in the_briefing(emitted)["ask for"]} == {
            "of the book",
            "of the customer",
        }

    async def test_two_wrong_values_of_one_parameter_are_both_told(self) -> None:
        spec = agent(guideline("a", "asks", "do", tools=("act",)), tools=[tool("act", CURRENCY)])
        model = ScriptedModel(
            matches("G1"),
            infers("act", {"currency": said("Galleons")}, {"currency": said("Sickles")}),
            replies("Neither."),
        )
        emitted = await play(turn_of(spec, "Galleons and Sickles"), scripted_kit(model))
        given = [i["given"] for i in the_briefing(emitted)["ask to correct"]]
        assert given == ["Galleons", "Sickles"]

    async def test_an_insight_that_a_later_iteration_cured_is_withdrawn_and_stays_in_the_trail(
        self,
    ) -> None:
        spec = agent(
            guideline("a", "wants details", "get them", tools=("details", "find")),
            guideline("b", "it was found", "get it", tools=("details",), reevaluate_after=("find",)),
            tools=[tool("details", parameter("book_id")), tool("find")],
        )  # fmt: skip
        model = ScriptedModel(
            matches("G1"),
            infers("details", {"book_id": None}, decision=DecisionState.CANNOT_RUN),
            matches("G2"),
            infers("details", {"book_id": known("b-17", "find.id")}),
            replies("Here."),
        )
        tools = ScriptedTools({"find": lambda _a, _c: {"id": "b-17"}, "details": lambda _a, _c: 1})
        emitted = await play(turn_of(spec, "Details?"), scripted_kit(model, tools))
        assert "ask for" not in the_briefing(emitted)
        assert [i.parameter for i in entries(emitted, ToolInsight)] == ["book_id"]

    async def test_one_that_a_later_iteration_did_not_cure_is_asked_for_once(self) -> None:
        spec = agent(
            guideline("a", "wants details", "get them", tools=("details", "find")),
            guideline("b", "it was found", "get it", tools=("details",), reevaluate_after=("find",)),
            tools=[tool("details", parameter("book_id")), tool("find")],
        )  # fmt: skip
        model = ScriptedModel(
            matches("G1"),
            infers("details", {"book_id": None}),
            matches("G2"),
            infers("details", {"book_id": None}),
            replies("Which?"),
        )
        state = turn_of(spec, "Details?")
        tools = ScriptedTools({"find": lambda _a, _c: "many"})
        emitted = await play(state, scripted_kit(model, tools))
        assert len(the_briefing(emitted)["ask for"]) == 1
        assert [i.iteration for i in insights_to_tell(state)] == [2]

    async def test_of_two_calls_the_one_that_can_run_does_and_the_other_is_asked_about(
        self,
    ) -> None:
        send = tool("send", parameter("to"), parameter("amount", "number"))
        spec = agent(guideline("a", "sends", "send", tools=("send",)), tools=[send])
        model = ScriptedModel(
            matches("G1"),
            infers("send", {"to": said("Ann"), "amount": said(50)}, {"to": said("Bob"), "amount": None}),
            replies("How much for Bob?"),
        )  # fmt: skip
        tools = ScriptedTools({"send": lambda _a, _c: "sent"})
        emitted = await play(turn_of(spec, "50 to Ann, and Bob too"), scripted_kit(model, tools))
        assert tools.called == [("send", {"to": "Ann", "amount": 50})]
        assert [i["what"] for i in the_briefing(emitted)["ask for"]] == ["amount"]
        states = [d.state for d in entries(emitted, ToolDecision)]
        assert states == [DecisionState.NEEDS_TO_RUN, DecisionState.CANNOT_RUN]


class TestTheReply:
    async def test_a_reply_names_the_model_that_wrote_it(self) -> None:
        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(ScriptedModel(replies(" Hi! "))))
        assert (the_reply(emitted).text, the_reply(emitted).model) == ("Hi!", "scripted")

    async def test_nul_characters_of_a_model_reach_nobody(self) -> None:
        model = ScriptedModel(replies("a\x00b \\u0000"))
        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(model))
        assert the_reply(emitted).text == "ab \\u0000"
        assert not any("\x00" in part.text for part in entries(emitted, MessagePartEvent))

    async def test_pieces_of_a_failed_attempt_are_void(self) -> None:
        class Stumbling:
            name, batch_size, judging_style = "stumbling", 12, JudgingStyle.REASONED

            async def stream(self, _request: ModelRequest) -> Any:
                from datetime import UTC, datetime

                now = datetime.now(UTC)
                error = ModelError("broke off", kind=ModelErrorKind.TRUNCATED, retryable=True)
                yield TextDelta(text='{"reply": "I thi')
                yield AttemptFailed(error=error, started_at=now, ended_at=now)
                yield TextDelta(text='{"reply": "Good morn')
                answer = {"reply": "Good morning", "follows": []}
                yield ModelReply(answer=answer, text="…", model="stumbling")

        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(Stumbling()))
        parts = [(p.text, p.restart) for p in entries(emitted, MessagePartEvent)]
        assert parts[0] == ("I thi", False)
        assert all(restart for _text, restart in parts[1:2])
        assert the_reply(emitted).text == "Good morning"
        first, second = entries(emitted, ModelCall)
        assert (first.attempt, first.used, second.attempt, second.used) == (1, False, 2, True)
        assert first.error == "truncated: broke off"

    async def test_a_model_that_gives_up_leaves_no_message(self) -> None:
        error = ModelError("down", kind=ModelErrorKind.SERVER, retryable=True, answer_text="half")
        model = ScriptedModel(Expected(question="ComposeReply", answer=error))
        emitted, ended = await play_to_its_end(turn_of(KIND, "Hello"), scripted_kit(model))
        assert ended is error
        assert entries(emitted, MessageEvent) == []
        assert entries(emitted, ModelCall)[-1].answer_text == "half"
        assert emitted[-1] != Checkpoint(step=Step.FINISHED)

    async def test_a_resumed_turn_is_briefed_as_before_and_voids_the_pieces_shown(self) -> None:
        briefing = BriefingEvent(guidelines=("kind",), content={"guidelines": "as before"})
        model = ScriptedModel(replies("Hi!"))
        state = turn_of(KIND, "Hello", briefing)
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(model))
        assert entries(emitted, BriefingEvent) == []
        assert '"as before"' in model.requests[0].messages[1].content
        assert entries(emitted, MessagePartEvent)[0].restart

    async def test_a_reply_that_was_out_before_a_crash_is_not_written_twice(self) -> None:
        briefing = BriefingEvent(guidelines=("kind",), content={})
        state = turn_of(KIND, "Hello", briefing, said_by(Source.AGENT, "Hi!"))
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(ScriptedModel()))
        assert emitted == [Checkpoint(step=Step.FINISHED)]

    async def test_a_reply_that_was_cut_off_is_written_anew(self) -> None:
        cut = MessageEvent(source=Source.AGENT, text="H", partial=True)
        state = turn_of(KIND, "Hello", BriefingEvent(guidelines=("kind",), content={}), cut)
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(ScriptedModel(replies("Hi!"))))
        assert the_reply(emitted).text == "Hi!"

    async def test_what_a_tool_said_before_is_no_reply(self) -> None:
        spec = agent(guideline("a", "asks", "look", tools=("look",)), tools=[tool("look")])

        async def speak(_arguments: Any, context: Any) -> int:
            await context.emit_message("One moment")
            return 1

        model = ScriptedModel(matches("G1"), replies("Done."))
        kit = scripted_kit(model, ScriptedTools({"look": speak}))
        emitted = await play(turn_of(spec, "Look"), kit)
        assert the_reply(emitted).text == "Done."

    async def test_the_report_covers_what_was_in_force_and_nothing_else(self) -> None:
        spec = agent(guideline("a", action="x"), guideline("b", action="y"), guideline("c", "z"))
        follows = [
            {"guideline": "G1 ", "follows": False},
            {"guideline": "G2", "follows": True},
            {"guideline": "G2", "follows": False},
            {"guideline": "G3", "follows": True},
            {"guideline": "G77", "follows": True},
        ]
        answer = {"reply": "Hi!", "follows": follows}
        model = ScriptedModel(matches(), Expected(question="ComposeReply", answer=answer))
        emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))
        found = [(a.guideline, a.follows) for a in entries(emitted, Adherence)]
        assert found == [("a", False), ("b", False)]


@pytest.mark.parametrize(
    ("raw", "reply"),
    [
        ("", ""),
        ("{", ""),
        ('{"reply', ""),
        ('{"reply": "', ""),
        ('{"reply": "Hi', "Hi"),
        ('{"reply": "Hi \\', "Hi "),
        ('{"reply": "Hi \\u00e', "Hi "),
        ('{"reply": "Hi \\u00e9', "Hi é"),
        ('{"reply": "a \\"quote\\"', 'a "quote"'),
        ('{"reply": "Hi", "follows": [{"gui', "Hi"),
        ('{"follows": [], "reply": "late', "late"),
        ('{"reply": 5', ""),
        ('{"reply": null, ', ""),
        ("Sure! Here is", ""),
        ("[1, 2", ""),
        ('{"reply": "nul \\u0000 in', "nul  in"),
    ],
)
def test_the_reply_is_read_out_of_unfinished_json(raw: str, reply: str) -> None:
    assert reply_so_far(raw) == reply


def test_no_piece_of_a_reply_is_ever_taken_back() -> None:
    import json

    text = 'Zoë said: "50 € — \\ 👩‍👩‍👧"\n\tand left \x07 \u2028 {"reply": "no"}'
    for ascii_only in (True, False):
        raw = json.dumps({"reply": text, "follows": []}, ensure_ascii=ascii_only)
        seen = ""
        for end in range(len(raw) + 1):
            now = reply_so_far(raw[:end])
            if now:
                assert now.startswith(seen)
                seen = now
        assert seen == text
