"""Suites, their scenarios, and what is expected of each."""

from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine import spec
from engine.canonical import JsonObject
from engine.errors import SpecError
from studio.access import (
    May,
    load_agent,
    load_scenario,
    load_session,
    load_suite,
    require,
)
from studio.api.auth import caller
from studio.api.problems import ProblemError, invalid, invalid_form
from studio.api.reading import Body, Changes, Page, Paging
from studio.expectation_words import sentence
from studio.forms.scenarios import TOKENS, TURNS, ScenarioForm, scenario_json
from studio.forms.suite_files import read_suite as read_document
from studio.forms.suites import SuiteForm, suite_json
from studio.models import Agent, Expectation, Scenario, Suite
from studio.operations.document_report import DocumentError, Report
from studio.operations.scenario_expectations import replace_expectations
from studio.operations.scenarios import (
    ScenarioRefusedError,
    draft_of,
    keep_session,
    read,
)
from studio.operations.suite_documents import suite_text
from studio.operations.suites import remove_suite

router = Router(tags=["suites"])

_KINDS = "One of: " + ", ".join(Scenario.Kind.values)
_TOOLS = "One of: " + ", ".join(Scenario.Tools.values)
_MESSAGES = (
    'What a scripted customer says: {"text"}, or {"answer": "confirmed" or "declined", "tool"} for a button; '
    'with "together": true it belongs to the turn of the one before'
)
_EXPECTATIONS = (
    'Objects with a "kind" (guideline, tool, decision, order, reply_contains, reply_matches, no_promise, judged, '
    'handed_over, below) and its fields, "turn" and "at_least"; "because" says why. They replace those there are; '
    'one with the "uid" of another is that one, changed'
)


class SuiteOut(BaseModel):
    id: int
    agent: str
    name: str
    description: str
    repeats: int
    gates_publishing: bool
    scenarios: int = Field(description="How many")


class NewSuite(Body):
    agent: str = Field(description="Its slug")
    name: str
    description: str = ""
    repeats: int = 1
    gates_publishing: bool = False


class SuiteChanges(Changes):
    name: str = ""
    description: str = ""
    repeats: int = 1
    gates_publishing: bool = False


class ScenarioOut(BaseModel):
    uid: str
    title: str
    kind: str
    messages: list[JsonObject]
    brief: JsonObject
    tools: str
    customer_uid: str
    variables: JsonObject
    results: list[JsonObject]
    kept_from: int | None = Field(description="The session")
    quarantined_until: str | None
    quarantine_reason: str
    position: int
    expectations: list[JsonObject]


class Brief(Body):
    persona: str = ""
    goal: str = ""
    stop: str = ""
    turns: int = TURNS
    tokens: int = TOKENS


class NewScenario(Body):
    session: int | None = Field(None, description="Keep this session; then only title and up_to")
    up_to: int | None = Field(None, ge=1, description="The last turn of the session to keep")
    title: str = ""
    kind: str = Field(Scenario.Kind.SCRIPTED.value, description=_KINDS)
    messages: list[JsonObject] = Field(default_factory=list, description=_MESSAGES)
    brief: Brief = Field(default_factory=Brief, description="Of a simulated customer")
    tools: str = Field(Scenario.Tools.LIVE.value, description=_TOOLS)
    customer_uid: str = ""
    variables: JsonObject = Field(default_factory=dict)
    expectations: list[JsonObject] = Field(default_factory=list, description=_EXPECTATIONS)


class ScenarioChanges(Changes):
    title: str = ""
    kind: str = Field("", description=_KINDS)
    messages: list[JsonObject] = Field(default_factory=list, description=_MESSAGES)
    brief: Brief = Field(default_factory=Brief, description="Of a simulated customer")
    tools: str = Field("", description=_TOOLS)
    customer_uid: str = ""
    variables: JsonObject = Field(default_factory=dict)
    expectations: list[JsonObject] = Field(default_factory=list, description=_EXPECTATIONS)


class ImportedRow(BaseModel):
    place: str
    uid: str
    title: str
    change: str
    problems: list[JsonObject]


