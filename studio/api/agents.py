"""Agents: their settings, the tools they may use, and the whole of one as a document."""

from datetime import datetime
from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_agent, load_tool, require
from studio.api.auth import caller
from studio.api.problems import ProblemError, conflict, invalid
from studio.api.reading import Body, Changes, Page, Paging
from studio.api.tools import ToolOut, page_of_tools, shown_tool
from studio.forms.agents import AgentForm, agent_json
from studio.models import Agent, Tool
from studio.operations.agents import (
    ToolInUseError,
    allow_tool,
    disallow_tool,
)
from studio.operations.contents import content_of
from studio.operations.documents import DocumentError, Report, import_document, to_text
from studio.operations.removal import AgentBusyError, delete_agent

router = Router(tags=["agents"])

_TYPES = {"yaml": "application/yaml", "json": "application/json"}


class AgentOut(BaseModel):
    slug: str
    name: str
    description: str
    tone: str
    composition: str
    no_match: str
    verified_replies: bool
    max_iterations: int
    published: int | None = Field(description="The number of the published version")
    created_at: datetime
    updated_at: datetime


def _agent(row: Agent) -> JsonObject:
    return {
        **agent_json(row),
        "published": row.published.number if row.published is not None else None,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


class NewAgent(Body):
    name: str
    slug: str = Field("", description="Taken from the name where it is left out")
    description: str = ""
    tone: str = Field("", description="How the agent speaks")
    composition: str = Agent.Composition.FLUID.value
    no_match: str = Field(
        "", description="Said where only canned responses may be used and none fits"
    )
    verified_replies: bool = False
    max_iterations: int = 3


class AgentChanges(Changes):
    name: str = ""
    slug: str = ""
    description: str = ""
    tone: str = ""
    composition: str = ""
    no_match: str = ""
    verified_replies: bool = False
    max_iterations: int = 0


class RowOut(BaseModel):
    place: str = Field(
        description="“agent”, “guidelines[0]”, “terms[2]” …; empty for one that goes"
    )
    uid: str
    title: str
    change: Literal["create", "update", "unchanged", "delete", "error"]
    errors: list[dict[str, str]]


class ImportOut(BaseModel):
    slug: str
    dry_run: bool
    changed: bool = Field(description="Whether anything is, or would be, another than before")
    rows: list[RowOut]


@router.get("/agents", response=Page[AgentOut])
def list_agents(request: HttpRequest, paging: Query[Paging]) -> JsonObject:
    """By name."""
    require(caller(request), May.VIEW)
    return paging.page(Agent.objects.select_related("published").defer("published__spec"), _agent)


@router.post("/agents", response={201: AgentOut})
def create_agent(request: HttpRequest, body: NewAgent) -> Status[JsonObject]:
    require(caller(request), May.WRITE_GUIDELINES)
    return Status(201, _saved(AgentForm.from_json(body.model_dump())))


def _saved(form: AgentForm) -> JsonObject:
    if not form.is_valid():
        raise invalid(*form.json_errors())
    agent = form.save()
    agent.refresh_from_db()
    return _agent(agent)


# Before `/agents/{slug}`, which would take it for an agent.
@router.post(
    "/agents/import",
    response=ImportOut,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "object"}} for kind in _TYPES.values()},
        }
    },
)
def import_agent(request: HttpRequest, dry_run: bool = False) -> JsonObject:
    """Make the draft of the agent that the document names what the document says; create it where there is none.

    The body is the document, YAML or JSON, as `export` writes it. The answer says of the agent and of each guideline
    what becomes of it. With `dry_run=true`, and where anything is wrong, nothing is changed.
    """
    require(caller(request), May.WRITE_GUIDELINES)
    try:
        text = request.body.decode()
    except UnicodeDecodeError as error:
        raise ProblemError(400, _("The document is not UTF-8: %(why)s") % {"why": error}) from error
    try:
        report = import_document(text, dry_run=dry_run)
    except DocumentError as error:
        problem = invalid(*((found.place, found.message) for found in error.report.problems))
        raise ProblemError(
            problem.status, problem.detail, **problem.more, rows=_rows(error.report)
        ) from error
    return {
        "slug": report.slug,
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
            "errors": [{"field": p.place, "message": p.message} for p in row.problems],
        }
        for row in report.rows
    ]


