"""`/agents/{slug}/relationships` and `/agents/{slug}/overlaps`."""

from collections.abc import Callable
from typing import Any

import pytest

from studio.bridge import agent_spec
from studio.models import Agent, Guideline, Relationship, Tool, ToolOverlap
from studio.operations.agents import allow_tool, save_guideline, snapshot
from tests.studio.api.calling import Caller, is_problem

PATH = "/agents/depot/relationships"
OVERLAPS = "/agents/depot/overlaps"
FIRST = {"kind": "has_priority_over", "source": "parcel", "targets": ["brief"]}


def test_a_relationship_is_created_read_and_listed(admin: Caller, agent: Agent) -> None:
    response = admin.post(PATH, FIRST)
    assert response.status_code == 201
    made = response.json()
    assert made == {"uid": made["uid"], **FIRST}
    assert admin.get(f"{PATH}/{made['uid']}").json() == made
    assert admin.get(PATH).json() == {"items": [made], "count": 1}
    assert admin.get(f"{PATH}?guideline=brief").json()["count"] == 0
    assert admin.get(f"{PATH}?kind=has_priority_over").json()["count"] == 1


def test_the_next_turn_runs_on_a_new_relationship(admin: Caller, agent: Agent) -> None:
    before = snapshot(agent)
    admin.post(PATH, FIRST)
    after = snapshot(agent)
    assert after.fingerprint != before.fingerprint
    assert agent_spec(after).relationships[0].source == "parcel"


def test_a_relationship_is_changed_and_deleted(admin: Caller, agent: Agent) -> None:
    save_guideline(Guideline(agent=agent, uid="kind", action="be kind"))
    made = admin.post(PATH, FIRST).json()
    path = f"{PATH}/{made['uid']}"
    changed = admin.patch(path, {"targets": ["kind", "brief"]}).json()
    assert changed == made | {"targets": ["brief", "kind"]}
    assert admin.patch(path, {"kind": "entails"}).json()["kind"] == "entails"
    assert admin.delete(path).status_code == 204
    is_problem(admin.delete(path), 404)
    assert admin.get(PATH).json()["count"] == 0


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        (FIRST | {"kind": "likes"}, "kind", "“likes” is no relationship"),
        (FIRST | {"targets": []}, "targets", "at least one"),
        (FIRST | {"targets": ["nobody"]}, "targets", "no guideline of the uid “nobody”"),
        (FIRST | {"source": "nobody"}, "source", "no guideline of the uid “nobody”"),
        (FIRST | {"source": ""}, "source", ""),
        (FIRST | {"targets": ["parcel"]}, "targets", "no relationship to itself"),
        (FIRST | {"targets": "brief"}, "targets", ""),
        ({"kind": "entails"}, "source", "missing"),
    ],
)
def test_bad_input_is_named(
    admin: Caller, agent: Agent, body: dict[str, Any], field: str, said: str
) -> None:
    problem = is_problem(admin.post(PATH, body), 422)
    messages = {error["field"]: error["message"] for error in problem["errors"]}
    assert said in messages[field]
    assert not Relationship.objects.exists()


def test_a_second_one_of_a_kind_names_the_remedy(admin: Caller, agent: Agent) -> None:
    admin.post(PATH, FIRST)
    problem = is_problem(admin.post(PATH, FIRST), 422)
    assert "add to its targets" in problem["detail"]


def test_a_guideline_of_another_agent_cannot_be_related(admin: Caller, agent: Agent) -> None:
    other = Agent.objects.create(slug="other", name="Other")
    save_guideline(Guideline(agent=other, uid="theirs", action="x"))
    is_problem(admin.post(PATH, FIRST | {"targets": ["theirs"]}), 422)


def test_relationships_that_go_round_are_refused(admin: Caller, agent: Agent) -> None:
    admin.post(PATH, FIRST)
    back = {"kind": "has_priority_over", "source": "brief", "targets": ["parcel"]}
    problem = is_problem(admin.post(PATH, back), 422)
    assert problem["errors"][0]["field"] == "targets"
    assert Relationship.objects.count() == 1


def test_a_group_of_tools_is_created_changed_and_deleted(admin: Caller, agent: Agent) -> None:
    for name in ("weigh", "track"):
        allow_tool(agent, Tool.objects.create(name=name))
    made = admin.post(OVERLAPS, {"tools": ["weigh", "find_parcel"]}).json()
    assert made["tools"] == ["find_parcel", "weigh"]
    path = f"{OVERLAPS}/{made['uid']}"
    assert admin.get(path).json() == made
    assert admin.get(OVERLAPS).json() == {"items": [made], "count": 1}
    assert admin.patch(path, {"tools": ["weigh", "track"]}).json()["tools"] == ["track", "weigh"]
    assert agent_spec(snapshot(agent)).overlaps == (("track", "weigh"),)
    assert admin.delete(path).status_code == 204
    is_problem(admin.get(path), 404)


@pytest.mark.parametrize("tools", [[], ["find_parcel"], ["find_parcel", "fly"], "find_parcel"])
def test_a_bad_group_is_refused(admin: Caller, agent: Agent, tools: Any) -> None:
    problem = is_problem(admin.post(OVERLAPS, {"tools": tools}), 422)
    assert problem["errors"][0]["field"].startswith("tools")
    assert not ToolOverlap.objects.exists()


def test_the_same_group_twice_is_refused(admin: Caller, agent: Agent) -> None:
    allow_tool(agent, Tool.objects.create(name="weigh"))
    body = {"tools": ["weigh", "find_parcel"]}
    assert admin.post(OVERLAPS, body).status_code == 201
    assert "a group already" in is_problem(admin.post(OVERLAPS, body), 422)["detail"]


def test_only_authors_write(caller_as: Callable[..., Caller], nobody: Caller, agent: Agent) -> None:
    for role in ("developer", "qa", "publisher"):
        is_problem(caller_as(role).post(PATH, FIRST), 403)
    is_problem(caller_as().post(PATH, FIRST), 404)
    is_problem(nobody.post(PATH, FIRST), 401)
    assert caller_as("author").post(PATH, FIRST).status_code == 201
    assert caller_as("qa").get(PATH).json()["count"] == 1


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, agent: Agent, django_assert_num_queries: Any
) -> None:
    admin.get(PATH)
    for _ in range(2):
        for _ in range(5):
            guideline = save_guideline(Guideline(agent=agent, action="x"))
            admin.post(PATH, FIRST | {"source": guideline.uid})
        # token, roles, agent, rows with their source, targets, count
        with django_assert_num_queries(6):
            admin.get(PATH)
