"""What came of the same calls in two runs of a turn."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TypeAlias

from engine.canonical import JsonObject
from engine.replaying.difference import Difference, DifferenceKind
from engine.replaying.pairing import comparable, same_json, shared, values_of
from engine.trail import DecisionState, ToolCall
from engine.turn_record import TurnRecord

_Key: TypeAlias = tuple[str, str]
"""(tool, its arguments as comparable text, defaults included)"""


def results(
    before: TurnRecord, after: TurnRecord, place: Callable[[str], tuple[int, str]]
) -> Iterator[Difference]:
    """Of calls of the same tool with the same arguments, named under the first guideline in `place` that asked.

    A call that only one run made is a difference of decisions, unless both had decided to make it.
    """
    old, new = _calls(before), _calls(after)
    for key in sorted(old | new):
        for left, right in zip_longest(old.get(key, []), new.get(key, [])):
            if left is None or right is None:
                if not (_is_decided(before, key) and _is_decided(after, key)):
                    continue
            elif same_json(_outcome(left), _outcome(right)):
                continue
            made = [call for call in (left, right) if call is not None]
            yield Difference(
                kind=DifferenceKind.RESULT,
                guideline=min(
                    (uid for call in made for uid in call.guidelines), key=place, default=""
                ),
                tool=key[0],
                arguments=shared(
                    None if left is None else left.arguments,
                    None if right is None else right.arguments,
                ),
                iteration=min(call.iteration for call in made),
                before=None if left is None else _outcome(left),
                after=None if right is None else _outcome(right),
            )


def _calls(record: TurnRecord) -> dict[_Key, list[ToolCall]]:
    """Those of one key by iteration."""
    decided = {decision.call: values_of(decision) for decision in record.decisions}
    found: dict[_Key, list[ToolCall]] = {}
    for call in sorted(record.calls, key=lambda call: call.iteration):
        key = (call.tool, comparable(decided.get(call.uid, call.arguments)))
        found.setdefault(key, []).append(call)
    return found


def _is_decided(record: TurnRecord, key: _Key) -> bool:
    return any(
        decision.state is DecisionState.NEEDS_TO_RUN
        and (decision.tool, comparable(values_of(decision))) == key
        for decision in record.decisions
    )


def _outcome(call: ToolCall) -> JsonObject:
    """All that the turn saw of it, without what is for front ends and for developers only."""
    if call.error is not None:
        error = call.error
        return {"state": call.state.value, "error": error.kind.value, "public": error.public}
    seen = {name: part for name, part in (call.result or {}).items() if name != "metadata"}
    return {"state": call.state.value, **seen}
