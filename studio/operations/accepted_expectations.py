"""What to expect of a turn whose change was accepted."""

from collections.abc import Mapping
from typing import Any

from engine.expecting import (
    ArgumentExpectation,
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    ToolExpectation,
)
from engine.replaying import Difference, DifferenceKind
from engine.replaying.pairing import same_json
from engine.trail import DecisionState, MatchState


def expectation_of(difference: Difference, *, turn: int, ran: frozenset[str]) -> Expectation | None:
    """What the change says, of this turn of the scenario; None where no expectation says it.

    `ran` are the names of the tools that were called in the turn as it was played.
    """
    match difference.kind:
        case DifferenceKind.GUIDELINE:
            return _guideline(difference, turn)
        case DifferenceKind.DECISION:
            return _decision(difference, turn)
        case DifferenceKind.ARGUMENT:
            return _argument(difference, turn) if difference.tool in ran else None
        case DifferenceKind.HANDED_OVER:
            return HandedOverExpectation(turn=turn, expected=bool(difference.after))
        case _:
            return None


def _guideline(difference: Difference, turn: int) -> Expectation | None:
    before, after = (side["state"] == MatchState.MATCHED for side in _sides(difference))
    if before == after:
        return None  # in force as before, on another way
    return GuidelineExpectation(turn=turn, guideline=difference.guideline, matches=after)


def _sides(difference: Difference) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return difference.before, difference.after


def _decision(difference: Difference, turn: int) -> Expectation | None:
    before, after = difference.before, difference.after
    arguments = _equal(difference.arguments)
    if after is None:
        if before["state"] != DecisionState.NEEDS_TO_RUN:
            return None
        return ToolExpectation(turn=turn, tool=difference.tool, runs=False, arguments=arguments)
    if after["state"] == DecisionState.NEEDS_TO_RUN:
        return ToolExpectation(turn=turn, tool=difference.tool, runs=True, arguments=arguments)
    return DecisionExpectation(
        turn=turn,
        tool=difference.tool,
        state=DecisionState(after["state"]),
        guideline=difference.guideline,
    )


def _argument(difference: Difference, turn: int) -> Expectation | None:
    if difference.after is None:
        return None
    values = difference.arguments | {difference.parameter: difference.after["value"]}
    return ToolExpectation(turn=turn, tool=difference.tool, runs=True, arguments=_equal(values))


def _equal(values: Mapping[str, Any]) -> tuple[ArgumentExpectation, ...]:
    return tuple(ArgumentExpectation(name=name, value=values[name]) for name in sorted(values))


def contradicts(known: Expectation, wanted: Expectation) -> bool:
    """Can the two not both hold? Only what is said of the same turn is compared, and what may be in no turn at all."""
    same_turn = known.turn == wanted.turn
    match known, wanted:
        case GuidelineExpectation(), GuidelineExpectation():
            of_one = known.guideline == wanted.guideline and known.matches != wanted.matches
            return of_one and (same_turn or (known.turn is None and not known.matches))
        case HandedOverExpectation(), HandedOverExpectation():
            of_one = known.expected != wanted.expected
            return of_one and (same_turn or (known.turn is None and not known.expected))
        case ToolExpectation(), ToolExpectation():
            if known.tool != wanted.tool:
                return False
            if known.runs != wanted.runs:
                either = _alike(known, wanted)
                return either and (same_turn or (known.turn is None and not known.runs))
            return same_turn and known.runs and _of_one_call(known, wanted)
        case DecisionExpectation(), DecisionExpectation():
            of_one = (known.tool, known.guideline) == (wanted.tool, wanted.guideline)
            return same_turn and of_one and known.state != wanted.state
        case ToolExpectation(), DecisionExpectation():
            return same_turn and known.tool == wanted.tool and known.runs
        case DecisionExpectation(), ToolExpectation():
            runs = known.state is DecisionState.NEEDS_TO_RUN
            return same_turn and known.tool == wanted.tool and runs != wanted.runs
        case _:
            return False


def _alike(known: ToolExpectation, wanted: ToolExpectation) -> bool:
    """May the two speak of the same call? Not where an argument of it differs."""
    others = {argument.name: argument for argument in wanted.arguments}
    return all(
        argument.name not in others
        or (
            argument.how == others[argument.name].how
            and same_json(argument.value, others[argument.name].value)
        )
        for argument in known.arguments
    )


def _of_one_call(known: ToolExpectation, wanted: ToolExpectation) -> bool:
    """Do both name the same arguments, and differ in the value of one of them alone?"""
    left = {argument.name: argument for argument in known.arguments}
    right = {argument.name: argument for argument in wanted.arguments}
    if left.keys() != right.keys():
        return False
    other = [name for name in left if not same_json(left[name].value, right[name].value)]
    return len(other) == 1
