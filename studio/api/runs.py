"""Runs of suites: started, read as a report, held and gone on with; JUnit XML and CSV for build servers."""

from datetime import date, datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_run, load_suite
from studio.api.auth import caller
from studio.api.problems import conflict, invalid
from studio.api.reading import Body, Page, Paging
from studio.models import ModelConnection, SuiteRun
from studio.operations import lanes
from studio.operations.suite_runs import (
    CREW,
    MOST_REPEATS,
    RunRefusedError,
    retry_failed,
    start_run,
)
from studio.run_costs import cost_of_run
from studio.run_files import junit, table
from studio.run_reports import (
    CellReport,
    ExpectationReport,
    RunReport,
    ScenarioReport,
    report,
)

router = Router(tags=["suites"])

_XML = {200: {"content": {"application/xml": {"schema": {"type": "string"}}}}}
_CSV = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_Version = Annotated[str | int, Field(description="“draft”, “published” or a number")]


class NewRun(Body):
    against: list[_Version] = Field(["draft"], max_length=20)
    repeats: int | None = Field(
        None, ge=1, le=MOST_REPEATS, description="Left out, as often as the suite says"
    )
    connection: str | None = Field(None, description="A model connection's name; else the default")
    cap: int = Field(0, ge=0, le=10**12, description="Tokens; 0 for no cap")
    scenarios: list[str] | None = Field(None, description="Uids; left out, all")


class Resumption(Body):
    cap: int | None = Field(None, ge=0, le=10**12, description="Another cap; 0 for none")


class RunOut(BaseModel):
    id: int
    suite: int
    agent: str
    state: str = Field(description="queued, running, finished, failed or stopped")
    paused: bool
    capped: bool = Field(description="It ended because its cap was reached")
    verdict: str = Field(description="passed, failed, flaky or invalid; empty until it is finished")
    error: str
    against: list[str]
    repeats: int
    connection: str
    cap: int
    total: int = Field(description="Conversations")
    started_by: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class OutcomeOut(BaseModel):
    repeat: int
    session: int | None
    state: str = Field(description="held, failed or unknown")
    because: str
    turn: int | None


class ExpectationOut(BaseModel):
    uid: str
    sentence: str
    about: str = Field(description="decisions, wording or effort")
    at_least: int | None
    verdict: str | None
    held: int
    outcomes: list[OutcomeOut]


class CellOut(BaseModel):
    repeat: int
    state: str = Field(description="waiting, running or done")
    verdict: str | None
    session: int | None
    invalid: bool = Field(description="The simulated customer did not keep to the brief")
    problem: str
    ended_by: str
    tokens: int
    duration_ms: int
    retried: int


class ScenarioOut(BaseModel):
    uid: str
    title: str
    kind: str
    verdict: str | None
    quarantined_until: date | None
    counts: bool = Field(description="Does its verdict count in that of the run?")
    expectations: list[ExpectationOut]
    conversations: list[CellOut]


class VersionOut(BaseModel):
    number: int | None = Field(description="None for a draft")
    fingerprint: str
    verdict: str | None
    scenarios: list[ScenarioOut]


class RunDetail(RunOut):
    done: int
    tokens: int
    cost: dict[str, Any] = Field(description="`amounts` and `unpriced`, at today's prices")
    counted: dict[str, int] = Field(
        description="Scenarios × versions by verdict; `quarantined` do not count"
    )
    versions: list[VersionOut]


@router.post("/suites/{int:suite_id}/runs", response={202: RunOut})
def create_run(request: HttpRequest, suite_id: int, body: NewRun) -> Status[JsonObject]:
    """Run the suite. The verdict is there when `state` is finished; `GET /runs/{id}` says how far it is."""
    person = caller(request)
    suite = load_suite(person, suite_id, May.TEST)
    try:
        run = start_run(
            suite,
            against=body.against,
            repeats=body.repeats,
            connection=_connection(body.connection),
            cap=body.cap,
            scenarios=body.scenarios,
            by=person.get_username(),
        )
    except RunRefusedError as error:
        raise invalid((error.field, error)) from error
    return Status(202, _shown(run))


def _connection(name: str | None) -> ModelConnection | None:
    if name is None:
        return None
    row = ModelConnection.objects.filter(name=name).first()
    if row is None:
        raise invalid(("connection", _("There is no connection %(name)r.") % {"name": name}))
    return row


@router.get("/suites/{int:suite_id}/runs", response=Page[RunOut])
def list_runs(request: HttpRequest, suite_id: int, paging: Query[Paging]) -> JsonObject:
    """The newest first."""
    suite = load_suite(caller(request), suite_id)
    rows = suite.runs.select_related("suite__agent", "connection").defer("scenarios")
    return paging.page(rows.order_by("-pk"), _shown)


@router.get("/runs/{int:run_id}", response=RunDetail)
def read_run(request: HttpRequest, run_id: int) -> JsonObject:
    """The report, as far as the run has come."""
    run = load_run(caller(request), run_id)
    return _shown(run) | _detail(report(run)) | {"cost": cost_of_run(run)}


