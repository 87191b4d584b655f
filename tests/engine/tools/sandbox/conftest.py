"""Tools of a few lines each, run by a real Runner."""

import contextlib
import os
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.tools.isolation import Isolation, detect
from engine.tools.runner import Call, Limits, Outcome, Program, Runner, Stop

LIMITS = Limits(
    memory=256 << 20, processes=16, disk=16 << 20, new_files=200, output=1 << 20, open_files=256
)


class Bench:
    """A runner, and the tools it runs; each has `var/` with the studio's database beside."""

    def __init__(self, root: Path, isolation: Isolation) -> None:
        self.root = root
        self.isolation = isolation
        self.var = root / "var"
        self.var.mkdir()
        self.database = self.var / "studio.sqlite3"
        self.database.write_text("MARKER-OF-DATABASE")
        self.database.chmod(0o644)  # it is not the mode that protects it
        self.runner = self.make_runner()
        self._made = 0

    def make_runner(self, **options: Any) -> Runner:
        tools = self.var / "tools"
        options = {"limits": LIMITS, "isolation": self.isolation} | options
        return Runner(sessions=tools / "sessions", data=tools / "data", **options)

    def tool(self, source: str, files: dict[str, str] | None = None) -> Program:
        self._made += 1
        package = self.var / "tools" / "packages" / f"p{self._made}"
        for name, text in {"tool.py": source, **(files or {})}.items():
            path = package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        return Program(
            package=package,
            slug=f"tool_{self._made:06}",
            workspace=self.var / "tools" / "workspaces" / str(self._made),
            python=Path(sys.executable),
        )

    def session(self, name: str = "s1") -> Path:
        return self.runner.sessions / name

    def run(
        self,
        program: Program | str,
        *,
        deadline: float = 20.0,
        session: str = "s1",
        stop: Stop | None = None,
        on_output: Callable[[bytes], None] | None = None,
        user: dict[str, Any] | None = None,
        tool: dict[str, Any] | None = None,
        data: Path | None = None,
    ) -> Outcome:
        if isinstance(program, str):
            program = self.tool(program)
        call = Call(
            user_params=user or {},
            tool_params=tool or {},
            deadline=deadline,
            session_directory=self.session(session),
            data_directory=data,
        )
        return self.runner.run(program, call, stop=stop or Stop(), on_output=on_output)

    def start(self, program: Program) -> None:
        """Have its process warm; it is stopped at its first word."""
        stop = Stop()
        self.run(program, stop=stop, on_output=lambda _piece: stop.request())

    def hosts(self) -> list[Any]:
        warm = self.runner._warm
        entries = [*warm._entries.values(), *warm._retired]
        return [entry.host for entry in entries if entry.host is not None]

    def survivors(self, patience: float = 1.0) -> dict[int, str]:
        """Processes of this runner's tools, but for the warm ones; those who watched have a moment to leave."""
        return settled(self._survivors, patience)

    def _survivors(self) -> dict[int, str]:
        hosts = self.hosts()
        needles = [host._mark.encode() for host in hosts]
        own = {host._process.pid for host in hosts}
        if self.isolation.bubblewrap:
            own |= {child for pid in own for child in children(pid)}
            own |= {child for pid in own for child in children(pid)}
        return {
            pid: command
            for pid, command in marked(needles).items()
            if pid not in own and pid != os.getpid()
        }


def settled(look: Callable[[], dict[int, str]], patience: float = 1.0) -> dict[int, str]:
    """What is seen when nothing is, or patience (seconds) has run out."""
    ends = time.monotonic() + patience
    while (found := look()) and time.monotonic() < ends:
        time.sleep(0.01)
    return found


def marked(needles: list[bytes]) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not entry.name.isdigit():
                continue
            environment = (entry / "environ").read_bytes()
            if any(needle in environment for needle in needles):
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


def children(pid: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if entry.name.isdigit() and parent == pid:
                found.add(int(entry.name))
    return found


FULL = detect()
LANDLOCK = Isolation(bubblewrap="", landlock=FULL.landlock)
NOTHING = Isolation(bubblewrap="", landlock=False)


def _bench(root: Path, isolation: Isolation) -> Iterator[Bench]:
    bench = Bench(root, isolation)
    try:
        yield bench
        assert bench.survivors() == {}
        left = [path for host in bench.hosts() for path in Path("/tmp").glob(f"{host._mark}-*/*")]
        assert left == []
    finally:
        hosts = bench.hosts()
        bench.runner.close()
    needles = [host._mark.encode() for host in hosts]
    assert settled(lambda: marked(needles)) == {}
    assert [path for host in hosts for path in Path("/tmp").glob(f"{host._mark}*")] == []


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """As apart as this machine allows. Nothing may be left of a call, nor of the runner."""
    yield from _bench(tmp_path, FULL)


@pytest.fixture
def far_bench() -> Iterator[Bench]:
    """With all its directories outside of /tmp, which then is open to tools: their own, inside of bubblewrap."""
    if not FULL.bubblewrap:
        pytest.skip("without bubblewrap /tmp is the machine's, and closed to tools")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        root = Path(directory)
        root.chmod(0o755)
        yield from _bench(root, FULL)


@pytest.fixture(
    params=[
        pytest.param(FULL, id="all"),
        pytest.param(LANDLOCK, id="landlock"),
        pytest.param(NOTHING, id="nothing"),
    ]
)
def any_bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The same with what less a machine may offer."""
    yield from _bench(tmp_path, request.param)


@pytest.fixture(params=[pytest.param(FULL, id="all"), pytest.param(LANDLOCK, id="landlock")])
def apart_bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Where files are kept from tools."""
    if not (request.param.landlock or request.param.bubblewrap):
        pytest.skip("neither bubblewrap nor Landlock is at hand")
    yield from _bench(tmp_path, request.param)
