"""What the results of a turn's calls bring along besides their data: words for the reply, guidelines, a hand-over.

All of it is read from the ToolCalls on the trail, so that a turn that goes on after a crash finds it again.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from engine.canonical import JsonObject
from engine.events import Mode, RecordedEvent, ToolFinishedEvent
from engine.spec import Agent, Criticality, Guideline
from engine.tools.base import Lifespan
from engine.trail import CallState, ToolCall


def given_responses(calls: Iterable[ToolCall]) -> tuple[tuple[str, str], ...]:
    """(uid, template) of the canned responses that these calls gave for their turn's reply; uid is "call:number"."""
    return tuple(
        (f"{call.uid}:{number}", template)
        for call in calls
        for number, template in enumerate(_brought(call, "canned_responses", []), start=1)
    )


def given_fields(calls: Iterable[ToolCall]) -> JsonObject:
    """The fields for canned responses that these calls gave; of one name the later call's counts."""
    found: JsonObject = {}
    for call in calls:
        found |= _brought(call, "canned_response_fields", {})
    return found


def hand_over_by(calls: Iterable[ToolCall]) -> str:
    """The name of the tool whose result hands the session over to a person; empty where none does."""
    for call in calls:
        if _control(call).get("mode") == Mode.MANUAL:
            return call.tool
    return ""


def transient_guidelines(call: ToolCall) -> tuple[Guideline, ...]:
    """The guidelines that a call's result brought for its turn; they have no tools."""
    return tuple(
        Guideline(
            # As long as the trail can store, and still telling which call it came from.
            uid=f"{call.uid[:24]}-{number}",
            condition=given["condition"],
            action=given["action"],
            criticality=Criticality(given["criticality"]),
        )
        for number, given in enumerate(_brought(call, "guidelines", []), start=1)
    )


def joined_by(agent: Agent, call: ToolCall) -> Agent:
    """The agent with the guidelines that the call brought, after its own, so that no label changes."""
    new = [g for g in transient_guidelines(call) if g.uid not in agent.guideline_by_uid]
    return replace(agent, guidelines=(*agent.guidelines, *new)) if new else agent


def finished_event(call: ToolCall) -> ToolFinishedEvent:
    """All of a call's outcome but an error's detail: events reach customers, and that stays in the trail."""
    result = call.result or {"data": None, "metadata": {}}
    return ToolFinishedEvent(
        call=call.uid,
        tool=call.tool,
        arguments=call.arguments,
        data=result["data"],
        metadata=result["metadata"],
        error=replace(call.error, detail="") if call.error else None,
    )


def kept_event(call: ToolCall) -> ToolFinishedEvent:
    """The outcome as the session keeps it: without the data of a result that was for this turn's reply only."""
    event = finished_event(call)
    if _control(call).get("lifespan") != Lifespan.RESPONSE:
        return event
    return replace(event, data=None, metadata={}, withheld=True)


def with_outcome_of(
    history: tuple[RecordedEvent, ...], call: ToolCall
) -> tuple[RecordedEvent, ...]:
    """A history read from a session, in which the call's own turn sees what the session does not keep."""

    def is_withheld(entry: RecordedEvent) -> bool:
        event = entry.event
        return isinstance(event, ToolFinishedEvent) and event.withheld and event.call == call.uid

    if call.state is not CallState.DONE or not any(map(is_withheld, history)):
        return history
    return tuple(
        replace(entry, event=finished_event(call)) if is_withheld(entry) else entry
        for entry in history
    )


def _control(call: ToolCall) -> JsonObject:
    control: JsonObject = _brought(call, "control", {})
    return control


def _brought(call: ToolCall, name: str, nothing: Any) -> Any:
    if call.state is not CallState.DONE or call.result is None:
        return nothing
    return call.result.get(name, nothing)
