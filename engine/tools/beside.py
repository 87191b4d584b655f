"""Runs code that may block, hang or ignore cancellation beside the engine's event loop, never on it.

Sync work gets a fresh daemon thread each, so that hung calls exhaust no pool. Async work shares one event
loop in a thread of its own, so that clients which tools keep open stay usable; found blocked, that loop is
left to itself and replaced.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Threads for what async tools themselves hand to `asyncio.to_thread`.
_EXECUTOR_THREADS = 64


class TooManyHangingError(Exception):
    """So many abandoned calls still run that no more are started."""


class Beside:
    """Where work runs. Cancelling `run_sync` or `run_async` returns at once, whatever the work does about it.

    `patience` is how long (seconds) async work may wait for its loop before the loop counts as blocked;
    `limit` is how many threads may hang at a time. Usable from several event loops and threads. Work must not
    raise: it returns its outcome.
    """

    def __init__(self, *, patience: float = 0.5, limit: int = 200) -> None:
        self._patience = patience
        self._limit = limit
        self._lock = threading.Lock()
        self._current: _LoopThread | None = None
        self._hanging: set[threading.Thread] = set()

    async def run_sync(self, work: Callable[[], T]) -> T:
        """Runs `work` in a thread; raises TooManyHangingError."""
        self._refuse_when_hanging()
        job: Future[T] = Future()
        job.set_running_or_notify_cancel()
        thread = threading.Thread(
            target=copy_context().run, args=(_run, job, work), name="tool", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread left
            raise TooManyHangingError(str(error)) from error
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            self._abandon(thread)
            raise

    async def run_async(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs the coroutine that `work` makes on the tools' loop; raises TooManyHangingError."""
        while True:
            self._refuse_when_hanging()
            home = self._home()
            job: Future[T] = Future()
            waiting = asyncio.wrap_future(job)
            home.start(job, work)
            try:
                done, _ = await asyncio.wait({waiting}, timeout=self._patience)
                if done or not job.cancel():  # only work that has not begun can be cancelled
                    return await waiting
            except asyncio.CancelledError:
                waiting.cancel()
                home.cancel(job)
                raise
            self._retire(home)

    def _home(self) -> "_LoopThread":
        with self._lock:
            # After a fork the thread is gone.
            if self._current is None or not self._current.thread.is_alive():
                self._current = _LoopThread()
            return self._current

    def _retire(self, home: "_LoopThread") -> None:
        with self._lock:
            if self._current is home:
                self._current = None
                self._hanging.add(home.thread)
                home.retire()

    def _abandon(self, thread: threading.Thread) -> None:
        with self._lock:
            self._hanging.add(thread)

    def _refuse_when_hanging(self) -> None:
        if not self._hanging:
            return
        with self._lock:
            self._hanging = {thread for thread in self._hanging if thread.is_alive()}
            if len(self._hanging) >= self._limit:
                raise TooManyHangingError(f"{len(self._hanging)} earlier calls still hang")


class _LoopThread:
    """An event loop in a daemon thread; once retired it ends with its last task."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_EXECUTOR_THREADS, "tool-helper"))
        self._tasks: dict[Future[Any], asyncio.Task[Any]] = {}
        self._retired = False
        self.thread = threading.Thread(target=self._serve, name="tools-loop", daemon=True)
        self.thread.start()

    def start(self, job: Future[T], work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._soon(self._begin, job, work)

    def cancel(self, job: Future[Any]) -> None:
        self._soon(self._cancel, job)

    def retire(self) -> None:
        self._soon(self._end_when_idle)

    def _soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments, context=copy_context())
        except RuntimeError:  # the loop has closed: nothing runs there any more
            return

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # A task that a tool left running raised it: the others on the loop go on.
                logger.warning("a tool's background task tried to end the process", exc_info=True)
            else:
                break
        self._loop.close()

    def _begin(self, job: Future[T], work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        if job.set_running_or_notify_cancel():
            self._tasks[job] = task = self._loop.create_task(work())
            task.add_done_callback(partial(self._end, job))

    def _end(self, job: Future[T], task: asyncio.Task[T]) -> None:
        del self._tasks[job]
        _run(job, task.result)
        if self._retired:
            self._end_when_idle()

    def _cancel(self, job: Future[Any]) -> None:
        if job in self._tasks:
            self._tasks[job].cancel()

    def _end_when_idle(self) -> None:
        self._retired = True
        if not self._tasks:
            self._loop.stop()


def _run(job: Future[T], work: Callable[[], T]) -> None:
    try:
        value = work()
    except BaseException as error:  # noqa: BLE001 - whatever it was, somebody waits for it
        job.set_exception(error)
    else:
        job.set_result(value)
