"""Warm processes: shared, replaced, few, and gone with whoever started them."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engine.tools.runner import End, Program
from tests.engine.tools.sandbox.conftest import FULL, LANDLOCK, Bench, marked, settled

ECHO = "import json, sys\nprint(json.loads(sys.argv[4])['n'])"


def pid_of(bench: Bench) -> int:
    (host,) = bench.hosts()
    assert host._process is not None
    return int(host._process.pid)


def inner_process(pid: int) -> psutil.Process:
    """The Python inside, below bubblewrap where there is one."""
    process = psutil.Process(pid)
    while process.name() == "bwrap":
        (process,) = process.children()
    return process


def test_many_calls_leave_the_process_as_it_was(bench: Bench) -> None:
    program = bench.tool(ECHO)
    for number in range(20):
        bench.run(program, tool={"n": number})
    host = inner_process(pid_of(bench))
    memory, descriptors = host.memory_info().rss, host.num_fds()
    ours = psutil.Process().num_fds()

    for number in range(200):
        assert bench.run(program, tool={"n": number}).stdout == b"%d\n" % number

    assert inner_process(pid_of(bench)).pid == host.pid
    assert host.memory_info().rss < memory + (2 << 20)
    assert host.num_fds() == descriptors
    assert psutil.Process().num_fds() == ours


def test_sixteen_calls_at_once_share_one_process(any_bench: Bench) -> None:
    program = any_bench.tool("import time\ntime.sleep(0.3)\n" + ECHO)

    with ThreadPoolExecutor(16) as pool:
        ended = list(
            pool.map(lambda n: any_bench.run(program, tool={"n": n}, session=f"s{n}"), range(16))
        )

    assert [one.stdout for one in ended] == [b"%d\n" % n for n in range(16)]
    assert len(any_bench.hosts()) == 1


def test_many_tools_keep_few_processes(bench: Bench) -> None:
    bench.runner.close()
    bench.runner = bench.make_runner(most_warm=2)
    programs = [bench.tool(ECHO) for _ in range(4)]

    for number, program in enumerate(programs):
        assert bench.run(program, tool={"n": number}).end is End.EXITED

    assert [host.program for host in bench.hosts()] == programs[2:]


def test_an_idle_process_ends(bench: Bench) -> None:
    bench.runner.close()
    bench.runner = bench.make_runner(idle=0.2)
    bench.run(bench.tool(ECHO), tool={"n": 1})
    (host,) = bench.hosts()

    until(lambda: host._process is not None and host._process.returncode is not None)
    assert bench.hosts() == []


def test_a_forgotten_tool_is_ended_when_its_call_is_done(bench: Bench) -> None:
    program = bench.tool("import time\nprint('go')\ntime.sleep(0.3)\nprint('done')")
    pids: list[int] = []

    def forget(_piece: bytes) -> None:
        if not pids:
            pids.append(pid_of(bench))
            bench.runner.forget(program)

    ended = bench.run(program, on_output=forget)

    assert ended.stdout == b"go\ndone\n"
    assert bench.hosts() == []
    assert not psutil.pid_exists(pids[0])


def test_a_process_that_was_killed_is_replaced_unnoticed(any_bench: Bench) -> None:
    program = any_bench.tool(ECHO)
    any_bench.run(program, tool={"n": 1})
    before = pid_of(any_bench)
    inner_process(before).kill()

    ended = any_bench.run(program, tool={"n": 2})

    assert (ended.end, ended.stdout) == (End.EXITED, b"2\n")
    assert pid_of(any_bench) != before


def test_a_call_whose_process_is_killed_is_lost_and_leaves_nothing(any_bench: Bench) -> None:
    source = """
    import subprocess, time
    subprocess.Popen(["sleep", "98763"], start_new_session=True)
    print("go")
    time.sleep(60)
    """

    def kill(_piece: bytes) -> None:
        inner_process(pid_of(any_bench)).kill()

    ended = any_bench.run(source, on_output=kill)

    assert ended.end in (End.LOST, End.STOPPED)
    assert ended.end is End.LOST
    assert any_bench.survivors() == {}


def test_changed_files_are_run_by_a_new_process(bench: Bench) -> None:
    program = bench.tool("print('old')")
    assert bench.run(program).stdout == b"old\n"

    (program.package / "tool.py").unlink()
    (program.package / "tool.py").write_text("print('new')")

    assert bench.run(program).stdout == b"new\n"


def test_closing_ends_what_runs(bench: Bench) -> None:
    program = bench.tool("import time\nprint('go')\ntime.sleep(60)")

    ended = bench.run(program, on_output=lambda _piece: bench.runner.close())

    assert ended.end in (End.LOST, End.STOPPED)
    assert bench.run(program).end is End.NOT_STARTED


def test_closing_while_tools_start_leaves_none(bench: Bench) -> None:
    programs = [bench.tool(ECHO) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(bench.run, program, tool={"n": 1}) for program in programs]
        time.sleep(0.05)
        hosts = bench.hosts()
        bench.runner.close()
        ends = {call.result(10).end for call in calls}

    assert ends <= {End.NOT_STARTED, End.LOST, End.STOPPED}
    needles = [host._mark.encode() for host in (*hosts, *bench.hosts())]
    assert settled(lambda: marked(needles)) == {}


def test_a_dependency_that_misbehaves_when_it_is_imported_harms_nothing(bench: Bench) -> None:
    """pydantic is imported ahead of calls; an environment may bring anything by that name."""
    environment = bench.root / "environment"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", environment], check=True, cwd="/"
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "pydantic.py").write_text(
        "import os\nif os.fork() == 0:\n    import time\n    time.sleep(60)\n"
        "held = [bytearray(1 << 30) for _ in range(9)]\n"
    )
    program = replace(bench.tool(ECHO), python=environment / "bin" / "python")

    assert bench.run(program, tool={"n": 7}).stdout == b"7\n"
    assert bench.survivors() == {}


CALLER = """
import sys, threading
from pathlib import Path
from engine.tools.isolation import Isolation
from engine.tools.runner import *

