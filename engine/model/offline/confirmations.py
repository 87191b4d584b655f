"""ReadConfirmation: what the newest messages say about the calls that await the customer's word.

Read clause by clause; the last word counts, a changed detail outweighs a yes, and what is not clear is unanswered.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from engine.canonical import JsonObject, canonical_json
from engine.events import Answer, BriefingEvent, ConfirmationAskedEvent
from engine.model.base import InferToolCalls, ReadConfirmation
from engine.model.offline.calls import CallInferrer
from engine.model.offline.clauses import Clause, Does, clauses
from engine.model.offline.conversation import Conversation
from engine.model.offline.results import key_stems
from engine.wording import fold, is_content, stem, words
from engine.written import as_number, numbers_in, stands_in

UNANSWERED = "unanswered"
_ORDINALS = (
    re.compile(r"\b(?:first|1st|former|number 1|no 1|#1)\b"),
    re.compile(r"\b(?:second|2nd|latter|number 2|no 2|#2)\b"),
    re.compile(r"\b(?:third|3rd|number 3|no 3|#3)\b"),
    re.compile(r"\b(?:fourth|4th|number 4|no 4|#4)\b"),
    re.compile(r"\b(?:fifth|5th|number 5|no 5|#5)\b"),
)
_LAST = re.compile(r"\blast(?: one)?\b")
_ALL = re.compile(r"\b(?:both|all|each|everything|neither|none)\b")
_THE_OTHER = re.compile(r"\bthe others?\b")
_ONLY = re.compile(r"\b(?:only|just|but not|not the other)\b")
_EACH = re.compile(r"\b(?:both|all|everything)\b")
_POINTER = re.compile(
    r"\b(?:to )?(?:the )?(?:first|1st|second|2nd|third|3rd|fourth|4th|fifth|5th|last|former|latter|others?)"
    r"(?: ones?)?\b",
    re.IGNORECASE,
)
_POINTS_AT_IT = re.compile(r"\b(?:it|that|this|they)\b")
_MEANT = re.compile(r"\b(?:i meant?|instead)\b")
_SHORT_REST = 2


@dataclass(kw_only=True)
class _Waiting:
    """A call that awaits an answer, and what has been read of it so far."""

    label: str
    asked: ConfirmationAskedEvent
    inferrer: CallInferrer | None
    answer: str = UNANSWERED
    quote: str = ""
    other: str = ""
    others: list["_Waiting"] = field(default_factory=list, repr=False)

    def set(self, answer: Answer, clause: Clause, other: str = "") -> None:
        """`other` is the detail that the clause gives otherwise."""
        if self.answer == Answer.CHANGED and answer is Answer.CONFIRMED:
            return  # "make it 400, yes" does not confirm what was asked
        self.answer, self.quote = answer.value, clause.text[:300]
        self.other = other if answer is Answer.CHANGED else ""

    def doubt(self, clause: Clause) -> None:
        if self.answer == Answer.CONFIRMED:
            self.answer, self.quote = UNANSWERED, clause.text[:300]

    @cached_property
    def stems(self) -> frozenset[str]:
        """What its tool is called and does, in stems."""
        described = self.inferrer.description if self.inferrer else ""
        said = {stem(word) for word in words(described) if is_content(word)}
        return frozenset(key_stems(self.asked.tool) | said)

    def names(self, clause: Clause) -> bool:
        """Does the clause name one of its details, in whatever words?"""
        if any(_said_in(clause.text, value) for value in self.asked.arguments.values()):
            return True
        pending = self.asked.arguments
        given = self._given(clause)
        return any(name in pending and _same(value, pending[name]) for name, value in given.items())

    def _given(self, clause: Clause) -> JsonObject:
        if self.inferrer is None:
            return {}
        # "To the second" gives no name; with a single call there is nothing to point at.
        text = _POINTER.sub(" ", clause.text) if self.others else clause.text
        return self.inferrer.values_in(text, announced=not clause.corrects)

    def names_own(self, clause: Clause) -> bool:
        """Does the clause name a detail, or a word of its tool, that the others do not have?"""
        others = {canonical_json(v) for o in self.others for v in o.asked.arguments.values()}
        own = [v for v in self.asked.arguments.values() if canonical_json(v) not in others]
        if any(_said_in(clause.text, value) for value in own):
            return True
        of_others = frozenset().union(*(other.stems for other in self.others))
        named = {stem(word) for word in words(clause.text)}
        return bool(named & (key_stems(self.asked.tool) - of_others))

    def differs(self, clause: Clause) -> str:
        """A detail that the clause gives otherwise, in words; empty where it gives none."""
        for name, value in self._given(clause).items():
            if name in self.asked.arguments and not _same(value, self.asked.arguments[name]):
                return f"{self.asked.labels.get(name, name)} {value}"[:200]
        return ""


class ConfirmationReader:
    """Reads one ReadConfirmation question; `now` is what relative dates refer to."""

    def __init__(self, question: ReadConfirmation, now: datetime) -> None:
        self._talk = Conversation(situation=question.situation)
        self._question = question
        self._waiting = [
            _Waiting(label=f"C{number}", asked=asked, inferrer=_inferrer(question, asked, now))
            for number, asked in enumerate(question.pending, start=1)
        ]
        for waiting in self._waiting:
            waiting.others = [other for other in self._waiting if other is not waiting]
        self._before: Clause | None = None
        self._also: list[Clause] = []

    def answer(self) -> JsonObject:
        """The answer to ReadConfirmation."""
        if self._waiting:
            self._read(list(clauses(self._talk.new_text)))
        return {
            "answers": [
                {"call": w.label, "quote": w.quote, "other": w.other, "answer": w.answer}
                for w in self._waiting
            ],
            "also": self._besides(),
        }

    def _besides(self) -> str:
        if all(waiting.answer == UNANSWERED for waiting in self._waiting):
            return self._talk.new_text.strip()[:500]
        return ", ".join(clause.text for clause in self._also)[:500]

    def _read(self, said: Sequence[Clause]) -> None:
        for place, clause in enumerate(said):
            self._before = said[place - 1] if place else None
            self._take(clause, said[place + 1] if place + 1 < len(said) else None)

    def _take(self, clause: Clause, follows: Clause | None) -> None:
        scope, pointed = self._scope(clause)
        if self._changed(clause, scope, pointed):
            return
        match self._act(clause, follows, pointed):
            case Does.REFUSES if self._puts_right(clause, scope):
                pass
            case Does.REFUSES:
                self._say(scope, Answer.DECLINED, clause)
                self._note_more(clause)
            case _ if clause.excepts and pointed:
                self._say(scope, Answer.DECLINED, clause)
            case Does.AGREES:
                if pointed and clause.does is Does.ELSE and not clause.adds:
                    self._narrow(clause, scope)
                self._say(scope, Answer.CONFIRMED, clause)
                if pointed and _ONLY.search(clause.folded):
                    rest = [w for w in self._waiting if w not in scope]
                    self._say(rest, Answer.DECLINED, clause)
                self._note_more(clause)
            case Does.DOUBTS:
                for waiting in self._waiting:
                    waiting.doubt(clause)
            case _:
                self._something_else(clause, scope)

    def _act(self, clause: Clause, follows: Clause | None, pointed: bool) -> Does:
        """What the clause does as an answer to the agent's question."""
        does = clause.does
        if does is Does.REFUSES and self._is_the_tools_own_verb(clause):
            does = Does.AGREES
        if does is Does.AGREES_LIGHTLY:
            asks_next = follows is not None and follows.asks and not follows.adds
            does = Does.ELSE if asks_next or clause.asks else Does.AGREES
        if (
            does is Does.ELSE
            and not clause.asks
            and not clause.objects
            and self._restates(clause, pointed)
        ):
            does = Does.AGREES
        if does in {Does.AGREES, Does.REFUSES}:
            if clause.asks and does is Does.AGREES and clause.rest:
                return Does.ELSE
            if not self._was_just_asked and not self._speaks_of_it(clause):
                return Does.ELSE
        return does

    def _is_the_tools_own_verb(self, clause: Clause) -> bool:
        """ "Cancel it" is a yes where cancelling awaits the word."""
        first = next(iter(words(clause.text)), "")
        return any(stem(first) in key_stems(w.asked.tool) for w in self._waiting)

    def _restates(self, clause: Clause, pointed: bool) -> bool:
        """ "The second one", "send it", "transfer the 50": points at what was asked, or says it again."""
        told = {stem(word) for word in words(clause.text)}
        if pointed and len(self._waiting) > 1 and len(clause.rest) <= _SHORT_REST + 1:
            return True
        pronoun = bool(re.search(r"\b(?:it|that|them|this|both)\b", clause.folded))
        first = next(iter(words(clause.text)), "")
        if pronoun and any(stem(first) in w.stems or w.names(clause) for w in self._waiting):
            return True
        if len(self._waiting) > 1 and _EACH.search(clause.folded) and not self._foreign(clause):
            return True
        return any(told & w.stems and w.names(clause) for w in self._waiting)

    def _speaks_of_it(self, clause: Clause) -> bool:
        told = {stem(word) for word in words(clause.text) if is_content(word)}
        return any(told & w.stems or w.names(clause) for w in self._waiting)

    @cached_property
    def _was_just_asked(self) -> bool:
        """Did the agent's last reply ask for this word? A yes to another question is no answer to it."""
        last = self._talk.last_turn
        calls = {waiting.asked.call for waiting in self._waiting}
        for entry in self._question.situation.history:
            event = entry.event
            if isinstance(event, ConfirmationAskedEvent) and event.call in calls:
                if last is None or entry.turn >= last:
                    return True
            elif (
                isinstance(event, BriefingEvent)
                and entry.turn == last
                and event.content.get("confirm")
            ):
                return True
        return False

    # --- what it is about, and what it changes ---------------------------------------------------

    def _scope(self, clause: Clause) -> tuple[list[_Waiting], bool]:
        """The calls that a clause speaks of, and whether it points at some of them."""
        if len(self._waiting) == 1:
            return self._waiting, False
        if _ALL.search(clause.folded):
            return self._waiting, False
        if _THE_OTHER.search(clause.folded):
            left = [w for w in self._waiting if w.answer == UNANSWERED]
            return left or self._waiting, True
        found = [
            waiting
            for waiting, ordinal in zip(self._waiting, _ORDINALS, strict=False)
            if ordinal.search(clause.folded)
        ]
        if not found and _LAST.search(clause.folded):
            found = [self._waiting[-1]]
        found = found or [w for w in self._waiting if w.names_own(clause)]
        if not found or len(found) == len(self._waiting):
            return self._waiting, False
        return found, True

    def _changed(self, clause: Clause, scope: list[_Waiting], pointed: bool) -> bool:
        """Record a changed detail; True where the clause gives one."""
        if clause.asks and not clause.corrects:
            return False
        different = {w.label: why for w in scope if (why := w.differs(clause))}
        if not different or len(different) < len(scope):
            return False
        agreed = any(w.answer in {Answer.CONFIRMED, Answer.DECLINED} for w in scope)
        if clause.adds and (agreed or clause.wants_more) and not clause.corrects:
            return (
                False  # "yes, and send 30 to Bob" asks for more, and so does "also send 30 to Bob"
            )
        if len(scope) > 1 and not pointed and not _ALL.search(clause.folded):
            for waiting in scope:  # which one is meant is not said
                waiting.doubt(clause)
            return True
        for waiting in scope:
            waiting.set(Answer.CHANGED, clause, different[waiting.label])
        return True

    def _narrow(self, clause: Clause, scope: list[_Waiting]) -> None:
        """ "Yes, the one to Bob": the yes was for this one."""
        for waiting in self._waiting:
            if waiting not in scope:
                waiting.doubt(clause)

    def _puts_right(self, clause: Clause, scope: list[_Waiting]) -> bool:
        """ "400, not 50": the refusal is of the detail that was just changed."""
        return any(w.answer == Answer.CHANGED and w.names(clause) for w in scope)

    def _say(self, scope: Sequence[_Waiting], answer: Answer, clause: Clause) -> None:
        for waiting in scope:
            waiting.set(answer, clause)

    def _something_else(self, clause: Clause, scope: list[_Waiting]) -> None:
        """A question, another wish, or words that are not understood."""
        if clause.objects:  # "yes, but …": whatever it is, it is no plain yes
            for waiting in self._waiting:
                waiting.doubt(clause)
        foreign = self._foreign(clause)
        named = any(w.names(clause) for w in scope)
        if not clause.asks and (
            not foreign or clause.commands or (named and len(foreign) <= _SHORT_REST)
        ):
            return
        if _MEANT.search(clause.folded) and not clause.asks and len(scope) == 1:
            scope[0].set(Answer.CHANGED, clause)
            return
        if (
            clause.asks
            and not clause.adds
            and self._runs_on
            and _POINTS_AT_IT.search(clause.folded)
        ):
            # "Yes, is it safe?" wants to know first.
            for waiting in scope:
                waiting.doubt(clause)
        unclear = (
            not clause.asks and not clause.adds and len(clause.rest) <= _SHORT_REST and not named
        )
        if unclear and fold(clause.text) != clause.text:
            # "Yes, Bob": a name where a name was asked about may be another one.
            for waiting in scope:
                waiting.doubt(clause)
        self._also.append(clause)

    @property
    def _runs_on(self) -> bool:
        """Does the clause go on in the sentence of the one before it?"""
        return self._before is not None and not self._before.ends

    def _note_more(self, clause: Clause) -> None:
        """ "Yes I also need a receipt": what is more than the answer, where it is more than a detail of the call."""
        if len(self._foreign(clause)) > _SHORT_REST:
            self._also.append(clause)

    def _foreign(self, clause: Clause) -> list[str]:
        """The words of a clause that are about something else than the calls."""
        told = frozenset().union(*(w.stems for w in self._waiting))
        details = [value for w in self._waiting for value in w.asked.arguments.values()]
        return [
            word
            for word in clause.rest
            if stem(word) not in told
            and not any(_said_in(word, value) or _has_word(value, word) for value in details)
        ]


