"""Environments are whole or not there; what is installed sees and leaves nothing that it should not."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.tools import isolation
from engine.tools.environment import (
    LOG_KEPT,
    BuildError,
    BuildLog,
    Needs,
    Stage,
    StoppedError,
    Told,
    build,
    keys_in,
    python_in,
    remove,
    sweep,
)
from engine.tools.environments import building
from engine.tools.environments.build_faults import explain
from engine.tools.environments.installers import Installer, base_python
from engine.tools.isolation import Isolation
from engine.tools.runner import Call, End, Program, Runner, Stop
from tests.engine.tools.wheels import hanging_index, index, information, source, wheel

SANDBOXED = pytest.mark.skipif(
    not isolation.detect().bubblewrap, reason="sources are built only in bubblewrap"
)
NO_SANDBOX = Isolation(bubblewrap="", landlock=False)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that is all an installer finds; it holds a small pydantic."""
    folder = tmp_path / "wheels"
    wheel(folder, "pydantic", "2.99")
    configuration = tmp_path / "uv.toml"
    configuration.write_text(f"no-index = true\nfind-links = [{json.dumps(str(folder))}]\n")
    monkeypatch.setenv("UV_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "environments"


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "detect", lambda: NO_SANDBOX)
    monkeypatch.setattr(building, "detect", lambda: NO_SANDBOX)


def built(
    needs: Needs | str,
    root: Path,
    *,
    deadline: float = 60,
    stop: threading.Event | None = None,
    told: Callable[[Told], None] | None = None,
) -> Path:
    needs = Needs(requirements=needs) if isinstance(needs, str) else needs
    return build(
        needs,
        root,
        deadline=deadline,
        stop=stop or threading.Event(),
        told=told or (lambda _told: None),
    )


def refused(needs: Needs | str, root: Path, **options: Any) -> BuildError:
    with pytest.raises(BuildError) as error:
        built(needs, root, **options)
    assert keys_in(root) == set()
    assert not list(root.glob("*.lock"))
    assert nothing_runs_at(root)
    return error.value


def nothing_runs_at(root: Path) -> bool:
    """Whether all whose command line names the folder are gone, or will be in a moment."""
    ends = time.monotonic() + 5
    while _runs_at(root) and time.monotonic() < ends:
        time.sleep(0.05)
    return not _runs_at(root)


def _runs_at(root: Path) -> bool:
    commands = [process.info["cmdline"] or () for process in psutil.process_iter(["cmdline"])]
    return any(str(root) in " ".join(command) for command in commands)


