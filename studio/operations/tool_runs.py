"""Running one tool by hand, outside of any conversation, to see what it does."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.arguments import Checked, check_arguments
from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext
from studio.bridge import compile_tool, customer_view
from studio.models import Customer, Tool
from studio.toolbox import plugin_data, tool_service


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the tool said while it worked."""

    kind: Literal["status", "message"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """How a run ended: with `data` and `metadata`, or with an `error`."""

    data: Any
    metadata: JsonObject
    log: tuple[Said, ...]
    duration_ms: int
    error: ToolError | None = None


class ArgumentsRefusedError(Exception):
    """The tool was not run: `checked` says what is missing, invalid or unknown."""

    def __init__(self, checked: Checked) -> None:
        super().__init__(", ".join(name for name, _reason in checked_problems(checked)))
        self.checked = checked


def checked_problems(checked: Checked) -> list[tuple[str, str]]:
    """(parameter, what is wrong with it)."""
    return [
        *((name, "is required") for name in checked.missing),
        *((argument.name, argument.reason) for argument in checked.invalid),
        *((name, "is no parameter of this tool") for name in checked.unknown),
    ]


async def run_tool(
    row: Tool, arguments: Mapping[str, Any], *, customer: Customer | None = None
) -> ToolRun:
    """Run the tool's code with these arguments, as a call of an agent would, within the tool's time limit.

    Failure is data; raises ArgumentsRefusedError where the arguments do not fit the parameters.
    """
    tool = compile_tool(row)
    checked = check_arguments(tool, arguments)
    if not checked.ready or checked.unknown:
        raise ArgumentsRefusedError(checked)
    log: list[Said] = []

    async def note_message(text: str) -> None:
        log.append(Said(kind="message", text=text))

    async def note_status(text: str) -> None:
        log.append(Said(kind="status", text=text))

    context = ToolContext(
        agent_id="",
        session_id="",
        turn_id="",
        customer_id=customer.uid if customer else "",
        variables=dict(customer.variables) if customer else {},
        plugin_data=plugin_data(),
        customer=customer_view(customer),
        send_message=note_message,
        send_status=note_status,
    )
    started = time.monotonic()
    data, metadata, error = None, {}, None
    try:
        async with asyncio.timeout(tool.deadline):
            result = await tool_service().call(tool, checked.values, context)
        data, metadata = result.data, result.metadata
    except TimeoutError:
        error = ToolError(
            kind=ToolErrorKind.TIMEOUT,
            public="it took too long",
            detail=f"{tool.name!r} was stopped at its deadline of {tool.deadline:g} s.",
        )
    except ToolFailure as failure:
        error = failure.error
    return ToolRun(
        data=data,
        metadata=metadata,
        log=tuple(log),
        duration_ms=round((time.monotonic() - started) * 1000),
        error=error,
    )
