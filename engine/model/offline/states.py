"""Conditions on what a tool result says in words: "the order is late", "no rooms are available", "nothing is found"."""

import re
from collections.abc import Sequence

from engine.events import ToolFinishedEvent
from engine.model.offline.comparisons import Finding
from engine.model.offline.results import Leaf, empty, key_stems
from engine.wording import fold, is_content, related_stems, stem, words

_EMPTY = re.compile(
    r"\b(?:empty|nothing|no results?|not found|none (?:is|are|was|were)|cannot be found|can't be found|"
    r"could not be found|"
    r"no match(?:es)?|without results?|does not exist|do not exist)\b"
)
_NONE_OF = re.compile(r"\b(?:no|zero|not any|not a single)\s+(?P<noun>[a-z]+)\b")
_FAILED = re.compile(
    r"\b(?:fails?|failed|error|errors|times? out|timed out|unavailable service|cannot be reached)\b"
)
_NEGATED = re.compile(r"\b(?:not|no|isn't|aren't|wasn't|hasn't|n't|never|without)\b")
_OF_RESULT = re.compile(
    r"\b(?:results?|tool|search|lookup|look up|query|call|data|list|response)\b"
)
_FALSE_WORDS = frozenset("not no non un never false".split())
_ENOUGH = 0.6


def check_states(
    condition: str,
    leaves: Sequence[Leaf],
    results: Sequence[ToolFinishedEvent],
    failures: Sequence[ToolFinishedEvent],
) -> Finding | None:
    """Whether this turn's results say what the condition says; None when they do not speak of it."""
    folded = fold(condition)
    if (
        _FAILED.search(folded)
        and (failures or results)
        and _speaks_of_tools(folded, results, failures)
    ):
        return _failed(failures)
    if finding := _emptiness(folded, results):
        return finding
    return _stated(folded, leaves)


def _speaks_of_tools(
    folded: str, results: Sequence[ToolFinishedEvent], failures: Sequence[ToolFinishedEvent]
) -> bool:
    if _OF_RESULT.search(folded):
        return True
    said = {stem(word) for word in words(folded)}
    return any(said & key_stems(event.tool) for event in (*results, *failures))


def _failed(failures: Sequence[ToolFinishedEvent]) -> Finding:
    if failures:
        return Finding(holds=True, because=f"{failures[0].tool} failed in this turn.")
    return Finding(holds=False, because="No tool failed in this turn.")


def _emptiness(folded: str, results: Sequence[ToolFinishedEvent]) -> Finding | None:
    none_of = _NONE_OF.search(folded)
    if not (_EMPTY.search(folded) or none_of):
        return None
    said = {stem(word) for word in words(folded) if is_content(word)}
    for event in results:
        if not (_OF_RESULT.search(folded) or _names_tool(event, said)):
            continue
        noun = stem(none_of["noun"]) if none_of else ""
        data = _part(event.data, noun)
        if empty(data) or data == 0:
            return Finding(holds=True, because=f"The result of {event.tool} is empty.")
        return Finding(holds=False, because=f"The result of {event.tool} is not empty.")
    return None


def _names_tool(event: ToolFinishedEvent, said: set[str]) -> bool:
    names = key_stems(event.tool)
    if isinstance(event.data, dict):
        names |= key_stems(*map(str, event.data))
    return bool(said & names)


def _part(data: object, noun: str) -> object:
    if isinstance(data, dict) and noun:
        for key, value in data.items():
            if noun in key_stems(str(key)) and isinstance(value, list | int | dict):
                return value
    return data


def _stated(folded: str, leaves: Sequence[Leaf]) -> Finding | None:
    """A text or a yes/no field that says the condition's predicate, under names that fit its subject."""
    said = [stem(word) for word in words(folded) if is_content(word)]
    if not said:
        return None
    negated = bool(_NEGATED.search(folded))
    around: dict[str, set[str]] = {}  # what the fields beside a leaf are called
    for leaf in leaves:
        around.setdefault(_parent(leaf), set()).update(key_stems(leaf.key))
    best: tuple[float, Leaf, bool] | None = None
    for leaf in leaves:
        spoken, agrees = _spoken(leaf)
        if not spoken:
            continue
        by_value = {one for one in said if _means(one, spoken)}
        if not by_value:
            continue
        named = key_stems(*leaf.keys, leaf.tool) | around[_parent(leaf)]
        covered = by_value | {one for one in said if _means(one, named)}
        share = len(covered) / len(said)
        if share >= _ENOUGH and (best is None or share > best[0]):
            best = (share, leaf, agrees)
    if best is None:
        return None
    _, leaf, agrees = best
    holds = agrees is not negated
    return Finding(holds=holds, because=f"{leaf.path} is {_shown(leaf.value)}.")


def _parent(leaf: Leaf) -> str:
    return leaf.path.rpartition(".")[0]


def _spoken(leaf: Leaf) -> tuple[set[str], bool]:
    """The stems a leaf asserts, and whether it asserts or denies them."""
    if isinstance(leaf.value, bool):
        return key_stems(leaf.key), leaf.value
    if isinstance(leaf.value, str) and 0 < len(leaf.value) <= 80:
        said = words(leaf.value.replace("_", " ").replace("-", " "))
        denied = any(word in _FALSE_WORDS for word in said)
        return {stem(word) for word in said if is_content(word)}, not denied
    return set(), True


def _means(one: str, others: set[str]) -> bool:
    if one in others:
        return True
    return any(other in others and strength >= 0.45 for other, strength in related_stems(one))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"“{str(value)[:60]}”"
