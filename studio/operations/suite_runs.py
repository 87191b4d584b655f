"""Runs of suites: every scenario against every version, repeated, and what came of the expectations.

A run keeps what it ran as it was then, so that its report stays true whatever becomes of the suite.
"""

import logging
import random
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.db import transaction
from django.db.models import Avg, F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from engine.trail import ModelCall
from studio import bridge
from studio.models import (
    AgentVersion,
    JobState,
    ModelConnection,
    RunCell,
    Scenario,
    Session,
    Suite,
    SuiteRun,
)
from studio.operations import lanes
from studio.operations.played_sessions import remove_played
from studio.operations.rehearsals import NoLongerWantedError, open_rehearsal
from studio.operations.run_snapshots import scenario_of, snapshot_of
from studio.operations.scenario_play import Had, customer_of, have
from studio.operations.versions import VersionUnknownError, version_named
from studio.run_reports import needs_retry, verdict_of_run

log = logging.getLogger(__name__)

MOST_REPEATS: Final = 20
MOST_CELLS: Final = 5_000
_APART = 16  # cells among which lanes choose, so that they do not meet


class RunRefusedError(Exception):
    """It cannot be run like that; `field` names what to change, the text says how."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def start_run(
    suite: Suite,
    *,
    against: Sequence[str | int] = ("draft",),
    repeats: int | None = None,
    connection: ModelConnection | None = None,
    cap: int = 0,
    scenarios: Sequence[str] | None = None,
    by: str = "",
    enqueue: bool = True,
) -> SuiteRun:
    """Run all scenarios of the suite, or those of these uids. Raises RunRefusedError.

    Without `enqueue` no worker is told: who asked works it through (lanes.play_here).
    """
    times = suite.repeats if repeats is None else repeats
    if not 1 <= times <= MOST_REPEATS:
        message = _("Each scenario is run 1 to %(most)d times.") % {"most": MOST_REPEATS}
        raise RunRefusedError("repeats", message)
    if cap < 0:
        raise RunRefusedError("cap", _("A cap is a number of tokens, 0 for none."))
    with transaction.atomic():
        versions = _versions(suite, against)
        chosen = _chosen(suite, scenarios)
        count = len(chosen) * len(versions) * times
        if count > MOST_CELLS:
            raise RunRefusedError(
                "repeats",
                _("These are %(count)d conversations; a run has at most %(most)d. Run fewer.")
                % {"count": count, "most": MOST_CELLS},
            )
        run = SuiteRun.objects.create(
            suite=suite,
            against=[str(name) for name in against],
            repeats=times,
            connection=connection,
            cap=cap,
            total=count,
            scenarios=snapshot_of(chosen, bridge.agent_spec(versions[0]), connection=connection),
            started_by=by[:150],
        )
        run.versions.set(versions)
        RunCell.objects.bulk_create(
            (
                RunCell(run=run, scenario=scenario.uid, version=version, repeat=repeat)
                for repeat in range(1, times + 1)
                for scenario in chosen
                for version in versions
            ),
            batch_size=500,
        )
        if enqueue:
            lanes.start(CREW, run)
    return run


def _versions(suite: Suite, against: Sequence[str | int]) -> list[AgentVersion]:
    """Each once, also where the draft is what is published."""
    if not against:
        raise RunRefusedError("against", _("Choose at least one version to run against."))
    found: dict[str, AgentVersion] = {}
    for name in against:
        try:
            version = version_named(suite.agent, name)
        except VersionUnknownError as error:
            raise RunRefusedError("against", str(error)) from error
        found.setdefault(version.fingerprint, version)
    return list(found.values())


def _chosen(suite: Suite, uids: Sequence[str] | None) -> list[Scenario]:
    rows = list(suite.scenarios.prefetch_related("expectations"))
    if not rows:
        raise RunRefusedError("scenarios", _("The suite has no scenario yet: write one first."))
    if uids is None:
        return rows
    known = {row.uid for row in rows}
    unknown = [uid for uid in uids if uid not in known]
    if unknown or not uids:
        raise RunRefusedError(
            "scenarios",
            _("The suite has no scenario %(uids)s.") % {"uids": ", ".join(map(repr, unknown))}
            if unknown
            else _("Choose at least one scenario."),
        )
    return [row for row in rows if row.uid in uids]


def retry_failed(run: SuiteRun, *, enqueue: bool = True) -> bool:
    """Have the conversations once more that failed, were invalid or could not be had; the report says that it did.

    False where the run is not over, or there is none.
    """
    with transaction.atomic():
        locked = SuiteRun.objects.select_for_update().get(pk=run.pk)
        if not locked.is_over:
            return False
        again = [cell for cell in locked.cells.all() if needs_retry(cell)]
        if not again:
            return False
        for cell in again:
            _scenario(locked, cell.scenario).setdefault("retried", []).append(
                [cell.version_id, cell.repeat]
            )
        _forget([cell.session_id for cell in again])
        RunCell.objects.filter(pk__in=[cell.pk for cell in again]).update(
            state=RunCell.State.WAITING,
            claims=F("claims") + 1,
            finished_at=None,
            prompt_tokens=0,
            completion_tokens=0,
            duration_ms=0,
            session=None,
            outcomes=[],
            invalid="",
            error="",
            ended_by="",
            model_calls=[],
        )
        SuiteRun.objects.filter(pk=run.pk).update(
            state=JobState.QUEUED,
            stop_requested=False,
            paused=False,
            capped=False,
            error="",
            verdict="",
            scenarios=locked.scenarios,
            queued_at=timezone.now(),
            started_at=None,
            heartbeat_at=None,
            finished_at=None,
        )
        run.refresh_from_db()
        if enqueue:
            lanes.start(CREW, run)
    return True


def newest_run(suite: Suite, version: AgentVersion) -> SuiteRun | None:
    """The newest run that went to its end against what this version says, whatever number it has."""
    rows = suite.runs.filter(
        state=JobState.FINISHED, versions__fingerprint=version.fingerprint
    ).distinct()
    row: SuiteRun | None = rows.order_by("-pk").first()
    return row


class _SuiteRuns:
    kind: ClassVar[str] = "suite run"
    batches: ClassVar[Any] = SuiteRun.objects
    cells: ClassVar[Any] = RunCell.objects

    def cells_of(self, batch: SuiteRun) -> Any:
        return RunCell.objects.filter(run=batch)

    def next_keys(self, batch: SuiteRun) -> list[int]:
        """One conversation."""
        waiting = self.cells_of(batch).waiting().order_by("pk")
        first = list(waiting.values_list("pk", flat=True)[:_APART])
        return [random.choice(first)] if first else []  # noqa: S311 - so that lanes do not meet

    def expected_tokens(self, batch: SuiteRun, keys: Sequence[int]) -> int:
        """As many as its conversations used so far; before the first is over, what was expected at the start."""
        cells = self.cells_of(batch)
        used = dict(
            cells.over()
            .order_by()
            .values_list("scenario")
            .annotate(mean=Avg(F("prompt_tokens") + F("completion_tokens")))
        )
        expected = {one["uid"]: used.get(one["uid"], one["tokens"]) for one in batch.scenarios}
        scenarios = cells.filter(pk__in=keys).values_list("scenario", flat=True)
        return int(sum(expected[uid] for uid in scenarios))

    def waits_long(self, batch: SuiteRun) -> bool:  # noqa: ARG002
        return True

    def closing(self, batch: SuiteRun) -> dict[str, Any]:
        """No verdict where the cap left some conversations out."""
        if self.cells_of(batch).filter(~Q(state=RunCell.State.DONE)).exists():
            return {"verdict": ""}
        return {"verdict": verdict_of_run(SuiteRun.objects.get(pk=batch.pk)).value}

    def play(self, batch: SuiteRun, keys: Sequence[int], hand: lanes.Hand) -> None:
        run = SuiteRun.objects.select_related("suite__agent", "connection").get(pk=batch.pk)
        for cell in RunCell.objects.filter(pk__in=keys).select_related("version"):
            if hand.wanted():
                _play(run, cell, hand)


CREW = _SuiteRuns()
lanes.register(CREW)


def _play(run: SuiteRun, cell: RunCell, hand: lanes.Hand) -> None:
    """Have one conversation, from its beginning: what a lost worker had of it is deleted."""
    _forget([cell.session_id])
    stored = _scenario(run, cell.scenario)
    session = _open(run, cell, stored)
    if session is None:
        return
    try:
        had = have(session, cell.version, scenario_of(stored), stored["expectations"], hand.wanted)
    except (NoLongerWantedError, Session.DoesNotExist):
        log.info("A conversation of suite run %s was given up.", run.pk)
        _forget([session.pk])
        return
    except Exception as problem:
        log.exception("The scenario %s of suite run %s could not be played.", cell, run.pk)
        hand.finish(cell.pk, error=f"{type(problem).__name__}: {problem}"[:4000])
        return
    if not hand.finish(cell.pk, **_result(had)):
        _forget([session.pk])


def _open(run: SuiteRun, cell: RunCell, stored: JsonObject) -> Session | None:
    """The session of this conversation; None where the cell is no longer this lane's."""
    live = stored["tools"] == Scenario.Tools.LIVE
    mine = RunCell.objects.filter(pk=cell.pk, claims=cell.claims, state=RunCell.State.RUNNING)
    with transaction.atomic():
        session = open_rehearsal(
            run.suite.agent,
            cell.version,
            Session.Purpose.TEST,
            title=stored["title"],
            customer=customer_of(stored["customer_uid"]),
            connection=run.connection,
            tool_mode=Session.ToolMode.LIVE if live else Session.ToolMode.RECORDED,
        )
        if mine.update(session=session):
            return session
        transaction.set_rollback(True)
    return None


def _result(had: Had) -> JsonObject:
    return {
        "outcomes": had.outcomes,
        "invalid": had.invalid[:4000],
        "error": had.error[:4000],
        "ended_by": had.ended_by,
        "prompt_tokens": had.prompt_tokens,
        "completion_tokens": had.completion_tokens,
        "duration_ms": had.duration_ms,
        "model_calls": [_spent(call) for call in had.calls],
    }


def _spent(call: ModelCall) -> JsonObject:
    return {
        "question": call.question,
        "model": call.model,
        "prompt_tokens": call.prompt_tokens,
        "cached_tokens": call.cached_tokens,
        "completion_tokens": call.completion_tokens,
    }


def _scenario(run: SuiteRun, uid: str) -> JsonObject:
    return next(one for one in run.scenarios if one["uid"] == uid)


def _forget(sessions: Sequence[int | None]) -> None:
    remove_played(pk for pk in sessions if pk is not None)
