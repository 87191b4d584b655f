"""Edited recordings of a session: other tool results for its replays to find."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_session, load_variant
from studio.api.auth import caller
from studio.api.problems import invalid
from studio.api.reading import Body, Changes, Page
from studio.models import Session, Variant
from studio.operations.variants import (
    Edit,
    EditRefusedError,
    recorded_call,
    save_variant,
)

router = Router(tags=["replays"])


class EditOut(BaseModel):
    turn: int
    call: str
    tool: str
    kind: str = Field(description="result, empty, or the kind of a failure such as timeout")
    data: Any


class VariantOut(BaseModel):
    id: int
    session: int
    title: str
    edits: list[EditOut]
    created_by: str
    created_at: datetime
    updated_at: datetime


class NewEdit(Body):
    call: str = Field(description="The uid of a call that came to an end, as the audit has it")
    kind: str = Field(
        description="result, empty, timeout, exception, bad_output, too_large, unavailable, not_allowed or "
        "unknown_outcome"
    )
    data: Any = Field(None, description="The result, where `kind` is result")


class NewVariant(Body):
    title: str = ""
    edits: list[NewEdit] = Field(min_length=1, max_length=200)


class VariantChanges(Changes):
    title: str = ""
    edits: list[NewEdit] = Field([], max_length=200, description="All of them: others are removed")


@router.get("/sessions/{int:session_id}/variants", response=Page[VariantOut])
def list_variants(request: HttpRequest, session_id: int) -> JsonObject:
    found = load_session(caller(request), session_id).variants.all()
    return {"items": [_shown(row) for row in found], "count": len(found)}


@router.post("/sessions/{int:session_id}/variants", response={201: VariantOut})
def create_variant(request: HttpRequest, session_id: int, body: NewVariant) -> Status[JsonObject]:
    person = caller(request)
    session = load_session(person, session_id, May.TEST)
    row = Variant(session=session, created_by=person.get_username()[:150])
    return Status(201, _shown(_saved(row, session, {"title": body.title, "edits": body.edits})))


@router.get("/sessions/{int:session_id}/variants/{int:variant_id}", response=VariantOut)
def read_variant(request: HttpRequest, session_id: int, variant_id: int) -> JsonObject:
    return _shown(load_variant(caller(request), session_id, variant_id))


@router.patch("/sessions/{int:session_id}/variants/{int:variant_id}", response=VariantOut)
def change_variant(
    request: HttpRequest, session_id: int, variant_id: int, body: VariantChanges
) -> JsonObject:
    person = caller(request)
    row = load_variant(person, session_id, variant_id, May.TEST)
    given = {name: getattr(body, name) for name in body.given()}
    return _shown(_saved(row, load_session(person, session_id), given))


@router.delete("/sessions/{int:session_id}/variants/{int:variant_id}", response={204: None})
def delete_variant(request: HttpRequest, session_id: int, variant_id: int) -> Status[None]:
    """Replays that were made with it stay."""
    load_variant(caller(request), session_id, variant_id, May.TEST).delete()
    return Status(204, None)


def _saved(row: Variant, session: Session, given: JsonObject) -> Variant:
    edits = None
    if "edits" in given:
        edits = [_edit(session, place, each) for place, each in enumerate(given["edits"])]
    try:
        return save_variant(row, title=given.get("title"), edits=edits)
    except EditRefusedError as error:
        raise invalid((error.field, error)) from error


def _edit(session: Session, place: int, given: NewEdit) -> Edit:
    call = recorded_call(session, given.call)
    if call is None:
        message = _("The session has no call %(uid)r that came to an end.") % {"uid": given.call}
        raise invalid((f"edits.{place}.call", message))
    return Edit(call=call, kind=given.kind, data=given.data)


def _shown(row: Variant) -> JsonObject:
    plain = {name: getattr(row, name) for name in VariantOut.model_fields if name != "session"}
    return plain | {"session": row.session_id}
