"""The tool shed: what there is, and running one tool by hand."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind
from studio.access import May, load_tool, require
from studio.api.auth import caller
from studio.api.problems import ProblemError, invalid
from studio.api.reading import Body, Page, Paging
from studio.api.sessions import customer_named
from studio.live import in_database
from studio.models import Customer, Tool
from studio.models.tool import ToolQuerySet
from studio.operations.hand_calls import ArgumentsRefusedError, checked_problems
from studio.operations.tool_runs import Ran, run_tool
from studio.tool_figures import Figures, figures_of, tier_warning

router = Router(tags=["tools"])

# What our own caller may make of a failure: a tool is behind us as an upstream server is behind a gateway.
_STATUS = {
    ToolErrorKind.TIMEOUT: 504,
    ToolErrorKind.UNAVAILABLE: 503,
    ToolErrorKind.NOT_ALLOWED: 403,
}


class FiguresOut(BaseModel):
    """How its calls went in the last 30 days; null where nothing was measured."""

    calls: int
    errors: int
    median_ms: float | None
    p95_ms: float | None


class ToolOut(BaseModel):
    uid: str
    name: str
    description: str
    parameters: list[dict[str, Any]]
    consequential: bool
    confirm: str = Field(
        description="When the customer is asked before a consequential call: always, or inferred "
        "(only where an argument is the model's own conclusion)"
    )
    latency: str
    timeout: float | None = Field(description="Seconds; null takes the latency tier's")
    enabled: bool
    available: bool = Field(
        description="Enabled, its code is there, and of an uploaded tool its environment is built"
    )
    unavailable: str = Field(description="Why it is not available, in a sentence; else empty")
    kind: str = Field(description="function, or template: a tool instance")
    instance: int | None = Field(description="The id of the tool instance that it is")
    origin: str
    figures: FiguresOut
    tier_warning: str = Field(
        description="A sentence where the measured times are not those of the latency tier, else empty"
    )
    created_at: datetime
    updated_at: datetime


def shown_tool(row: Tool) -> JsonObject:
    return _shown(row, figures_of([row])[row.name])


def page_of_tools(paging: Paging, rows: ToolQuerySet) -> JsonObject:
    page = paging.page(rows.with_instances(), lambda row: row)
    figures = figures_of(page["items"])
    return page | {"items": [_shown(row, figures[row.name]) for row in page["items"]]}


def _shown(row: Tool, figures: Figures) -> JsonObject:
    plain = {name: getattr(row, name) for name in ToolOut.model_fields if hasattr(row, name)}
    unavailable = _unavailable(row)
    return plain | {
        "available": not unavailable,
        "unavailable": unavailable,
        "instance": row.instance.pk if row.kind == Tool.Kind.TEMPLATE else None,
        "figures": {name: getattr(figures, name) for name in FiguresOut.model_fields},
        "tier_warning": tier_warning(row, figures),
    }


def _unavailable(row: Tool) -> str:
    if row.missing_since is not None:
        return _("Its code is gone.")
    if not row.enabled:
        return _("It is switched off.")
    if row.kind != Tool.Kind.TEMPLATE or row.instance.environment.is_ready:
        return ""
    environment = row.instance.environment
    if not environment.is_over:
        return _("Its environment is being built.")
    if not environment.error:
        return _("Building its environment was stopped.")
    return _("Its environment could not be built: %(error)s") % {"error": environment.error}


class ToolRunRequest(Body):
    arguments: dict[str, Any] = Field(default_factory=dict)
    customer: str | None = Field(None, description="The uid of whom the tool is to be run for")


class SaidOut(BaseModel):
    kind: Literal["status", "message", "print"] = Field(
        description="print: what an uploaded tool wrote to its streams, without its secrets"
    )
    text: str


class ToolRunOut(BaseModel):
    data: Any
    metadata: dict[str, Any]
    log: list[SaidOut]
    duration_ms: int


@router.get("/tools", response=Page[ToolOut])
def list_tools(
    request: HttpRequest,
    paging: Query[Paging],
    enabled: bool | None = None,
    agent: str | None = None,
) -> JsonObject:
    """By name; `agent` leaves those that an agent may use."""
    require(caller(request), May.VIEW)
    given = {"enabled": enabled, "agents__slug": agent}
    rows = Tool.objects.filter(**{k: v for k, v in given.items() if v is not None})
    return page_of_tools(paging, rows)


@router.get("/tools/{name}", response=ToolOut)
def read_tool(request: HttpRequest, name: str) -> JsonObject:
    return shown_tool(load_tool(caller(request), name))


@router.post("/tools/{name}/run", response=ToolRunOut)
async def run(request: HttpRequest, name: str, body: ToolRunRequest) -> JsonObject:
    """Run the tool for real, with these arguments; what it changes is changed.

    A failure is a problem with the `kind` of the ToolError: timeout, exception, bad_output, too_large, unavailable,
    not_allowed, unknown_outcome.
    """

    def load() -> tuple[Tool, Customer | None]:
        tool = load_tool(caller(request), name, May.MANAGE_TOOLS)
        return tool, customer_named(body.customer)

    tool, customer = await in_database(load)
    try:
        ended = await run_tool(tool, body.arguments, customer=customer)
    except ArgumentsRefusedError as error:
        raise invalid(
            *((f"arguments.{name}", reason) for name, reason in checked_problems(error.checked))
        ) from error
    if ended.error is not None:
        raise _problem(tool, ended, ended.error)
    return {
        "data": ended.data,
        "metadata": ended.metadata,
        "log": _log(ended),
        "duration_ms": ended.duration_ms,
    }


def _log(ended: Ran) -> list[JsonObject]:
    return [{"kind": said.kind, "text": said.text} for said in ended.log]


def _problem(tool: Tool, ended: Ran, error: ToolError) -> ProblemError:
    return ProblemError(
        _STATUS.get(error.kind, 502),
        f"{tool.name!r} failed: {error.public}.",
        kind=error.kind,
        explanation=error.detail,  # for developers, who alone may run tools
        log=_log(ended),
        duration_ms=ended.duration_ms,
    )
