"""Suites with their runs for tests, as rows: what a worker would have left, without running anything."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from engine.expecting import Expectation, Verdict, to_json
from studio.bridge import agent_spec
from studio.models import (
    Agent,
    AgentVersion,
    Event,
    GuidelineMatch,
    JobState,
    RunCell,
    Scenario,
    Session,
    Suite,
    SuiteRun,
    ToolCall,
    Turn,
)
from studio.models import Expectation as ExpectationRow
from studio.operations.agents import snapshot
from studio.operations.run_snapshots import snapshot_of

_numbers = count(1)


def make_suite(agent: Agent, **overrides: Any) -> Suite:
    return Suite.objects.create(agent=agent, **({"name": f"Suite {next(_numbers)}"} | overrides))


def make_scenario(suite: Suite, *expectations: Expectation, **overrides: Any) -> Scenario:
    number = next(_numbers)
    values = {
        "title": f"Scenario {number}",
        "messages": [{"turn": 1, "text": "Hello"}],
        "position": number,
    }
    scenario = Scenario.objects.create(suite=suite, **(values | overrides))
    for expectation in expectations:
        ExpectationRow.objects.create(scenario=scenario, data=to_json(expectation))
    return scenario


def make_run(suite: Suite, *, state: str = JobState.FINISHED, **overrides: Any) -> SuiteRun:
    """A run of the whole suite against the draft, without conversations yet; `play` adds them."""
    agent = Agent.objects.get(pk=suite.agent_id)
    version = snapshot(agent)
    rows = list(suite.scenarios.prefetch_related("expectations"))
    values = {
        "against": ["draft"],
        "verdict": Verdict.PASSED,
        "finished_at": timezone.now(),
        "scenarios": snapshot_of(rows, agent_spec(version)),
    }
    run = SuiteRun.objects.create(suite=suite, state=state, **(values | overrides))
    run.versions.add(version)
    return run


def play(
    run: SuiteRun,
    scenario: Scenario,
    *turns: dict[str, str],
    repeat: int = 1,
    calls: Iterable[str] = (),
    failed: Sequence[str] = (),
    **overrides: Any,
) -> RunCell:
    """The scenario's conversation in this run: each turn says how guidelines ended it, by uid.

    `calls` are tools that the last turn called; `failed` are uids of expectations that did not hold.
    """
    version = run.versions.get()
    session = make_played(run.suite.agent, version, turns, calls, purpose=Session.Purpose.TEST)
    outcomes = [
        {
            "expectation": uid,
            "state": "failed" if uid in failed else "held",
            "because": "Seen.",
            "turn": 1,
        }
        for uid in scenario.expectations.values_list("uid", flat=True)
    ]
    values = {
        "scenario": scenario.uid,
        "version": version,
        "repeat": repeat,
        "session": session,
        "state": RunCell.State.DONE,
        "outcomes": outcomes,
    }
    return RunCell.objects.create(run=run, **(values | overrides))


def make_played(
    agent: Agent,
    version: AgentVersion,
    turns: Sequence[dict[str, str]],
    calls: Iterable[str] = (),
    **overrides: Any,
) -> Session:
    """A session whose turns ended like this, with what the customer said in each: "Message 1" …"""
    now = timezone.now()
    values = {"next_turn": len(turns) + 1, "next_offset": len(turns) + 1}
    session = Session.objects.create(agent=agent, **(values | overrides))
    for number, ended in enumerate(turns, start=1):
        turn = Turn.objects.create(
            session=session, number=number, state=Turn.State.FINISHED, version=version
        )
        Event.objects.create(
            session=session,
            turn=turn,
            offset=number,
            kind="message",
            source="customer",
            data={"text": f"Message {number}"},
        )
        for uid, state in ended.items():
            GuidelineMatch.objects.create(
                turn=turn,
                guideline=uid,
                state=state,
                because=f"{state} because.",
                started_at=now + timedelta(milliseconds=number),
            )
    for place, tool in enumerate(calls):
        ToolCall.objects.create(
            turn=turn, uid=f"c{place}", tool=tool, state="done", started_at=now, ended_at=now
        )
    return session
