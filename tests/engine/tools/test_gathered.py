"""Several services of tools as one."""

from typing import Any

import pytest

from engine.canonical import JsonObject
from engine.errors import ToolErrorKind, ToolFailure
from engine.spec import Tool
from engine.tools.base import ToolContext, ToolResult
from engine.tools.gathered import GatheredTools

CONTEXT = ToolContext(agent_id="a", session_id="s", turn_id="t", customer_id="c")


class Service:
    """Answers with its own name; counts how often it was asked what it has."""

    def __init__(self, name: str, *tools: Tool) -> None:
        self.name = name
        self.tools = tools
        self.described = 0

    async def describe(self) -> tuple[Tool, ...]:
        self.described += 1
        return self.tools

    async def choices(self, tool: Tool, context: ToolContext) -> dict[str, tuple[Any, ...]]:
        return {"of": (self.name,)}

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(data=[self.name, arguments, context.session_id])


def make_tool(uid: str, name: str = "") -> Tool:
    return Tool(uid=uid, name=name or f"tool_{uid}", description="")


async def test_each_tool_goes_to_the_service_that_has_its_uid() -> None:
    # Each has a tool of the other's name, which does not count.
    left = Service("left", make_tool("1", "both"), make_tool("2"))
    right = Service("right", make_tool("3", "both"))
    gathered = GatheredTools([left, right])

    assert [tool.uid for tool in await gathered.describe()] == ["1", "2", "3"]
    answer = await gathered.call(make_tool("3", "both"), {"a": 1}, CONTEXT)
    assert answer.data == ["right", {"a": 1}, "s"]
    assert await gathered.choices(make_tool("2"), CONTEXT) == {"of": ("left",)}


async def test_a_function_that_moved_is_found_by_its_name() -> None:
    gathered = GatheredTools([Service("functions", make_tool("new", "find_parcel"))])

    answer = await gathered.call(make_tool("old", "find_parcel"), {}, CONTEXT)

    assert answer.data[0] == "functions"


async def test_a_tool_that_none_knows_is_unavailable_and_named() -> None:
    gathered = GatheredTools([Service("left", make_tool("1"))])

    for asked in (gathered.call(make_tool("9", "lost"), {}, CONTEXT),):
        with pytest.raises(ToolFailure) as caught:
            await asked
        assert caught.value.error.kind is ToolErrorKind.UNAVAILABLE
        assert "'lost'" in caught.value.error.detail


async def test_services_are_asked_once_what_they_have() -> None:
    service = Service("left", make_tool("1"))
    gathered = GatheredTools([service])

    for _time in range(3):
        await gathered.call(make_tool("1"), {}, CONTEXT)

    assert service.described == 1
