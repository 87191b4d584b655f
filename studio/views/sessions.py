"""Sessions: the list of all, and the start of a new one."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import push_url

from studio.access import May, allowed, load_agent, require
from studio.http import is_part, show
from studio.models import Agent, AgentVersion, Customer, Guideline, Session, Tool
from studio.operations.sessions import SessionError, open_session
from studio.session_filters import Filters
from studio.views.session_forms import SessionForm
from studio.views.session_rows import rows_of
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
_RECENT = 10
_CHOICES = 500  # of customers or people in a list to choose from
_IN_SIGHT = ("q", "agent", "error", "flag")  # the other filters are folded while they are empty


@login_required
@require_GET
def session_list(request: SignedInRequest) -> HttpResponse:
    """All sessions, the latest first; filters are in the address."""
    require(request.user, May.VIEW)
    filters = Filters.read(request.GET)
    found = filters.sessions().order_by("-last_event_at", "-pk").values_list("pk", flat=True)
    page = Paginator(found, _PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": rows_of(page.object_list, filters),
        "chosen": filters,
        "filtered": bool(filters.given),
        "query": filters.query,
        "session_count": Session.objects.chats().count(),
        "part": is_part(request),
        "may_converse": allowed(request.user, May.CONVERSE),
        **_of_agent(filters),
        **({} if is_part(request) else _choices(filters)),
    }
    response = show(request, "sessions/list.html", context, part="found")
    if request.headers.get("HX-Trigger") == "search":  # without the filters that are left empty
        push_url(response, reverse("sessions") + (f"?{filters.query}" if filters.query else ""))
    return response


def _choices(filters: Filters) -> dict[str, Any]:
    """What the filters offer."""
    started = Session.objects.chats().filter(created_by=OuterRef("pk"))
    people = User.objects.filter(Exists(started)).order_by("username")
    return {
        "agents": list(Agent.objects.values("slug", "name")),
        "customers": list(Customer.objects.values("uid", "name")[:_CHOICES]),
        "tools": list(Tool.objects.values_list("name", flat=True)),
        "people": list(people.values_list("username", flat=True)[:_CHOICES]),
        "errors": [
            ("any", _("Any error")),
            ("turn", _("A turn failed")),
            ("call", _("A tool call failed")),
        ],
        "flags": [("open", _("Open flags")), ("any", _("Any flag"))],
        "decisions": [
            ("ran", _("Ran")),
            ("cannot_run", _("Cannot run")),
            ("known", _("Already known")),
            ("awaiting", _("Awaiting confirmation")),
            ("not_needed", _("Not needed")),
        ],
        "modes": Session.Mode.choices,
        "unfolded": any(name not in _IN_SIGHT for name in filters.given),
    }


def _of_agent(filters: Filters) -> dict[str, Any]:
    """What can be chosen of the chosen agent only; what the address names stays, also where it is gone by now."""
    guidelines = Guideline.objects.filter(agent__slug=filters.agent).order_by("position")
    named = list(guidelines.values("uid", "condition", "action")) if filters.agent else []
    if filters.guideline and filters.guideline not in {each["uid"] for each in named}:
        named.append({"uid": filters.guideline, "condition": "", "action": ""})
    published = AgentVersion.objects.filter(agent__slug=filters.agent, number__isnull=False)
    listed = published.order_by("-number").values_list("number", flat=True)
    numbers = [str(number) for number in listed] if filters.agent else []
    if filters.version.isdecimal() and filters.version not in numbers:
        numbers.append(filters.version)
    return {"guidelines": named, "versions": numbers}


@login_required
@require_http_methods(["GET", "POST"])
def start(request: SignedInRequest, slug: str) -> HttpResponse:
    """Choose what a new session runs on, and begin it."""
    may = May.CONVERSE if request.method == "POST" else May.VIEW
    agent = load_agent(request.user, slug, may)
    form = SessionForm(request.POST if request.method == "POST" else None, agent=agent)
    if request.method == "POST" and form.is_valid():
        try:
            session = open_session(agent=agent, by=request.user, **form.chosen())
        except SessionError as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            return redirect("session", pk=session.pk)
    recent = agent.sessions.chats().order_by("-last_event_at", "-pk").values_list("pk", flat=True)
    context: dict[str, Any] = {
        "agent": agent,
        "form": form,
        "recent": rows_of(recent[:_RECENT]),
        "may_converse": allowed(request.user, May.CONVERSE),
    }
    return render(request, "sessions/start.html", context, status=422 if form.errors else 200)
