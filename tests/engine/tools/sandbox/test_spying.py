"""Tools that look for what is not theirs do not find it."""

import json
import os
import subprocess
import threading

import pytest

from engine.tools.runner import Stop
from tests.engine.tools.sandbox.conftest import Bench

SECRET = "s3cr3t-of-the-studio"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_SECRET_KEY", SECRET)
    monkeypatch.setenv("PYTHONPATH", "/nowhere")


def test_the_environment_holds_nothing_of_ours(any_bench: Bench) -> None:
    ended = any_bench.run("import json, os\nprint(json.dumps(dict(os.environ)))")

    found = json.loads(ended.stdout)
    assert set(found) == {
        *("PATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "HOME", "TMPDIR", "USER", "LOGNAME"),
        *("LANG", "TZ", "SESSION_DIRECTORY"),
    }
    assert SECRET not in ended.stdout.decode()


def test_processes_show_nothing_of_ours(apart_bench: Bench) -> None:
    source = """
    import os, pathlib
    found = []
    for name in ("environ", "cmdline", "maps", "mem", "cwd/.", "root/var"):
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            if path.name in (str(os.getpid()), "self"):
                continue
            try:
                text = (path / name).read_bytes() if name != "root/var" else os.listdir(path / name)
            except OSError:
                continue
            found.append((str(path), name, text))
    print(found)
    """
    other = subprocess.Popen(["sleep", "98764"], env={"OTHER": SECRET})
    try:
        ended = apart_bench.run(source)
    finally:
        other.kill()
        other.wait()

    assert ended.code == 0, ended.stderr.decode()
    assert SECRET not in ended.stdout.decode()
    assert "98764" not in ended.stdout.decode()


def test_calls_of_one_tool_do_not_see_each_other(apart_bench: Bench) -> None:
    source = """
    import json, os, pathlib, sys, time
    if json.loads(sys.argv[4])["wait"]:
        print("there")
        time.sleep(60)
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        for name in ("environ", "mem"):
            try:
                with (path / name).open("rb") as file:
                    if path.name != str(os.getpid()):
                        found.append((name, file.read(1)))
            except OSError:
                pass
    print(found, sorted(os.listdir(os.environ["SESSION_DIRECTORY"])))
    other = pathlib.Path(os.environ["SESSION_DIRECTORY"]).parent / "other"
    for work in (lambda: os.listdir(other), lambda: os.listdir(other.parent),
                 lambda: (other / "letter.txt").read_text(), lambda: (other / "x").write_text("x")):
        try:
            print(work())
        except OSError as error:
            print(type(error).__name__)
    """
    program = apart_bench.tool(source)
    there = threading.Event()
    stop = Stop()
    waiting = threading.Thread(
        target=lambda: apart_bench.run(
            program,
            tool={"wait": True},
            session="other",
            stop=stop,
            on_output=lambda _piece: there.set(),
        )
    )
    waiting.start()
    assert there.wait(10)
    (apart_bench.session("other") / "letter.txt").write_text("MARKER-OF-LETTER")

    ended = apart_bench.run(program, tool={"wait": False}, session="mine")
    stop.request()
    waiting.join()

    if not apart_bench.isolation.landlock:
        pytest.skip("only Landlock keeps sessions from each other")
    assert ended.stdout.decode().splitlines() == ["[] []", *["PermissionError"] * 4]


def test_no_process_list_shows_a_parameter(any_bench: Bench) -> None:
    source = "import sys, time\nprint(sys.argv[2])\ntime.sleep(0.5)"
    seen: list[str] = []

    def look(_piece: bytes) -> None:
        shown = subprocess.run(["ps", "axeww"], capture_output=True, text=True, check=True)
        seen.append(shown.stdout)

    ended = any_bench.run(source, user={"key": "par4m3t3r"}, on_output=look)

    assert b"par4m3t3r" in ended.stdout
    assert seen
    assert "engine/sandbox" in seen[0]  # it was running
    assert not any("par4m3t3r" in text for text in seen)


def test_the_database_is_out_of_reach(apart_bench: Bench) -> None:
    source = f"""
    import pathlib
    path = pathlib.Path({str(apart_bench.database)!r})
    for work in (path.read_text, lambda: path.write_text("gone"), path.unlink,
                 lambda: pathlib.Path("/proc/1/root" + str(path)).read_text()):
        try:
            print("done", work())
        except OSError as error:
            print(type(error).__name__)
    """
    ended = apart_bench.run(source)

    assert "done" not in ended.stdout.decode()
    assert ended.stdout.count(b"Error") == 4
    assert apart_bench.database.read_text() == "MARKER-OF-DATABASE"


def test_a_walk_through_the_file_system_finds_nothing(apart_bench: Bench) -> None:
    source = """
    import os, pathlib
    for folder, _names, files in os.walk("/"):
        if folder.startswith(("/usr", "/proc", "/sys", "/nix")) or "site-packages" in folder:
            continue
        for name in files:
            path = pathlib.Path(folder, name)
            try:
                if path.stat().st_size < 10_000 and b"MARKER-OF" in path.read_bytes():
                    if path.name != "tool.py":
                        print("found", path)
            except OSError:
                pass
    print("looked", sum(1 for _ in pathlib.Path("/usr/bin").iterdir()) > 10)
    """
    (apart_bench.root / "beside.txt").write_text("MARKER-OF-BESIDE")
    other = apart_bench.session("other")
    other.mkdir(parents=True)
    (other / "letter.txt").write_text("MARKER-OF-LETTER")

    assert apart_bench.run(source).stdout == b"looked True\n"


def test_nothing_can_be_written_elsewhere(apart_bench: Bench) -> None:
    package = apart_bench.var / "tools" / "packages"
    source = f"""
    import os, sys
    for folder in ("/", "/etc", "/usr/bin", "/var", "/home", sys.prefix, sys.base_prefix,
                   {str(package)!r}, {str(package / "p1")!r},
                   os.path.dirname(os.environ["SESSION_DIRECTORY"]), {str(apart_bench.root)!r}):
        try:
            open(os.path.join(folder, "written"), "w").close()
            print("written", folder)
        except OSError:
            pass
    open(os.path.join(os.environ["SESSION_DIRECTORY"], "mine"), "w").write("yes")
    open("../../in-the-workspace", "w").write("yes")
    print("done")
    """
    program = apart_bench.tool(source)

    assert apart_bench.run(program).stdout == b"done\n"
    assert (apart_bench.session() / "mine").read_text() == "yes"
    assert (program.workspace / "in-the-workspace").read_text() == "yes"


def test_no_privileges_can_be_had(apart_bench: Bench) -> None:
    source = """
    import os, subprocess, sys
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    print(status["NoNewPrivs"].strip(), int(status["CapEff"], 16), int(status["CapPrm"], 16))
    for work in (lambda: os.setuid(0), lambda: os.chroot("."), lambda: os.mknod("d", 0o20666, 0),
                 lambda: os.setgroups([0]), lambda: os.chown("tool.py", 1, 1)):
        try:
            work()
            print("done")
        except OSError as error:
            print(type(error).__name__)
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", "print([l for l in open('/proc/self/status') if 'CapEff' in l])"])
    """
    ended = apart_bench.run(source)

    lines = ended.stdout.decode().splitlines()
    assert lines[0] == "1 0 0"
    if apart_bench.isolation.bubblewrap:  # else a child cannot read of itself
        assert "0000000000000000" in lines[-1], ended.stderr.decode()
    if os.geteuid() == 0 and apart_bench.isolation.bubblewrap:
        assert "done" not in lines


def test_a_workspace_full_of_links_leads_nobody_astray(apart_bench: Bench) -> None:
    """The studio prepares the workspace as who it is: a link that a tool left there is not followed."""
    victim = apart_bench.root / "victim"
    victim.mkdir(mode=0o700)
    before = victim.stat()
    source = f"""
    import os, shutil
    for work in (lambda: os.rename("../../tools", "../../away"),
                 lambda: os.symlink({str(victim)!r}, "../../tools"),
                 lambda: os.rename("../" + os.path.basename(os.getcwd()), "../away"),
                 lambda: os.symlink({str(victim)!r}, os.getcwd()),
                 lambda: os.symlink({str(victim)!r}, "helper.py")):
        try:
            work()
        except OSError as error:
            print(type(error).__name__)
    """
    program = apart_bench.tool(source)
    apart_bench.run(program)
    (program.package / "helper.py").write_text("")
    again = apart_bench.run(program)

    assert again.end.value in ("exited", "not_started")
    after = victim.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert list(victim.iterdir()) == []
