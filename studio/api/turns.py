"""Messages in, and the turns that answer them with their audit."""

from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel

from engine.canonical import JsonObject
from studio.access import May, load_session, load_turn
from studio.api.audits import AuditOut, TurnOut
from studio.api.auth import caller
from studio.api.problems import conflict, invalid
from studio.api.reading import Body, Page, Paging, Wait
from studio.audit import audit, replies_of, version_name
from studio.live import in_database, turn_over
from studio.models import Turn
from studio.operations.turns import (
    MessageRefusedError,
    TurnNotOverError,
    TurnNotRetriableError,
    retry_turn,
    send_message,
    stop_turn,
)

router = Router(tags=["turns"])


class NewMessage(Body):
    text: str
    source: Literal["customer", "operator", "agent"] = "customer"


class Unanswered(BaseModel):
    """The message was stored, and no turn answers it."""

    turn: None = None


@router.post(
    "/sessions/{int:session_id}/messages",
    response={200: AuditOut, 201: Unanswered, 202: AuditOut},
    exclude_unset=True,
    by_alias=True,
)
async def create_message(
    request: HttpRequest, session_id: int, body: NewMessage, wait: Wait = 0
) -> Status[JsonObject]:
    """Say something. 202 with the turn that will answer, or 200 where it ends within `wait` seconds (0 to 60).

    201 where no turn answers: in manual mode, and for what an operator or the agent says.
    """

    def send() -> Turn | None:
        person = caller(request)
        session = load_session(person, session_id, May.CONVERSE)
        try:
            return send_message(session, text=body.text, source=body.source)
        except MessageRefusedError as error:
            raise invalid(("text", error)) from error

    turn = await in_database(send)
    if turn is None:
        return Status(201, {"turn": None})
    over = await over_within(turn, wait)
    return Status(200 if over else 202, await in_database(audit_of, turn.pk))


async def over_within(turn: Turn, seconds: float) -> bool:
    """Does the turn end while its caller waits?"""
    return seconds > 0 and await turn_over(turn.pk, seconds)


def audit_of(pk: int) -> JsonObject:
    return audit(Turn.objects.select_related("session", "version").get(pk=pk))


@router.get("/sessions/{int:session_id}/turns", response=Page[TurnOut])
def list_turns(request: HttpRequest, session_id: int, paging: Query[Paging]) -> JsonObject:
    """In their order."""
    session = load_session(caller(request), session_id)
    rows = session.line.turns.select_related("session", "version").order_by("number")
    found = rows.defer("version__spec", "checkpoint")[paging.offset : paging.offset + paging.limit]
    replies = replies_of(list(found))
    return {
        "items": [_summary(turn, replies[turn.pk]) for turn in found],
        "count": rows.count(),
    }


def _summary(turn: Turn, reply: str) -> JsonObject:
    plain = {name: getattr(turn, name) for name in TurnOut.model_fields if hasattr(turn, name)}
    return plain | {
        "reply": reply,
        "version": version_name(turn),
        "fingerprint": turn.version.fingerprint if turn.version is not None else "",
    }


@router.get(
    "/sessions/{int:session_id}/turns/{int:number}",
    response=AuditOut,
    exclude_unset=True,
    by_alias=True,
)
def read_turn(
    request: HttpRequest, session_id: int, number: int, prompts: bool = False
) -> JsonObject:
    """The audit. `prompts` adds to every model call what was asked and answered, word for word."""
    return audit(load_turn(caller(request), session_id, number), prompts=prompts)


@router.post(
    "/sessions/{int:session_id}/turns/{int:number}/stop",
    response={200: AuditOut, 202: AuditOut},
    exclude_unset=True,
    by_alias=True,
)
def stop(request: HttpRequest, session_id: int, number: int) -> Status[JsonObject]:
    """Ask the turn to end at its next safe point: 202, or 200 where it is over."""
    person = caller(request)
    turn = load_turn(person, session_id, number, May.CONVERSE)
    stop_turn(turn)
    turn.refresh_from_db()
    return Status(200 if turn.is_over else 202, audit(turn))


@router.post(
    "/sessions/{int:session_id}/turns/{int:number}/retry",
    response={202: AuditOut},
    exclude_unset=True,
    by_alias=True,
)
def retry(request: HttpRequest, session_id: int, number: int) -> Status[JsonObject]:
    """Run the last turn again from where it got to, if it failed or was stopped."""
    person = caller(request)
    turn = load_turn(person, session_id, number, May.CONVERSE)
    try:
        return Status(202, audit(retry_turn(turn)))
    except (TurnNotOverError, TurnNotRetriableError) as error:
        raise conflict(error) from error
