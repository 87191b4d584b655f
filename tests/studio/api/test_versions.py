"""`/agents/{slug}/versions`: publishing, reading and going back."""

from collections.abc import Callable
from typing import Any

from studio.models import Agent, Guideline, Tool
from studio.operations.agents import publish, save_guideline
from tests.studio.api.calling import Caller, is_problem

PATH = "/agents/depot/versions"


def test_the_draft_is_published_listed_and_read(admin: Caller, agent: Agent) -> None:
    response = admin.post(PATH, {"note": " The first "})
    assert response.status_code == 201
    version = response.json()
    assert (version["number"], version["note"], version["published_by"]) == (
        1,
        "The first",
        "admin",
    )
    assert len(version["fingerprint"]) == 64
    assert admin.get(PATH).json() == {"items": [version], "count": 1}
    read = admin.get(f"{PATH}/1").json()
    assert [g["uid"] for g in read.pop("spec")["guidelines"]] == ["parcel", "brief"]
    assert read == version


def test_an_unchanged_draft_is_not_published_again(admin: Caller, agent: Agent) -> None:
    admin.post(PATH, {"note": ""})
    is_problem(admin.post(PATH, {"note": "again"}), 409)
    assert admin.get(PATH).json()["count"] == 1


def test_a_version_is_restored_and_restoring_again_changes_nothing(
    admin: Caller, agent: Agent
) -> None:
    publish(agent, note="", by=None)
    agent.guidelines.all().delete()
    save_guideline(Guideline(agent=agent, action="something new"))
    for _ in range(2):
        restored = admin.post(f"{PATH}/1/restore")
        assert restored.json() == {"version": 1, "missing_tools": []}
        assert [g.uid for g in agent.guidelines.all()] == ["parcel", "brief"]
    agent.refresh_from_db()
    assert agent.published is not None
    assert agent.published.number == 1


def test_tools_that_are_gone_are_named(admin: Caller, agent: Agent) -> None:
    publish(agent, note="", by=None)
    Tool.objects.all().delete()
    assert admin.post(f"{PATH}/1/restore").json()["missing_tools"] == ["find_parcel"]


def test_roles(caller_as: Callable[..., Caller], nobody: Caller, agent: Agent) -> None:
    is_problem(caller_as("author").post(PATH, {}), 403)
    assert caller_as("publisher").post(PATH, {}).status_code == 201
    is_problem(caller_as("publisher").post(f"{PATH}/1/restore"), 403)
    assert caller_as("author").post(f"{PATH}/1/restore").status_code == 200
    assert caller_as("qa").get(f"{PATH}/1").status_code == 200
    for method, path in (("GET", PATH), ("POST", PATH), ("GET", f"{PATH}/1")):
        is_problem(caller_as()(method, path, {} if method == "POST" else None), 404)
        is_problem(nobody(method, path), 401)


def test_bad_input(admin: Caller, agent: Agent) -> None:
    problem = is_problem(admin.post(PATH, {"note": "x" * 2001}), 422)
    assert problem["errors"][0]["field"] == "note"
    is_problem(admin.post("/agents/nobody/versions", {}), 404)
    is_problem(admin.get(f"{PATH}/7"), 404)
    is_problem(admin.post(f"{PATH}/7/restore"), 404)
    is_problem(admin.delete(f"{PATH}"), 405)


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, agent: Agent, django_assert_num_queries: Any
) -> None:
    admin.get(PATH)
    for _ in range(2):
        for n in range(3):
            agent.name = f"{agent.name}{n}"
            agent.save()
            publish(agent, note="", by=None)
        with django_assert_num_queries(5):  # token, roles, agent, rows, count
            admin.get(PATH)
