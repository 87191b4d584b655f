"""What the API tells of coverage."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.expecting import GuidelineExpectation
from studio.models import Agent
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_agent, make_guideline, make_tool
from tests.studio.played_suites import make_run, make_scenario, make_suite, play

pytestmark = pytest.mark.django_db


@pytest.fixture
def qa(caller_as: Callable[..., Caller]) -> Caller:
    return caller_as("qa")


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(slug="shop")
    make_guideline(
        agent, uid="refund", condition="a refund", tools=[make_tool(agent, name="check_order")]
    )
    make_guideline(agent, uid="late", condition="late")
    return agent


def test_guidelines_are_told_with_the_scenarios_that_judged_them(qa: Caller, agent: Agent) -> None:
    suite = make_suite(agent)
    expected = GuidelineExpectation(guideline="refund")
    scenario = make_scenario(suite, expected, title="Refund")
    make_scenario(suite, GuidelineExpectation(guideline="refund", matches=False))
    run = make_run(suite)
    cell = play(run, scenario, {"refund": "matched"}, {"refund": "dropped"})
    found: dict[str, Any] = qa.get("/agents/shop/coverage").json()
    assert (found["of"], found["runs"]) == ("runs", [run.pk])
    assert (found["coverage"], found["covered"], found["enabled"]) == (50, 1, 2)
    assert found["count"] == 2
    refund, late = found["guidelines"]
    assert refund == {
        "guideline": "refund",
        "condition": "a refund",
        "enabled": True,
        "fired": True,
        "evaluated": True,
        "positive": 1,
        "negative": 1,
        "covered": True,
        "missing": [],
        "scenarios": [
            {
                "suite": suite.pk,
                "scenario": scenario.uid,
                "title": "Refund",
                "sessions": [cell.session_id],
                "fired": 1,
                "evaluated": 2,
                "dropped": 1,
            }
        ],
    }
    assert late["missing"] == ["fired", "positive", "negative"]
    assert (late["evaluated"], late["scenarios"]) == (False, [])
    assert found["tools"] == [
        {"tool": "check_order", "called": False, "guidelines": ["refund"], "scenarios": 0}
    ]


def test_chats_are_told_instead_and_guidelines_in_pages(qa: Caller, agent: Agent) -> None:
    suite = make_suite(agent)
    play(make_run(suite), make_scenario(suite), {"late": "matched"})
    found = qa.get("/agents/shop/coverage?of=chats&limit=1&offset=1").json()
    assert (found["of"], found["runs"], found["count"]) == ("chats", [], 2)
    (late,) = found["guidelines"]
    assert (late["guideline"], late["fired"]) == ("late", False)


def test_what_is_asked_wrongly_is_a_problem(qa: Caller, agent: Agent) -> None:
    is_problem(qa.get("/agents/shop/coverage?of=dreams"), 422)
    is_problem(qa.get("/agents/nothing/coverage"), 404)
