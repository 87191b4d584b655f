"""Bodies of requests that are too large for anything are read to their end, not kept, and refused in words."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.asgi import get_asgi_application

from studio import bodies
from studio.bodies import with_bounded_bodies

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGEST", 1_000)


def chunks(*sizes: int) -> Iterator[dict[str, Any]]:
    for number, size in enumerate(sizes, start=1):
        yield {
            "type": "http.request",
            "body": b"x" * size,
            "more_body": number < len(sizes),
        }


def ask(path: str, messages: Iterable[dict[str, Any]]) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of the answer."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    waiting = iter(messages)
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        for message in waiting:
            return message
        return await asyncio.Event().wait()  # the client stays and says no more

    async def send(message: Any) -> None:
        sent.append(message)

    application: Any = with_bounded_bodies(get_asgi_application())
    async_to_sync(application)(scope, receive, send)
    start, *rest = sent
    body = b"".join(message.get("body", b"") for message in rest)
    return start["status"], dict(start["headers"]), body


def test_a_body_that_is_small_enough_reaches_what_it_is_for() -> None:
    status, _headers, _body = ask("/api/v1/tool-templates", chunks(500, 500))
    assert status == 401


def test_one_that_is_too_large_is_a_problem_of_the_api() -> None:
    messages = chunks(600, 600, 600)
    status, headers, body = ask("/api/v1/tool-templates", messages)
    assert (status, headers[b"content-type"]) == (413, b"application/problem+json")
    problem = json.loads(body)
    assert problem["status"] == 413
    assert "too large" in problem["detail"]
    assert next(messages, None) is None  # it was read to its end


def test_one_that_is_too_large_for_a_page_is_refused_in_words() -> None:
    status, headers, body = ask("/tools/upload/", chunks(1_001))
    assert (status, headers[b"content-type"]) == (413, b"text/plain; charset=utf-8")
    assert b"too large" in body
