"""The process that is the tool: confined first, then `tool.py` as `python tool.py` would run it."""

import atexit
import builtins
import io
import linecache
import math
import os
import resource
import signal
import site
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from engine.sandbox import landlock, system
from engine.sandbox.values import Bounds, Ground, Request, Setup

_ON_PATH = "/usr/local/bin:/usr/bin:/bin"
_FAILED = 3  # the descriptor on which it says why it could not begin

_CPU_MARGIN = 5  # seconds beyond the deadline, for each processor
_VIRTUAL = 16  # times the memory it may take, it may reserve
_NICE = 2  # what watches it goes first, and so does the studio
_MOST_DESCRIPTORS = 1 << 20
_THREADS = 64  # beside its processes
_OF_ALL_CALLS = 2048  # processes, where the kernel counts all of one user's together

# What a plain interpreter has imported before it looks into the directory of its script.
_BEFORE_SCRIPT = frozenset(
    "abc codecs encodings genericpath io os posixpath site stat sys builtins marshal posix time zipimport "
    "_collections_abc _sitebuiltins _frozen_importlib _frozen_importlib_external".split()
)


def become(
    ground: Ground, request: Request, streams: Sequence[int], failed: int, home: str
) -> NoReturn:
    """The life of the tool's process, which is a fork of its supervisor."""
    setup = ground.setup
    code = 70
    try:
        try:
            _take_streams(streams, failed)
            _confine(setup, request, home, alone=ground.own_namespace)
            _surround(setup, request, home)
        except BaseException as error:  # noqa: BLE001 - none of them is the tool's
            os.write(_FAILED, f"it could not be set up: {type(error).__name__}: {error}".encode())
            os._exit(code)
        os.close(_FAILED)
        code = _run_script("tool.py", setup.tool)
    finally:
        os._exit(code & 0xFF)


def _take_streams(streams: Sequence[int], failed: int) -> None:
    os.setsid()
    system.die_with_parent(signal.SIGKILL)
    for target, number in enumerate(streams, start=1):
        os.dup2(number, target)
    os.dup2(failed, _FAILED, inheritable=False)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    os.closerange(_FAILED + 1, _MOST_DESCRIPTORS if most == resource.RLIM_INFINITY else most)


def _confine(setup: Setup, request: Request, home: str, *, alone: bool) -> None:
    system.set_dumpable(True)
    os.nice(_NICE)
    with suppress(OSError):
        # Should the machine itself run out of memory, this goes first.
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    if alone:
        system.own_user_namespace()
        system.drop_capabilities()
    _limit(setup.bounds, request.deadline, counts_alone=alone)
    os.chdir(setup.tool)
    if not setup.landlock:
        system.set_dumpable(False)  # the only thing that keeps other calls of this tool out
        return
    writable = [setup.workspace, home, *setup.devices]
    if request.session:
        writable.append(request.session)
    readable = [*setup.readable, "/proc/self"]
    if request.data:
        readable.append(request.data)
    landlock.restrict(readable=readable, writable=writable, kernel=setup.landlock)


def _limit(bounds: Bounds, deadline: float, *, counts_alone: bool) -> None:
    cpu = math.ceil((deadline + _CPU_MARGIN) * (os.cpu_count() or 1))
    limits = {
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_DATA: bounds.memory + bounds.memory // 2,
        resource.RLIMIT_AS: bounds.memory * _VIRTUAL,
        resource.RLIMIT_NOFILE: bounds.open_files,
        resource.RLIMIT_FSIZE: bounds.disk,
        resource.RLIMIT_CORE: 0,
    }
    alone = bounds.processes + _THREADS
    limits[resource.RLIMIT_NPROC] = alone if counts_alone else max(alone, _OF_ALL_CALLS)
    for kind, limit in limits.items():
        _soft, hard = resource.getrlimit(kind)
        most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (most, most))


def _surround(setup: Setup, request: Request, home: str) -> None:
    """Environment, streams, arguments, modules: as they are where `python tool.py` begins."""
    environment = {
        "PATH": f"{setup.environment}/bin:{_ON_PATH}",
        "VIRTUAL_ENV": setup.environment,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": home,
        "TMPDIR": home,
        "USER": "tool",
        "LOGNAME": "tool",
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TZ": os.environ.get("TZ", "UTC"),
    }
    if request.session:
        environment["SESSION_DIRECTORY"] = request.session
    if request.data:
        environment["WORKFLOW_DATA_DIRECTORY"] = request.data
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # it remembers the host's
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _stream(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2)  # type: ignore[misc]
    arguments = ["--user-params", request.user_params, "--tool-params", request.tool_params]
    sys.argv = ["tool.py", *arguments]
    sys.orig_argv = [sys.executable, *sys.argv]
    site.main()
    sys.path.insert(0, setup.tool)
    _forget_modules(setup.tool)


def _stream(number: int) -> io.TextIOWrapper:
    """Each line is passed on at once: people watch, and what a tool printed before it is killed is known.

    What UTF-8 has no bytes for is written as its escape.
    """
    return open(
        number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def _forget_modules(tool: str) -> None:
    """Ours, and those of the library that the tool has a module of its own for, which a plain run would find first."""
    own = {Path(entry.name).stem for entry in os.scandir(tool)} - _BEFORE_SCRIPT
    for name in list(sys.modules):
        top = name.partition(".")[0]
        if top == "engine" or (top in own and top not in sys.builtin_module_names):
            del sys.modules[name]


def _run_script(name: str, directory: str) -> int:
    """Its exit code. As the interpreter itself would do, but for what it tidies up of its own before it is gone.

    Not by `runpy`, which takes the module `__main__` away when its last line was reached, although threads
    and functions called at the exit may still need it.
    """
    path = str(Path(directory) / name)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    try:
        code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        linecache.checkcache(path)
        exec(code, main.__dict__)  # noqa: S102 - this is what it is for
        ended = 0
    except BaseException as error:  # noqa: BLE001 - as the interpreter does
        ended = _code_of(error)
    return _finish(ended)


def _code_of(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return _exit_code(error.code)
    _show(error)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _exit_code(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    with suppress(Exception):  # its text cannot be written; the code tells
        sys.stderr.write(f"{code}\n")
    return 1


def _show(error: BaseException) -> None:
    """The traceback, from the first line that is the tool's."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except BaseException:  # noqa: BLE001 - a hook of the tool's that fails itself
        sys.__excepthook__(type(error), error, trace)


def _finish(code: int) -> int:
    """Threads that are not daemons are waited for, then what was registered for the exit is called."""
    for last in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]  # noqa: SLF001
        try:
            last()
        except BaseException as error:  # noqa: BLE001 - told, as the interpreter does
            _show(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = code or 120
    return code
