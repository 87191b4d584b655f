"""Suites of an agent: made, ordered, and the one that things are kept in where none was chosen."""

from django.db import transaction
from django.utils.translation import gettext as _

from studio.models import Agent, Scenario, Suite
from studio.operations.played_sessions import forget


def save_suite(suite: Suite, *, by: str = "") -> Suite:
    if suite.pk is None:
        suite.created_by = by[:150]
    suite.save()
    return suite


def default_suite(agent: Agent, by: str = "") -> Suite:
    """The first suite of the agent; where there is none, one named “Regression” is made."""
    first = agent.suites.order_by("pk").first()
    if first is not None:
        return first
    suite, _made = Suite.objects.get_or_create(
        agent=agent, name=_("Regression"), defaults={"created_by": by[:150]}
    )
    return suite


@transaction.atomic
def move_scenario(scenario: Scenario, *, down: bool) -> bool:
    """Up or down by one place; False where it stands at that end already."""
    rows = list(Scenario.objects.select_for_update().filter(suite=scenario.suite_id))
    here = next(place for place, row in enumerate(rows) if row.pk == scenario.pk)
    there = here + 1 if down else here - 1
    if not 0 <= there < len(rows):
        return False
    rows[here], rows[there] = rows[there], rows[here]
    for place, row in enumerate(rows, start=1):
        row.position = place
    Scenario.objects.bulk_update(rows, ["position"])
    return True


@transaction.atomic
def remove_suite(suite: Suite) -> None:
    """With its scenarios, its runs and the sessions that they played."""
    for run in suite.runs.all():
        forget(run)
    suite.delete()
