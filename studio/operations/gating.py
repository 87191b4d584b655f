"""Suites that gate publishing: the draft is published only if each of them passed against just that draft."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from engine.expecting import Verdict
from studio.models import Agent, JobState, Suite, SuiteRun
from studio.operations.run_snapshots import speaks_of
from studio.run_reports import verdict_against


class GateState(StrEnum):
    PASSED = "passed"
    FAILED = "failed"  # it did not pass: failed, flaky or invalid
    RUNNING = "running"
    MISSING = "missing"  # there is no run of the whole suite, as it is now, against this draft
    EMPTY = "empty"  # the suite has no scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One suite before a publication; `run` is the one that tells, or that is on its way."""

    suite: Suite
    state: GateState
    run: SuiteRun | None = None
    verdict: Verdict | None = None

    @property
    def is_open(self) -> bool:
        return self.state is GateState.PASSED

    @property
    def words(self) -> str:
        """Why it is shut, and what to do; of an open one, that it is open."""
        names = {"suite": self.suite.name, "run": self.run.pk if self.run else 0}
        match self.state:
            case GateState.PASSED:
                return _("“%(suite)s” passed against this draft in run %(run)d.") % names
            case GateState.FAILED:
                return (
                    _(
                        "“%(suite)s” did not pass against this draft: see run %(run)d, correct the draft or the "
                        "suite, and run it again."
                    )
                    % names
                )
            case GateState.RUNNING:
                return (
                    _("“%(suite)s” is being run against this draft: wait for run %(run)d.") % names
                )
            case GateState.EMPTY:
                return (
                    _("“%(suite)s” gates publishing and has no scenario: write one first.") % names
                )
            case GateState.MISSING:
                return (
                    _("“%(suite)s” was not run as a whole against this draft yet: run it now.")
                    % names
                )


class GateShutError(Exception):
    """Publishing waits for suites; `gates` are those, and the text says what each wants."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        super().__init__(" ".join(gate.words for gate in gates))
        self.gates = tuple(gates)


def gates_of(agent: Agent, fingerprint: str) -> list[Gate]:
    """One for each suite of the agent that gates publishing what has this fingerprint."""
    suites = agent.suites.filter(gates_publishing=True)
    return [_gate(suite, fingerprint) for suite in suites]


def require_gates(agent: Agent, fingerprint: str) -> None:
    """Raises GateShutError."""
    shut = [gate for gate in gates_of(agent, fingerprint) if not gate.is_open]
    if shut:
        raise GateShutError(shut)


def _gate(suite: Suite, fingerprint: str) -> Gate:
    """The newest run of the whole suite decides, or a newer one of a part that did not pass."""
    if not suite.scenarios.exists():
        return Gate(suite=suite, state=GateState.EMPTY)
    runs = suite.runs.filter(versions__fingerprint=fingerprint).distinct().order_by("-pk")
    told = None
    for run in runs.filter(state=JobState.FINISHED)[:_LOOKED_AT]:
        is_current, is_whole = speaks_of(run, suite)
        if not is_current:
            continue
        verdict = verdict_against(run, fingerprint)
        if verdict is not Verdict.PASSED:
            told = Gate(suite=suite, state=GateState.FAILED, run=run, verdict=verdict)
            break
        if is_whole:
            return Gate(suite=suite, state=GateState.PASSED, run=run, verdict=verdict)
    under_way = runs.unfinished().first()
    if under_way is not None:
        return Gate(suite=suite, state=GateState.RUNNING, run=under_way)
    return told or Gate(suite=suite, state=GateState.MISSING)


_LOOKED_AT = 20  # runs, the newest first
