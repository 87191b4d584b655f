"""Runs of suites: the list with the form that starts one, and one with its report."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from engine.expecting import Verdict
from studio.access import May, allowed, load_run, load_suite
from studio.http import is_part, refused, show
from studio.models import RunCell, Suite, SuiteRun
from studio.operations import lanes
from studio.operations.run_prices import Estimate, estimate
from studio.operations.suite_runs import CREW, RunRefusedError, retry_failed, start_run
from studio.run_costs import cost_of_run
from studio.run_files import junit, table
from studio.run_reports import RunReport, ScenarioReport, report
from studio.run_words import summary
from studio.views.exported_run import exported_run
from studio.views.run_forms import RunForm
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 30
_SCENARIOS_PER_PAGE = 25
_ENOUGH = 2  # conversations, before something is said of the time left
_LIST, _RUN = "runs/list.html", "runs/run.html"
FILTERS = ("failing", "flaky", "invalid", "quarantined", "passed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run: SuiteRun
    done: int


@login_required
@require_http_methods(["GET", "POST"])
def run_list(request: SignedInRequest, pk: int) -> HttpResponse:
    """The runs of a suite, and the form of a new one with what it will cost; a POST starts it."""
    suite = load_suite(request.user, pk, May.TEST if request.method == "POST" else May.VIEW)
    if request.method == "POST":
        form = RunForm(request.POST, suite=suite)
        if form.is_valid():
            try:
                run = start_run(suite, **form.chosen(), by=request.user.username)
                return redirect("run", pk=run.pk)
            except RunRefusedError as error:
                form.add_error(error.field if error.field in form.fields else None, str(error))
        return refused(request, _LIST, _list_context(request, suite, form))
    if is_part(request) and "against" in request.GET:
        asked = RunForm(request.GET, suite=suite)
        part = {"suite": suite, "estimate": _estimate(suite, asked)}
        return show(request, _LIST, part, part="estimate")
    return show(request, _LIST, _list_context(request, suite, RunForm(suite=suite)))


def _list_context(request: SignedInRequest, suite: Suite, form: RunForm) -> dict[str, Any]:
    runs = suite.runs.select_related("connection").defer("scenarios")
    page = Paginator(runs.order_by("-pk"), _PER_PAGE).get_page(request.GET.get("page"))
    return {
        "agent": suite.agent,
        "suite": suite,
        "scenario_count": suite.scenarios.count(),
        "form": form,
        "estimate": _estimate(suite, form),
        "page": page,
        "rows": _rows(page.object_list),
        "may_test": allowed(request.user, May.TEST),
    }


def _rows(runs: Any) -> list[RunRow]:
    cells = RunCell.objects.filter(run__in=list(runs), state=RunCell.State.DONE)
    done = dict(cells.order_by().values_list("run").annotate(count=Count("pk")))
    return [RunRow(run=run, done=done.get(run.pk, 0)) for run in runs]


def _estimate(suite: Suite, form: RunForm) -> Estimate | None:
    """Of what the form says; None where it says nothing that can be run."""
    if form.is_bound:
        if not form.is_valid():
            return None
        chosen = form.cleaned_data
    else:
        chosen = {**form.initial, "connection": None}
    return estimate(
        list(suite.scenarios.all()),
        versions=len(chosen["against"]),
        repeats=chosen["repeats"] or suite.repeats,
        connection=chosen["connection"],
    )


@login_required
@require_GET
def run_page(request: SignedInRequest, pk: int) -> HttpResponse:
    """The report, as far as the run has come. `?show=` takes one of FILTERS."""
    run = load_run(request.user, pk)
    return show(request, _RUN, _context(request, run), part="state")


def _context(request: SignedInRequest, run: SuiteRun) -> dict[str, Any]:
    found = report(run)
    chosen = request.GET.get("show", "")
    chosen = chosen if chosen in FILTERS else ""
    left = _seconds_left(run, found)
    before = _run_before(run)
    labels = [version.label for version in found.versions]
    rows = [
        (scenario, tuple(zip(labels, reports, strict=True)))
        for scenario, reports in found.rows
        if _is_shown(reports, chosen)
    ]
    page = Paginator(rows, _SCENARIOS_PER_PAGE).get_page(request.GET.get("page"))
    return {
        "agent": run.suite.agent,
        "suite": run.suite,
        "run": run,
        "report": found,
        "summary": summary(found.counted),
        "page": page,
        "rows": page.object_list,
        "query": urlencode({"show": chosen} if chosen else {}),
        "chosen": chosen,
        "left": left,
        "left_minutes": round((left or 0) / 60),
        "cost": cost_of_run(run) if run.is_over else None,
        "before": before,
        "changes": _changes(report(before), found) if before is not None and run.is_over else (),
        "can_retry": run.is_over
        and any(c.is_over and c.verdict != Verdict.PASSED for c in found.cells),
        "can_go_on": run.is_over and found.done < found.total,
        "may_test": allowed(request.user, May.TEST),
    }


def _is_shown(reports: tuple[ScenarioReport, ...], chosen: str) -> bool:
    if not chosen:
        return True
    return any(_falls_under(one) == chosen for one in reports)


def _falls_under(one: ScenarioReport) -> str:
    if one.verdict is None:
        return ""
    if not one.counts:
        return "quarantined"
    return "failing" if one.verdict is Verdict.FAILED else one.verdict.value


def _seconds_left(run: SuiteRun, found: RunReport) -> int | None:
    """An estimate from the conversations that are over; None where nothing can be said yet."""
    if run.is_over or run.paused or run.started_at is None or found.done < _ENOUGH:
        return None
    spent = (timezone.now() - run.started_at).total_seconds()
    return max(0, round(spent / found.done * (found.total - found.done)))


def _run_before(run: SuiteRun) -> SuiteRun | None:
    rows = run.suite.runs.filter(pk__lt=run.pk, state=SuiteRun.State.FINISHED)
    row: SuiteRun | None = rows.order_by("-pk").first()
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A scenario whose verdict is another than in the run before; None where it was not in it."""

    scenario: ScenarioReport
    version: str
    before: Verdict | None


