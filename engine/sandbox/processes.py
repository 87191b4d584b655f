"""The descendants of this process: which there are, what memory they take, and how to end them all."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_PAUSE = 0.002  # seconds between two attempts to end them


def descendants() -> set[int]:
    """All of them, dead ones not yet waited for included. Those that come while it looks may be missed."""
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for child in _children(waiting.pop()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def memory(pids: set[int]) -> int:
    """Bytes that these processes take together, pages that several share counted again for each.

    Only of the anonymous ones; what programs and libraries on disk take is not theirs.
    """
    own = shared = 0
    for pid in pids:
        values = _numbers(_PROC / str(pid) / "status", ("RssAnon", "RssShmem"))
        own += values.get("RssAnon", 0)
        shared = max(shared, values.get("RssShmem", 0))
    return own + shared


def proportional_memory(pids: set[int]) -> int:
    """Bytes as well, each shared page counted once. It takes longer; 0 where the kernel does not tell."""
    total = 0
    for pid in pids:
        values = _numbers(_PROC / str(pid) / "smaps_rollup", ("Pss_Anon", "Pss_Shmem"))
        total += sum(values.values())
    return total


def shared_memory_of_all() -> int:
    """Bytes that the whole machine has in shared memory, files in memory included. It costs little to ask."""
    return _numbers(_PROC / "meminfo", ("Shmem",)).get("Shmem", 0)


def unmapped_memory(pids: set[int]) -> int:
    """Bytes in files in memory that these processes hold open, and in segments shared by System V's calls.

    Neither is the memory of a process until it is mapped.
    """
    files: dict[int, int] = {}
    for pid in pids:
        with suppress(OSError):
            for handle in (_PROC / str(pid) / "fd").iterdir():
                with suppress(OSError):
                    if str(handle.readlink()).startswith("/memfd:"):
                        told = handle.stat()
                        files[told.st_ino] = told.st_blocks * 512
    return sum(files.values()) + shared_segments()


def shared_segments() -> int:
    """Bytes in segments shared by System V's calls, where this process has a namespace for them of its own."""
    total = 0
    with suppress(OSError, ValueError, IndexError):
        head, *lines = (_PROC / "sysvipc" / "shm").read_text("ascii").splitlines()
        column = head.split().index("rss")
        total = sum(int(line.split()[column]) for line in lines)
    return total


def written(pids: set[int]) -> int:
    """Bytes that these processes, and those children of theirs that ended, wrote to storage; as far as is known."""
    return sum(
        _numbers(_PROC / str(pid) / "io", ("write_bytes",)).get("write_bytes", 0) for pid in pids
    )


def end_all(patience: float, *, group: int = 0) -> bool:
    """End every descendant within `patience` seconds. Must be one that adopts orphans: then no child left is none left.

    Those of a process group go at one stroke, if it is given. All others are stopped before the first is killed, so
    that none has the time to fork; that again until no new one is found.
    """
    ends = time.monotonic() + patience
    while _has_children():
        with suppress(OSError):
            if group:
                os.killpg(group, signal.SIGKILL)
        stopped: set[int] = set()
        while new := descendants() - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
        _signal(stopped, signal.SIGKILL)
        if time.monotonic() > ends:
            return False
        time.sleep(_PAUSE)
    return True


def _has_children() -> bool:
    """Waits for those that ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - often, and in a hurry
            with suppress(OSError, ValueError):
                found += map(
                    int, (_PROC / str(pid) / "task" / task / "children").read_bytes().split()
                )
    if not found and not _KERNEL_TELLS:
        found = [child for child, parent in _parents() if parent == pid]
    return found


def _parents() -> list[tuple[int, int]]:
    found = []
    for entry in _PROC.iterdir():
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            found.append((int(entry.name), int(fields[1])))
    return found


def _numbers(path: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Lines of the form `name: number`, in kB where that is said."""
    found = {}
    with suppress(OSError, ValueError):
        for line in path.read_text("ascii", "replace").splitlines():
            name, _colon, value = line.partition(":")
            if name in names:
                words = value.split()
                found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


_KERNEL_TELLS = Path(f"/proc/self/task/{os.getpid()}/children").exists()
