"""Suites of an agent: the list, one with its scenarios, and what is done to it."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from studio.access import May, allowed, load_agent, load_suite, require
from studio.forms.suites import SuiteForm
from studio.http import refused, show
from studio.models import Agent, Scenario, Suite, SuiteRun
from studio.operations.scenarios import draft_of
from studio.operations.suites import remove_suite
from studio.run_reports import ScenarioReport
from studio.suite_status import newest_runs, verdicts_by_scenario
from studio.views.scenario_lines import ExpectationLine, expectation_lines
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
_SCENARIOS_PER_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRow:
    suite: Suite
    scenarios: int
    run: SuiteRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRow:
    scenario: Scenario
    lines: tuple[ExpectationLine, ...]
    came_to: ScenarioReport | None  # in the newest finished run
    first: bool
    last: bool


@login_required
@require_GET
def suite_list(request: SignedInRequest) -> HttpResponse:
    """All suites, or with `?agent=` those of one agent. A constant number of queries."""
    require(request.user, May.VIEW)
    slug = request.GET.get("agent", "").replace("\x00", "")
    agent = load_agent(request.user, slug) if slug else None
    rows = Suite.objects.select_related("agent")
    if agent is not None:
        rows = rows.filter(agent=agent)
    page = Paginator(rows.order_by("agent__name", "name"), _PER_PAGE).get_page(
        request.GET.get("page")
    )
    shown = list(page.object_list)
    runs = {run.suite_id: run for run in newest_runs({suite.agent for suite in shown})}
    counted = Scenario.objects.filter(suite__in=shown).order_by().values_list("suite")
    counts = dict(counted.annotate(count=Count("pk")))
    context = {
        "agent": agent,
        "agents": Agent.objects.order_by("name").only("slug", "name"),
        "page": page,
        "rows": [
            SuiteRow(suite=suite, scenarios=counts.get(suite.pk, 0), run=runs.get(suite.pk))
            for suite in shown
        ],
        "may_test": allowed(request.user, May.TEST),
    }
    return show(request, "suites/list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def suite_new(request: SignedInRequest) -> HttpResponse:
    """For the agent that `agent` names; without one, the page asks which."""
    require(request.user, May.TEST)
    given = request.POST if request.method == "POST" else request.GET
    slug = given.get("agent", "").replace("\x00", "")
    agents = list(Agent.objects.order_by("name").only("slug", "name"))
    if not slug and len(agents) == 1:
        slug = agents[0].slug
    if not slug:
        return show(request, "suites/which.html", {"agents": agents})
    agent = load_agent(request.user, slug)
    form = SuiteForm(request.POST if request.method == "POST" else None, agent=agent)
    if request.method == "POST" and form.is_valid():
        suite = form.store(request.user.username)
        messages.success(request, _("The suite is made. Now write its first scenario."))
        return redirect("suite", pk=suite.pk)
    context = {"agent": agent, "form": form}
    answer = refused if form.errors else show
    return answer(request, "suites/new.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def suite_page(request: SignedInRequest, pk: int) -> HttpResponse:
    """The scenarios in order, each with what is expected; a POST changes the suite's own fields."""
    may = May.TEST if request.method == "POST" else May.VIEW
    suite = load_suite(request.user, pk, may)
    if request.method == "GET":
        return show(request, "suites/suite.html", _context(request, suite))
    form = SuiteForm(request.POST, agent=suite.agent, instance=suite)
    if form.is_valid():
        form.store(request.user.username)
        messages.success(request, _("Saved."))
        return redirect("suite", pk=suite.pk)
    stored = load_suite(request.user, pk)  # a refused form has changed the row that it was made of
    return refused(request, "suites/suite.html", _context(request, stored, form=form))


@login_required
@require_http_methods(["GET", "POST"])
def suite_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Asks first."""
    suite = load_suite(request.user, pk, May.TEST)
    if request.method == "POST":
        agent = suite.agent
        remove_suite(suite)
        messages.success(request, _("The suite “%(name)s” is deleted.") % {"name": suite.name})
        return redirect(f"{reverse('suites')}?agent={agent.slug}")
    context = {
        "agent": suite.agent,
        "suite": suite,
        "scenarios": suite.scenarios.count(),
        "runs": suite.runs.count(),
    }
    return show(request, "suites/delete.html", context)


def _context(
    request: SignedInRequest, suite: Suite, *, form: SuiteForm | None = None
) -> dict[str, Any]:
    listed = suite.scenarios.prefetch_related("expectations")
    page = Paginator(listed, _SCENARIOS_PER_PAGE).get_page(request.GET.get("page"))
    run = newest_runs([suite.agent]).filter(suite=suite).first()
    came_to = verdicts_by_scenario([run]) if run is not None else {}
    agent = draft_of(suite.agent)
    return {
        "agent": suite.agent,
        "suite": suite,
        "form": form or SuiteForm(agent=suite.agent, instance=suite),
        "page": page,
        "run": run,
        "today": timezone.localdate(),
        "rows": [
            ScenarioRow(
                scenario=scenario,
                lines=expectation_lines(scenario, suite, agent, found),
                came_to=found,
                first=place == 1,
                last=place == page.paginator.count,
            )
            for place, scenario in enumerate(page.object_list, start=page.start_index())
            for found in [came_to.get((suite.pk, scenario.uid))]
        ],
        "may_test": allowed(request.user, May.TEST),
    }
