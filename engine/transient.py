"""Guidelines that results bring along for their turn only (ENGINE.md §4): when they are judged, and what if not.

They join the agent of the turn as soon as their call is DONE (`TurnState.learn`). One without a condition applies at
once; one with a condition is judged in the next iteration, as guidelines marked for re-evaluation are.
"""

from datetime import UTC, datetime

from engine.kit import Kit
from engine.spec import Guideline
from engine.state import TurnState
from engine.trail import GuidelineMatch, MatchState


async def settle_transient(state: TurnState, kit: Kit) -> None:
    """Record that those without a condition apply; does so once, also after a crash between a call and its match."""
    for guideline, tool in _unsettled(state):
        if guideline.always:
            because = f"Given by {tool}, without a condition."
            await _record(state, kit, guideline, MatchState.MATCHED, because)


def transient_to_judge(state: TurnState) -> list[Guideline]:
    """Those with a condition that nobody has judged yet."""
    return [guideline for guideline, _tool in _unsettled(state) if not guideline.always]


async def leave_unjudged(state: TurnState, kit: Kit) -> None:
    """Record those that no iteration was left to judge, so that every guideline ends the turn with a state."""
    for guideline in transient_to_judge(state):
        because = "No iteration was left to judge it."
        await _record(state, kit, guideline, MatchState.NOT_EVALUATED, because)


def _unsettled(state: TurnState) -> list[tuple[Guideline, str]]:
    tool_of = state.transient()
    known = state.agent.guideline_by_uid
    return [(known[uid], tool) for uid, tool in tool_of.items() if uid not in state.matches]


async def _record(
    state: TurnState, kit: Kit, guideline: Guideline, found: MatchState, because: str
) -> None:
    now = datetime.now(UTC)
    match = GuidelineMatch(
        guideline=guideline.uid,
        state=found,
        because=because,
        iteration=state.checkpoint.iteration,
        started_at=now,
        ended_at=now,
    )
    state.learn(match)
    await kit.outbox.put(match)
