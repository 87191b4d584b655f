"""The words of an agent: its canned responses and its glossary."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from engine.canned import FILTERS, fields_of
from studio.access import May, allowed, load_agent, load_response, load_term
from studio.forms.wording import ResponseForm, TermForm
from studio.http import show
from studio.models import Agent, CannedResponse, Term
from studio.operations.sampling import preview
from studio.operations.wording import delete_response, delete_term, users_of, why_no_template
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
# What every template may name, whatever tools ran.
FIELDS = (
    ("customer.name", gettext_lazy("the customer's name; so every variable of theirs")),
    ("agent.name", gettext_lazy("the name of the agent")),
    ("missing", gettext_lazy("what the customer is to be asked for, as a list")),
    ("invalid", gettext_lazy("what the customer is to correct, as a list")),
    ("choices", gettext_lazy("what may be chosen for these, as a list")),
    ("confirmations", gettext_lazy("what waits for the customer's word, as a list")),
)


def _search(request: SignedInRequest) -> str:
    return request.GET.get("q", "").replace("\x00", "").strip()[:200]


def _listed(
    request: SignedInRequest, agent: Agent, rows: QuerySet[Any], search: str
) -> dict[str, Any]:
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    return {
        "agent": agent,
        "search": search,
        "page": page,
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
    }


@login_required
@require_GET
def responses(request: SignedInRequest, slug: str) -> HttpResponse:
    """All canned responses, with what they fill in and which guidelines use them."""
    agent = load_agent(request.user, slug)
    search = _search(request)
    rows = agent.canned_responses.prefetch_related("guidelines")
    for word in search.split():
        rows = rows.filter(text__icontains=word)
    context = _listed(request, agent, rows, search)
    context["lines"] = [
        (row, fields_of(row.text) if not why_no_template(row.text) else ())
        for row in context["page"].object_list
    ]
    return show(request, "wording/responses.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def response_new(request: SignedInRequest, slug: str) -> HttpResponse:
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    return _response(request, agent, None)


@login_required
@require_http_methods(["GET", "POST"])
def response_page(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """One canned response: its text to be changed, filled in with samples, and who uses it."""
    may = May.WRITE_GUIDELINES if request.method == "POST" else May.VIEW
    row = load_response(request.user, slug, uid, may)
    return _response(request, row.agent, row)


def _response(request: SignedInRequest, agent: Agent, row: CannedResponse | None) -> HttpResponse:
    """A POST that says `preview` only fills it in."""
    posted = request.method == "POST"
    form = ResponseForm(request.POST if posted else None, agent=agent, instance=row)
    if posted and "preview" not in request.POST and form.is_valid():
        saved = form.save()
        messages.success(request, _("Saved. The next turn runs on it."))
        return redirect("response", slug=agent.slug, uid=saved.uid)
    text = str(form["text"].value() or "").strip()
    wrong = why_no_template(text) if text else ""
    context = {
        "agent": agent,
        "form": form,
        "response": row,
        "users": users_of(row) if row is not None else [],
        "sample": preview(text) if text and not wrong else None,
        "wrong": wrong,
        "fields": fields_of(text) if text and not wrong else (),
        "known_fields": FIELDS,
        "filters": sorted(FILTERS),
        "text": text,
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
    }
    if posted and "preview" in request.POST:
        # Only looked at: what is wrong stands in the preview.
        context["form"] = ResponseForm(agent=agent, instance=row, initial={"text": text})
        return show(request, "wording/response.html", context, part="preview")
    return show(request, "wording/response.html", context, status=422 if form.errors else 200)


@login_required
@require_http_methods(["GET", "POST"])
def response_delete(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Says first which guidelines lose it."""
    row = load_response(request.user, slug, uid, May.WRITE_GUIDELINES)
    if request.method == "POST":
        delete_response(row, detach=True)
        messages.success(request, _("The response is deleted."))
        return redirect("responses", slug=slug)
    context = {"agent": row.agent, "response": row, "users": users_of(row)}
    return show(request, "wording/response_delete.html", context)


@login_required
@require_GET
def glossary(request: SignedInRequest, slug: str) -> HttpResponse:
    """All terms by name."""
    agent = load_agent(request.user, slug)
    search = _search(request)
    rows = agent.terms.all()
    for word in search.split():
        rows = rows.filter(
            Q(name__icontains=word) | Q(description__icontains=word) | Q(synonyms__icontains=word)
        )
    return show(request, "wording/glossary.html", _listed(request, agent, rows, search))


@login_required
@require_http_methods(["GET", "POST"])
def term_new(request: SignedInRequest, slug: str) -> HttpResponse:
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    return _term(request, agent, None)


@login_required
@require_http_methods(["GET", "POST"])
def term_page(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    row = load_term(request.user, slug, uid, May.WRITE_GUIDELINES)
    return _term(request, row.agent, row)


def _term(request: SignedInRequest, agent: Agent, row: Term | None) -> HttpResponse:
    form = TermForm(request.POST if request.method == "POST" else None, agent=agent, instance=row)
    if form.is_valid():
        form.save()
        messages.success(request, _("Saved. The next turn runs on it."))
        return redirect("glossary", slug=agent.slug)
    context = {"agent": agent, "form": form, "term": row}
    return show(request, "wording/term.html", context, status=422 if form.errors else 200)


@login_required
@require_http_methods(["GET", "POST"])
def term_delete(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Asks first."""
    row = load_term(request.user, slug, uid, May.WRITE_GUIDELINES)
    if request.method == "POST":
        delete_term(row)
        messages.success(request, _("“%(name)s” is deleted.") % {"name": row.name})
        return redirect("glossary", slug=slug)
    return show(request, "wording/term_delete.html", {"agent": row.agent, "term": row})
