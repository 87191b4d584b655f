"""The customer's word on what changes something (ENGINE.md §1 step 1, §4): never unconfirmed, at most once."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.errors import ToolErrorKind
from engine.events import (
    Answer,
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.kit import Kit
from engine.outbox import Emission
from engine.spec import Agent, Confirm, ParameterSource, ToolParameter
from engine.state import Checkpoint, Limits, Step, TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    inferred,
    infers,
    matches,
    play,
    reads,
    replies,
    said,
    scripted_kit,
)
from engine.trail import (
    CallState,
    DecisionState,
    GuidelineMatch,
    MatchState,
    ModelCall,
    ToolCall,
    ToolDecision,
    ToolInsight,
)
from engine.turn import run_turn
from tests.engine.agents import agent, guideline, parameter, said_by, tool

AMOUNT = ToolParameter(name="amount", schema={"type": "number", "exclusiveMinimum": 0})
CURRENCY = ToolParameter(
    name="currency",
    schema={"type": "string", "enum": ["EUR", "USD"]},
    required=False,
    default="EUR",
)
PAY = tool(
    "pay",
    parameter("to", display_name="recipient"),
    AMOUNT,
    CURRENCY,
    parameter("branch", required=False, hidden=True),
    consequential=True,
)
BALANCE = tool("balance", parameter("account"))
BANK = agent(
    guideline("pay", "wants to pay", "pay", tools=("pay",)),
    guideline("balance", "asks for the balance", "say it", tools=("balance",)),
    tools=[PAY, BALANCE],
)
NO_GUESS = Limits(likely_tools=0)


class Session:
    """A session as the studio keeps it: every event is stored, and each turn is built from what is stored."""

    def __init__(self, spec: Agent = BANK, **options: Any) -> None:
        self.spec = spec
        self.options = {"limits": NO_GUESS} | options
        self.history: list[RecordedEvent] = []
        self.turn = 0
        self.tools = ScriptedTools(
            {"pay": lambda a, _c: {"paid": a["amount"]}, "balance": lambda _a, _c: 7}
        )
        self.model = ScriptedModel()

    def keep(self, event: Event) -> None:
        offset = len(self.history) + 1
        self.history.append(RecordedEvent(offset=offset, turn=self.turn, event=event))

    def begin(self, *events: Event | str) -> TurnState:
        """The next turn, with what came in for it."""
        self.turn += 1
        for event in events:
            self.keep(said_by(Source.CUSTOMER, event) if isinstance(event, str) else event)
        return self.state()

    def state(self) -> TurnState:
        return TurnState(
            agent=self.spec, turn=self.turn, history=tuple(self.history), **self.options
        )

    def kit(self, *script: Expected) -> Kit:
        self.model = ScriptedModel(*script)
        return scripted_kit(self.model, self.tools)

    async def say(self, *events: Event | str, then: list[Expected]) -> list[Emission]:
        """A whole turn; the script must be played to its end."""
        state = self.begin(*events)
        emitted = await play(state, self.kit(*then))
        self.model.assert_used_up()
        self.store(emitted)
        assert emitted[-1] == Checkpoint(step=Step.FINISHED, iteration=emitted[-1].iteration)  # type: ignore[union-attr]
        return emitted

    def store(self, emitted: list[Emission]) -> None:
        for item in entries(emitted, KEPT):  # type: ignore[arg-type]
            self.keep(item)

    async def asked_to_pay(self, *calls: dict[str, Any], text: str = "Pay 50 to Ann") -> list[str]:
        """A turn after which these calls await the customer's word; their uids."""
        given = calls or ({"to": said("Ann"), "amount": said(50)},)
        emitted = await self.say(
            text, then=[matches("G1"), infers("pay", *given), replies("Shall I?")]
        )
        assert self.tools.called == []
        return [event.call for event in entries(emitted, ConfirmationAskedEvent)]

    @property
    def paid(self) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.tools.called if name == "pay"]


