"""Following a session: nothing is lost, nobody polls in vain, and whoever waits costs nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.db.models import F

from studio import live
from studio.models import Agent, Event, Session, Turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _nobody_looks_after_the_test() -> AsyncIterator[None]:
    yield
    for _ in range(100):
        if not live._watch.looking:
            return
        await asyncio.sleep(0.02)
    pytest.fail("the thread that looks goes on although nobody waits")


def _session() -> Session:
    return Session.objects.create(agent=Agent.objects.create(slug="bank", name="Bank"))


def _say(session: Session, *texts: str) -> None:
    for text in texts:
        Session.objects.filter(pk=session.pk).update(next_offset=F("next_offset") + 1)
        session.refresh_from_db()
        Event.objects.create(
            session=session,
            offset=session.next_offset - 1,
            kind="message.part",
            source="agent",
            data={"text": text},
        )


make_session = sync_to_async(_session)
say = sync_to_async(_say)


async def read(session: Session, count: int, after: int = 0, within: float = 5) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(within), aclosing(live.follow(session.pk, after)) as pages:
        async for page in pages:
            found += page
            if len(found) >= count:
                break
    return found


async def test_a_reader_gets_what_was_there_and_then_what_comes() -> None:
    session = await make_session()
    await say(session, "one", "two")
    reading = asyncio.create_task(read(session, 4))
    await asyncio.sleep(0.1)
    await say(session, "three", "four")
    assert [event.data["text"] for event in await reading] == ["one", "two", "three", "four"]


async def test_a_reader_goes_on_after_its_cursor() -> None:
    session = await make_session()
    await say(session, "one", "two", "three")
    assert [event.offset for event in await read(session, 2, after=1)] == [2, 3]


async def test_two_readers_at_different_places_both_miss_nothing() -> None:
    session = await make_session()
    await say(session, "one")
    early, late = (
        asyncio.create_task(read(session, 3)),
        asyncio.create_task(read(session, 2, after=1)),
    )
    await asyncio.sleep(0.05)
    await say(session, "two", "three")
    assert [event.offset for event in await early] == [1, 2, 3]
    assert [event.offset for event in await late] == [2, 3]


async def test_an_event_arrives_within_sixty_milliseconds() -> None:
    session = await make_session()
    delays = []

    async def note() -> None:
        async with aclosing(live.follow(session.pk, 0)) as pages:
            async for page in pages:
                delays.extend(time.monotonic() - event.data["at"] for event in page)
                if len(delays) == 10:
                    return

    def utter() -> None:
        Session.objects.filter(pk=session.pk).update(next_offset=F("next_offset") + 1)
        session.refresh_from_db()
        Event.objects.create(
            session=session,
            offset=session.next_offset - 1,
            kind="message.part",
            source="agent",
            data={"at": time.monotonic()},
        )

    reading = asyncio.create_task(note())
    for _ in range(10):
        await asyncio.sleep(0.05)
        await sync_to_async(utter)()
    await asyncio.wait_for(reading, 5)
    assert sorted(delays)[len(delays) // 2] < 0.06


async def test_a_long_history_comes_in_pages_and_a_slow_reader_gets_all_of_it() -> None:
    session = await make_session()
    count = live.PAGE * 6 + 7

    def fill() -> None:
        Event.objects.bulk_create(
            Event(session=session, offset=offset, kind="status", source="system")
            for offset in range(1, count + 1)
        )
        Session.objects.filter(pk=session.pk).update(next_offset=count + 1)

    await sync_to_async(fill)()
    seen: list[int] = []
    async with aclosing(live.follow(session.pk, 0)) as pages:
        async for page in pages:
            assert len(page) <= live.PAGE
            seen += [event.offset for event in page]
            await asyncio.sleep(0.08)
            if len(seen) >= count:
                break
    assert seen == list(range(1, count + 1))


async def test_an_empty_page_is_the_heartbeat_of_a_silent_session() -> None:
    session = await make_session()
    async with asyncio.timeout(2), aclosing(live.follow(session.pk, 0, heartbeat=0.05)) as pages:
        assert await anext(pages) == []
        assert await anext(pages) == []


async def test_following_a_session_that_is_not_there_ends_at_once() -> None:
    async with asyncio.timeout(2):
        assert [page async for page in live.follow(4711, 0)] == []


async def test_following_ends_when_the_session_is_deleted() -> None:
    session = await make_session()
    await say(session, "one")

    async def all_of_it() -> int:
        return sum([len(page) async for page in live.follow(session.pk, 0)])

    reading = asyncio.create_task(all_of_it())
    await asyncio.sleep(0.1)
    await session.adelete()
    assert await asyncio.wait_for(reading, 2) == 1


async def test_nobody_looks_when_nobody_waits() -> None:
    session = await make_session()
    await say(session, "one")
    await read(session, 1)
    await asyncio.sleep(0.1)
    assert not live._watch.looking


async def test_a_reader_that_is_cancelled_leaves_nothing_behind() -> None:
    session = await make_session()
    reading = asyncio.create_task(read(session, 1))
    await asyncio.sleep(0.1)
    assert live._watch.looking
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.sleep(0.1)
    assert not live._watch.looking


def test_a_loop_that_is_closed_under_its_readers_does_not_disturb_the_next_one() -> None:
    session = _session()
    _say(session, "one")
    abandoned = asyncio.new_event_loop()
    pages = live.follow(session.pk, 0)
    abandoned.run_until_complete(anext(pages))
    abandoned.close()
    with asyncio.Runner() as runner:
        assert [event.offset for event in runner.run(read(session, 1))] == [1]


async def test_streams_outlive_a_database_that_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = await make_session()
    monkeypatch.setattr(live, "RECOVERY", 0.05)
    real, failures = live._serve_readers, iter([True, True, False])

    def sometimes(readers: Any) -> None:
        if next(failures, False):
            raise OperationalError("the database is gone")
        real(readers)

    monkeypatch.setattr(live, "_serve_readers", sometimes)
    await say(session, "one")
    assert [event.offset for event in await read(session, 1)] == [1]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


async def test_a_round_takes_one_query_however_many_wait_for_silent_sessions() -> None:
    session = await make_session()
    readers = [live._Reader(session_id=session.pk, cursor=0) for _ in range(20)]

    def look() -> int:
        connection.force_debug_cursor = True
        before = len(connection.queries_log)
        live._serve_readers(readers)
        connection.force_debug_cursor = False
        return len(connection.queries_log) - before

    assert await sync_to_async(look)() == 1
    await say(session, "one")
    assert await sync_to_async(look)() == 2
    assert [len(reader.inbox) for reader in readers] == [1] * 20


async def test_the_end_of_a_turn_is_waited_for_and_not_longer_than_asked() -> None:
    session = await make_session()
    turn = await Turn.objects.acreate(session=session, number=1)
    started = time.monotonic()
    assert await live.turn_over(turn.pk, 0.1) is False
    assert 0.09 < time.monotonic() - started < 1
    waiting = asyncio.create_task(live.turn_over(turn.pk, 5))
    await asyncio.sleep(0.05)
    await Turn.objects.filter(pk=turn.pk).aupdate(state=Turn.State.FINISHED)
    assert await asyncio.wait_for(waiting, 1) is True


async def test_a_turn_that_is_over_is_not_waited_for() -> None:
    turn = await Turn.objects.acreate(
        session=await make_session(), number=1, state=Turn.State.FAILED
    )
    async with asyncio.timeout(1):
        assert await live.turn_over(turn.pk, 60) is True