def _changes(before: RunReport, now: RunReport) -> list[Change]:
    """Against the same version where the run before had it too; the one version of both, whichever it was, else."""
    found = []
    for version in now.versions:
        same = [v for v in before.versions if _is_same(v.version, version.version)]
        alone = len(before.versions) == len(now.versions) == 1
        earlier = same or (before.versions if alone else ())
        known = {one.uid: one.verdict for v in earlier[:1] for one in v.scenarios}
        found += [
            Change(scenario=one, version=version.label, before=known.get(one.uid))
            for one in version.scenarios
            if earlier and one.verdict is not known.get(one.uid)
        ]
    return found


def _is_same(one: Any, other: Any) -> bool:
    """The draft goes on as the draft."""
    return bool(one.number == other.number)


@login_required
@require_POST
def run_pause(request: SignedInRequest, pk: int) -> HttpResponse:
    run = load_run(request.user, pk, May.TEST)
    if not lanes.pause(run):
        messages.info(request, _("The run is over, or paused already."))
    return redirect("run", pk=pk)


@login_required
@require_POST
def run_resume(request: SignedInRequest, pk: int) -> HttpResponse:
    """Go on with what is left; a run that ended at its cap goes on without one, unless `cap` gives another."""
    run = load_run(request.user, pk, May.TEST)
    cap = request.POST.get("cap", "")
    if not lanes.go_on(CREW, run, cap=_cap_of(run, cap)):
        messages.info(request, _("There is nothing left to run."))
    return redirect("run", pk=pk)


def _cap_of(run: SuiteRun, given: str) -> int | None:
    if given.isdecimal() and len(given) < 13:
        return int(given)
    return 0 if run.capped else None


@login_required
@require_POST
def run_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    run = load_run(request.user, pk, May.TEST)
    if not lanes.cancel(CREW, run):
        messages.info(request, _("The run is over already."))
    return redirect("run", pk=pk)


@login_required
@require_POST
def run_retry(request: SignedInRequest, pk: int) -> HttpResponse:
    """Once more what did not pass."""
    run = load_run(request.user, pk, May.TEST)
    if not retry_failed(run):
        messages.info(request, _("Nothing can be run again: it is not over, or everything passed."))
    return redirect("run", pk=pk)


@login_required
@require_GET
def run_junit(request: SignedInRequest, pk: int) -> HttpResponse:
    run = load_run(request.user, pk)
    return _file(junit(report(run)), run, "xml", "application/xml; charset=utf-8")


@login_required
@require_GET
def run_csv(request: SignedInRequest, pk: int) -> HttpResponse:
    """With the mark that spreadsheets know UTF-8 by."""
    run = load_run(request.user, pk)
    return _file("\ufeff" + table(report(run)), run, "csv", "text/csv; charset=utf-8")


@login_required
@require_GET
def run_html(request: SignedInRequest, pk: int) -> HttpResponse:
    run = load_run(request.user, pk)
    return _file(exported_run(run), run, "html", "text/html; charset=utf-8")


def _file(text: str, run: SuiteRun, ending: str, content_type: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="run-{run.pk}.{ending}"'}
    return HttpResponse(text, content_type=content_type, headers=headers)
