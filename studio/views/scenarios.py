"""Scenarios: one with what is said and expected, written new, changed, set aside, moved, copied, deleted."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from engine.errors import SpecError
from engine.expecting import Expectation as Expected
from engine.expecting import read_expectation
from studio.access import May, allowed, load_scenario, load_suite
from studio.expectation_words import sentence
from studio.forms.fields import ProseField
from studio.forms.scenarios import ScenarioForm
from studio.http import refused, show
from studio.models import Customer, Scenario, Suite
from studio.operations.scenarios import (
    ScenarioRefusedError,
    add_expectation,
    draft_of,
    duplicate,
    end_quarantine,
    is_quarantined,
    quarantine,
)
from studio.operations.suites import move_scenario
from studio.run_reports import ScenarioReport
from studio.suite_status import newest_runs, verdicts_by_scenario
from studio.views.scenario_lines import expectation_lines, said_lines
from studio.views.signed_in import SignedInRequest

_MOST_SAID = 50
_FORM = "suites/scenario_form.html"


@login_required
@require_http_methods(["GET", "POST"])
def scenario_new(request: SignedInRequest, pk: int) -> HttpResponse:
    """`?kind=` is scripted or simulated. `title`, `say` (each a message) and `expect` (an expectation as JSON, kept
    with the scenario) may be filled in beforehand."""
    suite = load_suite(request.user, pk, May.TEST)
    given = request.POST if request.method == "POST" else request.GET
    wanted, unreadable = _wanted(given, suite)
    if request.method == "POST" and "add" not in request.POST and "drop" not in request.POST:
        form = ScenarioForm(request.POST, suite=suite)
        if form.is_valid():
            return _made(request, form, wanted)
        return _form_page(request, suite, form, wanted=wanted)
    initial = _rows_changed(request) if request.method == "POST" else _given(request)
    form = ScenarioForm(suite=suite, initial=initial)
    return _form_page(request, suite, form, wanted=wanted, unreadable=unreadable)


@login_required
@require_http_methods(["GET", "POST"])
def scenario_edit(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    suite = scenario.suite
    if request.method == "POST" and "add" not in request.POST and "drop" not in request.POST:
        form = ScenarioForm(request.POST, suite=suite, instance=scenario)
        if form.is_valid():
            form.store(request.user.username)
            messages.success(request, _("Saved. The next run uses it."))
            return redirect("scenario", pk=suite.pk, uid=uid)
        return _form_page(request, suite, form, scenario=load_scenario(request.user, pk, uid))
    initial = _rows_changed(request) if request.method == "POST" else {}
    form = ScenarioForm(suite=suite, instance=scenario, initial=initial)
    return _form_page(request, suite, form, scenario=scenario)


def _wanted(given: QueryDict, suite: Suite) -> tuple[Expected | None, str]:
    """The expectation that comes with the address, and what is wrong with it."""
    text = given.get("expect", "")
    if not text:
        return None, ""
    try:
        return read_expectation(json.loads(text)), ""
    except (ValueError, RecursionError, SpecError) as error:
        return None, _("What was to be expected cannot be read: %(why)s") % {"why": error}


def _given(request: SignedInRequest) -> dict[str, Any]:
    kind = request.GET.get("kind", "")
    said = [text for text in request.GET.getlist("say")[:_MOST_SAID] if text.strip()]
    return {
        "kind": kind if kind in Scenario.Kind.values else Scenario.Kind.SCRIPTED,
        "title": request.GET.get("title", "")[:200],
        "messages": [{"text": text} for text in said],
    }


def _rows_changed(request: SignedInRequest) -> dict[str, Any]:
    """What was filled in up to now, with a row more (`add`) or less (`drop`, its number)."""
    found: dict[str, Any] = {
        name: field.widget.value_from_datadict(request.POST, {}, name)
        for name, field in ScenarioForm.base_fields.items()
    }
    rows: list[Any] = found["messages"] if isinstance(found["messages"], list) else []
    dropped = request.POST.get("drop", "")
    if "add" in request.POST:
        rows = [*rows, {}]
    elif dropped.isdecimal() and len(dropped) < 6:
        rows = [row for number, row in enumerate(rows) if number != int(dropped)]
    return found | {"messages": rows}


def _made(request: SignedInRequest, form: ScenarioForm, wanted: Expected | None) -> HttpResponse:
    by = request.user.username
    with transaction.atomic():
        scenario = form.store(by)
        if wanted is not None:
            try:
                add_expectation(scenario, wanted, by=by)
            except ScenarioRefusedError as error:
                messages.warning(request, str(error))
    messages.success(
        request,
        _("The scenario is kept.")
        if wanted is not None
        else _("The scenario is kept. Now say what is expected of it."),
    )
    return redirect("scenario", pk=scenario.suite_id, uid=scenario.uid)


def _form_page(
    request: SignedInRequest,
    suite: Suite,
    form: ScenarioForm,
    *,
    scenario: Scenario | None = None,
    wanted: Expected | None = None,
    unreadable: str = "",
) -> HttpResponse:
    context = {
        "agent": suite.agent,
        "suite": suite,
        "scenario": scenario,
        "form": form,
        "rows": form.rows(),
        "kind": scenario.kind if scenario is not None else form["kind"].value(),
        "wanted": sentence(wanted, draft_of(suite.agent)) if wanted is not None else "",
        "expect": (request.POST or request.GET).get("expect", "") if wanted is not None else "",
        "unreadable": unreadable,
    }
    return (refused if form.errors else show)(request, _FORM, context)


class QuarantineForm(forms.Form):
    until = forms.DateField(
        label=gettext_lazy("Up to and with"),
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        error_messages={
            "required": gettext_lazy("Choose the last day."),
            "invalid": gettext_lazy("Write the day as 2026-12-31."),
        },
    )
    reason = ProseField(
        label=gettext_lazy("Because"),
        required=True,
        limit=2_000,
        remedy=gettext_lazy("Shorten it."),
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
        error_messages={"required": gettext_lazy("Say why, so that others know when it can end.")},
    )


@login_required
@require_GET
def scenario_page(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    scenario = load_scenario(request.user, pk, uid)
    return show(request, "suites/scenario.html", _context(request, scenario))


@login_required
@require_POST
def scenario_quarantine(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    """Sets it aside (`until`, `reason`), or with `end` ends that."""
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    if "end" in request.POST:
        end_quarantine(scenario)
        messages.success(request, _("The quarantine is over: its failures count again."))
        return redirect("scenario", pk=pk, uid=uid)
    form = QuarantineForm(request.POST, label_suffix="")
    if form.is_valid():
        try:
            quarantine(scenario, **form.cleaned_data, by=request.user.username)
        except ScenarioRefusedError as error:
            form.add_error(error.field, str(error))
    if form.errors:
        stored = load_scenario(request.user, pk, uid)
        return refused(
            request, "suites/scenario.html", _context(request, stored, quarantining=form)
        )
    messages.success(request, _("Quarantined: until then its failures count for nothing."))
    return redirect("scenario", pk=pk, uid=uid)


@login_required
@require_POST
def scenario_position(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    """`move` is up or down."""
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    move_scenario(scenario, down=request.POST.get("move") == "down")
    return redirect(f"{reverse('suite', args=[pk])}#scenario-{uid}")


@login_required
@require_POST
def scenario_duplicate(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    copy = duplicate(load_scenario(request.user, pk, uid, May.TEST), by=request.user.username)
    messages.success(request, _("This is the copy; change what is to be different."))
    return redirect("scenario", pk=pk, uid=copy.uid)


@login_required
@require_http_methods(["GET", "POST"])
def scenario_delete(request: SignedInRequest, pk: int, uid: str) -> HttpResponse:
    """Asks first."""
    scenario = load_scenario(request.user, pk, uid, May.TEST)
    if request.method == "POST":
        scenario.delete()
        messages.success(request, _("“%(title)s” is deleted.") % {"title": scenario.title})
        return redirect("suite", pk=pk)
    context = {
        "agent": scenario.suite.agent,
        "suite": scenario.suite,
        "scenario": scenario,
        "expectations": scenario.expectations.count(),
    }
    return show(request, "suites/scenario_delete.html", context)


def _context(
    request: SignedInRequest, scenario: Scenario, *, quarantining: QuarantineForm | None = None
) -> dict[str, Any]:
    suite = scenario.suite
    came_to = _came_to(scenario)
    return {
        "agent": suite.agent,
        "suite": suite,
        "scenario": scenario,
        "said": said_lines(scenario),
        "lines": expectation_lines(scenario, suite, draft_of(suite.agent), came_to),
        "customer": Customer.objects.filter(uid=scenario.customer_uid).first()
        if scenario.customer_uid
        else None,
        "came_to": came_to,
        "quarantined": is_quarantined(scenario),
        "quarantining": quarantining or QuarantineForm(label_suffix=""),
        "may_test": allowed(request.user, May.TEST),
    }


def _came_to(scenario: Scenario) -> ScenarioReport | None:
    runs = newest_runs([scenario.suite.agent]).filter(suite=scenario.suite)
    return verdicts_by_scenario(runs).get((scenario.suite_id, scenario.uid))