@router.get("/agents/{slug}", response=AgentOut)
def read_agent(request: HttpRequest, slug: str) -> JsonObject:
    return _agent(load_agent(caller(request), slug))


@router.patch("/agents/{slug}", response=AgentOut)
def update_agent(request: HttpRequest, slug: str, body: AgentChanges) -> JsonObject:
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    return _saved(AgentForm.from_json(body.given(), instance=agent))


@router.delete("/agents/{slug}", response={204: None})
def remove_agent(request: HttpRequest, slug: str, with_sessions: bool = False) -> Status[None]:
    """Delete the agent with its guidelines and versions.

    409 where it has sessions, unless `with_sessions=true` says that their record may go too, and while a turn runs.
    """
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    count = agent.sessions.chats().count()
    if count and not with_sessions:
        raise conflict(
            _("%(agent)s has %(count)d sessions; with_sessions=true deletes them too.")
            % {"agent": agent.name, "count": count}
        )
    try:
        delete_agent(agent)
    except AgentBusyError as error:
        raise conflict(_("A turn of it is running; stop it, or wait for its end.")) from error
    return Status(204, None)


@router.get(
    "/agents/{slug}/export",
    openapi_extra={
        "responses": {
            200: {
                "description": "The document",
                "content": {kind: {"schema": {"type": "object"}} for kind in _TYPES.values()},
            }
        }
    },
)
def export_agent(
    request: HttpRequest,
    slug: str,
    format: Literal["yaml", "json"] = "yaml",  # noqa: A002
) -> HttpResponse:
    """The draft as one document, the same text for the same draft."""
    agent = load_agent(caller(request), slug)
    response = HttpResponse(
        to_text(content_of(agent), format), content_type=f"{_TYPES[format]}; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{agent.slug}.{format}"'
    return response


@router.get("/agents/{slug}/tools", response=Page[ToolOut])
def list_agent_tools(request: HttpRequest, slug: str, paging: Query[Paging]) -> JsonObject:
    """The tools of the shed that this agent may use, by name."""
    agent = load_agent(caller(request), slug)
    return page_of_tools(paging, Tool.objects.filter(agents=agent))


@router.put("/agents/{slug}/tools/{name}", response=ToolOut)
def add_agent_tool(request: HttpRequest, slug: str, name: str) -> JsonObject:
    """Let the agent use the tool."""
    person = caller(request)
    agent = load_agent(person, slug, May.CHOOSE_TOOLS)
    tool = load_tool(person, name)
    if not agent.tools.filter(pk=tool.pk).exists():
        allow_tool(agent, tool)
    return shown_tool(tool)


@router.delete("/agents/{slug}/tools/{name}", response={204: None})
def remove_agent_tool(request: HttpRequest, slug: str, name: str) -> Status[None]:
    """The agent may no longer use the tool. 409 while guidelines have it attached."""
    agent = load_agent(caller(request), slug, May.CHOOSE_TOOLS)
    tool: Any = agent.tools.filter(name=name).first()
    if tool is None:
        raise Http404(
            _("%(agent)s does not use a tool %(tool)r.") % {"agent": agent.name, "tool": name}
        )
    try:
        disallow_tool(agent, tool)
    except ToolInUseError as error:
        raise ProblemError(
            409,
            _("%(count)d guidelines use %(tool)s; take it out of them first.")
            % {"count": len(error.guidelines), "tool": name},
            guidelines=[guideline.uid for guideline in error.guidelines],
        ) from error
    return Status(204, None)
