"""How a simulated customer fell out of their brief: what code sees for itself, and what follows from a judge's facts.

Small models find what a customer says and what their brief says, but conclude poorly from it; so code concludes.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any

from engine.canonical import JsonObject, canonical_json
from engine.customer_brief import CustomerBrief
from engine.events import MessageEvent, Source
from engine.model.base import Situation
from engine.wording import fold, is_content, words

SAID_NOTHING = "The customer has said nothing."
_QUOTED = 100


class Does(StrEnum):
    """What one message of the customer's does, in the words of JudgeCustomer."""

    ASKS = "asks for the goal"
    ANSWERS = "answers"
    STRAYS = "asks for something else"
    PLAYS_AGENT = "speaks as the agent"


class Ended(StrEnum):
    """How the customer ended the conversation, in the words of JudgeCustomer."""

    REACHED = "goal reached"
    REFUSED = "refused"
    STOP = "stop came true"
    NO_REASON = "without reason"
    OTHERS = "not by the customer"


_REASONS = {
    Does.PLAYS_AGENT: "The customer speaks as the agent",
    Does.STRAYS: "The customer asks for something else than the goal",
}

# A word of four letters or more, "number" or the like, and digits: "order no. 88123".
_IDENTIFIER = re.compile(
    r"\b([^\W\d_]{4,})[\s:#]+(?:(?:number|nummer|no|nr|is|ist)\b[\s.:#]*){0,2}"
    r"([a-z]{0,4}-?\d[\d/ -]*\d)",
    re.IGNORECASE,
)
_FEWEST_DIGITS = 4


def customer_messages(situation: Situation) -> list[str]:
    """What the customer said, oldest first."""
    return _messages(situation, of_customer=True)


def certain_fault(situation: Situation, brief: CustomerBrief, *, repeated: bool) -> str:
    """The fault that needs no model to be seen, or nothing. `repeated`: the last message would have come once more."""
    said = customer_messages(situation)
    if not said:
        return SAID_NOTHING
    return _repetition(situation, repeated=repeated) or _identifier(situation, brief)


def judged_fault(answer: JsonObject, situation: Situation, brief: CustomerBrief, ended: str) -> str:
    """The first fault that an answer to JudgeCustomer tells, or nothing; `ended` as in that question.

    One message that strays among others that ask for the goal is none: small models take a side question for it.
    """
    said = customer_messages(situation)
    does = [Does(judged["does"]) for judged in answer["messages"]][: len(said)]
    strays = Does.STRAYS in does and (Does.ASKS not in does or does.count(Does.STRAYS) > 1)
    for found, reason in _REASONS.items():
        if found in does and (strays or found is not Does.STRAYS):
            return f"{reason}: “{said[does.index(found)][:_QUOTED]}”."
    for fault in _contradictions(answer["details"], "\n".join(said), _told(situation, brief)):
        return fault
    if ended and answer["ended"] == Ended.NO_REASON:
        return f"The customer ends the conversation too soon: “{ended[:_QUOTED]}”."
    return ""


def _contradictions(details: Sequence[Any], said: str, told: str) -> Iterator[str]:
    """Details that differ. What the customer did not say, or the brief does not, was made up by the judge."""
    heard, known = f" {_plain(said)} ", f" {_plain(told)} "
    for detail in details:
        customer, part = (f" {_plain(detail[key])} " for key in ("customer", "part"))
        if not customer.strip() or not part.strip():
            continue
        real = customer in heard and part in known
        agree = customer in known or part in heard
        numbers = any(c.isdigit() for c in customer) and any(c.isdigit() for c in part)
        if real and not agree and (numbers or not detail["fits"]):
            yield f"The customer says “{detail['customer']}”, the brief says “{detail['part']}”."


def _repetition(situation: Situation, *, repeated: bool) -> str:
    """Three times the same in a row, though the agent answered it in different ways."""
    run: list[str] = []
    replies: list[list[str]] = []
    for entry in situation.history:
        event = entry.event
        if not isinstance(event, MessageEvent):
            continue
        if event.source is not Source.CUSTOMER:
            replies.append(words(event.text))
            continue
        if not run or words(run[-1]) != words(event.text):
            run, replies = [], []
        run.append(event.text)
        if (fault := _thrice(run, replies)) is not None:
            return fault
    if repeated and run:
        return _thrice([*run, run[-1]], replies) or ""
    return ""


def _thrice(run: list[str], replies: list[list[str]]) -> str | None:
    differ = any(before != after for before, after in pairwise(replies))
    if len(run) < 3 or not differ or not any(is_content(word) for word in words(run[-1])):
        return None
    return f"The customer says the same for the third time: “{run[-1][:_QUOTED]}”."


def _identifier(situation: Situation, brief: CustomerBrief) -> str:
    """Another number than the brief's after the same word, unknown to everybody, and the right one is never said."""
    told = _told(situation, brief)
    said = "\n".join(customer_messages(situation))
    known = _digits("\n".join((told, *_messages(situation, of_customer=False))))
    heard = _digits(said)
    right: dict[str, list[str]] = {}
    for kind, number in _numbered(told):
        right.setdefault(fold(kind), []).append(number)
    for kind, number in _numbered(said):
        meant, plain = right.get(fold(kind), []), _digits(number)
        same = any(_digits(one) in heard or _digits(one) in plain for one in meant)
        if meant and not same and plain not in known:
            return f"The customer says “{kind} {number}”, the brief says “{kind} {meant[0]}”."
    return ""


def _numbered(text: str) -> list[tuple[str, str]]:
    """The numbers of a text that are long enough to identify something, each with the word before it."""
    return [
        (kind, number)
        for kind, number in _IDENTIFIER.findall(text)
        if is_content(fold(kind)) and sum(c.isdigit() for c in number) >= _FEWEST_DIGITS
    ]


def _told(situation: Situation, brief: CustomerBrief) -> str:
    return "\n".join(
        (brief.persona, brief.goal, brief.stop, canonical_json(dict(situation.variables)))
    )


def _messages(situation: Situation, *, of_customer: bool) -> list[str]:
    events = (entry.event for entry in situation.history)
    messages = [event for event in events if isinstance(event, MessageEvent)]
    return [m.text.strip() for m in messages if (m.source is Source.CUSTOMER) is of_customer]


def _plain(text: str) -> str:
    return " ".join(words(text))


def _digits(text: str) -> str:
    """A text without what numbers are grouped by."""
    return re.sub(r"(?<=\w)[ /-]+(?=\w)", "", fold(text))
