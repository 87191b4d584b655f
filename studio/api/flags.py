"""Flags: people's remarks on messages of a session."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_flag, load_message, load_session
from studio.api.auth import caller
from studio.api.problems import invalid
from studio.api.reading import Body, Changes, Page, Paging
from studio.models import Flag
from studio.operations.flags import FlagRefusedError, close_flag, flags_of, reopen_flag, set_flag

router = Router(tags=["flags"])


class FlagOut(BaseModel):
    id: int
    session: int = Field(description="The session in which the message was said")
    offset: int = Field(description="Of the message, along the session's line of branches")
    turn: int | None
    comment: str
    open: bool
    created_by: str
    created_at: datetime
    closed_by: str
    closed_at: datetime | None


def _shown(row: Flag) -> JsonObject:
    turn = row.event.turn
    return {
        "id": row.pk,
        "session": row.event.session_id,
        "offset": row.event.offset,
        "turn": turn.number if turn is not None else None,
        "comment": row.comment,
        "open": row.closed_at is None,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "closed_by": row.closed_by,
        "closed_at": row.closed_at,
    }


class NewFlag(Body):
    offset: int = Field(ge=1, le=2**31 - 1, description="Of a message of the session's line")
    comment: str


class FlagChanges(Changes):
    open: bool = True


class FlagFilters(Schema):
    open: bool | None = None


@router.get("/sessions/{int:session_id}/flags", response=Page[FlagOut])
def list_flags(
    request: HttpRequest, session_id: int, paging: Query[Paging], wanted: Query[FlagFilters]
) -> JsonObject:
    """On messages along the session's line, in the order of the messages."""
    rows = flags_of(load_session(caller(request), session_id))
    if wanted.open is not None:
        rows = rows.filter(closed_at__isnull=wanted.open)
    return paging.page(rows.select_related("event__turn").defer("event__turn__checkpoint"), _shown)


@router.post("/sessions/{int:session_id}/flags", response={201: FlagOut})
def create_flag(request: HttpRequest, session_id: int, body: NewFlag) -> Status[JsonObject]:
    person = caller(request)
    event = load_message(person, session_id, body.offset, May.CONVERSE)
    try:
        return Status(201, _shown(set_flag(event, body.comment, by=person)))
    except FlagRefusedError as error:
        raise invalid(("comment", error)) from error


@router.get("/sessions/{int:session_id}/flags/{int:flag_id}", response=FlagOut)
def read_flag(request: HttpRequest, session_id: int, flag_id: int) -> JsonObject:
    return _shown(load_flag(caller(request), session_id, flag_id))


@router.patch("/sessions/{int:session_id}/flags/{int:flag_id}", response=FlagOut)
def update_flag(
    request: HttpRequest, session_id: int, flag_id: int, body: FlagChanges
) -> JsonObject:
    """Close a flag with `open: false`, or open it again; whoever closed it first stays named."""
    person = caller(request)
    flag = load_flag(person, session_id, flag_id, May.CONVERSE)
    if "open" in body.given():
        reopen_flag(flag) if body.open else close_flag(flag, by=person)
    return _shown(flag)
