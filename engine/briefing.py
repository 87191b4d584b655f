"""What the writer of a reply is told (ENGINE.md §1 step 8, §3 insights): pure functions of the turn's state."""

from collections.abc import Iterator
from typing import Any

from engine.canonical import JsonObject, canonical_json
from engine.events import Answer, ConfirmationAskedEvent, ToolFinishedEvent
from engine.pending import answered_in, pending_calls
from engine.resolving import questions
from engine.spec import Criticality, Guideline
from engine.state import TurnState
from engine.trail import CallState, DecisionState, InsightKind, ToolDecision, ToolInsight

NO_GUIDELINE = "none applies to the customer's newest messages"

_WEIGHTS = {Criticality.HIGH: "must hold", Criticality.LOW: "advice"}


def brief(
    state: TurnState, matched: tuple[Guideline, ...], told: tuple[ToolInsight, ...]
) -> JsonObject:
    """The briefing as JSON: what is in force, what to ask for, what awaits the customer's word, what came of it.

    That no guideline applies is said only where nothing else is to be said either.
    """
    parts: JsonObject = {
        "guidelines": [_guideline(state, g) for g in matched],
        "ask which": list(_ask_which(state)),
        "confirm": list(_confirm(state)),
        "done as confirmed": list(_confirmed(state)),
        "declined": [action(state, asked) for asked in _answered(state, Answer.DECLINED)],
        "expired": [action(state, asked) for asked in _answered(state, Answer.EXPIRED)],
        "ask for": [_insight(i) for i in told if i.kind is InsightKind.MISSING],
        "ask to correct": [_insight(i) for i in told if i.kind is InsightKind.INVALID],
        "failed": [*_failures(state), *_not_run(state)],
    }
    content = {key: items for key, items in parts.items() if items}
    return content or {"guidelines": NO_GUIDELINE}


def _guideline(state: TurnState, guideline: Guideline) -> JsonObject:
    told: JsonObject = {"id": state.agent.label_of[guideline.uid]}
    if guideline.condition:
        told["when"] = guideline.condition
    if then := state.agent.action_of(guideline):
        told["then"] = then
    if guideline.criticality in _WEIGHTS:
        told["weight"] = _WEIGHTS[guideline.criticality]
    return told


# What awaits the customer's word, and what came of it


def action(state: TurnState, asked: ConfirmationAskedEvent) -> JsonObject:
    """A call in words for people: what it does, and its arguments by their labels, without hidden and empty ones."""
    told: JsonObject = {"what": in_words(asked.tool)}
    if arguments := _labelled(state, asked):
        told["with"] = arguments
    return told


def in_words(tool: str) -> str:
    """ "transfer_money" → "transfer money"."""
    return tool.replace("_", " ").strip()


def _labelled(state: TurnState, asked: ConfirmationAskedEvent) -> JsonObject:
    tool = state.agent.tool_by_name.get(asked.tool)
    parameters = {p.name: p for p in tool.parameters} if tool else {}
    found: JsonObject = {}
    for name, value in asked.arguments.items():
        parameter = parameters.get(name)
        if (parameter is not None and parameter.hidden) or value in ("", None, [], {}):
            continue
        label = asked.labels.get(name) or (parameter.label if parameter else name.replace("_", " "))
        found[label if label not in found else name] = value
    return found


def _confirm(state: TurnState) -> Iterator[JsonObject]:
    """What the customer is asked about now, and what was asked before and is still open."""
    for waiting in pending_calls(state.history, state.turn):
        before = {"asked before": True} if waiting.turn < state.turn else {}
        yield action(state, waiting.asked) | before


def _answered(state: TurnState, answer: Answer) -> Iterator[ConfirmationAskedEvent]:
    """What was answered so in this turn."""
    for answered in answered_in(state.history, state.turn):
        if answered.answer is answer:
            yield answered.asked


