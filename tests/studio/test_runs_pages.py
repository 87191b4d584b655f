"""Pages of runs: the form with its price, progress, the matrix, what was expected and found, files."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from engine.expecting import GuidelineExpectation
from studio.models import RunCell, SuiteRun
from studio.operations import lanes
from studio.operations.agents import publish, save_guideline
from studio.operations.suite_runs import CREW, start_run
from tests.studio.factories import make_connection, make_price, make_user
from tests.studio.tested_bank import Bank, cells_of, play, ran

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, db: None) -> Bank:
    bank = Bank(monkeypatch)
    bank.seed()
    return bank


@pytest.fixture
def qa(client: Client) -> Client:
    client.force_login(make_user("qa"))
    return client


def text_of(answer: Any) -> str:
    """The words of a page, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def page(client: Client, run: SuiteRun, query: str = "", **headers: str) -> str:
    answer = client.get(reverse("run", args=[run.pk]) + query, headers=headers)
    assert answer.status_code == 200
    return text_of(answer)


def runs_of(bank: Bank) -> str:
    return reverse("suite-runs", args=[bank.suite.pk])


# --- The list, and starting one


def test_an_empty_list_says_what_a_run_is_and_offers_the_form(qa: Client, bank: Bank) -> None:
    said = text_of(qa.get(runs_of(bank)))
    assert "It was never run" in said
    assert "3 conversations" in said
    assert "offline model answers: it costs nothing" in said


def test_without_scenarios_it_leads_to_the_suite(qa: Client, bank: Bank) -> None:
    bank.suite.scenarios.all().delete()
    said = text_of(qa.get(runs_of(bank)))
    assert "no scenario yet" in said
    assert "New run" not in said


def test_the_form_starts_a_run_as_it_says(qa: Client, bank: Bank) -> None:
    publish(bank.agent, note="", by=None)
    live = make_connection()
    body = {"against": ["draft", "1"], "repeats": "2", "connection": live.pk, "cap": "7000"}
    answer = qa.post(runs_of(bank), body)
    run = SuiteRun.objects.get()
    assert answer["Location"] == reverse("run", args=[run.pk])
    assert (run.against, run.repeats, run.connection, run.cap) == (["draft", "1"], 2, live, 7000)
    assert run.started_by.startswith("qa")


def test_what_is_wrong_stands_beside_its_field_and_starts_nothing(qa: Client, bank: Bank) -> None:
    answer = qa.post(runs_of(bank), {"repeats": "99"})
    assert answer.status_code == 422
    said = text_of(answer)
    assert "Choose at least one version to run against." in said
    assert "less than or equal to 20" in said
    assert not SuiteRun.objects.exists()


def test_the_price_follows_the_form(qa: Client, bank: Bank) -> None:
    live = make_connection(model="big")
    make_price(model="big", input_price="10", output_price="0")
    asked = f"?against=draft&repeats=2&connection={live.pk}"
    answer = qa.get(runs_of(bank) + asked, headers=HTMX)
    assert "<html" not in answer.content.decode()
    said = text_of(answer)
    assert "6 conversations , about 25,800 tokens, 0.24 USD" in said
    assert "rough guess" in said
    unknown = make_connection(model="new")
    said = text_of(qa.get(runs_of(bank) + f"?against=draft&connection={unknown.pk}", headers=HTMX))
    assert "new has no price in the price list." in said
    nothing = text_of(qa.get(runs_of(bank) + "?against=draft&repeats=x", headers=HTMX))
    assert "when the form is right" in nothing


def test_runs_are_listed_with_how_they_stand_in_constant_queries(qa: Client, bank: Bank) -> None:
    first = ran(bank.suite)

    def queries() -> int:
        with CaptureQueriesContext(connection) as context:
            qa.get(runs_of(bank))
        return len(context)

    few = queries()
    capped = start_run(bank.suite, enqueue=False)
    SuiteRun.objects.filter(pk=capped.pk).update(state="stopped", capped=True)
    paused = start_run(bank.suite, enqueue=False)
    lanes.pause(paused)
    assert queries() == few
    said = text_of(qa.get(runs_of(bank)))
    assert f"Run {first.pk} Failed draft 3" in said
    assert f"Run {capped.pk} Stopped at the cap draft 0 / 3" in said
    assert f"Run {paused.pk} Paused" in said


# --- A run


def test_a_run_that_goes_on_says_how_far_it_is_and_asks_again(qa: Client, bank: Bank) -> None:
    run = start_run(bank.suite, enqueue=False)
    assert "It waits for a worker." in page(qa, run)
    CREW.batches.claim(run.pk)
    for _cell in range(2):
        lanes._work(CREW, run)
    said = page(qa, run)
    assert "2 of 3 conversations." in said
    assert re.search(r"About \d+ seconds left\.", said)
    answer = qa.get(reverse("run", args=[run.pk]), headers=HTMX).content.decode()
    assert "<html" not in answer
    assert 'hx-trigger="every 1500ms"' in answer
    play(run)
    over = qa.get(reverse("run", args=[run.pk]), headers=HTMX).content.decode()
    assert "hx-trigger" not in over


