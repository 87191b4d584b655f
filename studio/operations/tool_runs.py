"""Running one tool by hand, outside of any conversation, to see what it does."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.canonical import JsonObject
from engine.errors import ToolError
from engine.tools.base import ToolResult
from engine.tools.results import MAX_LOG
from studio.bridge import compile_tool
from studio.live import in_database
from studio.models import Customer, Tool
from studio.operations.hand_calls import call_by_hand, fitting_arguments
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
class Ran:
    """How a run ended: with `data` and `metadata`, or with an `error`."""

    data: Any
    metadata: JsonObject
    log: tuple[Said, ...]
    duration_ms: int
    error: ToolError | None = None


async def run_tool(
    row: Tool, arguments: Mapping[str, Any], *, customer: Customer | None = None
) -> Ran:
    """Run the tool's code with these arguments, as a call of an agent would, within the tool's time limit.

    Failure is data; raises ArgumentsRefusedError where the arguments do not fit the parameters.
    """
    tool = compile_tool(row)
    fitting = fitting_arguments(tool, arguments)
    heard = _Heard()
    ended = await call_by_hand(
        await in_database(tools_for, [tool]),
        tool,
        fitting,
        customer=customer,
        plugin_data=plugin_data(),
        hearing=heard,
    )
    result = ended.result or ToolResult(data=None)
    return Ran(
        data=result.data,
        metadata=result.metadata,
        log=heard.all(result.log),
        duration_ms=ended.duration_ms,
        error=ended.failure,
    )
