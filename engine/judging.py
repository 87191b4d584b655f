"""A model's answer about a tool, checked in code before anything counts (ENGINE.md §1 step 5, §2, §3)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from engine.arguments import Checked, allows_null, check_arguments, choices_of
from engine.canonical import JsonObject, canonical_json, is_too_deep
from engine.events import Answer, ToolFinishedEvent
from engine.model.answers import shortened
from engine.pending import answered_in, pending_calls
from engine.provenance import Grounds
from engine.spec import Confirm, Guideline, ParameterSource, Tool
from engine.state import TurnState
from engine.trail import (
    LONGEST_REASON,
    Argument,
    ArgumentSource,
    CallState,
    DecisionState,
    InsightKind,
    ToolInsight,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What came of one candidate call: the decision to record, and the call's arguments where it is to be made.

    `call` names the call that makes this one needless, or the one that awaits the customer's word already.
    """

    state: DecisionState
    because: str
    arguments: tuple[Argument, ...] = ()
    checked: Checked | None = None
    insights: tuple[ToolInsight, ...] = ()
    call: str = ""


def without_question(state: TurnState, tool: Tool) -> Judgement:
    """The judgement of a tool that needs no arguments and changes nothing."""
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


def judge(
    state: TurnState, tool: Tool, guidelines: tuple[Guideline, ...], answer: JsonObject
) -> list[Judgement]:
    """The model's answer about a tool, checked: one judgement per call, or one for no call at all."""
    decision = DecisionState(answer["decision"])
    because = shortened(answer["because"], LONGEST_REASON)
    if decision is DecisionState.DATA_ALREADY_IN_CONTEXT and not _has_result(state, tool):
        # "Does not apply" is at times said like this. What the tool never gave cannot be there already.
        decision = DecisionState.NOT_NEEDED
    if decision in {DecisionState.NOT_NEEDED, DecisionState.DATA_ALREADY_IN_CONTEXT}:
        return [Judgement(state=decision, because=because)]
    proposals: list[JsonObject] = list(answer["calls"]) or [{}]
    grounds = Grounds(history=state.history, variables=state.variables, guidelines=guidelines)
    judged = [
        _judge_call(state, tool, grounds, proposal, because, decision) for proposal in proposals
    ]
    # Duplicates in one answer collapse.
    unique: dict[str, Judgement] = {}
    for judgement in judged:
        unique.setdefault(_as_call(tool, judgement), judgement)
    return list(unique.values())


def _has_result(state: TurnState, tool: Tool) -> bool:
    return any(
        isinstance(entry.event, ToolFinishedEvent)
        and entry.event.tool == tool.name
        and entry.event.error is None
        and not entry.event.withheld
        for entry in state.history
    )


_MADE = frozenset({DecisionState.NEEDS_TO_RUN, DecisionState.AWAITING_CONFIRMATION})


def _as_call(tool: Tool, judgement: Judgement) -> str:
    """What makes two judgements of one answer the same."""
    values = {argument.name: argument.value for argument in judgement.arguments}
    if judgement.state in _MADE:
        return effective(tool, values)
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
    if not checked.ready:
        return Judgement(
            state=DecisionState.CANNOT_RUN,
            because=_why_not(tool, checked),
            arguments=arguments,
            checked=checked,
            insights=tuple(_insights(state, tool, checked)),
        )
    arguments = as_called(tool, arguments, checked)
    judgement = _dealt_with(state, tool, checked.values) or _to_make(
        tool, arguments, because, decision
    )
    return replace(judgement, arguments=arguments, checked=checked)


def _dealt_with(state: TurnState, tool: Tool, values: JsonObject) -> Judgement | None:
    """The judgement of a call that was made, asked about or declined already; None for a new one."""
    if earlier := _same_call(state, tool, values):
        return Judgement(
            state=DecisionState.DATA_ALREADY_IN_CONTEXT,
            because="The same call was made in this turn already.",
            call=earlier,
        )
    if not tool.consequential:
        return None
    wanted = effective(tool, values)
    for pending in pending_calls(state.history, state.turn):
        asked = pending.asked
        if asked.tool == tool.name and effective(tool, asked.arguments) == wanted:
            return Judgement(
                state=DecisionState.AWAITING_CONFIRMATION,
                because="The same call awaits the customer's word already.",
                call=asked.call,
            )
    for answered in answered_in(state.history, state.turn):
        same = answered.asked.tool == tool.name and (
            effective(tool, answered.asked.arguments) == wanted
        )
        if same and answered.answer is Answer.DECLINED:
            return Judgement(
                state=DecisionState.NOT_NEEDED,
                because="The customer has just declined this very call.",
                call=answered.asked.call,
            )
    if lost := _lost_now(state, tool, wanted):
        return Judgement(
            state=DecisionState.CANNOT_RUN,
            because="It is not known whether the same call was done before; a person has to look.",
            call=lost,
        )
    return None


def _to_make(
    tool: Tool, arguments: tuple[Argument, ...], because: str, decision: DecisionState
) -> Judgement:
    """The judgement of a new call with all it needs."""
    if decision is DecisionState.CANNOT_RUN:
        # Nothing is missing by our rules, but nothing irreversible happens against the model's word.
        if tool.consequential:
            return Judgement(state=decision, because=because)
        because = f"Every required argument is known, though the model said: {because}"
    if needs_word(tool, arguments):
        return Judgement(state=DecisionState.AWAITING_CONFIRMATION, because=because)
    return Judgement(state=DecisionState.NEEDS_TO_RUN, because=because)


def needs_word(tool: Tool, arguments: Iterable[Argument]) -> bool:
    """Must the customer confirm this call before it runs? Always where an argument is the model's own conclusion."""
    if not tool.consequential:
        return False
    return tool.confirm is Confirm.ALWAYS or any(not argument.verified for argument in arguments)


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
        traced.append(argument)
    return tuple(traced)


def as_called(tool: Tool, arguments: Iterable[Argument], checked: Checked) -> tuple[Argument, ...]:
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
    wanted = effective(tool, values)
    for call in state.calls.values():
        same_tool = call.tool == tool.name and call.state in standing
        if same_tool and effective(tool, call.arguments) == wanted:
            return call.uid
    return ""


def _lost_now(state: TurnState, tool: Tool, wanted: str) -> str:
    """The uid of an identical call of an earlier turn whose outcome this turn found to be unknown."""
    for entry in state.history:
        event = entry.event
        if (
            isinstance(event, ToolFinishedEvent)
            and entry.turn == state.turn
            and event.error is not None
            and event.tool == tool.name
            and event.call not in state.calls
            and effective(tool, event.arguments) == wanted
        ):
            return event.call
    return ""


def effective(tool: Tool, values: JsonObject) -> str:
    """The call as the tool sees it: leaving a default out and giving it are the same."""
    return canonical_json(check_arguments(tool, values).defaults | values)
