"""Carries what a tool says while it works from the tool's thread to the engine's event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any

from engine.tools.base import ToolContext

logger = logging.getLogger(__name__)

Send = Callable[[str], Awaitable[None]]


class Emissions:
    """The emitters of one call, made on the engine's loop.

    Emitting schedules the delivery at once. In an async tool `await context.emit_status(...)` waits until it
    is delivered; in a sync tool the plain call `context.emit_status(...)` does. A delivery that fails is
    logged and harms no tool half-way through its work. After `close` nothing is delivered any more: an
    abandoned tool cannot speak into a later turn.
    """

    def __init__(self, context: ToolContext, *, waits: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits = waits
        self._open = True
        self._running: set[asyncio.Task[None]] = set()
        self.context = replace(
            context,
            send_message=self._through(context.send_message),
            send_status=self._through(context.send_status),
        )

    async def drain(self) -> None:
        """Waits until everything emitted so far is delivered."""
        while self._running:
            await asyncio.wait(self._running)

    def close(self) -> None:
        """Stops what is on its way and drops what comes later."""
        self._open = False
        for task in self._running:
            task.cancel()

    def _through(self, send: Send) -> Callable[[str], "_Delivery"]:
        def emit(text: str) -> _Delivery:
            delivered: Future[None] = Future()
            try:
                self._loop.call_soon_threadsafe(self._start, send, text, delivered)
            except RuntimeError:  # the engine's loop has closed: nobody listens
                delivered.set_result(None)
            delivery = _Delivery(delivered)
            if self._waits:
                delivery.wait()
            return delivery

        return emit

    def _start(self, send: Send, text: str, delivered: Future[None]) -> None:
        if not delivered.set_running_or_notify_cancel():
            return
        if not self._open:
            delivered.set_result(None)
            return

        def end(task: asyncio.Task[None]) -> None:
            self._running.discard(task)
            delivered.set_result(None)

        task = self._loop.create_task(_deliver(send, text))
        self._running.add(task)
        task.add_done_callback(end)


class _Delivery(Awaitable[None]):
    """A message on its way; need not be awaited."""

    def __init__(self, delivered: Future[None]) -> None:
        self._delivered = delivered

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.wrap_future(self._delivered).__await__()

    def wait(self) -> None:
        try:
            self._delivered.result()
        except CancelledError:
            return


async def _deliver(send: Send, text: str) -> None:
    try:
        await send(text)
    except Exception:
        logger.exception("what a tool emitted was not delivered")
