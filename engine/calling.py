"""Which tools run (ENGINE.md §1 step 4, §2).

Candidates are only the tools of guidelines in force: no guideline, no candidate, no call. What the model answers is
checked in code before anything counts (`engine.judging`).
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine import prompts
from engine.asking import ask
from engine.choices import offered
from engine.events import ConfirmationAskedEvent, Phase, StatusEvent
from engine.guessing import Guesses, infer
from engine.judging import Judgement, judge, without_question
from engine.kit import Kit
from engine.model.answers import shortened
from engine.model.base import ChooseTool
from engine.pending import pending_calls
from engine.settling import answered_tools
from engine.spec import Guideline, Tool
from engine.state import TurnState
from engine.together import InOrder, Place, together
from engine.trail import LONGEST_REASON, DecisionState, LimitReached, ToolDecision, TrailEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool with all guidelines in force that ask for it."""

    tool: Tool
    guidelines: tuple[Guideline, ...]

    @property
    def needs_question(self) -> bool:
        return bool(self.tool.parameters) or self.tool.consequential


async def infer_calls(state: TurnState, kit: Kit, guesses: Guesses) -> None:
    """Decide about every candidate of this iteration, in parallel; then ask for the customer's word where it must."""
    decided = {d.tool for d in state.decisions if d.iteration == state.checkpoint.iteration}
    found = [c for c in candidates(state) if c.tool.name not in decided]
    unguessed = [c.tool.name for c in found if c.needs_question and c.tool.name not in guesses]
    if unguessed:
        await kit.outbox.put(StatusEvent(phase=Phase.INFERRING, tools=tuple(unguessed)))
    groups = _overlapping(state, found)
    grouped = {name for group in groups for name in group}
    alone = [c for c in found if c.tool.name not in grouped]
    rivals = [c for c in found if c.tool.name in grouped]
    # What is on record first comes first in prompts: which answer was quicker must not change the next question.
    order = InOrder()
    work = [_decide(state, kit, guesses, c, order.place()) for c in alone]
    if groups:
        work.append(_choose_and_decide(state, kit, guesses, rivals, groups, order.place()))
    await together(work)
    await guesses.drop(kit)
    await _ask_for_word(state, kit)


def candidates(state: TurnState) -> list[Candidate]:
    """The tools of the guidelines that came into force in this iteration, each once.

    A tool whose call the customer has just confirmed or declined is none, unless the customer wants more besides.
    """
    settled = answered_tools(state)
    askers: dict[str, list[Guideline]] = {}
    for guideline in state.matched_in(state.checkpoint.iteration):
        for name in dict.fromkeys(guideline.tools):
            askers.setdefault(name, []).append(guideline)
    known = state.agent.tool_by_name
    return [
        Candidate(tool=known[name], guidelines=tuple(asking))
        for name, asking in askers.items()
        if name in known and name not in settled
    ]


def _overlapping(state: TurnState, found: Sequence[Candidate]) -> list[tuple[str, ...]]:
    """The agent's groups of overlapping tools of which several are candidates, with those."""
    names = {candidate.tool.name for candidate in found}
    groups = (tuple(n for n in group if n in names) for group in state.agent.overlaps)
    return [group for group in groups if len(set(group)) > 1]


async def _choose_and_decide(
    state: TurnState,
    kit: Kit,
    guesses: Guesses,
    rivals: Sequence[Candidate],
    groups: Sequence[tuple[str, ...]],
    place: Place,
) -> None:
    """Of each group the tool that serves better stays a candidate; one may stand in several groups."""
    left = {candidate.tool.name: candidate for candidate in rivals}
    for group in groups:
        standing = [left[name] for name in group if name in left]
        if len(standing) > 1:
            for loser in await _choose(state, kit, standing):
                del left[loser]
    order = InOrder()
    async with place.reached():
        await together(_decide(state, kit, guesses, c, order.place()) for c in left.values())


async def _choose(state: TurnState, kit: Kit, standing: Sequence[Candidate]) -> list[str]:
    """Ask which of these tools serves best, and record the others as not needed; their names."""
    guidelines = {g.uid: g for candidate in standing for g in candidate.guidelines}
    question = ChooseTool(
        situation=state.situation,
        tools=tuple(candidate.tool for candidate in standing),
        guidelines=tuple(guidelines.values()),
    )
    answered = await ask(
        kit,
        kit.models.judging,
        prompts.build(question),
        iteration=state.checkpoint.iteration,
    )
    chosen = str(answered.answer["tool"]).strip()
    because = shortened(answered.answer["because"], LONGEST_REASON)
    losers = [c for c in standing if c.tool.name != chosen]
    why = f"None of the tools that overlap is called for: {because}"
    if len(losers) < len(standing):
        why = f"{chosen} serves better: {because}"
    judgement = Judgement(state=DecisionState.NOT_NEEDED, because=shortened(why, LONGEST_REASON))
    call = answered.call
    await together(
        _record(state, kit, loser, judgement, started=call.started_at, model_call=call.uid)
        for loser in losers
    )
    return [loser.tool.name for loser in losers]


