"""Calls that await the customer's word, and the answer by a front end's buttons."""

from typing import Literal

from django.http import Http404, HttpRequest
from ninja import Query, Router, Status

from engine.canonical import JsonObject
from engine.events import Answer
from studio.access import May, load_session
from studio.api.audits import AuditOut, ConfirmationOut
from studio.api.auth import caller
from studio.api.problems import conflict
from studio.api.reading import Body, Page, Paging, Wait
from studio.api.turns import audit_of, over_within
from studio.audit import shown_confirmation, tool_descriptions
from studio.live import in_database
from studio.models import Turn
from studio.operations.confirmations import (
    ConfirmationRefusedError,
    ConfirmationUnknownError,
    answer_confirmation,
    pending_confirmations,
)

router = Router(tags=["confirmations"])


class Word(Body):
    answer: Literal["confirmed", "declined"]


@router.get("/sessions/{int:session_id}/confirmations", response=Page[ConfirmationOut])
def list_confirmations(request: HttpRequest, session_id: int, paging: Query[Paging]) -> JsonObject:
    """What awaits the customer's word now, the oldest first."""
    session = load_session(caller(request), session_id)
    pending = pending_confirmations(session)
    told = tool_descriptions(session, [found.turn for found in pending])
    items = [
        {**shown_confirmation(found), "tool_description": told.get((found.turn, found.tool), "")}
        for found in pending
    ]
    return {
        "items": items[paging.offset : paging.offset + paging.limit],
        "count": len(items),
    }


@router.post(
    "/sessions/{int:session_id}/confirmations/{call}",
    response={200: AuditOut, 202: AuditOut},
    exclude_unset=True,
    by_alias=True,
)
async def confirm_or_decline(
    request: HttpRequest, session_id: int, call: str, body: Word, wait: Wait = 0
) -> Status[JsonObject]:
    """The customer's word. 202 with the turn that acts on it, or 200 where it ends within `wait` seconds (0 to 60).

    The same answer again gives the same turn; 409 where the call was answered otherwise, expired, or the session is in
    manual mode.
    """

    def say() -> Turn:
        session = load_session(caller(request), session_id, May.CONVERSE)
        try:
            return answer_confirmation(session, call, Answer(body.answer))
        except ConfirmationUnknownError as error:
            raise Http404(str(error)) from error
        except ConfirmationRefusedError as error:
            raise conflict(error) from error

    turn = await in_database(say)
    over = await over_within(turn, wait)
    return Status(200 if over else 202, await in_database(audit_of, turn.pk))
