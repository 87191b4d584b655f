"""Values for a parameter in earlier tool results and in what is known of the customer."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.arguments import reason_against
from engine.canonical import JsonObject
from engine.events import ToolFinishedEvent
from engine.model.offline.choices import nearly
from engine.model.offline.parameters import Role, Sort, Wanted
from engine.model.offline.rendering import AMOUNT_KEY
from engine.model.offline.results import (
    Leaf,
    is_identifier,
    is_internal_id,
    key_stems,
    leaves,
    records,
    spaced,
)
from engine.trail import ArgumentSource
from engine.wording import fold, related_stems, stem, weight, words

_ORDINALS = {
    "first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "fifth": 4, "5th": 4,
    "last": -1, "latter": -1, "former": 0,
}  # fmt: skip
_ORDINAL = re.compile(
    rf"\b(?:the\s+)?(?P<word>{'|'.join(_ORDINALS)})\b(?!\s+(?:name|time|week|month|year|night))"
)
_NUMBERED = re.compile(r"\b(?:number|no\.?|option|item|#)\s*(?P<number>\d{1,2})\b")
_SUPERLATIVES = (
    (
        re.compile(
            r"\b(?:cheape(?:st|r)|(?:least|less) expensive|lowe(?:st|r)|smalle(?:st|r)|shorte(?:st|r)|fewest)\b"
        ),
        min,
    ),
    (
        re.compile(
            r"\b(?:(?:most|more) expensive|pricie(?:st|r)|highe(?:st|r)|bigge(?:st|r)|large(?:st|r)|"
            r"longe(?:st|r)|best)\b"
        ),
        max,
    ),
)
_TIMED = (
    (re.compile(r"\b(?:earlie(?:st|r)|olde(?:st|r)|soone(?:st|r)|next)\b"), min),
    (re.compile(r"\b(?:lat(?:est|er)|newe(?:st|r)|most recent)\b"), max),
)
_POINTING = re.compile(
    r"\b(?:it|that|this|them|those|these|one|same|there)\b|^\W*(?:yes|ok|okay|sure|please do)\b"
)
_ROLE_WORDS = frozenset(
    "from to source target destination base quote sender recipient new old current".split()
)
_LONGEST_NAME = 80
_SIMILAR = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A value found elsewhere than in the customer's words, and how surely it is meant (1 is sure)."""

    value: Any
    source: ArgumentSource
    evidence: str
    score: float


def in_variables(wanted: Wanted, variables: JsonObject) -> Reference | None:
    """The customer variable of the parameter's name, or of a name that says the same."""
    best: Reference | None = None
    own = _core(wanted.name)
    for name, value in _flat(variables):
        their = _core(name)
        if name.lower() == wanted.name.lower():
            score = 1.0
        elif own and own == their:
            score = 0.8
        elif len(own) > 1 and own <= their | key_stems("customer"):
            score = 0.6
        else:
            continue
        if not reason_against(wanted.schema, value) and (best is None or score > best.score):
            best = Reference(
                value=value, source=ArgumentSource.VARIABLE, evidence=name, score=score
            )
    return best


def _flat(variables: JsonObject) -> Iterable[tuple[str, Any]]:
    for name, value in variables.items():
        yield name, value
        if isinstance(value, dict):
            for key, inner in value.items():
                yield f"{name}.{key}", inner


def _core(name: str) -> set[str]:
    return {
        stem(word) for word in words(spaced(name)) if word not in ("customer", "user", "my", "the")
    }


def in_results(
    wanted: Wanted,
    calls: Sequence[tuple[int, ToolFinishedEvent]],
    text: str,
    *,
    lenient: bool = True,
) -> Reference | None:
    """A field of a result, newest call first: of the record that the customer points at, or by its name.

    `lenient` is for tools that change nothing: a field of the parameter's name will do without being pointed at, and
    an amount may come from a field of a similar name ("convert it": the balance).
    """
    for offset, event in reversed(calls):
        found = _in_records(wanted, event, text) or _in_fields(wanted, offset, event, text, lenient)
        if found is not None:
            return found
    return None


def _in_records(wanted: Wanted, event: ToolFinishedEvent, text: str) -> Reference | None:
    rows = [
        (path, record, key)
        for path, keys, record in records(event)
        if (key := _matching_key(wanted, record, (*keys, event.tool)))
    ]
    if not rows:
        return None
    chosen = _pointed_at([record for _, record, _ in rows], text)
    if chosen is None:
        if len(rows) > 1 or not _POINTING.search(fold(text)):
            return None
        chosen = 0
    path, record, key = rows[chosen]
    if reason_against(wanted.schema, record[key]):
        return None
    return Reference(
        value=record[key], source=ArgumentSource.RESULT, evidence=f"{path}.{key}", score=0.75
    )


def _matching_key(wanted: Wanted, record: dict[str, Any], above: tuple[str, ...]) -> str:
    """The key of the record that holds what the parameter wants: same name, or the record's own id."""
    by_name = {spaced(str(key)): str(key) for key in record}
    name = spaced(wanted.name)
    if name in by_name:
        return by_name[name]
    kind = key_stems(wanted.name) - key_stems("id", "code", "number", "ref", "reference", "key")
    around = key_stems(*above)
    plain = " ".join(word for word in name.split() if word not in _ROLE_WORDS)
    if plain in by_name and plain != name:
        return by_name[plain]
    if wanted.sort is Sort.IDENTIFIER and (not kind or kind & _with_related(around)):
        last = name.split()[-1] if name else "id"
        for candidate in (last, "id", "uid", "code", "number", "reference"):
            if candidate in by_name:
                return by_name[candidate]
    if wanted.sort is Sort.NAME and kind & _with_related(around):
        return next((by_name[key] for key in ("name", "title", "id") if key in by_name), "")
    return ""


