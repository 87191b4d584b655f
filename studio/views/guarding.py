"""Which scenarios guard a guideline: what they expect of it or of its tools, and what came of them last."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Q

from engine.errors import SpecError
from engine.expecting import Expectation
from studio.expectation_words import sentence
from studio.guards import expectations_of, speaks_of
from studio.models import Agent, Guideline, Scenario
from studio.operations.changes import draft_spec
from studio.operations.scenarios import read
from studio.run_reports import ScenarioReport
from studio.suite_status import newest_runs, verdicts_by_scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardingScenario:
    scenario: Scenario
    sentences: tuple[str, ...]  # those that speak of the guideline or of its tools
    came_to: ScenarioReport | None  # in the newest finished run of its suite


def guarding(guideline: Guideline) -> list[GuardingScenario]:
    """In the order of the suites. A constant number of queries."""
    found = _expected(guideline)
    if not found:
        return []
    agents = Agent.objects.select_related("snapshot").defer("snapshot__spec")
    spec = draft_spec(agents.get(pk=guideline.agent_id))
    runs = newest_runs([guideline.agent]).filter(suite__in={row.suite_id for row in found})
    verdicts = verdicts_by_scenario(runs, only={row.uid for row in found})
    return [
        GuardingScenario(
            scenario=scenario,
            sentences=tuple(sentence(expectation, spec) for expectation in expectations),
            came_to=verdicts.get((scenario.suite_id, scenario.uid)),
        )
        for scenario, expectations in found.items()
    ]


def _expected(guideline: Guideline) -> dict[Scenario, list[Expectation]]:
    tools = list(guideline.tools.values_list("name", flat=True))
    naming = Q(data__guideline=guideline.uid) | Q(data__tool__in=tools) | Q(data__kind="order")
    rows = expectations_of(guideline.agent).filter(naming).select_related("scenario__suite")
    found: dict[Scenario, list[Expectation]] = defaultdict(list)
    for row in rows.order_by("scenario__suite__name", "scenario__position", "pk"):
        try:
            expectation = read(row)
        except SpecError:  # a studio of other expectations stored it
            continue
        if speaks_of(expectation, guideline.uid, tools):
            found[row.scenario].append(expectation)
    return found
