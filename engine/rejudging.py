"""One guideline judged once more, by itself, in a situation that a turn was in: would another wording have done?

Nothing of the turn changes: no other guideline is asked about, no relationship is applied, no tool runs.
"""

from dataclasses import dataclass, replace

from engine.kit import Kit
from engine.matching import judge_guidelines
from engine.model.base import JudgingStyle
from engine.scoring import explain_match
from engine.spec import Agent, Guideline
from engine.state import TurnState
from engine.together import together
from engine.trail import GuidelineMatch, ModelCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The judgement, and every request that was made for it, failed attempts too, in their order."""

    match: GuidelineMatch
    calls: tuple[ModelCall, ...]


def reworded(agent: Agent, uid: str, condition: str) -> Agent:
    """The agent with another condition in this guideline alone, which counts as switched on. Raises KeyError."""
    changed = replace(agent.guideline_by_uid[uid], condition=condition, enabled=True)
    return replace(
        agent, guidelines=tuple(changed if g.uid == uid else g for g in agent.guidelines)
    )


async def judge_alone(state: TurnState, kit: Kit, guideline: Guideline) -> Judged:
    """Judge a guideline of the state's agent, with its reason also where verdicts are scored. Raises ModelError.

    The kit's outbox is read to its end here; its tools are not touched.
    """
    calls: list[ModelCall] = []

    async def read() -> None:
        try:
            calls.extend([item async for item in kit.outbox if isinstance(item, ModelCall)])
        finally:
            kit.outbox.abandon()  # so that a question that is cancelled waits for nobody

    async def judge() -> None:
        try:
            await judge_guidelines(state, kit, [guideline])
            match = state.matches[guideline.uid]
            if match.model_call and kit.models.judging.judging_style is JudgingStyle.SCORED:
                await explain_match(state, kit, match)
        finally:
            kit.outbox.close()

    await together([judge(), read()])
    return Judged(match=state.matches[guideline.uid], calls=tuple(calls))