def _inferrer(
    question: ReadConfirmation, asked: ConfirmationAskedEvent, now: datetime
) -> CallInferrer | None:
    """What reads the details of this call in words; None where the agent no longer has its tool."""
    situation = question.situation
    tool = situation.agent.tool_by_name.get(asked.tool)
    if tool is None:
        return None
    known = situation.agent.guideline_by_uid
    guidelines = tuple(known[uid] for uid in asked.guidelines if uid in known)
    return CallInferrer(InferToolCalls(situation=situation, tool=tool, guidelines=guidelines), now)


def _said_in(text: str, value: Any) -> bool:
    match value:
        case bool() | None:
            return False
        case int() | float():
            return as_number(value) in numbers_in(text)
        case str():
            return len(value) > 1 and (stands_in(value, text) or _first_name_in(value, text))
        case list():
            return any(_said_in(text, item) for item in value)
        case dict():
            return any(_said_in(text, item) for item in value.values())
        case _:
            return False


def _first_name_in(value: str, text: str) -> bool:
    first = value.split(maxsplit=1)[0] if value.split() else ""
    return len(first) > 2 and first[0].isupper() and stands_in(first, text)


def _has_word(value: Any, word: str) -> bool:
    return isinstance(value, str) and word in words(value)


def _same(said: Any, pending: Any) -> bool:
    """Is a value as it was said the pending one? "Ann" is Ann Smith; 400 is 400.0."""
    if isinstance(said, bool) or isinstance(pending, bool):
        return said is pending
    if isinstance(said, int | float) and isinstance(pending, int | float):
        return as_number(said) == as_number(pending)
    if isinstance(said, str) and isinstance(pending, str):
        one, other = set(words(said)), set(words(pending))
        return fold(said) == fold(pending) or (bool(one) and (one <= other or other <= one))
    if isinstance(said, list) and isinstance(pending, list):
        return all(any(_same(s, p) for p in pending) for s in said)
    return canonical_json(said) == canonical_json(pending)