root = Path(sys.argv[1])
isolation = Isolation(bubblewrap=sys.argv[2], landlock=True)
runner = Runner(sessions=root / "s", data=root / "d", isolation=isolation)
program = Program(package=root / "p", slug="t_000001", workspace=root / "w", python=Path(sys.executable))
def told(piece):
    (host,) = [e.host for e in runner._warm._entries.values()]
    print(host._mark, flush=True)
call = Call(user_params={}, tool_params={}, deadline=100)
if sys.argv[3] == "exit":
    threading.Thread(target=runner.run, args=(program, call),
                     kwargs={"stop": Stop(), "on_output": told}, daemon=True).start()
    sys.stdin.readline()
    sys.exit()
runner.run(program, call, stop=Stop(), on_output=told)
"""


@pytest.mark.parametrize("isolation", [FULL, LANDLOCK], ids=["all", "landlock"])
@pytest.mark.parametrize("way", ["kill", "exit"])
def test_the_end_of_the_caller_is_the_end_of_all(
    tmp_path: Path, isolation: object, way: str
) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "tool.py").write_text(
        "import subprocess, time, os\n"
        "subprocess.Popen(['sleep', '98762'], start_new_session=True)\n"
        "if os.fork() == 0: os.setsid()\n"
        "else: print('go')\n"
        "time.sleep(60)\n"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, tmp_path, isolation.bubblewrap, way],  # type: ignore[attr-defined]
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4],
    )
    assert caller.stdin is not None
    assert caller.stdout is not None
    with caller:
        mark = caller.stdout.readline().strip()
        assert mark.startswith(b"tool-host-")
        assert len(marked([mark])) >= 4
        if way == "kill":
            caller.send_signal(signal.SIGKILL)
        else:
            caller.stdin.close()
        caller.wait(10)

        assert settled(lambda: marked([mark]), 5.0) == {}
    assert list(Path("/tmp").glob(mark.decode() + "*")) == []


def test_a_forked_copy_of_the_studio_starts_anew(bench: Bench) -> None:
    program = bench.tool(ECHO)
    bench.run(program, tool={"n": 1})
    before = pid_of(bench)

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of forks beside threads: that is the case meant
        child = os.fork()
    if child == 0:
        code = 1
        try:
            fine = bench.run(program, tool={"n": 2}).stdout == b"2\n" and pid_of(bench) != before
            bench.runner.close()
            code = 0 if fine else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0

    assert bench.run(program, tool={"n": 3}).stdout == b"3\n"
    assert pid_of(bench) == before


def test_callers_in_short_lived_threads_share_the_process(bench: Bench) -> None:
    """It would end with the thread that started it, if that were the caller's."""
    program = bench.tool(ECHO)
    pids = []
    for number in range(3):
        thread = threading.Thread(target=bench.run, args=(program,), kwargs={"tool": {"n": number}})
        thread.start()
        thread.join()
        time.sleep(0.05)
        pids.append(pid_of(bench))

    assert len(set(pids)) == 1


def test_a_start_that_took_too_long_for_one_is_there_for_the_next(bench: Bench) -> None:
    program: Program = bench.tool(ECHO)

    first = bench.run(program, tool={"n": 1}, deadline=0.001)
    second = bench.run(program, tool={"n": 2})

    assert (first.end, first.note) == (End.NOT_STARTED, "there was no time left to start it")
    assert second.stdout == b"2\n"


def until(what: Callable[[], bool], patience: float = 5.0) -> None:
    ends = time.monotonic() + patience
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.02)
