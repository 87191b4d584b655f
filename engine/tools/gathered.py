"""Several ToolServices as one."""

from collections.abc import Iterable
from typing import Any

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.spec import Tool
from engine.tools.base import ToolContext, ToolResult, ToolService


class GatheredTools:
    """One ToolService of several: each tool goes to the one that knows its uid, else to one that knows its name.

    Of two that know the same, the first counts. What the services describe is asked for once.
    """

    def __init__(self, services: Iterable[ToolService]) -> None:
        self._services = tuple(services)
        self._by_uid: dict[str, ToolService] = {}
        self._by_name: dict[str, ToolService] = {}
        self._asked = False

    async def describe(self) -> tuple[Tool, ...]:
        """The tools of all services, in the order of these."""
        return tuple([tool for service in self._services for tool in await service.describe()])

    async def choices(self, tool: Tool, context: ToolContext) -> dict[str, tuple[Any, ...]]:
        """As the tool's service names them; raises ToolFailure."""
        return await (await self._service_of(tool)).choices(tool, context)

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """As the tool's service answers; raises ToolFailure, UNAVAILABLE where none knows the tool."""
        return await (await self._service_of(tool)).call(tool, arguments, context)

    async def _service_of(self, tool: Tool) -> ToolService:
        if not self._asked:
            for service in self._services:
                for known in await service.describe():
                    self._by_uid.setdefault(known.uid, service)
                    self._by_name.setdefault(known.name, service)
            self._asked = True
        found = self._by_uid.get(tool.uid) or self._by_name.get(tool.name)
        if found is None:
            raise ToolFailure(
                ToolError(
                    kind=ToolErrorKind.UNAVAILABLE,
                    public="it is not available",
                    detail=f"tool {tool.name!r} ({tool.uid}) is no longer there: "
                    "neither a function nor an uploaded tool has its uid",
                )
            )
        return found