@router.get("/runs/{int:run_id}.xml", openapi_extra={"responses": _XML})
def read_run_as_junit(request: HttpRequest, run_id: int) -> HttpResponse:
    """JUnit XML: a testsuite per version, a testcase per scenario."""
    text = junit(report(load_run(caller(request), run_id)))
    return HttpResponse(text, content_type="application/xml; charset=utf-8")


@router.get("/runs/{int:run_id}.csv", openapi_extra={"responses": _CSV})
def read_run_as_table(request: HttpRequest, run_id: int) -> HttpResponse:
    """A row for each conversation and expectation."""
    text = table(report(load_run(caller(request), run_id)))
    return HttpResponse(text, content_type="text/csv; charset=utf-8")


@router.post("/runs/{int:run_id}/pause", response=RunOut)
def pause_run(request: HttpRequest, run_id: int) -> JsonObject:
    """Begin no further conversation. 409 where it is over or paused."""
    run = load_run(caller(request), run_id, May.TEST)
    if not lanes.pause(run):
        raise conflict(_("The run is over, or paused already."))
    return _again(run)


@router.post("/runs/{int:run_id}/resume", response={202: RunOut})
def resume_run(
    request: HttpRequest, run_id: int, body: Resumption | None = None
) -> Status[JsonObject]:
    """Go on with what is left, of a run that was paused, cancelled or capped; a capped one takes another cap.

    409 where nothing is left.
    """
    run = load_run(caller(request), run_id, May.TEST)
    cap = body.cap if body else None
    if run.capped and cap is None:
        raise conflict(_("It was stopped at its cap: give another `cap`, or 0 for none."))
    if not lanes.go_on(CREW, run, cap=cap):
        raise conflict(_("The run goes on already, or nothing of it is left."))
    return Status(202, _again(run))


@router.post("/runs/{int:run_id}/cancel", response=RunOut)
def cancel_run(request: HttpRequest, run_id: int) -> JsonObject:
    """End it now; what is done is kept. 409 where it is over."""
    run = load_run(caller(request), run_id, May.TEST)
    if not lanes.cancel(CREW, run):
        raise conflict(_("The run is over already."))
    return _again(run)


@router.post("/runs/{int:run_id}/retry", response={202: RunOut})
def retry_run(request: HttpRequest, run_id: int) -> Status[JsonObject]:
    """Have the conversations once more that did not pass. 409 where it is not over, or everything passed."""
    run = load_run(caller(request), run_id, May.TEST)
    if not retry_failed(run):
        raise conflict(_("The run is not over, or everything in it passed."))
    return Status(202, _again(run))


def _again(run: SuiteRun) -> JsonObject:
    run.refresh_from_db()
    return _shown(run)


def _shown(run: SuiteRun) -> JsonObject:
    plain = (
        "id state paused capped verdict error against repeats cap total started_by queued_at "
        "started_at finished_at"
    )
    return {name: getattr(run, name) for name in plain.split()} | {
        "suite": run.suite_id,
        "agent": run.suite.agent.slug,
        "connection": run.connection.name if run.connection else "",
    }


def _detail(found: RunReport) -> JsonObject:
    return {
        "done": found.done,
        "tokens": found.tokens,
        "counted": found.counted,
        "versions": [
            {
                "number": one.version.number,
                "fingerprint": one.version.fingerprint,
                "verdict": one.verdict,
                "scenarios": [_scenario(scenario) for scenario in one.scenarios],
            }
            for one in found.versions
        ],
    }


def _scenario(one: ScenarioReport) -> JsonObject:
    return {
        "uid": one.uid,
        "title": one.title,
        "kind": one.kind,
        "verdict": one.verdict,
        "quarantined_until": one.quarantined,
        "counts": one.counts,
        "expectations": [_expectation(expectation) for expectation in one.expectations],
        "conversations": [_cell(cell) for cell in one.cells],
    }


def _expectation(one: ExpectationReport) -> JsonObject:
    return {
        "uid": one.uid,
        "sentence": one.sentence,
        "about": one.aspect,
        "at_least": one.at_least,
        "verdict": one.verdict,
        "held": one.held,
        "outcomes": [
            {
                "repeat": cell.repeat,
                "session": cell.session,
                "state": outcome.state,
                "because": outcome.because,
                "turn": outcome.turn,
            }
            for cell, outcome in one.outcomes
        ],
    }


def _cell(cell: CellReport) -> JsonObject:
    return {
        "repeat": cell.repeat,
        "state": cell.state,
        "verdict": cell.verdict,
        "session": cell.session,
        "invalid": cell.spoiled,
        "problem": cell.problem,
        "ended_by": cell.ended_by,
        "tokens": cell.tokens,
        "duration_ms": cell.duration_ms,
        "retried": cell.retried,
    }
