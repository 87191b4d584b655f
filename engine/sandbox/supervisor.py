"""Watches the process of one call from close by, and leaves nothing of it behind."""

import os
import select
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from engine.sandbox import leftovers, processes, system, tool_process, wire
from engine.sandbox.disk import Watch
from engine.sandbox.values import Ground, Request, Setup, Verdict

_PATIENCE = 10.0  # seconds for the request to come
_LOOK = 0.05  # seconds between two looks at what the tool takes
_WITHOUT_HANDLE = 0.005  # the same, where the kernel does not say when a process ends
_KILL_PATIENCE = 5.0
_LONGEST_NOTE = 2000  # bytes


def run(ground: Ground, channel: socket.socket, streams: Sequence[int]) -> NoReturn:
    """The life of a supervisor, which is a fork of the host; `streams` are where stdout and stderr go."""
    code = 1
    try:
        system.adopt_orphans()
        channel.settimeout(_PATIENCE)
        request = Request(**wire.receive(channel))
        with leftovers.cleared(ground):
            home = Path(tempfile.mkdtemp(prefix="call-", dir=ground.temporary))
            try:
                verdict = _supervised(ground, request, channel, streams, home)
            finally:
                leftovers.remove(home)
        channel.sendall(wire.framed(asdict(verdict)))
        code = 0
    except (OSError, ValueError, wire.BrokenTalkError):
        pass  # nobody is there to hear of it: the studio's end is closed
    finally:
        os._exit(code)


def _supervised(
    ground: Ground, request: Request, channel: socket.socket, streams: Sequence[int], home: Path
) -> Verdict:
    watch = _watch(ground.setup, request, home)
    ready, failed = os.pipe()
    channel.sendall(wire.framed({"begun": True}))
    ends = time.monotonic() + request.deadline
    tool = os.fork()
    if tool == 0:
        tool_process.become(ground, request, streams, failed, str(home))
    os.close(failed)
    for number in streams:
        os.close(number)
    os.set_blocking(ready, False)
    try:
        verdict = _Watched(ground.setup, channel, tool, watch, ends).until_it_ends()
    finally:
        gone = processes.end_all(_KILL_PATIENCE, group=tool)
    if not gone:
        raise OSError("processes of the tool do not end")  # the studio ends the host
    if verdict.end == "disk":
        watch.take_away()
    with suppress(BlockingIOError):
        if note := os.read(ready, _LONGEST_NOTE):
            return Verdict(end="not_started", note=note.decode("utf-8", "replace"))
    return verdict


def _watch(setup: Setup, request: Request, home: Path) -> Watch:
    roots = [root for root in (setup.workspace, request.session) if root]
    roots += leftovers.own_temporary() if setup.own_temporary else [str(home)]
    return Watch(roots, disk=setup.bounds.disk, new_files=setup.bounds.new_files)


class _Watched:
    def __init__(
        self, setup: Setup, channel: socket.socket, tool: int, watch: Watch, ends: float
    ) -> None:
        self._bounds = setup.bounds
        self._channel = channel
        self._tool = tool
        self._watch = watch
        self._ends = ends
        self._host = os.getppid()
        self._shared = processes.shared_memory_of_all()
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._handle = _handle(tool)
        if self._handle is not None:
            self._poll.register(self._handle, select.POLLIN)

    def until_it_ends(self) -> Verdict:
        look = _LOOK if self._handle is not None else _WITHOUT_HANDLE
        next_look = time.monotonic() + _LOOK
        while True:
            now = time.monotonic()
            wait = max(0.0, min(look, self._ends - now))
            ready = {number for number, _event in self._poll.poll(int(wait * 1000) + 1)}
            if (status := self._status()) is not None:
                return _of_status(status)
            # It says stop, or is gone: the same to the tool.
            if self._channel.fileno() in ready or os.getppid() != self._host:
                return Verdict(end="stopped")
            now = time.monotonic()
            if now >= self._ends:
                return Verdict(end="timeout")
            if now >= next_look:
                next_look = now + _LOOK
                if verdict := self._too_much():
                    return verdict

    def _status(self) -> int | None:
        """Of the tool, if it ended. Orphans that ended are waited for as well."""
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if child == self._tool:
                return status
            if child == 0:
                return None

    def _too_much(self) -> Verdict | None:
        bounds = self._bounds
        pids = processes.descendants()
        if len(pids) > bounds.processes:
            return Verdict(end="processes", note=f"it had more than {bounds.processes} at a time")
        memory = processes.memory(pids)
        if memory > bounds.memory:
            memory = processes.proportional_memory(pids) or memory
        if processes.shared_memory_of_all() - self._shared > bounds.memory:
            memory += processes.unmapped_memory(pids)
        if memory > bounds.memory:
            return Verdict(end="memory", note=f"it took more than {bounds.memory >> 20} MiB")
        if note := self._watch.used_up(processes.written(pids)):
            return Verdict(end="disk", note=note)
        return None


def _of_status(status: int) -> Verdict:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return Verdict(end="exited", code=code)
    name = signal.strsignal(-code) or "unknown signal"
    if -code == signal.SIGXCPU:
        return Verdict(end="timeout", code=code, note="it used up its processor time")
    return Verdict(end="signal", code=code, note=f"signal {-code}: {name}")


def _handle(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
