"""Expectations of a scenario: written new by kind, changed, taken off."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from engine.errors import SpecError
from studio.access import May, load_scenario
from studio.expectation_words import sentence
from studio.forms.expectations import (
    KINDS,
    ExpectationForm,
    comparings,
    initial_of,
    parameter_names,
    posted,
)
from studio.http import refused, show
from studio.models import Expectation, Scenario
from studio.operations.expectation_checks import doubts
from studio.operations.scenarios import (
    add_expectation,
    change_expectation,
    draft_of,
    read,
)
from studio.views.signed_in import SignedInRequest

_PAGE = "suites/expectation.html"


@login_required
@require_http_methods(["GET", "POST"])
def expectation_new(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    """`?kind=` says which; without one, the page lists the kinds."""
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    kind = (request.POST if request.method == "POST" else request.GET).get("kind", "")
    if kind not in KINDS:
        context = _shared(scenario) | {"kinds": _kinds()}
        return show(request, "suites/expectation_kinds.html", context)
    agent = draft_of(scenario.suite.agent)
    if request.method == "GET" or "add" in request.POST:
        now = posted(request.POST, kind, agent) if request.method == "POST" else {}
        form = ExpectationForm(kind=kind, scenario=scenario, agent=agent, initial=now)
        return show(request, _PAGE, _context(form))
    form = ExpectationForm(request.POST, kind=kind, scenario=scenario, agent=agent)
    if not form.is_valid():
        return refused(request, _PAGE, _context(form))
    because = form.cleaned_data["because"]
    add_expectation(scenario, form.expectation(), because=because, by=request.user.username)
    return _kept(request, form)


@login_required
@require_http_methods(["GET", "POST"])
def expectation_page(request: SignedInRequest, pk: int, uid: str, expectation: str) -> HttpResponse:
    """One expectation to be changed."""
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    row = _load(scenario, expectation)
    agent = draft_of(scenario.suite.agent)
    try:
        stored = read(row)
    except SpecError as error:
        raise Http404(str(error)) from error
    kind = stored.kind
    if request.method == "GET" or "add" in request.POST:
        now = initial_of(stored) | {"because": row.because}
        if request.method == "POST":
            now = posted(request.POST, kind, agent)
        form = ExpectationForm(kind=kind, scenario=scenario, agent=agent, initial=now)
        return show(request, _PAGE, _context(form, row=row))
    form = ExpectationForm(
        request.POST, kind=kind, scenario=scenario, agent=agent, initial=initial_of(stored)
    )
    if not form.is_valid():
        return refused(request, _PAGE, _context(form, row=row))
    change_expectation(row, form.expectation(), because=form.cleaned_data["because"])
    return _kept(request, form)


@login_required
@require_POST
def expectation_delete(
    request: SignedInRequest, pk: int, uid: str, expectation: str
) -> HttpResponse:
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    row = _load(scenario, expectation)
    try:
        words = sentence(read(row), draft_of(scenario.suite.agent))
    except SpecError:
        words = str(row.data.get("kind"))
    row.delete()
    messages.success(request, _("No longer expected: %(sentence)s.") % {"sentence": words})
    return redirect("scenario", pk=pk, uid=uid)


def _load(scenario: Scenario, uid: str) -> Expectation:
    """Of a scenario that is authorised already."""
    row = scenario.expectations.select_related("scenario__suite__agent").filter(uid=uid).first()
    if row is None:
        raise Http404(_("This scenario has no expectation %(uid)r.") % {"uid": uid})
    return row


def _kept(request: SignedInRequest, form: ExpectationForm) -> HttpResponse:
    words = sentence(form.expectation(), form.agent)
    messages.success(request, _("Expected from now on: %(sentence)s.") % {"sentence": words})
    for doubt in doubts(form.expectation(), form.scenario.suite.repeats):
        messages.warning(request, doubt)
    return redirect("scenario", pk=form.scenario.suite_id, uid=form.scenario.uid)


def _kinds() -> list[dict[str, Any]]:
    return [{"kind": kind, "title": title, "does": does} for kind, (title, does) in KINDS.items()]


def _shared(scenario: Scenario) -> dict[str, Any]:
    return {"agent": scenario.suite.agent, "suite": scenario.suite, "scenario": scenario}


def _context(form: ExpectationForm, *, row: Expectation | None = None) -> dict[str, Any]:
    context = _shared(form.scenario) | {
        "form": form,
        "expectation": row,
        "kind": form.kind,
        "title": KINDS[form.kind][0],
    }
    if form.kind == "tool":
        chosen = str(form["tool"].value() or "")
        context |= {
            "arguments": form.rows("arguments"),
            "comparings": comparings(),
            "parameters": parameter_names(form.agent, chosen),
        }
    elif form.kind == "order":
        rows = form.rows("tools")
        context |= {"steps": rows + [{}] * (2 - len(rows)), "tools": list(form.agent.tool_by_name)}
    return context
