"""A ChatModel that asks again where it may help, and takes only answers that fit the request's schema."""

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from functools import lru_cache

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from referencing import Registry

from engine.canonical import canonical_json
from engine.errors import ModelError, ModelErrorKind
from engine.model.answers import shortened
from engine.model.base import (
    AttemptFailed,
    ChatModel,
    JudgingStyle,
    ModelReply,
    ModelRequest,
    TextDelta,
)


class RetryingModel:
    """Asks `inner` up to `attempts` times, and begins no attempt later than `deadline` seconds after the first.

    Between attempts it waits as long as the server wished, at most `longest_wish` seconds, else a random part of a
    pause that doubles from `first_pause` to `longest_pause` (full jitter, so that sessions do not return together).
    """

    def __init__(
        self,
        inner: ChatModel,
        *,
        attempts: int = 3,
        deadline: float = 120.0,
        first_pause: float = 0.5,
        longest_pause: float = 8.0,
        longest_wish: float = 20.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._deadline = deadline
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._longest_wish = longest_wish
        self._sleep = sleep
        self._chance = chance
        self._clock = clock

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def batch_size(self) -> int:
        return self._inner.batch_size

    @property
    def judging_style(self) -> JudgingStyle:
        return self._inner.judging_style

    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | AttemptFailed | ModelReply]:
        """Yields AttemptFailed before each further attempt; raises the ModelError of the last one."""
        give_up_at = self._clock() + self._deadline
        attempt = 0
        while True:
            attempt += 1
            started_at = datetime.now(UTC)
            try:
                # Inside the loop, around one attempt: outside it no second attempt would ever run.
                async with aclosing(_attempt(self._inner, request)) as items:
                    async for item in items:
                        yield item
            except ModelError as error:
                failed = error
            else:
                return
            pause = self._pause(failed, attempt)
            if pause is None or self._clock() + pause > give_up_at:
                raise failed
            yield AttemptFailed(error=failed, started_at=started_at, ended_at=datetime.now(UTC))
            await self._sleep(pause)

    def _pause(self, error: ModelError, attempt: int) -> float | None:
        """Seconds before the next attempt; None for no further one."""
        if not error.retryable or attempt >= self._attempts:
            return None
        if error.retry_after is not None:
            wish = min(error.retry_after, self._longest_wish)
            return wish + self._chance() * self._first_pause
        return self._chance() * min(self._longest_pause, self._first_pause * 2.0 ** (attempt - 1))


async def _attempt(
    model: ChatModel, request: ModelRequest
) -> AsyncGenerator[TextDelta | AttemptFailed | ModelReply, None]:
    items = model.stream(request)
    try:
        async for item in items:
            if isinstance(item, ModelReply):
                check_answer(item, request)
                yield item
                return
            yield item
    finally:
        # Left to the garbage collector, an abandoned attempt would keep its connection.
        if isinstance(items, AsyncGenerator):
            await items.aclose()
    raise ModelError(
        f"The model {model.name!r} ended without an answer.",
        kind=ModelErrorKind.EMPTY,
        retryable=True,
    )


def check_answer(reply: ModelReply, request: ModelRequest) -> None:
    """Raises ModelError(WRONG_SCHEMA), naming the first place that matters, unless the answer fits the schema."""
    validator = _validator(canonical_json(request.schema))
    valid = validator.is_valid(reply.answer)
    error = None if valid else best_match(validator.iter_errors(reply.answer))
    if error is None:
        return
    raise ModelError(
        f"The answer does not fit the schema of {request.schema_name!r} at {error.json_path}: "
        f"{shortened(error.message)}",
        kind=ModelErrorKind.WRONG_SCHEMA,
        retryable=True,
        answer_text=reply.text,
    )


def _any_length(*_: object) -> None:
    """Bounds on length keep a model from rambling and from ending early; neither is a reason to ask it all again."""


_Validator = validators.extend(
    Draft202012Validator,
    {"maxLength": _any_length, "maxItems": _any_length, "minItems": _any_length},
)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=512)
def _validator(schema: str) -> Validator:
    # An empty registry: by default jsonschema would fetch a foreign `$ref` over the network.
    validator: Validator = _Validator(json.loads(schema), registry=Registry())
    return validator
