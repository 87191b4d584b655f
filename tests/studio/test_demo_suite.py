"""The demo's suite: it passes as it comes; a seeded failure and a seeded flaky scenario are told everywhere alike."""

from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.conf import settings
from django.core.management import call_command

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.expecting import ReplyContainsExpectation
from studio.demo import bank
from studio.demo.suite import NAME
from studio.models import Agent, Scenario, Suite, SuiteRun
from studio.operations import lanes
from studio.operations.agents import save_guideline
from studio.operations.scenarios import add_expectation, save_scenario
from studio.run_reports import report

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setattr(settings, "STUDIO_VAR", tmp_path)
    monkeypatch.setattr(lanes.lane, "delay", lambda *_arguments: None)
    call_command("load_demo", stdout=StringIO())
    return Agent.objects.get(slug="harbor-bank")


def run(*arguments: str) -> tuple[int, str]:
    """The exit code, and what was said."""
    out = StringIO()
    try:
        call_command("run_suite", NAME, "--threads", "2", *arguments, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def seed_a_failure(agent: Agent) -> None:
    fees = agent.guidelines.get(uid="fees")
    fees.condition = "The customer asks for a loan"
    fees.action = "Say that loans are not granted online."
    fees.examples.all().delete()
    save_guideline(fees)


def seed_a_flaky_one(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A live tool that fails every other time."""
    scenario = save_scenario(
        Scenario(
            suite=suite,
            title="A rate that comes and goes",
            messages=[{"text": "What is the exchange rate from EUR to USD?"}],
            tools=Scenario.Tools.LIVE,
        )
    )
    add_expectation(scenario, ReplyContainsExpectation(text="1.0842"))
    rate, calls = bank._rate, count()

    def every_other_time(*currencies: str) -> Any:
        if next(calls) % 2:
            raise ToolFailure(
                ToolError(kind=ToolErrorKind.UNAVAILABLE, public="the rates are closed", detail="")
            )
        return rate(*currencies)

    monkeypatch.setattr(bank, "_rate", every_other_time)


def test_the_suite_passes_as_it_comes() -> None:
    code, said = run("--against", "published")
    assert code == 0, said
    assert SuiteRun.objects.get().verdict == "passed"
    suite = Suite.objects.get()
    kinds = suite.scenarios.values_list("expectations__data__kind", flat=True)
    assert {"guideline", "tool", "decision", "handed_over", "reply_contains"} <= set(kinds)
    assert suite.scenarios.filter(kind=Scenario.Kind.SIMULATED).exists()


def test_a_seeded_failure_and_a_seeded_flaky_scenario_are_told_and_nothing_else(
    demo: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_a_failure(demo)
    seed_a_flaky_one(demo.suites.get(), monkeypatch)
    file = tmp_path / "out.xml"

    code, said = run("--against", "draft", "--repeats", "2", "--junit", str(file))

    assert code == 1
    failing = {"Rates, fees and a branch", "Somebody wants to know what a second card costs"}
    flaky = "A rate that comes and goes"
    row = SuiteRun.objects.get()
    assert row.verdict == "failed"
    verdicts = {
        scenario.title: str(scenario.verdict)
        for version in report(row).versions
        for scenario in version.scenarios
    }
    assert {title for title, verdict in verdicts.items() if verdict == "failed"} == failing
    assert {title for title, verdict in verdicts.items() if verdict == "flaky"} == {flaky}
    assert list(verdicts.values()).count("passed") == len(verdicts) - 3
    assert "flaky" in next(line for line in said.splitlines() if flaky in line)

    cases = {case.get("name"): case for case in ET.parse(file).getroot().iter("testcase")}
    assert set(cases) == set(verdicts)
    told = {name for name, case in cases.items() if case.find("failure") is not None}
    assert told == failing | {flaky}
    failure = cases["Rates, fees and a branch"].find("failure")
    assert failure is not None
    assert "must match in turn 2" in (failure.text or "") + (failure.get("message") or "")
