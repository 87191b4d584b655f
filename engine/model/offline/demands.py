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
    r"(?:\s+(?:about|of|to|that|any|the word|the words|words like))*\s*(?P<what>.*)",
    re.IGNORECASE | re.DOTALL,
)
_DENIAL = frozenset("not cannot no never unable neither nor without".split())
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SPACES = re.compile(r"[\W_]+", re.UNICODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """`literal` has to stand in the reply; of `forbidden` no sentence may say all words of any one."""

    literal: tuple[str, ...]
    forbidden: tuple[str, ...]


def demands_of(action: str) -> Demands:
    """What the clauses of an action demand; clauses that hold under a condition only demand nothing here."""
    literal: list[str] = []
    forbidden: list[str] = []
    for clause in clauses(action):
        if clause.kind is Said.MANNER and (never := _NEVER.match(clause.source)):
            forbidden += clause.quotes or _alternatives(never["what"])
        elif clause.kind is Said.SPEECH:
            literal += clause.quotes
    return Demands(literal=tuple(literal), forbidden=tuple(forbidden))


def problem_with(reply: str, action: str) -> str:
    """What of the action's demands the reply does not meet, or nothing."""
    demands = demands_of(action)
    for text in demands.literal:
        if _plain(text) not in _plain(reply):
            return f"The reply does not say “{text}”."
    for text in demands.forbidden:
        if any(_says(sentence, text) for sentence in _SENTENCE.split(reply)):
            return f"The reply speaks of “{text}”."
    return ""


def put_right(reply: str, actions: Sequence[str]) -> str:
    """The reply without the sentences that may not be said, and with what has to be."""
    for action in actions:
        demands = demands_of(action)
        for text in demands.forbidden:
            reply = "\n".join(_without(line, text) for line in reply.split("\n")).strip()
        missing = [text for text in demands.literal if _plain(text) not in _plain(reply)]
        reply = "\n\n".join(part for part in (reply, " ".join(missing)) if part)
    return reply or "I am sorry, I cannot say more about this."


def _without(line: str, text: str) -> str:
    return " ".join(sentence for sentence in _SENTENCE.split(line) if not _says(sentence, text))


def _says(sentence: str, text: str) -> bool:
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