def said_by(python: Path, code: str) -> str:
    command = [str(python), "-I", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


# --- works


def test_what_is_asked_for_can_be_imported_and_is_compiled_and_nothing_else_is_left(
    root: Path, wheels: Path
) -> None:
    wheel(wheels, "studio_greeting", code="def hello(): return 'Hello'")
    told: list[Told] = []
    needs = Needs(requirements="studio-greeting>=1\n")
    python = built(needs, root, told=told.append)
    assert python == root / needs.key / "bin" / "python" == python_in(root, needs.key)
    assert said_by(python, "import studio_greeting; print(studio_greeting.hello())") == "Hello"
    assert list((root / needs.key).rglob("studio_greeting*.pyc"))
    assert {path.name for path in (root / needs.key).iterdir()}.isdisjoint({"files", ".build"})
    assert [stage for stage in Stage if any(each.stage is stage for each in told)] == [
        Stage.CREATING,
        Stage.RESOLVING,
        Stage.INSTALLING,
        Stage.CHECKING,
    ]
    assert any("studio-greeting==1.0" in each.line for each in told)
    assert "with pydantic 2.99" in told[-1].line


def test_tools_that_pin_different_pydantic_versions_both_run(root: Path, tmp_path: Path) -> None:
    """The real ones, from the registry, under the same tool."""
    tool = """
        import json, sys
        import pydantic

        class ToolParameters(pydantic.BaseModel):
            n: int

        print(pydantic.VERSION, ToolParameters(**json.loads(sys.argv[4])).n)
    """
    package = tmp_path / "package"
    package.mkdir()
    (package / "tool.py").write_text(textwrap.dedent(tool))
    runner = Runner(sessions=tmp_path / "sessions", data=tmp_path / "data")
    said = []
    for pinned in ("2.11.*", "2.12.*"):
        program = Program(
            package=package,
            slug="pinned_000001",
            workspace=tmp_path / f"workspace-{pinned[:4]}",
            python=built(f"pydantic=={pinned}", root),
        )
        call = Call(user_params={}, tool_params={"n": "3"}, deadline=30)
        outcome = runner.run(program, call, stop=Stop())
        assert (outcome.end, outcome.code) == (End.EXITED, 0), outcome.stderr
        said.append(outcome.stdout.decode().split())
    runner.close()
    assert [version[:4] for version, _number in said] == ["2.11", "2.12"]
    assert {number for _version, number in said} == {"3"}


def test_files_that_the_requirements_refer_to_are_there_while_they_are_installed(
    root: Path, wheels: Path, tmp_path: Path
) -> None:
    data = wheel(tmp_path / "own", "studio_own").read_bytes()
    for version in ("1.0", "2.0"):
        wheel(wheels, "studio_limited", version)
    files = {
        "more/base.txt": b"-c limits.txt\nstudio_limited\n./own/studio_own-1.0-py3-none-any.whl\n",
        "more/limits.txt": b"studio_limited<2\n",
        "own/studio_own-1.0-py3-none-any.whl": data,
    }
    python = built(Needs(requirements="-r more/base.txt\n", files=files), root)
    names = "import studio_own, studio_limited; print(studio_own.VERSION, studio_limited.VERSION)"
    assert said_by(python, names) == "1.0 1.0"


def test_many_who_ask_at_once_get_one_build(root: Path, wheels: Path) -> None:
    told: list[Told] = []
    pythons: list[Path] = []

    def ask() -> None:
        pythons.append(built("pydantic", root, told=told.append))

    threads = [threading.Thread(target=ask) for _each in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pythons) == 5
    assert len(set(pythons)) == 1
    assert [each.line for each in told if each.stage is Stage.CHECKING and each.line] == [
        told[-1].line
    ]
    assert any(each.stage is Stage.WAITING for each in told)


def test_pip_serves_where_there_is_no_uv(
    root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "installer", lambda: Installer(name="pip", program=base_python()))
    wheel(wheels, "studio_greeting")
    python = built("studio_greeting", root)
    assert said_by(python, "import studio_greeting; print(studio_greeting.VERSION)") == "1.0"
    assert list(python.parent.parent.rglob("studio_greeting*.pyc"))


def test_what_is_ready_is_given_at_once(root: Path, wheels: Path) -> None:
    first = built("pydantic", root)
    told: list[Told] = []
    assert built("Pydantic  # the same", root, told=told.append, deadline=0.2) == first
    assert told == []


def test_it_can_be_removed_and_then_is_built_anew(root: Path, wheels: Path) -> None:
    needs = Needs(requirements="pydantic")
    built(needs, root)
    assert remove(root, needs.key)
    assert python_in(root, needs.key) is None
    assert [path.name for path in root.iterdir()] == [".cache"]
    assert built(needs, root).exists()


# --- cannot be


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        ("studio-absent", "There is no package 'studio-absent'"),
        ("pydantic==1.0", "No version fits 'pydantic==1.0'"),
        (
            "pydantic==2.99\npydantic==1.0",
            "cannot be had together: pydantic==2.99 and pydantic==1.0",
        ),
        ("studio_a\nstudio_b", "cannot be had together: studio-a and studio-b"),
        ("studio_future", "'studio-future==1.0' needs Python >=3.99, and this is Python 3."),
        ("studio_elsewhere", "has no wheel for this machine"),
        (
            f"studio_a==1.0 --hash=sha256:{'1' * 64}",
            "not the one that its hash in requirements.txt promises",
        ),
        (
            "studio_a @ http://127.0.0.1:1/studio_a-1.0-py3-none-any.whl",
            "cannot be reached: http://127.0.0.1:1",
        ),
    ],
)
def test_what_cannot_be_installed_is_said_in_words(
    root: Path, wheels: Path, requirements: str, message: str
) -> None:
    wheel(wheels, "studio_a", requires=["studio_c==1.0"])
    wheel(wheels, "studio_b", requires=["studio_c==2.0"])
    wheel(wheels, "studio_c", "1.0")
    wheel(wheels, "studio_c", "2.0")
    wheel(wheels, "studio_future", python=">=3.99")
    wheel(wheels, "studio_elsewhere", tag="cp27-cp27m-win32")
    error = refused(requirements, root)
    assert message in error.message
    assert error.stage in {Stage.RESOLVING, Stage.INSTALLING}


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        (
            (
                "ERROR: Could not find a version that satisfies the requirement studio-absent (from versions: none)\n"
                "ERROR: No matching distribution found for studio-absent"
            ),
            "There is no package 'studio-absent'",
        ),
        (
            (
                "ERROR: Could not find a version that satisfies the requirement pydantic==1.0 (from versions: 2.99)\n"
                "ERROR: No matching distribution found for pydantic==1.0"
            ),
            "No version fits 'pydantic==1.0'",
        ),
        (
            (
                "ERROR: Cannot install pydantic==1.0 and pydantic==2.99 because these package versions have "
                "conflicting dependencies."
            ),
            "cannot be had together: pydantic==1.0 and pydantic==2.99",
        ),
        (
            "ERROR: Package 'studio-future' requires a different Python: 3.11.7 not in '>=3.99'",
            "'studio-future' needs Python >=3.99",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "The disk is full",
        ),
        (
            "WARNING: Retrying: NewConnectionError('Failed to establish a new connection')",
            "cannot be reached",
        ),
        (
            "error: Something new\n  cause: that nobody foresaw",
            "Installing failed: error: Something new",
        ),
        ("", "Installing failed: it said nothing about why"),
    ],
)
def test_other_words_of_installers_are_understood_too(printed: str, message: str) -> None:
    assert message in explain(printed)


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        ("pydantic => 2", "Line 1 of requirements.txt, 'pydantic => 2': This is not a requirement"),
        (
            "pydantic\n-r /etc/passwd",
            "Line 2 of requirements.txt, '-r /etc/passwd': This leads out",
        ),
        ("-e ../../studio", "This leads out of the package"),
        ("x @ file:///etc/x.whl", "This leads out of the package"),
        ("--find-links /var", "This leads out of the package"),
        ("-c limits.txt", "The package does not hold this"),
        ("x @ https://h.example/${UV_INDEX_URL}", "Variables of the environment are not filled in"),
    ],
)
def test_a_line_that_asks_for_what_is_not_the_packages_is_refused_before_anything_runs(
    root: Path, requirements: str, message: str
) -> None:
    told: list[Told] = []
    assert message in refused(requirements, root, told=told.append).message
    assert told == []


