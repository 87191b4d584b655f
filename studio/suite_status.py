"""How the tests of agents stand: the newest finished run of each suite, and which scenarios did not pass in it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Max, QuerySet

from engine.expecting import Verdict
from studio.models import Agent, JobState, Suite, SuiteRun
from studio.run_reports import ScenarioReport, scenarios_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteStatus:
    suite: Suite
    run: SuiteRun | None = None  # the newest finished one
    going_on: SuiteRun | None = None
    failing: tuple[ScenarioReport, ...] = ()  # once each, those that count


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTests:
    """Of all suites of an agent."""

    suites: tuple[SuiteStatus, ...] = ()

    @property
    def failing(self) -> int:
        """Scenarios that did not pass."""
        return sum(len(suite.failing) for suite in self.suites)

    @property
    def passed(self) -> bool:
        """Every suite has been run, and nothing failed."""
        return bool(self.suites) and all(
            one.run is not None and one.run.verdict == Verdict.PASSED for one in self.suites
        )


def newest_runs(agents: Iterable[Agent]) -> QuerySet[SuiteRun]:
    """The newest finished run of each suite of these agents, with its suite."""
    finished = SuiteRun.objects.filter(suite__agent__in=list(agents), state=JobState.FINISHED)
    newest = finished.order_by().values("suite").annotate(newest=Max("pk")).values("newest")
    rows = SuiteRun.objects.filter(pk__in=newest).select_related("suite")
    return rows.order_by("suite__name", "suite_id")


def status_of(agents: Sequence[Agent]) -> dict[int, AgentTests]:
    """By agent, each of them; five queries, however many there are."""
    suites = Suite.objects.filter(agent__in=agents).order_by("name", "pk")
    runs = {run.suite_id: run for run in newest_runs(agents)}
    open_runs = SuiteRun.objects.unfinished().filter(suite__agent__in=agents).defer("scenarios")
    going_on = {run.suite_id: run for run in open_runs.order_by("pk")}
    failed = [run for run in runs.values() if run.verdict != Verdict.PASSED]
    read = scenarios_of(failed) if failed else {}
    found: dict[int, list[SuiteStatus]] = defaultdict(list)
    for suite in suites:
        run = runs.get(suite.pk)
        found[suite.agent_id].append(
            SuiteStatus(
                suite=suite,
                run=run,
                going_on=going_on.get(suite.pk),
                failing=_failing(read.get(run.pk, ())) if run is not None else (),
            )
        )
    return {agent.pk: AgentTests(suites=tuple(found[agent.pk])) for agent in agents}


def _failing(scenarios: Iterable[ScenarioReport]) -> tuple[ScenarioReport, ...]:
    """Each once, against whichever version it did not pass first; those set aside do not count."""
    found: dict[str, ScenarioReport] = {}
    for scenario in scenarios:
        if scenario.counts and scenario.verdict is not Verdict.PASSED:
            found.setdefault(scenario.uid, scenario)
    return tuple(found.values())


def verdicts_by_scenario(
    runs: Iterable[SuiteRun], *, only: Collection[str] | None = None
) -> dict[tuple[int, str], ScenarioReport]:
    """(suite, scenario) → what came of it in the run of its suite; of several versions, where it did not pass.

    `only` are uids of scenarios.
    """
    listed = list(runs)
    read = scenarios_of(listed, only=only)
    found: dict[tuple[int, str], ScenarioReport] = {}
    for run in listed:
        for scenario in read[run.pk]:
            known = found.get((run.suite_id, scenario.uid))
            if known is None or known.verdict is Verdict.PASSED:
                found[run.suite_id, scenario.uid] = scenario
    return found