def test_the_report_says_what_was_expected_and_what_was_found_instead(
    qa: Client, bank: Bank
) -> None:
    run = ran(bank.suite, repeats=2)
    answer = qa.get(reverse("run", args=[run.pk])).content.decode()
    said = page(qa, run)
    assert f"Run {run.pk} Failed" in said
    assert "1 failed 1 flaky 1 passed" in said
    assert "failed in decisions" in said
    assert "flaky: 1 of 2" in said
    assert "G1 “the customer asks for the balance” must match in some turn decisions" in said
    assert "G1 did not match" in said
    failed = cells_of(run, "Fails")[0]
    assert f'href="{reverse("session", args=[failed.session_id])}"' in answer
    assert f'href="{reverse("session-turn", args=[failed.session_id, 1])}"' in answer


@pytest.mark.parametrize(
    ("chosen", "titles"),
    [
        ("failing", ["Fails"]),
        ("flaky", ["Flaky"]),
        ("passed", ["Passes"]),
        ("nonsense", ["Passes", "Fails", "Flaky"]),
    ],
)
def test_the_report_is_filtered_in_the_address(
    qa: Client, bank: Bank, chosen: str, titles: list[str]
) -> None:
    run = ran(bank.suite, repeats=2)
    answer = qa.get(reverse("run", args=[run.pk]) + f"?show={chosen}").content.decode()
    assert re.findall(r'<h3 id="title-[^>]+>([^<]+)</h3>', answer) == titles


def test_it_is_compared_with_the_run_before(qa: Client, bank: Bank) -> None:
    first = ran(bank.suite, repeats=2)
    bank.thanks.condition = "the customer swears"
    save_guideline(bank.thanks)
    second = ran(bank.suite, repeats=2)
    assert "Since run" not in page(qa, first)
    said = page(qa, second)
    assert f"Since run {first.pk} Passes Passed → then Failed" in said
    third = ran(bank.suite, repeats=2)
    assert "No scenario came to another verdict." in page(qa, third)


def test_an_invalid_conversation_says_why(qa: Client, bank: Bank) -> None:
    run = ran(bank.suite)
    spoiled, broken, _other = run.cells.order_by("pk")
    RunCell.objects.filter(pk=spoiled.pk).update(invalid="They <b>sang</b>.", outcomes=[])
    RunCell.objects.filter(pk=broken.pk).update(error="The server was down.")
    said = page(qa, run)
    assert "did not keep to the brief: They &lt;b&gt;sang&lt;/b&gt;." in said
    assert "could not be had to its end: The server was down." in said


def test_it_is_paused_resumed_cancelled_and_run_again_by_forms(qa: Client, bank: Bank) -> None:
    run = start_run(bank.suite, enqueue=False)

    def press(name: str, **body: str) -> SuiteRun:
        answer = qa.post(reverse(name, args=[run.pk]), body)
        assert answer["Location"] == reverse("run", args=[run.pk])
        run.refresh_from_db()
        return run

    assert press("run-pause").paused
    assert "Go on" in page(qa, run)
    assert not press("run-resume").paused
    assert press("run-cancel").state == "stopped"
    assert "Run what is left" in page(qa, run)
    assert press("run-resume").state == "queued"
    play(run)
    assert "Run again what did not pass" in page(qa, run)
    assert press("run-retry").state == "queued"
    SuiteRun.objects.filter(pk=run.pk).update(state="stopped", capped=True, cap=10)
    assert "There is no verdict." in page(qa, run)
    resumed = press("run-resume")
    assert (resumed.state, resumed.cap) == ("queued", 0)


def test_who_only_reads_has_no_buttons(client: Client, bank: Bank, monkeypatch: Any) -> None:
    from studio import access

    monkeypatch.setitem(access._ROLES, access.May.TEST, frozenset({access.Role.QA}))
    client.force_login(make_user("author"))
    run = ran(bank.suite)
    assert "Run again" not in page(client, run)
    assert "New run" not in text_of(client.get(runs_of(bank)))
    assert client.post(reverse("run-retry", args=[run.pk])).status_code == 403


def test_files_are_downloads_with_their_types(qa: Client, bank: Bank) -> None:
    run = ran(bank.suite)
    for name, kind, begins in (
        ("run-junit", "application/xml", "<?xml"),
        ("run-csv", "text/csv", "\ufeffrun,"),
        ("run-html", "text/html", "\n<!doctype html>"),
    ):
        answer = qa.get(reverse(name, args=[run.pk]))
        assert answer["Content-Type"].startswith(kind)
        assert answer["Content-Disposition"].startswith('attachment; filename="run-')
        assert answer.content.decode().lstrip().startswith(begins.lstrip())


def test_a_report_takes_as_many_queries_with_many_scenarios(qa: Client, bank: Bank) -> None:
    def queries(run: SuiteRun) -> int:
        with CaptureQueriesContext(connection) as context:
            page(qa, run)
        return len(context)

    ran(bank.suite)
    few = queries(ran(bank.suite))
    for number in range(5):
        bank.scenario(f"More {number}", GuidelineExpectation(guideline="thanks"))
    assert queries(ran(bank.suite, repeats=2)) == few
