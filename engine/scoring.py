"""Scored judging (ENGINE.md §1, step 2): a bare verdict for each guideline, and its reason afterwards.

For models that judge better when they need not say why first. The probability of the verdict's token is the match's
score. A reason is asked for only for what applied or came close, beside the writing of the reply, so that nobody waits
for it; it replaces the match's `because`, marked as explained afterwards. Until then, and where none was asked for or
came, `because` says how the verdict was reached.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from engine import prompts
from engine.asking import ask
from engine.errors import ModelError
from engine.kit import Kit
from engine.model.answers import shortened
from engine.model.base import ExplainMatch, ScoreGuideline
from engine.spec import Guideline
from engine.state import TurnState
from engine.together import together
from engine.trail import LONGEST_REASON, GuidelineMatch, MatchState

CLOSE = 0.2
"""From this score on a guideline that did not apply came close enough to be explained."""

_MOST_CLOSE = 5  # that did not apply, and are explained
_AT_ONCE = 16  # questions of one turn on their way
_HEAD_START = 0.05  # seconds that the writer is ahead: a server that takes one request at a time takes the reply first
_PATIENCE = 20.0  # seconds that a turn stays open for reasons once its reply is written


async def score_guidelines(state: TurnState, kit: Kit, guidelines: Sequence[Guideline]) -> None:
    """Judge each of them, and record it; raises ModelError."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def score(guideline: Guideline) -> None:
        async with free:
            await _score(state, kit, guideline)

    await together(score(guideline) for guideline in guidelines)


async def _score(state: TurnState, kit: Kit, guideline: Guideline) -> None:
    iteration = state.checkpoint.iteration
    question = ScoreGuideline(situation=state.situation, guideline=guideline)
    answered = await ask(kit, kit.models.judging, prompts.build(question), iteration=iteration)
    score = answered.probability
    # Some servers draw the token at random: its probability says more than what was drawn.
    applies = answered.answer["applies"] if score is None else score >= 0.5
    match = GuidelineMatch(
        guideline=guideline.uid,
        state=MatchState.MATCHED if applies else MatchState.NOT_MATCHED,
        because=_bare(score) if _asks_why(score, applies=applies) else _unasked(score),
        iteration=iteration,
        started_at=answered.call.started_at,
        ended_at=answered.call.ended_at,
        score=score,
        model_call=answered.call.uid,
    )
    await _record(state, kit, match)


def _asks_why(score: float | None, *, applies: bool) -> bool:
    return applies or (score is not None and score >= CLOSE)


def _bare(score: float | None) -> str:
    return "Judged without a reason." if score is None else f"Scored {score:.2f}."


def _unasked(score: float | None) -> str:
    if score is None:
        return "Judged without a reason; none was asked for."
    return f"Scored {score:.2f}; no reason was asked for."


async def explaining(state: TurnState, kit: Kit, work: Coroutine[Any, Any, None]) -> None:
    """Do the work and, beside it, ask for the reasons that are owed; raises what the work raises.

    A reason that does not come is no failure: the match keeps saying how it was reached.
    """
    reasons = asyncio.create_task(_explain_all(state, kit))
    try:
        await work
        await asyncio.wait({reasons}, timeout=_PATIENCE)
    finally:
        reasons.cancel()
        with suppress(asyncio.CancelledError, ModelError):
            await reasons


async def _explain_all(state: TurnState, kit: Kit) -> None:
    owed = unexplained(state)
    if not owed:
        return
    await asyncio.sleep(_HEAD_START)
    free = asyncio.Semaphore(_AT_ONCE)

    async def explain(match: GuidelineMatch) -> None:
        async with free:
            await explain_match(state, kit, match)

    await together(explain(match) for match in owed)


def unexplained(state: TurnState) -> list[GuidelineMatch]:
    """Matches whose reason is still to be asked for. An interrupted turn finds in its trail what it still owes.

    Of those that did not apply only the closest few, or a model that is never sure would explain everything.
    """
    scored = [
        match
        for match in state.matches.values()
        if match.model_call and match.guideline in state.agent.guideline_by_uid
    ]
    close = [match for match in scored if match.state is MatchState.NOT_MATCHED and match.score]
    closest = sorted(close, key=lambda match: -(match.score or 0.0))[:_MOST_CLOSE]
    return [
        match
        for match in scored
        if not match.explained_afterwards
        and match.because == _bare(match.score)
        and (match in closest or match not in close)
    ]


async def explain_match(state: TurnState, kit: Kit, match: GuidelineMatch) -> None:
    """Ask why, and record the reason; where none comes, the match stays as it is."""
    guideline = state.agent.guideline_by_uid[match.guideline]
    # What a relationship made of the verdict is not what is explained.
    applies = match.state in {MatchState.MATCHED, MatchState.DROPPED} and not match.added_by
    # What the judgement saw, so that the two questions also share their opening.
    situation = replace(state.situation, history=state.history_at(match.started_at))
    question = ExplainMatch(situation=situation, guideline=guideline, applies=applies)
    try:
        answered = await ask(
            kit, kit.models.judging, prompts.build(question), iteration=match.iteration
        )
    except ModelError:  # it is on record as a model call
        return
    reason = shortened(answered.answer["because"], LONGEST_REASON)
    if reason:
        await _record(state, kit, replace(match, because=reason, explained_afterwards=True))


async def _record(state: TurnState, kit: Kit, match: GuidelineMatch) -> None:
    state.learn(match)
    await kit.outbox.put(match)
