"""All expectations of a scenario at once, as a program sends them."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.expecting import read_expectation, to_json
from studio.models import Expectation, Scenario
from studio.operations.expectation_checks import ScenarioRefusedError, make_sure_it_fits
from studio.operations.scenarios import draft_of

_BESIDE = ("uid", "because", "sentence")  # what stands beside the expectation itself
_LONGEST = 2_000


@transaction.atomic
def replace_expectations(scenario: Scenario, items: Sequence[JsonObject], *, by: str = "") -> None:
    """Make these the scenario's expectations; one with the `uid` of another is that one, changed.

    `sentence` is left out of account. Raises ScenarioRefusedError, whose field is a path: "2.tool".
    """
    agent = draft_of(scenario.suite.agent)
    stored = {row.uid: row for row in scenario.expectations.all()}
    rows: list[Expectation] = []
    for place, item in enumerate(items):
        told = {name: value for name, value in item.items() if name not in _BESIDE}
        try:
            expectation = read_expectation(told)
            make_sure_it_fits(expectation, scenario, agent)
        except (SpecError, ScenarioRefusedError) as error:
            raise ScenarioRefusedError(f"{place}.{error.field}".rstrip("."), str(error)) from error
        row = stored.pop(_text(item, "uid", place), None)
        row = row or Expectation(scenario=scenario, created_by=by[:150])
        row.data, row.because = to_json(expectation), _text(item, "because", place)
        rows.append(row)
    Expectation.objects.filter(pk__in=[row.pk for row in stored.values()]).delete()
    for row in rows:
        row.save()


def _text(item: JsonObject, name: str, place: int) -> str:
    value: Any = item.get(name, "")
    if not isinstance(value, str) or len(value) > _LONGEST or "\x00" in value:
        raise ScenarioRefusedError(
            f"{place}.{name}",
            _("This is a text of at most %(count)d characters.") % {"count": _LONGEST},
        )
    return value
