"""A run's report as one HTML page that needs nothing else: no studio, no network, no script."""

from django.template.loader import render_to_string
from django.utils import timezone

from studio.models import SuiteRun
from studio.run_costs import cost_of_run
from studio.run_reports import report
from studio.run_words import summary


def exported_run(run: SuiteRun) -> str:
    found = report(run)
    context = {
        "run": run,
        "suite": run.suite,
        "agent": run.suite.agent,
        "report": found,
        "summary": summary(found.counted),
        "cost": cost_of_run(run),
        "exported_at": timezone.now(),
    }
    return render_to_string("runs/export.html", context)