def test_a_build_that_takes_too_long_is_ended(
    root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_CONFIG_FILE")
    with hanging_index() as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        started = time.monotonic()
        error = refused("studio_greeting", root, deadline=1.5)
    assert "took longer than 2 s and was ended while it was at: Resolving" in error.message
    assert time.monotonic() - started < 5


def test_a_build_can_be_stopped(root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_CONFIG_FILE")
    stop = threading.Event()

    def heard(told: Told) -> None:
        if told.stage is Stage.RESOLVING and told.line:
            stop.set()

    with hanging_index() as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        error = refused("studio_greeting", root, stop=stop, told=heard)
    assert isinstance(error, StoppedError)


def test_a_pydantic_that_cannot_be_imported_is_found_out(root: Path, wheels: Path) -> None:
    wheel(wheels, "pydantic", "3.0", code="raise RuntimeError('broken')")
    error = refused("pydantic==3.0", root)
    assert "importing pydantic failed with 'RuntimeError: broken'" in error.message
    assert error.stage is Stage.CHECKING


# --- killed

BUILDER = """
import sys, threading
from pathlib import Path
from engine.tools.environment import Needs, build
build(Needs(requirements="studio_greeting"), Path(sys.argv[1]), deadline=60, stop=threading.Event(), told=print)
"""


UNCONFINED = """
from engine.tools import isolation
from engine.tools.environments import building
building.detect = isolation.detect = lambda: isolation.Isolation(bubblewrap="", landlock=False)
"""


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_builder_that_is_killed_leaves_nothing_that_is_used(
    root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch, sandbox: bool
) -> None:
    monkeypatch.delenv("UV_CONFIG_FILE")
    key = Needs(requirements="studio_greeting").key
    more = "" if sandbox else UNCONFINED
    with hanging_index() as address:
        builder = subprocess.Popen(
            [sys.executable, "-u", "-c", more + BUILDER, str(root)],
            env={**os.environ, "UV_DEFAULT_INDEX": address},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert builder.stdout is not None
        assert any("Resolving" in line for line in builder.stdout)
        time.sleep(0.2)
        assert not remove(root, key)  # it is being built
        assert sweep(root) == 0
        builder.send_signal(signal.SIGKILL)
        builder.wait()
        builder.stdout.close()
        assert (root / key).is_dir()
        assert python_in(root, key) is None
        assert nothing_runs_at(root)
    assert sweep(root) == 1
    assert keys_in(root) == set()
    assert sweep(root) == 0


# --- foreign code

SPY = """
found = {"environment": sorted(os.environ), "values": " ".join(os.environ.values())}
for path in MARKS:
    try:
        found[path] = open(path).read()
    except OSError as error:
        found[path] = type(error).__name__
found["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))
if not os.fork():
    os.setsid()
    os.closerange(0, 100)
    if not os.fork():
        import time
        time.sleep(600)
    os._exit(0)
"""


@SANDBOXED
def test_what_runs_while_it_is_installed_sees_nothing_of_ours_and_does_not_outlive_it(
    root: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "studio.sqlite3"
    database.write_text("customers")
    cache = root / ".cache" / "mark"
    built("pydantic", root)
    cache.write_text("of others")
    ours = {
        "OPENAI_API_KEY": "sk-1",
        "DATABASE_URL": "postgres://u:p@h/d",
        "STUDIO_SECRET_KEY": "s",
    }
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    marks = [str(database), str(cache), "/etc/shadow", f"/proc/{os.getpid()}/environ"]
    source(wheels, "studio_spy", SPY.replace("MARKS", repr(marks)))
    python = built("studio_spy", root)
    text = (next(python.parent.parent.rglob("studio_spy.py"))).read_text()
    seen: dict[str, Any] = json.loads(text.replace("'", '"'))
    assert [seen[mark] for mark in marks] == ["FileNotFoundError"] * 4
    assert not [
        name for name in seen["environment"] if name.startswith(("STUDIO_", "OPENAI_", "DATABASE_"))
    ]
    assert "sk-1" not in seen["values"]
    assert seen["processes"] < 10
    assert nothing_runs_at(root)


@SANDBOXED
def test_a_source_that_fails_is_quoted_with_its_last_words(root: Path, wheels: Path) -> None:
    source(wheels, "studio_broken", "raise SystemExit('libfoo is needed')")
    error = refused("studio_broken", root)
    assert (
        error.message == "'studio-broken==1.0' could not be built from its source: libfoo is needed"
    )


@SANDBOXED
def test_an_editable_requirement_keeps_its_files(root: Path, wheels: Path) -> None:
    files = {
        "own/pyproject.toml": (
            b"[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
            b"[project]\nname = 'studio-own'\nversion = '1.0'\n"
        ),
        "own/backend.py": _EDITABLE.encode(),
        "own/src/studio_own.py": b"VERSION = 'as it lies here'\n",
    }
    needs = Needs(requirements="-e ./own\n", files=files)
    python = built(needs, root)
    assert said_by(python, "import studio_own; print(studio_own.VERSION)") == "as it lies here"
    assert [path.name for path in (root / needs.key / "files").iterdir()] == ["own"]


_EDITABLE = f"""
import os, zipfile

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "studio_own-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        archive.writestr("studio_own.pth", os.path.join(os.getcwd(), "src"))
        for file, text in {information("studio_own")!r}.items():
            archive.writestr("studio_own-1.0.dist-info/" + file, text)
    return name
"""


def test_a_package_that_says_where_the_interpreter_is_is_refused(
    root: Path, wheels: Path, tmp_path: Path
) -> None:
    """A sandbox is laid out by what stands there: it would show the tool another folder."""
    files = {"studio_greedy-1.0.data/data/pyvenv.cfg": f"home = {tmp_path}/bin\n"}
    wheel(wheels, "studio_greedy", files=files)
    assert "files that the environment itself is made of" in refused("studio_greedy", root).message


@SANDBOXED
def test_a_source_that_lays_links_has_nothing_written_where_they_lead(
    root: Path, wheels: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "requirements.txt").write_text("django")
    place = root / Needs(requirements="studio_sly").key
    code = f"os.symlink({str(ours / 'new')!r}, {str(place)!r} + '/.ready.draft')\nfound = 1"
    source(wheels, "studio_sly", code)
    built("studio_sly", root)
    assert [path.name for path in ours.iterdir()] == ["requirements.txt"]
    assert not (place / ".ready").is_symlink()


@pytest.mark.usefixtures("no_sandbox")
def test_without_a_sandbox_wheels_are_installed_and_nothing_runs_code_while_it_is(
    root: Path, wheels: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    source(wheels, "studio_spy", f"found = open({str(mark)!r}, 'w').write('ran')")
    error = refused("studio_spy", root)
    assert "'studio-spy' is not offered as a ready-made wheel" in error.message
    assert "no bubblewrap" in error.message
    own = {"own/pyproject.toml": b"", "own/setup.py": f"open({str(mark)!r}, 'w')".encode()}
    for line in ("-e ./own", "./own", f"studio_spy @ file:{wheels.name}/x.tar.gz"):
        files = {**own, f"{wheels.name}/x.tar.gz": b""}
        assert "no bubblewrap" in refused(Needs(requirements=line, files=files), root).message
    wheel(
        wheels,
        "studio_greeting",
        files={"studio_greeting.pth": f"import os; open({str(mark)!r}, 'w')\n"},
    )
    assert built("studio_greeting", root).exists()
    assert not mark.exists()


# --- secrets

PASSWORD = "hunter2-of-the-index"


def test_the_password_of_an_index_is_used_and_neither_told_nor_stored(
    root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(wheels, "studio_greeting")
    source(wheels, "studio_spy", "found = dict(os.environ)")
    monkeypatch.delenv("UV_CONFIG_FILE")
    told: list[Told] = []
    with index(wheels, PASSWORD) as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:{PASSWORD}@{address}")
        built("studio_greeting", root, told=told.append)
        with pytest.raises(BuildError, match="could read the passwords") as from_source:
            built("studio_spy", root, told=told.append)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:{PASSWORD}-wrong@{address}")
        with pytest.raises(BuildError, match="asks for a name and password") as wrong:
            built("studio_greeting<9", root, told=told.append)
        monkeypatch.delenv("UV_DEFAULT_INDEX")
        own = f"--index-url http://user:{PASSWORD}@{address}\nstudio_greeting"
        built(own, root, told=told.append)
        page = f"http://user:{PASSWORD}@{address.removesuffix('/simple')}"
        direct = f"--index-url {page}/simple\nstudio_greeting @ {page}/studio_greeting-1.0-py3-none-any.whl"
        built(direct, root, told=told.append)
    spoken = [each.line for each in told] + [from_source.value.message, wrong.value.message]
    assert not [line for line in spoken if PASSWORD in line]
    holding = [
        path
        for path in root.rglob("*")
        if path.is_file() and PASSWORD.encode() in path.read_bytes()
    ]
    assert holding == []


# --- limits


def test_the_log_keeps_the_end_of_what_was_told() -> None:
    log = BuildLog()
    for number in range(20_000):
        log.add(Told(stage=Stage.RESOLVING, line=f"line {number} {'x' * 30}"))
    log.add(Told(stage=Stage.INSTALLING))
    assert len(log.text) < LOG_KEPT + 10
    assert log.text.startswith("…\nline 1")
    assert log.text.endswith(f"line 19999 {'x' * 30}")
    assert log.stage == "Installing"


@SANDBOXED
def test_a_source_that_prints_without_end_is_ended_with_little_kept(
    root: Path, wheels: Path
) -> None:
    source(wheels, "studio_loud", "while True: print('x' * 5000 + '\\n' + 'y' * 20_000_000)")
    log = BuildLog()
    assert "took longer than" in refused("studio_loud", root, deadline=3, told=log.add).message
    assert len(log.text) <= LOG_KEPT + 10


def test_an_environment_whose_interpreter_is_gone_is_not_used(root: Path) -> None:
    key = "0" * 64
    (root / key / "bin").mkdir(parents=True)
    (root / key / ".ready").touch()
    (root / key / "bin" / "python").symlink_to("/nowhere/python")
    assert python_in(root, key) is None
    assert sweep(root) == 1


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match="folder of environments cannot be used: Not a directory"):
        built("pydantic", tmp_path / "file" / "environments")


def test_told_values_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Told(stage=Stage.CREATING).line = "other"  # type: ignore[misc]
