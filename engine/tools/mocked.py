"""Outcomes written by hand in place of calls: data, or a failure of a kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.spec import Tool
from engine.tools.base import ToolResult
from engine.tools.results import checked
from engine.tools.standing_in import StoodIn, unanswered
from engine.trail import Served

_PUBLIC = {
    ToolErrorKind.TIMEOUT: "it took too long",
    ToolErrorKind.EXCEPTION: "it failed",
    ToolErrorKind.BAD_OUTPUT: "its answer could not be read",
    ToolErrorKind.TOO_LARGE: "its answer was too large",
    ToolErrorKind.UNAVAILABLE: "it is not available",
    ToolErrorKind.NOT_ALLOWED: "it is not allowed to do this",
    ToolErrorKind.UNKNOWN_OUTCOME: "it is not known whether it was done; a person has to look",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mock:
    """What a tool answers: `data` (any JSON), or a failure."""

    data: Any = None
    failure: ToolErrorKind | None = None


class MockedOutcomes:
    """A StandIn that answers with the mock of the tool's name, whatever the arguments are."""

    served = Served.MOCK

    def __init__(self, mocks: Mapping[str, Mock]) -> None:
        self._mocks = dict(mocks)

    def answers(self, tool: Tool) -> bool:  # noqa: ARG002
        return True

    def place_of(self, tool: Tool, arguments: JsonObject) -> int:  # noqa: ARG002
        return 0

    async def outcome_of(self, tool: Tool, arguments: JsonObject) -> StoodIn:  # noqa: ARG002
        mock = self._mocks.get(tool.name)
        if mock is None:
            return unanswered(
                f"{tool.name!r} has no mock in this session: write one, or run the tools live."
            )
        return StoodIn(outcome=_outcome(tool, mock))


def failure_of(tool: str, kind: ToolErrorKind) -> ToolError:
    """A failure of this kind that no tool had."""
    detail = f"A failure of the kind {kind.value!r}, mocked for {tool!r}."
    return ToolError(kind=kind, public=_PUBLIC[kind], detail=detail)


def _outcome(tool: Tool, mock: Mock) -> ToolResult | ToolError:
    if mock.failure is not None:
        return failure_of(tool.name, mock.failure)
    try:
        return checked(tool.name, ToolResult(data=mock.data))
    except ToolFailure as failure:
        return failure.error
