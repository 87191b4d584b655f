"""What may stand in for tools, so that a conversation can be tried without running anything."""

from dataclasses import dataclass
from typing import Protocol

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind
from engine.spec import Tool
from engine.tools.base import ToolResult
from engine.trail import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class StoodIn:
    """An outcome that no tool gave now; `served_from` names the call that it was recorded of, if any.

    `said` are the messages that were sent to the customer while it was recorded: (text, the MessageEvent's model).
    """

    outcome: ToolResult | ToolError
    served_from: str = ""
    said: tuple[tuple[str, str], ...] = ()


class StandIn(Protocol):
    """Answers in the place of tools; `served` is what the trail says of its outcomes."""

    @property
    def served(self) -> Served: ...

    def answers(self, tool: Tool) -> bool:
        """Does it stand in for this tool? One that it does not stand in for runs."""
        ...

    def place_of(self, tool: Tool, arguments: JsonObject) -> int:
        """Of several calls at once the one with the lowest place ends first; all the same where it is not known."""
        ...

    async def outcome_of(self, tool: Tool, arguments: JsonObject) -> StoodIn:
        """Never raises but for being cancelled; what cannot be answered is the ToolError UNAVAILABLE."""
        ...


def unanswered(detail: str) -> StoodIn:
    """Nothing stands in for this call."""
    error = ToolError(kind=ToolErrorKind.UNAVAILABLE, public="it is not available", detail=detail)
    return StoodIn(outcome=error)
