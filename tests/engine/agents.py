"""Small agents to play turns with."""

from collections.abc import Iterable
from typing import Any

from engine.events import Event, MessageEvent, RecordedEvent, Source
from engine.spec import Agent, Guideline, Tool, ToolParameter
from engine.state import TurnState


def parameter(name: str, kind: str = "string", **options: Any) -> ToolParameter:
    return ToolParameter(name=name, schema={"type": kind}, **options)


def tool(name: str, *parameters: ToolParameter, **options: Any) -> Tool:
    description = options.pop("description", f"Does {name}.")
    return Tool(
        uid=f"t-{name}", name=name, description=description, parameters=parameters, **options
    )


def guideline(uid: str, condition: str = "", action: str = "", **options: Any) -> Guideline:
    return Guideline(uid=uid, condition=condition, action=action, **options)


def agent(*guidelines: Guideline, tools: Iterable[Tool] = (), **options: Any) -> Agent:
    return Agent(
        slug="library", name="Library", guidelines=guidelines, tools=tuple(tools), **options
    )


def said_by(source: Source, text: str) -> MessageEvent:
    return MessageEvent(source=source, text=text)


def history(*events: Event | str) -> tuple[RecordedEvent, ...]:
    """One event after another; text is what the customer says, and each customer message begins a turn."""
    found, turn = [], 0
    for offset, given in enumerate(events, start=1):
        event = said_by(Source.CUSTOMER, given) if isinstance(given, str) else given
        turn += isinstance(given, str)
        found.append(RecordedEvent(offset=offset, turn=turn, event=event))
    return tuple(found)


def turn_of(spec: Agent, *events: Event | str, **options: Any) -> TurnState:
    """The state of the turn that answers the last message."""
    past = history(*events)
    return TurnState(agent=spec, turn=past[-1].turn if past else 1, history=past, **options)
