"""How an agent's guidelines bear on one another, and which of its tools overlap."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, Q, Value, When
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from studio.access import May, allowed, load_agent, load_overlap, load_relationship
from studio.forms.relationships import OverlapForm, RelationshipForm
from studio.http import is_part, safe_next, show
from studio.models import Agent, Guideline, ToolOverlap
from studio.operations.relating import delete_overlap, delete_relationship
from studio.views.relation_lines import KINDS, grouped, lines_of, picker
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
_BESIDE = "relations"  # the region of the guideline's editor that shows its relationships


@login_required
@require_GET
def relationship_list(request: SignedInRequest, slug: str) -> HttpResponse:
    """All of them as sentences, by kind; `q` searches the words of their guidelines."""
    agent = load_agent(request.user, slug)
    search = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    rows = agent.relationships.all()
    for word in search.split():
        named = Q()
        for side in ("source", "targets"):
            named |= Q(**{f"{side}__condition__icontains": word})
            named |= Q(**{f"{side}__action__icontains": word})
        rows = rows.filter(named).distinct()
    kinds = [When(kind=kind, then=Value(place)) for place, kind in enumerate(KINDS)]
    rows = rows.annotate(place=Case(*kinds, output_field=IntegerField()))
    rows = rows.order_by("place", "source__position", "pk")
    shown = rows.select_related("source").prefetch_related("targets")
    page = Paginator(shown, _PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "agent": agent,
        "search": search,
        "page": page,
        "groups": grouped(page.object_list),
        "overlaps": agent.overlaps.prefetch_related("tools"),
        "any": bool(page.object_list) or agent.relationships.exists(),
        "guideline_count": agent.guidelines.count(),
        "tool_count": agent.tools.count(),
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
    }
    return show(request, "relationships/list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def relationship_new(request: SignedInRequest, slug: str) -> HttpResponse:
    """`source` and `kind` in the address are chosen already. A POST that says `look` only searches."""
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    if request.method == "POST" and "look" not in request.POST:
        return _saved(request, agent, RelationshipForm(request.POST, agent=agent))
    given = request.POST if request.method == "POST" else request.GET
    initial = {name: given.getlist(name) for name in ("source", "targets")}
    form = RelationshipForm(agent=agent, initial=initial | {"kind": given.get("kind", "")})
    return _form_page(request, agent, form)


@login_required
@require_http_methods(["GET", "POST"])
def relationship_page(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """One relationship to be changed."""
    row = load_relationship(request.user, slug, uid, May.WRITE_GUIDELINES)
    agent = row.agent
    if request.method == "POST" and "look" not in request.POST:
        return _saved(request, agent, RelationshipForm(request.POST, agent=agent, instance=row))
    initial: dict[str, Any] = {"source": [row.source.uid]}
    if request.method == "POST":
        initial = {name: request.POST.getlist(name) for name in ("source", "targets")}
        initial["kind"] = request.POST.get("kind", "")
    return _form_page(request, agent, RelationshipForm(agent=agent, instance=row, initial=initial))


def _saved(request: SignedInRequest, agent: Agent, form: RelationshipForm) -> HttpResponse:
    if not form.is_valid():
        return _form_page(request, agent, form, status=422)
    row = form.save()
    if _beside(request):
        return _relations(request, row.source)
    messages.success(request, _("Saved. The next turn runs on it."))
    return redirect(_after(request, agent))


def _form_page(
    request: SignedInRequest, agent: Agent, form: RelationshipForm, *, status: int = 200
) -> HttpResponse:
    """The form, on its own page or, for htmx, in the editor of its guideline."""
    chosen: dict[str, list[str]] = {
        name: list(form[name].value() or []) for name in ("source", "targets")
    }
    (source,) = chosen["source"][:1] or [""]
    words = {name: request.POST.get(f"{name}_q", "") for name in chosen}
    about = agent.guidelines.filter(uid=source.replace("\x00", "")).first()
    context = {
        "agent": agent,
        "form": form,
        "kinds": KINDS,
        "kind": form["kind"].value() or "",
        "relationship": form.instance if form.instance.pk is not None else None,
        "source": about,
        "sources": picker(agent, "source", chosen=chosen["source"], q=words["source"]),
        "targets": picker(
            agent, "targets", chosen=chosen["targets"], q=words["targets"], without=source
        ),
        "next": _after(request, agent),
    }
    if _beside(request) and about is not None:
        return _relations(request, about, status=status, **context)
    return show(request, "relationships/form.html", context, status=status)


def _beside(request: SignedInRequest) -> bool:
    return is_part(request) and request.headers.get("HX-Target") == _BESIDE


def _relations(
    request: SignedInRequest,
    guideline: Guideline,
    *,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """The relationships of one guideline, with the form where there is one."""
    shown = {
        "agent": guideline.agent,
        "guideline": guideline,
        "relations": lines_of(guideline),
        "may_write": True,
        "form": None,
        **context,
    }
    return show(request, "guidelines/_relations.html", shown, status=status)


def _after(request: SignedInRequest, agent: Agent) -> str:
    """Where the person came from."""
    return safe_next(request, reverse("relationships", kwargs={"slug": agent.slug}))


@login_required
@require_http_methods(["GET", "POST"])
def relationship_delete(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Asks first."""
    row = load_relationship(request.user, slug, uid, May.WRITE_GUIDELINES)
    agent = row.agent
    if request.method == "POST":
        delete_relationship(row)
        messages.success(request, _("The relationship is removed; its guidelines stay."))
        return redirect(_after(request, agent))
    (group,) = grouped([row])
    context = {"agent": agent, "relationship": row, "group": group, "next": _after(request, agent)}
    return show(request, "relationships/delete.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def overlap_new(request: SignedInRequest, slug: str) -> HttpResponse:
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    data = request.POST if request.method == "POST" else None
    return _overlap(request, agent, OverlapForm(data, agent=agent))


@login_required
@require_http_methods(["GET", "POST"])
def overlap_page(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    overlap = load_overlap(request.user, slug, uid, May.WRITE_GUIDELINES)
    data = request.POST if request.method == "POST" else None
    form = OverlapForm(data, agent=overlap.agent, instance=overlap)
    return _overlap(request, overlap.agent, form, overlap)


def _overlap(
    request: SignedInRequest,
    agent: Agent,
    form: OverlapForm,
    overlap: ToolOverlap | None = None,
) -> HttpResponse:
    if form.is_valid():
        form.save()
        messages.success(request, _("Saved. The next turn runs on it."))
        return redirect("relationships", slug=agent.slug)
    context = {
        "agent": agent,
        "form": form,
        "overlap": overlap,
        "tools": agent.tools.all(),
        "chosen": set(form["tools"].value() or []),
    }
    status = 422 if form.errors else 200
    return show(request, "relationships/overlap.html", context, status=status)


@login_required
@require_http_methods(["GET", "POST"])
def overlap_delete(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Asks first."""
    overlap = load_overlap(request.user, slug, uid, May.WRITE_GUIDELINES)
    if request.method == "POST":
        delete_overlap(overlap)
        messages.success(request, _("The group is removed; its tools stay."))
        return redirect("relationships", slug=slug)
    context = {"agent": overlap.agent, "overlap": overlap}
    return show(request, "relationships/overlap_delete.html", context)
