"""The live page: everything after the cursor, once, however often a browser comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import reverse

from studio import live
from studio.models import Event, Session, Turn
from tests.studio.conversations import Recorded, make_person
from tests.studio.factories import ask_to_confirm

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _nobody_looks_after_the_test() -> AsyncIterator[None]:
    yield
    while live._watch.looking:  # noqa: ASYNC110 - the thread announces its end to nobody
        await asyncio.sleep(0.02)


@pytest.fixture
async def told() -> Recorded:
    return await sync_to_async(Recorded)()


@pytest.fixture
async def viewer() -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(make_person)("qa"))
    return client


async def open_stream(client: AsyncClient, session: Session, after: int = 0, **headers: str) -> Any:
    address = reverse("session-stream", args=[session.pk])
    return await client.get(address, {"after": after}, headers=headers)


@asynccontextmanager
async def chunks_of(response: Any) -> AsyncIterator[AsyncIterator[bytes]]:
    """What the server sends, until the browser leaves."""
    try:
        async with asyncio.timeout(5):
            yield aiter(response)
    finally:
        await response._iterator.aclose()  # as the server does for a browser that left


async def read(response: Any, *, through: int) -> list[tuple[str, Any]]:
    """(kind, data) of the events until all up to the offset `through` were sent."""
    events: list[tuple[str, Any]] = []
    async with chunks_of(response) as chunks:
        async for chunk in chunks:
            for block in chunk.decode().split("\n\n"):
                fields = dict(line.partition(": ")[::2] for line in block.splitlines())
                if fields.get("event") in {"changed", "pieces"}:
                    events.append((fields["event"], json.loads(fields["data"])))
                if int(fields.get("id") or 0) >= through:
                    return events
    return events


@sync_to_async
def a_turn_is_written(told: Recorded) -> tuple[Turn, list[Event]]:
    turn = told.turn("What is left?", state="RUNNING")
    told.event(turn, "status", "system", phase="writing")
    words = ("You ", "have ", "412.")
    return turn, [told.event(turn, "message.part", text=w, restart=False) for w in words]


@sync_to_async
def it_ends(told: Recorded, turn: Turn) -> Event:
    Event.objects.filter(turn=turn, kind="message.part").delete()
    told.answer(turn, "You have **412**.")
    Turn.objects.filter(pk=turn.pk).update(state="FINISHED", finished_at=told.now)
    return told.event(turn, "status", "system", phase="finished")


async def test_a_stream_brings_turns_status_and_spend_as_elements(
    viewer: AsyncClient, told: Recorded
) -> None:
    turn, pieces = await a_turn_is_written(told)
    response = await open_stream(viewer, told.session)
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-store"
    events = await read(response, through=pieces[-1].offset)
    assert [kind for kind, _ in events] == ["changed"]
    data = events[0][1]
    assert data["turns"] == [turn.number]
    assert data["html"].count('id="turn-1"') == 1
    assert "What is left?" in data["html"]
    assert "You have 412." in data["html"]
    assert f'data-through="{pieces[-1].offset}"' in data["html"]
    assert "Writing…" in data["html"]
    # Summing up a long conversation takes its time: it comes with the end of the turn.
    assert 'id="spend"' not in data["html"]
    end = await it_ends(told, turn)
    response = await open_stream(viewer, told.session, after=pieces[-1].offset)
    events = await read(response, through=end.offset)
    assert 'id="spend"' in events[0][1]["html"]


async def test_pieces_of_a_message_come_each_with_its_offset(
    viewer: AsyncClient, told: Recorded
) -> None:
    turn, pieces = await a_turn_is_written(told)
    response = await open_stream(viewer, told.session, after=pieces[0].offset)
    events = await read(response, through=pieces[-1].offset)
    said = [[pieces[1].offset, "have ", False], [pieces[2].offset, "412.", False]]
    assert events == [("pieces", {"turn": turn.number, "pieces": said})]


async def test_pieces_arrive_while_the_stream_is_open(viewer: AsyncClient, told: Recorded) -> None:
    turn, pieces = await a_turn_is_written(told)
    response = await open_stream(viewer, told.session, after=pieces[-1].offset)
    reading = asyncio.ensure_future(read(response, through=pieces[-1].offset + 1))
    await asyncio.sleep(0.1)
    assert not reading.done()
    await sync_to_async(told.event)(turn, "message.part", text=" Really.", restart=True)
    events = await reading
    assert events[0][1]["pieces"] == [[pieces[-1].offset + 1, " Really.", True]]


async def test_a_browser_that_comes_back_goes_on_where_it_was(
    viewer: AsyncClient, told: Recorded
) -> None:
    turn, pieces = await a_turn_is_written(told)
    last = await it_ends(told, turn)
    header = {"Last-Event-ID": str(pieces[1].offset)}
    events = await read(await open_stream(viewer, told.session, **header), through=last.offset)
    assert [kind for kind, _ in events] == ["changed"]
    html = events[0][1]["html"]
    assert "You have <strong>412</strong>." in html
    assert "writing-1" not in html  # the whole message replaces its pieces
    assert "Ready." in html


async def test_nothing_that_was_sent_comes_again(viewer: AsyncClient, told: Recorded) -> None:
    turn, _ = await a_turn_is_written(told)
    last = await it_ends(told, turn)
    response = await open_stream(viewer, told.session, **{"Last-Event-ID": str(last.offset)})
    async with chunks_of(response) as chunks:
        assert (await anext(chunks)).startswith(b"retry:")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await anext(chunks)


async def test_two_viewers_see_the_same(viewer: AsyncClient, told: Recorded) -> None:
    turn, pieces = await a_turn_is_written(told)
    first, second = [
        read(await open_stream(viewer, told.session), through=pieces[-1].offset) for _ in range(2)
    ]
    assert await first == await second
    assert turn.number == 1


async def test_the_turn_before_comes_along_because_it_is_no_longer_the_last(
    viewer: AsyncClient, told: Recorded
) -> None:
    failed = await sync_to_async(told.turn)(state="FAILED", reference="a3f9c2")
    after = told.session.next_offset - 1
    await sync_to_async(told.turn)("And now?", state="QUEUED")
    events = await read(await open_stream(viewer, told.session, after), through=after + 1)
    html = events[0][1]["html"]
    assert events[0][1]["turns"] == [2]
    assert "a3f9c2" in html
    assert reverse("turn-retry", args=[told.session.pk, failed.number]) not in html


async def test_a_message_outside_of_turns_comes_too(viewer: AsyncClient, told: Recorded) -> None:
    event = await sync_to_async(told.event)(None, "message", "operator", text="I take over.")
    events = await read(await open_stream(viewer, told.session), through=event.offset)
    assert events[0][1]["turns"] == []
    assert "I take over." in events[0][1]["html"]


async def test_what_customers_write_cannot_break_the_stream(
    viewer: AsyncClient, told: Recorded
) -> None:
    text = "one\n\nevent: changed\ndata: {}\r\n<script>alert(1)</script>\u2028"
    turn = await sync_to_async(told.turn)(text, state="RUNNING")
    piece = await sync_to_async(told.event)(turn, "message.part", text=text, restart=False)
    events = await read(await open_stream(viewer, told.session), through=piece.offset)
    assert [kind for kind, _ in events] == ["changed"]
    assert "<script" not in events[0][1]["html"]
    events = await read(
        await open_stream(viewer, told.session, piece.offset - 1), through=piece.offset
    )
    assert events == [("pieces", {"turn": 1, "pieces": [[piece.offset, text, False]]})]


async def test_a_bad_cursor_begins_at_the_beginning(viewer: AsyncClient, told: Recorded) -> None:
    turn = await sync_to_async(told.turn)("Hello", state="RUNNING")
    response = await open_stream(viewer, told.session, **{"Last-Event-ID": "x"})
    events = await read(response, through=1)
    assert events[0][1]["turns"] == [turn.number]


async def test_a_session_that_is_not_there_has_no_stream(
    viewer: AsyncClient, told: Recorded
) -> None:
    address = reverse("session-stream", args=[told.session.pk + 1])
    assert (await viewer.get(address)).status_code == 404
    assert (await viewer.post(address)).status_code == 405


async def test_a_stranger_gets_no_stream(told: Recorded) -> None:
    client = AsyncClient()
    address = reverse("session-stream", args=[told.session.pk])
    assert (await client.get(address))["Location"].startswith("/sign-in/")
    stranger: User = await sync_to_async(make_person)()
    await client.aforce_login(stranger)
    assert (await client.get(address)).status_code == 404


async def test_an_answer_brings_the_turn_that_asked_as_well(
    told: Recorded, viewer: AsyncClient
) -> None:
    def converse() -> tuple[int, int]:
        asking = told.turn("Send 50")
        ask_to_confirm(asking, "c1")
        told.answer(asking, "Shall I?")
        for text in ("And what is the weather?", "Thanks"):
            told.answer(told.turn(text), "Hm.")
        before = told.session.next_offset - 1
        answering = told.turn("Yes")
        data = {"call": "c1", "tool": "transfer_money", "answer": "confirmed", "because": "Yes."}
        last = told.event(answering, "confirmation.answered", "customer", **data)
        return before, last.offset

    before, last = await sync_to_async(converse)()
    events = await read(await open_stream(viewer, told.session, before), through=last)
    (changed,) = [data for kind, data in events if kind == "changed"]
    asked = changed["html"].split('id="turn-1"')[1].split("</section>")[0]
    assert "was confirmed" in asked
    assert 'value="confirmed"' not in asked
    assert 'id="turn-2"' not in changed["html"]
