"""One step of building an environment: processes in a group of their own, heard line by line, ended for certain."""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

POLL = 0.1  # seconds
DYING = 2.0  # seconds
LINE_KEPT = 2_000  # characters
LINE_READ = 16_000  # bytes; the rest of a longer line is not looked at
TAIL_KEPT = 40_000  # characters
FILE_SIZE = 8 * 1024**3  # bytes; a package of this size is a mistake, or meant to fill the disk

# Becomes the command, which then ends with the thread that waits for it, even where that is killed.
_LAUNCHER = """
import ctypes, os, resource, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
os.execvp(sys.argv[3], sys.argv[3:])
"""
_NO_ECHO = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Stage(StrEnum):
    WAITING = "Waiting for another build of the same"
    CREATING = "Creating the environment"
    RESOLVING = "Resolving"
    INSTALLING = "Installing"
    CHECKING = "Checking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a build is at, and a line of its installer, if there is one."""

    stage: Stage
    line: str = ""


class BuildError(Exception):
    """Why there is no environment, to be read by people."""

    def __init__(self, message: str, stage: Stage) -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage


class StoppedError(BuildError):
    """It was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How long a build may take: until `ends` on the monotonic clock, `seconds` in all, and no longer than `stop`."""

    ends: float
    seconds: float
    stop: threading.Event

    @classmethod
    def of(cls, seconds: float, stop: threading.Event) -> "Limit":
        return cls(ends=time.monotonic() + seconds, seconds=seconds, stop=stop)

    def check(self, stage: Stage) -> None:
        """Raises BuildError where it is over."""
        if self.stop.is_set():
            raise StoppedError("The build was stopped.", stage)
        if time.monotonic() >= self.ends:
            raise BuildError(
                f"The build took longer than {self.seconds:.0f} s and was ended while it was at: {stage}. "
                "Ask for fewer or smaller packages, or allow more time.",
                stage,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a step ended: its exit code, and the last of what it printed."""

    code: int
    output: str


def run(
    command: Sequence[str],
    *,
    stage: Stage,
    cwd: Path,
    environment: Mapping[str, str],
    limit: Limit,
    heard: Callable[[str], None],
    mask: Callable[[str], str],
    held: int,
) -> Ended:
    """Run it to its end; raises BuildError where the limit comes first. None of its processes outlives the call.

    `held` is a file descriptor that its processes keep open as long as they live: the lock of what they write.
    """
    limit.check(stage)
    launched = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), str(FILE_SIZE)]
    lines = _Lines(heard, mask)
    source, sink = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                [*launched, *command],
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                pass_fds=[held],
            )
        finally:
            os.close(sink)
        try:
            _listen(source, process.pid, lines, lambda: limit.check(stage))
        finally:
            # Before it is reaped, while its number is surely its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _see_out(source)
            lines.close()
    finally:
        os.close(source)
    return Ended(code=process.returncode, output=lines.tail)


def _listen(source: int, pid: int, lines: "_Lines", check: Callable[[], None]) -> None:
    """Until it has ended, and nothing of what it printed is left to read."""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        is_open = True
        while True:
            ended = _has_ended(pid)
            if is_open and selector.select(0 if ended else POLL):
                chunk = os.read(source, 65_536)
                lines.add(chunk)
                is_open = bool(chunk)
            elif ended:
                return
            elif not is_open:
                time.sleep(POLL)
            check()


def _see_out(source: int) -> None:
    """Until the last one that could print is gone: in a sandbox they die a moment after what held it."""
    ends = time.monotonic() + DYING
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0 and selector.select(left):
            if not os.read(source, 65_536):
                return


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class _Lines:
    """Bytes as they come, made into lines."""

    def __init__(self, heard: Callable[[str], None], mask: Callable[[str], str]) -> None:
        self._heard = heard
        self._mask = mask
        self._open = b""
        self.tail = ""

    def add(self, chunk: bytes) -> None:
        *whole, last = re.split(rb"[\r\n]+", self._open + chunk)
        for line in whole:
            self._tell(line)
        self._open = last[:LINE_READ]

    def close(self) -> None:
        self._tell(self._open)
        self._open = b""

    def _tell(self, raw: bytes) -> None:
        text = raw[:LINE_READ].decode("utf-8", errors="replace").replace("\0", "")
        # Masked before it is cut: half a password would not be recognised.
        if line := self._mask(_NO_ECHO.sub("", text)).rstrip()[:LINE_KEPT]:
            self.tail = f"{self.tail}\n{line}"[-TAIL_KEPT:]
            self._heard(line)
