"""What came of a run of a suite, read from its rows: verdicts on expectations, scenarios, versions and the run."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from django.db.models import Prefetch, prefetch_related_objects
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.expecting import (
    Aspect,
    Outcome,
    OutcomeState,
    Verdict,
    about,
    read_expectation,
    scenario_verdict,
    verdict_of,
)
from studio.models import AgentVersion, RunCell, SuiteRun


@dataclass(frozen=True, kw_only=True)
class CellReport:
    """One conversation. `verdict` is None until it is over; `problem` says why it tells nothing, or not all."""

    pk: int
    repeat: int
    state: RunCell.State
    session: int | None
    verdict: Verdict | None
    outcomes: dict[str, Outcome]  # by expectation
    spoiled: bool  # by the simulated customer
    problem: str
    ended_by: str
    tokens: int
    duration_ms: int
    retried: int

    @property
    def is_over(self) -> bool:
        return self.state == RunCell.State.DONE


@dataclass(frozen=True, kw_only=True)
class ExpectationReport:
    """One expectation over the repeats that are over; `outcomes` are by repeat."""

    uid: str
    sentence: str
    because: str
    aspect: Aspect
    at_least: int | None
    verdict: Verdict | None
    outcomes: tuple[tuple[CellReport, Outcome], ...]

    @property
    def held(self) -> int:
        return sum(outcome.state is OutcomeState.HELD for _cell, outcome in self.outcomes)

    @property
    def of(self) -> int:
        return len(self.outcomes)

    @property
    def instead(self) -> tuple[tuple[CellReport, Outcome], ...]:
        """What was found in the conversations in which it did not hold."""
        return tuple(one for one in self.outcomes if one[1].state is not OutcomeState.HELD)

    @property
    def instead_alike(self) -> tuple[tuple[str, tuple[tuple[CellReport, Outcome], ...]], ...]:
        """The same by what was found, without conversations that tell nothing: their problem is told of them."""
        found: dict[str, list[tuple[CellReport, Outcome]]] = defaultdict(list)
        for cell, outcome in self.instead:
            if outcome.because != cell.problem:
                found[outcome.because].append((cell, outcome))
        return tuple((because, tuple(places)) for because, places in found.items())


@dataclass(frozen=True, kw_only=True)
class ScenarioReport:
    """One scenario against one version. `verdict` is of the conversations that are over, None before the first."""

    uid: str
    title: str
    kind: str
    quarantined: date | None  # until then its failures did not count as the run began
    quarantine_reason: str
    cells: tuple[CellReport, ...]
    expectations: tuple[ExpectationReport, ...]
    verdict: Verdict | None

    @property
    def is_over(self) -> bool:
        return all(cell.is_over for cell in self.cells)

    @property
    def counts(self) -> bool:
        """Does its verdict count in that of the run? What passes always does."""
        return self.quarantined is None or self.verdict is Verdict.PASSED

    @property
    def passed_times(self) -> int:
        return sum(cell.verdict is Verdict.PASSED for cell in self.cells)

    @property
    def failing(self) -> tuple[ExpectationReport, ...]:
        """Those that did not pass."""
        return tuple(e for e in self.expectations if e.verdict not in {None, Verdict.PASSED})

    @property
    def failing_aspects(self) -> tuple[Aspect, ...]:
        """What the expectations are about that did not pass: decisions before wording before effort."""
        found = {expectation.aspect for expectation in self.failing}
        return tuple(aspect for aspect in Aspect if aspect in found)

    @property
    def problems(self) -> tuple[CellReport, ...]:
        return tuple(cell for cell in self.cells if cell.problem)

    @property
    def duration_ms(self) -> int:
        return sum(cell.duration_ms for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class VersionReport:
    version: AgentVersion
    scenarios: tuple[ScenarioReport, ...]
    verdict: Verdict | None

    @property
    def label(self) -> str:
        return str(self.version.label)


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """`verdict` is None while conversations are missing."""

    run: SuiteRun
    versions: tuple[VersionReport, ...]
    verdict: Verdict | None

    @property
    def total(self) -> int:
        return len(self.cells)

    @cached_property
    def cells(self) -> tuple[CellReport, ...]:
        return tuple(
            cell
            for version in self.versions
            for scenario in version.scenarios
            for cell in scenario.cells
        )

    @property
    def done(self) -> int:
        return sum(cell.is_over for cell in self.cells)

    @property
    def tokens(self) -> int:
        return sum(cell.tokens for cell in self.cells)

    @property
    def duration_ms(self) -> int:
        """Of all conversations, which were had side by side."""
        return sum(cell.duration_ms for cell in self.cells)

    @property
    def rows(self) -> tuple[tuple[ScenarioReport, tuple[ScenarioReport, ...]], ...]:
        """Each scenario, with its report against each version."""
        each = zip(*(version.scenarios for version in self.versions), strict=True)
        return tuple((reports[0], reports) for reports in each)

    @property
    def counted(self) -> dict[str, int]:
        """Verdict → scenarios × versions; "quarantined" are those that did not pass and do not count."""
        found = dict.fromkeys([*(verdict.value for verdict in Verdict), "quarantined"], 0)
        for version in self.versions:
            for scenario in version.scenarios:
                if scenario.verdict is not None:
                    key = scenario.verdict.value if scenario.counts else "quarantined"
                    found[key] += 1
        return found


def report(run: SuiteRun) -> RunReport:
    """Two queries, however long it is."""
    cells = list(run.cells.order_by("repeat").defer("model_calls"))
    read = _read(run, _versions(run), cells)
    return RunReport(run=run, versions=read, verdict=_of_versions(read))


def scenarios_of(
    runs: Sequence[SuiteRun], *, only: Collection[str] | None = None
) -> dict[int, list[ScenarioReport]]:
    """By run, what `report` says of its scenarios, or of those of the uids `only`: two queries, however many runs."""
    cells = RunCell.objects.filter(run__in=runs).order_by("repeat").defer("model_calls")
    if only is not None:
        cells = cells.filter(scenario__in=only)
    had: dict[tuple[int, int, str], list[RunCell]] = defaultdict(list)
    for cell in cells:
        had[cell.run_id, cell.version_id, cell.scenario].append(cell)
    prefetch_related_objects(runs, Prefetch("versions", AgentVersion.objects.without_spec()))
    return {
        run.pk: [
            _scenario(stored, _expected_in(stored), version, had[run.pk, version.pk, stored["uid"]])
            for version in order_of_versions(run.versions.all())
            for stored in run.scenarios
            if only is None or stored["uid"] in only
        ]
        for run in runs
    }


def verdict_of_run(run: SuiteRun) -> Verdict:
    """Of all its conversations, which are over."""
    return _of_versions(_read(run, _versions(run), list(run.cells.all()))) or Verdict.INVALID


def verdict_against(run: SuiteRun, fingerprint: str) -> Verdict | None:
    """Of the one version of the run that says this; None while conversations of it are missing."""
    versions = [one for one in _versions(run) if one.fingerprint == fingerprint]
    return _of_versions(_read(run, versions, list(run.cells.filter(version__in=versions))))


def needs_retry(cell: RunCell) -> bool:
    """Did this conversation not pass?"""
    if cell.state != RunCell.State.DONE:
        return False
    return _verdict_of_cell(cell, _outcomes(cell)) is not Verdict.PASSED


def order_of_versions(versions: Iterable[AgentVersion]) -> list[AgentVersion]:
    """The draft first, then the newest."""
    return sorted(
        versions, key=lambda version: (version.number is not None, -(version.number or 0))
    )


def _versions(run: SuiteRun) -> list[AgentVersion]:
    return order_of_versions(run.versions.defer("spec"))


def _read(
    run: SuiteRun, versions: Sequence[AgentVersion], cells: Sequence[RunCell]
) -> tuple[VersionReport, ...]:
    had: dict[tuple[int, str], list[RunCell]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: cell.repeat):
        had[cell.version_id, cell.scenario].append(cell)
    expected = [_expected_in(stored) for stored in run.scenarios]
    found = []
    for version in versions:
        scenarios = tuple(
            _scenario(stored, expectations, version, had[version.pk, stored["uid"]])
            for stored, expectations in zip(run.scenarios, expected, strict=True)
        )
        found.append(
            VersionReport(version=version, scenarios=scenarios, verdict=_of_scenarios(scenarios))
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """A stored expectation, read once for all versions."""

    stored: JsonObject
    aspect: Aspect
    at_least: int | None

    @classmethod
    def of(cls, stored: JsonObject) -> "_Expected":
        try:
            expectation = read_expectation(stored["data"])
        except SpecError:  # of a studio that knew other kinds
            return cls(stored=stored, aspect=Aspect.DECISIONS, at_least=None)
        return cls(stored=stored, aspect=about(expectation), at_least=expectation.at_least)


def _expected_in(scenario: JsonObject) -> tuple[_Expected, ...]:
    return tuple(_Expected.of(one) for one in scenario["expectations"])


def _scenario(
    stored: JsonObject,
    expected: Sequence[_Expected],
    version: AgentVersion,
    rows: Sequence[RunCell],
) -> ScenarioReport:
    retried = stored.get("retried", [])
    cells = tuple(_cell(row, retried.count([version.pk, row.repeat])) for row in rows)
    expectations = tuple(_expectation(one, cells) for one in expected)
    return ScenarioReport(
        uid=stored["uid"],
        title=stored["title"],
        kind=stored["kind"],
        quarantined=date.fromisoformat(stored["quarantined"]) if stored["quarantined"] else None,
        quarantine_reason=stored["quarantine_reason"],
        cells=cells,
        expectations=expectations,
        verdict=scenario_verdict(one.verdict for one in expectations if one.verdict is not None)
        if any(cell.is_over for cell in cells)
        else None,
    )


def _cell(row: RunCell, retried: int) -> CellReport:
    over = row.state == RunCell.State.DONE
    outcomes = _outcomes(row)
    return CellReport(
        pk=row.pk,
        repeat=row.repeat,
        state=RunCell.State(row.state),
        session=row.session_id if over else None,
        verdict=_verdict_of_cell(row, outcomes) if over else None,
        outcomes=outcomes,
        spoiled=bool(row.invalid),
        problem=row.invalid or row.error,
        ended_by=row.ended_by,
        tokens=row.prompt_tokens + row.completion_tokens,
        duration_ms=row.duration_ms,
        retried=retried,
    )


def _outcomes(row: RunCell) -> dict[str, Outcome]:
    return {
        one["expectation"]: Outcome(
            state=OutcomeState(one["state"]), because=one["because"], turn=one["turn"]
        )
        for one in row.outcomes
    }


def _verdict_of_cell(row: RunCell, outcomes: dict[str, Outcome]) -> Verdict:
    verdicts = [verdict_of([outcome], None) for outcome in outcomes.values()]
    if row.invalid or row.error:
        verdicts.append(Verdict.INVALID)
    return scenario_verdict(verdicts)


def _expectation(expected: _Expected, cells: Sequence[CellReport]) -> ExpectationReport:
    stored = expected.stored
    outcomes = tuple((cell, _outcome(stored["uid"], cell)) for cell in cells if cell.is_over)
    told = [outcome for _cell, outcome in outcomes]
    return ExpectationReport(
        uid=stored["uid"],
        sentence=stored["sentence"],
        because=stored.get("because", ""),
        aspect=expected.aspect,
        at_least=expected.at_least,
        verdict=verdict_of(told, expected.at_least) if told else None,
        outcomes=outcomes,
    )


def _outcome(uid: str, cell: CellReport) -> Outcome:
    """What held in a conversation that was spoiled or broke off is no proof: it is unknown."""
    outcome = cell.outcomes.get(uid)
    if outcome is None or (cell.problem and outcome.state is OutcomeState.HELD):
        return Outcome(state=OutcomeState.UNKNOWN, because=cell.problem or _("It was not checked."))
    return outcome


def _of_scenarios(scenarios: Sequence[ScenarioReport]) -> Verdict | None:
    """None while conversations are missing."""
    if not all(scenario.is_over for scenario in scenarios):
        return None
    return scenario_verdict(
        scenario.verdict
        for scenario in scenarios
        if scenario.counts and scenario.verdict is not None
    )


def _of_versions(versions: Sequence[VersionReport]) -> Verdict | None:
    verdicts = [version.verdict for version in versions]
    if None in verdicts:
        return None
    return scenario_verdict(verdict for verdict in verdicts if verdict is not None)
