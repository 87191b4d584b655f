"""`/sessions`: opening conversations and changing what they run on."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from studio.models import Agent, Customer, Flag, GuidelineMatch, Session, ToolDecision
from studio.operations.agents import publish
from studio.operations.sessions import open_session
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_turn


def test_a_session_is_opened_read_and_listed(admin: Caller, agent: Agent) -> None:
    Customer.objects.create(uid="ann", name="Ann")
    response = admin.post(
        "/sessions",
        {"agent": "depot", "customer": "ann", "title": " A test ", "mode": "manual"},
    )
    assert response.status_code == 201
    opened = response.json()
    assert opened | {"id": 0, "created_at": "", "last_event_at": ""} == {
        "id": 0,
        "agent": "depot",
        "version": "draft",
        "customer": "ann",
        "title": "A test",
        "purpose": "chat",
        "mode": "manual",
        "tool_mode": "live",
        "root": opened["id"],
        "branched_after": None,
        "created_at": "",
        "last_event_at": "",
    }
    assert Session.objects.get().created_by is not None
    assert admin.get(f"/sessions/{opened['id']}").json() == opened
    assert admin.get("/sessions").json() == {"items": [opened], "count": 1}


def test_a_session_runs_on_the_draft_the_published_or_one_version(
    admin: Caller, agent: Agent
) -> None:
    problem = is_problem(admin.post("/sessions", {"agent": "depot", "version": "published"}), 422)
    assert problem["errors"][0]["field"] == "version"
    publish(agent, note="", by=None)
    for version in ("draft", "published", 1):
        response = admin.post("/sessions", {"agent": "depot", "version": version})
        assert response.json()["version"] == version


def test_a_session_is_changed(admin: Caller, session: Session, agent: Agent) -> None:
    publish(agent, note="", by=None)
    path = f"/sessions/{session.pk}"
    changed = admin.patch(path, {"title": "Second", "mode": "manual", "version": 1}).json()
    assert (changed["title"], changed["mode"], changed["version"]) == ("Second", "manual", 1)
    Customer.objects.create(uid="ann", name="Ann")
    assert admin.patch(path, {"customer": "ann"}).json()["customer"] == "ann"
    again = admin.patch(path, {"customer": None}).json()
    assert again == changed  # nothing else was touched
    assert admin.patch(path, {}).json() == changed
    assert admin.get(path).json() == changed


def test_sessions_are_filtered(admin: Caller, session: Session) -> None:
    other = Agent.objects.create(slug="other", name="Other")
    ann = Customer.objects.create(uid="ann", name="Ann")
    special = open_session(agent=other, customer=ann, mode="manual")
    for query in ("agent=other", "customer=ann", "mode=manual"):
        found = admin.get(f"/sessions?{query}").json()
        assert [item["id"] for item in found["items"]] == [special.pk]
        assert found["count"] == 1
    assert admin.get("/sessions?agent=nobody").json() == {"items": [], "count": 0}


def test_sessions_are_found_by_what_was_said_and_decided(
    admin: Caller, session: Session, agent: Agent
) -> None:
    turn = make_turn(open_session(agent=agent), text="Where is my parcel?", state="FAILED")
    GuidelineMatch.objects.create(
        turn=turn, guideline="parcel", state="matched", started_at=timezone.now()
    )
    ToolDecision.objects.create(
        turn=turn,
        guideline="parcel",
        tool="find_parcel",
        state="CANNOT_RUN",
        started_at=timezone.now(),
    )
    Flag.objects.create(event=turn.events.get(), comment="Look.")
    today = timezone.localdate()
    fitting = (
        "q=parc whe",
        "guideline=parcel",
        "tool=find_parcel",
        "decision=cannot_run",
        "error=turn",
        "flag=open",
    )
    for query in (*fitting, "&".join(fitting)):
        found = admin.get(f"/sessions?{query}").json()
        assert [item["id"] for item in found["items"]] == [turn.session_id], query
    for query in ("q=nothing", "guideline=brief", "decision=ran", "error=call", "by=ann", "running=yes",
                  f"until={today - timedelta(days=2)}"):  # fmt: skip
        assert admin.get(f"/sessions?{query}").json()["count"] == 0, query
    for query in ("version=draft", f"since={today - timedelta(days=1)}", "q=*"):
        assert admin.get(f"/sessions?{query}").json()["count"] == 2, query
    for query in ("error=x", "flag=x", "decision=x", "since=soon", "running=no", f"q={'x' * 201}"):
        is_problem(admin.get(f"/sessions?{query}"), 422)


def test_sessions_come_in_pages(admin: Caller, agent: Agent) -> None:
    ids = [open_session(agent=agent).pk for _ in range(5)]
    page = admin.get("/sessions?limit=2&offset=1").json()
    assert page["count"] == 5
    assert [item["id"] for item in page["items"]] == sorted(ids, reverse=True)[1:3]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"agent": "depot", "version": 9}, "version"),
        ({"agent": "depot", "version": "latest"}, "version"),
        ({"agent": "depot", "version": True}, "version.int"),
        ({"agent": "depot", "customer": "nobody"}, "customer"),
        ({"agent": "depot", "title": "x" * 201}, "title"),
        ({"agent": "depot", "mode": "sleepy"}, "mode"),
        ({"agent": 5}, "agent"),
        ({"agent": "depot", "colour": "red"}, "colour"),
    ],
)
def test_bad_input_names_its_field(
    admin: Caller, agent: Agent, body: dict[str, Any], field: str
) -> None:
    problem = is_problem(admin.post("/sessions", body), 422)
    assert field in {error["field"] for error in problem["errors"]}
    assert not Session.objects.exists()


def test_unknown_agents_and_sessions_are_not_found(admin: Caller, session: Session) -> None:
    assert "nobody" in is_problem(admin.post("/sessions", {"agent": "nobody"}), 404)["detail"]
    is_problem(admin.get("/sessions/999"), 404)
    is_problem(admin.patch("/sessions/999", {"title": "x"}), 404)


def test_a_bad_change_changes_nothing(admin: Caller, session: Session) -> None:
    path = f"/sessions/{session.pk}"
    before = admin.get(path).json()
    for body in ({"title": None}, {"mode": "manual", "version": 7}, {"id": 3}):
        is_problem(admin.patch(path, body), 422)
    assert admin.get(path).json() == before


def test_everybody_with_a_role_opens_sessions_and_nobody_else(
    caller_as: Callable[..., Caller], agent: Agent, nobody: Caller
) -> None:
    for role in ("author", "developer", "qa", "publisher"):
        assert caller_as(role).post("/sessions", {"agent": "depot"}).status_code == 201
    is_problem(caller_as().post("/sessions", {"agent": "depot"}), 404)
    is_problem(nobody.post("/sessions", {"agent": "depot"}), 401)
    is_problem(nobody.get("/sessions"), 401)


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, agent: Agent, django_assert_num_queries: Any
) -> None:
    publish(agent, note="", by=None)
    ann = Customer.objects.create(uid="ann", name="Ann")
    admin.get("/sessions")
    for _ in range(2):
        for _ in range(5):
            open_session(agent=agent, version=1, customer=ann)
        with django_assert_num_queries(4):  # token, roles, rows, count
            admin.get("/sessions")
