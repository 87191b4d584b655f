"""A suite as one document, YAML or JSON: written in a stable order, fit for version control, and read back."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.db import transaction
from django.utils.dateparse import parse_date
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine import spec
from engine.canonical import JsonObject, canonical_json
from engine.errors import SpecError
from engine.expecting import read_expectation, to_json
from studio.models import Agent, Expectation, Scenario, Suite
from studio.operations.document_report import Change, DocumentError, Problem, Report, ReportRow
from studio.operations.document_text import parse
from studio.operations.expectation_checks import ScenarioRefusedError, make_sure_it_fits
from studio.operations.scenarios import draft_of, recorded_calls
from studio.operations.suites import save_suite
from studio.yaml_text import DocumentSyntaxError, write_yaml

FORMAT: Final = "guideline-studio-suite"
VERSION: Final = 1
_SUITE = ("name", "description", "repeats", "gates_publishing")
_SCENARIO = ("title", "kind", "messages", "brief", "tools", "results", "customer_uid", "variables")
_BRIEF = frozenset({"persona", "goal", "stop", "turns", "tokens"})
_QUARANTINE = ("quarantined_until", "quarantine_reason", "quarantined_by")
_TYPES: dict[
    str, tuple[type, int, Promise]
] = {  # of a field: its type, how much of it, and what to say
    "name": (str, 120, gettext_lazy("This is a text of at most 120 characters.")),
    "description": (str, 2_000, gettext_lazy("This is a text of at most 2,000 characters.")),
    "repeats": (int, 0, gettext_lazy("This is a whole number.")),
    "gates_publishing": (bool, 0, gettext_lazy("This is true or false.")),
    "title": (str, 200, gettext_lazy("This is a text of at most 200 characters.")),
    "kind": (str, 10, gettext_lazy("This is “scripted” or “simulated”.")),
    "tools": (str, 8, gettext_lazy("This is “recorded” or “live”.")),
    "messages": (list, 0, gettext_lazy("This is a list.")),
    "brief": (dict, 0, gettext_lazy("This is an object.")),
    "results": (list, 0, gettext_lazy("This is a list.")),
    "customer_uid": (str, 64, gettext_lazy("This is a text of at most 64 characters.")),
    "variables": (dict, 0, gettext_lazy("This is an object.")),
    "quarantined_until": (str, 10, gettext_lazy("Write the day as 2026-12-31.")),
    "quarantine_reason": (str, 2_000, gettext_lazy("This is a text of at most 2,000 characters.")),
    "quarantined_by": (str, 150, gettext_lazy("This is a text of at most 150 characters.")),
}
_UID = re.compile(r"[A-Za-z0-9_-]{1,32}")
MOST_SCENARIOS: Final = 2_000

CheckSuite = Callable[[Agent, JsonObject, Suite | None], Mapping[str, list[str]]]
"""What is wrong with the fields of a suite, by field."""
CheckScenario = Callable[[Suite, JsonObject], Mapping[str, list[str]]]
"""What is wrong with the fields of a scenario, by field."""


def suite_document(suite: Suite) -> JsonObject:
    """What is as usual is left out of a scenario, so that it reads easily."""
    document: JsonObject = {"format": FORMAT, "schema_version": VERSION, "agent": suite.agent.slug}
    document |= {name: getattr(suite, name) for name in _SUITE}
    rows = suite.scenarios.prefetch_related("expectations")
    document["scenarios"] = [_scenario_document(row) for row in rows]
    return document


def _scenario_document(scenario: Scenario) -> JsonObject:
    usual = Scenario()
    told: JsonObject = {"uid": scenario.uid, "title": scenario.title, "kind": scenario.kind}
    for name in (*_SCENARIO[2:], *_QUARANTINE):
        value = getattr(scenario, name)
        if value != getattr(usual, name):
            told[name] = value.isoformat() if name == "quarantined_until" else value
    told["expectations"] = [
        {"uid": row.uid, **row.data, **({"because": row.because} if row.because else {})}
        for row in scenario.expectations.all()
    ]
    return told


def suite_text(suite: Suite, style: Literal["yaml", "json"] = "yaml") -> str:
    """The document as text: the same text for the same suite."""
    value = suite_document(suite)
    if style == "json":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return write_yaml(value)


@dataclass(slots=True)
class _Read:
    """A scenario of the document, as far as it could be read."""

    values: JsonObject
    report: ReportRow
    expectations: list[JsonObject] = field(default_factory=list)


@transaction.atomic
def import_suite(
    text: str,
    agent: Agent,
    *,
    check_suite: CheckSuite,
    check_scenario: CheckScenario,
    dry_run: bool = False,
    by: str = "",
) -> tuple[Report, Suite | None]:
    """Make the suite of this name of the agent what the document says; a new one where there is none.

    Scenarios and expectations are the same by uid; those that the document no longer has are deleted. Nothing is
    changed on a `dry_run`, and nothing on a DocumentError. The suite is None where none was made.
    """
    try:
        document = parse(text)
    except DocumentSyntaxError as error:
        row = ReportRow(place="suite", change=Change.ERROR)
        row.problems.append(Problem(place="", message=str(error)))
        raise DocumentError(Report(slug="", rows=[row])) from error
    head, values = _read_head(document)
    name = str(values.get("name", ""))
    suite = agent.suites.filter(name=name).first()
    _check(head, values, lambda told: check_suite(agent, told, suite))
    target = suite or Suite(agent=agent, name=name)
    stored = (
        {row.uid: row for row in suite.scenarios.prefetch_related("expectations")} if suite else {}
    )
    read = _read_scenarios(document, head, target, draft_of(agent), check_scenario)
    now = {field: getattr(suite, field) for field in _SUITE} if suite else {}
    order = [one.values.get("uid") for one in read] == list(stored)
    head.settle(new=suite is None, same=now == {**now, **values} and order)
    for one in read:
        known = stored.get(str(one.values.get("uid")))
        one.report.settle(new=known is None, same=known is not None and _is_same(known, one))
    gone = [uid for uid in stored if uid not in {one.values.get("uid") for one in read}]
    rows = [head, *(one.report for one in read)]
    rows += [
        ReportRow(place="", uid=uid, title=stored[uid].title, change=Change.DELETE) for uid in gone
    ]
    report = Report(slug=name, rows=rows)
    if report.problems:
        raise DocumentError(report)
    if dry_run or not report.changed:
        return report, suite
    for field_name, value in values.items():
        setattr(target, field_name, value)
    save_suite(target, by=by)
    target.scenarios.filter(uid__in=gone).delete()
    for position, one in enumerate(read, start=1):
        _store(target, stored.get(one.values["uid"]), one, position, by)
    return report, target


def _read_head(document: JsonObject) -> tuple[ReportRow, JsonObject]:
    head = ReportRow(place="suite", title=str(document.get("name", "")))
    if document.get("format") != FORMAT:
        head.wrong("format", _("This is no document of a suite: it has no format: %s.") % FORMAT)
    elif document.get("schema_version") != VERSION:
        head.wrong(
            "schema_version",
            _("This studio reads version %(mine)d of the document, not %(theirs)s.")
            % {"mine": VERSION, "theirs": document.get("schema_version")},
        )
    known = {"format", "schema_version", "agent", "scenarios", *_SUITE}
    for name in sorted(set(document) - known):
        head.wrong(name, _("A suite has no such field; remove it."))
    return head, {name: document[name] for name in _SUITE if name in document}


def _read_scenarios(
    document: JsonObject, head: ReportRow, suite: Suite, agent: spec.Agent, check: CheckScenario
) -> list[_Read]:
    listed = document.get("scenarios", [])
    if not isinstance(listed, list) or len(listed) > MOST_SCENARIOS:
        head.wrong(
            "scenarios",
            _("This is a list of at most %(count)d scenarios.") % {"count": MOST_SCENARIOS},
        )
        return []
    found: list[_Read] = []
    seen: set[str] = set()
    for place, item in enumerate(listed):
        row = ReportRow(place=f"scenarios[{place}]")
        one = _Read(values=item if isinstance(item, dict) else {}, report=row)
        found.append(one)
        if not isinstance(item, dict):
            row.wrong("", _("A scenario is an object."))
            continue
        _read_scenario(one, seen, suite, agent, check)
    return found


def _read_scenario(
    one: _Read, seen: set[str], suite: Suite, agent: spec.Agent, check: CheckScenario
) -> None:
    values, row = one.values, one.report
    uid = values.get("uid")
    row.uid, row.title = str(uid or ""), str(values.get("title", ""))
    if not isinstance(uid, str) or not _UID.fullmatch(uid) or uid == "new":
        row.wrong("uid", _("Give a uid of 1 to 32 letters and digits, another for each scenario."))
    elif uid in seen:
        row.wrong("uid", _("Another scenario has this uid already."))
    seen.add(str(uid))
    for name in sorted(set(values) - {"uid", "expectations", *_SCENARIO, *_QUARANTINE}):
        row.wrong(name, _("A scenario has no such field; remove it."))
    _check(
        row,
        {name: values[name] for name in (*_SCENARIO, *_QUARANTINE) if name in values},
        lambda told: check(suite, {name: told[name] for name in _SCENARIO if name in told}),
    )
    _check_brief(one)
    _check_results(one)
    _check_quarantine(one)
    _read_expectations(one, agent)


def _check(
    row: ReportRow,
    values: JsonObject,
    check: Callable[[JsonObject], Mapping[str, list[str]]],
) -> None:
    """First the types of fields; only where they are right, what they say."""
    wrong = {name: why for name, value in values.items() if (why := _wrong_type(name, value))}
    for name, why in wrong.items():
        row.wrong(name, why)
    for name, messages in (check(values) if not wrong else {}).items():
        for message in messages:
            row.wrong(name, message)


def _wrong_type(name: str, value: Any) -> str:
    kind: type
    kind, most, why = _TYPES[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return str(why)
    return str(why) if isinstance(value, str) and len(value) > most else ""


def _check_brief(one: _Read) -> None:
    brief = one.values.get("brief")
    for name in sorted(set(brief) - _BRIEF) if isinstance(brief, dict) else ():
        one.report.wrong(
            f"brief.{name}", _("The brief of a customer has no such field; remove it.")
        )


def _check_results(one: _Read) -> None:
    try:
        recorded_calls(Scenario(uid="read", results=one.values.get("results", [])))
    except (TypeError, KeyError, ValueError, AttributeError):
        one.report.wrong(
            "results", _("A result has tool, arguments, said, and a result or an error.")
        )


def _check_quarantine(one: _Read) -> None:
    until = one.values.get("quarantined_until")
    try:
        day = parse_date(until) if isinstance(until, str) else None
    except ValueError:
        day = None
    if until is not None and day is None:
        one.report.wrong("quarantined_until", _("Write the day as 2026-12-31."))


def _read_expectations(one: _Read, agent: spec.Agent) -> None:
    scenario = Scenario(
        kind=one.values.get("kind", Scenario.Kind.SCRIPTED),
        messages=one.values.get("messages", []),
        brief=one.values.get("brief", {}),
    )
    listed = one.values.get("expectations", [])
    if not isinstance(listed, list):
        one.report.wrong("expectations", _("This is a list of expectations."))
        return
    for place, item in enumerate(listed):
        where = f"expectations[{place}]"
        if not isinstance(item, dict):
            one.report.wrong(where, _("An expectation is an object."))
            continue
        data = {name: value for name, value in item.items() if name not in {"uid", "because"}}
        uid, because = item.get("uid", ""), item.get("because", "")
        if not isinstance(uid, str) or not _UID.fullmatch(uid) or uid == "new":
            one.report.wrong(f"{where}.uid", _("Give a uid of 1 to 32 letters and digits."))
        if not isinstance(because, str) or len(because) > 2_000:
            one.report.wrong(f"{where}.because", _("This is a text of at most 2,000 characters."))
        try:
            expectation = read_expectation(data)
            make_sure_it_fits(expectation, scenario, agent)
        except (SpecError, ScenarioRefusedError) as error:
            one.report.wrong(f"{where}.{error.field}".rstrip("."), str(error))
        except (TypeError, ValueError, AttributeError):
            one.report.wrong(
                where, _("What the customer says cannot be read, so no turn is known.")
            )
        else:
            one.expectations.append({"uid": uid, "data": to_json(expectation), "because": because})


def _is_same(stored: Scenario, one: _Read) -> bool:
    now = _scenario_document(stored)
    known = [
        {"uid": row.uid, "data": row.data, "because": row.because}
        for row in sorted(stored.expectations.all(), key=lambda row: row.uid)
    ]
    expectations = sorted(one.expectations, key=lambda told: str(told["uid"]))
    told = {**one.values, "expectations": expectations}
    return canonical_json(told) == canonical_json({**now, "expectations": known})


def _store(suite: Suite, stored: Scenario | None, one: _Read, position: int, by: str) -> None:
    scenario = stored or Scenario(suite=suite, uid=one.values["uid"], created_by=by[:150])
    usual = Scenario()
    for name in (*_SCENARIO, *_QUARANTINE):
        setattr(scenario, name, one.values.get(name, getattr(usual, name)))
    until = scenario.quarantined_until
    scenario.quarantined_until = parse_date(until) if isinstance(until, str) else until
    scenario.position = position
    scenario.save()
    kept = {row.uid: row for row in scenario.expectations.all()} if stored else {}
    for told in one.expectations:
        row = kept.pop(told["uid"], None) or Expectation(scenario=scenario, created_by=by[:150])
        row.uid, row.data, row.because = told["uid"], told["data"], told["because"]
        row.save()
    Expectation.objects.filter(pk__in=[row.pk for row in kept.values()]).delete()
