"""The live page: what happens in a session, as server-sent events.

Two kinds: `changed` carries elements as HTML, each of which takes the place of the element of its id, so that
nothing is doubled however often it is sent; `pieces` carries the next words of a message being written, each with its
offset, so that a page leaves out those it shows already. `id:` is the offset up to which everything has been sent.
"""

import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_GET

from studio.access import May, allowed, load_session
from studio.live import follow, in_database
from studio.models import Event
from studio.views.conversation import LOOSE, loose_line
from studio.views.sandbox import fragments

HEARTBEAT = 15.0  # seconds
# A stream ends now and then, and the browser opens it again: so it never outlives a right that was taken away for long.
LONGEST = 600.0


@login_required
@require_GET
async def session_stream(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Everything after `Last-Event-ID`, or after `?after=` on the first connection."""
    person = await request.auser()
    session = await in_database(load_session, person, pk)
    may_converse = await in_database(allowed, person, May.CONVERSE)
    response = StreamingHttpResponse(
        _frames(session.pk, _cursor(request), may_converse), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


def _cursor(request: HttpRequest) -> int:
    for text in (request.headers.get("Last-Event-ID", ""), request.GET.get("after", "")):
        if text.isdecimal() and len(text) < 10:
            return int(text)
    return 0


async def _frames(session_pk: int, after: int, may_converse: bool) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    until = time.monotonic() + LONGEST
    async with aclosing(follow(session_pk, after, heartbeat=HEARTBEAT)) as batches:
        async for rows in batches:
            yield await _frame(session_pk, rows, may_converse) if rows else b": still here\n\n"
            if time.monotonic() > until:
                return


def _changed(
    session_pk: int, numbers: list[int], loose: Sequence[Event], *, may_converse: bool
) -> str:
    lines = [loose_line(row) for row in loose]
    return fragments(session_pk, numbers, lines, may_converse=may_converse)


async def _frame(session_pk: int, rows: Sequence[Event], may_converse: bool) -> bytes:
    """What a batch of events means for a page. Only its last event carries the id: a torn batch is sent again."""
    changed = {row.turn.number for row in rows if row.turn and row.kind != "message.part"}
    loose = [row for row in rows if row.turn is None and row.kind in LOOSE]
    events: list[tuple[str, Any]] = []
    if changed or loose:
        html = await in_database(
            _changed, session_pk, sorted(changed), loose, may_converse=may_converse
        )
        events.append(("changed", {"turns": sorted(changed), "html": html}))
    events += [
        ("pieces", {"turn": number, "pieces": said})
        for number, said in _pieces(rows).items()
        if number not in changed  # a turn that is sent whole holds its pieces already
    ]
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    # Browsers take over an id only with an event, even if nobody listens for it.
    return f"{body}event: through\nid: {rows[-1].offset}\ndata: \n\n".encode()


def _pieces(rows: Sequence[Event]) -> dict[int, list[tuple[int, str, bool]]]:
    """Turn number → pieces of its message as (offset, text, does the message begin anew)."""
    pieces: dict[int, list[tuple[int, str, bool]]] = defaultdict(list)
    for row in rows:
        if row.turn is not None and row.kind == "message.part":
            text, restart = str(row.data.get("text", "")), bool(row.data.get("restart"))
            pieces[row.turn.number].append((row.offset, text, restart))
    return pieces
