"""Which values and which calls of two runs of a turn are the same: neither uids nor the order of parallel work tell."""

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, TypeAlias, TypeVar

from engine.canonical import JsonObject, canonical_json
from engine.trail import ToolDecision

Item = TypeVar("Item")
Pair: TypeAlias = tuple[Item | None, Item | None]
"""(before, after); at least one of them is there."""


def same_json(left: Any, right: Any) -> bool:
    """Are two JSON values the same? 1 and 1.0 are; 1 and true are not; the order of keys does not count."""
    # The cheap look first: two runs mostly have the same, written in the same order.
    return repr(left) == repr(right) or comparable(left) == comparable(right)


def comparable(value: Any) -> str:
    """One text for all JSON values that are the same."""
    text = canonical_json(value)
    if not _MAYBE_FRACTION.search(text):
        return text
    return canonical_json(json.loads(text, parse_float=_number))


_MAYBE_FRACTION = re.compile(r"\d[.e]")


def _number(text: str) -> int | float:
    # By the digits as written, as databases that keep JSON write large numbers.
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(text)


def values_of(decision: ToolDecision) -> JsonObject:
    """The arguments of the call that was decided about: name → value."""
    return {argument.name: argument.value for argument in decision.arguments}


def shared(before: JsonObject | None, after: JsonObject | None) -> JsonObject:
    """The arguments of the only side that there is, or those that both sides have alike."""
    if before is None or after is None:
        return before or after or {}
    return {
        name: value
        for name, value in before.items()
        if name in after and same_json(value, after[name])
    }


def paired(
    before: Sequence[Item], after: Sequence[Item], arguments_of: Callable[[Item], JsonObject]
) -> list[Pair[Item]]:
    """Each item once: those with the same arguments together, then those with the most in common, then by order.

    What is left over on one side stands alone. Pairs come in the order of `before`, then of `after`.
    """
    if len(before) == len(after) == 1:  # as nearly always
        return [(before[0], after[0])]
    old, new = ([_told(arguments_of(item)) for item in side] for side in (before, after))
    places = product(range(len(old)), range(len(new)))
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for i, j in sorted(places, key=lambda place: _distance(old[place[0]], new[place[1]])):
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    found: list[Pair[Item]] = [
        (item, after[partner[i]] if i in partner else None) for i, item in enumerate(before)
    ]
    return found + [(None, item) for j, item in enumerate(after) if j not in taken]


_Told: TypeAlias = set[tuple[str, str]]
"""Arguments as (name, comparable value)."""


def _told(arguments: JsonObject) -> _Told:
    return {(name, comparable(value)) for name, value in arguments.items()}


def _distance(left: _Told, right: _Told) -> tuple[bool, int]:
    return left != right, -len(left & right)
