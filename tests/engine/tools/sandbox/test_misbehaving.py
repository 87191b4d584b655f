"""Tools that misbehave end as what they did, and leave nothing behind (that, `_bench` looks for after each test)."""

import os
import threading
import time
from pathlib import Path

import pytest

from engine.tools.runner import End, Outcome, Stop
from tests.engine.tools.sandbox.conftest import LIMITS, Bench

FORKS = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""

DAEMON = """
import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        subprocess.Popen(["sleep", "98765"], start_new_session=True)
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
time.sleep(0.1)
print("done")
"""

CHILDREN_EAT = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(60 << 20)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(60)
time.sleep(60)
"""

IGNORES = """
import os, signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
if os.fork() == 0:
    os.setpgid(0, 0)
else:
    print("deaf", flush=True)
while True:
    time.sleep(1)
"""


def test_one_that_forks_without_end(any_bench: Bench) -> None:
    ended = any_bench.run(FORKS)

    assert (ended.end, ended.note) == (End.PROCESSES, "it had more than 16 at a time")
    assert any_bench.run("print(1)").stdout == b"1\n"


def test_one_that_leaves_daemons(any_bench: Bench) -> None:
    program = any_bench.tool(DAEMON)

    ended = any_bench.run(program)

    assert (ended.end, ended.code, ended.stdout) == (End.EXITED, 0, b"done\n")
    assert any_bench.survivors() == {}
    assert ended.duration_ms < 3000


def test_one_that_asks_for_all_memory_at_once(bench: Bench) -> None:
    ended = bench.run("held = bytearray(10 ** 10)")

    assert (ended.end, ended.code) == (End.EXITED, 1)
    assert ended.stderr.endswith(b"MemoryError\n")


@pytest.mark.parametrize("step", ["1 << 20", "64 << 20"])
def test_one_that_eats_memory_piece_by_piece(bench: Bench, step: str) -> None:
    source = f"""
    import time
    held = []
    try:
        while True:
            held.append(b"x" * ({step}))
            time.sleep(0.0005)
    except MemoryError:
        time.sleep(60)
    """
    ended = bench.run(source)

    assert (ended.end, ended.note) == (End.MEMORY, "it took more than 256 MiB")


def test_one_whose_children_eat_memory(any_bench: Bench) -> None:
    assert any_bench.run(CHILDREN_EAT).end is End.MEMORY


def test_memory_shared_with_children_counts_once(bench: Bench) -> None:
    source = """
    import os, time
    held = bytearray(100 << 20)
    held[::4096] = b"x" * len(held[::4096])
    for _ in range(5):
        if os.fork() == 0:
            time.sleep(0.4)
            os._exit(0)
    for _ in range(5):
        os.wait()
    print("done")
    """
    assert bench.run(source).stdout == b"done\n"


def test_one_that_writes_one_large_file(any_bench: Bench) -> None:
    source = """
    with open("large", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
    """
    ended = any_bench.run(source)

    # One file may not grow beyond what a call may write: the tool itself is told.
    assert ended.end in (End.EXITED, End.DISK)
    assert ended.code != 0
    assert ended.end is End.DISK or b"File too large" in ended.stderr


def test_one_that_fills_the_disk_with_files(any_bench: Bench) -> None:
    source = """
    import itertools, os, pathlib
    kept = pathlib.Path("kept")
    if not kept.exists():
        kept.write_bytes(b"k" * 4096)
    else:
        for number in itertools.count():
            folder = pathlib.Path(os.environ["SESSION_DIRECTORY"] if number % 2 else ".") / "many"
            folder.mkdir(exist_ok=True)
            (folder / str(number)).write_bytes(os.urandom(1 << 20))
    """
    program = any_bench.tool(source)
    assert any_bench.run(program).end is End.EXITED
    time.sleep(0.05)

    ended = any_bench.run(program)

    assert (ended.end, ended.note) == (End.DISK, "it wrote more than 16 MiB")
    assert list(any_bench.session().iterdir()) == []
    assert sorted(path.name for path in program.directory.iterdir()) == ["kept", "tool.py"]


def test_one_that_makes_files_without_end(bench: Bench) -> None:
    source = """
    import itertools
    for number in itertools.count():
        open(f"f{number}", "w").close()
    """
    program = bench.tool(source)

    ended = bench.run(program)

    assert (ended.end, ended.note) == (End.DISK, "it made more than 200 files")
    assert [path.name for path in program.directory.iterdir()] == ["tool.py"]


def test_one_that_fills_the_memory_behind_tmp(far_bench: Bench) -> None:
    source = """
    import itertools
    for number in itertools.count():
        with open(f"/tmp/f{number}", "wb") as file:
            file.write(b"x" * (8 << 20))
    """
    program = far_bench.tool(source)

    ended = far_bench.run(program)

    assert (ended.end, ended.note) == (End.DISK, "it wrote more than 16 MiB")


@pytest.mark.parametrize(
    "work",
    [
        "os.write(os.memfd_create('m'), b'x' * (8 << 20))",
        "libc.memset(libc.shmat(libc.shmget(0, 8 << 20, 0o1600), None, 0), 1, 8 << 20)",
        "m = mmap.mmap(-1, 8 << 20)\n        m.write(b'x' * (8 << 20))\n        held.append(m)",
    ],
    ids=["files in memory", "segments", "shared"],
)
def test_one_that_fills_memory_that_is_nobodys(bench: Bench, work: str) -> None:
    source = f"""
    import ctypes, mmap, os, time
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_int
    libc.memset.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    held = []
    for _ in range(60):
        {work}
        time.sleep(0.01)
    time.sleep(60)
    """
    program = bench.tool(source)

    ended = bench.run(program)

    assert (ended.end, ended.note) == (End.MEMORY, "it took more than 256 MiB")
    assert bench.run(program).end is End.MEMORY


def test_what_it_leaves_in_tmp_is_gone_for_the_next(far_bench: Bench) -> None:
    source = """
    import os, tempfile
    print([name for name in os.listdir("/tmp") if name == "folder"])
    os.makedirs("/tmp/folder/inner")
    open("/tmp/folder/file", "w").close()
    os.chmod("/tmp/folder", 0)
    """
    program = far_bench.tool(source)

    for _ in range(2):
        assert far_bench.run(program).stdout == b"[]\n"


@pytest.mark.parametrize(
    "source",
    [
        "while True: print('on and on')",
        "import sys\nsys.stdout.write('x' * (100 << 20))",
        "import sys\nwhile True: sys.stderr.buffer.write(b'y' * 65536)",
        "import os\nwhile True:\n    os.write(1, b'z')",
    ],
    ids=["for ever", "at once", "on stderr", "byte by byte"],
)
def test_one_that_prints_too_much(any_bench: Bench, source: str) -> None:
    ended = any_bench.run(source)

    assert (ended.end, ended.note) == (End.OUTPUT, "it printed more than 1024 KiB")
    assert len(ended.stdout) + len(ended.stderr) == LIMITS.output


def test_one_that_ignores_all_signals_ends_at_its_deadline(any_bench: Bench) -> None:
    program = any_bench.tool(IGNORES)
    any_bench.start(program)

    began = time.monotonic()
    ended = any_bench.run(program, deadline=0.5)

    assert (ended.end, ended.stdout) == (End.TIMEOUT, b"deaf\n")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "source",
    [
        "import os, signal\nprint('so', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)",
        "print('so')\nwhile True: pass",
        "import time, threading\nthreading.Thread(target=time.sleep, args=(99,)).start()\nprint('so')",
        "import atexit, time\natexit.register(time.sleep, 99)\nprint('so')",
        "import os\nprint('so', flush=True)\nos.closerange(0, 99)\nwhile True: pass",
    ],
    ids=["stops itself", "spins", "threads go on", "lingers at the exit", "closes all"],
)
def test_one_that_does_not_end(bench: Bench, source: str) -> None:
    program = bench.tool(source)
    bench.start(program)

    ended = bench.run(program, deadline=0.4)

    assert (ended.end, ended.stdout) == (End.TIMEOUT, b"so\n")
    assert ended.duration_ms < 2000


@pytest.mark.parametrize("when", ["before", "while"])
def test_one_that_is_stopped(any_bench: Bench, when: str) -> None:
    program = any_bench.tool("import time\nprint('go')\ntime.sleep(60)")
    stop = Stop()

    def end(_piece: bytes) -> None:
        threading.Timer(0.05, stop.request).start()

    if when == "before":
        stop.request()
    began = time.monotonic()
    ended = any_bench.run(program, stop=stop, on_output=end)

    assert ended.end is End.STOPPED
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import ctypes\nctypes.string_at(0)", -11),
        ("import os\nos.abort()", -6),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9),
        ("import os, signal\nos.killpg(0, signal.SIGTERM)", -15),
    ],
    ids=["segfault", "abort", "kill", "group"],
)
def test_one_that_crashes(bench: Bench, source: str, code: int) -> None:
    ended = bench.run(source)

    assert (ended.end, ended.code) == (End.SIGNAL, code)
    assert ended.note.startswith(f"signal {-code}: ")


def test_one_that_kills_all_it_can(any_bench: Bench) -> None:
    source = """
    import os, signal
    for pid in (os.getppid(), -1):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as error:
            print(type(error).__name__)
    """
    if not (any_bench.isolation.bubblewrap or any_bench.isolation.landlock):
        # Run by root, it would end all of this machine.
        source = source.replace("(os.getppid(), -1)", "(os.getppid(),)")
    program = any_bench.tool(source)

    ended = any_bench.run(program)

    assert ended.end in (End.EXITED, End.LOST)
    assert any_bench.survivors() == {}
    assert any_bench.run(program).end is ended.end  # with a new process, where the old one was lost
    if any_bench.isolation.landlock:
        assert ended.stdout.startswith(b"PermissionError\n")
        assert ended.end is End.EXITED


def test_a_call_beside_one_that_misbehaves_goes_on(bench: Bench) -> None:
    source = """
    import json, os, sys, time
    if json.loads(sys.argv[4])["bad"]:
        while True:
            try: os.fork()
            except OSError: pass
    import threading
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(0.02,)).start()
        time.sleep(0.02)
    print("well")
    """
    program = bench.tool(source)
    bench.run(program, tool={"bad": True})
    ends: dict[bool, Outcome] = {}

    def call(bad: bool) -> None:
        ends[bad] = bench.run(program, tool={"bad": bad}, session=f"s{bad}")

    threads = [threading.Thread(target=call, args=(bad,)) for bad in (False, True)]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()

    assert ends[True].end is End.PROCESSES
    assert (ends[False].end, ends[False].stdout, ends[False].stderr) == (End.EXITED, b"well\n", b"")


def test_its_environment_gone_it_is_not_started_and_says_so(bench: Bench) -> None:
    program = bench.tool("print(1)")
    python = bench.root / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(program.python)
    program = type(program)(
        package=program.package, slug=program.slug, workspace=program.workspace, python=python
    )
    assert bench.run(program).end is End.EXITED

    python.unlink()
    ended = bench.run(program)

    assert ended.end is End.NOT_STARTED
    assert f"there is no {str(python)!r}" in ended.note


def test_a_workspace_in_disorder_is_put_in_order(bench: Bench) -> None:
    program = bench.tool("print(1)")
    assert bench.run(program).end is End.EXITED
    before = {host.program for host in bench.hosts()}
    program.directory.parent.rename(program.workspace / "away")

    ended = bench.run(program)

    assert (ended.end, ended.stdout) == (End.EXITED, b"1\n")
    assert {host.program for host in bench.hosts()} == before


def test_its_files_gone_it_is_not_started_and_says_so(bench: Bench) -> None:
    program = bench.tool("print(1)")
    assert bench.run(program).end is End.EXITED

    Path(program.package / "tool.py").unlink()

    assert "its files are gone" in bench.run(program).note


def test_a_python_that_does_not_start_says_why(bench: Bench) -> None:
    program = bench.tool("print(1)")
    python = bench.root / "python"
    python.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    python.chmod(0o755)
    program = type(program)(
        package=program.package, slug=program.slug, workspace=program.workspace, python=python
    )

    ended = bench.run(program)

    assert (ended.end, ended.note) == (
        End.NOT_STARTED,
        "its Python did not start: no such luck",
    )


def test_a_directory_elsewhere_is_refused(bench: Bench) -> None:
    program = bench.tool("print(1)")
    for session in ("../../elsewhere", f"..{os.sep}"):
        with pytest.raises(ValueError):
            bench.run(program, session=session)
