"""The turns behind a cell of the coverage: how a guideline ended each of them, why, and what the customer had said."""

from collections.abc import Iterable
from dataclasses import dataclass

from studio.coverage import Column, turns_read
from studio.models import Event, GuidelineMatch

_ORDER = {"matched": 0, "dropped": 1, "not_matched": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    column: Column
    session: int
    number: int
    state: str  # of engine.trail.MatchState
    because: str
    said: str


def turns_of(columns: Iterable[Column], uid: str) -> list[EndedTurn]:
    """Those in which it fired first, then those in which it was dropped; each kind column by column."""
    shown = list(columns)
    place_of = {pk: place for place, column in enumerate(shown) for pk in column.sessions}
    rows = GuidelineMatch.objects.filter(turn__in=list(turns_read(place_of)), guideline=uid)
    ended = {
        turn: (session, number, state, because)
        for turn, session, number, state, because in rows.order_by("pk").values_list(
            "turn", "turn__session", "turn__number", "state", "because"
        )
    }
    said = _said_in(ended)
    found = [
        EndedTurn(
            column=shown[place_of[session]],
            session=session,
            number=number,
            state=state,
            because=because,
            said=said.get(turn, ""),
        )
        for turn, (session, number, state, because) in ended.items()
    ]
    return sorted(
        found,
        key=lambda one: (_ORDER.get(one.state, 3), place_of[one.session], one.session, one.number),
    )


def _said_in(turns: Iterable[int]) -> dict[int, str]:
    events = Event.objects.filter(turn__in=list(turns), kind="message", source="customer")
    rows = events.order_by("offset").values_list("turn", "data__text")
    found: dict[int, str] = {}
    for turn, text in rows:
        found[turn] = f"{found[turn]} {text}" if turn in found else str(text)
    return found
