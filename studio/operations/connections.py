"""Model connections: storing them, and asking one whether it works."""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from engine.canonical import JsonObject
from engine.errors import ModelError, SpecError
from engine.events import MessageEvent, RecordedEvent, Source
from engine.model.base import MatchGuidelines, ModelReply, ModelRequest, Situation
from engine.model.retrying import RetryingModel
from engine.prompts import match_guidelines
from engine.spec import Agent, Guideline
from studio.models import ModelConnection

if TYPE_CHECKING:
    from django.contrib.auth.models import User

LONGEST_TEST = 20.0  # seconds for each model: somebody is waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """What came of asking one model. `form` is json_schema, json_object or text; `judged` whether it judged right."""

    model: str
    answered_as: str = ""
    latency_ms: int = 0
    form: str = ""
    judged: bool = False
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReport:
    """A ModelReport for each of the connection's models: the one that judges, and the one that writes if it differs."""

    models: tuple[ModelReport, ...]

    @property
    def ok(self) -> bool:
        return all(report.ok for report in self.models)


@transaction.atomic
def save_connection(
    connection: ModelConnection,
    *,
    by: "User",
    new_key: str = "",
    drop_key: bool = False,
    make_default: bool | None = None,
) -> ModelConnection:
    """Store it. The key changes only by `new_key` or `drop_key`, the default only where `make_default` is given."""
    if drop_key:
        connection.api_key, connection.api_key_set_by, connection.api_key_set_at = "", "", None
    if new_key:
        connection.api_key = new_key
        connection.api_key_set_by = by.get_username()
        connection.api_key_set_at = timezone.now()
    if make_default is not None:
        if make_default:
            ModelConnection.objects.filter(is_default=True).update(is_default=False)
        connection.is_default = make_default
    connection.save()
    return connection


@transaction.atomic
def make_default(connection: ModelConnection) -> None:
    ModelConnection.objects.filter(is_default=True).exclude(pk=connection.pk).update(
        is_default=False
    )
    ModelConnection.objects.filter(pk=connection.pk).update(is_default=True)


def test_connection(connection: ModelConnection) -> ConnectionReport:
    """Ask each model of the connection one small question, in the way turns ask; no attempt is repeated."""
    names = dict.fromkeys([connection.model, connection.writing_model or connection.model])
    report: ConnectionReport = async_to_sync(_ask_all)(connection, tuple(names))
    return report


async def _ask_all(connection: ModelConnection, names: tuple[str, ...]) -> ConnectionReport:
    reports = await asyncio.gather(*(_ask(connection, name) for name in names))
    return ConnectionReport(models=tuple(reports))


async def _ask(connection: ModelConnection, name: str) -> ModelReport:
    from engine.model.openai import OpenAIModel  # large, and only a test needs it here

    try:
        client = OpenAIModel(
            model=name,
            base_url=connection.base_url or None,
            api_key=connection.api_key,
            timeout=min(connection.timeout, LONGEST_TEST),
            max_connections=1,
        )
    except SpecError as error:
        return ModelReport(model=name, error=str(error))
    request = _question()
    started = time.monotonic()
    try:
        reply = await _reply(RetryingModel(client, attempts=1), request)
    except ModelError as error:
        return ModelReport(model=name, error=str(error), latency_ms=_since(started))
    finally:
        await client.aclose()
    judgements: list[JsonObject] = reply.answer["judgements"]
    return ModelReport(
        model=name,
        answered_as=reply.model,
        latency_ms=_since(started),
        form=client.form_of(request),
        judged=any(judgement["applies"] for judgement in judgements),
    )


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


async def _reply(model: RetryingModel, request: ModelRequest) -> ModelReply:
    reply = None
    async for piece in model.stream(request):
        if isinstance(piece, ModelReply):
            reply = piece
    assert reply is not None  # noqa: S101 - a ChatModel ends with its reply or raises
    return reply


def _question() -> ModelRequest:
    """Small, and with an answer that nobody doubts."""
    guideline = Guideline(
        uid="test",
        condition="the customer asks when the shop is open",
        action="tell them the opening hours",
    )
    asked = MessageEvent(source=Source.CUSTOMER, text="Hello! When are you open on Saturdays?")
    situation = Situation(
        agent=Agent(slug="test", name="Test", guidelines=(guideline,)),
        history=(RecordedEvent(offset=1, turn=1, event=asked),),
        turn=1,
    )
    return match_guidelines.build(MatchGuidelines(situation=situation, guidelines=(guideline,)))
