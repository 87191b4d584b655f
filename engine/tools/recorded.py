"""Outcomes of earlier calls in place of calls: the same tool with the same arguments ends as it ended before."""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from engine.canonical import JsonObject, canonical_json
from engine.errors import ToolError, ToolFailure
from engine.spec import Tool
from engine.tools.base import ToolResult
from engine.tools.results import checked
from engine.tools.standing_in import StoodIn, unanswered
from engine.trail import Served

logger = logging.getLogger(__name__)

SECONDS = 5.0  # that a look at the records may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """How an earlier call ended: `result` is its ToolResult as JSON, unless it failed; `place` names it.

    `said` as in StoodIn.
    """

    place: str
    result: JsonObject | None = None
    error: ToolError | None = None
    said: tuple[tuple[str, str], ...] = ()


FindRecord: TypeAlias = Callable[[str, JsonObject], Awaitable[Record | None]]
"""The call to repeat, of a tool's name and its arguments; None where there is none."""


class RecordedOutcomes:
    """A StandIn that repeats what `find` finds; failures are repeated as failures."""

    served = Served.RECORDED

    def __init__(self, find: FindRecord) -> None:
        self._find = find

    def answers(self, tool: Tool) -> bool:  # noqa: ARG002
        return True

    def place_of(self, tool: Tool, arguments: JsonObject) -> int:  # noqa: ARG002
        return 0

    async def outcome_of(self, tool: Tool, arguments: JsonObject) -> StoodIn:
        try:
            async with asyncio.timeout(SECONDS):
                record = await self._find(tool.name, arguments)
        except Exception:
            logger.exception("The records of tool %r could not be read.", tool.name)
            return unanswered(
                f"The recorded results of {tool.name!r} could not be read; try again."
            )
        if record is None:
            return unanswered(
                f"{tool.name!r} has no recorded result for these arguments: "
                "run it live once, or mock it."
            )
        return StoodIn(outcome=_outcome(tool, record), served_from=record.place, said=record.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call of a record, with what it was called with; `uid` names it in its turn."""

    tool: str
    arguments: JsonObject
    record: Record
    uid: str = ""


class RecordedCalls:
    """A StandIn that repeats these calls, given in the order in which they ended.

    A call that was made several times ends each time as it did then, the last outcome again and again. What is not
    among them is left to `otherwise`; without it there is no outcome. With `only_consequential` other tools run.
    """

    served = Served.RECORDED

    def __init__(
        self,
        calls: Iterable[RecordedCall],
        *,
        otherwise: FindRecord | None = None,
        only_consequential: bool = False,
    ) -> None:
        self._left: dict[str, deque[Record]] = defaultdict(deque)
        self._places: dict[str, int] = {}
        for number, call in enumerate(calls, start=1):
            key = _key(call.tool, call.arguments)
            self._left[key].append(call.record)
            self._places.setdefault(key, number)
        self._otherwise = RecordedOutcomes(otherwise or _find_nothing)
        self._only_consequential = only_consequential

    def answers(self, tool: Tool) -> bool:
        return tool.consequential or not self._only_consequential

    def place_of(self, tool: Tool, arguments: JsonObject) -> int:
        return self._places.get(_key(tool.name, arguments), len(self._places) + 1)

    async def outcome_of(self, tool: Tool, arguments: JsonObject) -> StoodIn:
        left = self._left.get(_key(tool.name, arguments))
        if not left:
            return await self._otherwise.outcome_of(tool, arguments)
        record = left.popleft() if len(left) > 1 else left[0]
        return StoodIn(outcome=_outcome(tool, record), served_from=record.place, said=record.said)


def _key(tool: str, arguments: JsonObject) -> str:
    return canonical_json([tool, arguments])


async def _find_nothing(_tool: str, _arguments: JsonObject) -> None:
    return None


def _outcome(tool: Tool, record: Record) -> ToolResult | ToolError:
    if record.error is not None:
        return record.error
    try:
        return checked(tool.name, ToolResult(**(record.result or {"data": None})))
    except ToolFailure as failure:  # recorded by a studio that kept other things
        return failure.error
    except TypeError as error:
        return _unreadable(tool, error)


def _unreadable(tool: Tool, error: TypeError) -> ToolError:
    found = unanswered(f"The recorded result of {tool.name!r} cannot be read: {error}.").outcome
    assert isinstance(found, ToolError)  # noqa: S101 - it always is
    return found
