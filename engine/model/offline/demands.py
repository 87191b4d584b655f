"""What an action demands of a reply that words can show: to say something literally, never to name something."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.model.offline.phrasing import Said, clauses
from engine.wording import is_content, stem, words

_NEVER = re.compile(
    r"^(?:please\s+|always\s+|but\s+|and\s+)*"
    r"(?:do not|don['’]?t|never|avoid|refrain from|must not|may not|should not)\s+"
    r"(?:ever\s+)?(?:say|saying|mention|mentioning|name|naming|use|using|promise|promising|offer|offering|give|giving|"
    r"reveal|revealing|disclose|disclosing|share|sharing|tell|telling|state|stating|write|writing|discuss|discussing|"
    r"talk|talking|speak|speaking|recommend|recommending|quote|quoting|suggest|suggesting|refer|referring)\b"
    r"(?:\s+(?:them|him|her|the customer|customers))?"
    r"(?:\s+(?:about|of|to|that|any|out|the word|the words|words like))*\s*(?P<what>.*)",
    re.IGNORECASE | re.DOTALL,
)
_EXCEPTION = re.compile(
    r"\b(?:unless|until|except|if|when|before|without|other than|more than)\b", re.IGNORECASE
)
_DENIAL = frozenset("not cannot no never unable neither nor without".split())
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SPACES = re.compile(r"[\W_]+", re.UNICODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Texts that have to stand in the reply, texts that may not, and subjects of which no sentence may speak."""

    literal: tuple[str, ...]
    unsayable: tuple[str, ...]
    subjects: tuple[str, ...]


def demands_of(action: str) -> Demands:
    """What the clauses of an action demand; clauses that hold under a condition only demand nothing here."""
    literal: list[str] = []
    unsayable: list[str] = []
    subjects: list[str] = []
    for clause in clauses(action):
        never = _NEVER.match(clause.source) if clause.kind is Said.MANNER else None
        if clause.kind is Said.SPEECH:
            literal += clause.quotes
        elif never and not _EXCEPTION.search(never["what"]):
            unsayable += clause.quotes
            subjects += [] if clause.quotes else _alternatives(never["what"])
    return Demands(literal=tuple(literal), unsayable=tuple(unsayable), subjects=tuple(subjects))


def problem_with(reply: str, action: str) -> str:
    """What of the action's demands the reply does not meet, or nothing."""
    demands = demands_of(action)
    for text in demands.literal:
        if _plain(text) not in _plain(reply):
            return f"The reply does not say “{text}”."
    for sentence in _SENTENCE.split(reply):
        if text := _broken(sentence, demands):
            return f"The reply speaks of “{text}”."
    return ""


def _broken(sentence: str, demands: Demands) -> str:
    """What a sentence says though it may not, or nothing."""
    said = f" {_plain(sentence)} "
    for text in demands.unsayable:
        if f" {_plain(text)} " in said:
            return text
    return next((text for text in demands.subjects if _speaks_of(sentence, text)), "")


def put_right(reply: str, actions: Sequence[str]) -> str:
    """The reply without the sentences that may not be said, and with what has to be."""
    for action in actions:
        demands = demands_of(action)
        reply = "\n".join(_without(line, demands) for line in reply.split("\n")).strip()
        missing = [text for text in demands.literal if _plain(text) not in _plain(reply)]
        reply = "\n\n".join(part for part in (reply, " ".join(missing)) if part)
    return reply or "I am sorry, I cannot say more about this."


def _without(line: str, demands: Demands) -> str:
    return " ".join(part for part in _SENTENCE.split(line) if not _broken(part, demands))


def _speaks_of(sentence: str, text: str) -> bool:
    """Whether a sentence has all telling words of a text and does not deny it."""
    wanted = {stem(word) for word in words(text) if is_content(word)}
    said = words(sentence)
    if not wanted or _DENIAL & set(said):
        return False
    return wanted <= {stem(word) for word in said}


def _alternatives(what: str) -> list[str]:
    """ "prices or dates" are two things not to speak of."""
    parts = re.split(r",\s*|\s+(?:or|and|nor)\s+", what.strip(" ."))
    return [part.strip() for part in parts if part.strip()]


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text.casefold()).strip()
