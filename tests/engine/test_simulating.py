"""A customer played by a model: what they see, what they say, when it ends, and whether they kept to their brief."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from engine import prompts
from engine.brief_faults import Does
from engine.customer_brief import CustomerBrief
from engine.errors import ModelError, ModelErrorKind, ToolError, ToolErrorKind
from engine.events import (
    Answer,
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    Mode,
    ModeEvent,
    Source,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.model.base import JudgeCustomer, PlayCustomer, Situation
from engine.model.retrying import RetryingModel
from engine.prompts.customer_transcript import customer_transcript
from engine.simulating import (
    EMPTY,
    KEPT,
    REPEATED,
    Budget,
    Ending,
    Said,
    ended_by,
    judge_customer,
    next_message,
)
from engine.testing import Expected, ScriptedModel, keeps_to_brief, plays
from engine.trail import ModelCall
from engine.turn_record import TurnRecord
from tests.engine.agents import agent, history, said_by
from tests.engine.sessions import AnsweringModel

BRIEF = CustomerBrief(
    persona="a reader in a hurry, card 4711",
    goal="renew the loan of Emma",
    stop="the agent has named the new date",
)


def situation(*events: Event | str, **variables: Any) -> Situation:
    past = history(*events)
    turn = past[-1].turn if past else 1
    return Situation(agent=agent(), history=past, turn=turn, variables=variables)


def by_agent(text: str) -> Event:
    return said_by(Source.AGENT, text)


class TestWhatTheCustomerSees:
    def test_messages_of_everybody_and_who_answers(self) -> None:
        now = situation(
            "Renew Emma",
            by_agent("Which card?"),
            ModeEvent(mode=Mode.MANUAL),
            said_by(Source.OPERATOR, "I take over."),
        )
        assert [json.loads(line) for line in seen(now)] == [
            {"customer": "Renew Emma"},
            {"agent": "Which card?"},
            {"answered from here on by": "a human operator"},
            {"human operator": "I take over."},
        ]

    def test_nothing_of_tools_and_of_what_the_agent_was_told(self) -> None:
        now = situation(
            "Renew Emma",
            BriefingEvent(content={"guidelines": [{"then": "never admit it"}]}),
            ToolStartedEvent(call="c", tool="find_loan", arguments={"title": "Emma"}),
            ToolFinishedEvent(call="c", tool="find_loan", arguments={}, data={"secret": 1}),
            ToolFinishedEvent(
                call="d",
                tool="renew",
                arguments={},
                error=ToolError(kind=ToolErrorKind.EXCEPTION, public="Locked.", detail="x"),
            ),
            ConfirmationAnsweredEvent(call="c", tool="renew", answer=Answer.DECLINED),
            by_agent("It cannot be renewed."),
        )
        assert len(seen(now)) == 2

    def test_what_awaits_their_word_by_the_names_that_customers_read(self) -> None:
        asked = ConfirmationAskedEvent(
            call="c",
            tool="renew_loan",
            arguments={"title": "Emma", "internal_fee_code": "X9"},
            guidelines=("g",),
            labels={"title": "book"},
            asked_at=datetime(2026, 1, 5, tzinfo=UTC),
        )
        (_said, line) = seen(situation("Renew Emma", asked))
        assert json.loads(line) == {
            "awaits the customer's word": "renew loan",
            "arguments": {"book": "Emma"},
        }


def seen(now: Situation) -> list[str]:
    return "".join(customer_transcript(now)).splitlines()[1:]


class TestTheQuestions:
    def test_the_customer_is_told_their_part_and_what_is_known_of_them(self) -> None:
        question = PlayCustomer(
            situation=situation("Hi", by_agent("Card?"), tier="gold"), brief=BRIEF
        )
        asked = prompts.build(question).messages[-1].content
        lines = asked.splitlines()
        assert json.loads(lines[lines.index("Your part:") + 1]) == {
            "persona": BRIEF.persona,
            "goal": BRIEF.goal,
            "stop": BRIEF.stop,
            "known of you": {"tier": "gold"},
        }
        assert json.loads(lines[-2]) == {"said last": "Card?"}

    def test_a_conversation_that_has_not_begun_says_so(self) -> None:
        begun = [
            "Nothing has been said yet." in prompts.build(question).messages[-1].content
            for question in (
                PlayCustomer(situation=situation(), brief=BRIEF),
                PlayCustomer(situation=situation("Hi"), brief=BRIEF),
            )
        ]
        assert begun == [True, False]

    def test_the_judge_hears_how_the_customer_ended_it(self) -> None:
        now = situation("Hi", by_agent("Done."))
        told = [
            json.loads(prompts.build(question).messages[-1].content.splitlines()[-2])
            for question in (
                JudgeCustomer(situation=now, brief=BRIEF, ended="It is renewed."),
                JudgeCustomer(situation=now, brief=BRIEF),
            )
        ]
        assert told == [
            {"the customer ended it": "It is renewed."},
            {"ended by": "somebody else"},
        ]

    async def test_each_question_begins_with_the_whole_conversation_of_the_one_before(self) -> None:
        model = AnsweringModel(lambda _r: {"because": "", "done": False, "message": "More?"})
        said: list[Event | str] = []
        for number in range(4):
            await next_message(model, situation(*said), BRIEF)
            said += [f"Question {number}", by_agent(f"Answer {number}")]
        for before, after in pairwise(model.requests):
            assert after.messages[:-1] == before.messages[:-1]
            spoken = "".join(before.messages[-1].parts[:-1])
            assert after.messages[-1].content.startswith(spoken)


class TestTheNextMessage:
    async def test_it_is_what_the_customer_says_with_the_reason_and_the_call(self) -> None:
        model = ScriptedModel(plays(" Card 4711. ", because="It asks for the card."))
        said = await next_message(model, situation("Renew Emma", by_agent("Which card?")), BRIEF)
        assert (said.text, said.done, said.because) == (
            "Card 4711.",
            False,
            "It asks for the card.",
        )
        (call,) = said.calls
        assert (call.question, call.error, call.used) == ("PlayCustomer", "", True)
        model.assert_used_up()

    async def test_a_customer_who_is_done_says_nothing_more(self) -> None:
        answer = {"because": "The date is named.", "done": True, "message": "Thanks, bye!"}
        model = ScriptedModel(Expected(question="PlayCustomer", answer=answer))
        said = await next_message(model, situation("Hi", by_agent("Until May.")), BRIEF)
        assert (said.text, said.done, said.because) == ("", True, "The date is named.")

    async def test_an_empty_message_ends_it(self) -> None:
        answer = {"because": "I wait.", "done": False, "message": " \n"}
        model = ScriptedModel(Expected(question="PlayCustomer", answer=answer))
        said = await next_message(model, situation("Hi", by_agent("Yes?")), BRIEF)
        assert (said.text, said.done, said.because) == ("", True, EMPTY)

    async def test_the_same_for_the_third_time_ends_it_and_for_the_second_does_not(self) -> None:
        model = ScriptedModel(plays("Renew it"), plays("Renew it"))
        no = by_agent("No.")
        twice = await next_message(model, situation("Hi", no, "Renew it", no), BRIEF)
        assert (twice.text, twice.done) == ("Renew it", False)
        thrice = await next_message(model, situation("Renew it", no, "Renew it", no), BRIEF)
        assert (thrice.text, thrice.done, thrice.because) == ("", True, REPEATED)

    async def test_failed_attempts_are_told_and_their_tokens_count(self) -> None:
        answers = iter([{"nonsense": 1}, {"because": "", "done": False, "message": "Hi"}])
        inner = AnsweringModel(lambda _request: next(answers))
        model = RetryingModel(inner, attempts=2, first_pause=0)
        said = await next_message(model, situation(), BRIEF)
        assert [call.used for call in said.calls] == [False, True]
        spent = replace(
            said,
            calls=tuple(replace(c, prompt_tokens=100, completion_tokens=9) for c in said.calls),
        )
        assert spent.tokens == 218

    async def test_a_model_that_gives_up_is_an_error_of_the_run(self) -> None:
        gone = ModelError("Cannot reach it.", kind=ModelErrorKind.UNREACHABLE, retryable=False)
        model = ScriptedModel(
            Expected(question="PlayCustomer", answer=gone),
            Expected(question="JudgeCustomer", answer=gone),
        )
        with pytest.raises(ModelError, match="Cannot reach it"):
            await next_message(model, situation(), BRIEF)
        with pytest.raises(ModelError, match="Cannot reach it"):
            await judge_customer(model, situation("Hi"), BRIEF)


class TestTheJudge:
    async def test_it_says_whether_they_kept_to_the_brief_and_why(self) -> None:
        model = ScriptedModel(keeps_to_brief(Does.PLAYS_AGENT))
        done = Said(text="", done=True, because="It was renewed.")
        kept = await judge_customer(model, situation("How can I help?"), BRIEF, [done])
        why = "The customer speaks as the agent: “How can I help?”."
        assert (kept.kept, kept.because) == (False, why)
        assert [call.question for call in kept.calls] == ["JudgeCustomer"]
        (request,) = model.requests
        assert isinstance(request.question, JudgeCustomer)
        assert request.question.ended == "It was renewed."

    async def test_of_a_customer_who_did_not_end_it_no_end_is_told(self) -> None:
        model = ScriptedModel(keeps_to_brief())
        kept = await judge_customer(
            model, situation("Hi"), BRIEF, [Said(text="Hi", done=False, because="I begin.")]
        )
        assert (kept.kept, kept.because) == (True, KEPT)
        (request,) = model.requests
        assert isinstance(request.question, JudgeCustomer)
        assert request.question.ended == ""


def a_turn(number: int = 1, *events: Event, **options: Any) -> TurnRecord:
    return TurnRecord(number=number, agent=agent(), events=events, trail=(), **options)


def costing(tokens: int, *, done: bool = False) -> Said:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    call = ModelCall(
        uid="m",
        question="PlayCustomer",
        model="m",
        prompt_version="1",
        request_key="k",
        messages=(),
        schema={},
        iteration=1,
        attempt=1,
        started_at=now,
        ended_at=now,
        prompt_tokens=tokens - 1,
        completion_tokens=1,
    )
    return Said(text="" if done else "Hi", done=done, because="", calls=(call,))


class TestHowItEnds:
    def test_not_before_anything_was_said(self) -> None:
        assert ended_by([], [], Budget()) is None

    def test_by_the_customers_word(self) -> None:
        said = [costing(10), costing(10, done=True)]
        assert ended_by(said, [a_turn()], Budget()) is Ending.DONE

    def test_by_the_agents_turns(self) -> None:
        said, turns = [costing(1)] * 3, [a_turn(n) for n in (1, 2, 3)]
        assert ended_by(said, turns, Budget(turns=4)) is None
        assert ended_by(said, turns, Budget(turns=3)) is Ending.TURNS

    def test_by_the_tokens_of_the_customers_questions(self) -> None:
        said = [costing(400), costing(600)]
        assert ended_by(said, [a_turn()], Budget(tokens=1_001)) is None
        assert ended_by(said, [a_turn()], Budget(tokens=1_000)) is Ending.TOKENS

    def test_by_handing_over_and_not_by_a_person_who_takes_over_and_gives_back(self) -> None:
        by_tool = a_turn(1, ModeEvent(mode=Mode.MANUAL, tool="escalate"))
        assert ended_by([costing(1)], [by_tool], Budget()) is Ending.HANDED_OVER
        taken = a_turn(1, ModeEvent(source=Source.OPERATOR, mode=Mode.AUTO))
        assert ended_by([costing(1)], [taken], Budget()) is None

    def test_by_a_turn_that_failed_whatever_else_is_true(self) -> None:
        failed = a_turn(1, ModeEvent(mode=Mode.MANUAL), error="Cannot reach it.")
        assert ended_by([costing(99)], [failed], Budget(turns=1, tokens=1)) is Ending.FAILED
