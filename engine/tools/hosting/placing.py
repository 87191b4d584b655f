"""Puts a tool's files to where it finds them: its own directory in its workspace, writable but for these files."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.tools.hosting.processes import Program

TOOL_USER = 64000
"""Under which id tools run, user and group, where the studio runs as root."""

# Stands as the time of change of what we put there, so that it is known again: nanoseconds since 1970.
_MARK = 1_234_567_891
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def place(program: Program, *, user: int, bind: bool) -> list[tuple[Path, Path]]:
    """Prepare the workspace; `user` is 0 where tools run as the studio itself. Raises OSError.

    With `bind`, the files are to be mounted: it answers source and target of each, and makes only the targets, empty.
    Without, they are linked to. The tool cannot remove the links where it has a user of its own; else the next start
    of its process restores them.

    Tools write to the workspace, perhaps at this moment: nothing here follows a link that one may have put there.
    """
    entries = {entry.name: entry for entry in program.package.iterdir() if not entry.is_symlink()}
    with _tool_directory(program, user) as directory:
        for name in os.listdir(directory):  # noqa: PTH208 - of a descriptor
            if name not in entries and _is_ours(directory, name):
                _remove(directory, name)  # of an earlier version
        for entry in entries.values():
            _place(entry, directory, bind=bind)
    return [(entry, program.directory / name) for name, entry in entries.items()] if bind else []


def hand_over(directory: Path, user: int) -> None:
    """To the user under which tools run, unless it is theirs; 0 leaves it as it is."""
    if user and directory.stat().st_uid != user:
        os.chown(directory, user, user)


def all_may_read(paths: Iterable[Path], *, from_the_top: bool) -> bool:
    """May any user read these files and directories, and (`from_the_top`) reach them?"""
    for path in paths:
        needed = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
        if path.stat().st_mode & needed != needed:
            return False
        if from_the_top and not all(up.stat().st_mode & stat.S_IXOTH for up in path.parents):
            return False
    return True


@contextmanager
def _tool_directory(program: Program, user: int) -> Iterator[int]:
    """A descriptor of it. With a user of their own, tools cannot replace it, nor in it what is not theirs."""
    program.workspace.mkdir(parents=True, exist_ok=True)
    held = [os.open(program.workspace, _DIRECTORY)]
    try:
        for name in ("tools", program.slug):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=held[-1])
            held.append(os.open(name, _DIRECTORY, dir_fd=held[-1]))
        if user:
            for directory in (held[0], held[-1]):
                os.fchown(directory, 0, user)
                os.fchmod(directory, 0o1770)
            os.fchmod(held[1], 0o755)
        yield held[-1]
    finally:
        for directory in held:
            os.close(directory)


def _place(entry: Path, directory: int, *, bind: bool) -> None:
    wanted = (stat.S_IFDIR if entry.is_dir() else stat.S_IFREG) if bind else stat.S_IFLNK
    there = _told(directory, entry.name)
    if there is not None:
        same = stat.S_IFMT(there.st_mode) == wanted
        if same and (bind or os.readlink(entry.name, dir_fd=directory) == str(entry)):
            return  # left alone: in another process it may be mounted over
        if _is_ours(directory, entry.name):
            _remove(directory, entry.name)
        else:
            aside = f"{entry.name}.own"
            os.rename(entry.name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    if not bind:
        os.symlink(entry, entry.name, dir_fd=directory)
    elif wanted == stat.S_IFDIR:
        os.mkdir(entry.name, 0o755, dir_fd=directory)
    else:
        made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(entry.name, made, 0o444, dir_fd=directory))
    os.utime(entry.name, ns=(_MARK, _MARK), dir_fd=directory, follow_symlinks=False)


def _is_ours(directory: int, name: str) -> bool:
    there = _told(directory, name)
    return there is not None and there.st_mtime_ns == _MARK


def _told(directory: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remove(directory: int, name: str) -> None:
    """What we put there: a link, or something empty."""
    with suppress(OSError):
        try:
            os.unlink(name, dir_fd=directory)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=directory)
