"""Handing a session over to a person, where a result of the turn asked for it (ENGINE.md §4, `control.mode`)."""

from engine.events import Mode, ModeEvent
from engine.kit import Kit
from engine.outcomes import hand_over_by
from engine.state import TurnState


async def hand_over(state: TurnState, kit: Kit) -> None:
    """Emit the ModeEvent, once in the turn however often it is taken up again; called when its reply is through.

    Manual wins: a result that asks for automatic mode, or for none, undoes nothing.
    """
    tool = hand_over_by(state.calls.values())
    if not tool or _handed_over(state):
        return
    event = ModeEvent(mode=Mode.MANUAL, tool=tool)
    state.witness(event)
    await kit.outbox.put(event)


def _handed_over(state: TurnState) -> bool:
    """By a result of this turn; what a person did to the mode meanwhile names no tool."""
    return any(
        isinstance(entry.event, ModeEvent) and entry.turn == state.turn and entry.event.tool
        for entry in state.history
    )
