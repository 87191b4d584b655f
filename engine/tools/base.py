"""What every kind of tool has in common: ToolService, ToolContext, ToolResult (TOOLS.md)."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from engine.canonical import JsonObject, without_nul
from engine.events import Mode
from engine.spec import Criticality, Tool
from engine.tools.views import AgentView, CustomerView


class Lifespan(StrEnum):
    SESSION = "session"  # kept, and seen in later turns
    RESPONSE = "response"  # for the reply of this turn only


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What a result asks of the engine.

    `mode` MANUAL hands over to a person after this reply. AUTO and None change nothing: a turn runs in automatic mode
    only, and neither another result nor a person who took over meanwhile is overruled.
    """

    mode: Mode | None = None
    lifespan: Lifespan = Lifespan.SESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class TransientGuideline:
    """A guideline that a result brings along, for this turn only; without a condition it applies at once."""

    condition: str = ""
    action: str = ""
    criticality: Criticality = Criticality.MEDIUM


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gives back (ENGINE.md §4): `data` is any JSON, all the model sees; `metadata` is for front ends.

    `canned_responses` are templates to choose the reply from and `canned_response_fields` fill them, both for this
    turn; so are `guidelines`. `control` and each guideline may be given as dicts of the same fields. What a tool made
    is checked by `engine.tools.results.checked` before anything rests on it.
    """

    data: Any
    metadata: JsonObject = field(default_factory=dict)
    control: Control | Mapping[str, str | None] = field(default_factory=Control)
    canned_responses: Sequence[str] = ()
    canned_response_fields: JsonObject = field(default_factory=dict)
    guidelines: Sequence[TransientGuideline | Mapping[str, str]] = ()
    log: str = ""  # what it printed beside: kept in the trail for developers, no part of what the model sees

    def to_json(self) -> JsonObject:
        """Raises TypeError or ValueError where it holds what JSON cannot. NUL characters are left out.

        What is as usual is left out, but for `data` and `metadata`; so is the log.
        """
        value = {"data": self.data, "metadata": self.metadata}
        if self.control != Control():
            value["control"] = _plain(self.control)
        if self.canned_responses:
            value["canned_responses"] = list(self.canned_responses)
        if self.canned_response_fields:
            value["canned_response_fields"] = self.canned_response_fields
        if self.guidelines:
            value["guidelines"] = [_plain(guideline) for guideline in self.guidelines]
        plain: JsonObject = json.loads(without_nul(json.dumps(value, allow_nan=False)))
        return plain


def _plain(value: Control | TransientGuideline | Mapping[str, Any]) -> JsonObject:
    return dict(value) if isinstance(value, Mapping) else asdict(value)


async def _nowhere(_text: str) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool knows of where it runs. Private data is looked up by `customer_id`, never by what was said.

    `plugin_data` is what the deployment's tool modules give (engine/tools/plugins.py). `agent` and `customer` can be
    read, not changed; they are None where a tool runs outside of any session, or for nobody.
    """

    agent_id: str
    session_id: str
    turn_id: str
    customer_id: str
    variables: JsonObject = field(default_factory=dict)
    plugin_data: dict[str, Any] = field(default_factory=dict)
    agent: AgentView | None = None
    customer: CustomerView | None = None
    send_message: Callable[[str], Awaitable[None]] = _nowhere
    send_status: Callable[[str], Awaitable[None]] = _nowhere
    # What the tool prints, as it comes, for a developer who watches; called from any thread.
    show_log: Callable[[str], None] = lambda _text: None

    # Plain functions, so that a sync tool, which cannot await, emits by calling them (engine/tools/emitting.py).
    def emit_message(self, message: str) -> Awaitable[None]:
        """Say something to the customer while the tool works; await it in an async tool."""
        return self.send_message(message)

    def emit_status(self, status: str) -> Awaitable[None]:
        """Show what the tool is doing; await it in an async tool."""
        return self.send_status(status)


class ToolService(Protocol):
    """Where tools come from. `call` gets validated arguments and raises ToolFailure for every failure it knows."""

    async def describe(self) -> tuple[Tool, ...]: ...

    async def choices(self, tool: Tool, context: ToolContext) -> dict[str, tuple[Any, ...]]:
        """What each parameter that `provides_choices` may be now: name → JSON values; raises ToolFailure."""
        ...

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult: ...
