"""What a run keeps of its scenarios, so that its report stays true, and whether that is what they still are."""

from collections.abc import Sequence
from typing import Any, Final

from engine import spec
from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.expecting import read_expectation
from studio.expectation_words import sentence
from studio.models import ModelConnection, Scenario, Suite, SuiteRun
from studio.operations.run_prices import tokens_of
from studio.operations.scenarios import is_quarantined

_PLAYED: Final = (
    "uid",
    "kind",
    "messages",
    "brief",
    "tools",
    "results",
    "customer_uid",
    "variables",
)


def snapshot_of(
    scenarios: Sequence[Scenario],
    agent: spec.Agent,
    *,
    connection: ModelConnection | None = None,
) -> list[JsonObject]:
    """The scenarios with their expectations, as `SuiteRun.scenarios` keeps them.

    `quarantined` is the date until which its failures do not count, empty where they do today; `tokens` what one
    conversation is expected to use.
    """
    tokens = tokens_of(scenarios, connection)
    found = []
    for row in scenarios:
        until = row.quarantined_until if is_quarantined(row) else None
        found.append(
            {
                **_content_of(row),
                "title": row.title,
                "kept_from": row.kept_from_id,
                "quarantined": until.isoformat() if until else "",
                "quarantine_reason": row.quarantine_reason if until else "",
                "tokens": tokens[row.uid],
                "expectations": [
                    {
                        "uid": one.uid,
                        "data": one.data,
                        "sentence": _sentence(one.data, agent),
                        "because": one.because,
                    }
                    for one in row.expectations.all()
                ],
            }
        )
    return found


def scenario_of(stored: JsonObject) -> Scenario:
    """The scenario as it was then, to be played; a row of no table."""
    return Scenario(**{name: stored[name] for name in _PLAYED})


def _content_of(scenario: Scenario) -> JsonObject:
    return {name: getattr(scenario, name) for name in _PLAYED}


def speaks_of(run: SuiteRun, suite: Suite) -> tuple[bool, bool]:
    """Does the run tell of the suite as it is now, and of the whole of it?

    It tells nothing of a scenario that was changed or deleted since, or that was in quarantine then and is not now. It
    is no whole one with scenarios left out, or with fewer repeats than the suite wants.
    """
    ran = {one["uid"]: one for one in run.scenarios}
    now = {row.uid: row for row in suite.scenarios.prefetch_related("expectations")}
    same = all(uid in now and _is_as_it_was(now[uid], one) for uid, one in ran.items())
    return same, len(ran) == len(now) and run.repeats >= suite.repeats


def _is_as_it_was(row: Scenario, then: JsonObject) -> bool:
    if any(then[name] != value for name, value in _content_of(row).items()):
        return False
    if then["quarantined"] and not is_quarantined(row):
        return False
    expected = {one["uid"]: one["data"] for one in then["expectations"]}
    return expected == {one.uid: one.data for one in row.expectations.all()}


def _sentence(data: Any, agent: spec.Agent) -> str:
    try:
        return sentence(read_expectation(data), agent)
    except SpecError as error:
        return str(error)
