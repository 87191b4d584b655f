"""What a host is told when it starts, what it is told of a call, and what comes back. JSON on the way."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one call may use: bytes and numbers."""

    memory: int  # bytes, of all its processes together
    processes: int
    open_files: int  # by each process
    disk: int  # bytes written and kept
    new_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The same for all calls of a host. Paths are absolute, as the tool sees them.

    `user` is the id to run under, 0 to stay who one is. With `own_temporary`, /tmp and /dev/shm are the host's own;
    what of them tools may write to is among `devices`.
    """

    tool: str  # directory of tool.py
    workspace: str
    environment: str
    readable: tuple[str, ...]
    devices: tuple[str, ...]
    user: int
    landlock: int  # version of the interface; 0: do without
    own_temporary: bool
    mark: str  # stands in the path of temporary files, and so in the environment of every process
    bounds: Bounds

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Setup":
        bounds = Bounds(**value.pop("bounds"))
        readable, devices = tuple(value.pop("readable")), tuple(value.pop("devices"))
        return cls(**value, bounds=bounds, readable=readable, devices=devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What each call of a host stands on: its setup, and what it found out and made by itself.

    `temporary` is a directory with a name of its own, `kept` is what else stood there from the start.
    """

    setup: Setup
    temporary: Path
    kept: frozenset[Path]
    own_namespace: bool  # a call can have a user namespace of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call. The parameters are JSON texts, as they stand in `sys.argv`; `deadline` is in seconds from now."""

    user_params: str
    tool_params: str
    deadline: float
    session: str  # directories; "" for none
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a call ended: `end` is a value of `engine.tools.runner.End`; `code` its exit code, negative for a signal."""

    end: str
    code: int | None = None
    note: str = ""
