"""Asking a model, so that every attempt becomes a ModelCall of the trail."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine.canonical import JsonObject, without_nul
from engine.errors import ModelError
from engine.kit import Kit
from engine.model.base import AttemptFailed, ChatModel, ModelReply, ModelRequest, TextDelta
from engine.trail import ModelCall

OnText = Callable[[str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer and the ModelCall that gave it; `probability` as in ModelReply."""

    answer: JsonObject
    call: ModelCall
    probability: float | None = None


async def ask(
    kit: Kit,
    model: ChatModel,
    request: ModelRequest,
    *,
    iteration: int,
    on_text: OnText | None = None,
    record: Callable[[ModelCall], Awaitable[None]] | None = None,
) -> Answered:
    """The model's answer; raises ModelError once the model has given up.

    `on_text` gets each piece of streamed text, and None when an attempt failed and its pieces are void.
    `record` receives each attempt instead of the outbox (a question asked ahead is recorded when it proves useful).
    """
    keep = record or kit.outbox.put
    return await ask_by_itself(model, request, iteration=iteration, on_text=on_text, record=keep)


async def ask_by_itself(
    model: ChatModel,
    request: ModelRequest,
    *,
    record: Callable[[ModelCall], Awaitable[None]],
    iteration: int = 1,
    on_text: OnText | None = None,
) -> Answered:
    """`ask` outside of any turn: `record` receives each attempt."""
    asked = _blank(model, request, iteration)
    attempt, started, first_token = 1, datetime.now(UTC), None
    stream = model.stream(request)
    try:
        async for item in stream:
            match item:
                case TextDelta():
                    first_token = first_token or datetime.now(UTC)
                    if on_text:
                        await on_text(item.text)
                case AttemptFailed():
                    await record(
                        _failed(asked, attempt, item.error, item.started_at, item.ended_at)
                    )
                    attempt, started, first_token = attempt + 1, datetime.now(UTC), None
                    if on_text:
                        await on_text(None)
                case ModelReply():
                    call = replace(
                        asked,
                        uid=uuid.uuid4().hex,
                        model=item.model,
                        attempt=attempt,
                        started_at=started,
                        ended_at=datetime.now(UTC),
                        first_token_at=first_token,
                        answer_text=item.text.replace("\x00", ""),
                        prompt_tokens=item.prompt_tokens,
                        cached_tokens=item.cached_tokens,
                        completion_tokens=item.completion_tokens,
                        probability=item.probability,
                    )
                    await record(call)
                    return Answered(
                        answer=_without_nul(item), call=call, probability=item.probability
                    )
    except ModelError as error:
        await record(_failed(asked, attempt, error, started, datetime.now(UTC)))
        raise
    except asyncio.CancelledError:
        await record(_ended(asked, attempt, started, error="cancelled: the answer was not needed"))
        raise
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    message = f"Model {model.name!r} ended its answer to {request.question.name} without a reply."
    raise AssertionError(message)


def _without_nul(reply: ModelReply) -> JsonObject:
    """The answer without NUL characters, which no database stores in text."""
    if "\\u0000" not in reply.text and "\x00" not in reply.text:
        return reply.answer
    cleaned: JsonObject = json.loads(without_nul(json.dumps(reply.answer)))
    return cleaned


def _blank(model: ChatModel, request: ModelRequest, iteration: int) -> ModelCall:
    now = datetime.now(UTC)
    return ModelCall(
        uid="",
        question=request.question.name,
        subject=request.subject,
        model=model.name,
        prompt_version=request.prompt_version,
        request_key=request.request_key,
        messages=request.messages,
        schema=request.schema,
        settings=request.settings,
        iteration=iteration,
        attempt=1,
        started_at=now,
        ended_at=now,
    )


def _failed(
    asked: ModelCall, attempt: int, error: ModelError, started: datetime, ended: datetime
) -> ModelCall:
    failed = _ended(asked, attempt, started, error=f"{error.kind}: {error}")
    return replace(failed, ended_at=ended, answer_text=error.answer_text)


def _ended(asked: ModelCall, attempt: int, started: datetime, *, error: str) -> ModelCall:
    """An attempt that gave nothing to use."""
    return replace(
        asked,
        uid=uuid.uuid4().hex,
        attempt=attempt,
        started_at=started,
        ended_at=datetime.now(UTC),
        error=error,
        used=False,
    )
