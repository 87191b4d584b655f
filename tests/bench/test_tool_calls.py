"""What the sandbox adds to a call of an uploaded tool, warm and cold, beside `python tool.py` as a plain subprocess."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.tools.isolation import detect
from engine.tools.runner import Call, End, Outcome, Program, Runner, Stop

CALLS = 60
BUDGET = 25.0  # ms beyond the tool's own work

SOURCE = '''
"""Counts words."""
import time
_began = time.perf_counter()
import argparse
import json
import os
import sys
from typing import Any, List, Optional
from pydantic import BaseModel, Field

class UserParameters(BaseModel):
    unit: str = "words"

class ToolParameters(BaseModel):
    text: str = Field(description="What to count in")
    ignored: Optional[List[str]] = Field(default=None, description="Not counted")

def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    ignored = args.ignored or []
    return {"count": len([w for w in args.text.split() if w not in ignored]), "unit": config.unit}

OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))
    answer = run_tool(config, params)
    answer["own_ms"] = (time.perf_counter() - _began) * 1000
    print(OUTPUT_KEY, json.dumps(answer))
'''
CALL = Call(user_params={"unit": "w"}, tool_params={"text": "one two three"}, deadline=30)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    package = tmp_path / "package"
    package.mkdir()
    (package / "tool.py").write_text(SOURCE)
    return Program(
        package=package,
        slug="counter_abc123",
        workspace=tmp_path / "workspace",
        python=Path(sys.executable),
    )


def answer(ended: Outcome) -> dict[str, Any]:
    assert (ended.end, ended.code) == (End.EXITED, 0), (ended.note, ended.stderr)
    found: dict[str, Any] = json.loads(ended.stdout.decode().partition("tool_output ")[2])
    assert found["count"] == 3
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and what came of it."""
    began = time.perf_counter()
    value = work()
    return (time.perf_counter() - began) * 1000, value


def tell(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} ms (p95 {ordered[int(len(ordered) * 0.95)]:.1f})"


def test_the_overhead_of_a_call(
    program: Program, tmp_path: Path, figure: Callable[..., None]
) -> None:
    runner = Runner(sessions=tmp_path / "sessions", data=tmp_path / "data")
    plain = [timed(lambda: run_plainly(program))[0] for _ in range(8)]
    cold: list[float] = []
    whole: list[float] = []
    beyond: list[float] = []
    try:
        for _ in range(5):
            runner.forget(program)
            took, ended = timed(lambda: runner.run(program, CALL, stop=Stop()))
            answer(ended)
            cold.append(took)
        for _ in range(CALLS):
            took, ended = timed(lambda: runner.run(program, CALL, stop=Stop()))
            whole.append(took)
            beyond.append(took - answer(ended)["own_ms"])
    finally:
        runner.close()
    isolation = detect()
    with_what = ", ".join(
        name
        for name, there in (("bubblewrap", isolation.bubblewrap), ("Landlock", isolation.landlock))
        if there
    )
    peer = f"python tool.py: {tell(plain)}"
    figure("uploaded tool, warm: the whole call", tell(whole), peer=peer)
    figure(
        f"uploaded tool, warm: beyond its own work ({with_what or 'not isolated'})",
        tell(beyond),
        budget=f"≤ {BUDGET:g} ms",
    )
    figure("uploaded tool, cold: its process started first", tell(cold), peer=peer)
    assert statistics.median(beyond) <= BUDGET


def run_plainly(program: Program) -> None:
    subprocess.run(
        [
            *(program.python, "tool.py", "--user-params", json.dumps(CALL.user_params)),
            *("--tool-params", json.dumps(CALL.tool_params)),
        ],
        cwd=program.package,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=True,
    )
