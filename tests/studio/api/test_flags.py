"""`/sessions/{id}/flags`: remarks on messages."""

from collections.abc import Callable
from typing import Any

import pytest

from studio.models import Session
from studio.operations.branches import branch_from
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_turn


@pytest.fixture
def path(session: Session) -> str:
    """The flags of a session with one message, at offset 1 of turn 1."""
    make_turn(session, text="Where is my parcel?")
    return f"/sessions/{session.pk}/flags"


def test_a_flag_is_set_read_listed_and_closed(admin: Caller, session: Session, path: str) -> None:
    response = admin.post(path, {"offset": 1, "comment": " Rude. "})
    assert response.status_code == 201
    flag = response.json()
    assert flag | {"id": 0, "created_at": ""} == {
        "id": 0,
        "session": session.pk,
        "offset": 1,
        "turn": 1,
        "comment": "Rude.",
        "open": True,
        "created_by": "admin",
        "created_at": "",
        "closed_by": "",
        "closed_at": None,
    }
    assert admin.get(f"{path}/{flag['id']}").json() == flag
    assert admin.get(path).json() == {"items": [flag], "count": 1}
    closed = admin.patch(f"{path}/{flag['id']}", {"open": False}).json()
    assert (closed["open"], closed["closed_by"]) == (False, "admin")
    assert admin.patch(f"{path}/{flag['id']}", {}).json() == closed
    assert admin.patch(f"{path}/{flag['id']}", {"open": False}).json() == closed
    assert admin.get(f"{path}?open=true").json()["count"] == 0
    assert admin.get(f"{path}?open=false").json()["items"] == [closed]
    assert admin.patch(f"{path}/{flag['id']}", {"open": True}).json() == flag


def test_flags_come_in_the_order_of_the_messages_and_in_pages(
    admin: Caller, session: Session, path: str
) -> None:
    make_turn(session)
    for offset, comment in ((2, "c"), (1, "a"), (1, "b")):
        admin.post(path, {"offset": offset, "comment": comment})
    comments = [item["comment"] for item in admin.get(path).json()["items"]]
    assert comments == ["a", "b", "c"]
    page = admin.get(f"{path}?limit=1&offset=1").json()
    assert ([item["comment"] for item in page["items"]], page["count"]) == (["b"], 3)


def test_a_branch_has_the_flags_of_what_it_took_over(
    admin: Caller, session: Session, path: str
) -> None:
    branch = branch_from(session, 1)
    there = f"/sessions/{branch.pk}/flags"
    flag = admin.post(there, {"offset": 1, "comment": "Rude."}).json()
    assert flag["session"] == session.pk
    assert admin.get(path).json()["items"] == admin.get(there).json()["items"] == [flag]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"offset": 1, "comment": " "}, "comment"),
        ({"offset": 1, "comment": "x" * 2001}, "comment"),
        ({"offset": 1}, "comment"),
        ({"offset": 0, "comment": "x"}, "offset"),
        ({"offset": 1, "comment": "x", "colour": "red"}, "colour"),
    ],
)
def test_a_wrong_flag_is_refused_by_field(
    admin: Caller, path: str, body: dict[str, Any], field: str
) -> None:
    problem = is_problem(admin.post(path, body), 422)
    assert [error["field"] for error in problem["errors"]] == [field]
    assert admin.get(path).json()["count"] == 0


def test_what_is_not_there_is_not_found(admin: Caller, path: str) -> None:
    is_problem(admin.post(path, {"offset": 99, "comment": "x"}), 404)
    is_problem(admin.get(f"{path}/99"), 404)
    is_problem(admin.patch(f"{path}/99", {"open": False}), 404)
    is_problem(admin.get("/sessions/99/flags"), 404)


def test_only_those_who_converse_set_flags(
    caller_as: Callable[..., Caller], nobody: Caller, path: str
) -> None:
    body = {"offset": 1, "comment": "Rude."}
    assert caller_as("qa").post(path, body).status_code == 201
    is_problem(caller_as().post(path, body), 404)
    is_problem(nobody.post(path, body), 401)
    assert caller_as("qa").delete(path).status_code == 405
