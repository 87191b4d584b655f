"""Scenarios and their expectations: kept from sessions, written by hand, set aside for a while."""

from datetime import date, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import TypeAdapter

from engine import spec
from engine.canonical import JsonObject
from engine.errors import ToolError
from engine.expecting import Expectation as Expected
from engine.expecting import read_expectation, to_json
from engine.tools.recorded import Record, RecordedCall
from studio.bridge import agent_spec, compile_agent
from studio.models import Agent, AgentVersion, Expectation, Scenario, Session, Suite, Variant
from studio.models.agent import new_uid
from studio.operations.expectation_checks import ScenarioRefusedError, make_sure_it_fits
from studio.operations.recordings import recordings_of, turns_to_replay
from studio.operations.scenario_messages import as_messages, said_in, turn_count, turns_said
from studio.operations.variants import edited
from studio.readable_values import shortened

__all__ = [
    "ScenarioRefusedError",
    "add_expectation",
    "change_expectation",
    "draft_of",
    "duplicate",
    "end_quarantine",
    "extend",
    "keep_session",
    "quarantine",
    "read",
    "recorded_calls",
    "save_scenario",
    "turn_count",
    "turns_said",
]

LONGEST_QUARANTINE: Final = timedelta(days=90)
_TITLE = 80
_ERROR = TypeAdapter(ToolError)


def draft_of(agent: Agent) -> spec.Agent:
    """The agent's draft as it is now; nothing is stored."""
    if agent.snapshot_id is None:
        return compile_agent(agent)
    return agent_spec(AgentVersion.objects.without_spec().get(pk=agent.snapshot_id))


def read(row: Expectation) -> Expected:
    """Raises SpecError for one that was stored by a studio of other expectations."""
    return read_expectation(row.data)


@transaction.atomic
def save_scenario(scenario: Scenario, *, by: str = "") -> Scenario:
    """Store a new scenario, as the last of its suite, or a changed one."""
    if scenario.pk is None:
        scenario.created_by = by[:150]
        scenario.position = _next_position(scenario.suite)
    scenario.save()
    return scenario


def _next_position(suite: Suite) -> int:
    last: int | None = suite.scenarios.aggregate(last=Max("position"))["last"]
    return (last or 0) + 1


@transaction.atomic
def keep_session(
    session: Session,
    suite: Suite,
    *,
    title: str = "",
    up_to: int | None = None,
    variant: Variant | None = None,
    by: str = "",
) -> Scenario:
    """Keep what the customer said, up to the turn `up_to`, with the results of the calls and what was known of them.

    The results are as the variant edits them. Raises ScenarioRefusedError.
    """
    if session.agent_id != suite.agent_id:
        raise ScenarioRefusedError(
            "suite",
            _("“%(suite)s” is a suite of another agent; choose one of %(agent)s.")
            % {"suite": suite.name, "agent": session.agent.name},
        )
    scenario = Scenario(suite=suite, kept_from=session)
    _take(scenario, session, up_to=up_to, variant=variant)
    first = next((message["text"] for message in scenario.messages if "text" in message), "")
    given = " ".join((title or session.title or first).split())
    scenario.title = shortened(given, 200 if title or session.title else _TITLE) or str(session)
    return save_scenario(scenario, by=by)


def extend(scenario: Scenario, session: Session, *, up_to: int) -> bool:
    """Let a scenario that was kept from this session reach the turn `up_to` of it.

    False, and nothing is changed, where it was rewritten since, so that it no longer goes on like the session.
    """
    messages = as_messages(said_in(session, up_to=up_to))
    known = scenario.messages
    if messages[: len(known)] != known:
        return False
    if len(messages) > len(known):
        _take(scenario, session, up_to=up_to, variant=None)
        scenario.save()
    return True


def _take(
    scenario: Scenario, session: Session, *, up_to: int | None, variant: Variant | None
) -> None:
    said = said_in(session, up_to=up_to)
    if not said:
        raise ScenarioRefusedError(
            "session", _("The customer said nothing in it that an agent has answered yet.")
        )
    turns = turns_to_replay(session)
    recordings = recordings_of(session, turns if up_to is None else turns.filter(number__lte=up_to))
    scenario.messages = as_messages(said)
    scenario.results = [
        _result(call)
        for recording in recordings
        for call in (edited(recording.calls, variant) if variant else recording.calls)
    ]
    customer = session.customer
    scenario.customer_uid = customer.uid if customer is not None else ""
    known = next((r.ran_with.variables for r in recordings if r.ran_with is not None), None)
    if known is None:
        known = customer.variables if customer is not None else {}
    scenario.variables = known


