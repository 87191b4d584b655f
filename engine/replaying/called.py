"""Tools in two runs of a turn: what was confirmed, what was decided, and what the calls were to be made with."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.canonical import JsonObject
from engine.events import ConfirmationAnsweredEvent
from engine.replaying.difference import Difference, DifferenceKind
from engine.replaying.pairing import Pair, comparable, paired, same_json, shared, values_of
from engine.trail import Argument, DecisionState, ToolDecision
from engine.turn_record import TurnRecord

# --- confirmations -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    event: ConfirmationAnsweredEvent
    arguments: JsonObject

    def to_json(self) -> JsonObject:
        return {"answer": self.event.answer.value}


def confirmations(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    """What the customer's word on each call was taken for, tool by tool."""
    old, new = _answers(before), _answers(after)
    for tool in old | new:
        for left, right in paired(old.get(tool, []), new.get(tool, []), lambda a: a.arguments):
            answers = [None if side is None else side.to_json() for side in (left, right)]
            if answers[0] != answers[1]:
                yield Difference(
                    kind=DifferenceKind.CONFIRMATION,
                    tool=tool,
                    arguments=shared(
                        None if left is None else left.arguments,
                        None if right is None else right.arguments,
                    ),
                    before=answers[0],
                    after=answers[1],
                    before_because="" if left is None else left.event.because,
                    after_because="" if right is None else right.event.because,
                )


def _answers(record: TurnRecord) -> dict[str, list[_Answer]]:
    """Tool → the last answer about each of its calls, with the arguments where the turn decided on them."""
    last = {e.call: e for e in record.events if isinstance(e, ConfirmationAnsweredEvent)}
    if not last:
        return {}
    known = {d.call: values_of(d) for d in record.decisions}
    found: dict[str, list[_Answer]] = {}
    for uid, event in last.items():
        answer = _Answer(event=event, arguments=known.get(uid, {}))
        found.setdefault(event.tool, []).append(answer)
    return found


# --- decisions and arguments -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What two runs decided about one call of a tool under one guideline, by its lasting uid."""

    guideline: str
    tool: str
    before: ToolDecision | None
    after: ToolDecision | None

    def differs(
        self,
        kind: DifferenceKind,
        before: JsonObject | None,
        after: JsonObject | None,
        parameter: str = "",
    ) -> Difference:
        sides = (self.before, self.after)
        return Difference(
            kind=kind,
            guideline=self.guideline,
            tool=self.tool,
            parameter=parameter,
            arguments=shared(*(None if d is None else values_of(d) for d in sides)),
            iteration=min(d.iteration for d in sides if d is not None),
            before=before,
            after=after,
            before_because="" if self.before is None else self.before.because,
            after_because="" if self.after is None else self.after.because,
        )


def paired_decisions(before: TurnRecord, after: TurnRecord) -> list[Decided]:
    old, new = _by_asker(before), _by_asker(after)
    return [
        Decided(guideline=guideline, tool=tool, before=left, after=right)
        for guideline, tool in sorted(old | new)
        for left, right in _matched(old.get((guideline, tool), []), new.get((guideline, tool), []))
    ]


def _by_asker(record: TurnRecord) -> dict[tuple[str, str], list[ToolDecision]]:
    """(lasting uid of the guideline, tool) → its decisions."""
    found: dict[tuple[str, str], list[ToolDecision]] = {}
    for decision in record.decisions:
        key = (record.lasting_uid(decision.guideline), decision.tool)
        found.setdefault(key, []).append(decision)
    return found


def _matched(old: list[ToolDecision], new: list[ToolDecision]) -> list[Pair[ToolDecision]]:
    return paired(_in_sequence(old), _in_sequence(new), values_of)


def _in_sequence(found: list[ToolDecision]) -> list[ToolDecision]:
    """By iteration; those of one iteration are parallel, so their order on record says nothing."""
    if len(found) <= 1:
        return found
    return sorted(
        found, key=lambda d: (d.iteration, comparable(values_of(d)), comparable(_decision(d)))
    )


def decisions(decided: list[Decided]) -> Iterator[Difference]:
    for pair in decided:
        before, after = _decision(pair.before), _decision(pair.after)
        if before != after:
            yield pair.differs(DifferenceKind.DECISION, before, after)


def _decision(decision: ToolDecision | None) -> JsonObject | None:
    if decision is None:
        return None
    return {
        "state": decision.state.value,
        "missing": list(decision.missing),
        "invalid": list(decision.invalid),
    }


def arguments(decided: list[Decided]) -> Iterator[Difference]:
    """Of calls that both runs have in mind. Other words of evidence for the same value and source are the same."""
    for pair in decided:
        if pair.before is None or pair.after is None:
            continue
        if pair.before.state in _NO_CALL and not pair.before.arguments:
            continue
        if pair.after.state in _NO_CALL and not pair.after.arguments:
            continue
        old = {argument.name: argument for argument in pair.before.arguments}
        new = {argument.name: argument for argument in pair.after.arguments}
        for name in old | new:
            left, right = old.get(name), new.get(name)
            if not _is_same(left, right):
                yield pair.differs(
                    DifferenceKind.ARGUMENT, _argument(left), _argument(right), parameter=name
                )


_NO_CALL = frozenset({DecisionState.NOT_NEEDED, DecisionState.DATA_ALREADY_IN_CONTEXT})


def _is_same(left: Argument | None, right: Argument | None) -> bool:
    if left is None or right is None:
        return left is right
    same_ground = (left.source, left.verified) == (right.source, right.verified)
    return same_ground and same_json(left.value, right.value)


def _argument(argument: Argument | None) -> JsonObject | None:
    if argument is None:
        return None
    return {
        "value": argument.value,
        "source": argument.source.value,
        "evidence": argument.evidence,
        "verified": argument.verified,
    }
