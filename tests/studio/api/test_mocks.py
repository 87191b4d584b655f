"""`/sessions/{id}/mocks`: what tools answer in a session whose tools are mocked."""

from typing import Any

import pytest

from studio.models import Session, ToolMock
from studio.operations.branches import branch_from
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_turn


def test_a_mock_is_put_listed_replaced_and_deleted(admin: Caller, session: Session) -> None:
    path = f"/sessions/{session.pk}/mocks"
    assert admin.get(path).json() == {"items": [], "count": 0}

    put = admin.put(f"{path}/find_parcel", {"data": {"in": "Lyon"}})

    assert put.status_code == 200
    shown = put.json()
    assert (shown["tool"], shown["data"], shown["failure"]) == ("find_parcel", {"in": "Lyon"}, "")
    assert shown["updated_by"]
    assert admin.get(path).json() == {"items": [shown], "count": 1}
    failing = admin.put(f"{path}/find_parcel", {"failure": "timeout"}).json()
    assert (failing["data"], failing["failure"]) == (None, "timeout")
    for _ in range(2):
        assert admin.delete(f"{path}/find_parcel").status_code == 204
    assert not ToolMock.objects.exists()


def test_a_branch_has_the_mocks_of_its_tree(admin: Caller, session: Session) -> None:
    make_turn(session)
    branch = branch_from(session, 1)
    admin.put(f"/sessions/{branch.pk}/mocks/find_parcel", {"data": 1})

    assert admin.get(f"/sessions/{session.pk}/mocks").json()["count"] == 1


@pytest.mark.parametrize("body", [{"failure": "sulks"}, {"shape": 1}, {"data": "x" * 2_000_000}])
def test_what_cannot_be_a_mock_is_refused(
    admin: Caller, session: Session, body: dict[str, Any]
) -> None:
    is_problem(admin.put(f"/sessions/{session.pk}/mocks/find_parcel", body), 422)
    assert not ToolMock.objects.exists()


def test_a_tool_that_the_agent_does_not_have_has_no_mock(admin: Caller, session: Session) -> None:
    is_problem(admin.put(f"/sessions/{session.pk}/mocks/nobody", {"data": 1}), 404)
    is_problem(admin.get("/sessions/9999/mocks"), 404)
