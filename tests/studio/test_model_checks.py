"""Checks of a connection's model: begun, run by a worker, watched, stopped, and their proposal taken over."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from engine.model.base import JudgingStyle
from engine.model.check import Kind, Proposal, Report, report
from studio.models import ModelCheck, ModelConnection
from studio.operations import model_checks
from studio.operations.model_checks import run_check, start_check
from tests.openai_server import Body, Hang, OpenAIServer, closed_port
from tests.studio.factories import make_connection, make_user

pytestmark = pytest.mark.django_db


def says_no(body: Body) -> Body:
    """An answer of the right form to each question: nothing applies, nothing is needed, nothing is answered."""
    form = body["response_format"]["json_schema"]
    match form["name"]:
        case "MatchGuidelines":
            labels = re.findall(r'^\{"id": "(G\d+)"', body["messages"][0]["content"], re.MULTILINE)
            no = [{"guideline": label, "because": "No.", "applies": False} for label in labels]
            return {"newest": "", "judgements": no}
        case "ScoreGuideline":
            return {"applies": False}
        case "InferToolCalls":
            return {"because": "No.", "decision": "NOT_NEEDED", "calls": []}
        case "ReadConfirmation":
            calls = form["schema"]["properties"]["answers"]["items"]["properties"]["call"]["enum"]
            open_ = [
                {"call": call, "quote": "", "other": "", "answer": "unanswered"} for call in calls
            ]
            return {"answers": open_, "also": ""}
        case other:
            raise AssertionError(other)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer=says_no, confidence=0.9) as server:
        yield server


@pytest.fixture
def developer(client: Client) -> User:
    person = make_user("developer", username="dana")
    client.force_login(person)
    return person


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_checks, "NOTED_EVERY", 0.02)


def address(row: ModelCheck, *rest: str) -> str:
    return "/".join([f"/settings/connections/{row.connection_id}/checks/{row.pk}", *rest, ""])


def read(client: Client, row: ModelCheck, **headers: str) -> str:
    response = client.get(address(row), headers=headers)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def make_check(connection: ModelConnection | None = None, **values: Any) -> ModelCheck:
    usual = {"model": "small", "cases": 216}
    return ModelCheck.objects.create(connection=connection or make_connection(), **(usual | values))


def finished(connection: ModelConnection | None = None, **values: Any) -> ModelCheck:
    proposal = Proposal(style=JudgingStyle.SCORED, batch_size=1, because="It is right more often.")
    result = Report(rows=report([]).rows, proposal=proposal).to_json()
    usual = {"state": ModelCheck.State.FINISHED, "result": result, "asked": 9}
    return make_check(connection, **(usual | values))


# --- works


def test_a_check_is_queued_once_and_the_page_says_that_it_waits(
    client: Client, developer: User, django_capture_on_commit_callbacks: Any
) -> None:
    connection = make_connection(model="small")
    with django_capture_on_commit_callbacks() as queued:
        first = client.post(f"/settings/connections/{connection.pk}/checks/")
        second = client.post(f"/settings/connections/{connection.pk}/checks/")
    row = ModelCheck.objects.get()
    assert first.headers["Location"] == second.headers["Location"] == address(row)
    assert len(queued) == 1
    assert (row.state, row.model, row.started_by) == ("queued", "small", "dana")
    html = read(client, row)
    assert "It waits for a worker." in html
    assert f'<progress max="{row.cases}" value="0"' in html
    assert f'hx-get="{address(row)}" hx-trigger="every 1500ms"' in html


@pytest.mark.django_db(transaction=True)
def test_a_worker_runs_it_and_the_page_shows_what_was_right_and_wrong(
    client: Client, developer: User, server: OpenAIServer, quick: None
) -> None:
    connection = make_connection(base_url=server.base_url, model="small", batch_size=3)
    row = start_check(connection, by=developer)
    run_check(row.pk)
    row.refresh_from_db()
    assert (row.state, row.asked, row.error) == ("finished", row.cases, "")
    assert row.heartbeat_at is None
    result = Report.from_json(row.result)
    assert [each.complete for each in result.rows] == [True] * 6
    scored = next(r for r in result.rows if r.setting.style is JudgingStyle.SCORED)
    assert scored.scores == 48
    assert {request.body["model"] for request in server.completions} == {"small"}
    html = read(client, row)
    assert "hx-trigger" not in html.partition('id="check"')[2].partition(">")[0]
    assert "Guidelines with reasons, 4 at once" in html
    assert "<dt>Expected</dt><dd>applies</dd>" in html
    assert "scored 0.10" in html
    assert (
        "Use batch size 12, reasoned" in html
    )  # as right as the others, with the fewest questions


def test_the_proposal_is_taken_over_with_a_button(client: Client, developer: User) -> None:
    row = finished(make_connection(name="Local", batch_size=12))
    html = read(client, row)
    assert "It is right more often." in html
    assert "Use batch size 1, scored" in html
    response = client.post(address(row, "proposal"), follow=True)
    assert "asked with batch size 1, scored" in response.content.decode()
    connection = ModelConnection.objects.get()
    assert (connection.batch_size, connection.judging_style) == (1, "scored")
    assert "The connection is asked like this" in read(client, row)


def test_htmx_gets_the_region_alone(client: Client, developer: User) -> None:
    html = read(client, finished(), **{"HX-Request": "true"})
    assert html.startswith('<section id="check"')


def test_the_connections_page_offers_a_check_and_names_the_last_one(
    client: Client, developer: User
) -> None:
    row = finished()
    html = client.get(f"/settings/connections/{row.connection_id}/").content.decode()
    assert "Check the model" in html
    assert f'<a href="{address(row)}">Last check: finished</a>' in html


def test_only_the_last_checks_of_a_connection_are_kept(developer: User) -> None:
    connection = make_connection()
    other = finished()
    old = [finished(connection).pk for _ in range(12)]
    row = start_check(connection, by=developer)
    kept = set(connection.checks.values_list("pk", flat=True))
    assert kept == {row.pk, *old[-9:]}
    assert ModelCheck.objects.filter(pk=other.pk).exists()


# --- stopping, and what goes wrong


def test_a_waiting_check_is_stopped_at_once_and_no_worker_takes_it(
    client: Client, developer: User
) -> None:
    row = make_check()
    client.post(address(row, "stop"))
    row.refresh_from_db()
    assert row.state == "stopped"
    run_check(row.pk)
    row.refresh_from_db()
    assert (row.state, row.started_at) == ("stopped", None)
    again = client.post(address(row, "stop"), follow=True)
    assert "over already" in again.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_running_check_is_stopped_and_keeps_what_it_found(
    client: Client, developer: User, server: OpenAIServer, quick: None
) -> None:
    connection = make_connection(base_url=server.base_url)
    row = start_check(connection, by=developer)
    asked = threading.Event()

    def answer(body: Body) -> Body:
        if len(server.completions) == 5:
            asked.set()
        return says_no(body)

    server.answer = answer
    server.latency = 0.02
    running = threading.Thread(target=run_check, args=[row.pk])
    running.start()
    assert asked.wait(10)
    client.post(address(row, "stop"))
    running.join(10)
    row.refresh_from_db()
    assert row.state == "stopped"
    assert 0 < row.asked < row.cases
    assert "Stopped" in read(client, row)


def test_a_server_that_is_down_fails_the_check_with_the_reason(
    client: Client, developer: User, quick: None
) -> None:
    connection = make_connection(base_url=f"http://127.0.0.1:{closed_port()}/v1")
    row = make_check(connection)
    run_check(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"
    assert "3 questions in a row failed: Cannot reach" in row.error
    html = read(client, row)
    assert html.count("3 questions in a row failed") == 1
    assert "Use batch size" not in html


def test_settings_that_cannot_work_fail_it_with_their_remedy(quick: None) -> None:
    row = make_check(make_connection(), model=" ")
    run_check(row.pk)
    row.refresh_from_db()
    assert (row.state, "The model has no name" in row.error) == ("failed", True)


def test_an_error_of_ours_fails_it_without_telling_its_insides(
    monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    def broken(*_args: Any, **_options: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(model_checks, "check", broken)
    row = make_check()
    run_check(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"
    assert "secret detail" not in row.error


def test_a_check_that_lost_its_worker_is_marked_as_failed_and_another_can_begin(
    client: Client, developer: User
) -> None:
    long_ago = timezone.now() - timedelta(minutes=1)
    row = make_check(state=ModelCheck.State.RUNNING, started_at=long_ago, heartbeat_at=long_ago)
    assert "The worker that ran it was stopped" in read(client, row)
    another = start_check(row.connection, by=developer)
    assert another.pk != row.pk


def test_a_check_that_nobody_takes_is_given_up_in_words(client: Client, developer: User) -> None:
    row = make_check()
    ModelCheck.objects.update(queued_at=timezone.now() - timedelta(minutes=6))
    assert "No worker took it" in read(client, row)


def test_a_living_check_is_left_alone(client: Client, developer: User) -> None:
    now = timezone.now()
    row = make_check(state=ModelCheck.State.RUNNING, started_at=now, heartbeat_at=now)
    assert "Running" in read(client, row)
    row.refresh_from_db()
    assert row.state == "running"
    run_check(row.pk)  # delivered a second time: another worker has it
    row.refresh_from_db()
    assert row.state == "running"


@pytest.mark.django_db(transaction=True)
def test_a_deleted_connection_ends_its_check(
    developer: User, server: OpenAIServer, quick: None
) -> None:
    connection = make_connection(base_url=server.base_url)
    row = start_check(connection, by=developer)
    server.plan(Hang())
    running = threading.Thread(target=run_check, args=[row.pk])
    running.start()
    while not server.completions:
        running.join(0.01)
    connection.delete()
    running.join(10)
    assert not running.is_alive()
    assert not ModelCheck.objects.exists()


def test_while_it_runs_the_page_says_how_long_it_may_take(client: Client, developer: User) -> None:
    now = timezone.now()
    rows = report([]).rows
    first = next(r for r in rows if r.setting.kind is Kind.GUIDELINES)
    half = replace(first, questions=30, asked=30, right=30)
    result = Report(rows=(half, *rows[1:])).to_json()
    row = make_check(
        state=ModelCheck.State.RUNNING,
        started_at=now - timedelta(seconds=60),
        heartbeat_at=now,
        asked=30,
        result=result,
    )
    assert "30 of 216 cases. About 4 minutes left." in read(client, row)


# --- bad input


def test_a_check_that_proposes_nothing_changes_nothing(client: Client, developer: User) -> None:
    row = finished(make_connection(batch_size=7), result=report([]).to_json())
    assert "Nothing is proposed" in read(client, row)
    response = client.post(address(row, "proposal"), follow=True)
    assert "This check proposes nothing." in response.content.decode()
    assert ModelConnection.objects.get().batch_size == 7


def test_another_connections_check_is_not_found(client: Client, developer: User) -> None:
    row, other = finished(), make_connection()
    assert client.get(f"/settings/connections/{other.pk}/checks/{row.pk}/").status_code == 404


def test_authors_may_not_check(client: Client) -> None:
    row = finished()
    client.force_login(make_user("author"))
    assert client.get(address(row)).status_code == 403
    assert client.post(address(row, "proposal")).status_code == 403
