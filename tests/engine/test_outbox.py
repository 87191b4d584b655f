"""What is put is dealt with before anything rests on it, and nobody waits for a reader who has gone."""

import asyncio

import pytest

from engine.events import Phase, StatusEvent
from engine.outbox import Emission, Outbox


def item(number: int) -> StatusEvent:
    return StatusEvent(phase=Phase.MATCHING, count=number)


async def read_all(outbox: Outbox) -> list[Emission]:
    return [found async for found in outbox]


async def test_items_come_out_in_the_order_in_which_they_were_put() -> None:
    outbox = Outbox()
    puts = [asyncio.create_task(outbox.put(item(number))) for number in range(5)]
    reading = asyncio.create_task(read_all(outbox))
    await asyncio.gather(*puts)
    outbox.close()
    assert await reading == [item(number) for number in range(5)]


async def test_put_returns_only_when_the_reader_has_dealt_with_the_item() -> None:
    outbox = Outbox()
    put = asyncio.create_task(outbox.put(item(1)))
    reader = aiter(outbox)
    assert await anext(reader) == item(1)
    await asyncio.sleep(0.01)
    assert not put.done()  # it was handed out, and is still being written
    following = asyncio.create_task(anext(reader))
    await asyncio.wait_for(put, 1)
    following.cancel()


async def test_what_was_put_before_closing_is_still_read() -> None:
    outbox = Outbox()
    put = asyncio.create_task(outbox.put(item(1)))
    await asyncio.sleep(0)
    outbox.close()
    assert await read_all(outbox) == [item(1)]
    await put


async def test_who_waits_for_a_reader_that_goes_away_does_not_go_on_as_if_it_were_on_record() -> (
    None
):
    outbox = Outbox()
    waiting = [asyncio.create_task(outbox.put(item(number))) for number in range(3)]
    await asyncio.sleep(0)
    outbox.abandon()
    ends = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 1)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * 3


async def test_what_is_put_when_the_reader_has_gone_holds_up_nobody() -> None:
    outbox = Outbox()
    outbox.abandon()
    await asyncio.wait_for(outbox.put(item(1)), 1)
    assert await read_all(outbox) == []


async def test_an_item_of_a_cancelled_writer_is_read_and_holds_up_nobody() -> None:
    outbox = Outbox()
    cancelled = asyncio.create_task(outbox.put(item(1)))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    following = asyncio.create_task(outbox.put(item(2)))
    reading = asyncio.create_task(read_all(outbox))
    await asyncio.wait_for(following, 1)
    outbox.close()
    assert await reading == [item(1), item(2)]
