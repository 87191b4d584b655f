"""Suites that gate publishing: only what passed them as they are now, against exactly this draft, is published."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from engine.expecting import GuidelineExpectation
from studio.models import Suite, SuiteRun
from studio.operations.agents import publish, save_guideline, snapshot
from studio.operations.gating import GateShutError, GateState, gates_of
from studio.operations.scenarios import add_expectation
from studio.operations.suite_runs import start_run
from tests.studio.factories import make_user
from tests.studio.tested_bank import Bank, play, ran

pytestmark = pytest.mark.django_db


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, db: None) -> Bank:
    bank = Bank(monkeypatch)
    bank.suite.gates_publishing = True
    bank.suite.save()
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    return bank


def state(bank: Bank) -> GateState:
    (gate,) = gates_of(bank.agent, snapshot(bank.agent).fingerprint)
    return gate.state


def refused(bank: Bank) -> str:
    with pytest.raises(GateShutError) as shut:
        publish(bank.agent, note="", by=None)
    assert not bank.agent.versions.published().exists()
    return str(shut.value)


def test_what_passed_is_published_and_what_was_never_run_is_not(bank: Bank) -> None:
    assert "“Regression” was not run as a whole against this draft yet" in refused(bank)
    ran(bank.suite)
    assert state(bank) is GateState.PASSED
    assert publish(bank.agent, note="", by=None).number == 1


def test_suites_that_gate_nothing_are_in_nobodys_way(bank: Bank) -> None:
    Suite.objects.update(gates_publishing=False)
    assert publish(bank.agent, note="", by=None).number == 1


def test_another_edit_of_the_draft_takes_another_run(bank: Bank) -> None:
    ran(bank.suite)
    bank.thanks.action = "nod"
    save_guideline(bank.thanks)
    assert state(bank) is GateState.MISSING
    ran(bank.suite)
    bank.thanks.action = "say they are welcome"
    save_guideline(bank.thanks)
    assert state(bank) is GateState.PASSED  # again what the first run was against


def test_a_failing_run_names_suite_and_run_and_a_newer_one_counts(bank: Bank) -> None:
    ran(bank.suite)
    scenario = bank.suite.scenarios.get()
    wrong = add_expectation(scenario, GuidelineExpectation(guideline="balance"))
    run = ran(bank.suite)
    assert f"“Regression” did not pass against this draft: see run {run.pk}" in refused(bank)
    wrong.delete()
    assert state(bank) is GateState.PASSED  # the suite is again what the first run passed
    newer = start_run(bank.suite, enqueue=False)
    assert state(bank) is GateState.PASSED
    play(newer)
    assert state(bank) is GateState.PASSED


def test_a_run_on_its_way_is_waited_for(bank: Bank) -> None:
    run = start_run(bank.suite, enqueue=False)
    assert f"wait for run {run.pk}" in refused(bank)


@pytest.mark.parametrize("change", ["new scenario", "expectation", "messages", "repeats"])
def test_a_suite_that_was_changed_since_takes_another_run(bank: Bank, change: str) -> None:
    ran(bank.suite)
    scenario = bank.suite.scenarios.get()
    match change:
        case "new scenario":
            bank.scenario("New", GuidelineExpectation(guideline="balance"))
        case "expectation":
            add_expectation(scenario, GuidelineExpectation(guideline="balance", matches=False))
        case "messages":
            scenario.messages = [{"text": "Bye"}]
            scenario.save()
        case "repeats":
            bank.suite.repeats = 3
            bank.suite.save()
    assert state(bank) is GateState.MISSING


def test_a_new_title_is_no_change(bank: Bank) -> None:
    ran(bank.suite)
    bank.suite.scenarios.update(title="Courtesy", position=4)
    assert state(bank) is GateState.PASSED


def test_a_part_of_the_suite_opens_no_gate_and_can_shut_it(bank: Bank) -> None:
    other = bank.scenario("Other", GuidelineExpectation(guideline="thanks"), say=("Thanks!",))
    thanks = bank.suite.scenarios.get(title="Thanks")
    ran(bank.suite, scenarios=[thanks.uid])
    assert state(bank) is GateState.MISSING
    ran(bank.suite)
    assert state(bank) is GateState.PASSED
    run = ran(bank.suite, scenarios=[other.uid])
    run.cells.update(error="The server was down.")
    assert state(bank) is GateState.FAILED


def test_the_draft_has_to_pass_whatever_else_was_run_beside_it(bank: Bank) -> None:
    ran(bank.suite)
    publish(bank.agent, note="", by=None)
    bank.thanks.condition = "the customer swears"
    save_guideline(bank.thanks)
    run = ran(bank.suite, against=["published", "draft"])
    assert (run.verdict, state(bank)) == ("failed", GateState.FAILED)
    bank.thanks.condition = "the customer says thanks or swears"
    save_guideline(bank.thanks)
    SuiteRun.objects.all().delete()
    with pytest.raises(GateShutError):
        publish(bank.agent, note="", by=None)


def test_a_quarantine_that_ended_since_takes_another_run(bank: Bank) -> None:
    failing = bank.scenario("Fails", GuidelineExpectation(guideline="thanks"))
    failing.quarantined_until = timezone.localdate() + timedelta(days=2)
    failing.save()
    ran(bank.suite)
    assert state(bank) is GateState.PASSED
    failing.quarantined_until = None
    failing.save()
    assert state(bank) is GateState.MISSING
    ran(bank.suite)
    assert state(bank) is GateState.FAILED


def test_a_suite_without_scenarios_opens_no_gate(bank: Bank) -> None:
    bank.suite.scenarios.all().delete()
    assert "has no scenario: write one first" in refused(bank)


# --- Where it is published


@pytest.fixture
def publisher(client: Client) -> Client:
    client.force_login(make_user("publisher"))
    return client


def test_the_form_shows_what_it_waits_for_and_runs_it(bank: Bank, publisher: Client) -> None:
    address = reverse("agent-versions", args=["bank"])
    page = publisher.get(address).content.decode()
    assert "Publishing waits for these suites" in page
    assert "Not run yet" in page

    answer = publisher.post(address, {"note": ""})
    assert answer.status_code == 422
    assert "was not run as a whole" in answer.content.decode()

    where = reverse("suite-runs", args=[bank.suite.pk])
    assert f'formaction="{where}"' in page
    begun = publisher.post(where, {"against": "draft", "note": "unsaved"})
    run = SuiteRun.objects.get()
    assert begun["Location"] == reverse("run", args=[run.pk])
    play(run)

    assert "Run it now" not in publisher.get(reverse("agent", args=["bank"])).content.decode()
    assert publisher.post(address, {"note": ""}).status_code == 302
    assert bank.agent.versions.published().count() == 1


def test_the_api_answers_409_with_the_reason(bank: Bank, client: Client) -> None:
    from studio.models import ApiToken

    _row, token = ApiToken.make(make_user("publisher").pk)
    headers: dict[str, Any] = {"authorization": f"Bearer {token}"}
    answer = client.post(
        "/api/v1/agents/bank/versions", {"note": ""}, "application/json", headers=headers
    )
    assert answer.status_code == 409
    assert "“Regression” was not run as a whole" in answer.json()["detail"]