def _result(call: RecordedCall) -> JsonObject:
    record = call.record
    outcome: JsonObject = (
        {"error": _ERROR.dump_python(record.error, mode="json")}
        if record.error is not None
        else {"result": record.result}
    )
    said = [list(words) for words in record.said]
    return {"tool": call.tool, "arguments": call.arguments, **outcome, "said": said}


def recorded_calls(scenario: Scenario) -> tuple[RecordedCall, ...]:
    """The results of a scenario for `engine.tools.recorded.RecordedCalls`."""
    return tuple(
        RecordedCall(
            tool=kept["tool"],
            arguments=kept["arguments"],
            record=Record(
                place=f"{scenario.uid}/{number}",
                result=kept.get("result"),
                error=_ERROR.validate_python(kept["error"]) if kept.get("error") else None,
                said=tuple((text, model) for text, model in kept.get("said", ())),
            ),
        )
        for number, kept in enumerate(scenario.results, start=1)
    )


def add_expectation(
    scenario: Scenario, expectation: Expected, *, because: str = "", by: str = ""
) -> Expectation:
    """Expect it of the scenario from now on; the same once more is the one there is. Raises ScenarioRefusedError."""
    data = to_json(expectation)
    make_sure_it_fits(expectation, scenario, draft_of(scenario.suite.agent))
    same = next((row for row in scenario.expectations.all() if row.data == data), None)
    if same is not None:
        if because.strip():
            same.because = because.strip()
            same.save(update_fields=["because", "updated_at"])
        return same
    return Expectation.objects.create(
        scenario=scenario, data=data, because=because.strip(), created_by=by[:150]
    )


def change_expectation(row: Expectation, expectation: Expected, *, because: str) -> Expectation:
    """Raises ScenarioRefusedError."""
    make_sure_it_fits(expectation, row.scenario, draft_of(row.scenario.suite.agent))
    row.data = to_json(expectation)
    row.because = because.strip()
    row.save()
    return row


@transaction.atomic
def duplicate(scenario: Scenario, *, by: str = "") -> Scenario:
    """The same once more, at the end of its suite; it is not quarantined."""
    expectations = list(scenario.expectations.all())
    copy = Scenario.objects.get(pk=scenario.pk)
    copy.pk, copy.uid = None, new_uid()
    copy.title = shortened(_("%(title)s (copy)") % {"title": scenario.title}, 200)
    copy.quarantined_until, copy.quarantine_reason, copy.quarantined_by = None, "", ""
    save_scenario(copy, by=by)
    Expectation.objects.bulk_create(
        Expectation(scenario=copy, data=row.data, because=row.because, created_by=by[:150])
        for row in expectations
    )
    return copy


def is_quarantined(scenario: Scenario) -> bool:
    """Do its failures count for nothing today? The last day is one of them."""
    until = scenario.quarantined_until
    return until is not None and until >= timezone.localdate()


def quarantine(scenario: Scenario, *, until: date, reason: str, by: str = "") -> None:
    """Its failures count for nothing up to and with this day. Raises ScenarioRefusedError."""
    today = timezone.localdate()
    if not today < until <= today + LONGEST_QUARANTINE:
        raise ScenarioRefusedError(
            "until",
            _("Choose a day from tomorrow on, at most %(days)d days ahead.")
            % {"days": LONGEST_QUARANTINE.days},
        )
    if not reason.strip():
        raise ScenarioRefusedError("reason", _("Say why, so that others know when it can end."))
    scenario.quarantined_until = until
    scenario.quarantine_reason = reason.strip()
    scenario.quarantined_by = by[:150]
    scenario.save()


def end_quarantine(scenario: Scenario) -> None:
    scenario.quarantined_until = None
    scenario.quarantine_reason = scenario.quarantined_by = ""
    scenario.save()
