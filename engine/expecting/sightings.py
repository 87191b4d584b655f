"""From what is seen in each turn to the Outcome over them.

What is there is there. That something is nowhere proves nothing where a turn failed on its way: then the outcome is
unknown, and says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.expecting.comparing import shortened
from engine.expecting.verdicts import Outcome, OutcomeState
from engine.turn_record import TurnRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Is it there, in one turn? `because` is a sentence; `near` says that it tells more than that nothing is there."""

    there: bool
    because: str
    near: bool = False


def turns_of(turn: int | None, conversation: Sequence[TurnRecord]) -> Sequence[TurnRecord]:
    """Those that an expectation looks at: all, or the one of this number; none where it is not there."""
    return [record for record in conversation if turn is None or record.number == turn]


def no_such_turn(turn: int | None, conversation: Sequence[TurnRecord], *, wanted: bool) -> Outcome:
    """There is nothing to look at: what is wanted is not there; what is not wanted was not put to the test."""
    state = OutcomeState.FAILED if wanted else OutcomeState.UNKNOWN
    count, last = len(conversation), conversation[-1].number if conversation else 0
    if not conversation:
        because = "The conversation has no turns."
    elif turn is not None and turn < last:
        because = f"The conversation has no turn {turn}."
    elif count < last:  # it does not begin with the first turn
        because = f"The conversation ends with turn {last}."
    else:
        because = f"The conversation has only {count} turn{'s' * (count > 1)}."
    return Outcome(state=state, because=because)


def concluded(
    turns: Sequence[TurnRecord], see: Callable[[TurnRecord], Sighting], *, wanted: bool
) -> Outcome:
    """The outcome where something is `wanted` in one of the turns, or in none of them.

    There is at least one turn. Turns after the first in which it is there are not looked at.
    """
    seen: list[tuple[int, Sighting]] = []
    for record in turns:
        sighting = see(record)
        seen.append((record.number, sighting))
        if sighting.there:
            state = OutcomeState.HELD if wanted else OutcomeState.FAILED
            return Outcome(state=state, because=sighting.because, turn=record.number)
    if broken := broken_among(turns):
        return broken
    state = OutcomeState.FAILED if wanted else OutcomeState.HELD
    number, told = next((pair for pair in seen if pair[1].near), seen[-1])
    if len(turns) == 1:
        return Outcome(state=state, because=told.because, turn=number)
    because = f"In none of {len(turns)} turns. Turn {number}: {told.because}"
    return Outcome(state=state, because=because, turn=number if wanted else None)


def broken_among(turns: Sequence[TurnRecord]) -> Outcome | None:
    """Unknown, where one of the turns failed."""
    for record in turns:
        if record.error:
            because = f"Turn {record.number} failed: {shortened(record.error, 300)}"
            return Outcome(state=OutcomeState.UNKNOWN, because=because, turn=record.number)
    return None
