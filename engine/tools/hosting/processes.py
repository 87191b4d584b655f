"""What is asked of a tool's process, and what comes back of it (TOOLS.md §2)."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.canonical import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A tool that is ready to run. All paths are absolute.

    `package` holds its unpacked files, which nobody writes to. The tool finds them at `<workspace>/tools/<slug>/`, its
    working directory, where it may add files of its own and change none of these. `python` is its environment's.
    """

    package: Path
    slug: str
    workspace: Path
    python: Path

    @property
    def directory(self) -> Path:
        """Where the tool finds itself."""
        return self.workspace / "tools" / self.slug


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call may use, all its processes together unless said otherwise; sizes in bytes."""

    memory: int = 1 << 30
    processes: int = 64
    open_files: int = 512  # of each process
    disk: int = (
        256 << 20
    )  # written to its workspace and its session's directory; also the size of one file
    new_files: int = 10_000
    output: int = 8 << 20  # of stdout and stderr together


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`deadline` is in seconds from `Runner.run`. The directories stand directly or deeper under the runner's own."""

    user_params: JsonObject
    tool_params: JsonObject
    deadline: float
    session_directory: Path | None = None  # writable
    data_directory: Path | None = None  # readable


class End(StrEnum):
    """How a call ended; all but the first killed whatever still ran of it."""

    EXITED = "exited"  # by itself, with an exit code
    TIMEOUT = "timeout"
    STOPPED = "stopped"  # as asked
    OUTPUT = "output"  # it printed too much
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    SIGNAL = "signal"  # by a signal that was not ours: it crashed, or ended itself
    NOT_STARTED = "not_started"
    LOST = "lost"  # it had begun, and what watched it is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call printed and how it ended. `code` is the exit code, the negative number of a signal, or None.

    `note` says in words why it ended so, where there is more to say. Of output beyond the limit the first part is
    here. `duration_ms` counts from `Runner.run`, a cold start included.
    """

    end: End
    code: int | None
    stdout: bytes
    stderr: bytes
    duration_ms: int
    note: str


class Stop:
    """Asks for the end of a call, from any thread, before or while it runs. Asked once, it stays so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._told: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        return self._asked

    def request(self) -> None:
        with self._lock:
            self._asked = True
            for tell in self._told:
                tell()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """Meanwhile `tell` is called when a stop is asked for, or was before. It must not block."""
        with self._lock:
            self._told.append(tell)
            if self._asked:
                tell()
        try:
            yield
        finally:
            with self._lock:
                self._told.remove(tell)
