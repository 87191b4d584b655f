"""What a model says of replies: which of them are asked about, with what, and what its answers come to."""

from dataclasses import replace

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import MessageEvent, RecordedEvent, Source
from engine.expecting import (
    JudgedExpectation,
    NoPromiseExpectation,
    OutcomeState,
    judge,
)
from engine.expecting.judging import Judged
from engine.model.base import JudgeStatement, Situation
from engine.testing import Expected, ScriptedModel, holds, scripted_kit
from engine.turn_record import TurnRecord
from tests.engine.agents import history, said_by
from tests.engine.turn_records import LIBRARY, record, replied

HELD, FAILED, UNKNOWN = OutcomeState.HELD, OutcomeState.FAILED, OutcomeState.UNKNOWN
KIND = JudgedExpectation(statement="The reply is kind.")
NO_REFUND = NoPromiseExpectation(text="a refund")
TALK = [
    record(replied("Hello."), number=1),
    record(replied("No."), number=2),
    record(replied("Bye."), number=3),
]


def past_of(turn: TurnRecord) -> Situation:
    """The session up to the end of this turn."""
    events = history(
        *(e for n in range(1, turn.number + 1) for e in (f"Question {n}?", replied(f"Reply {n}.")))
    )
    return Situation(agent=LIBRARY, history=events, turn=turn.number)


async def told(
    expectation: JudgedExpectation | NoPromiseExpectation,
    *answers: Expected,
    talk: list[TurnRecord] = TALK,
) -> tuple[Judged, list[JudgeStatement]]:
    model = ScriptedModel(*answers)
    judged = await judge(expectation, talk, scripted_kit(model), past_of)
    model.assert_used_up()
    questions = [request.question for request in model.requests]
    assert all(isinstance(question, JudgeStatement) for question in questions)
    return judged, questions  # type: ignore[return-value]


async def test_one_reply_of_which_it_holds_is_enough() -> None:
    judged, questions = await told(KIND, holds(False), holds(True, "It says “No”, kindly."))
    outcome = judged.outcome
    assert (outcome.state, outcome.turn, outcome.because) == (HELD, 2, "It says “No”, kindly.")
    assert [question.reply for question in questions] == ["Hello.", "No."]
    assert {question.statement for question in questions} == {"The reply is kind."}
    assert [call.question for call in judged.calls] == ["JudgeStatement"] * 2


async def test_where_it_holds_of_none_the_last_reason_is_told() -> None:
    no = holds(False, "It is curt.")
    judged, _questions = await told(KIND, no, no, no)
    outcome = judged.outcome
    assert (outcome.state, outcome.turn) == (FAILED, 3)
    assert outcome.because == "In none of 3 turns. Turn 3: It is curt."


async def test_only_the_turn_that_is_meant_is_asked_about() -> None:
    judged, questions = await told(replace(KIND, turn=2), holds(False, "It is curt."))
    assert (judged.outcome.state, judged.outcome.because) == (FAILED, "It is curt.")
    assert [question.reply for question in questions] == ["No."]


async def test_one_promise_is_one_too_many() -> None:
    judged, questions = await told(NO_REFUND, holds(False), holds(True, "It says so."))
    assert (judged.outcome.state, judged.outcome.turn) == (FAILED, 2)
    assert {question.statement for question in questions} == {"The reply promises a refund."}


async def test_no_promise_in_any_reply_holds() -> None:
    judged, questions = await told(NO_REFUND, holds(False), holds(False), holds(False))
    assert (judged.outcome.state, judged.outcome.turn) == (HELD, None)
    assert len(questions) == 3


async def test_the_model_sees_the_conversation_up_to_the_reply() -> None:
    _judged, (question,) = await told(replace(KIND, turn=2), holds(True))
    said = [e.event.text for e in question.situation.history if isinstance(e.event, MessageEvent)]
    assert said == ["Question 1?", "Reply 1.", "Question 2?"]


async def test_what_a_tool_said_meanwhile_is_part_of_the_conversation() -> None:
    def past(turn: TurnRecord) -> Situation:
        spoken = MessageEvent(source=Source.AGENT, text="One moment.", model="tool find_fine")
        events = (said_by(Source.CUSTOMER, "Hi"), spoken, replied("Hello."))
        found = tuple(
            RecordedEvent(offset=n, turn=1, event=e) for n, e in enumerate(events, start=1)
        )
        return Situation(agent=LIBRARY, history=found, turn=1)

    model = ScriptedModel(holds(True))
    await judge(KIND, TALK[:1], scripted_kit(model), past)
    (request,) = model.requests
    spoken = request.messages[-1].content
    assert '{"agent": "One moment."}' in spoken
    assert '{"agent": "Hello."}' not in spoken
    assert '{"reply": "Hello."}' in spoken


@pytest.mark.parametrize(("expectation", "state"), [(KIND, FAILED), (NO_REFUND, HELD)])
async def test_where_there_is_no_reply_nobody_is_asked(
    expectation: JudgedExpectation | NoPromiseExpectation, state: OutcomeState
) -> None:
    judged, _questions = await told(expectation, talk=[record(number=1)])
    assert (judged.outcome.state, judged.outcome.because) == (state, "There is no reply.")
    assert judged.calls == ()


@pytest.mark.parametrize("expectation", [KIND, NO_REFUND])
async def test_a_turn_that_failed_leaves_it_unknown(
    expectation: JudgedExpectation | NoPromiseExpectation,
) -> None:
    judged, _questions = await told(expectation, talk=[record(number=1, error="It broke.")])
    assert (judged.outcome.state, judged.outcome.because) == (UNKNOWN, "Turn 1 failed: It broke.")


@pytest.mark.parametrize(("expectation", "state"), [(KIND, FAILED), (NO_REFUND, UNKNOWN)])
async def test_of_a_turn_that_does_not_exist_nobody_is_asked(
    expectation: JudgedExpectation | NoPromiseExpectation, state: OutcomeState
) -> None:
    judged, _questions = await told(replace(expectation, turn=9))
    assert judged.outcome.state is state
    assert judged.outcome.because == "The conversation has only 3 turns."


async def test_a_model_that_gives_no_answer_leaves_it_unknown_and_its_attempts_on_record() -> None:
    busy = ModelError("Too busy.", kind=ModelErrorKind.RATE_LIMITED, retryable=True)
    failed = Expected(question="JudgeStatement", answer=busy)
    judged, questions = await told(KIND, holds(False), failed)
    outcome = judged.outcome
    assert (outcome.state, outcome.turn) == (UNKNOWN, 2)
    assert outcome.because == "The reply of turn 2 could not be judged: Too busy."
    assert len(questions) == 2
    assert [call.error for call in judged.calls] == ["", "rate_limited: Too busy."]
