"""The tool shed, one tool of it, and which of them an agent may use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import push_url

from studio.access import May, allowed, load_agent, load_tool, require
from studio.forms.tools import ToolForm
from studio.http import announce, is_part, show
from studio.models import Agent, JobState, Tool
from studio.operations.agents import ToolInUseError, allow_tool, disallow_tool
from studio.operations.tools import follow_code, overridden
from studio.tool_figures import Figures, figures_of, tier_warning
from studio.views.signed_in import SignedInRequest

_HEALTH = {
    "ok": Q(enabled=True, missing_since__isnull=True)
    & (Q(instance__isnull=True) | Q(instance__environment__state=JobState.FINISHED)),
    "off": Q(enabled=False),
    "missing": Q(missing_since__isnull=False),
    "building": Q(instance__environment__state__in=[JobState.QUEUED, JobState.RUNNING]),
    "failed": Q(instance__environment__state__in=[JobState.FAILED, JobState.STOPPED]),
}
_FILTERS = ("q", "kind", "health", "changes", "agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the address of the shed asks for."""

    q: str = ""
    kind: str = ""  # of Tool.Kind, or empty
    health: str = ""  # of _HEALTH, or empty
    changes: str = ""  # "yes", "no" or empty
    agent: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Chosen":
        return cls(
            **{name: query.get(name, "").replace("\x00", "").strip()[:200] for name in _FILTERS}
        )

    @property
    def any(self) -> bool:
        return any(getattr(self, name) for name in _FILTERS)

    @property
    def query(self) -> str:
        values = {name: getattr(self, name) for name in _FILTERS}
        encoded = urlencode({name: value for name, value in values.items() if value})
        return f"?{encoded}" if encoded else ""

    def found(self) -> list[Tool]:
        tools = Tool.objects.with_instances()
        for word in self.q.split():
            tools = tools.filter(Q(name__icontains=word) | Q(description__icontains=word))
        if self.kind in Tool.Kind.values:
            tools = tools.filter(kind=self.kind)
        if self.health in _HEALTH:
            tools = tools.filter(_HEALTH[self.health])
        if self.changes in ("yes", "no"):
            tools = tools.filter(consequential=self.changes == "yes")
        if self.agent:
            tools = tools.filter(agents__slug=self.agent)
        return list(tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    tool: Tool
    figures: Figures

    @property
    def tier_warning(self) -> str:
        return tier_warning(self.tool, self.figures)


@login_required
@require_GET
def tool_list(request: SignedInRequest) -> HttpResponse:
    """The shed; filters are in the address."""
    require(request.user, May.VIEW)
    chosen = Chosen.read(request.GET)
    tools = chosen.found()
    figures = figures_of(tools)
    context = {
        "chosen": chosen,
        "lines": [Line(tool=tool, figures=figures[tool.name]) for tool in tools],
        "agents": list(Agent.objects.values("slug", "name")),
        "tool_count": Tool.objects.count(),
        "may_manage": allowed(request.user, May.MANAGE_TOOLS),
    }
    response = show(request, "tools/list.html", context, part="tools")
    if request.headers.get("HX-Trigger") == "search":  # without the filters that are left empty
        push_url(response, reverse("tools") + chosen.query)
    return response


@login_required
@require_http_methods(["GET", "POST"])
def tool_page(request: SignedInRequest, name: str) -> HttpResponse:
    """One tool: what it does and needs, how its calls went, and what developers may change about it."""
    if request.method == "GET":
        tool = load_tool(request.user, name)
        return _tool(request, tool, ToolForm(instance=tool))
    tool = load_tool(request.user, name, May.MANAGE_TOOLS)
    form = ToolForm(request.POST, instance=tool)
    if not form.is_valid():
        tool.refresh_from_db()
        return _tool(request, tool, form, status=422)
    form.save()
    if not is_part(request):
        messages.success(request, _("Saved. The next turn of every agent that uses it runs on it."))
        return redirect("tool", name=name)
    response = _tool(request, tool, ToolForm(instance=tool), saved=True)
    return announce(response, "tool:saved", name=name)


def _tool(
    request: SignedInRequest, tool: Tool, form: ToolForm, *, status: int = 200, saved: bool = False
) -> HttpResponse:
    figures = figures_of([tool])[tool.name]
    may_manage = allowed(request.user, May.MANAGE_TOOLS)
    context = {
        "tool": tool,
        "examples": list(tool.run_examples.all()) if may_manage else [],
        "last_run": tool.runs.defer("log", "result").first() if may_manage else None,
        "form": form,
        "saved": saved,
        "errors": list(form.all_errors()) if form.is_bound else [],
        "overridden": overridden(tool),
        "figures": figures,
        "tier_warning": tier_warning(tool, figures),
        "may_manage": may_manage,
    }
    return show(request, "tools/tool.html", context, part="form", status=status)


@login_required
@require_POST
def tool_code(request: SignedInRequest, name: str) -> HttpResponse:
    """Gives up what people changed: the tool is again what its code says."""
    tool = load_tool(request.user, name, May.MANAGE_TOOLS)
    follow_code(tool)
    messages.success(request, _("It is as its code says again."))
    return redirect("tool", name=name)


@login_required
@require_GET
def agent_tools(request: SignedInRequest, slug: str) -> HttpResponse:
    """The shed as an agent sees it: what it may use, and what else there is."""
    return _agent_tools(request, load_agent(request.user, slug))


@login_required
@require_POST
def agent_tool(request: SignedInRequest, slug: str, name: str) -> HttpResponse:
    """Lets the agent use the tool (`allowed=yes`), or no longer; refused while guidelines have it attached."""
    agent = load_agent(request.user, slug, May.CHOOSE_TOOLS)
    tool = load_tool(request.user, name)
    try:
        if request.POST.get("allowed") == "yes":
            allow_tool(agent, tool)
            said = _("%(agent)s may use %(tool)s now.")
        else:
            disallow_tool(agent, tool)
            said = _("%(agent)s no longer uses %(tool)s.")
    except ToolInUseError as error:
        return _agent_tools(request, agent, status=422, refused=error)
    said = said % {"agent": agent.name, "tool": tool.name}
    if is_part(request):
        return _agent_tools(request, agent, said=said)
    messages.success(request, said)
    return redirect("agent-tools", slug=slug)


def _agent_tools(
    request: SignedInRequest, agent: Agent, *, status: int = 200, **more: Any
) -> HttpResponse:
    tools = list(Tool.objects.with_instances())
    chosen = set(agent.tools.values_list("pk", flat=True))
    through = agent.guidelines.filter(tools__isnull=False)
    attached = dict(through.values_list("tools").annotate(count=Count("pk")).order_by())
    context = {
        "agent": agent,
        "chosen": [(tool, attached.get(tool.pk, 0)) for tool in tools if tool.pk in chosen],
        "others": [tool for tool in tools if tool.pk not in chosen],
        "may_choose": allowed(request.user, May.CHOOSE_TOOLS),
        **more,
    }
    return show(request, "tools/agent.html", context, part="agent-tools", status=status)
