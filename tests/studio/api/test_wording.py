"""`/agents/{slug}/responses` and `/agents/{slug}/terms`."""

from collections.abc import Callable
from typing import Any

import pytest

from studio.bridge import agent_spec
from studio.models import Agent, CannedResponse, Guideline, Term
from studio.operations.agents import save_guideline, snapshot
from tests.studio.api.calling import Caller, is_problem

RESPONSES = "/agents/depot/responses"
TERMS = "/agents/depot/terms"


def test_a_response_is_created_read_and_listed(admin: Caller, agent: Agent) -> None:
    response = admin.post(RESPONSES, {"text": "Your parcel {{ number }} is at {{ place.name }}."})
    assert response.status_code == 201
    made = response.json()
    assert made["fields"] == ["number", "place.name"]
    assert made["guidelines"] == []
    assert admin.get(f"{RESPONSES}/{made['uid']}").json() == made
    assert admin.get(RESPONSES).json() == {"items": [made], "count": 1}
    assert admin.get(f"{RESPONSES}?q=PARCEL").json()["count"] == 1
    assert admin.get(f"{RESPONSES}?q=letter").json()["count"] == 0
    assert agent_spec(snapshot(agent)).canned_responses[0].uid == made["uid"]


def test_a_response_is_changed(admin: Caller, agent: Agent) -> None:
    made = admin.post(RESPONSES, {"text": "Hello."}).json()
    path = f"{RESPONSES}/{made['uid']}"
    assert admin.patch(path, {"text": "Good day."}).json()["text"] == "Good day."
    assert admin.patch(path, {}).json()["text"] == "Good day."


def test_a_response_in_use_is_deleted_only_with_its_uses(admin: Caller, agent: Agent) -> None:
    made = admin.post(RESPONSES, {"text": "Hello."}).json()
    path = f"{RESPONSES}/{made['uid']}"
    admin.patch("/agents/depot/guidelines/brief", {"canned_responses": [made["uid"]]})
    assert admin.get(path).json()["guidelines"] == ["brief"]
    assert is_problem(admin.delete(path), 409)["guidelines"] == ["brief"]
    assert admin.delete(f"{path}?detach=true").status_code == 204
    assert admin.get("/agents/depot/guidelines/brief").json()["canned_responses"] == []
    is_problem(admin.delete(path), 404)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Write what the agent says"),
        ("fine\nHello {{ name", "Line 2"),
        ("{% include 'x' %}", "Line 1"),
        ("x" * 4_001, "at most 4000"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(
    admin: Caller, agent: Agent, text: str, said: str
) -> None:
    problem = is_problem(admin.post(RESPONSES, {"text": text}), 422)
    (error,) = problem["errors"]
    assert error["field"] == "text"
    assert said in error["message"]
    assert not CannedResponse.objects.exists()


def test_the_same_response_twice_is_refused(admin: Caller, agent: Agent) -> None:
    admin.post(RESPONSES, {"text": "Hello."})
    problem = is_problem(admin.post(RESPONSES, {"text": " Hello. "}), 422)
    assert "this response already" in problem["detail"]


def test_a_term_is_created_changed_and_deleted(admin: Caller, agent: Agent) -> None:
    body = {"name": "IBAN", "description": "an account's number", "synonyms": ["account number"]}
    made = admin.post(TERMS, body).json()
    assert made == {"uid": made["uid"], **body}
    path = f"{TERMS}/{made['uid']}"
    assert admin.get(path).json() == made
    changed = admin.patch(path, {"synonyms": ["Number", "number", "iban"]}).json()
    assert changed == made | {"synonyms": ["Number"]}
    assert agent_spec(snapshot(agent)).terms[0].synonyms == ("Number",)
    assert admin.get(f"{TERMS}?q=account").json()["count"] == 1
    assert admin.delete(path).status_code == 204
    is_problem(admin.get(path), 404)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"description": " "}, "description"),
        ({"description": "x" * 2_001}, "description"),
        ({"synonyms": ["a,b"]}, "synonyms"),
        ({"synonyms": [str(n) for n in range(21)]}, "synonyms"),
        ({"synonyms": ["x" * 121]}, "synonyms"),
        ({"synonyms": "x"}, "synonyms"),
        ({"meaning": "x"}, "meaning"),
    ],
)
def test_a_bad_term_is_named(
    admin: Caller, agent: Agent, change: dict[str, Any], field: str
) -> None:
    body = {"name": "IBAN", "description": "a number"} | change
    problem = is_problem(admin.post(TERMS, body), 422)
    assert [error["field"] for error in problem["errors"]] == [field]
    assert not Term.objects.exists()


def test_a_term_is_explained_once(admin: Caller, agent: Agent) -> None:
    body = {"name": "IBAN", "description": "a number"}
    admin.post(TERMS, body)
    assert "explains this term already" in is_problem(admin.post(TERMS, body), 422)["detail"]


def test_only_authors_write(caller_as: Callable[..., Caller], nobody: Caller, agent: Agent) -> None:
    for path, body in ((RESPONSES, {"text": "Hi."}), (TERMS, {"name": "a", "description": "b"})):
        for role in ("developer", "qa", "publisher"):
            is_problem(caller_as(role).post(path, body), 403)
        is_problem(caller_as().post(path, body), 404)
        is_problem(nobody.post(path, body), 401)
        assert caller_as("author").post(path, body).status_code == 201
        assert caller_as("qa").get(path).json()["count"] == 1


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, agent: Agent, django_assert_num_queries: Any
) -> None:
    admin.get(RESPONSES)
    for _ in range(2):
        for _ in range(5):
            number = CannedResponse.objects.count()
            response = CannedResponse.objects.create(agent=agent, text=f"Text {number}")
            Term.objects.create(agent=agent, name=f"Term {number}", description="d")
            save_guideline(Guideline(agent=agent, action="x"), canned_responses=[response])
        # token, roles, agent, rows, their guidelines, count
        with django_assert_num_queries(6):
            admin.get(RESPONSES)
        with django_assert_num_queries(5):
            admin.get(TERMS)
