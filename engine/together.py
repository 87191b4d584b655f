"""Running coroutines side by side, so that the first error is raised as itself and nothing is left running."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Their results in order; on an error or cancellation the others are cancelled and awaited first."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


class InOrder:
    """Lets work that is done side by side be put on record in one order, whoever is ready first.

    Places are taken in that order, before the work begins.
    """

    def __init__(self) -> None:
        self._last: asyncio.Event | None = None

    def place(self) -> "Place":
        before, self._last = self._last, asyncio.Event()
        return Place(before, self._last)


class Place:
    """One's place in an order."""

    def __init__(self, before: asyncio.Event | None, own: asyncio.Event) -> None:
        self._before = before
        self._own = own

    @asynccontextmanager
    async def reached(self) -> AsyncIterator[None]:
        """Entered when everybody before has left."""
        if self._before is not None:
            await self._before.wait()
        yield
        self._own.set()
