"""Replays: begun with a form in words, watched while they run, and listed."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from studio.access import May, allowed, load_replay, require
from studio.http import is_part, refused, show
from studio.models import Agent, Replay, ToolCall
from studio.operations import lanes
from studio.operations.played_sessions import forget
from studio.operations.replay_prices import ReplayPrice, preflight, price_of
from studio.operations.replays import (
    CREW,
    ReplayRefusedError,
    replay_rest,
    start_replay,
    verdicts_of,
)
from studio.views.replay_forms import (
    WAYS,
    ReplayForm,
    Selection,
    SelectionError,
    initial_of,
    selection_of,
    way_of,
)
from studio.views.replay_rows import (
    DIFFERENT,
    cells_of,
    lines_of,
    next_way,
    state_context,
    with_counts,
)
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
_LINES = 100
_CALLS = 50
_PAGE = "replays/new.html"


@login_required
@require_GET
def replay_list(request: SignedInRequest) -> HttpResponse:
    """All replays, the newest first, or those of one agent."""
    require(request.user, May.VIEW)
    chosen = request.GET.get("agent", "").replace("\x00", "")
    rows = Replay.objects.select_related("agent", "version", "variant").defer("version__spec")
    if chosen:
        rows = rows.filter(agent__slug=chosen)
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    counted = with_counts(Replay.objects.filter(pk__in=[row.pk for row in page])).values()
    counts = {row["id"]: row for row in counted}
    context = {
        "page": page,
        "rows": [(row, counts[row.pk], way_of(row)) for row in page],
        "agents": list(Agent.objects.values("slug", "name")),
        "chosen": chosen,
        "query": urlencode({"agent": chosen}) if chosen else "",
    }
    return render(request, "replays/list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def replay_new(request: SignedInRequest) -> HttpResponse:
    """Which sessions is in the address. For htmx, what it would cost as the form stands."""
    require(request.user, May.TEST)
    try:
        selection = selection_of(request.GET)
    except SelectionError as error:
        messages.error(request, str(error))
        return redirect("sessions")
    agent = selection.agent
    if request.method == "GET":
        form = ReplayForm(
            initial=initial_of(request.GET.dict(), agent),
            agent=agent,
            sessions=selection.sessions,
        )
        return show(request, _PAGE, _context(request, selection, form), part="price")
    form = ReplayForm(request.POST, agent=agent, sessions=selection.sessions)
    if form.is_valid():
        try:
            row = start_replay(selection.sessions, **form.chosen(), by=request.user.get_username())
        except ReplayRefusedError as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
        else:
            return redirect("replay", pk=row.pk)
    return refused(request, _PAGE, _context(request, selection, form))


def _context(request: SignedInRequest, selection: Selection, form: ReplayForm) -> dict[str, Any]:
    way = WAYS.get(str(form["way"].value()), WAYS["frozen"])
    connection = _connection(form)
    context = {
        "agent": selection.agent,
        "selection": selection,
        "form": form,
        "way": way,
        "price": _price(selection, way.name, connection),
    }
    if is_part(request):
        return context
    return context | {
        "ways": [(each, _price(selection, each.name, connection)) for each in WAYS.values()],
        "preflight": preflight(selection.sessions),
        "calls": _calls(selection),
    }


def _connection(form: ReplayForm) -> Any:
    chosen = str(form["connection"].value() or "")
    field: Any = form.fields["connection"]
    return field.queryset.filter(pk=int(chosen)).first() if chosen.isdecimal() else None


def _price(selection: Selection, way: str, connection: Any) -> ReplayPrice:
    chosen = WAYS[way]
    return price_of(
        selection.sessions,
        model=chosen.model,
        until_it_differs=chosen.until_it_differs,
        connection=connection,
    )


def _calls(selection: Selection) -> list[ToolCall]:
    """The recorded calls of the one session, whose results can be changed for a replay."""
    if len(selection.sessions) != 1:
        return []
    turns = selection.sessions[0].line.turns.filter(version__isnull=False).values("pk")
    calls = ToolCall.objects.filter(turn__in=turns, state__in=["done", "failed"])
    ordered = calls.select_related("turn").defer("turn__checkpoint").order_by("turn__number", "pk")
    return list(ordered[:_CALLS])


@login_required
@never_cache
@require_GET
def replay_page(request: SignedInRequest, pk: int) -> HttpResponse:
    """How far it is, and the turns: those that are not the same, unless `?verdict=` says otherwise."""
    replay = load_replay(request.user, pk)
    chosen = request.GET.get("verdict") or DIFFERENT
    cells = cells_of(replay, chosen).select_related("session", "turn__version", "replay")
    page = Paginator(cells.defer("turn__version__spec", "turn__checkpoint"), _LINES).get_page(
        request.GET.get("page")
    )
    context = state_context(replay, chosen) | {
        "page": page,
        "lines": lines_of(replay, list(page)),
        "query": urlencode({"verdict": chosen}),
        "all_same": replay.is_over
        and replay.state == replay.State.FINISHED
        and verdicts_of(replay).keys() <= {"same"},
        "may_test": allowed(request.user, May.TEST),
    }
    return show(request, "replays/page.html", context, part="state")


@login_required
@require_POST
def replay_pause(request: SignedInRequest, pk: int) -> HttpResponse:
    replay = load_replay(request.user, pk, May.TEST)
    if not lanes.pause(replay):
        messages.info(request, _("It is over, or paused already."))
    return redirect("replay", pk=pk)


@login_required
@require_POST
def replay_resume(request: SignedInRequest, pk: int) -> HttpResponse:
    """Go on; with `cap` in place of the one that stopped it."""
    replay = load_replay(request.user, pk, May.TEST)
    given = request.POST.get("cap", "")
    cap = int(given) if given.isdecimal() and len(given) < 13 else None
    if not lanes.go_on(CREW, replay, cap=cap):
        messages.info(request, _("Nothing of it is left to be replayed."))
    return redirect("replay", pk=pk)


@login_required
@require_POST
def replay_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    replay = load_replay(request.user, pk, May.TEST)
    if not lanes.cancel(CREW, replay):
        messages.info(request, _("It is over already."))
    return redirect("replay", pk=pk)


@login_required
@require_http_methods(["GET", "POST"])
def replay_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Asks first; one that runs is to be cancelled before."""
    replay = load_replay(request.user, pk, May.TEST)
    if not replay.is_over:
        messages.error(request, _("It is still running: cancel it first."))
        return redirect("replay", pk=pk)
    if request.method == "POST":
        forget(replay)
        messages.success(request, _("Replay #%(number)d is deleted.") % {"number": pk})
        return redirect(f"{reverse('replays')}?agent={replay.agent.slug}")
    return show(request, "replays/delete.html", {"replay": replay, "agent": replay.agent})


@login_required
@require_POST
def replay_rest_start(request: SignedInRequest, pk: int) -> HttpResponse:
    """Replay what could not be replayed in the next way."""
    replay = load_replay(request.user, pk, May.TEST)
    way = next_way(replay)
    if way is None:
        messages.info(request, _("No other way would replay these turns."))
        return redirect("replay", pk=pk)
    try:
        row = replay_rest(
            replay,
            model=way.model,
            tools=replay.tools,
            until_it_differs=way.until_it_differs,
            by=request.user.get_username(),
        )
    except ReplayRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("replay", pk=pk)
    return redirect(reverse("replay", args=[row.pk]))
