"""Environments of uploaded tools on this machine: one folder for each set of needs, whole or not there."""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.tools.environments.build_step import BuildError, Limit, Stage, StoppedError, Told
from engine.tools.environments.building import fill
from engine.tools.environments.needs import Needs

__all__ = [
    "BuildError",
    "BuildLog",
    "Needs",
    "Stage",
    "StoppedError",
    "Told",
    "build",
    "keys_in",
    "python_in",
    "remove",
    "sweep",
]

READY = ".ready"
WAITING_POLL = 0.1  # seconds
LOG_KEPT = 200_000  # characters

_KEY = re.compile(r"[0-9a-f]{64}")


class BuildLog:
    """The last lines told, up to LOG_KEPT characters, and the stage that was told last."""

    def __init__(self) -> None:
        self.stage = ""
        self._lines: deque[str] = deque()
        self._length = 0
        self._cut = False

    def add(self, told: Told) -> None:
        self.stage = told.stage
        if not told.line:
            return
        self._lines.append(told.line)
        self._length += len(told.line) + 1
        while self._length > LOG_KEPT:
            self._length -= len(self._lines.popleft()) + 1
            self._cut = True

    @property
    def text(self) -> str:
        return "\n".join(["…", *self._lines] if self._cut else self._lines)


def python_in(root: Path, key: str) -> Path | None:
    """The interpreter of the environment `key` under `root`; None where it is absent or not whole."""
    python = root / key / "bin" / "python"
    return python if (root / key / READY).is_file() and python.exists() else None


def build(
    needs: Needs,
    root: Path,
    *,
    deadline: float,
    stop: threading.Event,
    told: Callable[[Told], None],
) -> Path:
    """Build the environment, or wait for whoever builds it, and give its interpreter. Blocks.

    `deadline` is in seconds from now, the wait included. `told` hears each stage and each line of the installer, with
    no password in it. Raises BuildError; then nothing of it is left, neither files nor processes.
    """
    if problem := needs.problem():
        raise BuildError(problem, Stage.CREATING)
    key = needs.key
    limit = Limit.of(deadline, stop)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _wait_for_lock(root, key, limit, told) as held:
            return python_in(root, key) or _build(needs, root / key, limit, told, held)
    except OSError as error:
        raise BuildError(_words(error), Stage.CREATING) from error


def keys_in(root: Path) -> set[str]:
    """Of all environments there, whole or not."""
    if not root.is_dir():
        return set()
    return {path.name for path in root.iterdir() if _KEY.fullmatch(path.name)}


def sweep(root: Path) -> int:
    """Remove what builds left that were killed; how many those were. Leaves alone what is being built."""
    return sum(remove(root, key) for key in keys_in(root) if python_in(root, key) is None)


def remove(root: Path, key: str) -> bool:
    """Remove an environment, whole or not; False where it is being built. Nobody may be using it."""
    if not root.is_dir():
        return True
    with _lock(root, key) as held:
        if held is None:
            return False
        _clear(root / key)
        _lock_file(root, key).unlink(missing_ok=True)
    return True


def _build(
    needs: Needs, place: Path, limit: Limit, told: Callable[[Told], None], held: int
) -> Path:
    _clear(place)  # of a build that was killed
    place.mkdir()
    try:
        fill(needs, place, cache=place.parent / ".cache", limit=limit, told=told, held=held)
        _mark(place)
        python = python_in(place.parent, place.name)
        if python is None:
            raise BuildError(
                "The environment has no interpreter, though all went well.", Stage.CHECKING
            )
    except BaseException:
        _clear(place)
        _lock_file(place.parent, place.name).unlink(missing_ok=True)
        raise
    return python


def _mark(place: Path) -> None:
    """From here on it is used. What was installed could have laid a link here that leads elsewhere."""
    draft = place / f"{READY}.draft"
    draft.unlink(missing_ok=True)
    draft.touch(exist_ok=False)
    draft.replace(place / READY)


def _clear(place: Path) -> None:
    """Remove the folder, and first of all the mark that it can be used; processes that die may still write into it."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (place / READY).unlink()
    for patience in (0, 0.05, 0.2, 1):
        time.sleep(patience)
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            return
        for folder, _folders, _files in os.walk(place):  # a package may have locked its own
            Path(folder).chmod(0o700)
    raise OSError(errno.ENOTEMPTY, f"{place.name} cannot be removed")


def _lock_file(root: Path, key: str) -> Path:
    return root / f"{key}.lock"


@contextlib.contextmanager
def _lock(root: Path, key: str) -> Iterator[int | None]:
    """The descriptor that holds the lock; None where somebody else does. It is never waited for."""
    path = _lock_file(root, key)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = False
        else:  # whoever held it before may have removed it meanwhile
            held = os.fstat(descriptor).st_ino == _inode(path)
        yield descriptor if held else None
    finally:
        os.close(descriptor)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return -1


@contextlib.contextmanager
def _wait_for_lock(
    root: Path, key: str, limit: Limit, told: Callable[[Told], None]
) -> Iterator[int]:
    waits = False
    while True:
        limit.check(Stage.WAITING)
        with _lock(root, key) as held:
            if held is not None:
                yield held
                return
        if not waits:
            told(Told(stage=Stage.WAITING))
            waits = True
        limit.stop.wait(WAITING_POLL)


def _words(error: OSError) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "The disk is full. Make room, and try again."
    return f"The folder of environments cannot be used: {error.strerror or error}."
