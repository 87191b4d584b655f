"""`/sessions/{id}/events` and `/stream`: what was said and done, at once and as it comes."""

import asyncio
import json
import time
from typing import Any, Self

import pytest
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application

from studio import live
from studio.api import events as api_events
from studio.models import Event, Session, Turn
from studio.operations.turns import send_message
from tests.studio.api.calling import Caller, InThread, is_problem

pytestmark = pytest.mark.django_db(transaction=True)


def add(session: Session, kind: str, data: dict[str, Any], turn: Turn | None = None) -> None:
    session.refresh_from_db()
    offset = session.next_offset
    Event.objects.create(
        session=session, turn=turn, offset=offset, kind=kind, source="agent", data=data
    )
    session.next_offset += 1
    session.save(update_fields=["next_offset"])


def test_events_are_listed_after_an_offset_without_pieces_of_messages(
    admin: Caller, session: Session
) -> None:
    turn = send_message(session, text="hello")
    add(session, "message.part", {"text": "Hi"}, turn)
    add(session, "message", {"text": "Hi there"}, turn)
    path = f"/sessions/{session.pk}/events"
    listed = admin.get(path).json()
    assert listed["count"] == 2
    first, second = listed["items"]
    assert (first["offset"], first["kind"], first["source"], first["turn"]) == (
        1,
        "message",
        "customer",
        1,
    )
    assert first["data"]["text"] == "hello"
    assert first["created_at"]
    assert second["offset"] == 3
    assert admin.get(f"{path}?after=1").json()["items"] == [second]
    assert admin.get(f"{path}?after=3").json() == {"items": [], "count": 0}
    assert admin.get(f"{path}?limit=1").json() == {"items": [first], "count": 2}


def test_who_waits_gets_the_event_as_soon_as_it_comes(admin: Caller, session: Session) -> None:
    waited = InThread(lambda: admin.get(f"/sessions/{session.pk}/events?wait=20").json())
    time.sleep(0.2)
    add(session, "message.part", {"text": "Hi"})
    time.sleep(0.1)
    assert waited.is_alive()  # a piece is not what it waits for
    add(session, "message", {"text": "Hi there"})
    waited.join(5)
    assert [item["data"]["text"] for item in waited.answer["items"]] == ["Hi there"]


def test_who_waits_in_vain_gets_an_empty_list_in_time(admin: Caller, session: Session) -> None:
    started = time.monotonic()
    found = admin.get(f"/sessions/{session.pk}/events?wait=0.2").json()
    assert found == {"items": [], "count": 0}
    assert 0.2 <= time.monotonic() - started < 2


@pytest.mark.parametrize(
    "query", ["wait=61", "wait=-1", "wait=nan", "after=-1", "after=x", "limit=500"]
)
def test_bad_input_is_named(admin: Caller, session: Session, query: str) -> None:
    problem = is_problem(admin.get(f"/sessions/{session.pk}/events?{query}"), 422)
    assert problem["errors"][0]["field"] == query.partition("=")[0]


def test_strangers_read_nothing(
    admin: Caller, caller_as: Any, nobody: Caller, session: Session
) -> None:
    for path in ("events", "stream"):
        is_problem(nobody.get(f"/sessions/{session.pk}/{path}"), 401)
        is_problem(caller_as().get(f"/sessions/{session.pk}/{path}"), 404)
        is_problem(admin.get(f"/sessions/999/{path}"), 404)
        is_problem(admin.post(f"/sessions/{session.pk}/{path}"), 405)


def test_a_longer_list_takes_no_more_queries(
    admin: Caller, session: Session, django_assert_num_queries: Any
) -> None:
    path = f"/sessions/{session.pk}/events"
    admin.get(path)
    for _ in range(2):
        for _ in range(5):
            send_message(session, text="hello")
        with django_assert_num_queries(5):  # token, roles, session, rows, count
            admin.get(path)


class Stream:
    """A client of the stream at the level of ASGI: it connects, reads, and goes away."""

    def __init__(self, path: str, caller: Caller, **headers: str) -> None:
        path, _, query = f"/api/v1{path}".partition("?")
        pairs = {**caller.headers, **headers, "host": "localhost"}.items()
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in pairs],
        }
        self._gone = asyncio.Event()
        self._asked = False
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._text = ""

    async def __aenter__(self) -> Self:
        application = get_asgi_application()
        self._running = asyncio.create_task(
            application(self._scope, self._receive, self._sent.put)  # type: ignore[arg-type]
        )
        self.start = await asyncio.wait_for(self._sent.get(), 5)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._gone.set()
        await asyncio.wait_for(self._running, 5)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode() for name, value in self.start["headers"]}

    async def block(self) -> str:
        """The next block of lines."""
        while "\n\n" not in self._text:
            sent = await asyncio.wait_for(self._sent.get(), 5)
            self._text += sent.get("body", b"").decode()
        block, _, self._text = self._text.partition("\n\n")
        return block

    async def event(self) -> dict[str, str]:
        """The next event as its fields."""
        while "data:" not in (block := await self.block()):
            pass
        return dict(line.split(": ", 1) for line in block.splitlines())


async def test_the_stream_tells_what_was_and_what_comes_with_the_pieces(
    admin: Caller, session: Session
) -> None:
    turn = await sync_to_async(send_message)(session, text="grüß dich\nzweite Zeile")
    async with Stream(f"/sessions/{session.pk}/stream", admin) as stream:
        assert stream.start["status"] == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-cache"
        first = await stream.event()
        assert (first["id"], first["event"]) == ("1", "message")
        said = json.loads(first["data"])
        assert said["data"]["text"] == "grüß dich\nzweite Zeile"
        assert (said["offset"], said["turn"], said["source"]) == (1, 1, "customer")
        await sync_to_async(add)(session, "message.part", {"text": "Hi"}, turn)
        second = await stream.event()
        assert (second["id"], second["event"]) == ("2", "message.part")


async def test_the_stream_goes_on_after_the_last_event_the_client_has(
    admin: Caller, session: Session
) -> None:
    for text in ("one", "two", "three"):
        await sync_to_async(send_message)(session, text=text)
    path = f"/sessions/{session.pk}/stream"
    async with Stream(f"{path}?after=1", admin) as stream:
        assert (await stream.event())["id"] == "2"
    async with Stream(f"{path}?after=1", admin, **{"last-event-id": "2"}) as stream:
        assert (await stream.event())["id"] == "3"


async def test_a_last_event_id_that_is_no_number_is_a_problem(
    admin: Caller, session: Session
) -> None:
    path = f"/sessions/{session.pk}/stream"
    async with Stream(path, admin, **{"last-event-id": "abc"}) as stream:
        assert stream.start["status"] == 422


async def test_a_silent_stream_shows_that_it_is_alive(
    admin: Caller, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_events, "HEARTBEAT", 0.05)
    async with Stream(f"/sessions/{session.pk}/stream", admin) as stream:
        assert await stream.block() == "retry: 1000"
        assert await stream.block() == ": still here"
        assert await stream.block() == ": still here"


async def test_a_client_that_goes_away_leaves_nothing_behind(
    admin: Caller, session: Session
) -> None:
    async with Stream(f"/sessions/{session.pk}/stream", admin) as stream:
        await stream.block()
        await asyncio.sleep(0.05)
        assert live._watch.looking
    await asyncio.sleep(0.2)
    assert not live._watch.looking


async def test_the_stream_ends_with_its_session(admin: Caller, session: Session) -> None:
    stream = Stream(f"/sessions/{session.pk}/stream", admin)
    async with stream:
        await stream.block()
        await session.adelete()
        await asyncio.wait_for(stream._running, 5)