class SuiteImportOut(BaseModel):
    id: int | None = Field(description="The suite; null where none was made")
    dry_run: bool
    changed: bool
    rows: list[ImportedRow]


def _suite(row: Suite) -> JsonObject:
    return {
        "id": row.pk,
        "agent": row.agent.slug,
        **suite_json(row),
        "scenarios": row.scenarios.count(),
    }


def _scenario(row: Scenario, agent: spec.Agent) -> JsonObject:
    until = row.quarantined_until
    return {
        "uid": row.uid,
        **scenario_json(row),
        "results": row.results,
        "kept_from": row.kept_from_id,
        "quarantined_until": until.isoformat() if until else None,
        "quarantine_reason": row.quarantine_reason,
        "position": row.position,
        "expectations": [_expectation(one, agent) for one in row.expectations.all()],
    }


def _expectation(row: Expectation, agent: spec.Agent) -> JsonObject:
    try:
        words = sentence(read(row), agent)
    except SpecError as error:
        words = str(error)
    return {"uid": row.uid, **row.data, "because": row.because, "sentence": words}


@router.get("/suites", response=Page[SuiteOut])
def list_suites(
    request: HttpRequest, paging: Query[Paging], agent: str | None = None
) -> JsonObject:
    """By agent and name; `agent` (a slug) leaves those of one."""
    require(caller(request), May.VIEW)
    rows: Any = Suite.objects.select_related("agent").order_by("agent__name", "name")
    if agent is not None:
        rows = rows.filter(agent__slug=agent)
    return paging.page(rows, _suite)


@router.post("/suites", response={201: SuiteOut})
def create_suite(request: HttpRequest, body: NewSuite) -> Status[JsonObject]:
    person = caller(request)
    agent = load_agent(person, body.agent, May.TEST)
    form = SuiteForm.from_json(agent, body.model_dump(exclude={"agent"}))
    if not form.is_valid():
        raise invalid_form(form)
    return Status(201, _suite(form.store(person.username)))


# Before `/suites/{suite_id}`, which would take it for a suite.
@router.post(
    "/suites/import",
    response=SuiteImportOut,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                kind: {"schema": {"type": "object"}}
                for kind in ("application/yaml", "application/json")
            },
        }
    },
)
def import_suite_document(request: HttpRequest, agent: str, dry_run: bool = False) -> JsonObject:
    """Make the suite of the document's name, of the agent `agent`, what the document says; make it where there is none.

    The body is the document, YAML or JSON, as `export` writes it. With `dry_run=true`, and where anything is wrong,
    nothing is changed.
    """
    person = caller(request)
    row = load_agent(person, agent, May.TEST)
    try:
        text = request.body.decode()
    except UnicodeDecodeError as error:
        raise ProblemError(400, _("The document is not UTF-8: %(why)s") % {"why": error}) from error
    try:
        report, suite = read_document(text, row, dry_run=dry_run, by=person.username)
    except DocumentError as error:
        problem = invalid(*((found.place, found.message) for found in error.report.problems))
        raise ProblemError(
            problem.status, problem.detail, **problem.more, rows=_rows(error.report)
        ) from error
    return {
        "id": suite.pk if suite is not None else None,
        "dry_run": dry_run,
        "changed": report.changed,
        "rows": _rows(report),
    }


def _rows(report: Report) -> list[JsonObject]:
    return [
        {
            "place": row.place,
            "uid": row.uid,
            "title": row.title,
            "change": row.change.value,
            "problems": [
                {"field": problem.place, "message": problem.message} for problem in row.problems
            ],
        }
        for row in report.rows
    ]


@router.get("/suites/{suite_id}", response=SuiteOut)
def read_suite(request: HttpRequest, suite_id: int) -> JsonObject:
    return _suite(load_suite(caller(request), suite_id))


@router.patch("/suites/{suite_id}", response=SuiteOut)
def update_suite(request: HttpRequest, suite_id: int, body: SuiteChanges) -> JsonObject:
    person = caller(request)
    row = load_suite(person, suite_id, May.TEST)
    form = SuiteForm.from_json(row.agent, body.given(), instance=row)
    if not form.is_valid():
        raise invalid_form(form)
    return _suite(form.store(person.username))


