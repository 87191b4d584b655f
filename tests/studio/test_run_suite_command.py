"""`manage.py run_suite`: played in the command's own process, told in words, written to files, an exit code."""

import _thread
import asyncio
import csv
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from kombu.transport.memory import Channel

from engine.expecting import GuidelineExpectation, ToolExpectation
from studio.models import Session, Suite, SuiteRun
from studio.operations.agents import publish, save_guideline
from tests.studio.factories import make_agent, make_connection
from tests.studio.tested_bank import Bank

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Bank:
    return Bank(monkeypatch)


def run(*args: str) -> tuple[int, str]:
    """The exit code, and what it said."""
    out = StringIO()
    code = 0
    try:
        call_command("run_suite", *args, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, out.getvalue()


def thanks(bank: Bank, title: str = "Thanks") -> None:
    bank.scenario(title, GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))


def test_a_suite_that_passes_ends_with_0_and_needs_no_worker(bank: Bank) -> None:
    thanks(bank)
    code, said = run("Regression")
    assert (code, SuiteRun.objects.get().verdict) == (0, "passed")
    assert "✓ Thanks" in said
    assert "PASSED: 1 passed. 0 tokens." in said
    assert not any(queue.qsize() for queue in Channel.queues.values())


def test_a_seeded_failure_and_a_flaky_scenario_are_told_and_end_with_1(
    bank: Bank, tmp_path: Path
) -> None:
    bank.seed()
    files = {kind: tmp_path / f"out.{kind}" for kind in ("xml", "csv", "html")}
    code, said = run(
        str(bank.suite.pk), "--against", "draft", "--repeats", "4", "--threads", "2",
        "--junit", str(files["xml"]), "--csv", str(files["csv"]), "--html", str(files["html"]),
    )  # fmt: skip

    assert code == 1
    assert "✓ Passes" in said
    assert "✗ Fails: failed in decisions" in said
    assert "Expected: get_balance must run in some turn (0 of 4)" in said
    assert "Run 1: G1 did not match" in said
    assert "≈ Flaky: flaky: 2 of 4" in said
    assert "FAILED: 1 failed, 1 flaky, 1 passed." in said
    root = ET.fromstring(files["xml"].read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("3", "2")
    with files["csv"].open(encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == 1 + 4 * 5
    assert "G1 did not match" in files["html"].read_text(encoding="utf-8")


def test_only_some_scenarios_against_several_versions(bank: Bank) -> None:
    publish(bank.agent, note="", by=None)
    bank.thanks.condition = "the customer swears"
    save_guideline(bank.thanks)
    thanks(bank)
    thanks(bank, "Other")
    uid = bank.suite.scenarios.get(title="Thanks").uid
    code, said = run("bank/Regression", "--only", uid, "--against", "draft", "--against", "1")
    assert code == 1
    assert said.index("draft") < said.index("version 1")
    assert "Other" not in said
    assert "1 failed, 1 passed" in said


def test_a_cap_ends_without_a_verdict_and_with_1(bank: Bank) -> None:
    thanks(bank)
    make_connection(name="Live")
    code, said = run("Regression", "--connection", "Live", "--cap", "100")
    assert code == 1
    assert "NO VERDICT, stopped at the cap" in said
    assert not Session.objects.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("Nothing",), "There is no suite 'Nothing'; there are: bank/Regression"),
        (("Regression", "--against", "7"), "no version 7"),
        (("Regression", "--only", "x"), "no scenario 'x'"),
        (("Regression", "--repeats", "0"), "1 to 20 times"),
        (("Regression", "--connection", "x"), "no connection 'x'; there are: none"),
        (("Regression", "--junit", "/nowhere/out.xml"), "name a file in a folder that is there"),
        (("Regression", "--cap", "-1"), "no number"),
    ],
)
def test_what_cannot_be_run_like_that_is_refused_with_2(
    bank: Bank, args: tuple[str, ...], words: str
) -> None:
    thanks(bank)
    with pytest.raises(CommandError, match=words) as refused:
        run(*args)
    assert refused.value.returncode == (1 if "--cap" in args else 2)
    assert not SuiteRun.objects.exists()


def test_two_suites_of_a_name_are_told_apart_by_their_agent(bank: Bank) -> None:
    thanks(bank)
    other = make_agent(slug="other")
    Suite.objects.create(agent=other, name="Regression")
    with pytest.raises(CommandError, match=r"say which: .*bank/Regression"):
        run("Regression")
    assert run("bank/Regression")[0] == 0


def test_ctrl_c_cancels_and_says_what_is_kept(bank: Bank) -> None:
    begun = threading.Event()

    async def slow(_arguments: Any, _context: Any) -> dict[str, int]:
        begun.set()
        await asyncio.sleep(30)
        return {"balance": 1}

    def interrupt() -> None:
        begun.wait(10)
        _thread.interrupt_main()

    bank.answers(get_balance=slow)
    bank.scenario("Slow", ToolExpectation(tool="get_balance"))
    threading.Thread(target=interrupt, daemon=True).start()
    before = time.monotonic()
    code, said = run("Regression")
    assert time.monotonic() - before < 10
    assert code == 130
    assert "Cancelled. 0 of 1 conversations are kept" in said
    stopped = SuiteRun.objects.get()
    assert (stopped.state, stopped.cells.get().state) == ("stopped", "waiting")
    assert not Session.objects.exists()