def _with_related(stems: set[str]) -> set[str]:
    return stems | {other for one in stems for other, _ in related_stems(one)}


def points_at_record(calls: Sequence[tuple[int, ToolFinishedEvent]], text: str) -> bool:
    """Whether the text picks one of the records that the newest result with records lists."""
    for _, event in reversed(calls):
        rows = [record for _, _, record in records(event)]
        if rows:
            return _pointed_at(rows, text) is not None
    return False


def _pointed_at(rows: list[dict[str, Any]], text: str) -> int | None:
    """The index of the one record that the text means, by name, superlative or place in the list."""
    folded = fold(text)
    by_name = _by_name(rows, folded)
    if by_name is not None:
        return by_name
    for pairs, timed in ((_SUPERLATIVES, False), (_TIMED, True)):
        for pattern, choose in pairs:
            if pattern.search(folded):
                return _extreme(rows, choose, timed=timed)
    if match := _NUMBERED.search(folded):
        place = int(match["number"]) - 1
        return place if 0 <= place < len(rows) else None
    if match := _ORDINAL.search(folded):
        place = _ORDINALS[match["word"]]
        return place % len(rows) if -len(rows) <= place < len(rows) else None
    return None


def _by_name(rows: list[dict[str, Any]], folded: str) -> int | None:
    said = {word for word in words(folded) if weight(word) > 0.5 or word.isdigit()}
    scores = [max((_named(value, said) for value in row.values()), default=0.0) for row in rows]
    best = max(scores, default=0.0)
    if best < 0.3 or scores.count(best) != 1:
        return None
    return scores.index(best)


def _named(value: Any, said: set[str]) -> float:
    """How much of a record's text the customer said."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        return 0.0
    parts = [word for word in words(value.replace("_", " ")) if weight(word) > 0.05]
    if not parts:
        return 0.0
    hits = sum(_is_said(part, said) for part in parts)
    return hits / len(parts)


def _is_said(part: str, said: set[str]) -> bool:
    if part in said:
        return True
    one = stem(part)
    return any(
        stem(word) == one or (min(len(word), len(part)) >= 4 and nearly(word, part))
        for word in said
    )


def _extreme(rows: list[dict[str, Any]], choose: Any, *, timed: bool) -> int | None:
    for key in rows[0]:
        values = [row.get(str(key)) for row in rows]
        if timed:
            fits = all(
                isinstance(v, str) and re.match(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}", v) for v in values
            )
        else:
            fits = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if fits and not is_identifier(str(key)):
            best = choose(values)
            return values.index(best) if values.count(best) == 1 else None
    return None


def _in_fields(
    wanted: Wanted, offset: int, event: ToolFinishedEvent, text: str, lenient: bool
) -> Reference | None:
    """A field outside lists that has the parameter's name, or is the one amount that it can mean."""
    if wanted.sort in (Sort.FREE_TEXT, Sort.BOOLEAN, Sort.LIST, Sort.OBJECT):
        return None
    best: Reference | None = None
    for leaf in leaves(offset, event):
        if "[" in leaf.path or leaf.value is None or reason_against(wanted.schema, leaf.value):
            continue
        score = _same_meaning(wanted, leaf)
        sure = score > _SIMILAR and (lenient or wanted.sort is Sort.IDENTIFIER)
        if not sure and not ((lenient or score > _SIMILAR) and _is_meant(leaf, text)):
            continue
        if score and (best is None or score > best.score):
            best = Reference(
                value=leaf.value, source=ArgumentSource.RESULT, evidence=leaf.path, score=score
            )
    return best


def _same_meaning(wanted: Wanted, leaf: Leaf) -> float:
    name, key = spaced(wanted.name), spaced(leaf.key)
    if name == key and not (key == "id" and not key_stems(leaf.tool) & wanted.stems):
        return 0.75
    kind = key_stems(wanted.name) - key_stems("id")
    if wanted.sort is Sort.IDENTIFIER:
        own = is_internal_id(leaf.key) and key in ("id", "uid", "uuid")
        return 0.7 if own and kind & key_stems(*leaf.keys[:-1], leaf.tool) else 0.0
    plain = " ".join(word for word in name.split() if word not in _ROLE_WORDS)
    if plain == key and wanted.role is not Role.TARGET:
        return 0.6
    amount = wanted.is_money and isinstance(leaf.value, int | float)
    if amount and not is_identifier(leaf.key) and AMOUNT_KEY.search(key):
        return _SIMILAR
    return 0.0


def _is_meant(leaf: Leaf, text: str) -> bool:
    """Whether the customer names the field, or points at what was just said."""
    folded = fold(text)
    said = {stem(word) for word in words(folded)}
    pointing = _POINTING.search(folded) or re.match(r"\W*(?:and|in|what about|how about)\b", folded)
    return bool(said & key_stems(leaf.key)) or bool(pointing)
