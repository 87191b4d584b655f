"""The warm processes of several tools: which are kept, shared between calls, replaced and ended."""

import logging
import os
import queue
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from engine.tools.hosting.hosts import GivenUpError, Host, HostError
from engine.tools.hosting.processes import Program

logger = logging.getLogger(__name__)

_LOOK = 0.05  # seconds between two looks at whether a caller that waits gave up
_CLOSED = "the studio is shutting down"
_SELDOM = 5.0  # seconds between two looks for what is idle


@dataclass(eq=False)
class _Entry:
    """A tool that is or was warm. `starting` is held by the caller that starts its process."""

    program: Program
    host: Host | None = None
    users: int = 0
    used: float = 0.0
    starting: threading.Lock = field(default_factory=threading.Lock)


class WarmHosts:
    """Keeps at most `most` processes warm, more only while in use, and each `idle` seconds after its last call.

    Processes are started by one thread of its own: they end with the thread that starts them, and callers' threads
    come and go.
    """

    def __init__(self, make: Callable[[Program], Host], *, most: int, idle: float) -> None:
        self._make, self._most, self._idle = make, most, idle
        self._pause = min(idle / 2, _SELDOM)
        self._lock = threading.Lock()
        self._entries: dict[Program, _Entry] = {}
        self._retired: set[_Entry] = set()  # in use for the last time
        self._replaced: set[Host] = set()  # as well, of tools that have another by now
        self._calls: Counter[Host] = Counter()
        self._orders: queue.SimpleQueue[tuple[Host, Future[None]] | None] = queue.SimpleQueue()
        self._keeper: threading.Thread | None = None
        self._closed = False
        this = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forked(this()))

    @contextmanager
    def borrowed(self, program: Program, given_up: Callable[[], bool]) -> Iterator[Host]:
        """The program's process, started where none is warm; raises HostError."""
        entry = self._entry(program)
        try:
            host = self._host(entry, given_up)
            try:
                yield host
            finally:
                with self._lock:
                    self._calls[host] -= 1
        finally:
            with self._lock:
                entry.users -= 1
                entry.used = time.monotonic()
            self._end_surplus()

    def forget(self, program: Program) -> None:
        """End its process, once the calls that use it are done."""
        with self._lock:
            entry = self._entries.pop(program, None)
            if entry is not None:
                self._retired.add(entry)
        self._end_surplus()

    def close(self) -> None:
        """End all of them, and the calls that run."""
        with self._lock:
            self._closed = True
            hosts = self._hosts()
            self._entries.clear()
            self._retired.clear()
            self._replaced.clear()
        self._orders.put(None)
        for host in hosts:
            host.let_go()
        for host in hosts:
            host.end()

    def abandon(self) -> None:
        """In a forked copy of the process: none of them is ours."""
        hosts = self._hosts()
        self._lock = threading.Lock()
        self._entries, self._retired, self._replaced = {}, set(), set()
        self._calls = Counter()
        self._orders = queue.SimpleQueue()
        self._keeper = None
        for host in hosts:
            host.abandon()

    def _hosts(self) -> list[Host]:
        entries = [*self._entries.values(), *self._retired]
        return [*self._replaced, *(entry.host for entry in entries if entry.host is not None)]

    def _entry(self, program: Program) -> _Entry:
        with self._lock:
            if self._closed:
                raise HostError(_CLOSED)
            entry = self._entries.setdefault(program, _Entry(program))
            entry.users += 1
            return entry

    def _host(self, entry: _Entry, given_up: Callable[[], bool]) -> Host:
        while not entry.starting.acquire(timeout=_LOOK):
            if given_up():
                raise HostError("there was no time left to start it")
        try:
            host = entry.host
            if host is None or not host.usable:
                if host is not None:
                    self._replace(entry, host)
                host = entry.host = self._started(entry.program)
            try:
                host.wait(given_up)
            except GivenUpError:
                raise  # it goes on starting
            except HostError:
                entry.host = None
                host.end(patience=0.0)
                raise
            with self._lock:
                self._calls[host] += 1
            if self._closed:  # which may have missed it
                host.end()
            return host
        finally:
            entry.starting.release()

    def _replace(self, entry: _Entry, host: Host) -> None:
        """It goes when the calls that use it are done."""
        with self._lock:
            entry.host = None
            self._replaced.add(host)
        self._end_surplus()

    def _started(self, program: Program) -> Host:
        host = self._make(program)
        done: Future[None] = Future()
        self._keep()
        self._orders.put((host, done))
        try:
            while not done.done() and not self._closed:
                wait([done], timeout=_LOOK)
            if self._closed:
                raise HostError(_CLOSED)
            done.result()
        except BaseException:
            host.end(patience=0.0)
            raise
        return host

    def _keep(self) -> None:
        with self._lock:
            if self._keeper is None:
                self._keeper = threading.Thread(
                    target=_keep, args=(weakref.ref(self), self._orders, self._pause), daemon=True
                )
                self._keeper.name = "tool-hosts"
                self._keeper.start()

    def _end_surplus(self) -> None:
        """Those nobody uses: retired ones, those idle too long, and the ones used longest ago beyond the most."""
        now = time.monotonic()
        with self._lock:
            ending = [entry for entry in self._retired if not entry.users]
            self._retired.difference_update(ending)
            hosts = [host for host in self._replaced if self._calls[host] <= 0]
            self._replaced.difference_update(hosts)
            free = sorted(
                (entry for entry in self._entries.values() if not entry.users),
                key=lambda entry: entry.used,
            )
            surplus = max(0, len(self._entries) - self._most)
            for number, entry in enumerate(free):
                if number < surplus or entry.used < now - self._idle:
                    del self._entries[entry.program]
                    ending.append(entry)
            hosts += [entry.host for entry in ending if entry.host is not None]
            for host in hosts:
                del self._calls[host]
        for host in hosts:
            host.end()

    def look(self) -> None:
        try:
            self._end_surplus()
        except Exception:
            logger.exception("an idle process of a tool could not be ended")


Orders = queue.SimpleQueue[tuple[Host, Future[None]] | None]


def _keep(pool: "weakref.ref[WarmHosts]", orders: Orders, pause: float) -> None:
    """Starts what is ordered, and ends what is idle, until the pool is closed or forgotten."""
    while True:
        try:
            order = orders.get(timeout=pause)
        except queue.Empty:
            warm = pool()
            if warm is None:
                return
            warm.look()
            continue
        if order is None:
            return
        host, started = order
        try:
            host.start()
        except BaseException as error:  # noqa: BLE001 - raised where it was ordered
            started.set_exception(error)
        else:
            started.set_result(None)


def _forked(pool: WarmHosts | None) -> None:
    if pool is not None:
        with suppress(Exception):
            pool.abandon()
