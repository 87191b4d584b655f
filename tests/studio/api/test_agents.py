"""`/agents`: their settings, their tools, and the whole of one as a document."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from studio.models import Agent, Guideline, Tool
from studio.operations.agents import publish
from studio.operations.sessions import open_session
from tests.studio.api.calling import Caller, is_problem


def send_document(caller: Caller, text: str, query: str = "") -> Any:
    return caller.client.generic(
        "POST", f"/api/v1/agents/import{query}", text, "application/yaml", headers=caller.headers
    )


def test_an_agent_is_created_read_and_listed(admin: Caller) -> None:
    response = admin.post("/agents", {"name": "Harbor Bank", "description": "A bank."})
    assert response.status_code == 201
    made = response.json()
    assert made | {"created_at": "", "updated_at": ""} == {
        "slug": "harbor-bank",
        "name": "Harbor Bank",
        "description": "A bank.",
        "tone": "",
        "composition": "fluid",
        "no_match": "",
        "verified_replies": False,
        "max_iterations": 3,
        "published": None,
        "created_at": "",
        "updated_at": "",
    }
    assert admin.get("/agents/harbor-bank").json() == made
    assert admin.get("/agents").json() == {"items": [made], "count": 1}


def test_an_agent_is_changed_where_the_change_says_so(admin: Caller, agent: Agent) -> None:
    publish(agent, note="", by=None)
    before = admin.get("/agents/depot").json()
    assert before["published"] == 1
    changed = admin.patch("/agents/depot", {"max_iterations": 5}).json()
    assert changed | {"updated_at": ""} == before | {"max_iterations": 5, "updated_at": ""}
    speaking = {
        "tone": "Warm.",
        "composition": "strict",
        "no_match": "Later.",
        "verified_replies": True,
    }
    spoken = admin.patch("/agents/depot", speaking).json()
    assert {name: spoken[name] for name in speaking} == speaking
    moved = admin.patch("/agents/depot", {"slug": "store"}).json()
    assert moved["slug"] == "store"
    is_problem(admin.get("/agents/depot"), 404)
    revision = agent.revision
    agent.refresh_from_db()
    assert agent.revision > revision  # the next turn sees the change


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "A", "slug": "a b"}, "slug"),
        ({"name": "A", "slug": "depot"}, "slug"),
        ({"name": "A", "slug": "import"}, "slug"),
        ({"name": "!!"}, "slug"),
        ({"name": "A", "slug": "x" * 61}, "slug"),
        ({"name": "A", "composition": "free"}, "composition"),
        ({"name": "A", "max_iterations": 11}, "max_iterations"),
        ({"name": "A", "max_iterations": 0}, "max_iterations"),
        ({"name": "A", "description": "x" * 10_001}, "description"),
        ({"name": "A", "tone": "x" * 2_001}, "tone"),
        ({"name": "A", "no_match": "x" * 2_001}, "no_match"),
        ({"name": 5}, "name"),
        ({"name": "A", "nmae": "B"}, "nmae"),
    ],
)
def test_bad_input_is_named(admin: Caller, agent: Agent, body: dict[str, Any], field: str) -> None:
    problem = is_problem(admin.post("/agents", body), 422)
    assert field in {error["field"] for error in problem["errors"]}
    assert Agent.objects.count() == 1


def test_a_bad_change_changes_nothing(admin: Caller, agent: Agent) -> None:
    before = admin.get("/agents/depot").json()
    for body in ({"name": ""}, {"name": "B", "max_iterations": 0}, {"name": None}):
        is_problem(admin.patch("/agents/depot", body), 422)
    assert admin.get("/agents/depot").json() == before


def test_an_agent_without_sessions_is_deleted(admin: Caller, agent: Agent) -> None:
    publish(agent, note="", by=None)
    assert admin.delete("/agents/depot").status_code == 204
    assert not Agent.objects.exists()
    is_problem(admin.delete("/agents/depot"), 404)


def test_an_agent_with_sessions_is_deleted_only_with_them(admin: Caller, agent: Agent) -> None:
    publish(agent, note="", by=None)
    open_session(agent=agent, version=1)
    problem = is_problem(admin.delete("/agents/depot"), 409)
    assert "with_sessions=true" in problem["detail"]
    assert Agent.objects.exists()
    assert admin.delete("/agents/depot?with_sessions=true").status_code == 204
    assert not Agent.objects.exists()


def test_roles(caller_as: Callable[..., Caller], nobody: Caller, agent: Agent) -> None:
    assert caller_as("author").post("/agents", {"name": "A"}).status_code == 201
    for method, path, body in (
        ("POST", "/agents", {"name": "B"}),
        ("PATCH", "/agents/depot", {"name": "B"}),
        ("DELETE", "/agents/depot", None),
        ("POST", "/agents/import", {"name": "B"}),
    ):
        is_problem(caller_as("developer")(method, path, body), 403)
        is_problem(caller_as()(method, path, body), 404)
        is_problem(nobody(method, path, body), 401)
    for path in ("/agents", "/agents/depot", "/agents/depot/tools", "/agents/depot/export"):
        assert caller_as("qa").get(path).status_code == 200
        is_problem(caller_as().get(path), 404)
        is_problem(nobody.get(path), 401)
    is_problem(caller_as("qa").put("/agents/depot/tools/find_parcel"), 403)
    assert caller_as("developer").put("/agents/depot/tools/find_parcel").status_code == 200


def test_wrong_methods(admin: Caller, agent: Agent) -> None:
    is_problem(admin.put("/agents/depot", {}), 405)
    is_problem(admin.delete("/agents"), 405)
    is_problem(admin.post("/agents/depot/tools/find_parcel"), 405)
    is_problem(admin.post("/agents/depot/export"), 405)


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, agent: Agent, django_assert_num_queries: Any
) -> None:
    admin.get("/agents")
    for n in range(2):
        for m in range(4):
            publish(Agent.objects.create(slug=f"a{n}{m}", name="A"), note="", by=None)
        with django_assert_num_queries(4):  # token, roles, rows, count
            assert admin.get("/agents").json()["items"][0]["published"] == 1


def test_tools_are_given_to_an_agent_and_taken_back(admin: Caller, agent: Agent) -> None:
    Tool.objects.create(name="weigh")
    path = "/agents/depot/tools"
    for _ in range(2):
        assert admin.put(f"{path}/weigh").json()["name"] == "weigh"
        listed = admin.get(path).json()
        assert [tool["name"] for tool in listed["items"]] == ["find_parcel", "weigh"]
        assert listed["count"] == 2
    assert admin.delete(f"{path}/weigh").status_code == 204
    is_problem(admin.delete(f"{path}/weigh"), 404)
    is_problem(admin.put(f"{path}/teleport"), 404)
    is_problem(admin.put("/agents/nobody/tools/weigh"), 404)
    assert admin.get(path).json()["count"] == 1


def test_giving_a_tool_again_leaves_the_draft_as_it_is(admin: Caller, agent: Agent) -> None:
    agent.refresh_from_db()
    revision = agent.revision
    admin.put("/agents/depot/tools/find_parcel")
    agent.refresh_from_db()
    assert agent.revision == revision


def test_a_tool_that_guidelines_use_is_not_taken_back(admin: Caller, agent: Agent) -> None:
    problem = is_problem(admin.delete("/agents/depot/tools/find_parcel"), 409)
    assert problem["guidelines"] == ["parcel"]
    assert agent.tools.count() == 1


def test_a_document_is_exported_and_imported_again(admin: Caller, agent: Agent) -> None:
    exported = admin.get("/agents/depot/export")
    assert exported.headers["content-type"] == "application/yaml; charset=utf-8"
    text = exported.content.decode()
    assert "uid: parcel" in text
    assert admin.get("/agents/depot/export").content.decode() == text
    as_json = admin.get("/agents/depot/export?format=json").json()
    assert as_json["guidelines"][0]["tools"] == ["find_parcel"]
    for document in (text, json.dumps(as_json)):
        report = send_document(admin, document).json()
        assert (report["slug"], report["changed"]) == ("depot", False)
    is_problem(admin.get("/agents/depot/export?format=xml"), 422)


def test_an_import_reports_each_row_and_a_dry_run_changes_nothing(
    admin: Caller, agent: Agent
) -> None:
    document = admin.get("/agents/depot/export").content.decode()
    changed = document.replace("be brief", "be long") + "- action: smile\n"
    for query, stored in (("?dry_run=true", "be brief"), ("", "be long")):
        report = send_document(admin, changed, query).json()
        assert report["dry_run"] == bool(query)
        assert [(row["place"], row["change"]) for row in report["rows"]] == [
            ("agent", "unchanged"),
            ("guidelines[0]", "unchanged"),
            ("guidelines[1]", "update"),
            ("guidelines[2]", "create"),
        ]
        assert Guideline.objects.get(uid="brief").action == stored


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_document_with_errors_is_a_problem_that_names_the_rows(
    admin: Caller, agent: Agent, query: str
) -> None:
    text = "name: New\ntools: [teleport]\nguidelines:\n- action: fine\n- priority: 900\n"
    problem = is_problem(send_document(admin, text, query), 422)
    assert {error["field"] for error in problem["errors"]} == {
        "tools[0]",
        "guidelines[1]",
        "guidelines[1].priority",
    }
    assert [row["change"] for row in problem["rows"]] == ["error", "create", "error"]
    assert Agent.objects.count() == 1


def test_what_is_no_document_is_a_problem(admin: Caller) -> None:
    is_problem(send_document(admin, ""), 422)
    is_problem(send_document(admin, "name: ["), 422)
    response = admin.client.generic(
        "POST", "/api/v1/agents/import", b"\xff", "application/yaml", headers=admin.headers
    )
    is_problem(response, 400)