KEPT = (
    MessageEvent,
    ToolStartedEvent,
    ToolFinishedEvent,
    ConfirmationAskedEvent,
    ConfirmationAnsweredEvent,
    BriefingEvent,
)
TRAIL = (GuidelineMatch, ToolDecision, ToolCall, ToolInsight)
TO_ANN = {"to": "Ann", "amount": 50, "currency": "EUR"}
TO_BOB = {"to": "Bob", "amount": 30, "currency": "EUR"}
BOTH = ({"to": said("Ann"), "amount": said(50)}, {"to": said("Bob"), "amount": said(30)})


def answers(emitted: list[Emission]) -> dict[str, Answer]:
    return {e.call: e.answer for e in entries(emitted, ConfirmationAnsweredEvent)}


def decided(emitted: list[Emission], tool_name: str = "pay") -> list[DecisionState]:
    return [d.state for d in entries(emitted, ToolDecision) if d.tool == tool_name]


def matched(emitted: list[Emission], uid: str) -> GuidelineMatch:
    found: GuidelineMatch = [m for m in entries(emitted, GuidelineMatch) if m.guideline == uid][-1]
    return found


class TestAsking:
    async def test_a_ready_call_is_asked_about_and_does_not_run(self) -> None:
        session = Session()
        emitted = await session.say(
            "Pay 50 to Ann",
            then=[
                matches("G1"),
                infers("pay", {"to": said("Ann"), "amount": said(50)}),
                replies("Shall I?"),
            ],
        )
        assert session.tools.called == []
        (decision,) = entries(emitted, ToolDecision)
        (event,) = entries(emitted, ConfirmationAskedEvent)
        assert decision.state is DecisionState.AWAITING_CONFIRMATION
        assert (event.call, event.tool, event.guidelines) == (decision.call, "pay", ("pay",))
        assert event.arguments == TO_ANN

    async def test_people_are_shown_names_for_all_but_hidden_arguments(self) -> None:
        session = Session()
        given = {"to": said("Ann"), "amount": said(50), "branch": inferred("7")}
        await session.asked_to_pay(given)
        (event,) = (e.event for e in session.history if isinstance(e.event, ConfirmationAskedEvent))
        assert event.arguments["branch"] == "7"
        assert event.labels == {"to": "recipient", "amount": "amount", "currency": "currency"}

    async def test_the_reply_sees_what_awaits_the_customers_word(self) -> None:
        session = Session()
        await session.asked_to_pay()
        assert "awaits the customer's word" in session.model.requests[-1].messages[-1].content

    @pytest.mark.parametrize(("claim", "runs"), [(said(50), True), (inferred(70), False)])
    async def test_where_only_inferred_arguments_need_a_word_the_others_run_at_once(
        self, claim: Any, runs: bool
    ) -> None:
        pay = replace(PAY, confirm=Confirm.INFERRED)
        session = Session(replace(BANK, tools=(pay, BALANCE)))
        emitted = await session.say(
            "Pay 50 to Ann",
            then=[matches("G1"), infers("pay", {"to": said("Ann"), "amount": claim}), replies(".")],
        )
        assert bool(session.paid) is runs
        assert bool(entries(emitted, ConfirmationAskedEvent)) is not runs

    async def test_a_default_is_no_conclusion_and_needs_no_word(self) -> None:
        pay = tool("pay", CURRENCY, consequential=True, confirm=Confirm.INFERRED)
        session = Session(replace(BANK, tools=(pay, BALANCE)))
        session.tools.functions["pay"] = lambda _a, _c: 1
        await session.say("Pay", then=[matches("G1"), infers("pay", {}), replies("Paid.")])
        assert session.paid == [{}]

    async def test_what_only_the_customer_may_give_stays_missing_without_their_words(self) -> None:
        pay = tool("pay", parameter("to", source=ParameterSource.CUSTOMER), consequential=True)
        session = Session(replace(BANK, tools=(pay, BALANCE)))
        emitted = await session.say(
            "Pay my landlord",
            then=[matches("G1"), infers("pay", {"to": inferred("Ann")}), replies("To whom?")],
        )
        assert entries(emitted, ConfirmationAskedEvent) == []
        assert decided(emitted) == [DecisionState.CANNOT_RUN]

    async def test_a_call_of_two_guidelines_is_asked_about_once_for_both(self) -> None:
        spec = agent(
            guideline("a", "pays", "pay", tools=("pay",)),
            guideline("b", "owes", "pay", tools=("pay",)),
            tools=[PAY],
        )
        session = Session(spec)
        call = {"to": said("Ann"), "amount": said(50)}
        emitted = await session.say(
            "Pay 50 to Ann", then=[matches("G1", "G2"), infers("pay", call, call), replies("?")]
        )
        (event,) = entries(emitted, ConfirmationAskedEvent)
        assert event.guidelines == ("a", "b")
        await session.say("yes", then=[reads("confirmed"), replies("Paid.")])
        assert session.paid == [TO_ANN]

    async def test_pending_calls_count_among_the_most_that_a_turn_may_make(self) -> None:
        session = Session(limits=Limits(likely_tools=0, max_calls=2))
        await session.asked_to_pay()
        calls = [{"to": said("Ann"), "amount": said(n)} for n in (1, 2, 3)]
        emitted = await session.say(
            "And 1, 2, 3 to Ann",
            then=[reads("unanswered"), matches("G1"), infers("pay", *calls), replies("?")],
        )
        assert decided(emitted) == [
            DecisionState.AWAITING_CONFIRMATION,
            DecisionState.CANNOT_RUN,
            DecisionState.CANNOT_RUN,
        ]


