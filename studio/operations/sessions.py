"""Opening a session and changing what its next turns run on."""

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from engine.events import Mode, ModeEvent, Source
from studio.models import Agent, Customer, Event, ModelConnection, Session
from studio.operations.turns import (
    append_event,
    stop_turn,
    supersede,
    turn_to_answer,
    why_only_read,
)
from studio.operations.versions import VersionUnknownError, version_named

if TYPE_CHECKING:
    from django.contrib.auth.models import User

UNCHANGED: Any = object()
_CHANGED_AT_ONCE = ["follows", "version", "customer", "connection", "title", "tool_mode"]


class SessionError(Exception):
    """A session cannot be opened or changed like that; `field` names what to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def open_session(
    *,
    agent: Agent,
    version: str | int = "draft",
    customer: Customer | None = None,
    title: str = "",
    mode: str = "auto",
    connection: ModelConnection | None = None,
    tool_mode: str = "live",
    by: "User | None" = None,
) -> Session:
    """A new session. `version` is "draft", "published" or a version's number; raises SessionError."""
    _check_mode(mode)
    _check_tool_mode(tool_mode)
    session = Session(
        agent=agent,
        customer=customer,
        title=title.strip(),
        mode=mode,
        connection=connection,
        tool_mode=tool_mode,
        created_by=by,
    )
    _set_version(session, version)
    session.save()
    return session


def change_session(
    session: Session,
    *,
    version: Any = UNCHANGED,
    customer: Any = UNCHANGED,
    title: Any = UNCHANGED,
    mode: Any = UNCHANGED,
    connection: Any = UNCHANGED,
    tool_mode: Any = UNCHANGED,
) -> Session:
    """Change what later turns run on; what was said and decided stays. Raises SessionError."""
    if version is not UNCHANGED:
        _set_version(session, version)
    if mode is not UNCHANGED:
        _check_mode(mode)
    if tool_mode is not UNCHANGED:
        _check_tool_mode(tool_mode)
        session.tool_mode = tool_mode
    if customer is not UNCHANGED:
        session.customer = customer
    if connection is not UNCHANGED:
        session.connection = connection
    if title is not UNCHANGED:
        session.title = str(title).strip()
    with transaction.atomic():
        # Not the counters: a turn that runs now goes on counting.
        session.save(update_fields=_CHANGED_AT_ONCE)
        if mode is not UNCHANGED:
            change_mode(session, mode)
    return session


def change_mode(session: Session, mode: str, *, enqueue: bool = True) -> Event | None:
    """Hand over to a person ("manual") or back to the agent ("auto"), as an event; None where it was so already.

    Handing over stops the turn that runs or waits: from here on nothing runs. Handing back asks at once for a turn
    where the customer said the last word; the event then belongs to that turn. `enqueue` as in `send_message`.
    Raises SessionError.
    """
    _check_mode(mode)
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        if locked.mode != mode and (why := why_only_read(locked)):
            raise SessionError("mode", why)
        session.mode = mode
        if locked.mode == mode:
            return None
        for going in locked.turns.unfinished() if mode == Session.Mode.MANUAL else ():
            stop_turn(going)
        locked.refresh_from_db()  # stopping counts too
        turn = turn_to_answer(locked) if mode == Session.Mode.AUTO and _waits(locked) else None
        event = append_event(locked, turn, ModeEvent(source=Source.OPERATOR, mode=Mode(mode)))
        Session.objects.filter(pk=session.pk).update(mode=mode)
        if turn is not None:
            supersede(locked, turn, enqueue=enqueue)
    session.refresh_from_db(fields=["last_event_at", "next_offset", "next_turn"])
    return event


def _waits(session: Session) -> bool:
    """Did the customer say the last word?"""
    last = (
        session.line.events.filter(kind="message").order_by("-offset").values_list("source").first()
    )
    return last == (Source.CUSTOMER,)


def version_choice(session: Session) -> str | int:
    """What `open_session` was given as `version`."""
    if session.version is not None and session.version.number is not None:
        return session.version.number
    return session.follows


def _check_mode(mode: str) -> None:
    if mode not in Session.Mode.values:
        raise SessionError("mode", _("Mode is “auto” or “manual”."))


def _check_tool_mode(mode: str) -> None:
    if mode not in Session.ToolMode.values:
        raise SessionError("tool_mode", _("Tools are “live”, “recorded” or “mock”."))


def _set_version(session: Session, name: str | int) -> None:
    """A session follows the draft or what is published as they change; a numbered version stays."""
    text = str(name).strip()
    session.version = None
    try:
        match text:
            case Session.Follows.DRAFT:
                session.follows = Session.Follows.DRAFT
            case Session.Follows.PUBLISHED:
                version_named(session.agent, text)
                session.follows = Session.Follows.PUBLISHED
            case _:
                session.version = version_named(session.agent, text)
                session.follows = Session.Follows.VERSION
    except VersionUnknownError as error:
        raise SessionError("version", str(error)) from error
