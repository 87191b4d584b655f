"""What the customer of a scenario says, turn by turn: read from the scenario, and taken from a recorded session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.canonical import JsonObject
from studio.models import Event, Scenario, Session, Turn
from studio.operations.confirmations import ANSWERED


def turns_said(messages: Sequence[Mapping[str, Any]]) -> list[list[JsonObject]]:
    """The messages of a scripted scenario by turn; each is {"text"} or {"answer", "tool"}."""
    turns: list[list[JsonObject]] = []
    for message in messages:
        said = {name: value for name, value in message.items() if name != "together"}
        if message.get("together") and turns:
            turns[-1].append(said)
        else:
            turns.append([said])
    return turns


def turn_count(scenario: Scenario) -> int:
    """The turns of a scripted scenario; of a simulated one, how many there can be."""
    if scenario.kind == Scenario.Kind.SIMULATED:
        return int(scenario.brief.get("turns") or 0)
    return len(turns_said(scenario.messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidTurn:
    """What was said to begin one turn of a session: `messages` as a scenario keeps them.

    `numbers` are the turns of the session that it was said in: several, where a newer message took over. The last one
    answered it.
    """

    numbers: tuple[int, ...]
    messages: tuple[JsonObject, ...]


def said_in(session: Session, *, up_to: int | None = None) -> list[SaidTurn]:
    """What the customer said and pressed along the session's line, in the turns that are over. Two queries.

    The turn of a scenario is the place in this list, from 1. What was said while a person answered belongs to no turn
    and is left out, and so is a turn in which nothing was said.
    """
    turns = session.line.turns.order_by("number").only("number", "state", "session_id")
    if up_to is not None:
        turns = turns.filter(number__lte=up_to)
    over = [turn for turn in turns if turn.is_over]
    said = _messages_of(session, over)
    found: list[SaidTurn] = []
    numbers: tuple[int, ...] = ()
    messages: tuple[JsonObject, ...] = ()
    for turn in over:
        numbers, messages = (*numbers, turn.number), (*messages, *said.get(turn.pk, ()))
        if turn.state == Turn.State.SUPERSEDED and turn is not over[-1]:
            continue  # the next turn answers this too
        if messages:
            found.append(SaidTurn(numbers=numbers, messages=messages))
        numbers, messages = (), ()
    return found


def place_of_turn(said: Sequence[SaidTurn], number: int) -> int | None:
    """The turn of a scenario that a turn of its session became; None where nothing was said in it."""
    return next((place for place, one in enumerate(said, start=1) if number in one.numbers), None)


def as_messages(said: Sequence[SaidTurn]) -> list[JsonObject]:
    """As `Scenario.messages` holds them."""
    return [
        {**message, "together": True} if place else dict(message)
        for one in said
        for place, message in enumerate(one.messages)
    ]


def _messages_of(session: Session, turns: Sequence[Turn]) -> dict[int, list[JsonObject]]:
    rows = session.line.events_in([turn.pk for turn in turns]).filter(
        kind__in=["message", ANSWERED], source="customer"
    )
    found: dict[int, list[JsonObject]] = {}
    for event in rows.order_by("offset"):
        if (said := _said(event)) is not None:
            found.setdefault(event.turn_id or 0, []).append(said)
    return found


def _said(event: Event) -> JsonObject | None:
    if event.kind == "message":
        return {"text": str(event.data.get("text", ""))}
    if event.data.get("because"):
        return None  # read from the customer's words, which are read again
    return {"answer": event.data["answer"], "tool": event.data["tool"]}
