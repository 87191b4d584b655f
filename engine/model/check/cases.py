"""What the labelled set is made of. The set itself stands in `workshop`, `hotel`, `practice` and `provider`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from engine.canonical import JsonObject
from engine.events import (
    BriefingEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
)
from engine.spec import Agent, Guideline, Tool, ToolParameter
from engine.state import TurnState
from engine.trail import DecisionState

LONG_AGO = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A conversation and the guidelines of `agent` (by uid) that apply at its end; all others do not."""

    agent: Agent
    talk: tuple[RecordedEvent, ...]
    applies: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCase:
    """Whether `tool` is to be called at the end of a conversation, and with what.

    `calls` are the arguments of each call; with CANNOT_RUN, `missing` names what is to be asked for.
    """

    tool: Tool
    guideline: Guideline
    talk: tuple[RecordedEvent, ...]
    decision: DecisionState
    calls: tuple[JsonObject, ...] = ()
    missing: frozenset[str] = frozenset()
    variables: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationCase:
    """What the newest message says of each pending call, in their order.

    `also` says that it asks something else too, which must not get lost.
    """

    agent: Agent
    talk: tuple[RecordedEvent, ...]
    answers: tuple[str, ...]
    also: bool = False


def talk(*events: Event) -> tuple[RecordedEvent, ...]:
    """One event after another; a customer's message after anything else begins a turn."""
    found: list[RecordedEvent] = []
    turn, customer_spoke = 0, False
    for offset, event in enumerate(events, start=1):
        speaks = isinstance(event, MessageEvent) and event.source is Source.CUSTOMER
        turn += speaks and not customer_spoke
        customer_spoke = speaks
        found.append(RecordedEvent(offset=offset, turn=turn, event=event))
    return tuple(found)


def customer(text: str) -> MessageEvent:
    return MessageEvent(source=Source.CUSTOMER, text=text)


def agent_says(text: str) -> MessageEvent:
    return MessageEvent(source=Source.AGENT, text=text)


def acted_on(*guidelines: str) -> BriefingEvent:
    """The reply that follows was written by these guidelines."""
    return BriefingEvent(guidelines=guidelines)


def result(tool: str, data: Any, **arguments: Any) -> ToolFinishedEvent:
    return ToolFinishedEvent(call=f"call-{tool}", tool=tool, arguments=arguments, data=data)


def awaits(tool: str, **arguments: Any) -> ConfirmationAskedEvent:
    """A call that waits for the customer's word."""
    return ConfirmationAskedEvent(
        call=f"call-{tool}-{'-'.join(map(str, arguments.values()))}",
        tool=tool,
        arguments=arguments,
        guidelines=(),
        labels={name: name.replace("_", " ") for name in arguments},
        asked_at=LONG_AGO,
    )


def when(uid: str, condition: str, action: str = "answer it", **options: Any) -> Guideline:
    return Guideline(uid=uid, condition=condition, action=action, **options)


def tool(name: str, description: str, *parameters: ToolParameter) -> Tool:
    return Tool(uid=name, name=name, description=description, parameters=parameters)


def needs(name: str, description: str, kind: str, **options: Any) -> ToolParameter:
    """A required parameter of a JSON type; `format`, `enum` and `items` go into its schema."""
    schema: JsonObject = {"type": kind}
    for key in ("format", "enum", "items"):
        if key in options:
            schema[key] = options.pop(key)
    return ToolParameter(name=name, schema=schema, description=description, **options)


def state_of(
    agent: Agent, history: Iterable[RecordedEvent], variables: JsonObject | None = None
) -> TurnState:
    """The turn that answers the last message."""
    past = tuple(history)
    return TurnState(agent=agent, turn=past[-1].turn, history=past, variables=variables or {})