async def _decide(
    state: TurnState, kit: Kit, guesses: Guesses, candidate: Candidate, place: Place
) -> None:
    started, model_call = datetime.now(UTC), ""
    tool = await offered(state, kit, candidate.tool)
    if isinstance(tool, str):
        judgements = [Judgement(state=DecisionState.CANNOT_RUN, because=tool)]
    elif not candidate.needs_question:
        judgements = [without_question(state, tool)]
    else:
        inference = await guesses.take(kit, tool.name)
        if inference is None:
            inference = await infer(state, kit, tool, candidate.guidelines)
        model_call, started = inference.call.uid, inference.call.started_at
        judgements = judge(state, tool, candidate.guidelines, inference.answer)
    async with place.reached():
        for judgement in judgements:
            await _record(state, kit, candidate, judgement, started=started, model_call=model_call)


_MADE = frozenset({DecisionState.NEEDS_TO_RUN, DecisionState.AWAITING_CONFIRMATION})


async def _record(
    state: TurnState,
    kit: Kit,
    candidate: Candidate,
    judgement: Judgement,
    *,
    started: datetime,
    model_call: str,
) -> None:
    """One ToolDecision per guideline that asks for the tool, all of one call."""
    entries: list[TrailEntry] = []
    if _is_one_too_many(state, judgement):
        most = f"a turn runs {state.limits.max_calls} calls at most"
        entries.append(
            LimitReached(limit="max_calls", detail=f"{candidate.tool.name} was not run: {most}.")
        )
        judgement = replace(
            judgement, state=DecisionState.CANNOT_RUN, because=f"It is one call too many: {most}."
        )
    call = uuid.uuid4().hex if _is_new(judgement) else judgement.call
    checked = judgement.checked
    entries += [
        ToolDecision(
            guideline=guideline.uid,
            tool=candidate.tool.name,
            state=judgement.state,
            because=judgement.because,
            iteration=state.checkpoint.iteration,
            started_at=started,
            ended_at=datetime.now(UTC),
            arguments=judgement.arguments,
            missing=checked.missing if checked else (),
            invalid=tuple(i.name for i in checked.invalid) if checked else (),
            call=call,
            model_call=model_call,
        )
        for guideline in candidate.guidelines
    ]
    entries += judgement.insights
    for entry in entries:
        state.learn(entry)
    # All at once, so that an interruption hardly finds some of them on record and others not.
    await together(kit.outbox.put(entry) for entry in entries)


def _is_new(judgement: Judgement) -> bool:
    """Is it a call that is still to be named? One that awaits the customer's word already has its name."""
    return judgement.state in _MADE and not judgement.call


def _is_one_too_many(state: TurnState, judgement: Judgement) -> bool:
    """Calls that await the customer's word count, whether of this turn or of one before."""
    taken = {decision.call for decision in state.decisions if decision.call}
    taken |= {pending.asked.call for pending in pending_calls(state.history, state.turn)}
    return _is_new(judgement) and len(taken) >= state.limits.max_calls


async def _ask_for_word(state: TurnState, kit: Kit) -> None:
    """Emit what awaits the customer's word by the decisions on record and was not asked yet."""
    asked = {
        entry.event.call
        for entry in state.history
        if isinstance(entry.event, ConfirmationAskedEvent)
    }
    waiting: dict[str, list[ToolDecision]] = {}
    for decision in state.decisions:
        if (
            decision.state is DecisionState.AWAITING_CONFIRMATION
            and decision.iteration == state.checkpoint.iteration
            and decision.call not in asked
        ):
            waiting.setdefault(decision.call, []).append(decision)
    for call, decisions in waiting.items():
        event = _question(state, call, decisions, asked_at=kit.now())
        state.witness(event)
        await kit.outbox.put(event)


def _question(
    state: TurnState, call: str, decisions: Sequence[ToolDecision], *, asked_at: datetime
) -> ConfirmationAskedEvent:
    tool = state.agent.tool_by_name[decisions[0].tool]
    arguments = {argument.name: argument.value for argument in decisions[0].arguments}
    shown = (p for p in tool.parameters if p.name in arguments and not p.hidden)
    return ConfirmationAskedEvent(
        call=call,
        tool=tool.name,
        arguments=arguments,
        guidelines=tuple(decision.guideline for decision in decisions),
        labels={parameter.name: parameter.label for parameter in shown},
        asked_at=asked_at,
    )
