"""Bodies of requests, bounded: Django keeps a body on the disk before it knows whose it is."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.utils.translation import gettext as _

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

MEGABYTE = 1_000_000
LARGEST = 64 * MEGABYTE
"""Bytes. Well above what any page or operation takes, so that those can say in their own words what is too large."""


def with_bounded_bodies(application: Any) -> Application:
    """What is larger is read to its end, so that whoever sends it gets the answer, and not kept."""

    async def bounded(scope: Any, receive: Receive, send: Send) -> None:
        size = 0

        async def receive_bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size <= LARGEST:
                return message
            while message.get("more_body"):
                message = await receive()
            return {"type": "http.disconnect"}

        await application(scope, receive_bounded, send)
        if size > LARGEST:
            await _refuse(scope["path"], send)

    return bounded


async def _refuse(path: str, send: Send) -> None:
    said = _("The request has more than %(most)d MB, which is too large for anything here.")
    detail = said % {"most": LARGEST // MEGABYTE}
    kind, text = b"text/plain; charset=utf-8", detail
    if path.startswith("/api/"):
        problem = {"type": "about:blank", "title": "Content Too Large", "status": 413}
        kind, text = b"application/problem+json", json.dumps({**problem, "detail": detail})
    headers = [(b"content-type", kind), (b"content-length", str(len(text.encode())).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
