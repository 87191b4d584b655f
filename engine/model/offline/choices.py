"""Closed lists of values: which one the customer's words mean, inflected, misspelt or by another name."""

import re
from collections.abc import Iterator
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from engine.model.offline.currencies import names_of
from engine.model.offline.parameters import Wanted
from engine.model.offline.passage import Candidate, Passage, cue, role_cue
from engine.model.offline.results import spaced
from engine.wording import fold, is_content, related_stems, stem, words

_SHORTEST_PART = 3  # letters
_SHORTEST_MISSPELT = 4


def choices(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    found = list(_choices(wanted, passage))
    # "Ana" is no answer where there are two of them.
    parts: dict[tuple[int, int], set[str]] = {}
    for candidate, in_full in found:
        if not in_full:
            parts.setdefault((candidate.start, candidate.end), set()).add(str(candidate.value))
    for candidate, in_full in found:
        if in_full or len(parts[candidate.start, candidate.end]) == 1:
            yield candidate


def _choices(wanted: Wanted, passage: Passage) -> Iterator[tuple[Candidate, bool]]:
    """Each choice that the passage says, and whether it says its whole name."""
    folded = fold(passage.text)
    aligned = len(folded) == len(passage.text)
    for choice in wanted.choices:
        for form, strength in choice_forms(choice, wanted.choice_titles.get(str(choice), "")):
            span = span_of(form, passage)
            if span is None:
                continue
            start, end, closeness = span
            if not aligned:
                start, end = min(start, len(passage.text)), min(end, len(passage.text))
            score = strength * closeness + 0.3 * cue(wanted, passage, start, end)
            score += role_cue(wanted, passage.around(start, end)[0]) * 0.5
            in_full = len(words(passage.text[start:end])) >= len(words(form))
            yield Candidate(value=choice, start=start, end=end, score=score), in_full


def choice_forms(choice: Any, title: str) -> list[tuple[str, float]]:
    """How people may say a choice: as written, in words, by its title, by a currency's names, by related words."""
    written = str(choice)
    forms = [(fold(spaced(written)), 1.0)]
    if title:
        forms.append((fold(title), 0.95))
    if re.fullmatch(r"[A-Z]{3}", written):
        forms.extend((fold(name), 0.9) for name in names_of(written))
    return forms


def span_of(form: str, passage: Passage) -> tuple[int, int, float] | None:
    """Where the passage says `form`, inflected or misspelt: start, end, closeness."""
    if not form:
        return None
    target = [stem(word) for word in words(form)]
    tokens = passage.tokens
    if not target:
        place = passage.text.find(form)
        return (place, place + len(form), 1.0) if place >= 0 else None
    best: tuple[int, int, float] | None = None
    width = len(target)
    for first in range(len(tokens) - width + 1):
        window = tokens[first : first + width]
        closeness = min(
            _closeness(one, token) for one, (token, _, _) in zip(target, window, strict=True)
        )
        if closeness and (best is None or closeness > best[2]):
            best = (window[0][1], window[-1][2], closeness)
    return best or _main_word(target, tokens)


def _main_word(
    target: list[str], tokens: list[tuple[str, int, int]]
) -> tuple[int, int, float] | None:
    """ "savings" for "savings account", "Ana" for "Ana Costa": a word of a longer name that says something by itself.

    The first word may be misspelt where it is long enough; any other stands for the name only as it is written.
    """
    if len(target) < 2:
        return None
    for place, word in enumerate(target):
        if not is_content(word) or len(word) < _SHORTEST_PART:
            continue
        needed = 0.9 if place == 0 and len(word) >= _SHORTEST_MISSPELT else 1.0
        for token, start, end in tokens:
            if _closeness(word, token) >= needed:
                return start, end, 0.6 if place == 0 else 0.55
    return None


def nearly(one: str, other: str) -> bool:
    """Whether two words differ by a slip of the keyboard."""
    longer = max(len(one), len(other))
    return fuzz.ratio(one, other) >= 84 or (longer >= 5 and OSA.distance(one, other) == 1)


def _closeness(one: str, token: str) -> float:
    folded = fold(token)
    other = stem(folded)
    if one == other:
        return 1.0
    if min(len(one), len(other)) >= 4 and nearly(one, other):
        return 0.85
    if any(other == near and strength >= 0.6 for near, strength in related_stems(one)):
        return 0.6
    return 0.0
