"""`/suites` and their scenarios."""

from typing import Any

import pytest

from studio.models import Agent, Scenario, Suite
from studio.operations.suite_documents import suite_text
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_agent
from tests.studio.test_suites_keeping import balance_session

MESSAGES = [{"text": "Where is it?"}, {"answer": "confirmed", "tool": "find_parcel"}]
EXPECTED = {"kind": "guideline", "guideline": "parcel", "matches": True, "turn": 1}


@pytest.fixture
def suite(agent: Agent) -> Suite:
    return Suite.objects.create(agent=agent, name="Smoke")


def at(suite: Suite, uid: str = "") -> str:
    return f"/suites/{suite.pk}/scenarios" + (f"/{uid}" if uid else "")


def test_a_suite_is_created_read_changed_listed_and_deleted(admin: Caller, agent: Agent) -> None:
    response = admin.post("/suites", {"agent": "depot", "name": "Smoke", "repeats": 3})
    assert response.status_code == 201
    made = response.json()
    assert made == {
        "id": made["id"],
        "agent": "depot",
        "name": "Smoke",
        "description": "",
        "repeats": 3,
        "gates_publishing": False,
        "scenarios": 0,
    }
    path = f"/suites/{made['id']}"
    assert admin.get(path).json() == made
    assert admin.patch(path, {"gates_publishing": True}).json() == made | {"gates_publishing": True}
    assert admin.get("/suites?agent=depot").json()["count"] == 1
    assert admin.get("/suites?agent=other").json()["count"] == 0
    assert admin.delete(path).status_code == 204
    is_problem(admin.get(path), 404)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "Smoke"}, "name"),
        ({"name": "New", "repeats": 0}, "repeats"),
        ({"name": "New", "color": "red"}, "color"),
    ],
)
def test_a_bad_suite_is_a_problem(
    admin: Caller, suite: Suite, body: dict[str, Any], field: str
) -> None:
    problem = is_problem(admin.post("/suites", {"agent": "depot", **body}), 422)
    assert problem["errors"][0]["field"] == field
    is_problem(admin.post("/suites", {"agent": "nowhere", "name": "A"}), 404)


def test_a_scenario_is_written_with_what_is_expected(admin: Caller, suite: Suite) -> None:
    body = {"title": "Find it", "messages": MESSAGES, "expectations": [EXPECTED]}
    response = admin.post(at(suite), body)
    assert response.status_code == 201
    made = response.json()
    assert (made["messages"], made["tools"], made["position"]) == (MESSAGES, "live", 1)
    (expected,) = made["expectations"]
    assert EXPECTED.items() <= expected.items()
    assert expected["sentence"].endswith("must match in turn 1")
    assert admin.get(at(suite, made["uid"])).json() == made
    assert admin.get(at(suite)).json() == {"items": [made], "count": 1}


def test_expectations_are_replaced_and_those_with_a_uid_stay_the_same(
    admin: Caller, suite: Suite
) -> None:
    body = {"title": "A", "messages": MESSAGES, "expectations": [EXPECTED]}
    made = admin.post(at(suite), body).json()
    (first,) = made["expectations"]
    path = at(suite, made["uid"])
    more = {"kind": "handed_over", "expected": False, "because": "It can be told."}
    changed = admin.patch(path, {"expectations": [{**first, "turn": 2}, more]}).json()
    one, other = changed["expectations"]
    assert (one["uid"], one["turn"]) == (first["uid"], 2)
    assert other["because"] == "It can be told."
    assert admin.patch(path, {"title": "B"}).json()["expectations"] == changed["expectations"]
    assert admin.patch(path, {"expectations": []}).json()["expectations"] == []
    assert admin.delete(path).status_code == 204
    is_problem(admin.delete(path), 404)


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"messages": []}, "messages", "at least one"),
        ({"messages": [{"say": "Hi"}]}, "messages", "has a text"),
        ({"kind": "sung"}, "kind", "sung"),
        ({"kind": "simulated"}, "persona", "who the customer is"),
        ({"expectations": [{"kind": "wish"}]}, "expectations.0.kind", "no expectation of kind"),
        (
            {"expectations": [EXPECTED, {**EXPECTED, "guideline": "gone"}]},
            "expectations.1.guideline",
            "no guideline 'gone'",
        ),
        ({"expectations": [{**EXPECTED, "turn": 3}]}, "expectations.0.turn", "has 2 turns"),
        ({"expectations": [{**EXPECTED, "because": 1}]}, "expectations.0.because", "a text"),
        ({"up_to": 0, "session": 1}, "up_to", "greater"),
    ],
)
def test_a_bad_scenario_is_a_problem_and_nothing_is_kept(
    admin: Caller, suite: Suite, body: dict[str, Any], field: str, said: str
) -> None:
    problem = is_problem(admin.post(at(suite), {"title": "A", "messages": MESSAGES, **body}), 422)
    told = {error["field"]: error["message"] for error in problem["errors"]}
    assert said in told[field]
    assert not Scenario.objects.exists()


