"""Sessions: which agent, which of its versions, for whom."""

from datetime import date, datetime
from typing import Annotated, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema, Status
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
from studio.session_filters import Filters
from studio.session_search import MAX_CHARACTERS

router = Router(tags=["sessions"])

ToolModeChoice = Literal["live", "recorded", "mock"]
PurposeChoice = Literal["chat", "replay", "test"]
VersionChoice = Annotated[int, Strict()] | Annotated[str, Strict(), Field(max_length=20)]


class SessionOut(BaseModel):
    id: int
    agent: str
    version: int | str
    customer: str | None
    title: str
    purpose: PurposeChoice = Field(
        description="chat, or what the studio played it for by itself: such a session is only read"
    )
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
        "purpose": row.purpose,
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


Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class SessionFilters(Schema):
    """As studio.session_filters, each with what it may be."""

    q: Text | None = Field(
        None, description='Words of a message, by their beginnings; in "double quotes" together'
    )
    agent: Text | None = None
    version: Text | None = Field(
        None, description="draft or published: what it follows; a number: what a turn ran on"
    )
    guideline: Text | None = Field(None, description="The uid of one that fired in a turn")
    tool: Text | None = Field(None, description="The name of one that was decided about")
    decision: Literal["ran", "cannot_run", "known", "awaiting", "not_needed"] | None = Field(
        None, description="What became of the tool, or of any"
    )
    error: Literal["turn", "call", "any"] | None = Field(
        None, description="A turn failed, a tool call did, or either"
    )
    flag: Literal["open", "any"] | None = None
    customer: Text | None = None
    mode: Literal["auto", "manual"] | None = None
    by: Text | None = Field(None, description="The name of who started it")
    running: Literal["yes"] | None = Field(None, description="A turn runs or waits now")
    since: date | None = Field(None, description="The last event was on this day or later")
    until: date | None = Field(None, description="The last event was on this day or earlier")


@router.get("/sessions", response=Page[SessionOut])
def list_sessions(
    request: HttpRequest,
    paging: Query[Paging],
    wanted: Query[SessionFilters],
    purpose: PurposeChoice = "chat",
) -> JsonObject:
    """The most recent first, of one purpose. What is asked of turns has to be so in one and the same turn."""
    require(caller(request), May.VIEW)
    given = wanted.model_dump(mode="json", exclude_none=True)
    rows = Filters.read(given).sessions(purpose).select_related("agent", "version", "customer")
    rows = rows.defer("version__spec").order_by("-last_event_at", "-pk")
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
