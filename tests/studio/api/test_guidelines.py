"""`/agents/{slug}/guidelines`."""

from collections.abc import Callable
from typing import Any

import pytest

from studio.bridge import agent_spec
from studio.models import Agent, Guideline, Tool
from studio.operations.agents import allow_tool, save_guideline, snapshot
from tests.studio.api.calling import Caller, is_problem

PATH = "/agents/depot/guidelines"
WHOLE = {
    "condition": "the customer asks for the weight",
    "action": "weigh it",
    "criticality": "high",
    "priority": 7,
    "enabled": False,
    "tags": ["weight", "parcels"],
    "tools": ["find_parcel"],
    "reevaluate_after": ["find_parcel"],
    "examples": [
        {"text": "How heavy is it?", "matches": True},
        {"text": "How big is it?", "matches": False},
    ],
}


def test_a_guideline_is_created_read_and_listed(admin: Caller, agent: Agent) -> None:
    response = admin.post(PATH, WHOLE)
    assert response.status_code == 201
    made = response.json()
    assert {name: made[name] for name in WHOLE} == WHOLE
    assert admin.get(f"{PATH}/{made['uid']}").json() == made
    listed = admin.get(PATH).json()
    assert [item["uid"] for item in listed["items"]] == ["parcel", "brief", made["uid"]]
    assert listed["items"][2] == made
    assert listed["count"] == 3


def test_little_is_enough_for_a_guideline(admin: Caller, agent: Agent) -> None:
    made = admin.post(PATH, {"action": "smile"}).json()
    assert (made["criticality"], made["priority"], made["enabled"]) == ("medium", 0, True)
    assert made["tags"] == made["tools"] == made["reevaluate_after"] == made["examples"] == []


def test_a_guideline_is_changed_where_the_change_says_so(admin: Caller, agent: Agent) -> None:
    made = admin.post(PATH, WHOLE).json()
    path = f"{PATH}/{made['uid']}"
    changed = admin.patch(path, {"priority": -3}).json()
    assert changed | {"updated_at": ""} == made | {"priority": -3, "updated_at": ""}
    emptied = admin.patch(path, {"tools": [], "examples": [], "tags": []}).json()
    assert emptied["tools"] == emptied["examples"] == emptied["tags"] == []
    assert emptied["reevaluate_after"] == ["find_parcel"]
    assert admin.patch(path, {"enabled": True}).json()["enabled"] is True


def test_the_next_turn_sees_the_change(admin: Caller, agent: Agent) -> None:
    before = snapshot(agent)
    admin.patch(f"{PATH}/brief", {"action": "be very brief"})
    after = snapshot(agent)
    assert after.fingerprint != before.fingerprint
    assert agent_spec(after).guideline_by_uid["brief"].action == "be very brief"


def test_who_says_when_they_read_it_overwrites_nobody(admin: Caller, agent: Agent) -> None:
    read = admin.get(f"{PATH}/brief").json()
    save_guideline(Guideline.objects.get(uid="brief"))
    stale = {"action": "mine", "updated_at": read["updated_at"]}
    is_problem(admin.patch(f"{PATH}/brief", stale), 409)
    fresh = stale | {"updated_at": admin.get(f"{PATH}/brief").json()["updated_at"]}
    assert admin.patch(f"{PATH}/brief", fresh).json()["action"] == "mine"


def test_a_guideline_is_deleted(admin: Caller, agent: Agent) -> None:
    assert admin.delete(f"{PATH}/brief").status_code == 204
    is_problem(admin.delete(f"{PATH}/brief"), 404)
    assert [item["uid"] for item in admin.get(PATH).json()["items"]] == ["parcel"]


def test_guidelines_are_filtered_and_come_in_pages(admin: Caller, agent: Agent) -> None:
    made = admin.post(PATH, {"action": "smile", "enabled": False}).json()["uid"]
    for query, uids in (
        ("enabled=false", [made]),
        ("enabled=true", ["parcel", "brief"]),
        ("tool=find_parcel", ["parcel"]),
        ("limit=1&offset=1", ["brief"]),
    ):
        assert [item["uid"] for item in admin.get(f"{PATH}?{query}").json()["items"]] == uids


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ({"condition": "  ", "action": "\n"}, ""),
        ({"action": "x" * 10_001}, "action"),
        ({"action": "x", "criticality": "extreme"}, "criticality"),
        ({"action": "x", "priority": 101}, "priority"),
        ({"action": "x", "priority": "high"}, "priority"),
        ({"action": "x", "tools": ["teleport"]}, "tools"),
        ({"action": "x", "tools": ["weigh"]}, "tools"),
        ({"action": "x", "reevaluate_after": ["teleport"]}, "reevaluate_after"),
        ({"action": "x", "tools": "find_parcel"}, "tools"),
        ({"action": "x", "tags": ["a,b"]}, "tags"),
        ({"action": "x", "examples": [{"text": "y" * 2_001}]}, "examples"),
        ({"action": "x", "examples": ["just text"]}, "examples.0"),
        ({"action": "x", "enabled": None}, "enabled"),
        ({"actoin": "x"}, "actoin"),
    ],
)
def test_bad_input_is_named(admin: Caller, agent: Agent, body: dict[str, Any], field: str) -> None:
    Tool.objects.create(name="weigh")  # in the shed, and not among the agent's
    problem = is_problem(admin.post(PATH, body), 422)
    assert field in {error["field"] for error in problem["errors"]}
    assert Guideline.objects.count() == 2


def test_a_bad_change_changes_nothing(admin: Caller, agent: Agent) -> None:
    before = admin.get(f"{PATH}/parcel").json()
    for body in ({"condition": "", "action": ""}, {"uid": "x"}, {"tools": ["nope"]}):
        is_problem(admin.patch(f"{PATH}/parcel", body), 422)
    assert admin.get(f"{PATH}/parcel").json() == before


def test_only_authors_write(caller_as: Callable[..., Caller], nobody: Caller, agent: Agent) -> None:
    assert caller_as("author").post(PATH, {"action": "x"}).status_code == 201
    for method, path, body in (
        ("POST", PATH, {"action": "x"}),
        ("PATCH", f"{PATH}/brief", {"action": "x"}),
        ("DELETE", f"{PATH}/brief", None),
    ):
        for role in ("developer", "qa", "publisher"):
            is_problem(caller_as(role)(method, path, body), 403)
        is_problem(caller_as()(method, path, body), 404)
        is_problem(nobody(method, path, body), 401)
    assert caller_as("qa").get(f"{PATH}/brief").json()["action"] == "be brief"


def test_what_is_not_there_is_not_found(admin: Caller, agent: Agent) -> None:
    Agent.objects.create(slug="other", name="Other")
    for path in (f"{PATH}/nope", "/agents/other/guidelines/brief", "/agents/nope/guidelines/brief"):
        is_problem(admin.get(path), 404)
        is_problem(admin.patch(path, {"action": "x"}), 404)
        is_problem(admin.delete(path), 404)
    is_problem(admin.get("/agents/nope/guidelines"), 404)
    is_problem(admin.put(f"{PATH}/brief", {}), 405)


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, agent: Agent, django_assert_num_queries: Any
) -> None:
    allow_tool(agent, Tool.objects.create(name="weigh"))
    admin.get(PATH)
    for _ in range(2):
        for _ in range(5):
            admin.post(PATH, WHOLE)
        # token, roles, agent, rows, three kinds of parts, count
        with django_assert_num_queries(9):
            admin.get(PATH)
