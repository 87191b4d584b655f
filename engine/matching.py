"""Which guidelines apply (ENGINE.md §1, step 2): judged in parallel batches of a stable composition."""

from collections.abc import Sequence
from datetime import UTC, datetime

from engine import prompts
from engine.asking import ask
from engine.errors import ModelError, ModelErrorKind
from engine.events import Phase, StatusEvent
from engine.kit import Kit
from engine.model.answers import shortened
from engine.model.base import JudgingStyle, MatchGuidelines
from engine.scoring import score_guidelines
from engine.spec import Guideline
from engine.state import TurnState
from engine.together import together
from engine.trail import LONGEST_REASON, GuidelineMatch, MatchState
from engine.transient import transient_to_judge


async def match_guidelines(state: TurnState, kit: Kit) -> None:
    """Judge what this iteration has to judge; afterwards every guideline has a recorded state.

    The first iteration judges all guidelines, a later one those to be re-evaluated (`to_reevaluate`).
    Raises ModelError when a batch got no judgement at all.
    """
    iteration = state.checkpoint.iteration
    if iteration == 1:
        for guideline in state.agent.guidelines:
            settled = _settled(guideline, iteration)
            if settled is not None and not _judged(state, guideline, iteration):
                await _record(state, kit, settled)
        asked = [g for g in state.agent.guidelines if g.enabled and not g.always]
    else:
        asked = to_reevaluate(state, after=iteration - 1)
    # A resumed turn has some of its judgements already.
    asked = [g for g in asked if not _judged(state, g, iteration)]
    if not asked:
        return
    await kit.outbox.put(StatusEvent(phase=Phase.MATCHING, count=len(asked)))
    await judge_guidelines(state, kit, asked)


async def judge_guidelines(state: TurnState, kit: Kit, asked: Sequence[Guideline]) -> None:
    """Ask about them as the model is best asked, and record each; raises ModelError as `match_guidelines`."""
    if kit.models.judging.judging_style is JudgingStyle.SCORED:
        await score_guidelines(state, kit, asked)
        return
    size = kit.models.judging.batch_size
    batches = [asked[start : start + size] for start in range(0, len(asked), size)]
    await together(_judge(state, kit, batch) for batch in batches)


def to_reevaluate(state: TurnState, *, after: int) -> list[Guideline]:
    """Guidelines marked for re-evaluation after a tool that ran in iteration `after`, and unjudged transient ones.

    Neither those in force, nor those that apply already and are kept out by a relationship: a judgement would change
    nothing.
    """
    ran = {call.tool for call in state.calls_done(iteration=after)}
    marked = [
        guideline
        for guideline in state.agent.guidelines
        if guideline.enabled
        and ran.intersection(guideline.reevaluate_after)
        and not _applies_already(state, guideline)
    ]
    return marked + transient_to_judge(state)


def _applies_already(state: TurnState, guideline: Guideline) -> bool:
    match = state.matches.get(guideline.uid)
    return match is not None and (match.state is MatchState.MATCHED or match.judged_to_apply)


def _judged(state: TurnState, guideline: Guideline, iteration: int) -> bool:
    match = state.matches.get(guideline.uid)
    return match is not None and match.iteration >= iteration


def _settled(guideline: Guideline, iteration: int) -> GuidelineMatch | None:
    """The match of a guideline that needs no judgement."""
    now = datetime.now(UTC)
    if not guideline.enabled:
        found, because = MatchState.NOT_EVALUATED, "It is switched off."
    elif guideline.always:
        found, because = MatchState.MATCHED, "It has no condition, so it always applies."
    else:
        return None
    return GuidelineMatch(
        guideline=guideline.uid,
        state=found,
        because=because,
        iteration=iteration,
        started_at=now,
        ended_at=now,
    )


async def _judge(state: TurnState, kit: Kit, batch: Sequence[Guideline]) -> None:
    """Ask about the batch, and again about those that the answer left out."""
    label_of = state.agent.label_of
    left = {label_of[guideline.uid]: guideline for guideline in batch}
    for _attempt in range(1 + state.limits.batch_retries):
        await _ask_about(state, kit, left)
        if not left:
            return
    if len(left) == len(batch):
        message = f"The model judged none of {', '.join(left)}, however often it was asked."
        raise ModelError(message, kind=ModelErrorKind.WRONG_SCHEMA, retryable=False)
    now = datetime.now(UTC)
    for guideline in left.values():
        await _record(
            state,
            kit,
            GuidelineMatch(
                guideline=guideline.uid,
                state=MatchState.NOT_EVALUATED,
                because="The model gave no judgement of it, though it was asked again.",
                iteration=state.checkpoint.iteration,
                started_at=now,
                ended_at=now,
            ),
        )


async def _ask_about(state: TurnState, kit: Kit, left: dict[str, Guideline]) -> None:
    """Record what the answer judges, and take it out of `left`. What it invents is ignored."""
    iteration = state.checkpoint.iteration
    question = MatchGuidelines(situation=state.situation, guidelines=tuple(left.values()))
    answered = await ask(kit, kit.models.judging, prompts.build(question), iteration=iteration)
    for judgement in answered.answer["judgements"]:
        guideline = left.pop(judgement["guideline"].strip(), None)
        if guideline is None:
            continue
        await _record(
            state,
            kit,
            GuidelineMatch(
                guideline=guideline.uid,
                state=MatchState.MATCHED if judgement["applies"] else MatchState.NOT_MATCHED,
                because=shortened(judgement["because"], LONGEST_REASON),
                iteration=iteration,
                started_at=answered.call.started_at,
                ended_at=answered.call.ended_at,
                model_call=answered.call.uid,
            ),
        )


async def _record(state: TurnState, kit: Kit, match: GuidelineMatch) -> None:
    state.learn(match)
    await kit.outbox.put(match)
