"""Values for a parameter in what the customer wrote."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from engine.arguments import reason_against
from engine.model.offline.choices import choices, span_of
from engine.model.offline.entities import entities
from engine.model.offline.parameters import Role, Sort, Wanted
from engine.model.offline.passage import Candidate, Passage, cue, role_cue
from engine.model.offline.readings import Kind, Reading, currencies, numbers
from engine.model.offline.results import spaced
from engine.model.offline.speech_acts import acts_of
from engine.wording import fold, is_content, stem, words

_NEGATION = re.compile(r"\b(?:no|not|without|don'?t|doesn'?t|never|non|skip|exclude|excluding)\b")
_YES = re.compile(r"^\W*(?:yes|yeah|yep|yup|sure|ok|okay|please|true|right|correct|of course)\b")
_NO = re.compile(r"^\W*(?:no|nope|nah|false|not)\b")
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|as i|reason is|the problem is|the issue is)\b[\s:]*(?P<why>.+)",
    re.IGNORECASE | re.DOTALL,
)
_EVIDENCE_LIMIT = 300


def candidates(wanted: Wanted, passage: Passage) -> list[Candidate]:
    """Values for the parameter in the passage, best first, each of the parameter's JSON type.

    A value may break the parameter's bounds or choices where the customer plainly means it: somebody should hear of it.
    """
    found = [c for c in _BY_SORT[wanted.sort](wanted, passage) if c.score >= _LEAST_SCORE]
    judged = [_weighed(wanted, candidate) for candidate in found]
    kept = [candidate for candidate in judged if candidate is not None]
    if not kept and (answer := _wrong_answer(wanted, passage)):
        return [answer]
    return sorted(kept, key=lambda c: (-c.score, c.start))


_LEAST_SCORE = 0.3


def _weighed(wanted: Wanted, candidate: Candidate) -> Candidate | None:
    if not reason_against(wanted.schema, candidate.value):
        return candidate
    numeric = wanted.schema.get("type") in ("integer", "number")
    if wanted.sort not in (Sort.NUMBER, Sort.IDENTIFIER) or "type" not in wanted.schema:
        return None
    if reason_against({"type": "number" if numeric else wanted.schema["type"]}, candidate.value):
        return None
    return replace(candidate, score=candidate.score - 0.3)


def _wrong_answer(wanted: Wanted, passage: Passage) -> Candidate | None:
    """A short answer to the question for this very text that does not fit, so that the customer learns why."""
    text = passage.text.strip()
    is_text = wanted.schema.get("type") == "string" or (
        bool(wanted.choices) and all(isinstance(choice, str) for choice in wanted.choices)
    )
    asked = passage.asked_for == 1 and passage.answers(wanted) and passage.is_brief
    if not text or "?" in text or not is_text or not asked or wanted.sort in _NEVER_WRONG:
        return None
    if not any(is_content(word) for word in words(text)) or acts_of(text):
        return None
    start = passage.text.find(text)
    value = text.rstrip(".!")
    return Candidate(value=value, start=start, end=start + len(value), score=0.35)


_NEVER_WRONG = frozenset({Sort.FREE_TEXT, Sort.NAME, Sort.IDENTIFIER})


def _numbers(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    for reading in passage.numbers:
        value = reading.value
        score = 0.5 + cue(wanted, passage, reading.start, reading.end) + _unit(wanted, reading)
        yield Candidate(value=value, start=reading.start, end=reading.end, score=score)
    if _counts_time(wanted):
        for reading in passage.durations:
            number = next((n for n in numbers(passage.text[reading.start : reading.end])), None)
            if number and stem(reading.unit) in wanted.stems:
                yield Candidate(value=number.value, start=reading.start, end=reading.end, score=1.2)


def _counts_time(wanted: Wanted) -> bool:
    return bool(wanted.stems & {"day", "night", "week", "month", "year", "hour", "minut", "second"})


_TIME_UNITS = frozenset(
    "day days night nights week weeks month months year years hour hours minute minutes am pm".split()
)


def _unit(wanted: Wanted, reading: Reading) -> float:
    unit = reading.unit
    if unit.isupper() and len(unit) == 3:
        return 0.6 if wanted.is_money else (-0.35 if wanted.is_count else 0.1)
    if unit == "%":
        return 0.6 if wanted.stems & {"percent", "percentag", "rate", "discount", "share"} else -0.2
    one = stem(unit) if unit else ""
    if one and one in wanted.stems:
        return 1.0
    if one and one in wanted.related | wanted.described:
        return 0.6
    if unit in _TIME_UNITS:
        return -0.4
    if unit and is_content(unit) and wanted.is_count:
        return 0.3
    return 0.0


def _typed(kind: Kind, source: str) -> Callable[[Wanted, Passage], Iterator[Candidate]]:
    def find(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
        for reading in getattr(passage, source):
            if reading.kind is kind:
                score = 0.8 + 0.5 * cue(wanted, passage, reading.start, reading.end)
                score += _span_role(wanted, passage, reading)
                yield Candidate(
                    value=reading.value, start=reading.start, end=reading.end, score=score
                )

    return find


_ENDS = re.compile(r"\b(?:end|until|till|return|checkout|check out|to|last|due|through)\b")
_STARTS = re.compile(r"\b(?:start|from|begin|checkin|check in|first|since|departure|depart)\b")


def _span_role(wanted: Wanted, passage: Passage, reading: Reading) -> float:
    """Start and end of a span of time: by "from" and "until"."""
    name = spaced(wanted.name)
    before, _ = passage.around(reading.start, reading.end)
    near = set(before[:2])
    if _ENDS.search(name):
        return 0.4 if near & {"until", "till", "to", "through", "and", "-", "–", "back"} else -0.2
    if _STARTS.search(name):
        return -0.4 if near & {"until", "till", "to", "through"} else 0.2
    return 0.0


def _moments(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    """A date with its time; a date alone is not enough for a moment."""
    yield from _typed(Kind.MOMENT, "moments")(wanted, passage)


def _dates(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    found = list(_typed(Kind.DATE, "moments")(wanted, passage))
    yield from found or _typed(Kind.DATE, "foreign_dates")(wanted, passage)


def _phone(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    yield from _typed(Kind.PHONE, "simple")(wanted, passage)


def _identifiers(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    integer = wanted.schema.get("type") == "integer"
    for reading in passage.simple:
        if reading.kind in (Kind.IDENTIFIER, Kind.UUID, Kind.QUOTED):
            value = int(reading.value) if integer and reading.value.isdigit() else reading.value
            plain = reading.kind is not Kind.QUOTED and " " not in reading.value
            score = 0.75 if plain else 0.5
            yield _identified(wanted, passage, value, reading.start, reading.end, score)
    for match in re.finditer(r"(?<![\w.,$€£#-])\d+(?![\w%€$£]|[.,]\d|-\d)", passage.text):
        digits = match.group()
        score = 0.55 if len(digits) >= 4 else 0.2
        if passage.answers(wanted) and passage.is_brief and passage.asked_for == 1:
            score += 0.4
        value = int(digits) if integer else digits
        yield _identified(wanted, passage, value, match.start(), match.end(), score)


def _identified(
    wanted: Wanted, passage: Passage, value: Any, start: int, end: int, score: float
) -> Candidate:
    score += 0.6 * cue(wanted, passage, start, end)
    pattern = wanted.schema.get("pattern")
    shapes = {_shape(str(example)) for example in wanted.parameter.examples}
    if pattern:
        score += 0.4 if re.search(pattern, str(value)) else -0.3
    elif shapes:
        score += 0.4 if _shape(str(value)) in shapes else 0.0
    return Candidate(value=value, start=start, end=end, score=score)


def _shape(text: str) -> str:
    return re.sub(r"\d+", "9", re.sub(r"[A-Za-z]+", "a", re.sub(r"\s+", "", text)))


def _currencies(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    for code, start, end in currencies(passage.text):
        score = 0.7 + role_cue(wanted, passage.around(start, end)[0])
        if re.search(r"\d\s*$", passage.text[:start]) or re.match(r"\s*\d", passage.text[end:]):
            score += {Role.SOURCE: 0.5, Role.TARGET: -0.5, Role.NEITHER: 0.2}[wanted.role]
        yield Candidate(value=code, start=start, end=end, score=score)


def _booleans(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    for token, start, end in passage.tokens:
        if stem(fold(token)) in wanted.stems:
            before = passage.text[max(0, start - 25) : start]
            value = not _NEGATION.search(fold(before))
            opening = passage.text[:start].rfind(before.split()[-1]) if before.split() else start
            yield Candidate(
                value=value, start=start if value else max(0, opening), end=end, score=0.9
            )
    if passage.answers(wanted):
        folded = fold(passage.text)
        for pattern, value in ((_YES, True), (_NO, False)):
            if match := pattern.match(folded):
                yield Candidate(value=value, start=match.start(), end=match.end(), score=1.0)


def _free_text(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    text = passage.text.strip()
    if not text:
        return
    start = passage.text.find(text)
    end = start + min(len(text), _EVIDENCE_LIMIT)
    for reading in passage.simple:
        if reading.kind is Kind.QUOTED and not wanted.wants_reason:
            yield Candidate(value=reading.value, start=reading.start, end=reading.end, score=0.9)
    if wanted.wants_reason:
        if match := _BECAUSE.search(passage.text):
            why = match["why"].strip(" .")
            begin = match.start("why")
            stop = begin + min(len(why), _EVIDENCE_LIMIT)
            yield Candidate(value=why, start=begin, end=stop, score=1.0)
        if not passage.answers(wanted) and not _says_more(passage):
            return
    yield Candidate(value=text, start=start, end=end, score=0.6)


def _says_more(passage: Passage) -> bool:
    """Whether a text tells more than the bare wish for the tool."""
    said = {stem(word) for word in words(passage.text) if is_content(word)}
    return len(said - passage.known) >= 3


def _names(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    taken = [*passage.moments, *passage.numbers, *passage.durations]
    taken += [r for r in passage.simple if r.kind in (Kind.EMAIL, Kind.URL, Kind.UUID, Kind.PHONE)]
    for reading in passage.simple:
        if reading.kind is Kind.QUOTED:
            yield Candidate(value=reading.value, start=reading.start, end=reading.end, score=1.1)
    for example in wanted.parameter.examples:
        span = span_of(fold(example), passage) if isinstance(example, str) else None
        if span:
            start, end, closeness = span
            yield Candidate(value=passage.text[start:end], start=start, end=end, score=closeness)
    answering = passage.answers(wanted) and passage.is_brief
    for start, end, score in entities(
        wanted, passage.text, passage.tokens, known=passage.known, taken=taken, answering=answering
    ):
        value = passage.text[start:end]
        yield Candidate(value=value, start=start, end=end, score=score)


def _lists(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    items = wanted.schema.get("items")
    if not isinstance(items, dict):
        return
    one = wanted.field(wanted.name.removesuffix("s"), items, required=True)
    found: list[Candidate] = []
    for candidate in candidates(one, passage):
        apart = all(candidate.end <= o.start or o.end <= candidate.start for o in found)
        if apart and candidate.score >= 0.45 and candidate.value not in [o.value for o in found]:
            found.extend(_split_list(candidate, passage) if one.sort is Sort.NAME else [candidate])
    if found:
        found.sort(key=lambda c: c.start)
        yield Candidate(
            value=[candidate.value for candidate in found],
            start=found[0].start,
            end=found[-1].end,
            score=sum(candidate.score for candidate in found) / len(found),
        )


def _split_list(candidate: Candidate, passage: Passage) -> list[Candidate]:
    """ "ham, olives and mushrooms" as three; the list goes on after the first name."""
    rest = passage.text[candidate.end :]
    more = re.match(
        r"(?:\s*,\s*(?:and\s+)?\w[\w' -]*?)*(?:\s*,?\s+and\s+\w[\w'-]*)?(?=[.?!;,]|$|\s+(?:on|to|for|please)\b)",
        rest,
    )
    end = candidate.end + (more.end() if more else 0)
    parts = []
    for match in re.finditer(r"(?:(?!\s*,|\s+and\s).)+", passage.text[candidate.start : end]):
        part = re.sub(r"^[\s,]*(?:and\s+)?", "", match.group())
        start = candidate.start + match.end() - len(part)
        if part.strip():
            parts.append(
                Candidate(
                    value=part.strip(),
                    start=start,
                    end=start + len(part.strip()),
                    score=candidate.score,
                )
            )
    return parts or [candidate]


def _objects(wanted: Wanted, passage: Passage) -> Iterator[Candidate]:
    properties = wanted.schema.get("properties", {})
    required = set(wanted.schema.get("required", ()))
    value: dict[str, Any] = {}
    used: list[Candidate] = []
    for name, schema in properties.items():
        part = wanted.field(name, schema, required=name in required)
        for candidate in candidates(part, passage):
            if all(candidate.end <= o.start or o.end <= candidate.start for o in used):
                value[name] = candidate.value
                used.append(candidate)
                break
    if used and required <= value.keys():
        yield Candidate(
            value=value,
            start=min(candidate.start for candidate in used),
            end=max(candidate.end for candidate in used),
            score=sum(candidate.score for candidate in used) / len(used),
        )


_BY_SORT: dict[Sort, Callable[[Wanted, Passage], Iterator[Candidate]]] = {
    Sort.CHOICE: choices,
    Sort.BOOLEAN: _booleans,
    Sort.NUMBER: _numbers,
    Sort.EMAIL: _typed(Kind.EMAIL, "simple"),
    Sort.UUID: _typed(Kind.UUID, "simple"),
    Sort.URL: _typed(Kind.URL, "simple"),
    Sort.DATE: _dates,
    Sort.TIME: _typed(Kind.TIME, "moments"),
    Sort.MOMENT: _moments,
    Sort.DURATION: _typed(Kind.DURATION, "durations"),
    Sort.CURRENCY: _currencies,
    Sort.IDENTIFIER: _identifiers,
    Sort.PHONE: _phone,
    Sort.FREE_TEXT: _free_text,
    Sort.NAME: _names,
    Sort.LIST: _lists,
    Sort.OBJECT: _objects,
}