@router.delete("/suites/{suite_id}", response={204: None})
def delete_suite(request: HttpRequest, suite_id: int) -> Status[None]:
    remove_suite(load_suite(caller(request), suite_id, May.TEST))
    return Status(204, None)


@router.get("/suites/{suite_id}/export", response={200: str})
def export_suite(
    request: HttpRequest,
    suite_id: int,
    format: Literal["yaml", "json"] = "yaml",  # noqa: A002
) -> HttpResponse:
    """The suite as one document in a stable order, fit for version control."""
    suite = load_suite(caller(request), suite_id)
    return HttpResponse(suite_text(suite, format), content_type=f"application/{format}")


@router.get("/suites/{suite_id}/scenarios", response=Page[ScenarioOut])
def list_scenarios(request: HttpRequest, suite_id: int, paging: Query[Paging]) -> JsonObject:
    """In their order."""
    suite = load_suite(caller(request), suite_id)
    agent = draft_of(suite.agent)
    rows: Any = suite.scenarios.prefetch_related("expectations")
    return paging.page(rows, lambda row: _scenario(row, agent))


@router.post("/suites/{suite_id}/scenarios", response={201: ScenarioOut})
def create_scenario(request: HttpRequest, suite_id: int, body: NewScenario) -> Status[JsonObject]:
    """One that is written, or with `session` one that is kept of a session, its results and what was known included."""
    person = caller(request)
    suite = load_suite(person, suite_id, May.TEST)
    with transaction.atomic():
        if body.session is not None:
            row = _kept(request, suite, body)
        else:
            told = body.model_dump(exclude={"session", "up_to", "expectations"})
            row = _saved(ScenarioForm.from_json(suite, told), person.username)
        _expect(row, body.expectations, person.username)
    return Status(201, _shown(row, suite.agent))


def _kept(request: HttpRequest, suite: Suite, body: NewScenario) -> Scenario:
    person = caller(request)
    more = set(body.model_fields_set) - {"session", "up_to", "title", "expectations"}
    if more or body.session is None:
        raise invalid((min(more), _("This is taken from the session; leave it out.")))
    session = load_session(person, body.session)
    try:
        return keep_session(session, suite, title=body.title, up_to=body.up_to, by=person.username)
    except ScenarioRefusedError as error:
        raise invalid((error.field, error)) from error


@router.get("/suites/{suite_id}/scenarios/{uid}", response=ScenarioOut)
def read_scenario(request: HttpRequest, suite_id: int, uid: str) -> JsonObject:
    row = load_scenario(caller(request), suite_id, uid)
    return _shown(row, row.suite.agent)


@router.patch("/suites/{suite_id}/scenarios/{uid}", response=ScenarioOut)
def update_scenario(
    request: HttpRequest, suite_id: int, uid: str, body: ScenarioChanges
) -> JsonObject:
    """`expectations`, where they are given, replace those there are."""
    person = caller(request)
    row = load_scenario(person, suite_id, uid, May.TEST)
    told = body.given()
    expectations = told.pop("expectations", None)
    with transaction.atomic():
        row = _saved(ScenarioForm.from_json(row.suite, told, instance=row), person.username)
        if expectations is not None:
            _expect(row, expectations, person.username)
    return _shown(row, row.suite.agent)


@router.delete("/suites/{suite_id}/scenarios/{uid}", response={204: None})
def delete_scenario(request: HttpRequest, suite_id: int, uid: str) -> Status[None]:
    load_scenario(caller(request), suite_id, uid, May.TEST).delete()
    return Status(204, None)


def _saved(form: ScenarioForm, by: str) -> Scenario:
    if not form.is_valid():
        raise invalid_form(form)
    return form.store(by)


def _expect(row: Scenario, expectations: list[JsonObject], by: str) -> None:
    try:
        replace_expectations(row, expectations, by=by)
    except ScenarioRefusedError as error:
        raise invalid((f"expectations.{error.field}", error)) from error


def _shown(row: Scenario, agent: Agent) -> JsonObject:
    return _scenario(row, draft_of(agent))
