"""Running the calls (ENGINE.md §4): in parallel, each with a deadline, failure as data."""

import asyncio
import traceback
from dataclasses import replace
from datetime import UTC, datetime

from engine.canonical import JsonObject, canonical_json
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.events import (
    MessageEvent,
    Phase,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.kit import Kit
from engine.spec import Tool
from engine.state import TurnState
from engine.together import together
from engine.tools.base import ToolContext, ToolResult
from engine.trail import CallState, ToolCall, ToolDecision

MAX_RESULT_BYTES = 1024 * 1024


async def run_calls(state: TurnState, kit: Kit) -> None:
    """Run what this iteration decided to run; a call that was finished before a crash is not run again."""
    decisions = state.to_run()
    if not decisions:
        return
    names = dict.fromkeys(decision.tool for decision in decisions)
    await kit.outbox.put(StatusEvent(phase=Phase.RUNNING, tools=tuple(names)))
    await together(_run(state, kit, decision) for decision in decisions)


async def _run(state: TurnState, kit: Kit, decision: ToolDecision) -> None:
    tool = state.agent.tool_by_name[decision.tool]
    earlier = state.calls.get(decision.call)
    if earlier is not None and earlier.state is CallState.STARTED and tool.consequential:
        await _finish(state, kit, earlier, _unknown_outcome(tool))
        return
    call = ToolCall(
        uid=decision.call,
        tool=tool.name,
        arguments={argument.name: argument.value for argument in decision.arguments},
        state=CallState.STARTED,
        iteration=decision.iteration,
        guidelines=tuple(d.guideline for d in state.decisions if d.call == decision.call),
        started_at=datetime.now(UTC),
    )
    state.learn(call)
    await kit.outbox.put(call)
    await kit.outbox.put(ToolStartedEvent(call=call.uid, tool=call.tool, arguments=call.arguments))
    running = asyncio.ensure_future(_call(state, kit, tool, call.arguments))
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


async def _call(
    state: TurnState, kit: Kit, tool: Tool, arguments: JsonObject
) -> ToolResult | ToolError:
    try:
        async with asyncio.timeout(tool.deadline):
            result = await kit.tools.call(tool, arguments, _context(state, kit, tool))
    except TimeoutError:
        return ToolError(
            kind=ToolErrorKind.TIMEOUT,
            public="it took too long",
            detail=f"{tool.name!r} was stopped at its deadline of {tool.deadline:g} s.",
        )
    except ToolFailure as failure:
        return failure.error
    except Exception:  # noqa: BLE001 - whatever a tool does, the turn goes on and the trail says why
        return ToolError(
            kind=ToolErrorKind.EXCEPTION, public="it failed", detail=traceback.format_exc()
        )
    return _bounded(tool, result)


def _context(state: TurnState, kit: Kit, tool: Tool) -> ToolContext:
    """The tool's context, with a way to speak while it works."""

    async def say(text: str) -> None:
        message = MessageEvent(source=Source.AGENT, text=text, model=f"tool {tool.name}")
        state.witness(message)
        await kit.outbox.put(message)

    async def show(text: str) -> None:
        await kit.outbox.put(StatusEvent(phase=Phase.RUNNING, tools=(tool.name,), text=text))

    return replace(kit.context, send_message=say, send_status=show)


def _bounded(tool: Tool, result: ToolResult) -> ToolResult | ToolError:
    try:
        size = len(canonical_json(result.to_json()).encode())
    except (TypeError, ValueError, RecursionError) as error:
        return ToolError(
            kind=ToolErrorKind.BAD_OUTPUT,
            public="its answer could not be read",
            detail=f"{tool.name!r} returned what JSON cannot hold: {error}",
        )
    if size > MAX_RESULT_BYTES:
        return ToolError(
            kind=ToolErrorKind.TOO_LARGE,
            public="its answer was too large",
            detail=f"{tool.name!r} returned {size} bytes; {MAX_RESULT_BYTES} are kept at most.",
        )
    return result


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
        event = ToolFinishedEvent(
            call=call.uid, tool=call.tool, arguments=call.arguments, error=outcome
        )
    else:
        result = outcome.to_json()
        call = replace(call, state=CallState.DONE, ended_at=ended, result=result)
        event = ToolFinishedEvent(
            call=call.uid,
            tool=call.tool,
            arguments=call.arguments,
            data=result["data"],
            metadata=result["metadata"],
        )
    state.witness(event)
    await _record(state, kit, call)
    await kit.outbox.put(event)


async def _record(state: TurnState, kit: Kit, call: ToolCall) -> None:
    if call.ended_at is None:
        call = replace(call, ended_at=datetime.now(UTC))
    state.learn(call)
    await kit.outbox.put(call)
