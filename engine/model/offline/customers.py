"""PlayCustomer and JudgeCustomer: a customer who says what the brief says, and whether one did (English)."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeGuard

from engine.brief_faults import Does, Ended
from engine.canonical import JsonObject
from engine.events import (
    BY_TOOL,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    Mode,
    ModeEvent,
    Source,
)
from engine.model.base import JudgeCustomer, PlayCustomer, Situation
from engine.model.offline.asked import Asked, Asks, asked_in
from engine.model.offline.conversation import MAX_MESSAGE_CHARACTERS
from engine.model.offline.first_person import oneself, wish
from engine.model.offline.recalling import LONGEST_BRIEF, Memory
from engine.model.offline.turning import finished
from engine.wording import fold, is_content, related_stems, stem, words

_HANDS_OVER = re.compile(
    r"\b(?:connect|transfer|pass|hand|forward)\w*\b[^.?!]*\b(?:colleague|human|person|operator|specialist|"
    r"representative|advis[eo]r|somebody|someone|team)\b[^?]*$"
)
_DECLINES = re.compile(
    r"\b(?:(?:refuses?|declines?|rejects?) (?:to (?:confirm|agree|accept)|every|any|all|the|what|it)|"
    r"never (?:agrees?|confirms?|accepts?|says? yes)|agrees? to nothing|says? no\b|backs? out|"
    r"(?:do|does|will|would|must)(?:n't| not) (?:agree|confirm|accept|want (?:it|that|to pay))|"
    r"changes? (?:their|his|her|your|my) mind)"
)
_UNKNOWN = "I do not know"
_MOST_UNKNOWN = 2
_ENOUGH_SHARED = 1 / 3
_YES = "Yes, please."
_NO = "No, please do not."
_AGAIN = "As I said: "
_OPENINGS = ("", "What I need is this: ", "Once more: ")
_NO_GOAL = "Hello, I need some help."


@dataclass(frozen=True, kw_only=True)
class _Exchange:
    """What a customer sees of a conversation."""

    situation: Situation

    @cached_property
    def _events(self) -> list[Event]:
        ordered = sorted(self.situation.history, key=lambda entry: entry.turn)
        return [entry.event for entry in ordered]

    @cached_property
    def said(self) -> list[str]:
        """The customer's messages, oldest first."""
        return [e.text.strip() for e in self._events if _by(e, Source.CUSTOMER)]

    @cached_property
    def _since(self) -> list[Event]:
        """What came after the customer's last message."""
        places = [place for place, e in enumerate(self._events) if _by(e, Source.CUSTOMER)]
        return self._events[places[-1] + 1 :] if places else self._events

    @cached_property
    def answer(self) -> str:
        """What was said to the customer since; what tools said while they worked is no answer."""
        said = (e for e in self._since if _by(e, Source.AGENT) or _by(e, Source.OPERATOR))
        texts = (e.text for e in said if not e.model.startswith(BY_TOOL))
        return "\n".join(texts)[-MAX_MESSAGE_CHARACTERS:]

    @property
    def asks_to_confirm(self) -> bool:
        return any(isinstance(event, ConfirmationAskedEvent) for event in self._since)

    @property
    def handed_over(self) -> bool:
        modes = [event.mode for event in self._events if isinstance(event, ModeEvent)]
        return modes[-1:] == [Mode.MANUAL]


