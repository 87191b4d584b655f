"""Which tools run, and with what (ENGINE.md §1 steps 4–5, §2, §3): whatever the model says is checked in code."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import ToolError, ToolErrorKind
from engine.events import BriefingEvent, Source, StatusEvent, ToolFinishedEvent
from engine.outbox import Emission
from engine.spec import Agent, Confirm, ParameterSource, Tool, ToolParameter
from engine.state import Checkpoint, Limits, Step
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    inferred,
    infers,
    known,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.trail import (
    Argument,
    ArgumentSource,
    DecisionState,
    InsightKind,
    LimitReached,
    ToolCall,
    ToolDecision,
    ToolInsight,
)
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of
from tests.engine.sessions import HOSTILE

TO = parameter("to")
AMOUNT = ToolParameter(name="amount", schema={"type": "number", "exclusiveMinimum": 0})
CURRENCY = ToolParameter(
    name="currency",
    schema={"type": "string", "enum": ["EUR", "USD"]},
    required=False,
    default="EUR",
)
NOTE = parameter("note", required=False)
ANY = {"quote": lambda a, _c: a, "send": lambda a, _c: a, "look": lambda _a, _c: 1}


def an_agent(*tools: Tool, **options: Any) -> Agent:
    """One guideline with all these tools."""
    names = tuple(each.name for each in tools)
    return agent(guideline("a", "asks", "do it", tools=names), tools=tools, **options)


class Turn:
    """What came of one turn in which the tool `quote` or `send` was inferred to these calls."""

    def __init__(self, emitted: list[Emission], tools: ScriptedTools) -> None:
        self.emitted = emitted
        self.called = [arguments for _name, arguments in tools.called]
        self.decisions: list[ToolDecision] = entries(emitted, ToolDecision)
        self.insights: list[ToolInsight] = entries(emitted, ToolInsight)

    @property
    def decision(self) -> ToolDecision:
        (decision,) = self.decisions
        return decision

    @property
    def argument(self) -> Argument:
        (argument,) = self.decision.arguments
        return argument


async def infer(
    the_tool: Tool, *calls: dict[str, Any], text: str = "Please", past: Any = (), **options: Any
) -> Turn:
    limits = options.pop("limits", Limits())
    model = ScriptedModel(matches("G1"), infers(the_tool.name, *calls, **options), replies("Well."))
    tools = ScriptedTools(dict(ANY))
    state = turn_of(an_agent(the_tool), *past, text, limits=limits)
    emitted = await play(state, scripted_kit(model, tools))
    model.assert_used_up()
    assert emitted[-1] == Checkpoint(step=Step.FINISHED)
    return Turn(emitted, tools)


def full(to: str = "Ann", amount: float = 50, **others: Any) -> dict[str, Any]:
    return {"to": said(to), "amount": said(amount)} | others


QUOTE = tool("quote", TO, AMOUNT, CURRENCY, NOTE)
SEND = tool("send", TO, AMOUNT, CURRENCY, NOTE, consequential=True, confirm=Confirm.INFERRED)
WORDS = "50 to Ann"
QUOTED = ToolFinishedEvent(call="c", tool="quote", arguments={"to": "Ann", "amount": 50}, data=51)


class TestDecisions:
    async def test_a_call_with_all_it_needs_runs_with_the_arguments_on_record(self) -> None:
        turn = await infer(QUOTE, full(), text=WORDS)
        assert turn.called == [{"to": "Ann", "amount": 50}]
        assert turn.decision.state is DecisionState.NEEDS_TO_RUN
        assert turn.decision.because == "It is needed."
        call = entries(turn.emitted, ToolCall)[-1]
        assert call.uid == turn.decision.call
        assert call.guidelines == ("a",)

    @pytest.mark.parametrize("left_out", [{"amount": None}, {}], ids=["null", "absent"])
    async def test_a_call_that_the_model_approves_without_a_required_argument_does_not_run(
        self, left_out: dict[str, Any]
    ) -> None:
        turn = await infer(QUOTE, {"to": said("Ann"), **left_out}, text="To Ann")
        assert turn.called == []
        assert turn.decision.state is DecisionState.CANNOT_RUN
        assert turn.decision.missing == ("amount",)
        assert turn.decision.because == "amount is missing."
        (insight,) = turn.insights
        assert (insight.kind, insight.parameter) == (InsightKind.MISSING, "amount")

    async def test_approval_without_any_call_does_not_run_either(self) -> None:
        turn = await infer(QUOTE, text=WORDS)
        assert turn.called == []
        assert turn.decision.missing == ("to", "amount")

    async def test_a_choice_outside_the_list_does_not_run(self) -> None:
        turn = await infer(QUOTE, full(currency=said("GBP")), text=f"{WORDS} in GBP")
        assert turn.called == []
        assert (turn.decision.state, turn.decision.invalid) == (
            DecisionState.CANNOT_RUN,
            ("currency",),
        )
        (insight,) = turn.insights
        assert (insight.kind, insight.value, insight.choices) == (
            InsightKind.INVALID,
            "GBP",
            ("EUR", "USD"),
        )
        assert turn.decision.because == "currency must be one of EUR, USD."

    @pytest.mark.parametrize(
        "amount", [-5, 0, "50", True, [50], {"value": 50}, float("nan"), float("inf"), 1e400]
    )
    async def test_an_invalid_value_does_not_run_and_is_kept_as_json(self, amount: Any) -> None:
        from engine.canonical import canonical_json

        turn = await infer(QUOTE, full(amount=amount), text=WORDS)
        assert turn.called == []
        assert turn.decision.invalid == ("amount",)
        canonical_json([a.value for a in turn.decision.arguments])
        canonical_json(turn.insights[0].value)

    async def test_a_value_nested_without_end_is_refused_and_not_kept(self) -> None:
        deep: Any = 1
        for _ in range(2000):
            deep = [deep]
        free = ToolParameter(name="data", schema={"type": "object"})
        claim = {"value": deep, "source": "inferred", "evidence": ""}

        class Deep(ScriptedModel):
            async def stream(self, request: Any) -> Any:
                from engine.model.base import ModelReply

                if request.question.name != "InferToolCalls":
                    async for item in super().stream(request):
                        yield item
                else:
                    answer = {"because": "", "decision": "NEEDS_TO_RUN", "calls": [{"data": claim}]}
                    yield ModelReply(answer=answer, text="", model="deep")

        model = Deep(matches("G1"), replies("Well."))
        emitted = await play(turn_of(an_agent(tool("quote", free)), "Go"), scripted_kit(model))
        (decision,) = entries(emitted, ToolDecision)
        assert decision.invalid == ("data",)
        assert decision.arguments[0].value == "(nested too deeply)"

    async def test_not_needed_is_filed_as_not_needed(self) -> None:
        turn = await infer(
            QUOTE, full(), text=WORDS, decision=DecisionState.NOT_NEEDED, because="Only a greeting."
        )
        assert turn.called == []
        assert (turn.decision.state, turn.decision.because) == (
            DecisionState.NOT_NEEDED,
            "Only a greeting.",
        )
        assert turn.insights == []

    async def test_data_in_the_conversation_is_filed_as_such(self) -> None:
        decision = DecisionState.DATA_ALREADY_IN_CONTEXT
        past = ["A quote, please", QUOTED, said_by(Source.AGENT, "51 EUR.")]
        turn = await infer(QUOTE, text="For Ann, as I said", past=past, decision=decision)
        assert (turn.called, turn.decision.state) == ([], decision)

    @pytest.mark.parametrize(
        "before",
        [
            [],
            [replace(QUOTED, tool="look")],
            [replace(QUOTED, error=ToolError(kind=ToolErrorKind.TIMEOUT, public="too slow"))],
            [replace(QUOTED, data=None, withheld=True)],
        ],
        ids=["nothing ran", "another tool", "it failed", "it was not kept"],
    )
    async def test_what_does_not_apply_is_not_filed_as_data_already_there(
        self, before: list[ToolFinishedEvent]
    ) -> None:
        decision = DecisionState.DATA_ALREADY_IN_CONTEXT
        past = ["Hello", *before, said_by(Source.AGENT, "Hello!")] if before else []
        turn = await infer(
            QUOTE, text="Thanks", past=past, decision=decision, because="Not applicable."
        )
        assert turn.called == []
        assert (turn.decision.state, turn.decision.because) == (
            DecisionState.NOT_NEEDED,
            "Not applicable.",
        )

    @pytest.mark.parametrize(
        ("text", "amount"), [("actually 400", 400), ("and now?", 50)], ids=["amended", "anew"]
    )
    async def test_what_ran_in_an_earlier_turn_runs_again_when_it_is_amended_or_asked_anew(
        self, text: str, amount: int
    ) -> None:
        past = [WORDS, QUOTED, said_by(Source.AGENT, "51 EUR.")]
        turn = await infer(QUOTE, full(amount=amount), text=text, past=past)
        assert turn.called == [{"to": "Ann", "amount": amount}]

    async def test_a_model_that_sees_an_obstacle_in_vain_is_overruled_and_quoted(self) -> None:
        decision = DecisionState.CANNOT_RUN
        turn = await infer(QUOTE, full(), text=WORDS, decision=decision, because="No account.")
        assert len(turn.called) == 1
        assert turn.decision.state is DecisionState.NEEDS_TO_RUN
        assert "No account." in turn.decision.because
        assert turn.decision.because.startswith("Every required argument is known")

    async def test_nothing_irreversible_happens_against_the_models_word(self) -> None:
        decision = DecisionState.CANNOT_RUN
        turn = await infer(SEND, full(), text=WORDS, decision=decision, because="Not sure.")
        assert turn.called == []
        assert (turn.decision.state, turn.decision.because) == (decision, "Not sure.")

    async def test_a_reason_without_end_is_cut(self) -> None:
        turn = await infer(QUOTE, full(), text=WORDS, because="because\n" * 1000)
        assert len(turn.decision.because) <= 300

    async def test_a_tool_that_the_agent_does_not_have_is_no_candidate(self) -> None:
        spec = agent(guideline("a", "asks", "do", tools=("gone",)))
        model = ScriptedModel(matches("G1"), replies("Well."))
        emitted = await play(turn_of(spec, "Do"), scripted_kit(model))
        assert entries(emitted, ToolDecision) == []

    async def test_a_tool_that_changes_something_is_asked_about_though_it_has_no_parameters(
        self,
    ) -> None:
        lock = tool("send", consequential=True, confirm=Confirm.INFERRED)
        turn = await infer(lock, decision=DecisionState.NOT_NEEDED)
        assert turn.called == []
        turn = await infer(lock)
        assert turn.called == [{}]


class TestSeveralCalls:
    async def test_each_different_call_of_one_answer_runs(self) -> None:
        turn = await infer(QUOTE, full(), full("Bob", 30), text="50 to Ann and 30 to Bob")
        assert turn.called == [{"to": "Ann", "amount": 50}, {"to": "Bob", "amount": 30}]
        assert len({d.call for d in turn.decisions}) == 2

    @pytest.mark.parametrize(
        "again",
        [
            full(),
            full(amount=50.0),
            full(currency=None),
            full(currency={"value": "EUR", "source": "default", "evidence": ""}),
        ],
    )
    async def test_a_call_that_is_the_same_to_the_tool_runs_once(self, again: Any) -> None:
        turn = await infer(SEND, full(), again, text=WORDS)
        assert len(turn.called) == 1

    async def test_a_whole_number_is_passed_as_one(self) -> None:
        whole = tool("quote", parameter("count", "integer"))
        turn = await infer(whole, {"count": said(5.0, "5")}, text="5 of them")
        assert turn.called == [{"count": 5}]
        assert isinstance(turn.called[0]["count"], int)
        assert isinstance(turn.argument.value, int)

    async def test_no_decision_of_an_answer_is_thrown_away(self) -> None:
        turn = await infer(
            QUOTE,
            full(),
            full("Bob", -1),
            full("Eve", -2),
            {"to": said("Joe"), "amount": None},
            text="50 to Ann, -1 to Bob, -2 to Eve, some to Joe",
        )
        ends = [(d.state, d.invalid, d.missing) for d in turn.decisions]
        cannot = DecisionState.CANNOT_RUN
        assert ends == [
            (DecisionState.NEEDS_TO_RUN, (), ()),
            (cannot, ("amount",), ()),
            (cannot, ("amount",), ()),
            (cannot, (), ("amount",)),
        ]
        assert [i.value for i in turn.insights] == [-1, -2, None]

    async def test_calls_beyond_the_limit_are_decided_and_recorded_as_not_run(self) -> None:
        calls = [full(amount=n) for n in range(1, 6)]
        turn = await infer(SEND, *calls, text="1 2 3 4 5 to Ann", limits=Limits(max_calls=2))
        assert len(turn.called) == 2
        states = [d.state for d in turn.decisions]
        assert states == [DecisionState.NEEDS_TO_RUN] * 2 + [DecisionState.CANNOT_RUN] * 3
        assert all("2 calls at most" in d.because for d in turn.decisions[2:])
        assert len(entries(turn.emitted, LimitReached)) == 3


class TestOnlyTheCustomer:
    to = parameter("to", source=ParameterSource.CUSTOMER, display_name="recipient")

    async def infer(self, claim: dict[str, Any], **options: Any) -> Turn:
        send = tool("send", self.to, consequential=True, confirm=Confirm.INFERRED)
        return await infer(send, {"to": claim}, **options)

    async def test_words_of_the_customer_will_do(self) -> None:
        turn = await self.infer(said("Ann"), text="Send it to Ann")
        assert turn.called == [{"to": "Ann"}]
        assert (turn.argument.source, turn.argument.verified) == (ArgumentSource.CUSTOMER, True)

    @pytest.mark.parametrize(
        "claim",
        [
            inferred("Ann"),
            said("Ann", "to Ann"),
            known("Ann", "look.name"),
            {"value": "Ann", "source": "variable", "evidence": "name"},
            {"value": "Ann", "source": "guideline", "evidence": "Ann"},
        ],
        ids=["inferred", "fabricated", "result", "variable", "guideline"],
    )
    async def test_anything_else_is_missing(self, claim: dict[str, Any]) -> None:
        data = ToolFinishedEvent(call="c", tool="look", arguments={}, data={"name": "Ann"})
        past = ["Hello", data, said_by(Source.AGENT, "To Ann?")]
        turn = await self.infer(claim, text="Send it", past=past)
        assert turn.called == []
        assert turn.decision.missing == ("to",)
        assert turn.decision.because == "recipient is missing; only the customer can give it."
        assert turn.insights[0].label == "recipient"

    async def test_a_choice_may_be_named_in_other_words(self) -> None:
        currency = ToolParameter(
            name="currency",
            schema={"type": "string", "enum": ["EUR", "USD"]},
            source=ParameterSource.CUSTOMER,
        )
        quote = tool("quote", currency)
        turn = await infer(quote, {"currency": said("USD", "dollars")}, text="In dollars, please")
        assert turn.called == [{"currency": "USD"}]
        turn = await infer(quote, {"currency": said("USD", "euros")}, text="In dollars, please")
        assert turn.called == []

    @pytest.mark.parametrize("account", ["DE8937040044", "DE89 3704 0044", "37-040-044"])
    async def test_an_account_that_the_customer_did_not_name_is_missing(self, account: str) -> None:
        turn = await self.infer(said(account, "my account"), text="Send it to my account")
        assert (turn.called, turn.decision.missing) == ([], ("to",))


class TestOptionalAndNullable:
    async def test_an_optional_argument_that_was_not_given_is_not_sent(self) -> None:
        turn = await infer(QUOTE, full(currency=None, note=None), text=WORDS)
        assert turn.called == [{"to": "Ann", "amount": 50}]

    @pytest.mark.parametrize("required", [True, False])
    async def test_a_default_that_the_model_gives_is_there_for_the_tool(
        self, required: bool
    ) -> None:
        schema = {"type": "string", "enum": ["EUR", "USD"]}
        currency = ToolParameter(name="currency", schema=schema, required=required, default="EUR")
        claim = {"value": "EUR", "source": "default", "evidence": ""}
        turn = await infer(tool("quote", currency), {"currency": claim}, text="Quote")
        assert turn.argument.value == "EUR"
        if required:
            assert turn.called == [{"currency": "EUR"}]

    async def test_an_invalid_optional_argument_blocks_and_is_not_dropped_in_silence(self) -> None:
        turn = await infer(QUOTE, full(note=said(5)), text=f"{WORDS} 5")
        assert (turn.called, turn.decision.invalid) == ([], ("note",))

    async def test_null_is_a_value_where_the_parameter_says_so(self) -> None:
        nullable = ToolParameter(
            name="until", schema={"anyOf": [{"type": "string"}, {"type": "null"}]}
        )
        claim = {"value": None, "source": "customer", "evidence": "forever"}
        turn = await infer(tool("quote", nullable), {"until": claim}, text="forever")
        assert turn.called == [{"until": None}]

    async def test_null_is_missing_where_it_is_not(self) -> None:
        claim = {"value": None, "source": "customer", "evidence": "forever"}
        turn = await infer(tool("quote", TO), {"to": claim}, text="forever")
        assert turn.decision.missing == ("to",)

    async def test_parameters_that_the_tool_does_not_have_are_left_out(self) -> None:
        turn = await infer(QUOTE, full(surprise=said("x")), text=WORDS)
        assert turn.called == [{"to": "Ann", "amount": 50}]


class TestChoicesOfThisTurn:
    shelf = parameter("shelf", provides_choices=True)

    async def infer(
        self, choices: Any, **options: Any
    ) -> tuple[list[Emission], ScriptedModel, Any]:
        quote = tool("quote", self.shelf)
        model = ScriptedModel(
            matches("G1"),
            *([infers("quote", {"shelf": said("C")})] if choices else []),
            replies("."),
        )
        tools = ScriptedTools(dict(ANY), {"quote": {"shelf": choices}})
        emitted = await play(
            turn_of(an_agent(quote), "asks, asks: C", **options), scripted_kit(model, tools)
        )
        model.assert_used_up()
        return emitted, model, tools.called

    @pytest.mark.parametrize("ahead", [0, 2], ids=["asked after matching", "guessed"])
    async def test_a_question_shows_the_choices_of_this_turn_and_others_do_not_run(
        self, ahead: int
    ) -> None:
        emitted, model, called = await self.infer(("A", "B"), limits=Limits(likely_tools=ahead))
        asked = next(r for r in model.requests if r.question.name == "InferToolCalls")
        assert '"enum": ["A", "B"]' in asked.messages[0].content
        (insight,) = entries(emitted, ToolInsight)
        assert (insight.choices, insight.value, called) == (("A", "B"), "C", [])

    @pytest.mark.parametrize("ahead", [0, 2], ids=["asked after matching", "guessed"])
    async def test_a_tool_with_nothing_to_choose_from_cannot_run_and_says_why(
        self, ahead: int
    ) -> None:
        emitted, _model, called = await self.infer((), limits=Limits(likely_tools=ahead))
        (decision,) = entries(emitted, ToolDecision)
        assert (decision.state, called) == (DecisionState.CANNOT_RUN, [])
        assert decision.because == "There is nothing to choose from for shelf."


class TestSharedTools:
    async def test_all_guidelines_that_ask_for_a_tool_are_one_question_and_one_call(self) -> None:
        spec = agent(
            guideline("a", "asks", "do", tools=("quote",)),
            guideline("b", "also asks", "do", tools=("quote",)),
            guideline("c", "does not", "do", tools=("quote",)),
            tools=[QUOTE],
        )
        model = ScriptedModel(matches("G1", "G2"), infers("quote", full()), replies("Well."))
        tools = ScriptedTools(dict(ANY))
        emitted = await play(turn_of(spec, WORDS), scripted_kit(model, tools))
        assert len(tools.called) == 1
        decisions = entries(emitted, ToolDecision)
        assert [d.guideline for d in decisions] == ["a", "b"]
        assert {d.call for d in decisions} == {entries(emitted, ToolCall)[0].uid}
        assert entries(emitted, ToolCall)[0].guidelines == ("a", "b")

    async def test_a_tool_named_twice_by_one_guideline_is_asked_about_once(self) -> None:
        spec = agent(guideline("a", "asks", "do", tools=("quote", "quote")), tools=[QUOTE])
        model = ScriptedModel(matches("G1"), infers("quote", full()), replies("Well."))
        tools = ScriptedTools(dict(ANY))
        emitted = await play(turn_of(spec, WORDS), scripted_kit(model, tools))
        assert len(tools.called) == 1
        assert len({d.guideline for d in entries(emitted, ToolDecision)}) == 1

    async def test_independent_tools_are_asked_about_side_by_side(self) -> None:
        import asyncio

        both = asyncio.Barrier(2)

        class Together(ScriptedModel):
            async def stream(self, request: Any) -> Any:
                if request.question.name == "InferToolCalls":
                    await asyncio.wait_for(both.wait(), 5)
                async for item in super().stream(request):
                    yield item

        one, other = tool("quote", TO), tool("send", TO)
        model = Together(
            matches("G1"),
            infers("quote", {"to": said("Ann")}),
            infers("send", {"to": said("Ann")}),
            replies("Well."),
        )
        tools = ScriptedTools(dict(ANY))
        emitted = await play(turn_of(an_agent(one, other), "To Ann"), scripted_kit(model, tools))
        assert len(tools.called) == 2
        assert any(s.tools == ("quote", "send") for s in entries(emitted, StatusEvent))

    async def test_one_tool_blocked_does_not_hold_up_another(self) -> None:
        one, other = tool("quote", TO), tool("send", TO)
        model = ScriptedModel(
            matches("G1"),
            infers("quote", {"to": None}),
            infers("send", {"to": said("Ann")}),
            replies("Well."),
        )
        tools = ScriptedTools(dict(ANY))
        emitted = await play(turn_of(an_agent(one, other), "To Ann"), scripted_kit(model, tools))
        assert tools.called == [("send", {"to": "Ann"})]
        assert "ask for" in entries(emitted, BriefingEvent)[0].content


class TestGoingOn:
    async def test_decisions_on_record_are_not_made_again(self) -> None:
        one, other = tool("quote", TO), tool("send", TO)
        spec = an_agent(one, other)
        script = [
            matches("G1"),
            infers("quote", {"to": said("Ann")}),
            infers("send", {"to": said("Ann")}),
            replies("Well."),
        ]
        first = await play(
            turn_of(spec, "To Ann"),
            scripted_kit(ScriptedModel(*script), ScriptedTools(dict(ANY))),
        )
        from engine.trail import GuidelineMatch

        state = turn_of(spec, "To Ann")
        state.checkpoint = Checkpoint(step=Step.CALLING)
        state.recall(entries(first, GuidelineMatch))
        state.recall([d for d in entries(first, ToolDecision) if d.tool == "quote"])
        model = ScriptedModel(infers("send", {"to": said("Ann")}), replies("Well."))
        tools = ScriptedTools(dict(ANY))
        await play(state, scripted_kit(model, tools))
        model.assert_used_up()
        assert sorted(name for name, _a in tools.called) == ["quote", "send"]


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
async def test_any_text_reaches_a_tool_as_it_was_said(text: str) -> None:
    clean = text.replace("\x00", "")
    spec = an_agent(tool("quote", TO, description=text), description=text)
    answer = {"because": text, "decision": "NEEDS_TO_RUN", "calls": [{"to": said(text)}]}
    inferred_call = Expected(question="InferToolCalls", about="quote", answer=answer)
    model = ScriptedModel(matches("G1"), inferred_call, replies("Well."))
    tools = ScriptedTools({"quote": lambda _a, _c: 1})
    emitted = await play(turn_of(spec, text), scripted_kit(model, tools))
    assert tools.called == [("quote", {"to": clean})]
    assert entries(emitted, ToolDecision)[0].state is DecisionState.NEEDS_TO_RUN
