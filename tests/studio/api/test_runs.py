"""`/suites/{id}/runs` and `/runs/{id}`: started, read, held, gone on with, and as files for build servers."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.studio.api.calling import Caller, is_problem


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, db: None) -> Any:
    from tests.studio.tested_bank import Bank

    bank = Bank(monkeypatch)
    bank.seed()
    return bank


def begin(admin: Caller, bank: Any, **body: Any) -> Any:
    answer = admin.post(f"/suites/{bank.suite.pk}/runs", body)
    assert answer.status_code == 202, answer.content
    return answer.json()


def played(made: Any) -> None:
    from studio.models import SuiteRun
    from tests.studio.tested_bank import play

    play(SuiteRun.objects.get(pk=made["id"]))


def test_a_run_is_started_and_its_report_read_and_listed(admin: Caller, bank: Any) -> None:
    made = begin(admin, bank, repeats=2)
    assert (made["state"], made["verdict"], made["total"]) == ("queued", "", 6)
    assert (made["suite"], made["agent"], made["against"]) == (bank.suite.pk, "bank", ["draft"])
    assert made["started_by"] == "admin"
    played(made)

    read = admin.get(f"/runs/{made['id']}").json()
    assert (read["state"], read["verdict"], read["done"]) == ("finished", "failed", 6)
    assert read["counted"] == {
        "passed": 1, "failed": 1, "flaky": 1, "invalid": 0, "quarantined": 0,
    }  # fmt: skip
    (version,) = read["versions"]
    assert (version["number"], version["verdict"]) == (None, "failed")
    failing = next(one for one in version["scenarios"] if one["title"] == "Fails")
    expectation = failing["expectations"][0]
    assert expectation["sentence"].startswith("G1 “the customer asks for the balance”")
    assert (expectation["verdict"], expectation["held"], expectation["about"]) == (
        "failed", 0, "decisions",
    )  # fmt: skip
    assert expectation["outcomes"][0]["because"].startswith("G1 did not match")
    session = failing["conversations"][0]["session"]
    assert admin.get(f"/sessions/{session}").json()["purpose"] == "test"
    listed = admin.get(f"/suites/{bank.suite.pk}/runs").json()
    assert (listed["count"], listed["items"][0]["verdict"]) == (1, "failed")


def test_it_says_against_what_how_often_with_which_model_and_up_to_where(
    admin: Caller, bank: Any
) -> None:
    from studio.operations.agents import publish
    from tests.studio.factories import make_connection

    publish(bank.agent, note="", by=None)
    make_connection(name="Live")
    uid = bank.suite.scenarios.get(title="Flaky").uid
    made = begin(admin, bank, against=[1], repeats=3, connection="Live", cap=9_000, scenarios=[uid])
    assert (made["against"], made["repeats"], made["connection"]) == (["1"], 3, "Live")
    assert (made["cap"], made["total"]) == (9_000, 3)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"against": ["9"]}, "against"),
        ({"against": []}, "against"),
        ({"repeats": 0}, "repeats"),
        ({"connection": "Nothing"}, "connection"),
        ({"cap": -1}, "cap"),
        ({"scenarios": ["x"]}, "scenarios"),
        ({"versions": ["draft"]}, "versions"),
    ],
)
def test_what_cannot_be_run_is_a_problem_that_names_its_field(
    admin: Caller, bank: Any, body: dict[str, Any], field: str
) -> None:
    problem = is_problem(admin.post(f"/suites/{bank.suite.pk}/runs", body), 422)
    assert field in problem["errors"][0]["field"]


def test_build_servers_get_xml_and_spreadsheets_a_table(admin: Caller, bank: Any) -> None:
    made = begin(admin, bank)
    played(made)
    xml = admin.get(f"/runs/{made['id']}.xml")
    assert xml["Content-Type"].startswith("application/xml")
    assert ET.fromstring(xml.content).get("tests") == "3"
    table = admin.get(f"/runs/{made['id']}.csv")
    assert table["Content-Type"].startswith("text/csv")
    assert table.content.decode().startswith("run,agent,suite,version")


def test_a_run_is_paused_resumed_cancelled_and_run_again(admin: Caller, bank: Any) -> None:
    made = begin(admin, bank)
    address = f"/runs/{made['id']}"
    assert admin.post(f"{address}/pause").json()["paused"] is True
    is_problem(admin.post(f"{address}/pause"), 409)
    assert admin.post(f"{address}/resume").json()["paused"] is False
    assert admin.post(f"{address}/cancel").json()["state"] == "stopped"
    is_problem(admin.post(f"{address}/cancel"), 409)
    is_problem(admin.post(f"{address}/retry"), 409)
    assert admin.post(f"{address}/resume").status_code == 202
    played(made)
    is_problem(admin.post(f"{address}/resume"), 409)
    again = admin.post(f"{address}/retry")
    assert (again.status_code, again.json()["state"]) == (202, "queued")


def test_a_capped_run_goes_on_with_another_cap_only(admin: Caller, bank: Any) -> None:
    from studio.models import SuiteRun

    made = begin(admin, bank)
    SuiteRun.objects.update(state="stopped", capped=True, cap=5)
    problem = is_problem(admin.post(f"/runs/{made['id']}/resume"), 409)
    assert "another `cap`" in problem["detail"]
    resumed = admin.post(f"/runs/{made['id']}/resume", {"cap": 50}).json()
    assert (resumed["state"], resumed["cap"], resumed["capped"]) == ("queued", 50, False)


def test_who_may_not_test_may_read(
    caller_as: Callable[..., Caller], admin: Caller, bank: Any
) -> None:
    made = begin(admin, bank)
    assert caller_as("author").get(f"/runs/{made['id']}").status_code == 200
    is_problem(caller_as().get(f"/runs/{made['id']}"), 404)
    is_problem(admin.get("/runs/999999"), 404)


def test_the_list_takes_as_many_queries_with_many(admin: Caller, bank: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as context:
            admin.get(f"/suites/{bank.suite.pk}/runs")
        return len(context)

    begin(admin, bank)
    few = queries()
    for _more in range(4):
        begin(admin, bank)
    assert queries() == few
