"""What the customer is asked for (ENGINE.md §3 insights): exactly the right items, and no others."""

from typing import Any

from engine.briefing import insights_to_tell
from engine.spec import ParameterSource, ToolParameter
from engine.testing import (
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
from engine.trail import DecisionState, ToolDecision, ToolInsight
from tests.engine.agents import agent, guideline, parameter, tool, turn_of
from tests.engine.test_briefing import the_briefing
from tests.engine.test_provenance import CURRENCY


async def asked_for(*parameters: Any, call: dict[str, Any], text: str = "Please do") -> Any:
    """The briefing of a turn in which a tool with these parameters was inferred to this call."""
    spec = agent(guideline("a", "asks", "do", tools=("act",)), tools=[tool("act", *parameters)])
    model = ScriptedModel(matches("G1"), infers("act", call), replies("Well."))
    emitted = await play(
        turn_of(spec, text), scripted_kit(model, ScriptedTools({"act": lambda _a, _c: 1}))
    )
    return the_briefing(emitted)


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