class TestConfirmed:
    async def test_exactly_the_stored_arguments_run_without_inference(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        emitted = await session.say(
            "yes please", then=[reads("confirmed"), matches(), replies("Paid.")]
        )
        assert session.paid == [TO_ANN]
        assert answers(emitted) == {call: Answer.CONFIRMED}
        assert entries(emitted, ToolCall)[-1].uid == call
        assert session.model.questions()[:1] == ["ReadConfirmation pay"]

    async def test_the_record_shows_guideline_decision_and_call(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        emitted = await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        match = matched(emitted, "pay")
        assert (match.state, match.because) == (
            MatchState.MATCHED,
            "The customer confirmed the call that it asked for.",
        )
        (decision,) = entries(emitted, ToolDecision)
        asked = next(c for c in entries(emitted, ModelCall) if c.question == "ReadConfirmation")
        assert (decision.guideline, decision.call, decision.model_call) == ("pay", call, asked.uid)
        assert {a.name: a.source.value for a in decision.arguments} == {
            "to": "customer",
            "amount": "customer",
            "currency": "customer",
        }
        assert all(argument.verified for argument in decision.arguments)
        order = [
            type(item)
            for item in emitted
            if isinstance(item, GuidelineMatch | ToolDecision | ToolCall)
        ]
        assert order[:3] == [GuidelineMatch, ToolDecision, ToolCall]

    async def test_the_guideline_is_settled_and_the_others_are_judged(self) -> None:
        session = Session()
        await session.asked_to_pay()
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        question = session.model.requests[1].question
        assert [g.uid for g in question.guidelines] == ["balance"]  # type: ignore[union-attr]

    async def test_the_result_is_seen_by_guidelines_and_reply(self) -> None:
        session = Session()
        await session.asked_to_pay()
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        for request in session.model.requests[1:]:
            assert '"paid": 50' in request.messages[-1].content

    async def test_a_default_runs_as_it_was_confirmed_though_the_tool_has_another_since(
        self,
    ) -> None:
        session = Session()
        await session.asked_to_pay()
        dollars = replace(CURRENCY, default="USD")
        pay = replace(PAY, parameters=(*PAY.parameters[:2], dollars, PAY.parameters[3]))
        session.spec = replace(BANK, tools=(pay, BALANCE))
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        assert session.paid == [TO_ANN]

    async def test_what_else_the_message_wants_is_seen_to_in_the_same_turn(self) -> None:
        session = Session()
        await session.asked_to_pay()
        emitted = await session.say(
            "yes, and what is the balance of account 7?",
            then=[
                reads("confirmed", also="what is the balance of account 7?"),
                matches("G2"),
                infers("balance", {"account": said("7")}),
                replies("Paid, and it is 7."),
            ],
        )
        assert [name for name, _arguments in session.tools.called] == ["pay", "balance"]
        # The matcher said no to the first guideline; the call ran under it, so it holds for the reply.
        assert matched(emitted, "pay").state is MatchState.MATCHED
        assert entries(emitted, BriefingEvent)[0].guidelines == ("pay", "balance")

    async def test_a_further_call_of_the_same_tool_awaits_a_word_of_its_own(self) -> None:
        session = Session()
        await session.asked_to_pay()
        emitted = await session.say(
            "yes, and 30 to Bob",
            then=[
                reads("confirmed", also="30 to Bob"),
                matches("G1"),
                infers("pay", *BOTH),
                replies("And Bob?"),
            ],
        )
        assert session.paid == [TO_ANN]
        assert [e.arguments for e in entries(emitted, ConfirmationAskedEvent)] == [TO_BOB]
        assert decided(emitted) == [
            DecisionState.NEEDS_TO_RUN,
            DecisionState.DATA_ALREADY_IN_CONTEXT,
            DecisionState.AWAITING_CONFIRMATION,
        ]

    async def test_it_never_runs_a_second_time(self) -> None:
        session = Session()
        await session.asked_to_pay()
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        emitted = await session.say("yes", then=[matches(), replies("It is paid.")])
        assert session.paid == [TO_ANN]
        assert answers(emitted) == {}

    async def test_a_failed_call_is_not_tried_again(self) -> None:
        session = Session()

        def fails(_arguments: Any, _context: Any) -> None:
            raise ValueError("no money")

        session.tools.functions["pay"] = fails
        await session.asked_to_pay()
        emitted = await session.say("yes", then=[reads("confirmed"), matches(), replies("Sorry.")])
        assert entries(emitted, ToolCall)[-1].state is CallState.FAILED
        await session.say("yes", then=[matches(), replies("Sorry.")])
        assert len(session.paid) == 1


class TestDeclinedAndChanged:
    async def test_a_declined_call_is_dropped(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        emitted = await session.say("no", then=[reads("declined"), matches(), replies("Fine.")])
        assert session.paid == []
        assert answers(emitted) == {call: Answer.DECLINED}
        assert matched(emitted, "pay").state is MatchState.NOT_MATCHED
        await session.say("yes", then=[matches(), replies("Hm?")])
        assert session.paid == []

    async def test_the_same_call_is_not_asked_about_again_in_the_turn_that_declined_it(
        self,
    ) -> None:
        session = Session()
        await session.asked_to_pay()
        emitted = await session.say(
            "no, what is this?",
            then=[
                reads("declined", also="what is this?"),
                matches("G1"),
                infers("pay", {"to": said("Ann"), "amount": said(50)}),
                replies("Fine."),
            ],
        )
        assert entries(emitted, ConfirmationAskedEvent) == []
        assert decided(emitted) == [DecisionState.NOT_NEEDED]

    async def test_a_declined_call_may_be_asked_for_anew_later(self) -> None:
        session = Session()
        (first,) = await session.asked_to_pay()
        await session.say("no", then=[reads("declined"), matches(), replies("Fine.")])
        (second,) = await session.asked_to_pay(text="Do pay 50 to Ann after all")
        assert first != second
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        assert session.paid == [TO_ANN]

    async def test_a_changed_call_is_dropped_and_inferred_anew(self) -> None:
        session = Session()
        (first,) = await session.asked_to_pay()
        emitted = await session.say(
            "make it 400",
            then=[
                reads("changed"),
                matches(),
                infers("pay", {"to": said("Ann"), "amount": said(400)}),
                replies("400 then?"),
            ],
        )
        assert session.paid == []
        assert answers(emitted) == {first: Answer.CHANGED}
        match = matched(emitted, "pay")
        assert match.because == "The customer changed a call that awaited confirmation."
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        assert session.paid == [TO_ANN | {"amount": 400}]

    async def test_of_two_pending_calls_one_may_run_and_the_other_be_changed(self) -> None:
        session = Session()
        await session.asked_to_pay(*BOTH, text="50 to Ann and 30 to Bob")
        emitted = await session.say(
            "yes, but 40 for Bob",
            then=[
                reads("confirmed", "changed"),
                matches(),
                infers("pay", {"to": said("Bob"), "amount": said(40)}),
                replies("40 for Bob?"),
            ],
        )
        assert session.paid == [TO_ANN]
        assert [e.arguments["amount"] for e in entries(emitted, ConfirmationAskedEvent)] == [40]

    async def test_a_yes_to_the_first_leaves_the_second_waiting(self) -> None:
        session = Session()
        first, second = await session.asked_to_pay(*BOTH, text="50 to Ann and 30 to Bob")
        emitted = await session.say(
            "the first one", then=[reads("confirmed", "unanswered"), matches(), replies("And Bob?")]
        )
        assert (session.paid, answers(emitted)) == ([TO_ANN], {first: Answer.CONFIRMED})
        emitted = await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        assert (session.paid, answers(emitted)) == ([TO_ANN, TO_BOB], {second: Answer.CONFIRMED})

    async def test_a_yes_to_both_runs_both(self) -> None:
        session = Session()
        await session.asked_to_pay(*BOTH, text="50 to Ann and 30 to Bob")
        await session.say(
            "both", then=[reads("confirmed", "confirmed"), matches(), replies("Paid.")]
        )
        assert session.paid == [TO_ANN, TO_BOB]


class TestUnanswered:
    async def test_another_subject_leaves_it_waiting(self) -> None:
        session = Session()
        await session.asked_to_pay()
        await session.say("Nice weather", then=[reads("unanswered"), matches(), replies("Yes.")])
        assert session.paid == []
        await session.say("ok, pay", then=[reads("confirmed"), matches(), replies("Paid.")])
        assert session.paid == [TO_ANN]

    async def test_the_same_call_inferred_again_is_not_asked_about_twice(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        emitted = await session.say(
            "What was it again?",
            then=[
                reads("unanswered"),
                matches("G1"),
                infers(
                    "pay", {"to": said("Ann"), "amount": said(50), "currency": said("EUR", "again")}
                ),
                replies("50 to Ann. Shall I?"),
            ],
        )
        assert entries(emitted, ConfirmationAskedEvent) == []
        (decision,) = entries(emitted, ToolDecision)
        assert (decision.state, decision.call) == (DecisionState.AWAITING_CONFIRMATION, call)

    @pytest.mark.parametrize(
        "given",
        [
            [],
            [{"call": "C9", "quote": "yes?", "other": "", "answer": "confirmed"}],
            [
                {"call": "C1", "quote": "yes?", "other": "", "answer": "confirmed"},
                {"call": "C1", "quote": "yes?", "other": "", "answer": "declined"},
            ],
            [{"call": "C1", "quote": "", "other": "", "answer": "confirmed"}],
            [{"call": "C1", "quote": "yes please", "other": "", "answer": "confirmed"}],
        ],
        ids=["nothing", "another call", "both ways", "without words", "words that were not said"],
    )
    async def test_an_answer_that_does_not_say_confirms_nothing(self, given: list[Any]) -> None:
        session = Session()
        await session.asked_to_pay()
        odd = Expected(question="ReadConfirmation", answer={"answers": given, "also": ""})
        emitted = await session.say("yes?", then=[odd, matches(), replies("Sorry?")])
        assert (session.paid, answers(emitted)) == ([], {})

    async def test_a_call_expires_after_some_turns(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        for _ in range(5):
            await session.say("Hm", then=[reads("unanswered"), matches(), replies("Well?")])
        emitted = await session.say("yes", then=[matches(), replies("Too late.")])
        assert (session.paid, answers(emitted)) == ([], {call: Answer.EXPIRED})
        assert entries(emitted, ConfirmationAnsweredEvent)[0].source is Source.SYSTEM

    async def test_a_call_expires_after_some_time(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        long_ago = datetime.now(UTC) - timedelta(minutes=31)
        session.history = [
            replace(e, event=replace(e.event, asked_at=long_ago))
            if isinstance(e.event, ConfirmationAskedEvent)
            else e
            for e in session.history
        ]
        emitted = await session.say("yes", then=[matches(), replies("Too late.")])
        assert (session.paid, answers(emitted)) == ([], {call: Answer.EXPIRED})


class TestWhatChangedMeanwhile:
    @pytest.mark.parametrize(
        "spec",
        [
            replace(BANK, tools=(BALANCE,)),
            replace(BANK, guidelines=BANK.guidelines[1:]),
            replace(BANK, guidelines=(replace(BANK.guidelines[0], enabled=False),)),
            replace(BANK, guidelines=(replace(BANK.guidelines[0], tools=()),)),
        ],
        ids=["tool gone", "guideline gone", "guideline off", "guideline without the tool"],
    )
    @pytest.mark.parametrize("button", [True, False])
    async def test_a_call_without_its_tool_or_guideline_never_runs(
        self, spec: Agent, button: bool
    ) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        session.spec = spec
        given: Event | str = pressed(call) if button else "yes"
        judged = [matches()] if any(g.enabled for g in spec.guidelines) else []
        emitted = await session.say(given, then=[*judged, replies("Sorry.")])
        assert session.paid == []
        last = entries(emitted, ConfirmationAnsweredEvent)[-1]
        assert (last.answer, "no longer has" in last.because) == (Answer.EXPIRED, True)

    @pytest.mark.parametrize("button", [True, False])
    async def test_stored_arguments_that_the_tool_no_longer_takes_are_inferred_anew(
        self, button: bool
    ) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        few = ToolParameter(name="amount", schema={"type": "number", "maximum": 20})
        pay = replace(PAY, parameters=(PAY.parameters[0], few, *PAY.parameters[2:]))
        session.spec = replace(BANK, tools=(pay, BALANCE))
        again = infers("pay", {"to": said("Ann"), "amount": said(50)})
        given: Event | str = pressed(call) if button else "yes"
        read = [] if button else [reads("confirmed")]
        emitted = await session.say(given, then=[*read, matches(), again, replies("At most 20.")])
        assert session.paid == []
        last = entries(emitted, ConfirmationAnsweredEvent)[-1]
        assert (last.answer, "at most 20" in last.because) == (Answer.CHANGED, True)
        assert decided(emitted) == [DecisionState.CANNOT_RUN]


def pressed(call: str, answer: Answer = Answer.CONFIRMED) -> ConfirmationAnsweredEvent:
    return ConfirmationAnsweredEvent(call=call, tool="pay", answer=answer)


class TestButtons:
    async def test_a_button_confirms_without_any_question(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        emitted = await session.say(pressed(call), then=[matches(), replies("Paid.")])
        assert session.paid == [TO_ANN]
        assert entries(emitted, ToolCall)[-1].uid == call

    async def test_a_button_declines(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        await session.say(pressed(call, Answer.DECLINED), then=[matches(), replies("Fine.")])
        assert session.paid == []

    async def test_a_button_for_one_of_two_leaves_the_other_waiting(self) -> None:
        session = Session()
        _first, second = await session.asked_to_pay(*BOTH, text="50 to Ann and 30 to Bob")
        await session.say(pressed(second), then=[matches(), replies("And Ann?")])
        assert session.paid == [TO_BOB]

    async def test_a_message_beside_the_button_is_seen_to_as_well(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        emitted = await session.say(
            pressed(call),
            "And the balance of 7?",
            then=[
                matches("G2"),
                infers("balance", {"account": said("7")}),
                replies("Paid, and it is 7."),
            ],
        )
        assert session.paid == [TO_ANN]
        assert matched(emitted, "pay").state is MatchState.MATCHED

    async def test_a_button_pressed_twice_or_after_a_yes_runs_nothing_again(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
        await session.say(pressed(call), then=[matches(), replies("It is paid.")])
        await session.say(pressed(call), pressed(call), then=[matches(), replies("It is paid.")])
        assert session.paid == [TO_ANN]

    async def test_a_button_for_a_call_that_nobody_asked_about_runs_nothing(self) -> None:
        session = Session()
        emitted = await session.say(pressed("made-up"), then=[matches(), replies("Hm?")])
        assert session.tools.called == []
        assert entries(emitted, ToolDecision) == []


async def interrupted(
    session: Session, state: TurnState, kit: Kit, stop_at: Any
) -> tuple[list[Emission], TurnState]:
    """A turn whose worker dies as soon as `stop_at(item)` is on record, and the state that takes it up again."""
    on_record: list[Emission] = []
    turn = run_turn(state, kit)
    async for item in turn:
        on_record.append(item)
        if stop_at(item):
            break
    await turn.aclose()  # type: ignore[attr-defined]
    session.store(on_record)
    resumed = session.state()
    reached = [c for c in entries(on_record, Checkpoint) if c.step is not Step.STOPPED]
    if reached:  # without any point reached the studio starts afresh
        resumed.checkpoint = reached[-1]
        resumed.recall(entries(on_record, TRAIL))  # type: ignore[arg-type]
    return on_record, resumed


class TestCrashes:
    async def test_after_the_answer_is_stored_the_call_runs_without_asking_again(self) -> None:
        session = Session()
        await session.asked_to_pay()
        _seen, resumed = await interrupted(
            session,
            session.begin("yes"),
            session.kit(reads("confirmed")),
            lambda item: isinstance(item, ConfirmationAnsweredEvent),
        )
        assert session.paid == []
        kit = session.kit(matches(), replies("Paid."))
        await play(resumed, kit)
        session.model.assert_used_up()
        assert session.paid == [TO_ANN]

    async def test_after_the_start_is_on_record_the_outcome_is_unknown_and_nothing_runs(
        self,
    ) -> None:
        session = Session()
        await session.asked_to_pay()
        _seen, resumed = await interrupted(
            session,
            session.begin("yes"),
            session.kit(reads("confirmed")),
            lambda item: isinstance(item, ToolCall) and item.state is CallState.STARTED,
        )
        session.tools.called.clear()
        emitted = await play(resumed, session.kit(matches(), replies("Please ask a person.")))
        assert session.tools.called == []
        assert entries(emitted, ToolCall)[-1].state is CallState.UNKNOWN
        (finished,) = entries(emitted, ToolFinishedEvent)
        assert finished.error.kind is ToolErrorKind.UNKNOWN_OUTCOME

    async def test_a_call_begun_in_a_turn_that_was_given_up_is_told_as_unknown_once(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        session.begin(
            "yes", pressed(call), ToolStartedEvent(call=call, tool="pay", arguments=TO_ANN)
        )
        emitted = await session.say("Well?", then=[matches(), replies("A person has to look.")])
        (finished,) = entries(emitted, ToolFinishedEvent)
        assert (finished.call, finished.error.kind) == (call, ToolErrorKind.UNKNOWN_OUTCOME)
        emitted = await session.say("And now?", then=[matches(), replies("Still.")])
        assert (entries(emitted, ToolFinishedEvent), session.paid) == ([], [])

    async def test_what_may_have_been_done_is_not_done_again_in_the_same_breath(self) -> None:
        pay = replace(PAY, confirm=Confirm.INFERRED)
        session = Session(replace(BANK, tools=(pay, BALANCE)))
        session.begin(
            "Pay 50 to Ann",
            ToolStartedEvent(call="c", tool="pay", arguments={"to": "Ann", "amount": 50}),
        )
        emitted = await session.say(
            "Did it work? Pay 50 to Ann!",
            then=[
                matches("G1"),
                infers("pay", {"to": said("Ann"), "amount": said(50)}),
                replies("A person has to look."),
            ],
        )
        assert session.paid == []
        assert decided(emitted) == [DecisionState.CANNOT_RUN]

    async def test_a_yes_whose_turn_ended_before_the_call_began_still_stands(self) -> None:
        """ "yes", and at once "thanks": the second message supersedes the turn of the first."""
        session = Session()
        (call,) = await session.asked_to_pay()
        session.begin("yes", replace(pressed(call), because="Says yes."))
        emitted = await session.say(
            "thanks", then=[reads("unanswered"), matches(), replies("Paid.")]
        )
        assert session.paid == [TO_ANN]
        assert answers(emitted) == {call: Answer.CONFIRMED}

    async def test_a_yes_taken_back_before_the_call_began_runs_nothing(self) -> None:
        session = Session()
        (call,) = await session.asked_to_pay()
        session.begin("yes", replace(pressed(call), because="Says yes."))
        await session.say("no, stop!", then=[reads("declined"), matches(), replies("Stopped.")])
        assert session.paid == []

    async def test_a_reading_that_was_cut_short_confirms_nothing_more_afterwards(self) -> None:
        """ "The first one" must not become a yes to the second, asked about alone."""
        session = Session()
        await session.asked_to_pay(*BOTH, text="50 to Ann and 30 to Bob")
        _seen, resumed = await interrupted(
            session,
            session.begin("both"),
            session.kit(reads("confirmed", "confirmed")),
            lambda item: isinstance(item, ConfirmationAnsweredEvent),
        )
        await play(resumed, session.kit(matches(), replies("And Bob?")))
        session.model.assert_used_up()
        assert session.paid == [TO_ANN]

    async def test_a_question_decided_on_but_not_asked_is_asked_when_the_turn_goes_on(self) -> None:
        session = Session()
        seen, resumed = await interrupted(
            session,
            session.begin("Pay 50 to Ann"),
            session.kit(matches("G1"), infers("pay", {"to": said("Ann"), "amount": said(50)})),
            lambda item: isinstance(item, ToolDecision),
        )
        emitted = await play(resumed, session.kit(replies("Shall I?")))
        (event,) = entries(emitted, ConfirmationAskedEvent)
        assert event.call == entries(seen, ToolDecision)[0].call
        assert event.arguments == TO_ANN

    @pytest.mark.parametrize("cut", range(1, 26))
    async def test_wherever_the_worker_dies_it_is_paid_at_most_once(self, cut: int) -> None:
        session = Session()
        await session.asked_to_pay(*BOTH, text="50 to Ann and 30 to Bob")
        count = iter(range(1, 1000))
        _seen, resumed = await interrupted(
            session,
            session.begin("both"),
            session.kit(reads("confirmed", "confirmed"), matches(), replies("Paid.")),
            lambda _item: next(count) == cut,
        )
        again = [reads("confirmed", "confirmed"), matches(), replies("Paid.")]
        emitted = await play(resumed, session.kit(*again))
        session.store(emitted)
        assert len(session.paid) == len({str(arguments) for arguments in session.paid})
        told = [e.event.call for e in session.history if isinstance(e.event, ToolFinishedEvent)]
        assert len(told) == len(set(told))
        before = len(session.paid)
        state = session.begin("yes")
        await play(state, session.kit(reads("confirmed", "confirmed"), matches(), replies("Done.")))
        assert {str(a) for a in session.paid[before:]}.isdisjoint(
            {str(a) for a in session.paid[:before]}
        )


async def test_stopping_the_turn_while_the_confirmed_call_runs_awaits_and_keeps_it() -> None:
    session = Session()
    await session.asked_to_pay()
    started = asyncio.Event()

    async def slow(arguments: Any) -> Any:
        started.set()
        await asyncio.sleep(0.05)
        return arguments

    session.tools.functions["pay"] = lambda a, _c: slow(a)
    kit = session.kit(reads("confirmed"))

    async def stop_it() -> None:
        await started.wait()
        kit.stop.set()

    stopper = asyncio.create_task(stop_it())
    emitted = await play(session.begin("yes"), kit)
    await stopper
    session.store(emitted)
    assert entries(emitted, ToolCall)[-1].state is CallState.DONE
    assert emitted[-1] == Checkpoint(step=Step.STOPPED, iteration=0)
    await session.say("thanks", then=[matches(), replies("Paid.")])
    assert len(session.paid) == 1


async def test_without_pending_calls_no_question_is_asked() -> None:
    session = Session()
    await session.say("Hello", then=[matches(), replies("Hello!")])
    assert session.model.questions()[0].startswith("MatchGuidelines")


async def test_the_question_shows_what_awaits_after_the_conversation_and_no_hidden_argument() -> (
    None
):
    session = Session()
    given = {"to": said("Ann"), "amount": said(50), "branch": inferred("secret-7")}
    await session.asked_to_pay(given)
    await session.say("yes", then=[reads("confirmed"), matches(), replies("Paid.")])
    last = session.model.requests[0].messages[-1].content.splitlines()[-1]
    assert last == (
        '{"id": "C1", "tool": "pay", "does": "Does pay.", '
        '"details": {"amount": 50, "currency": "EUR", "recipient": "Ann"}}'
    )
