"""What a customer's brief, and what is known of them, say to an agent's question: found by type and nearby words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from engine.canonical import JsonObject
from engine.customer_brief import CustomerBrief
from engine.model.offline.candidates import candidates
from engine.model.offline.first_person import oneself
from engine.model.offline.parameters import Role, Sort, Wanted
from engine.model.offline.passage import Candidate, Passage
from engine.model.offline.rendering import scalar
from engine.model.offline.results import key_stems
from engine.spec import ToolParameter
from engine.wording import FUNCTION_WORDS, fold, related_stems, stem, weight, words

LONGEST_BRIEF = 4_000
"""Characters of persona and goal that are read."""

_MOST_VARIABLES = 300
_CLAUSE = re.compile(r"(?<=[.!?])\s+|[;\n]+|,\s+|\s+(?:and|but)\s+")
_VALUE = r"(?P<value>[^,;\n()]*?)(?=\.?\s*(?:$|[,;\n()]|\.\s|\s(?:and|but|who|which|that|in|at|on|for|to)\s))"
_PERSON = re.compile(
    r"(?:\b(?:[Nn]ame(?:d| is|:)?|[Cc]alled|I am|I'm)|(?P<title>\b(?:Mr|Mrs|Ms|Dr)\.?))\s+"
    r"(?P<name>[^\W\d_a-z][\w'’-]*(?:\s+[^\W\d_a-z][\w'’-]*){0,3})"
    r"|^(?P<first>[^\W\d_a-z][\w'’-]+(?:\s+[^\W\d_a-z][\w'’-]+){1,3})(?=[,;.(]|$)"
)
# Words that say what sort of value is meant, and not whose.
_SORT_WORDS = frozenset(
    stem(word)
    for word in """
    number id code reference date day time hour amount price sum name email e mail phone telephone mobile address
    duration place city no nr many much full first last exact
    """.split()
)
_UNMISTAKABLE = frozenset({Sort.EMAIL, Sort.PHONE, Sort.URL, Sort.UUID, Sort.CURRENCY})
_SURE_BY_THEMSELVES = _UNMISTAKABLE | {Sort.NAME}
_READ_BY_TYPE = _UNMISTAKABLE | {
    Sort.IDENTIFIER,
    Sort.NUMBER,
    Sort.DATE,
    Sort.TIME,
    Sort.MOMENT,
    Sort.DURATION,
}
_CALLED_OTHERWISE = (
    (re.compile(r"\be-?mail address\b|\be-mail\b"), "email"),
    (re.compile(r"\b(?:tele|cell)?phone number\b|\bmobile number\b|\btelephone\b"), "phone"),
    (re.compile(r"\b(?:guests|persons|passengers|participants|travellers|diners)\b"), "people"),
)
_AMOUNTS = frozenset("amount price sum budget number quantity total cost".split())
_CLEARLY = 0.9


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What the customer of `brief` knows; `now` is what relative dates refer to."""

    brief: CustomerBrief
    variables: JsonObject
    now: datetime

    @cached_property
    def text(self) -> str:
        return f"{self.brief.persona}\n{self.brief.goal}"[:LONGEST_BRIEF]

    @cached_property
    def _passage(self) -> Passage:
        return Passage(text=self.text, now=self.now, known=frozenset())

    @cached_property
    def _known(self) -> list[tuple[frozenset[str], str]]:
        """Stems of each variable's path, and its value as text."""
        leaves = list(_leaves(self.variables, ()))[:_MOST_VARIABLES]
        return [(frozenset(key_stems(*path)), scalar(value)) for path, value in leaves]

    @cached_property
    def _clauses(self) -> list[str]:
        pieces = (piece.strip(" .") for piece in _CLAUSE.split(self.text) if piece)
        return [piece for piece in pieces if piece]

    def value(self, label: str, question: str) -> str:
        """The words that the brief has for what an agent calls so in this question, or none."""
        for pattern, plain in _CALLED_OTHERWISE:
            label = pattern.sub(plain, label)
        # "When did you move?" asks for the day of that, and of nothing else.
        whose = set(_stems(label)) - _SORT_WORDS or _telling(question) - _SORT_WORDS
        return self._variable(label) or self._announced(label) or self._typed(label, whose)

    def told_of(self, label: str, question: str) -> str:
        """What the brief says of what no value can be: a reason, a fault. Nothing for names, numbers and days."""
        typed = not _SORT_WORDS.isdisjoint(_stems(label))
        return "" if typed else self.clause_about(f"{label} {question}")

    def clause_about(self, question: str) -> str:
        """What the brief says that shares most with the question, as the customer's own words, or nothing."""
        asked = _telling(question)
        scored = [(len(asked & _telling(clause)), clause) for clause in self._clauses]
        best, clause = max(scored, key=lambda one: one[0], default=(0, ""))
        return oneself(clause) if best else ""

    def _variable(self, label: str) -> str:
        wanted = key_stems(label)
        found = [(len(path), value) for path, value in self._known if wanted and wanted <= path]
        return min(found, default=(0, ""))[1]

    def _announced(self, label: str) -> str:
        """ "size 42", "the colour is blue": what follows the label, where it looks like a value or is called one."""
        name = r"\s+".join(re.escape(word) for word in label.split())
        pattern = re.compile(rf"\b{name}(?P<is>\s+(?:is|are)|\s*[:=])?\s+{_VALUE}", re.IGNORECASE)
        for match in pattern.finditer(self.text):
            value = match["value"].strip(" \"'“”")
            told = bool(match["is"]) or value[:1].isupper() or any(c.isdigit() for c in value[:12])
            if value and told and len(value.split()) <= _LONGEST_VALUE:
                return value
        return ""

    def _typed(self, label: str, whose: set[str]) -> str:
        found = [
            candidate
            for wanted in _wanted(label)
            for candidate in self._candidates(wanted)
            if wanted.sort in _SURE_BY_THEMSELVES or self._is_of(candidate, whose)
        ]
        if found:
            best = max(found, key=lambda one: (one.score, -one.start))
            return self.text[best.start : best.end].strip()
        asked = set(_stems(label)) - _SORT_WORDS - _OWNERS
        return self._person() if "name" in words(label) and not asked else ""

    def _candidates(self, wanted: Wanted) -> list[Candidate]:
        if wanted.sort in _READ_BY_TYPE:
            found = candidates(wanted, self._passage)
            return [one for one in found if wanted.sort is not Sort.NUMBER or one.score >= _CLEARLY]
        if wanted.sort is Sort.NAME and (wanted.names_place or wanted.role is not Role.NEITHER):
            found = candidates(wanted, self._passage)
            return [o for o in found if o.score >= _CLEARLY and self.text[o.start].isupper()]
        return []

    def _is_of(self, candidate: Candidate, whose: set[str]) -> bool:
        """Whether the clause of a value speaks of the thing that the label says it belongs to."""
        if not whose:
            return True
        start = max(self.text.rfind(mark, 0, candidate.start) for mark in (",", ";", "\n", ". "))
        ends = [self.text.find(mark, candidate.end) for mark in (",", ";", "\n", ". ")]
        end = min((end for end in ends if end >= 0), default=len(self.text))
        near = set(_stems(self.text[start + 1 : end]))
        near |= {other for one in near for other, strength in related_stems(one) if strength > 0.5}
        return not whose.isdisjoint(near)

    def _person(self) -> str:
        match = _PERSON.search(self.brief.persona) or _PERSON.search(self.brief.goal)
        if match is None:
            return ""
        return match["first"] or " ".join(filter(None, (match["title"], match["name"])))


_LONGEST_VALUE = 6
_OWNERS = frozenset(stem(word) for word in "customer patient guest owner holder member".split())


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif path and isinstance(value, str | int | float) and not isinstance(value, bool):
        yield path, value


def _wanted(label: str) -> Iterator[Wanted]:
    """The parameters that a tool may have for what is called so: a day may be a date, an amount is a number."""
    name = re.sub(r"\W+", "_", label).strip("_")
    kind = "number" if _AMOUNTS & set(words(label)) else "string"
    yield Wanted(parameter=ToolParameter(name=name, schema={"type": kind}))
    if label == "duration":  # "since when" is answered by a day as well
        yield Wanted(parameter=ToolParameter(name="date", schema={"type": "string"}))
    if kind == "number" and not label.startswith("number of"):
        yield Wanted(parameter=ToolParameter(name=name, schema={"type": "string"}))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words(text) if word not in FUNCTION_WORDS]


def _telling(text: str) -> set[str]:
    return {stem(word) for word in words(fold(text)) if weight(word) >= 1}
