"""Running the calls (ENGINE.md §4): in parallel, each with a deadline, failure as data."""

import asyncio
import copy
import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.events import (
    BY_TOOL,
    MessageEvent,
    Phase,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.kit import Kit
from engine.outcomes import finished_event, kept_event
from engine.progress import Progress, reporting
from engine.spec import Tool
from engine.state import TurnState
from engine.together import together
from engine.tools.base import ToolContext, ToolResult
from engine.tools.results import checked
from engine.tools.standing_in import StandIn
from engine.trail import ArgumentSource, CallState, Served, ToolCall, ToolDecision
from engine.transient import settle_transient

_LONGEST_SPEECH = 10_000  # characters of one message or status that a tool emits
_LONGEST_PUBLIC = 500
_LONGEST_DETAIL = 20_000  # of a traceback, whose end tells the most


async def run_calls(state: TurnState, kit: Kit) -> None:
    """Run what this iteration decided to run; a call that was finished before a crash is not run again."""
    await _tell_unheard(state, kit)
    await run_decided(state, kit, state.to_run())
    await settle_transient(state, kit)


async def run_decided(state: TurnState, kit: Kit, decisions: Sequence[ToolDecision]) -> None:
    """Run the calls of these decisions in parallel, each once; `state` knows the decisions already.

    A consequential call that was STARTED before a crash is not run again: its outcome is UNKNOWN.
    """
    calls = {decision.call: decision for decision in decisions}
    if not calls:
        return
    names = dict.fromkeys(decision.tool for decision in calls.values())
    await kit.outbox.put(StatusEvent(phase=Phase.RUNNING, tools=tuple(names)))
    stood_in = [d for d in calls.values() if _stand_in_for(state, kit, d) is not None]
    live = [_run(state, kit, d) for d in calls.values() if d not in stood_in]
    await together([*live, _run_in_their_order(state, kit, stood_in)])


def _stand_in_for(state: TurnState, kit: Kit, decision: ToolDecision) -> StandIn | None:
    stand_in = kit.stand_in
    if stand_in is None or not stand_in.answers(state.agent.tool_by_name[decision.tool]):
        return None
    return stand_in


async def _run_in_their_order(
    state: TurnState, kit: Kit, decisions: Sequence[ToolDecision]
) -> None:
    """One after another, as they ended when they were recorded: what comes first stands first in prompts."""

    def place(decision: ToolDecision) -> int:
        tool = state.agent.tool_by_name[decision.tool]
        stand_in = _stand_in_for(state, kit, decision)
        return stand_in.place_of(tool, _sent(tool, decision)) if stand_in is not None else 0

    for decision in sorted(decisions, key=place):
        await _run(state, kit, decision)


async def _tell_unheard(state: TurnState, kit: Kit) -> None:
    """Emit the outcomes that an interruption left on the trail without their event."""
    heard = {e.event.call for e in state.history if isinstance(e.event, ToolFinishedEvent)}
    for call in list(state.calls.values()):
        ended = call.state in {CallState.DONE, CallState.FAILED, CallState.UNKNOWN}
        if ended and call.uid not in heard:
            await _tell(state, kit, call)


async def _run(state: TurnState, kit: Kit, decision: ToolDecision) -> None:
    tool = state.agent.tool_by_name[decision.tool]
    earlier = state.calls.get(decision.call)
    if earlier is not None and _may_have_happened(tool, earlier):
        await _finish(state, kit, earlier, _unknown_outcome(tool))
        return
    stand_in = _stand_in_for(state, kit, decision)
    call = ToolCall(
        uid=decision.call,
        tool=tool.name,
        arguments=_sent(tool, decision),
        state=CallState.STARTED,
        iteration=decision.iteration,
        guidelines=tuple(d.guideline for d in state.decisions if d.call == decision.call),
        started_at=datetime.now(UTC),
        served=stand_in.served if stand_in is not None else Served.LIVE,
    )
    state.learn(call)
    try:
        await kit.outbox.put(call)
        started = ToolStartedEvent(call=call.uid, tool=call.tool, arguments=call.arguments)
        await kit.outbox.put(started)
    except asyncio.CancelledError:
        await _record(state, kit, replace(call, state=CallState.CANCELLED))
        raise
    if stand_in is not None:
        await _stand_in(state, kit, stand_in, tool, call)
    else:
        await _run_live(state, kit, tool, call)


def _may_have_happened(tool: Tool, earlier: ToolCall) -> bool:
    """Was it started before an interruption, and may it have changed something by then?"""
    unfinished = earlier.state is CallState.STARTED and earlier.served is Served.LIVE
    return unfinished and tool.consequential


async def _stand_in(
    state: TurnState, kit: Kit, stand_in: StandIn, tool: Tool, call: ToolCall
) -> None:
    try:
        found = await stand_in.outcome_of(tool, call.arguments)
    except asyncio.CancelledError:
        await _record(state, kit, replace(call, state=CallState.CANCELLED))
        raise
    for text, model in found.said:
        message = MessageEvent(source=Source.AGENT, text=text, model=model)
        state.witness(message)
        await kit.outbox.put(message)
    await _finish(state, kit, replace(call, served_from=found.served_from), found.outcome)


async def _run_live(state: TurnState, kit: Kit, tool: Tool, call: ToolCall) -> None:
    running = asyncio.ensure_future(_call(state, kit, tool, call))
    try:
        outcome = await (asyncio.shield(running) if tool.consequential else running)
    except asyncio.CancelledError:
        # What changes something is never left half known: it is awaited, bounded by its deadline, and kept.
        if tool.consequential:
            await _finish(state, kit, call, await running)
        else:
            await _record(state, kit, replace(call, state=CallState.CANCELLED))
        raise
    await _finish(state, kit, call, outcome)


def _sent(tool: Tool, decision: ToolDecision) -> JsonObject:
    """What the tool is called with; it knows the defaults of its optional parameters itself."""
    required = {parameter.name for parameter in tool.parameters if parameter.required}
    return {
        argument.name: argument.value
        for argument in decision.arguments
        if argument.source is not ArgumentSource.DEFAULT or argument.name in required
    }


async def _call(state: TurnState, kit: Kit, tool: Tool, call: ToolCall) -> ToolResult | ToolError:
    deadline = asyncio.timeout(tool.deadline)
    try:
        async with reporting(kit, tool) as progress, deadline:
            context = _context(state, kit, call, progress)
            result = await kit.tools.call(tool, call.arguments, context)
        return checked(tool.name, result)
    except ToolFailure as failure:
        return _storable(failure.error)
    except asyncio.CancelledError:
        if _is_being_cancelled():
            raise
        return _raised()  # the tool's own doing: nobody has cancelled this call
    except Exception:  # noqa: BLE001 - whatever a tool does, the turn goes on and the trail says why
        return _overdue(tool) if deadline.expired() else _raised()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _raised() -> ToolError:
    detail = traceback.format_exc()[-_LONGEST_DETAIL:]
    return _storable(ToolError(kind=ToolErrorKind.EXCEPTION, public="it failed", detail=detail))


def _overdue(tool: Tool) -> ToolError:
    detail = f"{tool.name!r} was stopped at its deadline of {tool.deadline:g} s."
    if tool.consequential:
        return ToolError(
            kind=ToolErrorKind.UNKNOWN_OUTCOME,
            public="it took too long, and it is not known whether it was done; a person has to look",
            detail=f"{detail} What it had done by then is not known. It is not run again.",
        )
    return ToolError(kind=ToolErrorKind.TIMEOUT, public="it took too long", detail=detail)


def _storable(error: ToolError) -> ToolError:
    return replace(
        error,
        public=_speech(error.public)[:_LONGEST_PUBLIC],
        detail=_speech(error.detail)[-_LONGEST_DETAIL:],
    )


def _speech(text: Any) -> str:
    """What a tool says as text that can be stored and sent."""
    return str(text).replace("\x00", "").encode(errors="replace").decode()


def _context(state: TurnState, kit: Kit, call: ToolCall, progress: Progress) -> ToolContext:
    """The tool's context, with a way to speak while it works, and no longer."""

    def is_at_work() -> bool:
        return state.calls[call.uid].state is CallState.STARTED

    async def say(text: str) -> None:
        words = _speech(text)[:_LONGEST_SPEECH].strip()
        if words and is_at_work():
            progress.tool_spoke()
            message = MessageEvent(source=Source.AGENT, text=words, model=BY_TOOL + call.tool)
            state.witness(message)
            await kit.outbox.put(message)

    async def show(text: str) -> None:
        words = _speech(text)[:_LONGEST_SPEECH].strip()
        if words and is_at_work():
            progress.tool_spoke()
            await kit.outbox.put(StatusEvent(phase=Phase.RUNNING, tools=(call.tool,), text=words))

    # A copy of its own: what a tool does to the variables changes nothing for others.
    variables = copy.deepcopy(kit.context.variables)
    return replace(kit.context, variables=variables, send_message=say, send_status=show)


def _unknown_outcome(tool: Tool) -> ToolError:
    return ToolError(
        kind=ToolErrorKind.UNKNOWN_OUTCOME,
        public="it is not known whether it was done; a person has to look",
        detail=f"{tool.name!r} was started before an interruption, and nobody saw it end. It is not run again.",
    )


async def _finish(
    state: TurnState, kit: Kit, call: ToolCall, outcome: ToolResult | ToolError
) -> None:
    """Record the end of a call, and let the rest of the turn see it."""
    ended = datetime.now(UTC)
    if isinstance(outcome, ToolError):
        lost = outcome.kind is ToolErrorKind.UNKNOWN_OUTCOME
        failed = CallState.UNKNOWN if lost else CallState.FAILED
        call = replace(call, state=failed, ended_at=ended, error=outcome)
    else:
        call = replace(
            call,
            state=CallState.DONE,
            ended_at=ended,
            result=outcome.to_json(),
            log=_speech(outcome.log)[-_LONGEST_DETAIL:],
        )
    await _record(state, kit, call)
    await _tell(state, kit, call)


async def _tell(state: TurnState, kit: Kit, call: ToolCall) -> None:
    """The event of a call's end: in full for this turn, and as the session keeps it for everybody else."""
    # Witnessed as it is emitted, so that this turn and later ones read the same order.
    state.witness(finished_event(call))
    await kit.outbox.put(kept_event(call))


async def _record(state: TurnState, kit: Kit, call: ToolCall) -> None:
    if call.ended_at is None:
        call = replace(call, ended_at=datetime.now(UTC))
    state.learn(call)
    await kit.outbox.put(call)
