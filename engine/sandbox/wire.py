"""What the studio and the sandbox say to each other: JSON in frames, over sockets, where no process list shows it."""

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
LONGEST = 64 << 20
"""Bytes of one frame."""


class BrokenTalkError(Exception):
    """The other side is gone, or says what makes no sense."""


def framed(value: Any) -> bytes:
    body = json.dumps(value, ensure_ascii=True).encode()
    return _LENGTH.pack(len(body)) + body


def receive(channel: socket.socket) -> Any:
    """One frame, waited for as long as the socket's timeout says; raises BrokenTalkError or OSError."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    if length > LONGEST:
        raise BrokenTalkError(f"a frame of {length} bytes is too long")
    return json.loads(_exactly(channel, length))


class Frames:
    """Frames out of the pieces in which they come."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> list[Any]:
        """The frames that are complete by now; raises ValueError for what is none."""
        self._held += piece
        found = []
        while len(self._held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held)
            if length > LONGEST:
                raise ValueError(f"a frame of {length} bytes is too long")
            end = _LENGTH.size + length
            if len(self._held) < end:
                break
            found.append(json.loads(self._held[_LENGTH.size : end]))
            self._held = self._held[end:]
        return found


def _exactly(channel: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = channel.recv(min(size, 1 << 20))
        if not piece:
            raise BrokenTalkError("the other side is gone")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