def test_a_session_is_kept(admin: Caller) -> None:
    recorded = balance_session()
    suite = Suite.objects.create(agent=recorded.agent, name="Smoke")
    expected = {"kind": "guideline", "guideline": recorded.uid(), "turn": 1}
    body = {"session": recorded.session.pk, "up_to": 1, "expectations": [expected]}
    made = admin.post(at(suite), body).json()
    assert made["messages"] == [{"text": "What is my balance?"}]
    assert made["kept_from"] == recorded.session.pk
    assert made["tools"] == "recorded"
    assert made["results"][0]["tool"] == "get_balance"
    assert len(made["expectations"]) == 1
    problem = is_problem(admin.post(at(suite), body | {"messages": MESSAGES}), 422)
    assert problem["errors"][0]["field"] == "messages"
    is_problem(admin.post(at(suite), {"session": 10**6}), 404)
    other = Suite.objects.create(agent=make_agent(), name="Smoke")
    problem = is_problem(admin.post(at(other), {"session": recorded.session.pk}), 422)
    assert problem["errors"][0]["field"] == "suite"


def test_a_suite_is_exported_and_imported(admin: Caller, suite: Suite) -> None:
    admin.post(at(suite), {"title": "A", "messages": MESSAGES, "expectations": [EXPECTED]})
    response = admin.get(f"/suites/{suite.pk}/export")
    text = response.content.decode()
    assert text == suite_text(suite)
    assert admin.get(f"/suites/{suite.pk}/export?format=json").json()["name"] == "Smoke"

    def send(text: str, query: str = "") -> Any:
        return admin.client.post(
            f"/api/v1/suites/import?agent=depot{query}",
            data=text,
            content_type="application/yaml",
            headers=admin.headers,
        )

    other = text.replace("name: Smoke", "name: Other")
    looked = send(other, "&dry_run=true").json()
    assert (looked["id"], looked["dry_run"], looked["changed"]) == (None, True, True)
    made = send(other).json()
    assert Suite.objects.get(pk=made["id"]).scenarios.count() == 1
    assert send(other).json()["changed"] is False
    problem = is_problem(send(text.replace("kind: scripted", "kind: sung")), 422)
    assert problem["rows"][1]["change"] == "error"


def test_a_simulated_customer_is_described_and_changed_in_parts(
    admin: Caller, suite: Suite
) -> None:
    brief = {"persona": "slow", "goal": "a refund"}
    made = admin.post(at(suite), {"title": "A", "kind": "simulated", "brief": brief}).json()
    assert made["brief"] == {**brief, "stop": "", "turns": 8, "tokens": 20_000}
    changed = admin.patch(at(suite, made["uid"]), {"brief": {"turns": 3}}).json()
    assert changed["brief"] == made["brief"] | {"turns": 3}
    is_problem(admin.patch(at(suite, made["uid"]), {"brief": {"mood": "good"}}), 422)
    is_problem(admin.patch(at(suite, made["uid"]), {"brief": {"turns": 0}}), 422)
