"""Which tools run, and with which arguments (ENGINE.md §1 steps 4–5, §2, §3).

Candidates are only the tools of guidelines in force: no guideline, no candidate, no call. What the model answers is
checked in code before anything counts.
"""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from engine.arguments import Checked, allows_null, check_arguments, choices_of
from engine.canonical import JsonObject, canonical_json, is_too_deep
from engine.events import Phase, StatusEvent
from engine.guessing import Guesses, infer
from engine.kit import Kit
from engine.model.answers import shortened
from engine.provenance import Grounds
from engine.spec import Guideline, ParameterSource, Tool
from engine.state import TurnState
from engine.together import together
from engine.trail import (
    LONGEST_REASON,
    Argument,
    ArgumentSource,
    CallState,
    DecisionState,
    InsightKind,
    LimitReached,
    ToolDecision,
    ToolInsight,
    TrailEntry,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool with all guidelines in force that ask for it."""

    tool: Tool
    guidelines: tuple[Guideline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What came of one candidate call: the decision to record, and the call's arguments where it runs."""

    state: DecisionState
    because: str
    arguments: tuple[Argument, ...] = ()
    checked: Checked | None = None
    insights: tuple[ToolInsight, ...] = ()
    call: str = ""


async def infer_calls(state: TurnState, kit: Kit, guesses: Guesses) -> None:
    """Decide about every candidate of this iteration, in parallel."""
    decided = {d.tool for d in state.decisions if d.iteration == state.checkpoint.iteration}
    found = [c for c in candidates(state) if c.tool.name not in decided]
    unguessed = [c.tool.name for c in found if c.tool.parameters and c.tool.name not in guesses]
    if unguessed:
        await kit.outbox.put(StatusEvent(phase=Phase.INFERRING, tools=tuple(unguessed)))
    await together(_decide(state, kit, guesses, candidate) for candidate in found)
    await guesses.drop(kit)


def candidates(state: TurnState) -> list[Candidate]:
    """The tools of the guidelines that came into force in this iteration, each once."""
    askers: dict[str, list[Guideline]] = {}
    for guideline in state.matched_in(state.checkpoint.iteration):
        for name in guideline.tools:
            askers.setdefault(name, []).append(guideline)
    known = state.agent.tool_by_name
    return [
        Candidate(tool=known[name], guidelines=tuple(asking))
        for name, asking in askers.items()
        if name in known
    ]


async def _decide(state: TurnState, kit: Kit, guesses: Guesses, candidate: Candidate) -> None:
    tool = candidate.tool
    started = datetime.now(UTC)
    if not tool.parameters and not tool.consequential:
        judgements, model_call = [_without_question(state, tool)], ""
    else:
        inference = await guesses.take(kit, tool.name)
        if inference is None:
            inference = await infer(state, kit, tool, candidate.guidelines)
        model_call, started = inference.call.uid, inference.call.started_at
        judgements = judge(state, candidate, inference.answer)
    await together(
        _record(state, kit, candidate, judgement, started=started, model_call=model_call)
        for judgement in judgements
    )


def _without_question(state: TurnState, tool: Tool) -> Judgement:
    if earlier := _same_call(state, tool, {}):
        return Judgement(
            state=DecisionState.DATA_ALREADY_IN_CONTEXT,
            because="It ran in this turn already.",
            call=earlier,
        )
    return Judgement(
        state=DecisionState.NEEDS_TO_RUN,
        because="It needs no arguments and has not run in this turn.",
        checked=Checked(values={}, defaults={}),
    )


def judge(state: TurnState, candidate: Candidate, answer: JsonObject) -> list[Judgement]:
    """The model's answer about a candidate, checked: one judgement per call, or one for no call at all."""
    decision = DecisionState(answer["decision"])
    because = shortened(answer["because"], LONGEST_REASON)
    if decision in {DecisionState.NOT_NEEDED, DecisionState.DATA_ALREADY_IN_CONTEXT}:
        return [Judgement(state=decision, because=because)]
    proposals: list[JsonObject] = list(answer["calls"]) or [{}]
    grounds = Grounds(
        history=state.history, variables=state.variables, guidelines=candidate.guidelines
    )
    judged = [
        _judge_call(state, candidate.tool, grounds, proposal, because, decision)
        for proposal in proposals
    ]
    # Duplicates in one answer collapse.
    unique: dict[str, Judgement] = {}
    for judgement in judged:
        unique.setdefault(_as_call(candidate.tool, judgement), judgement)
    return list(unique.values())


def _as_call(tool: Tool, judgement: Judgement) -> str:
    """What makes two judgements of one answer the same."""
    values = {argument.name: argument.value for argument in judgement.arguments}
    if judgement.state is DecisionState.NEEDS_TO_RUN:
        return _effective(tool, values)
    return canonical_json([judgement.state, judgement.call, values])


def _judge_call(
    state: TurnState,
    tool: Tool,
    grounds: Grounds,
    proposal: JsonObject,
    because: str,
    decision: DecisionState,
) -> Judgement:
    arguments = _trace(tool, grounds, proposal)
    checked = check_arguments(tool, {a.name: a.value for a in arguments})
    if tool.consequential:
        # A value that nobody gave is not quietly replaced by a default either.
        given = {name for name, claim in proposal.items() if claim and claim["value"] is not None}
        unproven = given - {a.name for a in arguments} - set(checked.missing)
        known = (parameter.name for parameter in tool.parameters)
        checked = replace(checked, missing=(*checked.missing, *(n for n in known if n in unproven)))
    if not checked.ready:
        return Judgement(
            state=DecisionState.CANNOT_RUN,
            because=_why_not(tool, checked),
            arguments=arguments,
            checked=checked,
            insights=tuple(_insights(state, tool, checked)),
        )
    arguments = _as_called(tool, arguments, checked)
    if earlier := _same_call(state, tool, checked.values):
        return Judgement(
            state=DecisionState.DATA_ALREADY_IN_CONTEXT,
            because="The same call was made in this turn already.",
            arguments=arguments,
            call=earlier,
        )
    if decision is DecisionState.CANNOT_RUN:
        # Nothing is missing by our rules, but nothing irreversible happens against the model's word.
        if tool.consequential:
            return Judgement(state=decision, because=because, arguments=arguments, checked=checked)
        because = f"Every required argument is known, though the model said: {because}"
    return Judgement(
        state=DecisionState.NEEDS_TO_RUN, because=because, arguments=arguments, checked=checked
    )


def _trace(tool: Tool, grounds: Grounds, proposal: JsonObject) -> tuple[Argument, ...]:
    """The given arguments with their verified provenance, without those that come from where they may not."""
    traced = []
    for parameter in tool.parameters:
        claim = proposal.get(parameter.name)
        if claim is None:
            continue
        value = _storable(claim["value"])
        if value is None and not allows_null(parameter.schema):
            continue
        argument = grounds.trace(parameter, value, claim)
        from_customer = argument.source is ArgumentSource.CUSTOMER and argument.verified
        if parameter.source is ParameterSource.CUSTOMER and not from_customer:
            continue
        if tool.consequential and not argument.verified:
            # Nobody can confirm a call yet, so what changes something rests on nothing that is only inferred.
            continue
        traced.append(argument)
    return tuple(traced)


def _as_called(
    tool: Tool, arguments: tuple[Argument, ...], checked: Checked
) -> tuple[Argument, ...]:
    """The arguments that the tool will see, in its parameters' order: the given ones, and defaults for the others."""
    given = {argument.name: argument for argument in arguments}
    found = []
    for parameter in tool.parameters:
        name = parameter.name
        if name in given:
            found.append(replace(given[name], value=checked.values[name]))
        elif name in checked.defaults:
            found.append(
                Argument(
                    name=name,
                    value=checked.defaults[name],
                    source=ArgumentSource.DEFAULT,
                    verified=True,
                )
            )
    return tuple(found)


def _storable(value: Any) -> Any:
    """The value; what the trail could not keep (1e400, endless nesting) as text, to be refused by its type."""
    if is_too_deep(value):
        return "(nested too deeply)"
    return json.loads(json.dumps(value), parse_constant=str)


def _insights(state: TurnState, tool: Tool, checked: Checked) -> Iterable[ToolInsight]:
    wrong = {invalid.name: invalid for invalid in checked.invalid}
    for parameter in tool.parameters:
        invalid = wrong.get(parameter.name)
        if invalid is None and parameter.name not in checked.missing:
            continue
        yield ToolInsight(
            tool=tool.name,
            parameter=parameter.name,
            kind=InsightKind.INVALID if invalid else InsightKind.MISSING,
            label=parameter.label,
            iteration=state.checkpoint.iteration,
            reason=invalid.reason if invalid else "",
            description=parameter.description,
            significance=parameter.significance,
            examples=parameter.examples,
            choices=tuple(choices_of(parameter.schema)),
            value=invalid.value if invalid else None,
            # What comes from the context is not asked of the customer.
            hidden=parameter.hidden or parameter.source is ParameterSource.CONTEXT,
            precedence=parameter.precedence,
        )


def _why_not(tool: Tool, checked: Checked) -> str:
    label = {parameter.name: parameter.label for parameter in tool.parameters}
    source = {parameter.name: parameter.source for parameter in tool.parameters}
    reasons = [
        f"{label[name]} is missing"
        + ("; only the customer can give it" if source[name] is ParameterSource.CUSTOMER else "")
        for name in checked.missing
    ]
    reasons += [f"{label[invalid.name]} {invalid.reason}" for invalid in checked.invalid]
    return "; ".join(reasons) + "."


def _same_call(state: TurnState, tool: Tool, values: JsonObject) -> str:
    """The uid of an identical call of this turn that stands; empty where there is none.

    What failed may be tried again under another guideline, unless it changes something: that is never tried twice.
    """
    standing = {CallState.DONE, CallState.STARTED}
    if tool.consequential:
        standing |= {CallState.FAILED, CallState.UNKNOWN}
    wanted = _effective(tool, values)
    for call in state.calls.values():
        same_tool = call.tool == tool.name and call.state in standing
        if same_tool and _effective(tool, call.arguments) == wanted:
            return call.uid
    return ""


def _effective(tool: Tool, values: JsonObject) -> str:
    """The call as the tool sees it: leaving a default out and giving it are the same."""
    return canonical_json(check_arguments(tool, values).defaults | values)


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
    runs = judgement.state is DecisionState.NEEDS_TO_RUN
    call = uuid.uuid4().hex if runs else judgement.call
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


def _is_one_too_many(state: TurnState, judgement: Judgement) -> bool:
    runs = judgement.state is DecisionState.NEEDS_TO_RUN
    return runs and len({d.call for d in state.decisions if d.call}) >= state.limits.max_calls
