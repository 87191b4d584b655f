"""What the customer reads while a tool works (ENGINE.md §4, latency tiers): template text, or the tool's own instead.

FAST says nothing, MEDIUM one short line, SLOW reports twice. These are status events, outside the model's history.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from engine.events import Phase, StatusEvent
from engine.kit import Kit
from engine.spec import Latency, Tool

_LONGEST_SENTENCE = 120

_OPENING = "One moment, please: {}"
_REPORTS = ("Working on it: {}", "This takes a little longer: {}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    after: float  # seconds from the start of the call
    text: str


class Progress:
    """The reports of one call."""

    def __init__(self, kit: Kit, tool: Tool) -> None:
        self._kit = kit
        self._tool = tool
        self._spoke_at: float | None = None

    def tool_spoke(self) -> None:
        """The tool reported by itself, which is better than any template."""
        self._spoke_at = asyncio.get_running_loop().time()

    async def report(self) -> None:
        """Emit each report in its time, as long as nobody cancels this."""
        clock = asyncio.get_running_loop().time
        start = clock()
        for report in _reports(self._tool, self._kit):
            await asyncio.sleep(start + report.after - clock())
            if self._spoke_at is None or clock() - self._spoke_at >= self._kit.pace.quiet:
                status = StatusEvent(
                    phase=Phase.RUNNING, tools=(self._tool.name,), text=report.text
                )
                await self._kit.outbox.put(status)


@asynccontextmanager
async def reporting(kit: Kit, tool: Tool) -> AsyncIterator[Progress]:
    """Reports on a call of the tool for as long as the context lasts."""
    progress = Progress(kit, tool)
    work = asyncio.ensure_future(progress.report()) if tool.latency is not Latency.FAST else None
    try:
        yield progress
    finally:
        if work is not None:
            work.cancel()


def _reports(tool: Tool, kit: Kit) -> list[_Report]:
    doing = doing_of(tool)
    match tool.latency:
        case Latency.FAST:
            return []
        case Latency.MEDIUM:
            return [_Report(after=kit.pace.opening, text=_OPENING.replace("{}", doing))]
        case Latency.SLOW:
            return [
                _Report(after=after, text=text.replace("{}", doing))
                for after, text in zip(kit.pace.reports, _REPORTS, strict=True)
            ]


def doing_of(tool: Tool) -> str:
    """What the tool does, in words for people: the first sentence of its description, else its name."""
    sentence = re.split(r"(?<=[.!?])\s|\n", tool.description.strip(), maxsplit=1)[0]
    words = sentence.strip().rstrip(".!?…") or re.sub(r"[_-]+", " ", tool.name).strip()
    if len(words) > _LONGEST_SENTENCE:
        words = words[:_LONGEST_SENTENCE].rsplit(" ", 1)[0] + " …"
    # As it goes on after a colon; a word in capitals stays one.
    begins_a_name = words[1:2].isupper()
    return words if begins_a_name else words[:1].lower() + words[1:]
