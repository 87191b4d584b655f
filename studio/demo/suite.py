"""The demo's suite: its first sessions kept as tests, what was decided in them expected, and a simulated customer."""

from typing import Final

from django.db import transaction

from engine.expecting import Expectation, GuidelineExpectation, ReplyContainsExpectation
from studio.models import Agent, Scenario, Suite
from studio.operations import proposals
from studio.operations.scenario_messages import said_in
from studio.operations.scenarios import add_expectation, keep_session, save_scenario
from studio.operations.suites import save_suite

NAME: Final = "What must go on working"
_BECAUSE: Final = "It was so in the demo's first sessions."


@transaction.atomic
def keep_suite(agent: Agent) -> Suite:
    """Make the suite of the agent's sessions."""
    suite = save_suite(
        Suite(agent=agent, name=NAME, description="The demo's first sessions, kept as tests.")
    )
    for session in agent.sessions.order_by("pk"):
        scenario = keep_session(session, suite)
        said = said_in(session)
        for proposal in proposals.of_session(session):
            expected = proposals.in_scenario(proposal.expectation, said)
            if proposal.likely and expected is not None:
                add_expectation(scenario, expected, because=_BECAUSE)
    _keep_silent(suite)
    _simulate(suite)
    return suite


def _keep_silent(suite: Suite) -> None:
    """Expect of each guideline that fired in one session that it does not in the next in which it was silent."""
    fired = {
        scenario: {
            e.data["guideline"] for e in scenario.expectations.filter(data__kind="guideline")
        }
        for scenario in suite.scenarios.order_by("position")
    }
    scenarios = list(fired)
    for uid in sorted(set().union(*fired.values())):
        first = next(place for place, scenario in enumerate(scenarios) if uid in fired[scenario])
        others = scenarios[first + 1 :] + scenarios[:first]
        silent = next((scenario for scenario in others if uid not in fired[scenario]), None)
        if silent is not None:
            never = GuidelineExpectation(guideline=uid, matches=False)
            add_expectation(silent, never, because="It has nothing to do with this.")


def _simulate(suite: Suite) -> None:
    scenario = Scenario(
        suite=suite,
        title="Somebody wants to know what a second card costs",
        kind=Scenario.Kind.SIMULATED,
        brief={
            "persona": "A student who has one card and counts every euro.",
            "goal": "find out what a second card costs",
            "stop": "The agent has named the price.",
            "turns": 4,
            "tokens": 20_000,
        },
    )
    save_scenario(scenario)
    fees = suite.agent.guidelines.get(uid="fees")
    expected: tuple[Expectation, ...] = (
        GuidelineExpectation(guideline=fees.uid),
        ReplyContainsExpectation(text="12 EUR"),
    )
    for expectation in expected:
        add_expectation(scenario, expectation, because="Fees are told, not guessed.")
