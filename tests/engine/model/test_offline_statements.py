"""What the offline model can tell of a reply by its words: promises above all, and what merely looks like one."""

import time

import pytest
from jsonschema import Draft202012Validator

from engine import prompts
from engine.events import Event
from engine.model.base import JudgeStatement, Situation
from engine.model.offline.statements import Does, read
from tests.engine.agents import history
from tests.engine.model.offline_talk import model
from tests.engine.model.test_offline import AGENT, STRANGE


def judged(reply: str, statement: str, *said: Event | str) -> tuple[bool, str]:
    past = history(*said)
    situation = Situation(agent=AGENT, history=past, turn=past[-1].turn if past else 1)
    question = JudgeStatement(situation=situation, reply=reply, statement=statement)
    answer = model().answer(question)
    Draft202012Validator(prompts.build(question).schema).validate(answer)
    return answer["holds"], answer["because"]


def holds(reply: str, statement: str, *said: Event | str) -> bool:
    return judged(reply, statement, *said)[0]


@pytest.mark.parametrize(
    ("reply", "promised"),
    [
        ("We will refund you within five days.", "a refund"),
        ("I've just refunded the 20 euros.", "a refund"),
        ("Your refund is being processed.", "a refund"),
        ("No problem, you'll get your money back.", "a refund"),
        ("You can expect your refund on Friday.", "a refund"),
        ("I see the damage, and of course you receive a replacement.", "a replacement"),
        ("Thanks for waiting. A new boiler is on its way to you.", "a boiler"),
        ("Our gardener is coming tomorrow to cut the hedge.", "to cut the hedge"),
        (
            "Your ticket is booked. It will be delivered by Monday, guaranteed.",
            "delivery by Monday",
        ),
        ("I have cancelled your subscription.", "to cancel the subscription"),
    ],
)
def test_a_commitment_is_a_promise(reply: str, promised: str) -> None:
    assert holds(reply, f"The reply promises {promised}.")
    assert not holds(reply, f"The reply does not promise {promised}.")


@pytest.mark.parametrize(
    ("reply", "promised"),
    [
        ("I will check whether a refund is possible.", "a refund"),
        ("Let me ask a colleague about the refund.", "a refund"),
        ("If it is broken, we will refund you.", "a refund"),
        ("You may be entitled to a refund.", "a refund"),
        ("You could get a refund. We will see.", "a refund"),
        ("Would you like a refund?", "a refund"),
        ("Shall I refund you? I will do it at once.", "a refund"),
        ("Unfortunately we cannot refund you.", "a refund"),
        ("You will not receive a refund.", "a refund"),
        ("Refunds usually take five days. We will call you tomorrow.", "a refund"),
        ("We will send you the form.", "a refund"),
        ("It will be delivered by Tuesday.", "delivery by Monday"),
        ("You will get 20 euros.", "30 euros"),
    ],
)
def test_an_offer_a_condition_or_a_check_is_none(reply: str, promised: str) -> None:
    assert not holds(reply, f"The reply promises {promised}.")
    assert holds(reply, f"The reply does not promise {promised}.")


@pytest.mark.parametrize(
    ("reply", "statement", "expected"),
    [
        ("The bakery opens at 8.", "The reply says that the bakery opens at 8.", True),
        ("The bakery opens at 9.", "The reply says that the bakery opens at 8.", False),
        ("The bakery does not open at 8.", "The reply says that the bakery opens at 8.", False),
        ("We don't repair clocks.", "The reply says that clocks are not repaired.", True),
        ("Does the bakery open at 8?", "It says that the bakery opens at 8.", False),
        ("Dogs are welcome, but smoking is not allowed.", "It mentions that dogs are welcome.", True),
        ("All calls are recorded.", "The reply says “calls are recorded”.", True),
        ("All calls are kept.", "The reply says “calls are recorded”.", False),
        ("The oak table is 90 euros.", "The reply does not mention prices of chairs.", True),
        ("The oak chair costs 90 euros.", "The agent never names the cost of a chair.", False),
        ("Which size do you need?", "The reply asks for the size.", True),
        ("Please tell me your account number.", "The agent asks for the account number.", True),
        ("Your account number is 5.", "The reply asks for the account number.", False),
        ("I am so sorry about this.", "The reply apologises.", True),
        ("Here is your key.", "The reply apologises for the delay.", False),
        ("Thank you for your patience!", "The reply thanks the customer.", True),
        ("Good morning!", "The reply greets the customer.", True),
        ("Your room is 5.", "The reply greets the customer.", False),
        ("I can book a massage for you.", "The reply offers a massage.", True),
        ("The massage was yesterday.", "The reply offers a massage.", False),
        ("We are unable to move the appointment.", "It refuses to move the appointment.", True),
        ("The appointment has been moved.", "It refuses to move the appointment.", False),
    ],
)  # fmt: skip
def test_what_words_show_is_told(reply: str, statement: str, expected: bool) -> None:
    assert holds(reply, statement) is expected


def test_what_the_customer_named_need_not_be_said_again() -> None:
    statement = "The reply says that the concert in the park is free."
    assert holds("It is free.", statement, "What does the concert in the park cost?")
    assert not holds("It is free.", statement, "What do you recommend?")
    assert not holds("It is long.", statement, "What does the concert in the park cost?")


@pytest.mark.parametrize("statement", ["The reply is polite.", "The reply is not rude.", "", "?!"])
def test_what_words_cannot_show_does_not_hold_and_says_so(statement: str) -> None:
    verdict, because = judged("Have a nice day.", statement)
    assert not verdict
    assert "cannot tell" in because


def test_the_reason_quotes_the_sentence_that_counts() -> None:
    reply = "Thank you. We will refund you. Goodbye."
    assert judged(reply, "The reply promises a refund.")[1] == (
        "It promises so: “We will refund you.”"
    )
    assert judged("No refunds here.", "The reply promises a refund.")[1] == (
        "It speaks of it otherwise: “No refunds here.”"
    )


@pytest.mark.parametrize(
    ("text", "does", "subject", "negated"),
    [
        ("The reply promises a discount.", Does.PROMISES, "a discount", False),
        ("It doesn't promise a discount", Does.PROMISES, "a discount", True),
        ("The agent must not ask for a PIN.", Does.ASKS, "for a PIN", True),
        ("The answer never mentions rivals!", Does.SAYS, "rivals", True),
        ("The parcel is late.", Does.SAYS, "The parcel is late", False),
    ],
)
def test_a_statement_is_taken_apart(text: str, does: Does, subject: str, negated: bool) -> None:
    statement = read(text)
    assert (statement.does, statement.subject, statement.negated) == (does, subject, negated)


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_strange_texts_are_judged_in_good_time(text: str) -> None:
    started = time.perf_counter()
    judged(text, "The reply promises a refund.")
    judged("We will see.", text or "The reply says.")
    assert time.perf_counter() - started < 5  # a guard against running away, not a measurement
