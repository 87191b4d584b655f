"""What was said and done in a session: as a list, by waiting for more, and as a stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Router
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import load_session
from studio.api.auth import caller
from studio.api.reading import Page, Wait
from studio.api.writing import Encoder
from studio.live import follow, in_database
from studio.models import Event, Session

router = Router(tags=["events"])

HEARTBEAT = 15.0  # seconds
PIECE = "message.part"

Cursor = Annotated[int, Field(ge=0, le=2**31 - 1)]


class EventOut(BaseModel):
    offset: int
    kind: str = Field(
        description=(
            "message, tool.started, tool.finished, confirmation.asked, confirmation.answered, mode, "
            "status or briefing"
        )
    )
    source: str
    turn: int | None
    data: dict[str, Any]
    created_at: datetime


@router.get("/sessions/{int:session_id}/events", response=Page[EventOut])
async def list_events(
    request: HttpRequest,
    session_id: int,
    after: Cursor = 0,
    wait: Wait = 0,
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
) -> JsonObject:
    """The events after an offset, oldest first; `count` says how many there are after it.

    Where there is none yet, one is waited for, at most `wait` seconds (0 to 60).
    """

    def page() -> JsonObject:
        session = load_session(caller(request), session_id)
        return _page(session, after, limit)

    found = await in_database(page)
    if found["items"] or not wait:
        return found
    await _lasting_event(session_id, after, wait)
    return await in_database(page)


def _page(session: Session, after: int, limit: int) -> JsonObject:
    rows = session.line.events.lasting().filter(offset__gt=after)
    found = rows.order_by("offset").select_related("turn").defer("turn__checkpoint")[:limit]
    return {"items": [_event(row) for row in found], "count": rows.count()}


def _event(row: Event) -> JsonObject:
    return {
        "offset": row.offset,
        "kind": row.kind,
        "source": row.source,
        "turn": row.turn.number if row.turn is not None else None,
        "data": row.data,
        "created_at": row.created_at,
    }


async def _lasting_event(session_id: int, after: int, seconds: float) -> None:
    """Wait until more than pieces of a message came, or so many seconds have passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), aclosing(follow(session_id, after)) as pages:
            async for page in pages:
                if any(event.kind != PIECE for event in page):
                    return


@router.get(
    "/sessions/{int:session_id}/stream",
    openapi_extra={
        "responses": {
            200: {
                "description": "Server-sent events: `id` is the offset, `event` the kind, `data` the event as JSON.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        }
    },
)
async def stream(
    request: HttpRequest,
    session_id: int,
    after: Cursor = 0,
    last_event_id: Annotated[Cursor | None, Header(alias="Last-Event-ID")] = None,
) -> StreamingHttpResponse:
    """The events as they come, the pieces of a message that is being written (`message.part`) among them.

    Starts after `Last-Event-ID`, which clients send when they connect again, or else after `after`.
    """
    await in_database(load_session, caller(request), session_id)
    cursor = after if last_event_id is None else last_event_id
    response = StreamingHttpResponse(
        _lines(session_id, cursor), content_type="text/event-stream; charset=utf-8"
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"  # proxies pass it on as it comes
    return response


async def _lines(session_id: int, after: int) -> AsyncIterator[str]:
    # The first bytes tell the client, and every proxy between, that the stream is open.
    yield "retry: 1000\n\n"
    async with aclosing(follow(session_id, after, heartbeat=HEARTBEAT)) as pages:
        async for page in pages:
            yield "".join(_message(event) for event in page) or ": still here\n\n"


def _message(row: Event) -> str:
    data = json.dumps(_event(row), cls=Encoder, ensure_ascii=False)
    return f"id: {row.offset}\nevent: {row.kind}\ndata: {data}\n\n"
