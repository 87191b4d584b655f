"""From the engine's event loop to the thread that writes: what a turn yields, in order."""

import asyncio
import queue
import threading
import time
from concurrent.futures import Future
from functools import lru_cache
from typing import Final, TypeAlias

from engine.events import (
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    MessageEvent,
    MessagePartEvent,
    ModeEvent,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.kit import Kit
from engine.outbox import Emission
from engine.state import TurnState
from engine.turn import run_turn

# Seconds that a write waits for more to write with it: hardly any once somebody watching could see something new,
# longer for what only a crash would miss.
_PATIENCE_WITH_EVENTS = 0.002
_PATIENCE_WITH_TRAIL = 0.25

EVENTS: Final = (
    MessageEvent,
    MessagePartEvent,
    ToolStartedEvent,
    ToolFinishedEvent,
    StatusEvent,
    ConfirmationAskedEvent,
    ConfirmationAnsweredEvent,
    ModeEvent,
    BriefingEvent,
)


@lru_cache(maxsize=1)
def engine_loop() -> asyncio.AbstractEventLoop:
    """The one long-lived event loop of this process, on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="engine", daemon=True).start()
    return loop


class End:
    """The engine is through, with the error that ended it, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


Item: TypeAlias = tuple[Emission | End, asyncio.Future[None] | None]


class Pump:
    """Moves what `run_turn` yields from the engine's loop to the task's thread."""

    def __init__(self, state: TurnState, kit: Kit) -> None:
        self._state = state
        self._kit = kit
        self.items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._loop = engine_loop()

    def start(self) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(self._run(), self._loop)

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            async for item in run_turn(self._state, self._kit):
                await self._hand_over(item)
        except asyncio.CancelledError:
            raise
        except BaseException as problem:  # noqa: BLE001 - the thread decides what it means for the turn
            error = problem
        self.items.put((End(error), None))

    async def _hand_over(self, item: Emission) -> None:
        if not self._must_be_on_record(item):
            self.items.put((item, None))
            return
        written: asyncio.Future[None] = self._loop.create_future()
        self.items.put((item, written))
        await written

    def _must_be_on_record(self, item: Emission) -> bool:
        """A consequential call may only start once its start is stored: its ToolCall, and the event that follows it.

        Both, because the next turn knows by the event alone whether a confirmed call ever began.
        """
        if not isinstance(item, ToolStartedEvent):
            return False
        return self._state.agent.tool_by_name[item.tool].consequential

    def acknowledge(self, written: asyncio.Future[None]) -> None:
        def done() -> None:
            if not written.done():
                written.set_result(None)

        self._loop.call_soon_threadsafe(done)

    def request_stop(self) -> None:
        self._loop.call_soon_threadsafe(self._kit.stop.set)

    def take(self) -> list[Item]:
        """The next items, at least one; what is to be written together comes together."""
        taken = [self.items.get()]
        until = time.monotonic() + _patience(taken[0])
        while not _closes(taken[-1]):
            try:
                taken.append(self.items.get(timeout=max(until - time.monotonic(), 0.0)))
            except queue.Empty:
                break
            until = min(until, time.monotonic() + _patience(taken[-1]))
        return taken


def _patience(item: Item) -> float:
    return _PATIENCE_WITH_EVENTS if isinstance(item[0], EVENTS) else _PATIENCE_WITH_TRAIL


def _closes(item: Item) -> bool:
    """Somebody waits for this one to be written."""
    emission, written = item
    return isinstance(emission, End) or written is not None
