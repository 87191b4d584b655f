"""The list of agents, and one agent: overview, versions, settings, deletion."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from studio.access import May, allowed, load_agent, require
from studio.bridge import agent_spec
from studio.forms.agents import AgentForm, DeleteAgentForm, PublishForm
from studio.guards import guards_of, share_of
from studio.http import refused, show
from studio.models import Agent, AgentVersion, Guideline, Session
from studio.operations.agents import NothingToPublishError, publish, restore, snapshot
from studio.operations.changes import Changes, compare, draft_spec
from studio.operations.gating import Gate, GateShutError, gates_of
from studio.operations.removal import AgentBusyError, delete_agent
from studio.suite_status import status_of
from studio.views.session_rows import rows_of
from studio.views.signed_in import SignedInRequest

DEMO = "harbor-bank"
_PER_PAGE = 50
_RECENT = 5
_REPLAYED = 20  # newest chats that are offered for a replay before publishing
_GUIDELINES_PER_PAGE = 200


def _counted(rows: QuerySet[Any], *, by: str, only: Q | None = None) -> Coalesce:
    """How many of `rows` belong to each agent: a subquery each, because joins would multiply one another."""
    mine = rows.filter(**{by: OuterRef("pk")}).order_by()
    count = mine.values(by).annotate(n=Count("pk", filter=only)).values("n")
    return Coalesce(Subquery(count, output_field=IntegerField()), Value(0))


def _with_counts(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    sessions = Session.objects.chats().filter(agent=OuterRef("pk")).order_by("-last_event_at")
    return (
        agents.select_related("published", "snapshot")
        .defer("published__spec", "snapshot__spec")
        .annotate(
            guideline_count=_counted(Guideline.objects.all(), by="agent"),
            enabled_count=_counted(Guideline.objects.all(), by="agent", only=Q(enabled=True)),
            session_count=_counted(Session.objects.chats(), by="agent"),
            talked_at=Subquery(sessions.values("last_event_at")[:1]),
        )
    )


def is_changed(agent: Agent) -> bool:
    """Was the draft edited since it was published? An edit that was taken back counts until the next snapshot."""
    published, snapshot = agent.published, agent.snapshot
    if published is None or published.published_at is None:
        return False
    if snapshot is not None:
        return snapshot.fingerprint != published.fingerprint
    return agent.updated_at > published.published_at


@login_required
@require_GET
def agent_list(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.VIEW)
    search = request.GET.get("q", "").strip()
    rows = Agent.objects.all()
    if search:
        rows = rows.filter(Q(name__icontains=search) | Q(description__icontains=search))
    page = Paginator(rows.order_by("name", "pk"), _PER_PAGE).get_page(request.GET.get("page"))
    # Only the rows of this page are counted.
    shown = _with_counts(Agent.objects.filter(pk__in=[row.pk for row in page.object_list]))
    agents = list(shown.order_by("name", "pk"))
    tests = status_of(agents)
    context = {
        "page": page,
        "rows": [(row, is_changed(row), tests[row.pk]) for row in agents],
        "search": search,
        "query": urlencode({"q": search}) if search else "",
        "demo": Agent.objects.filter(slug=DEMO).first() if not search else None,
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
    }
    return show(request, "agents/list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def agent_new(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.WRITE_GUIDELINES)
    form = AgentForm(request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return show(request, "agents/new.html", {"form": form})
    if not form.is_valid():
        return refused(request, "agents/new.html", {"form": form})
    agent = form.save()
    messages.success(request, _("The agent is there. Write its first guideline next."))
    return redirect("agent", slug=agent.slug)


@login_required
@require_GET
def overview(request: SignedInRequest, slug: str) -> HttpResponse:
    """Draft against published, and what happened last."""
    agent = load_agent(request.user, slug)
    counted = _with_counts(Agent.objects.filter(pk=agent.pk)).get()
    recent = agent.sessions.chats().order_by("-last_event_at", "-pk").values_list("pk", flat=True)
    context = {
        "agent": agent,
        "counted": counted,
        "tool_count": agent.tools.count(),
        "changes": _changes(counted),
        "tests": status_of([agent])[agent.pk],
        "share": share_of(agent, guards_of(agent)),
        "recent": rows_of(recent[:_RECENT]),
        "form": PublishForm(),
        "gates": _gates(agent),
        **_permissions(request),
    }
    return show(request, "agents/overview.html", context)


def _permissions(request: SignedInRequest) -> dict[str, bool]:
    return {
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
        "may_publish": allowed(request.user, May.PUBLISH),
        "may_converse": allowed(request.user, May.CONVERSE),
    }


def _changes(agent: Agent) -> Changes | None:
    """What publishing would change; None where nothing is published yet."""
    if agent.published is None:
        return None
    published = agent_spec(agent.published)
    return compare(published, draft_spec(agent) if is_changed(agent) else published)


def _gates(agent: Agent) -> list[Gate]:
    """What publishing waits for; without suites that gate it, one query."""
    if not agent.suites.filter(gates_publishing=True).exists():
        return []
    return gates_of(agent, snapshot(agent).fingerprint)


@login_required
@require_http_methods(["GET", "POST"])
def versions(request: SignedInRequest, slug: str) -> HttpResponse:
    """All published versions; a POST publishes the draft."""
    agent = load_agent(request.user, slug, May.PUBLISH if request.method == "POST" else May.VIEW)
    form = PublishForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            version = publish(agent, note=form.cleaned_data["note"], by=request.user)
        except NothingToPublishError:
            form.add_error(
                None, _("The draft is what is published already: change something first.")
            )
        except GateShutError as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request, _("Version %(number)s is published.") % {"number": version.number}
            )
            return redirect("agent-versions", slug=slug)
    rows = agent.versions.published().select_related("published_by").defer("spec")
    page = Paginator(rows.order_by("-number"), _PER_PAGE).get_page(request.GET.get("page"))
    counted = Agent.objects.select_related("published", "snapshot").get(pk=agent.pk)
    context = {
        "agent": agent,
        "page": page,
        "changes": _changes(counted),
        "form": form,
        "gates": _gates(agent),
        "replayable": _newest_chats(agent) if allowed(request.user, May.TEST) else [],
        **_permissions(request),
    }
    if form.errors:
        return refused(request, "agents/versions.html", context)
    return show(request, "agents/versions.html", context)


def _newest_chats(agent: Agent) -> list[int]:
    """Those to replay before the draft is published."""
    rows = agent.sessions.chats().filter(next_turn__gt=1)
    return list(rows.order_by("-last_event_at", "-pk").values_list("pk", flat=True)[:_REPLAYED])


def _version(agent: Agent, number: int) -> AgentVersion:
    rows = agent.versions.select_related("published_by").defer("spec")
    version = rows.filter(number=number).first() if number < 2**31 else None
    if version is None:
        raise Http404(_("This agent has no version %(number)d.") % {"number": number})
    return version


@login_required
@require_GET
def version_page(request: SignedInRequest, slug: str, number: int) -> HttpResponse:
    """What a version says, word for word, and what the draft says differently."""
    agent = load_agent(request.user, slug)
    version = _version(agent, number)
    value = agent_spec(version)
    guidelines = Paginator(value.guidelines, _GUIDELINES_PER_PAGE)
    context = {
        "agent": agent,
        "version": version,
        "spec": value,
        "page": guidelines.get_page(request.GET.get("page")),
        "changes": compare(value, draft_spec(agent)),
        **_permissions(request),
    }
    return show(request, "agents/version.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def version_restore(request: SignedInRequest, slug: str, number: int) -> HttpResponse:
    """Make the draft what a version was: first a page that says what would change, then the change."""
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    version = _version(agent, number)
    if request.method != "POST":
        changes = compare(draft_spec(agent), agent_spec(version))
        context = {"agent": agent, "version": version, "changes": changes}
        return show(request, "agents/restore.html", context)
    missing = restore(agent, version)
    messages.success(
        request, _("The draft is again what version %(number)s was.") % {"number": number}
    )
    if missing:
        messages.warning(
            request,
            _("These tools are no longer there and were left out: %(names)s.")
            % {"names": ", ".join(missing)},
        )
    return redirect("agent", slug=slug)


@login_required
@require_http_methods(["GET", "POST"])
def agent_settings(request: SignedInRequest, slug: str) -> HttpResponse:
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    form = AgentForm(request.POST if request.method == "POST" else None, instance=agent)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Saved. The next turn on the draft uses it."))
        return redirect("agent-settings", slug=slug)
    # The form writes into the row it is given; what the page says of the agent is what is stored.
    context = {"agent": load_agent(request.user, slug), "form": form}
    if form.errors:
        return refused(request, "agents/settings.html", context)
    return show(request, "agents/settings.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def agent_delete(request: SignedInRequest, slug: str) -> HttpResponse:
    """A page that says what goes with the agent; deleting takes its name."""
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    form = DeleteAgentForm(request.POST if request.method == "POST" else None, agent=agent)
    if request.method == "POST" and form.is_valid():
        try:
            delete_agent(agent)
        except AgentBusyError:
            form.add_error(None, _("A turn of it is running. Stop it, or wait for its end."))
        else:
            messages.success(request, _("“%(name)s” is deleted.") % {"name": agent.name})
            return redirect("agents")
    counted = _with_counts(Agent.objects.filter(pk=agent.pk)).get()
    version_count = agent.versions.published().count()
    context = {"agent": agent, "form": form, "counted": counted, "version_count": version_count}
    if form.errors:
        return refused(request, "agents/delete.html", context)
    return show(request, "agents/delete.html", context)
