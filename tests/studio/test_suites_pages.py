"""The pages of suites and scenarios, and the way from a session to them."""

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.expecting import GuidelineExpectation, ReplyContainsExpectation
from studio.models import Agent, Scenario, Session, Suite
from studio.operations.scenarios import add_expectation, read
from studio.operations.suite_documents import suite_text
from tests.studio.factories import make_agent, make_guideline, make_user
from tests.studio.test_suites_keeping import balance_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def tester(client: Client) -> User:
    person = make_user("qa", username="bee")
    client.force_login(person)
    return person


@pytest.fixture
def suite() -> Suite:
    agent = make_agent(slug="depot", name="Depot")
    make_guideline(agent, uid="refund", condition="the customer asks for a refund")
    return Suite.objects.create(agent=agent, name="Smoke")


@pytest.fixture
def scenario(suite: Suite) -> Scenario:
    return Scenario.objects.create(
        suite=suite, title="A refund", messages=[{"text": "Refund?"}, {"text": "Now"}], position=1
    )


def page(client: Client, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status, address
    return unescape(response.content.decode())


def refusal(client: Client, address: str, data: dict[str, Any]) -> str:
    response = client.post(address, data)
    assert response.status_code == 422
    return unescape(response.content.decode())


def sent(client: Client, address: str, data: dict[str, Any] | None = None) -> str:
    """Where the answer leads."""
    response = client.post(address, data or {})
    assert response.status_code == 302, response.content.decode()
    return str(response.headers["Location"])


def at(scenario: Scenario, rest: str = "") -> str:
    return f"/suites/{scenario.suite_id}/scenarios/{scenario.uid}/{rest}"


# --- Suites


def test_without_suites_the_list_says_how_to_begin(client: Client, tester: User) -> None:
    make_agent(slug="depot")
    assert "No suite yet" in page(client, "/suites/")
    assert "Keep as test" in page(client, "/suites/?agent=depot")


def test_a_suite_is_made_changed_and_deleted(client: Client, tester: User) -> None:
    make_agent(slug="depot")
    place = sent(client, "/suites/new/", {"agent": "depot", "name": "Smoke", "repeats": "3"})
    suite = Suite.objects.get()
    assert (place, suite.created_by) == (f"/suites/{suite.pk}/", "bee")
    assert "No scenario yet" in page(client, place)
    sent(client, place, {"name": "Nightly", "repeats": "2", "gates_publishing": "on"})
    suite.refresh_from_db()
    assert (suite.name, suite.repeats, suite.gates_publishing) == ("Nightly", 2, True)
    assert "Nightly" in page(client, "/suites/?agent=depot")
    assert "Delete “Nightly”?" in page(client, f"{place}delete/")
    assert sent(client, f"{place}delete/") == "/suites/?agent=depot"
    assert not Suite.objects.exists()


def test_a_refused_suite_says_why_and_keeps_what_was_written(
    client: Client, tester: User, suite: Suite
) -> None:
    shown = refusal(client, "/suites/new/", {"agent": "depot", "name": "Smoke", "repeats": "2"})
    assert "another suite of this name" in shown
    shown = refusal(client, f"/suites/{suite.pk}/", {"name": "Other", "repeats": "50"})
    assert "from 1 to 20" in shown
    assert 'value="Other"' in shown
    assert '<h1 dir="auto">Smoke</h1>' in shown  # the title is the stored one


def test_a_suite_shows_its_scenarios_with_what_is_expected(
    client: Client, tester: User, suite: Suite, scenario: Scenario
) -> None:
    add_expectation(scenario, GuidelineExpectation(guideline="refund", turn=1))
    Scenario.objects.create(
        suite=suite,
        title="Aside",
        messages=[{"text": "a"}],
        quarantined_until=timezone.localdate() + timedelta(days=2),
        position=2,
    )
    shown = page(client, f"/suites/{suite.pk}/")
    assert "G1 “the customer asks for a refund” must match in turn 1" in shown
    assert "Quarantined until" in shown
    assert "Nothing is expected yet" in shown


def test_a_suite_of_many_scenarios_takes_as_many_queries_as_one_of_few(
    client: Client, tester: User, suite: Suite, scenario: Scenario
) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            page(client, f"/suites/{suite.pk}/")
            page(client, "/suites/")
        return len(queries)

    add_expectation(scenario, GuidelineExpectation(guideline="refund"))
    few = count()
    for place in range(10):
        more = Scenario.objects.create(
            suite=suite, title=f"{place}", messages=[{"text": "a"}], position=place
        )
        add_expectation(more, GuidelineExpectation(guideline="refund"))
        Suite.objects.create(agent=suite.agent, name=f"{place}")
    assert count() == few


def test_who_may_only_read_is_offered_nothing_to_do(
    client: Client, suite: Suite, scenario: Scenario
) -> None:
    client.force_login(make_user())
    assert client.get("/suites/").status_code == 404
    assert client.get(at(scenario)).status_code == 404


def test_a_suite_is_exported_looked_at_and_imported(
    client: Client, tester: User, suite: Suite, scenario: Scenario
) -> None:
    response = client.get(f"/suites/{suite.pk}/export/")
    assert response.headers["Content-Disposition"] == 'attachment; filename="smoke.yaml"'
    text = response.content.decode()
    assert text == suite_text(suite)

    def upload(text: str, **more: str) -> Any:
        file = SimpleUploadedFile("smoke.yaml", text.encode())
        return client.post("/suites/import/", {"agent": "depot", "file": file, **more})

    changed = text.replace("A refund", "A return")
    response = upload(changed, look="1")
    assert response.status_code == 200
    assert "What would change" in response.content.decode()
    scenario.refresh_from_db()
    assert scenario.title == "A refund"
    assert upload(changed).headers["Location"] == f"/suites/{suite.pk}/"
    scenario.refresh_from_db()
    assert scenario.title == "A return"
    response = upload(text.replace("kind: scripted", "kind: sung"))
    assert response.status_code == 422
    assert "Nothing was imported" in response.content.decode()


# --- Scenarios


def test_a_scenario_is_written_message_by_message(
    client: Client, tester: User, suite: Suite
) -> None:
    address = f"/suites/{suite.pk}/scenarios/new/"
    written = {
        "kind": "scripted",
        "title": "Hello",
        "tools": "live",
        "messages-rows": "1",
        "messages-0-text": "Hi",
    }
    shown = client.post(address, written | {"add": "messages"}).content.decode()
    assert 'name="messages-1-text"' in shown
    assert ">Hi</textarea>" in shown
    rows = {
        "messages-rows": "3",
        "messages-1-text": "Are you there?",
        "messages-1-together": "on",
        "messages-2-text": " ",
    }
    shown = client.post(address, written | rows | {"drop": "0"}).content.decode()
    assert ">Hi</textarea>" not in shown
    assert ">Are you there?</textarea>" in shown
    place = sent(client, address, written | rows | {"variables": "tier: gold\nage: 41"})
    scenario = Scenario.objects.get()
    assert place == at(scenario)
    assert scenario.messages == [{"text": "Hi"}, {"text": "Are you there?", "together": True}]
    assert scenario.variables == {"tier": "gold", "age": 41}
    assert scenario.created_by == "bee"


def test_bad_input_of_a_scenario_is_told_at_its_place(
    client: Client, tester: User, suite: Suite
) -> None:
    address = f"/suites/{suite.pk}/scenarios/new/"
    base = {"kind": "scripted", "tools": "live", "messages-rows": "2"}
    shown = refusal(
        client,
        address,
        base | {"messages-0-text": "Hi", "messages-1-text": "x" * 10_001, "variables": "gold"},
    )
    assert "Say in a few words what is tested" in shown
    assert 'id="message-1-error"' in shown
    assert "10001 characters" in shown
    assert "as name: value" in shown
    shown = refusal(client, address, {"kind": "simulated", "tools": "live", "title": "A"})
    assert "Say who the customer is" in shown
    assert "Say what the customer wants" in shown
    assert "number of turns" in shown


def test_a_simulated_customer_is_described(client: Client, tester: User, suite: Suite) -> None:
    address = f"/suites/{suite.pk}/scenarios/new/"
    assert "Who the customer is" in page(client, f"{address}?kind=simulated")
    brief = {"persona": "slow", "goal": "a refund", "stop": "", "turns": "5", "tokens": "9000"}
    place = sent(client, address, {"kind": "simulated", "title": "A", "tools": "live", **brief})
    assert Scenario.objects.get().brief == brief | {"turns": 5, "tokens": 9000}
    assert "5 turns, 9,000 tokens" in page(client, place)


def test_the_missing_test_comes_filled_in_and_keeps_its_expectation(
    client: Client, tester: User, suite: Suite
) -> None:
    expect = '{"kind": "guideline", "guideline": "refund"}'
    query = urlencode([("title", "Refund"), ("say", "a"), ("say", "b"), ("expect", expect)])
    shown = page(client, f"/suites/{suite.pk}/scenarios/new/?{query}")
    assert "G1 “the customer asks for a refund” must match in some turn" in shown
    assert ">b</textarea>" in shown
    rows = {"messages-rows": "1", "messages-0-text": "a", "expect": expect}
    sent(
        client,
        f"/suites/{suite.pk}/scenarios/new/",
        {"kind": "scripted", "title": "Refund", "tools": "live", **rows},
    )
    (row,) = Scenario.objects.get().expectations.all()
    assert read(row) == GuidelineExpectation(guideline="refund")
    shown = page(client, f"/suites/{suite.pk}/scenarios/new/?expect=nonsense")
    assert "cannot be read" in shown


def test_a_scenario_is_changed_copied_moved_and_deleted(
    client: Client, tester: User, scenario: Scenario
) -> None:
    assert ">Refund?</textarea>" in page(client, at(scenario, "edit/"))
    changes = {
        "kind": "scripted",
        "title": "A return",
        "tools": "recorded",
        "messages-rows": "1",
        "messages-0-text": "Return?",
    }
    assert sent(client, at(scenario, "edit/"), changes) == at(scenario)
    scenario.refresh_from_db()
    assert (scenario.title, scenario.messages) == ("A return", [{"text": "Return?"}])
    sent(client, at(scenario, "copy/"))
    copy = Scenario.objects.exclude(pk=scenario.pk).get()
    place = sent(client, at(copy, "position/"), {"move": "up"})
    assert place.endswith(f"#scenario-{copy.uid}")
    assert list(scenario.suite.scenarios.all()) == [copy, scenario]
    assert "Delete “A return”?" in page(client, at(scenario, "delete/"))
    sent(client, at(scenario, "delete/"))
    assert Scenario.objects.get() == copy


def test_a_scenario_shows_what_it_runs_with(
    client: Client, tester: User, scenario: Scenario
) -> None:
    scenario.messages = [{"text": "Pay"}, {"answer": "confirmed", "tool": "send_money"}]
    scenario.results = [
        {"tool": "find", "arguments": {"id": 1}, "result": {"data": {"name": "Ana"}}, "said": []},
        {
            "tool": "pay",
            "arguments": {},
            "error": {"kind": "timeout", "public": "Too slow.", "detail": ""},
            "said": [],
        },
    ]
    scenario.variables = {"tier": "gold"}
    scenario.save()
    shown = page(client, at(scenario))
    for words in ("Send money", "Confirmed", "Ana", "did not answer", "Too slow.", "gold"):
        assert words in shown


def test_a_quarantine_needs_a_day_to_come_and_a_reason(
    client: Client, tester: User, scenario: Scenario
) -> None:
    address = at(scenario, "quarantine/")
    assert "from tomorrow on" in refusal(client, address, {"until": "2020-01-01", "reason": "a"})
    assert "Say why" in refusal(client, address, {"until": "2020-01-01", "reason": ""})
    until = timezone.localdate() + timedelta(days=10)
    sent(client, address, {"until": until.isoformat(), "reason": "Under repair."})
    scenario.refresh_from_db()
    assert (scenario.quarantined_until, scenario.quarantined_by) == (until, "bee")
    assert "Under repair." in page(client, at(scenario))
    sent(client, address, {"end": "1"})
    scenario.refresh_from_db()
    assert scenario.quarantined_until is None


# --- Expectations


def test_an_expectation_is_added_changed_and_taken_off(
    client: Client, tester: User, scenario: Scenario
) -> None:
    address = at(scenario, "expectations/new/")
    assert "?kind=handed_over" in page(client, address)
    written = {"kind": "guideline", "guideline": "refund", "matches": "no", "turn": "2"}
    assert sent(client, address, written | {"because": "Not yet."}) == at(scenario)
    (row,) = scenario.expectations.all()
    assert read(row) == GuidelineExpectation(guideline="refund", matches=False, turn=2)
    assert (row.because, row.created_by) == ("Not yet.", "bee")
    assert "must not match in turn 2" in page(client, at(scenario))
    own = at(scenario, f"expectations/{row.uid}/")
    assert '<option value="2" selected>' in page(client, own)
    sent(client, own, written | {"turn": "", "at_least": "4"})
    row.refresh_from_db()
    assert read(row) == GuidelineExpectation(guideline="refund", matches=False, at_least=4)
    assert "has to hold in 4 runs" in page(client, at(scenario))
    assert sent(client, f"{own}delete/") == at(scenario)
    assert not scenario.expectations.exists()
    assert client.post(f"{own}delete/").status_code == 404


def test_a_refused_expectation_keeps_what_was_written(
    client: Client, tester: User, scenario: Scenario
) -> None:
    address = at(scenario, "expectations/new/")
    shown = refusal(client, address, {"kind": "reply_matches", "pattern": "(a", "matches": "no"})
    assert "no regular expression" in shown
    assert ">\n(a</textarea>" in shown
    assert re.search(r'value="no"[^>]*checked', shown)


def test_an_expectation_of_what_is_gone_is_marked(
    client: Client, tester: User, scenario: Scenario
) -> None:
    add_expectation(scenario, GuidelineExpectation(guideline="refund", turn=2))
    scenario.messages = [{"text": "Refund?"}]
    scenario.save()
    assert "has 1 turn, not 2" in page(client, at(scenario))
    Agent.objects.get().guidelines.all().delete()
    Agent.objects.update(snapshot=None)
    shown = page(client, at(scenario))
    assert "has no guideline 'refund'" in shown
    assert "no longer there (refund)" in shown
    row = scenario.expectations.get()
    assert page(client, at(scenario, f"expectations/{row.uid}/"))


# --- From a session


def chosen(shown: str) -> list[str]:
    return re.findall(r'name="choose" value="(\w+)" checked', shown)


def test_a_row_of_the_ledger_becomes_an_expectation_in_two_clicks(
    client: Client, tester: User
) -> None:
    recorded = balance_session()
    audit = f"/sessions/{recorded.session.pk}/turns/1/"
    links = re.findall(r'href="([^"]*/expect/[^"]*)"', page(client, audit))
    assert len(links) == 2  # the guideline, and the tool that ran
    shown = page(client, links[1])
    assert "get_balance must run in turn 1 with account = “A-1”" in shown
    place = re.findall(r'<option value="([^"]*)"', shown)[0]
    assert f'name="next" value="{audit}#call-c1"' in shown
    row = {"call": "c1", "next": f"{audit}#call-c1"}
    back = sent(client, audit + "expect/", {**row, "choose": chosen(shown), "place": place})
    assert back == f"{audit}#call-c1"
    scenario = Scenario.objects.get()
    assert (scenario.suite.name, scenario.kept_from) == ("Regression", recorded.session)
    (kept,) = scenario.expectations.all()
    assert kept.data["tool"] == "get_balance"
    assert "expects it from now on" in page(client, back)


def test_nothing_chosen_is_refused_and_no_such_row_is_not_there(
    client: Client, tester: User
) -> None:
    recorded = balance_session()
    address = f"/sessions/{recorded.session.pk}/turns/1/expect/"
    shown = refusal(client, address, {"guideline": recorded.uid(), "place": "new"})
    assert "Choose what is to be expected" in shown
    assert client.get(f"{address}?guideline=nobody").status_code == 404
    assert client.get(f"{address}?decision=9").status_code == 404
    assert client.get(address).status_code == 302
    assert not Suite.objects.exists()


def test_a_reply_becomes_an_expectation(client: Client, tester: User) -> None:
    recorded = balance_session()
    session = recorded.session
    reply = session.events.get(data__text="It is 7 EUR.")
    address = f"/sessions/{session.pk}/events/{reply.offset}/expect/"
    assert address in page(client, f"/sessions/{session.pk}/")
    shown = page(client, address)
    assert ">\nIt is 7 EUR.</textarea>" in shown
    assert "No reply promises" in page(client, f"{address}?kind=no_promise")
    written = {"kind": "reply_contains", "contains": "yes", "turn": "1", "place": "new"}
    assert "Write what" in refusal(client, address, written | {"text": ""})
    sent(client, address, written | {"text": "7 EUR", "because": "The balance."})
    (row,) = Scenario.objects.get().expectations.all()
    assert read(row) == ReplyContainsExpectation(text="7 EUR", turn=1)
    said = session.events.get(data__text="Thanks")
    response = client.get(f"/sessions/{session.pk}/events/{said.offset}/expect/")
    assert response.headers["Location"] == f"/sessions/{session.pk}/keep/?up_to=2"


def test_a_whole_session_is_kept_with_what_was_decided(client: Client, tester: User) -> None:
    recorded = balance_session()
    address = f"/sessions/{recorded.session.pk}/keep/"
    assert address in page(client, f"/sessions/{recorded.session.pk}/")
    assert address in page(client, "/sessions/")
    shown = page(client, address)
    assert len(chosen(shown)) == 2
    place = sent(client, address, {"title": "Balance", "up_to": "1", "choose": chosen(shown)})
    scenario = Scenario.objects.get()
    assert place == at(scenario)
    assert (scenario.title, len(scenario.messages)) == ("Balance", 1)
    assert scenario.expectations.count() == 2


def test_what_is_chosen_of_later_turns_goes_with_them(client: Client, tester: User) -> None:
    recorded = balance_session()
    later = recorded.turn("And now?")
    recorded.match(later, 0)
    address = f"/sessions/{recorded.session.pk}/keep/"
    everything = chosen(page(client, address))
    assert len(everything) == 3
    shown = client.post(address, {"up_to": "1", "choose": everything, "look": "1"})
    assert len(chosen(shown.content.decode())) == 2
    sent(client, address, {"up_to": "1", "choose": everything})
    assert Scenario.objects.get().expectations.count() == 2


def test_a_session_in_which_nothing_was_said_cannot_be_kept(client: Client, tester: User) -> None:
    session = Session.objects.create(agent=make_agent())
    address = f"/sessions/{session.pk}/keep/"
    response = client.get(address)
    assert response.status_code == 422
    assert "said nothing" in response.content.decode()
    assert client.post(address, {}).status_code == 422
    assert not Suite.objects.exists()