def _confirmed(state: TurnState) -> Iterator[JsonObject]:
    for asked in _answered(state, Answer.CONFIRMED):
        call = state.calls.get(asked.call)
        if call is not None and call.state is CallState.DONE:
            yield action(state, asked)


def _ask_which(state: TurnState) -> Iterator[JsonObject]:
    for choosing in questions(state):
        told: JsonObject = {"guideline": state.agent.label_of[choosing.guideline.uid]}
        yield told | {
            "the customer may mean": [
                g.condition or state.agent.action_of(g) for g in choosing.between
            ]
        }


# What failed


def _failures(state: TurnState) -> Iterator[JsonObject]:
    for entry in state.history:
        event = entry.event
        if entry.turn == state.turn and isinstance(event, ToolFinishedEvent) and event.error:
            yield {"tool": event.tool, "because": event.error.public}


def _not_run(state: TurnState) -> Iterator[JsonObject]:
    """Tools that could not run for a reason that the customer can do nothing about."""
    asked_for = {(i.tool, i.iteration) for i in state.insights if not i.hidden}
    for decision in state.decisions:
        blocked = decision.state is DecisionState.CANNOT_RUN
        if not blocked or (decision.tool, decision.iteration) in asked_for:
            continue
        if not _is_settled(state, decision.tool, decision.iteration):
            yield {"tool": decision.tool, "because": _why_not_run(state, decision)}


def _why_not_run(state: TurnState, decision: ToolDecision) -> str:
    """The engine's own reason, where choices were not to be had; a model's, or what is hidden, is not for the reply."""
    tool = state.agent.tool_by_name.get(decision.tool)
    choosing = [p for p in tool.parameters if p.provides_choices] if tool else []
    own = choosing and not decision.model_call and not decision.missing and not decision.invalid
    return decision.because if own and not any(p.hidden for p in choosing) else "it was not run"


# What to ask for


def insights_to_tell(state: TurnState) -> tuple[ToolInsight, ...]:
    """What the customer is asked for: nothing hidden or cured, and only the first group by precedence."""
    told = [i for i in state.insights if not i.hidden and not _is_withdrawn(state, i)]
    unique = {_as_told(insight): insight for insight in told}
    present = [i.precedence for i in unique.values() if i.precedence is not None]
    first = min(present, default=None)
    return tuple(i for i in unique.values() if first is None or i.precedence == first)


def _is_withdrawn(state: TurnState, insight: ToolInsight) -> bool:
    """Was it cured, or is no guideline in force any more that wants its tool?"""
    wanted = any(insight.tool in g.tools for g in state.agent.guidelines if state.in_force(g))
    return not wanted or _is_settled(state, insight.tool, insight.iteration)


_SETTLING = frozenset(
    {
        DecisionState.NEEDS_TO_RUN,
        DecisionState.DATA_ALREADY_IN_CONTEXT,
        DecisionState.AWAITING_CONFIRMATION,
        DecisionState.CANNOT_RUN,  # with insights of its own
    }
)


def _is_settled(state: TurnState, tool: str, iteration: int) -> bool:
    """Was the tool decided anew in a later iteration, to a call or to insights that replace those before?"""
    return any(
        d.tool == tool and d.iteration > iteration and d.state in _SETTLING for d in state.decisions
    )


def _insight(insight: ToolInsight) -> JsonObject:
    told: JsonObject = {"what": insight.label, "needed for": insight.tool}
    optional: dict[str, Any] = {
        "means": insight.description,
        "reason": insight.significance,
        "examples": list(insight.examples),
        "choices": list(insight.choices),
        "given": insight.value,
        "problem": insight.reason,
    }
    return told | {key: value for key, value in optional.items() if value not in ("", [], None)}


def _as_told(insight: ToolInsight) -> str:
    """What makes two insights one and the same request to the customer."""
    told = [insight.label, insight.kind, insight.reason, insight.description, insight.value]
    return canonical_json(told)
