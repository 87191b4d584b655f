"""What tools answer in a session whose tools are mocked."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from engine.errors import ToolErrorKind
from studio.access import May, load_session
from studio.api.auth import caller
from studio.api.problems import invalid
from studio.api.reading import Body, Page
from studio.models import ToolMock
from studio.operations.tool_modes import (
    MockRefusedError,
    mocks_of,
    remove_mock,
    save_mock,
    tools_of,
)

router = Router(tags=["sessions"])


class MockOut(BaseModel):
    tool: str
    data: Any = Field(description="What it answers, where it answers with a result")
    failure: str = Field(description="The kind of its failure, else empty")
    updated_by: str
    updated_at: datetime


class NewMock(Body):
    data: Any = Field(None, description="Any JSON: all that the model sees of the result")
    failure: ToolErrorKind | None = Field(None, description="Fail like this instead")


@router.get("/sessions/{int:session_id}/mocks", response=Page[MockOut])
def list_mocks(request: HttpRequest, session_id: int) -> JsonObject:
    """Those of the whole tree of branches that the session belongs to, by tool."""
    found = mocks_of(load_session(caller(request), session_id))
    return {"items": [_shown(row) for row in found], "count": len(found)}


@router.put("/sessions/{int:session_id}/mocks/{name}", response=MockOut)
def put_mock(request: HttpRequest, session_id: int, name: str, body: NewMock) -> JsonObject:
    """What the tool answers from the next turn on while the session's `tool_mode` is "mock"."""
    person = caller(request)
    session = load_session(person, session_id, May.CONVERSE)
    if name not in {tool.name for tool in tools_of(session)}:
        raise Http404(_("This agent has no tool “%(name)s”.") % {"name": name})
    failure = body.failure.value if body.failure is not None else ""
    try:
        row = save_mock(session, name, data=body.data, failure=failure, by=person.get_username())
    except MockRefusedError as error:
        raise invalid(("data", error)) from error
    return _shown(row)


@router.delete("/sessions/{int:session_id}/mocks/{name}", response={204: None})
def delete_mock(request: HttpRequest, session_id: int, name: str) -> Status[None]:
    """The tool then answers that it is not available."""
    remove_mock(load_session(caller(request), session_id, May.CONVERSE), name)
    return Status(204, None)


def _shown(row: ToolMock) -> JsonObject:
    return {
        "tool": row.tool,
        "data": row.data,
        "failure": row.failure,
        "updated_by": row.updated_by,
        "updated_at": row.updated_at,
    }
