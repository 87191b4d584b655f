"""What calls leave outside of their own directories, where a host has such places for itself: it goes."""

import ctypes
import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.sandbox.values import Ground

_libc = ctypes.CDLL(None, use_errno=True)
_REMOVE = 0  # IPC_RMID


def own_temporary() -> list[str]:
    """The system's directories for temporary files; the host's own where `Setup.own_temporary`, else the machine's."""
    return ["/tmp", "/dev/shm"]  # noqa: S108


def files() -> set[Path]:
    """What stands in these directories."""
    found: set[Path] = set()
    for directory in own_temporary():
        with suppress(OSError):
            found |= set(Path(directory).iterdir())
    return found


@contextmanager
def cleared(ground: Ground) -> Iterator[None]:
    """Meanwhile a call runs. The last of those that run at the same time clears away what all of them left."""
    if not ground.setup.own_temporary:
        yield
        return
    lock = os.open(ground.temporary, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _clear(ground.kept)
    finally:
        os.close(lock)


def remove(directory: Path) -> None:
    """Of a tool's, which may have made directories that even their owner cannot enter."""
    with suppress(OSError):
        directory.chmod(0o700)
        for path, names, _files in os.walk(directory):
            for name in names:
                inner = Path(path) / name
                with suppress(OSError):
                    if not inner.is_symlink():
                        inner.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _clear(kept: Collection[Path]) -> None:
    for path in files().difference(kept):
        if path.is_dir() and not path.is_symlink():
            remove(path)
        else:
            with suppress(OSError):
                path.unlink()
    for kind, control in (("shm", "shmctl"), ("msg", "msgctl"), ("sem", "semctl")):
        for number in _of_system_v(kind):
            arguments = (number, 0, _REMOVE) if kind == "sem" else (number, _REMOVE, None)
            getattr(_libc, control)(*arguments)


def _of_system_v(kind: str) -> list[int]:
    """What outlives its processes, in the host's own namespace: numbers of segments, queues, semaphores."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/sysvipc/{kind}").read_text("ascii").splitlines()[1:]
        return [int(line.split()[1]) for line in lines]
    return []
