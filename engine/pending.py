"""Calls that await the customer's word, read from the session's events: nothing else is kept of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from engine.events import (
    Answer,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    RecordedEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.state import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call without an answer that settled it, and the number of the turn in which it was asked about.

    `confirmed`: the customer said yes in a turn that ended before the call began, so that word stands unless the
    newest messages take it back.
    """

    asked: ConfirmationAskedEvent
    turn: int
    confirmed: bool = False

    def is_expired(self, *, turn: int, now: datetime, limits: Limits) -> bool:
        age = (now - self.asked.asked_at).total_seconds()
        return turn - self.turn > limits.confirmation_turns or age > limits.confirmation_seconds


def pending_calls(history: Iterable[RecordedEvent], turn: int) -> tuple[Pending, ...]:
    """What awaits the customer's word in this turn, the oldest first. A call that has begun never does again."""
    entries = tuple(history)
    if not (waiting := _asked(entries)):  # as in most turns, which look here often
        return ()
    last = _last_answers(entries)
    begun = _begun(entries)
    found = []
    for call, (asked, asked_in) in waiting.items():
        if call in begun:
            continue
        answered = last.get(call)
        if answered is None:
            found.append(Pending(asked=asked, turn=asked_in))
        elif answered[0].answer is Answer.CONFIRMED and answered[1] < turn:
            found.append(Pending(asked=asked, turn=asked_in, confirmed=True))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A call with the last answer about it, given in this turn."""

    asked: ConfirmationAskedEvent
    turn: int  # in which it was asked about
    event: ConfirmationAnsweredEvent

    @property
    def answer(self) -> Answer:
        return self.event.answer


def answered_in(history: Iterable[RecordedEvent], turn: int) -> tuple[Answered, ...]:
    """The calls answered in this turn, by words, by a button or by the clock.

    A call that began in an earlier turn is none of them, whatever was answered since.
    """
    entries = tuple(history)
    if not (asked := _asked(entries)):
        return ()
    begun_before = _begun(entry for entry in entries if entry.turn < turn)
    return tuple(
        Answered(asked=asked[call][0], turn=asked[call][1], event=event)
        for call, (event, answered) in _last_answers(entries).items()
        if answered == turn and call in asked and call not in begun_before
    )


def lost_calls(history: Iterable[RecordedEvent], turn: int) -> tuple[ToolStartedEvent, ...]:
    """Calls that began in an earlier turn and whose end nobody saw."""
    entries = tuple(history)
    ended = {e.event.call for e in entries if isinstance(e.event, ToolFinishedEvent)}
    return tuple(
        entry.event
        for entry in entries
        if isinstance(entry.event, ToolStartedEvent)
        and entry.turn < turn
        and entry.event.call not in ended
    )


def _asked(entries: Iterable[RecordedEvent]) -> dict[str, tuple[ConfirmationAskedEvent, int]]:
    return {
        entry.event.call: (entry.event, entry.turn)
        for entry in entries
        if isinstance(entry.event, ConfirmationAskedEvent)
    }


def _last_answers(
    entries: Iterable[RecordedEvent],
) -> dict[str, tuple[ConfirmationAnsweredEvent, int]]:
    return {
        entry.event.call: (entry.event, entry.turn)
        for entry in entries
        if isinstance(entry.event, ConfirmationAnsweredEvent)
    }


def _begun(entries: Iterable[RecordedEvent]) -> set[str]:
    return {
        entry.event.call
        for entry in entries
        if isinstance(entry.event, ToolStartedEvent | ToolFinishedEvent)
    }
