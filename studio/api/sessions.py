"""Sessions: which agent, which of its versions, for whom."""

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field, Strict

from engine.canonical import JsonObject
from studio.access import May, load_agent, load_session, require
from studio.api.auth import caller
from studio.api.problems import invalid
from studio.api.reading import Body, Changes, Page, Paging
from studio.models import Customer, Session
from studio.operations.sessions import (
    SessionError,
    change_session,
    open_session,
    version_choice,
)

router = Router(tags=["sessions"])

ToolModeChoice = Literal["live", "recorded", "mock"]
VersionChoice = Annotated[int, Strict()] | Annotated[str, Strict(), Field(max_length=20)]


class SessionOut(BaseModel):
    id: int
    agent: str
    version: int | str
    customer: str | None
    title: str
    mode: str
    tool_mode: ToolModeChoice = Field(
        description="Where the results of tools come from in its next turns"
    )
    root: int = Field(description="The session that this one's tree of branches began with")
    branched_after: int | None = Field(
        description="The turn after which it goes on from another branch; null for the first"
    )
    created_at: datetime
    last_event_at: datetime


def shown_session(row: Session) -> JsonObject:
    return {
        "id": row.pk,
        "agent": row.agent.slug,
        "version": version_choice(row),
        "customer": row.customer.uid if row.customer is not None else None,
        "title": row.title,
        "mode": row.mode,
        "tool_mode": row.tool_mode,
        "root": row.root_id or row.pk,
        "branched_after": row.ancestry[0][1] if row.ancestry else None,
        "created_at": row.created_at,
        "last_event_at": row.last_event_at,
    }


class NewSession(Body):
    agent: str = Field(max_length=60)
    version: VersionChoice = "draft"
    customer: str | None = None
    title: str = Field("", max_length=200)
    mode: Literal["auto", "manual"] = "auto"
    tool_mode: ToolModeChoice = "live"


class SessionChanges(Changes):
    version: VersionChoice = "draft"
    customer: str | None = None
    title: str = Field("", max_length=200)
    mode: Literal["auto", "manual"] = "auto"
    tool_mode: ToolModeChoice = "live"


@router.get("/sessions", response=Page[SessionOut])
def list_sessions(
    request: HttpRequest,
    paging: Query[Paging],
    agent: str | None = None,
    customer: str | None = None,
    mode: Literal["auto", "manual"] | None = None,
) -> JsonObject:
    """The most recent first."""
    require(caller(request), May.VIEW)
    rows = Session.objects.select_related("agent", "version", "customer")
    given = {"agent__slug": agent, "customer__uid": customer, "mode": mode}
    rows = rows.filter(**{k: v for k, v in given.items() if v is not None})
    return paging.page(rows, shown_session)


@router.post("/sessions", response={201: SessionOut})
def create_session(request: HttpRequest, body: NewSession) -> Status[JsonObject]:
    person = caller(request)
    agent = load_agent(person, body.agent, May.CONVERSE)
    try:
        session = open_session(
            agent=agent,
            version=body.version,
            customer=customer_named(body.customer),
            title=body.title,
            mode=body.mode,
            tool_mode=body.tool_mode,
            by=person,
        )
    except SessionError as error:
        raise invalid((error.field, error)) from error
    return Status(201, shown_session(session))


@router.get("/sessions/{int:session_id}", response=SessionOut)
def read_session(request: HttpRequest, session_id: int) -> JsonObject:
    return shown_session(load_session(caller(request), session_id))


@router.patch("/sessions/{int:session_id}", response=SessionOut)
def update_session(request: HttpRequest, session_id: int, body: SessionChanges) -> JsonObject:
    session = load_session(caller(request), session_id, May.CONVERSE)
    changes = body.given()
    if "customer" in changes:
        changes["customer"] = customer_named(changes["customer"])
    try:
        return shown_session(change_session(session, **changes))
    except SessionError as error:
        raise invalid((error.field, error)) from error


def customer_named(uid: str | None) -> Customer | None:
    """The customer whom a request names by uid; a 422 where there is none."""
    if uid is None:
        return None
    customer = Customer.objects.filter(uid=uid).first()
    if customer is None:
        raise invalid(("customer", _("There is no customer %(uid)r.") % {"uid": uid}))
    return customer
