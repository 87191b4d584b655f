"""What a turn works with: models, tools, limits, and the way out for what it finds."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from engine.model.base import ChatModel
from engine.outbox import Outbox
from engine.spec import Tool
from engine.tools.base import ToolContext, ToolService
from engine.tools.standing_in import StandIn
from engine.trail import ChoicesOffered


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Judging guidelines and reading arguments, and writing replies, may be different models."""

    judging: ChatModel
    writing: ChatModel

    @classmethod
    def same(cls, model: ChatModel) -> "Models":
        return cls(judging=model, writing=model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a turn reports on a tool at work, in seconds from the start of its call."""

    opening: float = 1.0  # of a tool of the MEDIUM tier; one that is quicker needs no words
    reports: tuple[float, float] = (2.0, 8.0)  # of the SLOW tier
    quiet: float = 2.0  # after the tool's own report


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The dependencies of one turn, apart from its state. `stop` asks it to end at the next safe point.

    With a `stand_in` no tool is called: it answers in their place. Only choices are still asked for, which reads, and
    of tools in `choices_on_record` not even those. `now` is the moment that waiting for the customer's word is counted
    by; a turn that is played again has its own.
    """

    models: Models
    tools: ToolService
    context: ToolContext
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    outbox: Outbox = field(default_factory=Outbox)
    pace: Pace = field(default_factory=Pace)
    stand_in: StandIn | None = None
    now: Callable[[], datetime] = _utc_now
    choices_on_record: Mapping[str, ChoicesOffered] = field(default_factory=dict)
    # What `engine.choices.offered` asked in this turn: tool name → the tool narrowed, or why it cannot be offered.
    offers: dict[str, "asyncio.Task[Tool | str]"] = field(default_factory=dict)
