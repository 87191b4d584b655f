"""What a call adds to the disk: watched at little cost while it runs, and taken away again when it was too much."""

import ctypes
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

# The clock that stamps files; it ticks more slowly than the others.
_CLOCK_REALTIME_COARSE = 5
_MOST_ENTRIES = 100_000  # looked at, at a time
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME = -100, 0x100, 0x800
_STATX_SIZE, _BIRTH_SECONDS, _BIRTH_NANOSECONDS = 256, 80, 88


@dataclass(frozen=True, slots=True, kw_only=True)
class _Free:
    space: int  # bytes
    files: int


class Watch:
    """Over the directories that a call may write to, from now on.

    It asks the file system how much is free, which costs nothing. Only when that fell by as much as a call may use, it
    looks into the directories for whose doing that is.
    """

    def __init__(self, roots: list[str], *, disk: int, new_files: int) -> None:
        self._roots = [Path(root) for root in roots]
        self._disk, self._new_files = disk, new_files
        self._began = time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
        self._free = {root: _free(root) for root in self._roots}

    def used_up(self, written: int) -> str:
        """What there is too much of; "" while all is well. `written` are the bytes that the call wrote so far."""
        space = files = 0
        for root, before in self._free.items():
            now = _free(root)
            space = max(space, before.space - now.space)
            files = max(files, before.files - now.files)
        if space < self._disk and files < self._new_files:
            return ""
        changed, number = self._changed()
        if space >= self._disk and max(changed, written) >= self._disk // 2:
            return f"it wrote more than {self._disk >> 20} MiB"
        if number >= self._new_files // 2 and files >= self._new_files:
            return f"it made more than {self._new_files} files"
        return ""

    def take_away(self) -> None:
        """Remove the files that were made since, as far as the file system knows when they were made."""
        directories = []
        for path, entry in self._entries():
            if _born(path) < self._began:
                continue
            if stat.S_ISDIR(entry.st_mode):
                directories.append(path)
            else:
                with suppress(OSError):
                    path.unlink()
        for path in reversed(directories):
            with suppress(OSError):
                path.rmdir()

    def _changed(self) -> tuple[int, int]:
        """Bytes of the files changed since, and how many they are."""
        size = number = 0
        for _path, entry in self._entries():
            if entry.st_ctime_ns >= self._began:
                size += entry.st_blocks * 512
                number += 1
        return size, number

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Outer directories before what they hold; roots themselves not, nor what else is mounted in them."""
        seen = 0
        for root in self._roots:
            waiting = [root]
            device = root.stat().st_dev if root.exists() else 0
            while waiting:
                for path, found in _listed(waiting.pop()):
                    seen += 1
                    if seen > _MOST_ENTRIES:
                        return
                    if found.st_dev != device:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(path)
                    yield path, found


def _listed(directory: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                found.append((Path(entry.path), entry.stat(follow_symlinks=False)))
    return found


def _free(root: Path) -> _Free:
    try:
        told = os.statvfs(root)
    except OSError:  # the tool removed it
        return _Free(space=0, files=0)
    return _Free(space=told.f_bavail * told.f_frsize, files=told.f_favail)


def _born(path: Path) -> int:
    """When a file was made, in nanoseconds; 0 where that is not known."""
    told = ctypes.create_string_buffer(_STATX_SIZE)
    name = ctypes.c_char_p(os.fsencode(path))
    try:
        failed = _libc.statx(_AT_FDCWD, name, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, told)
    except AttributeError:  # a C library from before 2018
        return 0
    raw = told.raw
    mask = int.from_bytes(raw[0:4], sys.byteorder)
    if failed or not mask & _STATX_BTIME:
        return 0
    seconds = int.from_bytes(raw[_BIRTH_SECONDS:][:8], sys.byteorder, signed=True)
    return seconds * 10**9 + int.from_bytes(raw[_BIRTH_NANOSECONDS:][:4], sys.byteorder)
