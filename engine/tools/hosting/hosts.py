"""The warm process of one tool, seen from the studio: started apart from everything, spoken to over a socket."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex
from typing import IO

from engine.sandbox import landlock
from engine.sandbox.values import Bounds, Setup
from engine.tools.hosting.placing import TOOL_USER, all_may_read, place
from engine.tools.hosting.processes import Limits, Program
from engine.tools.isolation import (
    Isolation,
    interpreter_paths,
    scrubbed_environment,
    system_paths,
    wrap,
)

SANDBOX = Path(landlock.__file__).resolve().parent

_START_PATIENCE = 20.0  # seconds until it is ready
_LOOK = 0.05  # seconds between two looks at whether the caller gave up
_END_PATIENCE = 3.0  # seconds to end by itself, with everything it started
_LONGEST_NOTE = 2000
_TEMPORARY = "/tmp"  # noqa: S108 - with a name that nobody knows
_DEVICES = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty"
# What /proc tells of the machine, and not of its processes.
_MACHINE = "/proc/cpuinfo /proc/filesystems /proc/loadavg /proc/meminfo /proc/stat /proc/sys /proc/uptime /proc/version"


_CHANGING_USERS = 1 << 0 | 1 << 6 | 1 << 7  # CAP_CHOWN, CAP_SETGID, CAP_SETUID


class HostError(Exception):
    """It could not be started; the text says why."""


class GivenUpError(HostError):
    """It is not ready yet, and who waited for it gave up. It may be ready for the next."""


class Host:
    """One warm process. It ends with the thread that calls `start`."""

    def __init__(
        self, program: Program, *, sessions: Path, data: Path, limits: Limits, isolation: Isolation
    ) -> None:
        self.program = program
        self._sessions, self._data, self._limits = sessions, data, limits
        self._isolation = isolation
        self._mark = f"tool-host-{token_hex(8)}"
        self._stamps = _stamps(program)
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        self._broken = self._ready = False
        self._started_at = 0.0  # of time.monotonic
        self.user = 0
        """Under whose id it runs, where that is not our own."""

    @property
    def usable(self) -> bool:
        """Is it alive, and are the files still those it was started for?"""
        alive = self._process is not None and self._process.poll() is None
        return alive and not self._broken and self._stamps == _stamps(self.program)

    @property
    def words(self) -> str:
        """What the process said of its trouble, if anything."""
        try:
            self._said.seek(0, os.SEEK_END)
            self._said.seek(max(0, self._said.tell() - _LONGEST_NOTE))
            text = self._said.read(_LONGEST_NOTE).decode("utf-8", "replace").strip()
        except ValueError:  # another caller ended it
            return ""
        return f": {text}" if text else ""

    def start(self) -> None:
        """Start it, not waiting for it to be ready; raises HostError."""
        if problem := _missing(self.program):
            raise HostError(problem)
        self._started_at = time.monotonic()
        try:
            self._process, setup = self._started()
            self._control.send(json.dumps(asdict(setup)).encode())
        except OSError as error:
            raise HostError(f"it could not be started: {error}") from error
        finally:
            self._theirs.close()

    def wait(self, given_up: Callable[[], bool]) -> None:
        """Until it is ready, at once where it was before; raises HostError, GivenUpError."""
        if self._ready:
            return
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while not poll.poll(_LOOK * 1000):
            if given_up():
                raise GivenUpError("there was no time left to start it")
            if time.monotonic() > self._started_at + _START_PATIENCE:
                raise HostError(f"it was not ready within {_START_PATIENCE:g} s{self.words}")
        try:
            self._ready = bool(self._control.recv(1 << 10))
        except OSError:
            self._ready = False
        if not self._ready:
            raise HostError(f"its Python did not start{self.words}")

    def send(self, message: bytes, descriptors: list[int]) -> None:
        """Pass on a call; raises OSError when it is gone."""
        socket.send_fds(self._control, [message], descriptors)

    def retire(self) -> None:
        """It is to take no more calls."""
        self._broken = True

    def lose(self) -> None:
        """End it now, with all that runs in it: something in it went wrong."""
        self._broken = True
        # Bubblewrap takes all with it that is inside; else the process itself knows best what it started.
        self.end(patience=0.0 if self._isolation.bubblewrap else _END_PATIENCE)

    def let_go(self) -> None:
        """Tell it to end, not waiting for that."""
        self._control.close()

    def end(self, *, patience: float = _END_PATIENCE) -> None:
        """It ends by itself, with all it started, when it is no longer spoken to; else it is killed. Any times."""
        self._control.close()
        self._theirs.close()
        self._said.close()
        process = self._process
        if process is None:
            return
        graceful = True
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            graceful = False
            self._kill(process)
            process.wait()
        if not self._isolation.bubblewrap and not (graceful and process.returncode == 0):
            _sweep(self._mark)
            for left in Path(_TEMPORARY).glob(f"{self._mark}-*"):
                shutil.rmtree(left, ignore_errors=True)

    def abandon(self) -> None:
        """In a forked copy of the studio, whose it is not: only let go of it."""
        self._control.close()
        if self._process is not None:
            self._process.returncode = 0

    def _started(self) -> tuple[subprocess.Popen[bytes], Setup]:
        wrapped = bool(self._isolation.bubblewrap)
        for directory in (self.program.workspace, self._sessions, self._data):
            directory.mkdir(parents=True, exist_ok=True)
        self.user = user = self._user()
        places = place(self.program, user=user, bind=wrapped)
        number = self._theirs.fileno()
        python = str(self.program.python)
        command = wrap(
            [python, "-I", "-S", "-B", str(SANDBOX), str(number)],
            readable=[SANDBOX, self._data],
            writable=[self.program.workspace, self._sessions],
            places=places,
            capabilities=("CAP_SETUID", "CAP_SETGID") if user else (),
            isolation=self._isolation,
        )
        process = subprocess.Popen(
            command,
            cwd="/",
            env=scrubbed_environment(MARK=self._mark),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=[number],
            start_new_session=True,
        )
        return process, self._setup(user)

    def _user(self) -> int:
        """Under whose id: as root somebody else's, where that one can reach what it needs; else 0, our own."""
        if os.geteuid() != 0 or not _may_change_users():
            return 0
        needed = [*interpreter_paths(self.program.python), self.program.package, SANDBOX]
        hidden = self._isolation.bubblewrap
        if not hidden:
            needed += [self.program.workspace.parent, self._sessions, self._data]
        existing = [path for path in needed if path.exists()]
        return TOOL_USER if all_may_read(existing, from_the_top=not hidden) else 0

    def _setup(self, user: int) -> Setup:
        wrapped = bool(self._isolation.bubblewrap)
        readable = [*system_paths(), *interpreter_paths(self.program.python), self.program.package]
        limits = self._limits
        return Setup(
            tool=str(self.program.directory),
            workspace=str(self.program.workspace),
            environment=str(self.program.python.parent.parent),
            readable=(*map(str, readable), *(("/proc", "/etc") if wrapped else _MACHINE.split())),
            devices=self._devices(),
            user=user,
            landlock=landlock.version() if self._isolation.landlock else 0,
            own_temporary=wrapped,
            mark=self._mark,
            bounds=Bounds(
                memory=limits.memory,
                processes=limits.processes,
                open_files=limits.open_files,
                disk=limits.disk,
                new_files=limits.new_files,
            ),
        )

    def _devices(self) -> tuple[str, ...]:
        """Writable, beside its own files.

        Landlock would let in to other tools' and sessions' directories that are bound below /tmp: then it stays closed.
        An interpreter below it is bound read-only.
        """
        if not self._isolation.bubblewrap:
            return tuple(_DEVICES.split())
        bound = (self.program.workspace, self._sessions, self._data)
        inside = any(path.is_relative_to(_TEMPORARY) for path in bound)
        return ("/dev",) if inside else ("/dev", _TEMPORARY)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """With bubblewrap, the first process inside: when that is gone, so is everything inside."""
        pids = [process.pid]
        if self._isolation.bubblewrap:
            with suppress(OSError, ValueError):
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
                pids = [int(word) for word in children.split()] or pids
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_PATIENCE)
            return
        process.kill()


def _missing(program: Program) -> str:
    if not os.access(program.python, os.X_OK):
        return f"its environment is gone: there is no {str(program.python)!r}. Build it again."
    if not (program.package / "tool.py").is_file():
        return f"its files are gone: there is no {str(program.package / 'tool.py')!r}."
    return ""


def _may_change_users() -> bool:
    """Root in a container may lack what makes it root."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16) & _CHANGING_USERS == _CHANGING_USERS
    return False


def _stamps(program: Program) -> tuple[tuple[int, int] | None, ...]:
    found: list[tuple[int, int] | None] = []
    for path in (program.python, program.package, program.package / "tool.py"):
        try:
            told = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((told.st_ino, told.st_mtime_ns))
    return tuple(found)


def _sweep(mark: str) -> None:
    """Kill what escaped a host that was killed itself: its mark stands in the environment of all it started."""
    needle = mark.encode()
    again = True
    while again:
        again = False
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with suppress(OSError):
                if needle in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
                    again = True
