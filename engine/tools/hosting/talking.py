"""The studio's side of one call: sends it, gathers what the tool prints, and hears how it ended."""

import os
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from engine.sandbox import wire
from engine.tools.hosting.processes import End, Limits, Outcome, Stop

_SEND_PATIENCE = 10.0  # seconds for the sandbox to take a call
_GRACE = 1.5  # seconds after the deadline, for the sandbox to keep it by itself
_END_PATIENCE = 8.0  # seconds for the sandbox to end a call
_DRAIN = 0.5  # seconds for the last of what it printed
_PIECE = 1 << 16  # bytes

Send = Callable[[bytes, list[int]], None]


class NotBegunError(Exception):
    """It did not begin: the process that should run it is gone, or said that it could not."""

    def __init__(self, note: str, *, gone: bool = True) -> None:
        super().__init__(note)
        self.gone = gone


class HostLostError(Exception):
    """The call had begun, and is no longer heard of. What ran it has to be ended as a whole."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.note)
        self.outcome = outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`ends` is a time of `time.monotonic`, and so is `began`."""

    request: dict[str, Any]
    limits: Limits
    began: float
    ends: float
    on_output: Callable[[bytes], None] | None = None


def ask(send: Send, question: Question, stop: Stop) -> Outcome:
    """Have the sandbox run it. `send` passes a message and descriptors; raises NotBegunError, HostLostError.

    What `on_output` raises ends the call, and is raised.
    """
    with ExitStack() as stack:
        talk = _Talk(question, stack)
        talk.begin(send)
        with stop.telling(talk.wake):
            return talk.until_it_ends(stop)


class _Talk:
    def __init__(self, question: Question, stack: ExitStack) -> None:
        self._question = question
        self._channel, self._theirs = socket.socketpair()
        stack.enter_context(self._channel)
        stack.enter_context(self._theirs)
        self._streams: dict[int, bytearray] = {}
        self._given = [self._theirs.fileno()]
        self._selector = stack.enter_context(selectors.PollSelector())
        self._stack = stack
        for _stream in ("stdout", "stderr"):
            reading, writing = os.pipe()
            stack.callback(os.close, reading)
            os.set_blocking(reading, False)
            self._given.append(writing)
            self._streams[reading] = bytearray()
            self._selector.register(reading, selectors.EVENT_READ)
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        stack.callback(os.close, self._wake)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._selector.register(self._channel, selectors.EVENT_READ)
        self._frames = wire.Frames()
        self._verdict: dict[str, Any] | None = None
        self._begun = False
        self._why: End | None = None  # we asked for its end
        self._patience = question.ends + _GRACE

    def wake(self) -> None:
        os.eventfd_write(self._wake, 1)

    def begin(self, send: Send) -> None:
        try:
            send(b"call", self._given)
            self._theirs.close()
            self._channel.settimeout(_SEND_PATIENCE)
            self._channel.sendall(wire.framed(self._question.request))
            self._channel.setblocking(False)
        except OSError as error:
            raise NotBegunError(str(error)) from error
        finally:
            for writing in self._given[1:]:
                os.close(writing)

    def until_it_ends(self, stop: Stop) -> Outcome:
        while self._verdict is None:
            if stop.requested:
                self._end(End.STOPPED)
            self._step(self._patience - time.monotonic())
            if time.monotonic() >= self._patience:
                self._out_of_patience()
        if self._verdict["end"] == End.NOT_STARTED:
            raise NotBegunError(str(self._verdict["note"]), gone=False)
        ends = time.monotonic() + _DRAIN
        while self._open() and (left := ends - time.monotonic()) > 0:
            self._step(left)
        return self._outcome(self._verdict)

    def _out_of_patience(self) -> None:
        if self._why is None:
            self._end(End.TIMEOUT)
            return
        raise self._lost(self._why, "what watches it did not answer")

    def _end(self, why: End) -> None:
        """Ask for it, once."""
        if self._why is None:
            self._why = why
            self._patience = time.monotonic() + _END_PATIENCE
            with suppress(OSError):
                self._channel.send(wire.framed({"stop": True}))

    def _step(self, wait: float) -> None:
        for key, _events in self._selector.select(max(0.0, wait)):
            if key.fd in self._streams:
                self._read(key.fd)
            elif key.fd == self._wake:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
            else:
                self._listen()

    def _listen(self) -> None:
        try:
            piece = self._channel.recv(_PIECE)
            frames = self._frames.feed(piece)
        except BlockingIOError:
            return
        except (OSError, ValueError):
            piece, frames = b"", []
        for frame in frames:
            if "end" in frame:
                self._verdict = frame
            else:
                self._begun = True
        if not piece:
            self._selector.unregister(self._channel)
            if self._verdict is None:
                self._gone()

    def _gone(self) -> None:
        if not self._begun:
            raise NotBegunError("its process ended before the tool began")
        raise self._lost(End.LOST, "the process that watched it ended")

    def _lost(self, end: End, note: str) -> HostLostError:
        return HostLostError(self._outcome({"end": end, "code": None, "note": note}))

    def _read(self, stream: int) -> None:
        try:
            piece = os.read(stream, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            self._selector.unregister(stream)
            return
        room = self._question.limits.output - sum(map(len, self._streams.values()))
        kept = piece[:room]
        self._streams[stream] += kept
        if kept and self._question.on_output is not None:
            self._question.on_output(kept)
        if len(piece) > room:
            self._end(End.OUTPUT)

    def _open(self) -> bool:
        return any(fd in self._selector.get_map() for fd in self._streams)

    def _outcome(self, verdict: dict[str, Any]) -> Outcome:
        end, note = End(verdict["end"]), str(verdict["note"])
        if self._why is End.OUTPUT or (end is End.STOPPED and self._why is not None):
            end = self._why
        elif end is End.STOPPED:  # the sandbox took us for gone
            end = End.LOST
        if end is End.OUTPUT:
            note = f"it printed more than {self._question.limits.output >> 10} KiB"
        stdout, stderr = (bytes(held) for held in self._streams.values())
        return Outcome(
            end=end,
            code=verdict["code"],
            stdout=stdout,
            stderr=stderr,
            duration_ms=round((time.monotonic() - self._question.began) * 1000),
            note=note,
        )
