"""The demo's suite with one seeded failure and one seeded flaky scenario: report, JUnit and exit code are all true."""

import itertools
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import call_command

from engine.canonical import JsonObject
from engine.expecting import GuidelineExpectation, ToolExpectation
from engine.spec import Tool
from engine.tools.base import ToolContext, ToolResult
from studio.models import Customer, Scenario, Suite, SuiteRun
from studio.operations import scenario_play
from studio.operations.scenarios import add_expectation
from studio.run_reports import report
from studio.toolbox import tools_for

pytestmark = pytest.mark.django_db(transaction=True)

ALTERNATING, SEEDED = "What is left on the account", "Rates are told unasked"


class Alternating:
    """The demo's tools, with a balance that is low every other time."""

    def __init__(self) -> None:
        self._tools = tools_for(())
        self._balances = itertools.cycle([120.0, 4_200.0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tools, name)

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        if tool.name != "get_balance":
            return await self._tools.call(tool, arguments, context)
        data = {"account": "checking", "balance": next(self._balances), "currency": "EUR"}
        return ToolResult(data=data)


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Suite:
    call_command("load_demo", stdout=StringIO(), stderr=StringIO())
    suite = Suite.objects.get(agent__slug="harbor-bank")
    tools = Alternating()
    monkeypatch.setattr(scenario_play, "tools_for", lambda _tools: tools)
    customer = Customer.objects.order_by("pk").first()
    assert customer is not None
    flaky = Scenario.objects.create(
        suite=suite,
        title=ALTERNATING,
        messages=[{"text": "How much money is on my checking account?"}],
        tools=Scenario.Tools.LIVE,
        customer_uid=customer.uid,
        variables=customer.variables,
        position=90,
    )
    add_expectation(flaky, ToolExpectation(tool="get_balance"))
    add_expectation(flaky, GuidelineExpectation(guideline="low-balance"))
    failing = Scenario.objects.create(
        suite=suite, title=SEEDED, messages=[{"text": "Good morning"}], position=91
    )
    add_expectation(failing, GuidelineExpectation(guideline="exchange-rate"))
    return suite


def test_report_xml_and_exit_code_tell_the_same_truth(suite: Suite, tmp_path: Path) -> None:
    file, out = tmp_path / "out.xml", StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(
            "run_suite", suite.name, "--repeats", "2", "--junit", str(file),
            stdout=out, stderr=StringIO(),
        )  # fmt: skip
    assert ended.value.code == 1

    (version,) = report(SuiteRun.objects.get()).versions
    told = {scenario.title: scenario.verdict for scenario in version.scenarios}
    others = set(told) - {ALTERNATING, SEEDED}
    assert told[ALTERNATING] == "flaky"
    assert told[SEEDED] == "failed"
    assert len(others) >= 5
    assert {told[title] for title in others} == {"passed"}

    root = ET.parse(file).getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("2", "0", "0")
    failures = {
        case.get("name"): failure.get("type")
        for case in root.iter("testcase")
        for failure in case.iter("failure")
    }
    assert failures == {ALTERNATING: "flaky", SEEDED: "failed"}
    said = out.getvalue()
    assert f"≈ {ALTERNATING}: flaky: 1 of 2" in said
    assert "Run 1: G" in said
    assert "FAILED: 1 failed, 1 flaky" in said
