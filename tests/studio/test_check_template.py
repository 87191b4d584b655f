"""`manage.py check_template`: the report in words and as JSON, its exit code, and no database."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engine.tools.package import Package, read_archive, starter, unpack, write_workflow

CHECKOUT = Path(__file__).resolve().parents[2]
# No database answers there: a command that asks it would fail.
NO_DATABASE = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none"}

MANY_FAULTS = """import os
OUTPUT_KEY = 5


class UserParameters:
    api_key: str


class ToolParameters(dict):
    query: str
    when: complex


class Reader(StudioBaseTool):
    def run_tool(self, args):
        return "\x1b[31m" + args.query
"""


def manage(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check_template", *map(str, arguments)],
        cwd=CHECKOUT,
        env={**os.environ, **NO_DATABASE},
        capture_output=True,
        text=True,
        check=False,
    )


def faulty(directory: Path) -> Path:
    place = directory / "my-faulty_tool_x1y2z3!"
    place.mkdir()
    (place / "tool.py").write_text(MANY_FAULTS)
    (place / "requirements.txt").write_text("requests=2\nnumpy\n")
    return place


def test_a_good_package_is_told_in_full_without_server_or_database(tmp_path: Path) -> None:
    (tmp_path / "opening_hours_a1b2c3.zip").write_bytes(starter())
    ran = manage(tmp_path / "opening_hours_a1b2c3.zip")
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0] == "opening hours"
    assert "  Accepted: 0 error(s), 0 warning(s)" in lines
    assert any(line.split()[:3] == ["city", "str", "yes"] for line in lines)
    assert any(line.split()[:4] == ["cash_only", "bool", "no", "false"] for line in lines)
    assert "  Output key: tool_output" in lines


def test_many_faults_are_all_told_with_their_place_and_the_exit_code_is_1(tmp_path: Path) -> None:
    ran = manage(faulty(tmp_path))
    assert (ran.returncode, ran.stderr) == (1, "")
    for said in (
        "error N-001", "error T-007 tool.py:15", "error T-008 tool.py:14", "warning T-W02 tool.py",
        "warning T-W03 requirements.txt", "warning T-W04 tool.py:5", "warning T-W05 tool.py:9",
        "warning T-W06 tool.py:11", "warning T-W07 tool.py:1", "warning T-W08 tool.py:10",
        "warning T-W09 requirements.txt:1", "warning T-W11 tool.py:2",
        "    | class Reader(StudioBaseTool):", "    | requests=2", "Refused: 3 error(s)",
    ):  # fmt: skip
        assert said in ran.stdout
    assert "\x1b" not in ran.stdout


def run(*arguments: Any, **options: Any) -> tuple[str, int]:
    out = io.StringIO()
    try:
        call_command("check_template", *map(str, arguments), stdout=out, **options)
    except SystemExit as ended:
        return out.getvalue(), int(ended.code or 0)
    return out.getvalue(), 0


def test_a_directory_is_checked_as_its_zip_and_may_have_another_name(tmp_path: Path) -> None:
    unpack(starter(), tmp_path / "hours!")
    assert run(tmp_path / "hours!")[1] == 1
    said, code = run(tmp_path / "hours!", name="Opening hours")
    assert code == 0
    assert said.startswith("Opening hours\n")


def test_json_holds_the_whole_report(tmp_path: Path) -> None:
    said, code = run(faulty(tmp_path), json=True)
    value = json.loads(said)
    assert (code, value["ok"], value["issues"]) == (1, False, [])
    (template,) = value["templates"]
    assert template["name"] == "my faulty tool x1y2z3!"
    (old,) = (issue for issue in template["issues"] if issue["rule"] == "T-008")
    assert (old["severity"], old["path"], old["line"]) == ("error", "tool.py", 14)
    assert old["source"] == "class Reader(StudioBaseTool):"
    assert [each["name"] for each in template["tool_parameters"]] == ["query", "when"]


def test_a_workflow_template_gives_one_report_for_each_tool(tmp_path: Path) -> None:
    (good,) = read_archive(starter(), filename="hours").packages
    bad = Package("Bad one", {"requirements.txt": b"pydantic"})
    path = tmp_path / "flow.zip"
    path.write_bytes(write_workflow("Desk", {"hours_abc123": good, "bad_abc123": bad}))
    said, code = run(path)
    assert code == 1
    assert said.startswith("Workflow template 'Desk', tools: 2\n")
    assert said.index("Bad one") < said.index("Refused: 1 error(s)") < said.index("hours\n")
    assert "Accepted: 0 error(s)" in said


def test_a_zip_that_is_refused_says_why(tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../tool.py", "")
        archive.writestr("/etc/\x1b[31m", "")
    said, code = run(path)
    assert code == 1
    assert "error Z-003 ../tool.py" in said
    assert "error Z-004 /etc/\\x1b[31m" in said
    assert json.loads(run(path, json=True)[0])["ok"] is False


@pytest.mark.parametrize("path", ["gone", "gone/a.zip"])
def test_a_path_that_is_not_there_is_named(path: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        run(tmp_path / path)
