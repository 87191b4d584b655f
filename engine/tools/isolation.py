"""How far a command can be kept apart on this machine: bubblewrap around it, Landlock inside of it (TOOLS.md §2)."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.sandbox import landlock

ETC = Path(__file__).resolve().parents[1] / "sandbox" / "etc"

TEMPORARY_BYTES = 256 << 20
"""What fits into /tmp inside of bubblewrap; it is memory."""

_SHARED_BYTES = 64 << 20  # of /dev/shm, where the locks of multiprocessing stand

# What any program may need of the system. Nothing here tells of people, services or secrets of the machine.
_SYSTEM = tuple(
    Path(path) for path in "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store".split()
)
_SETTINGS = tuple(
    Path("/etc") / name
    for name in (
        "alternatives ca-certificates ca-certificates.conf fonts gai.conf host.conf hosts ld.so.cache ld.so.conf "
        "ld.so.conf.d localtime magic mime.types nsswitch.conf pki/ca-trust/extracted pki/tls/certs "
        "pki/tls/cert.pem pki/tls/openssl.cnf protocols resolv.conf services ssl/cert.pem ssl/certs "
        "ssl/openssl.cnf timezone"
    ).split()
)

_TEMPORARY = Path("/tmp")  # noqa: S108 - inside of bubblewrap, its own
_SHARED = Path("/dev/shm")  # noqa: S108 - as well
_READABLE = "--ro-bind-try"
_PATIENCE = 10.0  # seconds for bubblewrap to show that it works


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """`bubblewrap` is the program's path, "" where it is absent or the machine forbids what it does."""

    bubblewrap: str
    landlock: bool

    @property
    def sentence(self) -> str:
        """What holds of a tool that runs here, and what is missing."""
        if self.bubblewrap and self.landlock:
            return (
                "A tool sees only its own files, its session's and the system's, and no process but its own "
                "(bubblewrap and Landlock)."
            )
        if self.bubblewrap:
            return (
                "A tool sees only its own files and the system's, and no process but its own (bubblewrap). The kernel "
                "has no Landlock, so that a tool could read what it keeps for other sessions."
            )
        if self.landlock:
            return (
                "A tool can open only its own files, its session's and the system's (Landlock). Bubblewrap is missing "
                "or not permitted here, so that a tool sees which processes run, and where files stand. Install "
                "bubblewrap to hide them."
            )
        return (
            "Tools are not kept from the files of this machine: neither bubblewrap nor Landlock is at hand. Each has "
            "its own process group, limits and environment, and nothing more. Install bubblewrap before you upload "
            "tools that you do not trust."
        )


@functools.cache
def detect() -> Isolation:
    """What this machine offers; tried once, as bubblewrap may be there and not permitted (as in many containers)."""
    return Isolation(bubblewrap=_working_bubblewrap(), landlock=landlock.version() > 0)


def wrap(
    command: Sequence[str],
    *,
    readable: Iterable[Path],
    writable: Iterable[Path],
    places: Iterable[tuple[Path, Path]] = (),
    network: bool = True,
    capabilities: Iterable[str] = (),
    isolation: Isolation | None = None,
) -> list[str]:
    """The command inside of bubblewrap, where there is one; else unchanged.

    It sees the system's programs and libraries, its own interpreter, and the absolute paths given, each where it
    really stands; each of `places` is a file or directory, and the path at which it is seen, read-only. What is
    readable and does not exist is left out; `writable` must exist. All else is not there: other processes, /home,
    /var, the rest of /etc. /tmp is empty, its own, and ends with it. It ends with the *thread* that started it.
    As root, it keeps the `capabilities` named, else none.
    """
    program = (isolation or detect()).bubblewrap
    if not program:
        return list(command)
    seen = [*((_READABLE, path, path) for path in interpreter_paths(Path(command[0])))]
    seen += [(_READABLE, path, path) for path in readable if not _of_system(path)]
    seen += [("--bind", path, path) for path in writable]
    seen += [("--ro-bind", source, target) for source, target in places]
    return [
        program,
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if network else ("--unshare-net",)),
        *("--die-with-parent", "--new-session", "--hostname", "localhost", "--cap-drop", "ALL"),
        *(word for name in capabilities for word in ("--cap-add", name)),
        *_system(),
        *_bound(seen),
        *("--remount-ro", "/", "--", *command),
    ]


def scrubbed_environment(**more: str) -> dict[str, str]:
    """The environment of a process that is to know nothing of ours."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": os.environ.get("TZ", "UTC"),
        "HOME": str(_TEMPORARY),
    } | more


def interpreter_paths(program: Path) -> tuple[Path, ...]:
    """What a program needs beside the system's: its environment, and the installation that this was made from."""
    found = [program, Path(os.path.realpath(program)), Path(sys.base_prefix)]
    environment = program.parent.parent
    try:
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    else:
        found.append(environment)
    for line in lines:
        key, _equals, value = line.partition("=")
        if key.strip() == "home":
            home = Path(value.strip())
            found += [home.parent, Path(os.path.realpath(home)).parent]
    real = Path(os.path.realpath(program))
    if real.parent.name == "bin" and real.name.startswith("python"):
        found.append(real.parent.parent)
    kept = [path for path in dict.fromkeys(found) if path.is_absolute() and not _of_system(path)]
    return tuple(path for path in kept if path != Path("/"))


def system_paths() -> tuple[Path, ...]:
    """What every tool may read of the system, where it is kept apart by Landlock alone."""
    return (*_SYSTEM, *_SETTINGS)


def _of_system(path: Path) -> bool:
    return any(path.is_relative_to(system) for system in _SYSTEM)


def _system() -> Iterator[str]:
    for path in _SYSTEM:
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.exists():
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--perms", "0755", "--dir", "/etc")
    for path in _SETTINGS:
        yield from ("--ro-bind-try", str(path), str(path))
    for name in ("passwd", "group"):
        yield from ("--ro-bind", str(ETC / name), f"/etc/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    for path, size in ((_SHARED, _SHARED_BYTES), (_TEMPORARY, TEMPORARY_BYTES)):
        yield from ("--perms", "1777", "--size", str(size), "--tmpfs", str(path))


def _bound(seen: Iterable[tuple[str, Path, Path]]) -> Iterator[str]:
    """Outer paths first, so that none hides another. Made directories are open to all: bubblewrap closes them."""
    bound: dict[Path, str] = {}
    for option, source, target in sorted(seen, key=lambda one: len(one[2].parts)):
        around = next((bound[parent] for parent in target.parents if parent in bound), None)
        if around == option == _READABLE or bound.get(target) == option:
            continue  # seen already
        if around is None:
            for parent in reversed(target.parents[:-1]):
                if parent != _TEMPORARY:
                    yield from ("--perms", "0755", "--dir", str(parent))
        yield from (option, str(source), str(target))
        bound[target] = option


def _working_bubblewrap() -> str:
    program = shutil.which("bwrap")
    if program is None:
        return ""
    command = wrap(
        ["/bin/sh", "-c", ":"],
        readable=(),
        writable=(),
        isolation=Isolation(bubblewrap=program, landlock=False),
    )
    try:
        tried = subprocess.run(
            command, env=scrubbed_environment(), timeout=_PATIENCE, check=False, capture_output=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return program if tried.returncode == 0 else ""
