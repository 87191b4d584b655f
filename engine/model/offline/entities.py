"""Names of people, places and things in a message, found by the words before them."""

import re
from collections.abc import Iterator, Sequence

from engine.model.offline.parameters import Role, Wanted
from engine.model.offline.readings import Reading
from engine.wording import (
    COMMON_WEIGHT,
    FRAME_WORDS,
    FUNCTION_WORDS,
    fold,
    stem,
    weight,
)

Token = tuple[str, int, int]

_PREPOSITIONS = frozenset(
    "to for from in at on with by of near about into around via until till between under over called named".split()
)
_DETERMINERS = frozenset("the a an my our your his her their this that some any".split())
_STOP = frozenset(
    "and or but please thanks thank today tomorrow tonight yesterday now then because so if when "
    "while is are was were be "
    "who what where which how asap soon again i you we they he she it me us them want need would like will can could "
    "should may have has had do does did open opened close closed there here instead too also available free possible "
    "still left yet ever ok okay yes yeah no hi hello hey sure well dear sorry lot few exactly".split()
)
_WANTING = frozenset(
    "want wants wanted like need needs have going wish able try trying plan planning how hope hoping "
    "used love prefer wanna "
    "ready possible way time easy hard help".split()
)
_VERBS = frozenset(
    "send pay book order buy cancel change check see find get know make transfer talk speak reserve "
    "return open close move "
    "travel fly go ask tell give show rent order eat learn start stop apply request renew borrow "
    "report block convert".split()
)
_LONGEST = 5
_TITLES = frozenset({"Dr", "Mr", "Mrs", "Ms", "Prof", "St", "dr", "mr", "mrs", "ms", "prof"})
_STREET = re.compile(
    r"\b\d+[a-zA-Z]?\s+(?:[A-Z][\w.'-]+\s?){1,4}|\b(?:[A-Z][\w.'-]+\s){1,3}\d+[a-zA-Z]?\b"
)

_SOURCE = {"from": 1.0}
_TARGET = {"to": 1.0, "for": 0.7, "towards": 0.9, "into": 0.8, "with": 0.4}
_PLACE = {
    "in": 1.0,
    "at": 0.9,
    "near": 0.9,
    "around": 0.8,
    "to": 0.7,
    "for": 0.6,
    "from": 0.5,
    "of": 0.4,
}
_PERSON = {
    "for": 0.9,
    "to": 0.8,
    "with": 0.9,
    "by": 0.9,
    "named": 1.1,
    "called": 1.1,
    "from": 0.5,
    "of": 0.6,
    "of:": 0.6,
}
_TOPIC = {
    "about": 1.1,
    "on": 0.9,
    "for": 0.8,
    "at": 0.8,
    "with": 0.7,
    "from": 0.6,
    "of": 0.5,
    "regarding": 1.1,
}
_TOPIC_WORDS = frozenset(
    "about category kind topic subject keyword keywords term filter matching containing tag".split()
)
_THING = {"with": 0.8, "called": 1.1, "named": 1.1, "about": 0.7, "of": 0.5, "for": 0.5, "on": 0.3}


def entities(
    wanted: Wanted,
    text: str,
    tokens: Sequence[Token],
    *,
    known: frozenset[str],
    taken: Sequence[Reading],
    answering: bool,
) -> Iterator[tuple[int, int, float]]:
    """`(start, end, score)` of names that may fill the parameter.

    `known` are stems of the tool and its guidelines, which name the kind of thing, not the thing.
    `taken` are dates, numbers and addresses; `answering` says that the message answers a question for this.
    """
    free = [not any(r.start < end and start < r.end for r in taken) for _, start, end in tokens]
    cues = _cues(wanted)
    for index, (word, _, _) in enumerate(tokens):
        lowered = word.lower()
        strength = cues.get(lowered, 0.0)
        if _labels(wanted, lowered, index, tokens):
            strength = max(strength, 1.1)
        if strength <= 0 or (lowered == "to" and _is_infinitive(index, tokens)):
            continue
        found = _phrase(index + 1, tokens, free, text)
        if found:
            start, end = found
            score = strength * 0.7 + (0.3 if text[start].isupper() else 0.0)
            yield start, end, score - _misfit(text[start:end], known)
    yield from _introduced(wanted, text)
    yield from _streets(wanted, text)
    if answering:
        yield from _whole_answer(text, tokens, free)
    if wanted.role is Role.NEITHER or not cues:
        yield from _left_over(wanted, tokens, free, known)


def _cues(wanted: Wanted) -> dict[str, float]:
    if wanted.role is Role.SOURCE:
        return _SOURCE
    if wanted.role is Role.TARGET:
        return _TARGET
    if wanted.names_place:
        return _PLACE
    if _TOPIC_WORDS & set(wanted.name_words):
        return _TOPIC
    return _PERSON if wanted.names_person else _THING


def _labels(wanted: Wanted, token: str, index: int, tokens: Sequence[Token]) -> bool:
    """ "title: …", "the city is …": the parameter's own name just before a value."""
    if token not in ("is", ":", "=", "are"):
        return False
    before = [stem(t.lower()) for t, _, _ in tokens[max(0, index - 2) : index]]
    return any(one in wanted.stems for one in before)


