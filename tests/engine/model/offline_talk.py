"""Whole conversations with the offline model through the engine, for its tests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from engine.canonical import JsonObject
from engine.events import (
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.model.offline import OfflineModel
from engine.spec import Agent, Guideline, Tool, ToolParameter
from engine.state import TurnState
from engine.testing import ScriptedTools, entries, play, scripted_kit
from engine.trail import Adherence, GuidelineMatch, MatchState, ToolCall, ToolDecision, ToolInsight

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)  # a Saturday
KEPT = (
    MessageEvent,
    ToolStartedEvent,
    ToolFinishedEvent,
    ConfirmationAskedEvent,
    ConfirmationAnsweredEvent,
    BriefingEvent,
)


def model() -> OfflineModel:
    return OfflineModel(now=lambda: NOW)


def wants(name: str, schema: str | JsonObject, description: str = "", **more: Any) -> ToolParameter:
    """A parameter; `schema` is a JSON Schema or the name of a type or format."""
    formats = {"date", "date-time", "time", "duration", "email", "uuid"}
    if isinstance(schema, str):
        schema = {"type": "string", "format": schema} if schema in formats else {"type": schema}
    return ToolParameter(name=name, schema=schema, description=description, **more)


def one_of(*choices: Any) -> JsonObject:
    return {"enum": list(choices)}


def tool(name: str, description: str, *parameters: ToolParameter, **more: Any) -> Tool:
    return Tool(uid=name, name=name, description=description, parameters=parameters, **more)


def rule(uid: str, condition: str, action: str = "", *tools: str, **more: Any) -> Guideline:
    return Guideline(uid=uid, condition=condition, action=action, tools=tools, **more)


@dataclass(kw_only=True)
class Turn:
    """What one turn came to."""

    emitted: list[Any]
    called: list[tuple[str, JsonObject]]

    @property
    def reply(self) -> str:
        return str(entries(self.emitted, MessageEvent)[-1].text)

    @property
    def matched(self) -> set[str]:
        found = entries(self.emitted, GuidelineMatch)
        return {match.guideline for match in found if match.state is MatchState.MATCHED}

    @property
    def because(self) -> dict[str, str]:
        return {match.guideline: match.because for match in entries(self.emitted, GuidelineMatch)}

    @property
    def decisions(self) -> list[ToolDecision]:
        return entries(self.emitted, ToolDecision)

    @property
    def insights(self) -> list[ToolInsight]:
        return entries(self.emitted, ToolInsight)

    @property
    def follows(self) -> dict[str, bool]:
        return {entry.guideline: entry.follows for entry in entries(self.emitted, Adherence)}


@dataclass(kw_only=True)
class Talk:
    """A session: `functions` are the tools as functions of their arguments."""

    agent: Agent
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    variables: JsonObject = field(default_factory=dict)
    history: list[RecordedEvent] = field(default_factory=list)
    turn: int = 0

    async def say(self, *texts: str) -> Turn:
        """The customer writes, and the engine answers."""
        self.turn += 1
        for text in texts:
            self._keep(MessageEvent(source=Source.CUSTOMER, text=text))
        state = TurnState(
            agent=self.agent,
            turn=self.turn,
            history=tuple(self.history),
            variables=self.variables,
        )
        tools = ScriptedTools(
            {name: lambda a, _c, f=f: f(**a) for name, f in self.functions.items()}  # type: ignore[misc]
        )
        emitted = await play(state, scripted_kit(model(), tools))
        for item in emitted:
            if isinstance(item, KEPT):
                self._keep(item)
        done = [(call.tool, call.arguments) for call in entries(emitted, ToolCall)]
        assert all(entry in done for entry in tools.called)
        return Turn(emitted=emitted, called=tools.called)

    def _keep(self, event: Event) -> None:
        offset = self.history[-1].offset + 1 if self.history else 1
        self.history.append(RecordedEvent(offset=offset, turn=self.turn, event=event))
