"""A ChatModel that answers from the record of a turn by request key (DESIGN.md §6)."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from engine.errors import ModelError, ModelErrorKind
from engine.model.answers import read_answer
from engine.model.base import (
    AttemptFailed,
    ChatModel,
    JudgingStyle,
    ModelReply,
    ModelRequest,
    TextDelta,
)

NEVER_NEEDED = 1.0
"""Seconds that a question waits whose answer was cancelled when it was recorded: it is cancelled again before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """How one request ended: its answer's text, or an `error` ("kind: message"; "cancelled…" where nobody waited)."""

    request_key: str
    text: str
    model: str
    error: str = ""
    probability: float | None = None

    @property
    def cancelled(self) -> bool:
        return self.error.startswith("cancelled")


class RecordedModel:
    """Answers each request as it was answered; what was never asked is asked of `otherwise`, if there is one.

    A request that was made several times is answered in the order of the record, the last answer again and again.
    What was tried again is answered by the try that succeeded; where none did, it fails as the last. `missing` are the
    requests without a record, as (question, subject). Name, batch size and style are those of the recording, so that
    the same is asked.
    """

    def __init__(
        self,
        answers: Iterable[RecordedAnswer],
        *,
        name: str,
        batch_size: int,
        judging_style: JudgingStyle,
        otherwise: ChatModel | None = None,
    ) -> None:
        self.name = name
        self.batch_size = batch_size
        self.judging_style = judging_style
        self.missing: list[tuple[str, str]] = []
        self._otherwise = otherwise
        self._answers: dict[str, deque[RecordedAnswer]] = defaultdict(deque)
        for answer in answers:
            self._answers[answer.request_key].append(answer)
        for key, recorded in self._answers.items():
            usable = [answer for answer in recorded if not answer.error]
            self._answers[key] = deque(usable or [recorded[-1]])

    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | AttemptFailed | ModelReply]:
        """Yields the recorded text as one piece; raises the recorded ModelError, or NOT_RECORDED."""
        answer = self._next(request.request_key)
        if answer is not None and answer.cancelled:
            await asyncio.sleep(NEVER_NEEDED)
            answer = None
        if answer is None:
            self.missing.append((request.question.name, request.subject))
            # Closed with this one: left to the garbage collector, an abandoned request would keep its connection.
            async with aclosing(self._ask_otherwise(request)) as items:
                async for item in items:
                    yield item
            return
        if answer.error:
            raise _failure(answer)
        if request.stream:
            yield TextDelta(text=answer.text)
        yield ModelReply(
            answer=read_answer(answer.text, request.schema),
            text=answer.text,
            model=answer.model,
            probability=answer.probability,
        )

    def _next(self, request_key: str) -> RecordedAnswer | None:
        recorded = self._answers.get(request_key)
        if not recorded:
            return None
        return recorded.popleft() if len(recorded) > 1 else recorded[0]

    async def _ask_otherwise(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextDelta | AttemptFailed | ModelReply, None]:
        if self._otherwise is None:
            about = f" about {request.subject}" if request.subject else ""
            raise ModelError(
                f"{request.question.name}{about} was not asked like this when it was recorded.",
                kind=ModelErrorKind.NOT_RECORDED,
                retryable=False,
            )
        items = self._otherwise.stream(request)
        try:
            async for item in items:
                yield item
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()


def _failure(answer: RecordedAnswer) -> ModelError:
    kind, _colon, message = answer.error.partition(": ")
    known = kind in list(ModelErrorKind)
    return ModelError(
        message if known else answer.error,
        kind=ModelErrorKind(kind) if known else ModelErrorKind.EMPTY,
        retryable=False,
        answer_text=answer.text,
    )
