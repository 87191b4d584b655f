"""`/tools`: what is in the shed, and running one tool by hand."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext, ToolResult
from engine.tools.function import FunctionToolService, tool
from studio.models import Agent, Customer, Session, Tool, ToolCall, Turn
from studio.operations import tool_runs
from tests.studio.api.calling import Caller, is_problem


@tool
async def find_parcel(context: ToolContext, number: str, fast: bool = False) -> Any:
    """Where a parcel is."""
    await context.emit_status("looking")
    if number == "lost":
        raise RuntimeError("nowhere to be found")
    if number == "slow":
        await asyncio.sleep(5)
    if number == "chatty":
        return ToolResult(data={}, log="asked twice")
    if number == "private":
        raise ToolFailure(ToolError(kind=ToolErrorKind.NOT_ALLOWED, public="it is private"))
    return {"number": number, "for": context.customer_id, "fast": fast}


@pytest.fixture(autouse=True)
def _shed(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    service = FunctionToolService([find_parcel])
    monkeypatch.setattr(tool_runs, "tools_for", lambda _tools: service)
    Tool.objects.filter(name="find_parcel").update(
        timeout=0.3,
        parameters=[
            {"name": "number", "schema": {"type": "string"}},
            {"name": "fast", "schema": {"type": "boolean"}, "required": False, "default": False},
        ],
    )
    Tool.objects.create(name="another", enabled=False)


def test_tools_are_listed_and_read(admin: Caller, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(9):  # token, its use, roles, rows, count; the figures: four
        listed = admin.get("/tools").json()
    assert [item["name"] for item in listed["items"]] == ["another", "find_parcel"]
    found = admin.get("/tools/find_parcel").json()
    assert found == listed["items"][1]
    assert found["description"] == "Where a parcel is."
    assert found["parameters"][0] == {"name": "number", "schema": {"type": "string"}}
    assert found["available"] is True
    assert listed["items"][0]["available"] is False
    nothing = {"calls": 0, "errors": 0, "median_ms": None, "p95_ms": None}
    assert (found["figures"], found["tier_warning"]) == (nothing, "")


def test_tools_are_filtered(admin: Caller) -> None:
    for query in ("enabled=true", "agent=depot"):
        found = admin.get(f"/tools?{query}").json()
        assert [item["name"] for item in found["items"]] == ["find_parcel"]


def test_a_tool_is_run(admin: Caller) -> None:
    Customer.objects.create(uid="ann", name="Ann")
    ran = admin.post(
        "/tools/find_parcel/run", {"arguments": {"number": "P-7", "fast": True}, "customer": "ann"}
    )
    assert ran.status_code == 200
    answer = ran.json()
    assert answer["data"] == {"number": "P-7", "for": "ann", "fast": True}
    assert answer["metadata"] == {}
    assert answer["log"] == [{"kind": "status", "text": "looking"}]
    assert 0 <= answer["duration_ms"] < 1000


def test_what_a_tool_printed_is_told_too(admin: Caller) -> None:
    ran = admin.post("/tools/find_parcel/run", {"arguments": {"number": "chatty"}})

    assert ran.json()["log"] == [
        {"kind": "status", "text": "looking"},
        {"kind": "print", "text": "asked twice"},
    ]


@pytest.mark.parametrize(
    ("number", "status", "kind"),
    [
        ("lost", 502, "exception"),
        ("slow", 504, "timeout"),
        ("private", 403, "not_allowed"),
    ],
)
def test_a_failure_is_a_problem_of_its_kind(
    admin: Caller, number: str, status: int, kind: str
) -> None:
    response = admin.post("/tools/find_parcel/run", {"arguments": {"number": number}})
    problem = is_problem(response, status)
    assert problem["kind"] == kind
    assert problem["log"] == [{"kind": "status", "text": "looking"}]
    assert problem["duration_ms"] >= 0
    assert "Traceback" not in problem["detail"]


def test_a_tool_without_code_is_unavailable(admin: Caller) -> None:
    problem = is_problem(admin.post("/tools/another/run", {}), 503)
    assert problem["kind"] == "unavailable"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "arguments.number"),
        ({"arguments": {"number": 7}}, "arguments.number"),
        ({"arguments": {"number": "P-7", "fast": "false"}}, "arguments.fast"),
        ({"arguments": {"number": "P-7", "colour": 1}}, "arguments.colour"),
        ({"arguments": []}, "arguments"),
        ({"arguments": {"number": "P-7"}, "customer": "nobody"}, "customer"),
    ],
)
def test_bad_arguments_are_named_and_the_tool_not_run(
    admin: Caller, body: dict[str, Any], field: str
) -> None:
    problem = is_problem(admin.post("/tools/find_parcel/run", body), 422)
    assert field in {error["field"] for error in problem["errors"]}


def test_only_developers_run_tools(caller_as: Callable[..., Caller], nobody: Caller) -> None:
    body = {"arguments": {"number": "P-7"}}
    assert caller_as("developer").post("/tools/find_parcel/run", body).status_code == 200
    problem = is_problem(caller_as("author").post("/tools/find_parcel/run", body), 403)
    assert "developer" in problem["detail"]
    is_problem(caller_as().post("/tools/find_parcel/run", body), 404)
    is_problem(nobody.post("/tools/find_parcel/run", body), 401)
    is_problem(nobody.get("/tools"), 401)


def test_an_unknown_tool_is_not_found_and_a_wrong_method_refused(admin: Caller) -> None:
    is_problem(admin.get("/tools/teleport"), 404)
    is_problem(admin.post("/tools/teleport/run", {}), 404)
    is_problem(admin.get("/tools/find_parcel/run"), 405)


def test_a_tool_of_the_wrong_tier_says_so(admin: Caller) -> None:
    session = Session.objects.create(agent=Agent.objects.get(slug="depot"))
    turn = Turn.objects.create(session=session, number=1)
    now = timezone.now()
    for number in range(5):
        ToolCall.objects.create(
            turn=turn,
            iteration=1,
            uid=f"c{number}",
            tool="find_parcel",
            arguments={},
            state="done",
            started_at=now - timedelta(seconds=7),
            ended_at=now,
        )
    found = admin.get("/tools/find_parcel").json()
    assert found["figures"] == {"calls": 5, "errors": 0, "median_ms": 7000.0, "p95_ms": 7000.0}
    assert "declare it “Medium: under 15 s”" in found["tier_warning"]
    assert admin.get("/agents/depot/tools").json()["items"] == [found]
