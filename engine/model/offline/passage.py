"""A text of the customer, read once for all parameters, and the words that announce a value in it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

from engine.model.offline.moments import dates_in_other_languages, moments
from engine.model.offline.parameters import Role, Wanted
from engine.model.offline.readings import Kind, Reading, durations, numbers, simple
from engine.wording import is_content, stem, words

_TOKEN = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*|[^\w\s]", re.UNICODE)
_BEFORE = 4  # words before a value that may announce it
_AFTER = 2
_MOST_READINGS = 150  # of one kind in one message
_SOURCE_CUES = frozenset({"from", "out"})
_TARGET_CUES = frozenset({"to", "into", "in", "for", "towards"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible value with its literal words at `text[start:end]`; a higher `score` fits better (1 is sure)."""

    value: Any
    start: int
    end: int
    score: float


@dataclass(kw_only=True)
class Passage:
    """A text of the customer, read once for all parameters. `known` are stems of the tool and its guidelines."""

    text: str
    now: datetime
    known: frozenset[str]
    asked: str = ""  # the agent's question that the text may answer
    asked_for: int = 0  # how many things it asked for
    _readings: dict[str, list[Reading]] = field(default_factory=dict)

    def _cached(self, name: str, make: Callable[[], Iterator[Reading]]) -> list[Reading]:
        if name not in self._readings:
            self._readings[name] = list(islice(make(), _MOST_READINGS))
        return self._readings[name]

    @property
    def simple(self) -> list[Reading]:
        return self._cached("simple", lambda: simple(self.text))

    @property
    def moments(self) -> list[Reading]:
        return self._cached("moments", lambda: moments(self.text, self.now))

    @property
    def foreign_dates(self) -> list[Reading]:
        return self._cached("foreign_dates", lambda: dates_in_other_languages(self.text, self.now))

    @property
    def durations(self) -> list[Reading]:
        return self._cached("durations", lambda: durations(self.text))

    @property
    def numbers(self) -> list[Reading]:
        """Numbers that are not part of an address, an identifier, a date or a time."""
        return self._cached("numbers", self._plain_numbers)

    def _plain_numbers(self) -> Iterator[Reading]:
        taken = [r for r in self.simple if r.kind not in (Kind.QUOTED, Kind.PHONE)]
        taken += [r for r in self.moments if r.kind is not Kind.MOMENT]
        for number in numbers(self.text):
            if not any(number.overlaps(other) for other in taken):
                yield number

    @cached_property
    def tokens(self) -> list[tuple[str, int, int]]:
        return [(m.group(), m.start(), m.end()) for m in _TOKEN.finditer(self.text)]

    def around(self, start: int, end: int) -> tuple[list[str], list[str]]:
        """The words just before and just after a span, nearest first, lower case, within the clause."""
        before = [t.lower() for t, s, e in self.tokens if e <= start]
        after = [t.lower() for t, s, e in self.tokens if s >= end]
        return _clause(before[::-1], _BEFORE), _clause(after, _AFTER)

    @cached_property
    def is_brief(self) -> bool:
        return len(words(self.text)) <= 7

    def answers(self, wanted: Wanted) -> bool:
        """Whether the agent had just asked for this parameter and the text is short enough to be the answer."""
        if not self.asked:
            return False
        asked = {stem(word) for word in words(self.asked)}
        label = {stem(word) for word in words(wanted.parameter.label) if is_content(word)}
        return bool(label) and label <= asked


def _clause(tokens: list[str], count: int) -> list[str]:
    kept: list[str] = []
    for word in tokens:
        if word in ".,;?!\n" or len(kept) == count:
            break
        kept.append(word)
    return kept


def cue(wanted: Wanted, passage: Passage, start: int, end: int) -> float:
    """How clearly the words around a value announce the parameter."""
    before, after = passage.around(start, end)
    score = 0.0
    for distance, token in enumerate(before):
        one = stem(token)
        nearness = 1.0 - 0.15 * distance
        if one in wanted.stems:
            score = max(score, nearness)
        elif one in wanted.related:
            score = max(score, 0.5 * nearness)
        elif one in wanted.described:
            score = max(score, 0.3 * nearness)
    for token in after:
        one = stem(token)
        if one in wanted.stems:
            score = max(score, 0.8)
        elif one in wanted.related or one in wanted.described:
            score = max(score, 0.35)
    return score + role_cue(wanted, before)


def role_cue(wanted: Wanted, before: list[str]) -> float:
    """ "from" and "to" just before a value decide between two parameters of one type."""
    near = before[:3]
    for token in near:
        if token in _SOURCE_CUES:
            return {Role.SOURCE: 0.7, Role.TARGET: -0.6, Role.NEITHER: 0.0}[wanted.role]
        if token in _TARGET_CUES:
            return {Role.TARGET: 0.7, Role.SOURCE: -0.4, Role.NEITHER: 0.0}[wanted.role]
        if is_content(token) and not token.isdigit():
            break
    return 0.0
