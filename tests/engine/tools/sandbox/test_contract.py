"""A tool runs as `python tool.py` would run it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.tools.isolation import scrubbed_environment
from engine.tools.runner import End
from tests.engine.tools.sandbox.conftest import Bench

WHOLE = '''
"""Answers with what it was given."""
import argparse, json, os, sys
from pathlib import Path
from pydantic import BaseModel, Field
import words

class UserParameters(BaseModel):
    api_key: str

class ToolParameters(BaseModel):
    query: str = Field(description="What to look for")

OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))
    print("looking")
    print(OUTPUT_KEY, json.dumps({
        "key": config.api_key, "query": params.query, "word": words.WORD,
        "file": Path("data/file.txt").read_text(), "name": __file__, "here": os.getcwd(),
        "argv0": sys.argv[0], "path0": sys.path[0], "prefix": sys.prefix, "executable": sys.executable,
        "session": os.environ["SESSION_DIRECTORY"], "data": os.environ["WORKFLOW_DATA_DIRECTORY"],
        "shared": (Path(os.environ["WORKFLOW_DATA_DIRECTORY"]) / "a.txt").read_text(),
    }))
'''


def test_the_contract_holds_in_every_mode(any_bench: Bench) -> None:
    program = any_bench.tool(WHOLE, {"words.py": "WORD = 'hä'", "data/file.txt": "of its own"})
    data = any_bench.runner.data / "agent"
    data.mkdir(parents=True)
    (data / "a.txt").write_text("shared")

    ended = any_bench.run(program, user={"api_key": "k"}, tool={"query": 'ü "q" \ud83d'}, data=data)

    assert (ended.end, ended.code, ended.stderr) == (End.EXITED, 0, b"")
    log, _key, answer = ended.stdout.decode().partition("tool_output ")
    assert log == "looking\n"
    assert json.loads(answer) == {
        "key": "k",
        "query": 'ü "q" \ud83d',
        "word": "hä",
        "file": "of its own",
        "name": str(program.directory / "tool.py"),
        "here": str(program.directory),
        "argv0": "tool.py",
        "path0": str(program.directory),
        "prefix": sys.prefix,
        "executable": sys.executable,
        "session": str(any_bench.session()),
        "data": str(data),
        "shared": "shared",
    }


ENDINGS = {
    "falls off": "print('x')",
    "exit 3": "import sys; print('on stdout'); sys.exit(3)",
    "exit text": "import sys; sys.exit('it is broken: ü')",
    "exit none": "import sys; sys.exit()",
    "exit true": "import sys; sys.exit(True)",
    "exit negative": "import sys; sys.exit(-1)",
    "os._exit": "import os; os._exit(7)",
    "raises": "def inner():\n    raise ValueError('no')\ntry:\n    inner()\nexcept ValueError as e:\n"
    "    raise RuntimeError('worse') from e",
    "syntax": "print('x'",
    "import": "import not_there_at_all",
    "threads": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('first')",
    "daemon": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('first')",
    "atexit": "import atexit\natexit.register(print, 'bye')\nprint('hello')",
    "stdin": "import sys\nprint(repr(sys.stdin.read()))",
    "bytes": "import sys\nsys.stdout.buffer.write(b'\\xff\\x00\\n')",
    "main": "import __main__, sys\nprint(__name__, __main__.__file__ == __file__, __spec__)\n"
    "print(sorted(set(globals()) - {'sys'}))",
    "closed": "import os\nos.close(1)\nos.close(2)",
    "pool": "import concurrent.futures\nwith concurrent.futures.ThreadPoolExecutor() as p:\n"
    "    print(list(p.map(abs, [-1, -2])))",
    "fork": "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    print('parent')",
    "own hook": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1 / 0",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_it_ends_as_a_plain_run_would(bench: Bench, name: str) -> None:
    program = bench.tool(ENDINGS[name])
    ended = bench.run(program)

    plain = subprocess.run(
        [sys.executable, "tool.py"],
        cwd=program.package,
        env=scrubbed_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )

    assert ended.end is End.EXITED
    assert ended.code == plain.returncode
    assert _same(ended.stdout, program.directory) == _same(plain.stdout, program.package)
    assert _same(ended.stderr, program.directory) == _same(plain.stderr, program.package)


def _same(text: bytes, directory: Path) -> str:
    return text.decode("utf-8", "backslashreplace").replace(str(directory), "DIR")


def test_a_module_of_the_tool_goes_before_one_of_the_library(bench: Bench) -> None:
    names = ("json", "queue", "token", "engine", "host", "wire", "values", "processes", "disk")
    files = {f"{name}.py": "HERE = True" for name in names}
    source = f"import {', '.join(names)}\nprint(all([{', '.join(f'{n}.HERE' for n in names)}]))"

    assert bench.run(bench.tool(source, files)).stdout == b"True\n"


def test_nothing_of_ours_can_be_imported(bench: Bench) -> None:
    ended = bench.run("import sys\nprint([n for n in sys.modules if 'engine' in n])\nimport engine")

    assert ended.stdout == b"[]\n"
    assert b"No module named 'engine'" in ended.stderr


def test_it_writes_beside_its_files_and_changes_none_of_them(apart_bench: Bench) -> None:
    source = """
    import os, pathlib
    def tried(work):
        try:
            work()
        except OSError as error:
            return type(error).__name__
        return "done"
    print(tried(lambda: pathlib.Path("notes.txt").open("a").write("n")),
          pathlib.Path("notes.txt").read_text(),
          tried(lambda: pathlib.Path("tool.py").write_text("1")),
          tried(lambda: pathlib.Path("data/x.txt").write_text("1")),
          tried(lambda: pathlib.Path("data/new.txt").write_text("1")))
    """
    program = apart_bench.tool(source, {"data/x.txt": "x"})
    before = (program.package / "tool.py").read_text()

    first, second = (apart_bench.run(program).stdout.decode().split() for _ in range(2))

    assert first[:2] == ["done", "n"]
    assert second[:2] == ["done", "nn"]
    assert "done" not in first[2:]
    assert (program.package / "tool.py").read_text() == before


def test_files_of_an_earlier_version_are_gone(any_bench: Bench) -> None:
    old = any_bench.tool("import helper\nprint('old')", {"helper.py": "", "data/a.txt": "a"})
    new = any_bench.tool("import os\nprint(sorted(os.listdir('.')))", {"extra.py": ""})
    new = type(new)(package=new.package, slug=old.slug, workspace=old.workspace, python=old.python)
    assert any_bench.run(old).stdout == b"old\n"
    any_bench.runner.forget(old)

    assert any_bench.run(new).stdout == b"['extra.py', 'tool.py']\n"


def test_it_may_use_processes_of_its_own(bench: Bench) -> None:
    source = """
    import multiprocessing, subprocess, sys

    def double(number):
        return number * 2

    if __name__ == "__main__":
        with multiprocessing.Pool(2) as pool:
            print(pool.map(double, [1, 2]))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(double, [3]))
        print(subprocess.run([sys.executable, "-c", "import pydantic; print('child')"],
                             capture_output=True, text=True, check=True).stdout.strip())
    """
    ended = bench.run(source)

    assert ended.stdout.decode().split("\n")[:3] == ["[2, 4]", "[6]", "child"], (
        ended.stderr.decode()
    )


def test_what_utf8_cannot_say_is_escaped(bench: Bench) -> None:
    ended = bench.run(
        r"print('ä€😀'); print('\ud83d'); import sys; print('\udcff', file=sys.stderr)"
    )

    assert ended.stdout.decode() == "ä€😀\n\\ud83d\n"
    assert ended.stderr.decode() == "\\udcff\n"


def test_each_call_has_chance_of_its_own(bench: Bench) -> None:
    program = bench.tool("import random, uuid\nprint(random.random(), uuid.uuid4())")

    assert len({bench.run(program).stdout for _ in range(4)}) == 4


def test_temporary_files_are_each_calls_own_and_go_with_it(any_bench: Bench) -> None:
    source = """
    import os, tempfile
    before = os.listdir(os.environ["TMPDIR"])
    held = tempfile.mkdtemp()
    os.chmod(held, 0)
    print(before, held.startswith(os.environ["TMPDIR"]), os.environ["HOME"] == os.environ["TMPDIR"])
    """
    program = any_bench.tool(source)

    for _ in range(2):
        assert any_bench.run(program).stdout == b"[] True True\n"


def test_output_comes_as_it_is_printed(bench: Bench) -> None:
    came: list[bytes] = []
    source = "import time\nprint('one')\ntime.sleep(0.3)\nprint('two')"

    ended = bench.run(source, on_output=came.append)

    assert came == [b"one\n", b"two\n"]
    assert ended.stdout == b"one\ntwo\n"


def test_what_the_listener_raises_ends_the_call(bench: Bench) -> None:
    def refuse(_piece: bytes) -> None:
        raise LookupError("not now")

    with pytest.raises(LookupError):
        bench.run("import time\nprint('one')\ntime.sleep(60)", on_output=refuse)
    assert bench.run("print(1)").end is End.EXITED


def test_tools_of_one_session_share_its_directory(any_bench: Bench) -> None:
    source = """
    import os, pathlib
    letter = pathlib.Path(os.environ["SESSION_DIRECTORY"]) / "letter.txt"
    with letter.open("a") as file:
        file.write("x")
    print(letter.read_text())
    """
    first, second = any_bench.tool(source), any_bench.tool(source)

    assert any_bench.run(first).stdout == b"x\n"
    assert any_bench.run(second).stdout == b"xx\n"
    assert any_bench.run(second, session="another").stdout == b"x\n"


def test_what_agents_share_can_be_read_and_not_written(apart_bench: Bench) -> None:
    source = """
    import os, pathlib
    data = pathlib.Path(os.environ["WORKFLOW_DATA_DIRECTORY"])
    print((data / "inner" / "a.txt").read_text())
    for work in (lambda: (data / "a.txt").write_text("b"), lambda: (data / "inner").rename(data / "x"),
                 lambda: os.listdir(data.parent / "other")):
        try:
            print(work())
        except OSError:
            print("kept")
    """
    data = apart_bench.runner.data / "agent"
    (data / "inner").mkdir(parents=True)
    (data / "inner" / "a.txt").write_text("read")
    (apart_bench.runner.data / "other").mkdir()

    lines = apart_bench.run(source, data=data).stdout.decode().split()

    assert lines[:3] == ["read", "kept", "kept"]
    if apart_bench.isolation.landlock:
        assert lines[3] == "kept"


def test_parameters_may_be_large(bench: Bench) -> None:
    ended = bench.run(
        "import json, sys\nprint(len(json.loads(sys.argv[4])['text']))",
        tool={"text": "ä" * (4 << 20)},
    )

    assert ended.stdout == b"%d\n" % (4 << 20)
