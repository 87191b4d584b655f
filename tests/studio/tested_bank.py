"""A bank's agent with a suite to run, for tests of runs: which scenarios pass, fail and flake is known."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from engine.expecting import (
    Expectation,
    GuidelineExpectation,
    ReplyContainsExpectation,
    ToolExpectation,
)
from engine.kit import Models
from engine.testing import Expected, ScriptedModel, ScriptedTools
from studio.models import Agent, RunCell, Scenario, Suite, SuiteRun
from studio.operations import lanes, scenario_play
from studio.operations.scenarios import add_expectation
from studio.operations.suite_runs import CREW, start_run
from tests.studio.factories import make_agent, make_guideline, make_tool

BALANCE = "What is my balance?"
HELLO = "Hello there"


class Bank:
    """G1 asks `get_balance`, G2 says thanks; both with the built-in offline model."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.agent: Agent = make_agent(slug="bank", name="Harbor Bank")
        self.tool = make_tool(
            self.agent, name="get_balance", description="The balance.", parameters=[]
        )
        self.balance = make_guideline(
            self.agent,
            uid="balance",
            condition="the customer asks for the balance",
            action="tell the balance",
            tools=[self.tool],
        )
        self.thanks = make_guideline(
            self.agent,
            uid="thanks",
            condition="the customer says thanks",
            action="say they are welcome",
        )
        self.suite = Suite.objects.create(agent=self.agent, name="Regression")
        self.tools = ScriptedTools()
        self.model: ScriptedModel | None = None
        monkeypatch.setattr(scenario_play, "tools_for", lambda _tools: self.tools)

    def answers(self, **functions: Callable[..., Any]) -> None:
        """What the tools give: a function of (arguments, context) each."""
        self.tools.functions.update(functions)

    def script(self, *expected: Expected) -> ScriptedModel:
        """These answers in place of the offline model."""
        self.model = model = ScriptedModel(*expected)
        self._monkeypatch.setattr(scenario_play, "models_of", lambda _c: Models.same(model))
        return model

    def scenario(
        self, title: str, *expectations: Expectation, say: tuple[str, ...] = (BALANCE,), **more: Any
    ) -> Scenario:
        values = {"messages": [{"text": text} for text in say], "tools": "live"}
        values["position"] = self.suite.scenarios.count()
        row = Scenario.objects.create(suite=self.suite, title=title, **(values | more))
        for expectation in expectations:
            add_expectation(row, expectation)
        return row

    def seed(self) -> None:
        """One scenario that passes, one that fails and one that is flaky: every other time."""
        balances = itertools.cycle([10, 20])
        self.answers(get_balance=lambda _arguments, _context: {"balance": next(balances)})
        matches = GuidelineExpectation(guideline="balance")
        self.scenario("Passes", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot!",))
        self.scenario(
            "Fails",
            matches,
            ToolExpectation(tool="get_balance"),
            say=(HELLO,),
        )
        self.scenario("Flaky", matches, ReplyContainsExpectation(text="10"))


def play(run: SuiteRun) -> SuiteRun:
    """Work it through in this thread, as one worker's lane would."""
    while SuiteRun.objects.unfinished().filter(pk=run.pk, paused=False).exists():
        lanes._work_for_a_moment(CREW, run.pk)
    run.refresh_from_db()
    return run


def ran(suite: Suite, **chosen: Any) -> SuiteRun:
    return play(start_run(suite, enqueue=False, **chosen))


def cells_of(run: SuiteRun, title: str = "") -> list[RunCell]:
    uids = [one["uid"] for one in run.scenarios if title in ("", one["title"])]
    return list(run.cells.filter(scenario__in=uids).order_by("scenario", "version", "repeat"))
