"""What surrounds a command, and what is said of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.tools.isolation import Isolation, detect, interpreter_paths, scrubbed_environment, wrap
from tests.engine.tools.sandbox.conftest import FULL, NOTHING

ROOT = Path(__file__).parents[4]


def run(source: str, **options: object) -> str:
    command = wrap(
        [sys.executable, "-c", source],
        **({"readable": [], "writable": []} | options),  # type: ignore[arg-type]
    )
    done = subprocess.run(
        command, env=scrubbed_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_bubblewrap_a_command_stays_as_it_is() -> None:
    assert wrap(["x", "y"], readable=[], writable=[], isolation=NOTHING) == ["x", "y"]


def test_each_machine_is_told_what_it_lacks() -> None:
    def sentence(bubblewrap: str, landlock: bool) -> str:
        return Isolation(bubblewrap=bubblewrap, landlock=landlock).sentence

    sentences = [sentence(path, there) for path in ("/bin/bwrap", "") for there in (True, False)]
    assert len(set(sentences)) == 4
    assert "not kept from the files" in sentence("", False)
    assert all("Install bubblewrap" in sentence("", landlock) for landlock in (True, False))
    assert "no Landlock" in sentence("/usr/bin/bwrap", False)


def test_a_bubblewrap_that_does_not_work_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    detect.cache_clear()
    try:
        assert detect().bubblewrap == ""
    finally:
        detect.cache_clear()


def test_the_environment_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_SECRET_KEY", "x")

    assert set(scrubbed_environment(MORE="1")) == {"PATH", "LANG", "TZ", "HOME", "MORE"}


def test_an_environment_brings_the_installation_it_was_made_from() -> None:
    found = interpreter_paths(Path(sys.executable))

    assert Path(sys.prefix) in found
    for path in (Path(sys.base_prefix), Path(os.path.realpath(sys.executable))):
        assert any(path.is_relative_to(one) for one in (*found, Path("/usr"), Path("/bin")))


@pytest.mark.skipif(not FULL.bubblewrap, reason="bubblewrap is not at hand")
class TestWithBubblewrap:
    def test_only_what_is_named_is_there(self, tmp_path: Path) -> None:
        for name in ("seen", "changed", "hidden", "source"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text(name)
        place = tmp_path / "changed" / "placed"
        place.mkdir()
        source = f"""
import os, pathlib
root = pathlib.Path({str(tmp_path)!r})
print(sorted(os.listdir(root)), (root / "changed/placed/file").read_text())
for path in ("seen/file", "changed/file", "changed/placed/file"):
    try:
        (root / path).write_text("new")
        print(path)
    except OSError as error:
        print(error.strerror)
"""
        lines = run(
            source,
            readable=[tmp_path / "seen", tmp_path / "not-there"],
            writable=[tmp_path / "changed"],
            places=[(tmp_path / "source", place)],
        ).splitlines()

        assert lines == [
            "['changed', 'seen'] source",
            "Read-only file system",
            "changed/file",
            "Read-only file system",
        ]

    def test_no_other_process_is_seen(self) -> None:
        source = "import os; print([n for n in os.listdir('/proc') if n.isdigit()])"

        assert run(source) == "['1', '2']"

    def test_names_are_resolved_and_certificates_found(self) -> None:
        source = """
import getpass, os, socket, ssl
print(bool(socket.gethostbyname(socket.gethostname())), os.path.exists("/etc/resolv.conf"),
      len(ssl.create_default_context().get_ca_certs()) > 0 or not os.path.exists("/etc/ssl/certs"))
"""
        found = run(source).split()

        assert found[:2] == ["True", str(Path("/etc/resolv.conf").exists())]

    def test_the_network_can_be_left_out(self) -> None:
        source = "import socket; print([name for _number, name in socket.if_nameindex()])"

        assert run(source, network=False) == "['lo']"

    def test_the_root_is_closed_and_capabilities_are_gone(self) -> None:
        source = """
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
try:
    open("/new", "w")
except OSError as error:
    print(error.strerror)
print(int(status["CapEff"], 16))
"""
        assert run(source).splitlines() == ["Read-only file system", "0"]


OTHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from engine.tools.runner import *

root = Path(sys.argv[2])
runner = Runner(sessions=root / "s", data=root / "d", limits=Limits(processes=16, memory=256 << 20))
program = Program(package=root / "p", slug="t_000001", workspace=root / "w", python=Path(sys.executable))
for what in ("write", "escape", "fork", "eat", "kill", "write"):
    call = Call(user_params={}, tool_params={"what": what}, deadline=10,
                session_directory=root / "s" / "one")
    ended = runner.run(program, call, stop=Stop())
    print(what, ended.end, ended.stdout.decode().split(), ended.stderr.decode()[-200:])
runner.close()
"""
TOOL = """
import json, os, signal, sys
what = json.loads(sys.argv[4])["what"]
if what == "write":
    open("note", "a").write("n")
    print(open("note").read())
if what == "escape":
    for path in ("../../../secret", "tool.py", "../../../p/tool.py"):
        try:
            open(path, "r+").read()
            print("reached")
        except OSError:
            print("kept")
if what == "fork":
    while True:
        try: os.fork()
        except OSError: pass
if what == "eat":
    held = []
    while True:
        held.append(b"x" * (1 << 20))
if what == "kill":
    try: os.kill(os.getppid(), signal.SIGKILL)
    except OSError: print("kept")
"""


def test_a_studio_that_is_not_root_keeps_tools_apart_as_well(tmp_path: Path) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.geteuid() != 0 or python is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, setpriv, and a Python that all may run")
    place = Path("/var/tmp") / tmp_path.parent.name / tmp_path.name
    (place / "p").mkdir(parents=True)
    try:
        (place / "p" / "tool.py").write_text(TOOL)
        (place / "secret").write_text("secret")
        for path in (place, place / "p", place / "p" / "tool.py", place / "secret"):
            os.chown(path, 65534, 65534)
        others = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        tried = subprocess.run([*others, python, "-c", ""], check=False, cwd="/")
        reached = subprocess.run([*others, "test", "-r", ROOT / "engine"], check=False, cwd="/")
        if tried.returncode or reached.returncode:
            pytest.skip("another user reaches neither a Python nor this code")
        done = subprocess.run(
            [*others, python, "-B", "-c", OTHER, ROOT, place],
            env={"PATH": os.environ["PATH"]},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(place.parent, ignore_errors=True)

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "write exited ['n'] "
    assert lines[1] == "escape exited ['kept', 'kept', 'kept'] "
    assert lines[2].startswith("fork processes ")
    assert lines[3].startswith(("eat memory ", "eat exited [] "))
    assert lines[4] == "kill exited ['kept'] "
    assert lines[5] == "write exited ['nn'] "
