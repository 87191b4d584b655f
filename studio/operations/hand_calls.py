"""One call of a tool by hand, outside of any conversation: by API at once, or as a run that people watch."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine import spec
from engine.arguments import Checked, check_arguments
from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext, ToolResult, ToolService
from studio.bridge import customer_view
from studio.models import Customer


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


def fitting_arguments(tool: spec.Tool, arguments: Mapping[str, Any]) -> JsonObject:
    """The arguments to call with; raises ArgumentsRefusedError."""
    checked = check_arguments(tool, arguments)
    if not checked.ready or checked.unknown:
        raise ArgumentsRefusedError(checked)
    return checked.values


class Hearing(Protocol):
    """Takes what a tool says and prints while it works; `printed` is called from any thread."""

    async def message(self, text: str) -> None: ...

    async def status(self, text: str) -> None: ...

    def printed(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a call ended: with a `result`, or with a `failure`."""

    duration_ms: int
    result: ToolResult | None = None
    failure: ToolError | None = None


async def call_by_hand(
    service: ToolService,
    tool: spec.Tool,
    arguments: JsonObject,
    *,
    customer: Customer | None,
    plugin_data: dict[str, Any],
    hearing: Hearing,
) -> Ended:
    """Call it as an agent would, within its time limit. Failure is data."""
    context = ToolContext(
        agent_id="",
        session_id="",
        turn_id="",
        customer_id=customer.uid if customer else "",
        variables=dict(customer.variables) if customer else {},
        plugin_data=plugin_data,
        customer=customer_view(customer),
        send_message=hearing.message,
        send_status=hearing.status,
        show_log=hearing.printed,
    )
    started = time.monotonic()
    result = failure = None
    try:
        async with asyncio.timeout(tool.deadline):
            result = await service.call(tool, arguments, context)
    except TimeoutError:
        failure = ToolError(
            kind=ToolErrorKind.TIMEOUT,
            public="it took too long",
            detail=f"{tool.name!r} was stopped at its deadline of {tool.deadline:g} s.",
        )
    except ToolFailure as error:
        failure = error.error
    spent = round((time.monotonic() - started) * 1000)
    return Ended(duration_ms=spent, result=result, failure=failure)