class CustomerPlayer:
    """Says what the customer of one question says next. `now` is what relative dates of the brief refer to."""

    def __init__(self, question: PlayCustomer, now: datetime) -> None:
        self._brief = question.brief
        self._talk = _Exchange(situation=question.situation)
        self._memory = Memory(brief=question.brief, variables=question.situation.variables, now=now)
        self._wish = wish(question.brief.goal[:LONGEST_BRIEF]) or _NO_GOAL

    def answer(self) -> JsonObject:
        """The answer to PlayCustomer."""
        talk = self._talk
        if not talk.said and not talk.answer:
            return _says(self._wish, "The conversation begins with what the customer wants.")
        if talk.handed_over or _HANDS_OVER.search(fold(talk.answer)):
            return _done("Somebody else answers the customer from here on.")
        asked = [one for one in asked_in(talk.answer) if one.kind is not Asks.MORE]
        if talk.asks_to_confirm and not any(one.kind is Asks.YES for one in asked):
            asked.insert(0, Asked(kind=Asks.YES, text=""))
        if asked:
            return self._answered(asked)
        shared = _shared(self._brief.goal, talk.answer)
        if shared:
            return _done(f"The agent speaks of “{', '.join(shared)}” and asks nothing more.")
        return self._insists("The agent does not speak of what the customer wants.")

    def _answered(self, asked: list[Asked]) -> JsonObject:
        if all(one.kind is Asks.WISH for one in asked):
            return self._insists("The agent asks what the customer wants.")
        parts = list(dict.fromkeys(part for one in asked for part in self._parts(one)))
        unknown = [part for part in parts if part.startswith(_UNKNOWN)]
        if unknown and sum(_UNKNOWN in text for text in self._talk.said) >= _MOST_UNKNOWN:
            return _done("The customer has said twice that they do not know, and is asked again.")
        message = " ".join(parts)
        because = f"The agent asks: {asked[-1].text.strip() or 'to confirm'}"
        if message not in self._talk.said or message in (_YES, _NO):
            return _says(message, because)
        again = _AGAIN + message
        if again in self._talk.said:
            return _done("The customer has answered this twice, and is asked again.")
        return _says(again, because)

    def _parts(self, asked: Asked) -> list[str]:
        """The sentences that answer one question."""
        match asked.kind:
            case Asks.YES:
                return [_NO if _declines(self._brief.persona, self._brief.goal) else _YES]
            case Asks.WHICH:
                return [self._chosen(asked)]
            case Asks.DATA:
                return [self._told(label, asked.text) for label in asked.labels]
            case Asks.WISH | Asks.MORE:
                return [self._wish]
            case Asks.DETAIL:
                about = self._memory.clause_about(asked.text)
                return [finished(about) if about else f"{_UNKNOWN} that."]

    def _told(self, label: str, question: str) -> str:
        """The value with its label, or alone where the question has no name for it ("when", "how many")."""
        named = label in fold(question)
        if value := self._memory.value(label, question):
            owner = "My" if "your" in words(question) else "The"
            return finished(f"{owner} {label} is {value}" if named else value)
        about = self._memory.told_of(label, question)
        if about and about not in self._wish:
            return finished(about)
        return f"{_UNKNOWN} the {oneself(label)}." if named else f"{_UNKNOWN} that."

    def _chosen(self, asked: Asked) -> str:
        """Of what was listed that which shares most with the goal; else the first."""
        wanted = _content(self._brief.goal).keys()
        shares = {option: len(wanted & _content(option).keys()) for option in asked.options}
        best = max(asked.options, key=lambda option: shares[option], default="")
        if shares.get(best):
            return finished(best)
        return "The first one, please."

    def _insists(self, because: str) -> JsonObject:
        """What the customer wants, each time in other words, and then no more."""
        for opening in _OPENINGS:
            if opening + self._wish not in self._talk.said:
                return _says(opening + self._wish, because)
        return _done("The customer has said three times what they want, and is not answered.")


def judged_customer(question: JudgeCustomer) -> JsonObject:
    """The answer to JudgeCustomer: only who never speaks of the goal strays; more this model cannot tell."""
    said = _Exchange(situation=question.situation).said
    goal = question.brief.goal[:LONGEST_BRIEF]
    strays = _content(goal) and not _shared(goal, "\n".join(said), enough=0.0)
    does = Does.STRAYS if strays else Does.ASKS
    judged = [{"says": text[:40], "does": does.value} for text in said]
    ended = Ended.STOP if question.ended else Ended.OTHERS
    return {"messages": judged, "details": [], "ended": ended.value}


def _shared(goal: str, text: str, enough: float = _ENOUGH_SHARED) -> list[str]:
    """The goal's content words that a text speaks of, or none where they are less than `enough` of them."""
    wanted = _content(goal)
    heard = {stem(word) for word in words(text)}
    heard |= {other for one in heard for other, strength in related_stems(one) if strength > 0.7}
    found = [word for one, word in wanted.items() if one in heard]
    return found if found and len(found) >= enough * len(wanted) else []


def _content(text: str) -> dict[str, str]:
    """Stem → word, of a goal above all; numbers are left out, for no agent need repeat them."""
    said = (word for word in words(text) if is_content(word) and not word.isdigit())
    return {stem(word): word for word in said}


def _declines(*texts: str) -> bool:
    """Whether a brief says that its customer does not agree."""
    return any(_DECLINES.search(fold(text)) for text in texts)


def _by(event: Event, source: Source) -> TypeGuard[MessageEvent]:
    return isinstance(event, MessageEvent) and event.source is source


def _says(message: str, because: str) -> JsonObject:
    return {"because": because, "done": False, "message": message}


def _done(because: str) -> JsonObject:
    return {"because": because, "done": True, "message": ""}
