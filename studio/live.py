"""Waiting for what happens in sessions: new events for the streams, the end of a turn for those who asked for it.

One thread per process looks for all who wait, over one connection to the database, with two cheap queries per round,
and only while somebody waits. Whoever waits is woken on the event loop they wait on, and holds neither a thread nor a
connection meanwhile.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from studio.models import Event, Line, Session, Turn

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

PERIOD = 0.03  # seconds between two looks
RECOVERY = 1.0  # seconds until the next look after one that failed
PAGE = 500  # events delivered at once
_UNREAD = 4  # pages that may wait for a slow reader before it gets no more


async def follow(
    session_id: int, after: int, *, heartbeat: float | None = None
) -> AsyncGenerator[list[Event], None]:
    """The events of a session with an `offset` greater than `after`, as they come; the pieces of messages too.

    Yields them in order, each with its `turn`. Without end, unless the session does not exist or is deleted. With a
    `heartbeat` in seconds, an empty list says that nothing came for so long.
    """
    reader = _Reader(session_id=session_id, cursor=after)
    with _watch.watching(reader):
        while True:
            if not await reader.woken_within(heartbeat):
                yield []
            ended = reader.ended
            while reader.inbox:
                yield reader.inbox.popleft()
            if ended:
                return


async def turn_over(turn_id: int, seconds: float) -> bool:
    """Wait for the end of a turn, at most so many seconds; says whether it came."""
    waiter = _Waiter(turn_id=turn_id)
    with _watch.watching(waiter):
        return await waiter.woken_within(seconds)


async def in_database(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run what an async view wants of the database, and give the connection back at once.

    Otherwise a view that waits afterwards would keep a connection of the pool for as long as it waits.
    """

    def run() -> R:
        try:
            return function(*args, **kwargs)
        finally:
            for connection in connections.all(initialized_only=True):
                if not connection.in_atomic_block:
                    connection.close_if_unusable_or_obsolete()

    return await sync_to_async(run)()


@dataclass(eq=False, kw_only=True)
class _Waiting:
    """Somebody who waits on an event loop; made there."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """To be called from the thread that looks."""
        with suppress(RuntimeError):  # the loop was closed without them leaving
            self.loop.call_soon_threadsafe(self.woken.set)

    async def woken_within(self, seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        except TimeoutError:
            return False
        self.woken.clear()
        return True


@dataclass(eq=False, kw_only=True)
class _Reader(_Waiting):
    session_id: int
    cursor: int  # the last offset put into the inbox; only the thread that looks moves it
    inbox: deque[list[Event]] = field(default_factory=deque)
    ended: bool = False

    def deliver(self, events: list[Event]) -> None:
        self.cursor = events[-1].offset
        self.inbox.append(events)
        self.wake()

    def end(self) -> None:
        self.ended = True
        self.wake()


@dataclass(eq=False, kw_only=True)
class _Waiter(_Waiting):
    turn_id: int


class _Watch:
    """The thread that looks. It starts with the first who waits and ends with the last."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: set[_Waiting] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, waiting: _Waiting) -> Iterator[None]:
        with self._changed:
            self._waiting.add(waiting)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._waiting.discard(waiting)
                self._changed.notify()

    @property
    def looking(self) -> bool:
        return self._thread is not None

    def _run(self) -> None:
        try:
            pause = 0.0
            while True:
                with self._changed:
                    self._changed.wait(pause)
                    # Who waits on a closed loop can neither be woken nor leave.
                    self._waiting -= {one for one in self._waiting if one.loop.is_closed()}
                    waiting = list(self._waiting)
                    if not waiting:
                        self._thread = None
                        return
                pause = self._look(waiting)
        finally:
            connections.close_all()

    def _look(self, waiting: Sequence[_Waiting]) -> float:
        """Seconds until the next look."""
        try:
            _serve_readers([one for one in waiting if isinstance(one, _Reader)])
            _serve_waiters([one for one in waiting if isinstance(one, _Waiter)])
        except Exception:
            # Whatever the database has, the streams stay open and go on when it is back.
            logger.exception("Looking for new events failed; trying again in %s s", RECOVERY)
            connections.close_all()
            return RECOVERY
        return PERIOD


def _serve_readers(readers: Sequence[_Reader]) -> None:
    if not readers:
        return
    sessions = Session.objects.filter(pk__in={reader.session_id for reader in readers})
    found = {
        pk: (newest, Line(pk, ancestry))
        for pk, newest, ancestry in sessions.values_list("pk", "next_offset", "ancestry")
    }
    pages: dict[tuple[int, int], list[Event]] = {}
    for reader in readers:
        if reader.session_id not in found:
            reader.end()
            continue
        next_offset, line = found[reader.session_id]
        if reader.cursor < next_offset - 1 and len(reader.inbox) < _UNREAD:
            place = (reader.session_id, reader.cursor)
            if place not in pages:
                pages[place] = _page(line, reader.cursor)
            if pages[place]:
                reader.deliver(pages[place])


def _page(line: Line, after: int) -> list[Event]:
    events = line.events.filter(offset__gt=after).order_by("offset")
    return list(events.select_related("turn").defer("turn__checkpoint")[:PAGE])


def _serve_waiters(waiters: Sequence[_Waiter]) -> None:
    if not waiters:
        return
    turns = Turn.objects.unfinished().filter(pk__in={waiter.turn_id for waiter in waiters})
    unfinished = set(turns.values_list("pk", flat=True))
    for waiter in waiters:
        if waiter.turn_id not in unfinished:
            waiter.wake()


_watch = _Watch()
