"""How the parallel parts of a turn hand what they find to the one generator that yields it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TypeAlias

from engine.events import Event
from engine.state import Checkpoint
from engine.trail import TrailEntry

Emission: TypeAlias = Event | TrailEntry | Checkpoint


class Outbox:
    """A queue whose `put` returns only when the reader has dealt with the item.

    So whoever puts "started" and then starts knows that the start is on record.
    """

    def __init__(self) -> None:
        self._items: deque[tuple[Emission, asyncio.Future[None]]] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._abandoned = False

    async def put(self, item: Emission) -> None:
        """Returns at once where nobody reads any more."""
        if self._abandoned:
            return
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._items.append((item, taken))
        self._arrived.set()
        await taken

    def close(self) -> None:
        """Nothing more will be put; what is there is still read."""
        self._closed = True
        self._arrived.set()

    def abandon(self) -> None:
        """Nobody will read any more. Whoever waits to be read is cancelled: what is not on record, nothing rests on."""
        self._abandoned = True
        while self._items:
            _item, taken = self._items.popleft()
            taken.cancel()
        self.close()

    async def __aiter__(self) -> AsyncIterator[Emission]:
        while True:
            while self._items:
                item, taken = self._items.popleft()
                yield item
                if not taken.done():
                    taken.set_result(None)
            if self._closed:
                return
            self._arrived.clear()
            await self._arrived.wait()
