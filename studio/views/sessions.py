"""Sessions: the list of all, and the start of a new one."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from studio.access import May, allowed, load_agent, require
from studio.models import Agent, Customer, Event, Session, Turn
from studio.operations.sessions import SessionError, open_session
from studio.views.session_forms import SessionForm
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
_RECENT = 10


def with_words(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Sessions with what a list shows of them: how they began, and how their last turn ended."""
    said = Event.objects.filter(session=OuterRef("pk"), kind="message").order_by("offset")
    turns = Turn.objects.filter(session=OuterRef("pk")).order_by("-number")
    return sessions.select_related("agent", "version", "customer").annotate(
        began=Subquery(said.values("data__text")[:1]),
        last_state=Subquery(turns.values("state")[:1]),
        turn_count=F("next_turn") - 1,
    )


@login_required
@require_GET
def session_list(request: SignedInRequest) -> HttpResponse:
    """All sessions, the latest first; filters are in the address."""
    require(request.user, May.VIEW)
    agents = list(Agent.objects.all())
    customers = list(Customer.objects.all()[:500])
    chosen = {name: request.GET.get(name, "") for name in ("agent", "customer", "state")}
    found = _filtered(chosen).order_by("-last_event_at", "-pk")
    page = Paginator(found, _PER_PAGE).get_page(request.GET.get("page"))
    # Only the rows of this page are asked for their words.
    rows = with_words(Session.objects.filter(pk__in=[row.pk for row in page.object_list]))
    context = {
        "page": page,
        "rows": rows.order_by("-last_event_at", "-pk"),
        "agents": agents,
        "customers": customers,
        "states": _states(),
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "query": _query(chosen),
    }
    return render(request, "sessions/list.html", context)


def _states() -> list[tuple[str, str]]:
    return [
        ("running", _("A turn is running")),
        ("failed", _("A turn failed")),
        ("manual", _("Manual mode")),
    ]


def _filtered(chosen: dict[str, str]) -> QuerySet[Session]:
    sessions = Session.objects.all()
    if chosen["agent"]:
        sessions = sessions.filter(agent__slug=chosen["agent"])
    if chosen["customer"]:
        sessions = sessions.filter(customer__uid=chosen["customer"])
    turns = Turn.objects.filter(session=OuterRef("pk"))
    match chosen["state"]:
        case "running":
            return sessions.filter(pk__in=Turn.objects.unfinished().values("session"))
        case "failed":
            return sessions.filter(Exists(turns.filter(state=Turn.State.FAILED)))
        case "manual":
            return sessions.filter(mode=Session.Mode.MANUAL)
    return sessions


def _query(chosen: dict[str, str]) -> str:
    """The filters as they stand in the address, for the links to other pages of the list."""
    return urlencode({name: value for name, value in chosen.items() if value})


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
    recent = with_words(agent.sessions.all()).order_by("-last_event_at", "-pk")[:_RECENT]
    context: dict[str, Any] = {
        "agent": agent,
        "form": form,
        "recent": recent,
        "may_converse": allowed(request.user, May.CONVERSE),
    }
    return render(request, "sessions/start.html", context, status=422 if form.errors else 200)
