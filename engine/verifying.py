"""Verified replies (ENGINE.md §1 step 8): guidelines that must hold are checked by a question of their own.

Nothing of a version that is being checked reaches the customer, so none is ever withdrawn.
"""

from dataclasses import dataclass, replace

from engine import prompts
from engine.asking import ask
from engine.drafting import Draft, draft
from engine.errors import ModelError
from engine.kit import Kit
from engine.model.base import ComposeReply, JudgeReply, Revision
from engine.spec import Agent, Criticality, Guideline
from engine.state import TurnState
from engine.trail import LONGEST_REASON, Adherence

MOST_REVISIONS = 2

UNCHECKED = "The reply was not checked: the model gave no judgement."


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The version that stands, and what was reported and found about each version, in order."""

    draft: Draft
    report: tuple[Adherence, ...]


def to_verify(agent: Agent, matched: tuple[Guideline, ...]) -> tuple[Guideline, ...]:
    """What must hold in this reply: HIGH guidelines that say what to do, if the agent asks for verified replies."""
    if not agent.verified_replies:
        return ()
    return tuple(
        g for g in matched if g.criticality is Criticality.HIGH and agent.action_of(g).strip()
    )


async def verified(
    state: TurnState, kit: Kit, question: ComposeReply, must_hold: tuple[Guideline, ...]
) -> Verified:
    """A reply that was checked and, where it did not follow, revised; each version is checked, the last one too.

    Raises ModelError where no version could be written. A version that is written is never lost: one that could
    not be checked or revised stands, and the report says so.
    """
    standing = await draft(state, kit, question)
    report = list(standing.report())
    for attempt in range(1, MOST_REVISIONS + 2):
        found = await _check(state, kit, standing, must_hold, attempt)
        report += found
        problems = _problems(state.agent, found)
        if not problems or attempt > MOST_REVISIONS:
            break
        revision = Revision(reply=standing.text, problems=problems)
        try:
            standing = await draft(state, kit, replace(question, revision=revision))
        except ModelError:  # its failed ModelCalls are in the trail
            break
        report += standing.report(attempt=attempt + 1)
    return Verified(draft=standing, report=tuple(report))


async def _check(
    state: TurnState, kit: Kit, version: Draft, must_hold: tuple[Guideline, ...], attempt: int
) -> list[Adherence]:
    """One entry per guideline; `checked` only where there is a judgement."""
    question = JudgeReply(situation=state.situation, guidelines=must_hold, reply=version.text)
    judged: dict[str, tuple[bool, str]] = {}
    try:
        answered = await ask(
            kit,
            kit.models.judging,
            prompts.build(question),
            iteration=state.checkpoint.iteration,
        )
    except ModelError:  # in the trail as a failed ModelCall
        pass
    else:
        for entry in answered.answer["judgements"]:
            because = entry["because"].strip()[:LONGEST_REASON]
            judged.setdefault(entry["guideline"].strip(), (entry["follows"], because))
    return [_entry(state.agent, guideline, version, judged, attempt) for guideline in must_hold]


def _entry(
    agent: Agent,
    guideline: Guideline,
    version: Draft,
    judged: dict[str, tuple[bool, str]],
    attempt: int,
) -> Adherence:
    verdict = judged.get(agent.label_of[guideline.uid])
    if verdict is None:
        claimed = version.follows.get(guideline.uid, False)
        return Adherence(guideline=guideline.uid, follows=claimed, note=UNCHECKED, attempt=attempt)
    follows, because = verdict
    return Adherence(
        guideline=guideline.uid, follows=follows, note=because, checked=True, attempt=attempt
    )


def _problems(agent: Agent, found: list[Adherence]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (agent.label_of[entry.guideline], entry.note)
        for entry in found
        if entry.checked and not entry.follows
    )