def _is_infinitive(index: int, tokens: Sequence[Token]) -> bool:
    before = tokens[index - 1][0].lower() if index else ""
    after = tokens[index + 1][0] if index + 1 < len(tokens) else ""
    return before in _WANTING or (after.lower() in _VERBS and after[:1].islower())


def _phrase(
    index: int, tokens: Sequence[Token], free: Sequence[bool], text: str
) -> tuple[int, int] | None:
    """The name that starts at a token: up to the next preposition, punctuation or number."""
    while index < len(tokens) and tokens[index][0].lower() in _DETERMINERS | {":", "="}:
        index += 1
    first = index
    while index < len(tokens) and index - first < _LONGEST and free[index]:
        word = tokens[index][0]
        lowered = word.lower()
        capital = word[0].isupper()
        if word == "." and index > first and tokens[index - 1][0] in _TITLES:
            index += 1
            continue
        if not word[0].isalnum() or lowered in _STOP:
            break
        joined = lowered in ("of", "the", "de", "la", "von", "van", "del", "di")
        if lowered in _PREPOSITIONS and not (
            joined and index > first and _capital(index + 1, tokens)
        ):
            break
        if index > first and text[tokens[first][1]].isupper() and not capital and not joined:
            break  # a capitalised name ends where the capitals end
        index += 1
    if index == first:
        return None
    start, end = tokens[first][1], tokens[index - 1][2]
    return (start, end) if _names_something(text[start:end]) else None


def _capital(index: int, tokens: Sequence[Token]) -> bool:
    return index < len(tokens) and tokens[index][0][0].isupper()


def _names_something(text: str) -> bool:
    lowered = fold(text).split()
    return any(word not in FUNCTION_WORDS and word not in FRAME_WORDS for word in lowered)


def _misfit(text: str, known: frozenset[str]) -> float:
    """A phrase made only of the tool's own words names the kind of thing ("to my account")."""
    stems = [stem(word) for word in fold(text).split()]
    return 0.5 if stems and all(one in known for one in stems) and not text[0].isupper() else 0.0


_INTRODUCTION = re.compile(
    r"\b(?:my (?:full |first |last )?name is|name's|i am|i'm|this is|call me|"
    r"it's)\s+(?P<name>[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+){0,3})"
)


def _introduced(wanted: Wanted, text: str) -> Iterator[tuple[int, int, float]]:
    if "name" in wanted.name_words or wanted.name_words[-1:] in (
        ["customer"],
        ["patient"],
        ["guest"],
    ):
        for match in _INTRODUCTION.finditer(text):
            yield match.start("name"), match.end("name"), 1.0


def _streets(wanted: Wanted, text: str) -> Iterator[tuple[int, int, float]]:
    if {"street", "address"} & set(wanted.name_words):
        for match in _STREET.finditer(text):
            yield match.start(), match.start() + len(match.group().rstrip()), 1.0


def _whole_answer(
    text: str, tokens: Sequence[Token], free: Sequence[bool]
) -> Iterator[tuple[int, int, float]]:
    """A short message that answers the agent's question, without its lead-in."""
    index = 0
    while index < len(tokens) and (
        tokens[index][0].lower() in _PREPOSITIONS | _DETERMINERS | _STOP | {"it's", "yes", ","}
        or not tokens[index][0][0].isalnum()
    ):
        index += 1
    found = _phrase(index, tokens, free, text)
    if found:
        yield found[0], found[1], 0.8


def _left_over(
    wanted: Wanted,
    tokens: Sequence[Token],
    free: Sequence[bool],
    known: frozenset[str],
) -> Iterator[tuple[int, int, float]]:
    """Runs of words that belong neither to grammar nor to the tool: what is left is what is meant."""
    run: list[int] = []
    for index in range(len(tokens) + 1):
        if index < len(tokens) and free[index] and _is_left(tokens[index][0], index, known):
            run.append(index)
            continue
        if run:
            start, end = tokens[run[0]][1], tokens[run[-1]][2]
            capitals = sum(tokens[i][0][0].isupper() for i in run if i > 0)
            near = _near_label(wanted, run, tokens)
            base = 0.34 + 0.1 * min(2, len(run) - 1)
            yield start, end, base + (0.25 if capitals else 0.0) + near
        run = []


def _is_left(token: str, index: int, known: frozenset[str]) -> bool:
    lowered = fold(token)
    if not lowered or not lowered[0].isalnum() or lowered in _STOP | _VERBS | _PREPOSITIONS:
        return False
    if index and token[0].isupper() and not token.isupper():
        return True
    return (
        weight(lowered) > COMMON_WEIGHT and stem(lowered) not in known and not lowered[0].isdigit()
    )


def _near_label(wanted: Wanted, run: list[int], tokens: Sequence[Token]) -> float:
    around = [*tokens[max(0, run[0] - 2) : run[0]], *tokens[run[-1] + 1 : run[-1] + 2]]
    return 0.3 if any(stem(fold(token)) in wanted.stems for token, _, _ in around) else 0.0
