"""Going on from an earlier turn in a branch of its own."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_session, load_turn
from studio.api.audits import AuditOut
from studio.api.auth import caller
from studio.api.problems import conflict, invalid
from studio.api.reading import Body, Page
from studio.api.sessions import SessionOut, shown_session
from studio.api.turns import audit_of
from studio.models import Session
from studio.operations.branches import (
    BranchRefusedError,
    branch_from,
    branches_of,
    regenerate,
    resend,
)
from studio.operations.turns import MessageRefusedError

router = Router(tags=["sessions"])


class NewBranch(Body):
    from_turn: int = Field(ge=0, lt=2**31, description="The last turn to keep; 0 for none")
    text: str | None = Field(
        None, description="Said at once in place of what the customer said in the turn after it"
    )


class Branched(BaseModel):
    """The branch and, where a turn was asked for, its audit."""

    session: SessionOut
    turn: AuditOut | None


@router.get("/sessions/{int:session_id}/branches", response=Page[SessionOut])
def list_branches(request: HttpRequest, session_id: int) -> JsonObject:
    """All branches of the session's tree, in the order in which they were begun."""
    found = branches_of(load_session(caller(request), session_id))
    return {"items": [shown_session(row) for row in found], "count": len(found)}


@router.post(
    "/sessions/{int:session_id}/branches",
    response={201: Branched, 202: Branched},
    exclude_unset=True,
    by_alias=True,
)
def create_branch(request: HttpRequest, session_id: int, body: NewBranch) -> Status[JsonObject]:
    """Go on after a turn: 201 with the branch; with `text`, 202 with the turn that answers it."""
    person = caller(request)
    session = load_session(person, session_id, May.CONVERSE)
    try:
        if body.text is None:
            branch = branch_from(session, body.from_turn, by=person)
            return Status(201, {"session": _read(branch.pk), "turn": None})
        made = resend(session, body.from_turn + 1, body.text, by=person)
    except MessageRefusedError as error:
        raise invalid(("text", error)) from error
    except BranchRefusedError as error:
        raise conflict(error) from error
    return _made(made.session, made.turn.pk if made.turn else None)


@router.post(
    "/sessions/{int:session_id}/turns/{int:number}/regenerate",
    response={202: Branched},
    exclude_unset=True,
    by_alias=True,
)
def regenerate_turn(request: HttpRequest, session_id: int, number: int) -> Status[JsonObject]:
    """Answer what was said in the turn once more, in a sibling branch."""
    person = caller(request)
    turn = load_turn(person, session_id, number, May.CONVERSE)
    session = load_session(person, session_id)
    try:
        made = regenerate(session, turn.number, by=person)
    except BranchRefusedError as error:
        raise conflict(error) from error
    return _made(made.session, made.turn.pk if made.turn else None)


def _made(branch: Session, turn: int | None) -> Status[JsonObject]:
    shown = {"session": _read(branch.pk), "turn": audit_of(turn) if turn is not None else None}
    return Status(202, shown)


def _read(pk: int) -> JsonObject:
    rows = Session.objects.select_related("agent", "version", "customer")
    return shown_session(rows.get(pk=pk))
