"""Running one tool by hand, outside of any conversation, to see what it does."""

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.arguments import Checked, check_arguments
from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext, ToolResult
from engine.tools.results import MAX_LOG
from studio.bridge import compile_tool, customer_view
from studio.live import in_database
from studio.models import Customer, Tool
from studio.toolbox import plugin_data, tools_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the tool said while it worked, or printed."""

    kind: Literal["status", "message", "print"]
    text: str


class _Heard:
    """All of that, in the order in which it came; printed text comes in pieces, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: list[Said] = []

    async def message(self, text: str) -> None:
        self._add(Said(kind="message", text=text))

    async def status(self, text: str) -> None:
        self._add(Said(kind="status", text=text))

    def printed(self, text: str) -> None:
        self._add(Said(kind="print", text=text))

    def _add(self, said: Said) -> None:
        with self._lock:
            last = self._said[-1] if self._said else None
            if last is not None and last.kind == said.kind == "print":
                self._said[-1] = replace(last, text=(last.text + said.text)[-MAX_LOG:])
            else:
                self._said.append(said)

    def all(self, log: str = "") -> tuple[Said, ...]:
        """`log` is what the result says was printed: it counts where nothing was heard of it meanwhile."""
        with self._lock:
            heard = tuple(self._said)
        if not log or any(said.kind == "print" for said in heard):
            return heard
        return (*heard, Said(kind="print", text=log))


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
    tools = await in_database(tools_for, [tool])
    heard = _Heard()
    context = ToolContext(
        agent_id="",
        session_id="",
        turn_id="",
        customer_id=customer.uid if customer else "",
        variables=dict(customer.variables) if customer else {},
        plugin_data=plugin_data(),
        customer=customer_view(customer),
        send_message=heard.message,
        send_status=heard.status,
        show_log=heard.printed,
    )
    started = time.monotonic()
    result, error = ToolResult(data=None), None
    try:
        async with asyncio.timeout(tool.deadline):
            result = await tools.call(tool, checked.values, context)
    except TimeoutError:
        error = ToolError(
            kind=ToolErrorKind.TIMEOUT,
            public="it took too long",
            detail=f"{tool.name!r} was stopped at its deadline of {tool.deadline:g} s.",
        )
    except ToolFailure as failure:
        error = failure.error
    return ToolRun(
        data=result.data,
        metadata=result.metadata,
        log=heard.all(result.log),
        duration_ms=round((time.monotonic() - started) * 1000),
        error=error,
    )
