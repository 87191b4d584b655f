"""Trying another wording of one guideline on one turn."""

import asyncio
import time
from datetime import datetime

from django.http import Http404, HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_rematch, load_turn
from studio.api.auth import caller
from studio.api.problems import conflict, invalid, invalid_form
from studio.api.reading import Body, Page, Paging, Wait
from studio.forms.rematches import RematchForm
from studio.live import in_database
from studio.models import Rematch
from studio.operations.rematches import (
    GuidelineUnknownError,
    RematchRefusedError,
    start_rematch,
)

router = Router(tags=["turns"])

_LOOK_EVERY = 0.1  # seconds


class NewRematch(Body):
    guideline: str
    condition: str | None = Field(
        None, description="What to judge it by; left out, the recorded condition once more"
    )


class JudgementOut(BaseModel):
    state: str = Field(description="matched, not_matched or not_evaluated")
    because: str
    score: float | None = Field(description="The probability of a bare verdict, 0 to 1")
    explained_afterwards: bool = Field(description="`because` was asked for after a bare verdict")
    model: str
    prompt_tokens: int
    completion_tokens: int
    duration_ms: int


class RematchOut(BaseModel):
    """A judgement made afterwards: no part of the turn's record."""

    id: int
    turn: int
    guideline: str
    condition: str
    state: str = Field(description="queued, running, finished, failed or stopped")
    error: str
    result: JudgementOut | None = Field(description="Where it is finished")
    started_by: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Chosen(Paging):
    guideline: str | None = None


@router.get("/sessions/{int:session_id}/turns/{int:number}/rematches", response=Page[RematchOut])
def list_rematches(
    request: HttpRequest, session_id: int, number: int, chosen: Query[Chosen]
) -> JsonObject:
    """What was tried on the turn, the newest first; of one `guideline`, if it is named."""
    turn = load_turn(caller(request), session_id, number)
    Rematch.objects.give_up_lost()
    rows = turn.rematches.select_related("turn").defer("turn__checkpoint")
    if chosen.guideline is not None:
        rows = rows.filter(guideline=chosen.guideline)
    return chosen.page(rows, _shown)


@router.post(
    "/sessions/{int:session_id}/turns/{int:number}/rematches",
    response={200: RematchOut, 202: RematchOut},
)
async def create_rematch(
    request: HttpRequest, session_id: int, number: int, body: NewRematch, wait: Wait = 0
) -> Status[JsonObject]:
    """Judge one guideline of the turn again: 202, or 200 where it is over within `wait` seconds (0 to 60)."""

    def start() -> Rematch:
        person = caller(request)
        turn = load_turn(person, session_id, number, May.CONVERSE)
        condition = _checked(body.condition)
        try:
            return start_rematch(turn, body.guideline, condition, by=person.get_username())
        except GuidelineUnknownError as error:
            raise invalid(("guideline", error)) from error
        except RematchRefusedError as error:
            raise conflict(error) from error

    row = await in_database(start)
    until = time.monotonic() + wait
    while not row.is_over and time.monotonic() < until:
        await asyncio.sleep(_LOOK_EVERY)
        row = await in_database(_read, row.pk)
    return Status(200 if row.is_over else 202, await in_database(_shown, row))


@router.get(
    "/sessions/{int:session_id}/turns/{int:number}/rematches/{int:rematch_id}", response=RematchOut
)
def read_rematch(request: HttpRequest, session_id: int, number: int, rematch_id: int) -> JsonObject:
    Rematch.objects.give_up_lost()
    return _shown(load_rematch(caller(request), session_id, number, rematch_id))


@router.post(
    "/sessions/{int:session_id}/turns/{int:number}/rematches/{int:rematch_id}/stop",
    response={200: RematchOut, 202: RematchOut},
)
def stop_rematch(
    request: HttpRequest, session_id: int, number: int, rematch_id: int
) -> Status[JsonObject]:
    """End it: 202 while its worker is still to read this, 200 where it is over."""
    row = load_rematch(caller(request), session_id, number, rematch_id, May.CONVERSE)
    row.request_stop()
    row = _read(row.pk)
    return Status(200 if row.is_over else 202, _shown(row))


def _checked(condition: str | None) -> str | None:
    if condition is None:
        return None
    form = RematchForm({"condition": condition})
    if not form.is_valid():
        raise invalid_form(form)
    text: str = form.cleaned_data["condition"]
    return text


def _read(pk: int) -> Rematch:
    rows = Rematch.objects.select_related("turn").defer("turn__checkpoint")
    row: Rematch | None = rows.filter(pk=pk).first()
    if row is None:
        raise Http404
    return row


def _shown(row: Rematch) -> JsonObject:
    plain = {name: getattr(row, name) for name in RematchOut.model_fields if hasattr(row, name)}
    return plain | {"turn": row.turn.number}
