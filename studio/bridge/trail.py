"""Trail rows ↔ engine.trail."""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, assert_never

from django.db import models
from django.db.models import Model
from django.utils import timezone
from pydantic import TypeAdapter

from engine import trail
from engine.canonical import JsonObject, canonical_json
from engine.errors import ToolError
from engine.spec import RelationKind
from studio.models import (
    Adherence,
    ChoicesOffered,
    GuidelineMatch,
    ModelCall,
    PromptPart,
    ToolCall,
    ToolDecision,
    ToolInsight,
    Turn,
)

_ARGUMENTS = TypeAdapter(tuple[trail.Argument, ...])
_ERROR = TypeAdapter(ToolError)
_INSIGHT = TypeAdapter(trail.ToolInsight)
_REPLY_SOURCE = TypeAdapter(trail.ReplySource)

_INSIGHT_COLUMNS = frozenset({"tool", "parameter", "kind", "iteration"})


@lru_cache(maxsize=4096)
def part_key(text: str) -> str:
    """The key of a PromptPart: 128 bits of SHA-256 as 22 URL-safe characters."""
    hashed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
    return base64.urlsafe_b64encode(hashed).decode().rstrip("=")


class TrailRows:
    """Collects the rows of some entries of one turn, to be written in one transaction."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._rows: dict[type[Model], list[Any]] = {}
        self._calls: dict[str, trail.ToolCall] = {}
        self._parts: dict[str, str] = {}
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._limit = ""
        self._reply_source: JsonObject | None = None

    def add(self, entry: trail.TrailEntry) -> None:
        match entry:
            case trail.GuidelineMatch():
                self._add(self._match(entry))
            case trail.ToolDecision():
                self._add(self._decision(entry))
            case trail.ToolCall():
                self._calls[entry.uid] = entry
            case trail.ToolInsight():
                self._add(self._insight(entry))
            case trail.ModelCall():
                self._add(self._model_call(entry))
            case trail.Adherence():
                self._add(self._adherence(entry))
            case trail.ChoicesOffered():
                self._add(self._choices(entry))
            case trail.ReplySource():
                self._reply_source = _REPLY_SOURCE.dump_python(entry, mode="json")
            case trail.LimitReached():
                self._limit = f"{entry.limit}: {entry.detail}"[:200]
            case _:
                assert_never(entry)

    def save(self) -> None:
        """Write everything collected; to be called once, inside a transaction."""
        parts = [PromptPart(key=key, text=text) for key, text in self._parts.items()]
        if parts:
            PromptPart.objects.bulk_create(parts, ignore_conflicts=True)
        for model, rows in self._rows.items():
            model._default_manager.bulk_create(rows)  # noqa: SLF001 - Django's documented access
        if self._calls:
            self._save_calls()

    def totals(self) -> dict[str, Any]:
        """Changes to the turn itself, as keyword arguments of `update`."""
        changes: dict[str, Any] = {}
        if self._prompt_tokens or self._completion_tokens:
            changes["prompt_tokens"] = models.F("prompt_tokens") + self._prompt_tokens
            changes["completion_tokens"] = models.F("completion_tokens") + self._completion_tokens
        if self._limit:
            changes["limit_reached"] = self._limit
        if self._reply_source is not None:
            changes["reply_source"] = self._reply_source
        return changes

    def _add(self, row: Model) -> None:
        self._rows.setdefault(type(row), []).append(row)

    def _save_calls(self) -> None:
        rows = [self._call(entry) for entry in self._calls.values()]
        ToolCall.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["turn", "uid"],
            update_fields=[
                "state",
                "result",
                "error",
                "log",
                "ended_at",
                "served",
                "served_from",
            ],
        )

    def _match(self, entry: trail.GuidelineMatch) -> GuidelineMatch:
        return GuidelineMatch(
            turn=self._turn,
            iteration=entry.iteration,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            guideline=entry.guideline,
            state=entry.state.value,
            because=entry.because,
            dropped_by=entry.dropped_by,
            added_by=entry.added_by,
            relation=entry.relation or "",
            score=entry.score,
            explained_afterwards=entry.explained_afterwards,
            model_call=entry.model_call,
        )

    def _decision(self, entry: trail.ToolDecision) -> ToolDecision:
        return ToolDecision(
            turn=self._turn,
            iteration=entry.iteration,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            guideline=entry.guideline,
            tool=entry.tool,
            state=entry.state.value,
            because=entry.because,
            arguments=_ARGUMENTS.dump_python(entry.arguments, mode="json"),
            missing=list(entry.missing),
            invalid=list(entry.invalid),
            call=entry.call,
            model_call=entry.model_call,
        )

    def _call(self, entry: trail.ToolCall) -> ToolCall:
        return ToolCall(
            turn=self._turn,
            iteration=entry.iteration,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            uid=entry.uid,
            tool=entry.tool,
            arguments=entry.arguments,
            arguments_key=part_key(canonical_json(entry.arguments)),
            state=entry.state.value,
            guidelines=list(entry.guidelines),
            result=entry.result,
            error=_ERROR.dump_python(entry.error, mode="json") if entry.error else None,
            log=entry.log,
            served=entry.served.value,
            served_from=entry.served_from[:80],
        )

    def _insight(self, entry: trail.ToolInsight) -> ToolInsight:
        data: JsonObject = _INSIGHT.dump_python(entry, mode="json", exclude=set(_INSIGHT_COLUMNS))
        return ToolInsight(
            turn=self._turn,
            iteration=entry.iteration,
            started_at=timezone.now(),
            tool=entry.tool,
            parameter=entry.parameter,
            kind=entry.kind.value,
            data=data,
        )

    def _model_call(self, entry: trail.ModelCall) -> ModelCall:
        self._prompt_tokens += entry.prompt_tokens
        self._completion_tokens += entry.completion_tokens
        return ModelCall(
            turn=self._turn,
            iteration=entry.iteration,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            uid=entry.uid,
            question=entry.question,
            subject=entry.subject[:120],
            model=entry.model[:120],
            prompt_version=entry.prompt_version,
            request_key=entry.request_key,
            messages=[[m.role, [self._part(p) for p in m.parts]] for m in entry.messages],
            schema_id=self._part(canonical_json(entry.schema)),
            settings=entry.settings,
            attempt=entry.attempt,
            answer_text=entry.answer_text,
            error=entry.error,
            prompt_tokens=entry.prompt_tokens,
            cached_tokens=entry.cached_tokens,
            completion_tokens=entry.completion_tokens,
            first_token_at=entry.first_token_at,
            used=entry.used,
            probability=entry.probability,
        )

    def _part(self, text: str) -> str:
        key = part_key(text)
        self._parts[key] = text
        return key

    def _choices(self, entry: trail.ChoicesOffered) -> ChoicesOffered:
        return ChoicesOffered(
            turn=self._turn,
            iteration=entry.iteration,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            tool=entry.tool,
            choices=entry.choices,
            because=entry.because,
        )

    def _adherence(self, entry: trail.Adherence) -> Adherence:
        return Adherence(
            turn=self._turn,
            started_at=timezone.now(),
            guideline=entry.guideline,
            follows=entry.follows,
            note=entry.note,
            checked=entry.checked,
            attempt=entry.attempt,
        )


def read_trail(turn: Turn) -> list[trail.TrailEntry]:
    """What a turn has decided, as far as anything that follows depends on it; model calls without their words."""
    return read_trails([turn])[turn.pk]


def read_trails(turns: Sequence[Turn]) -> dict[int, list[trail.TrailEntry]]:
    """Turn pk → what `read_trail` reads, in a constant number of queries."""
    found: dict[int, list[trail.TrailEntry]] = {turn.pk: [] for turn in turns}

    def rows_of(model: type[Model]) -> Any:
        return model._default_manager.filter(turn__in=list(found)).order_by("pk")  # noqa: SLF001

    for row in rows_of(GuidelineMatch):
        found[row.turn_id].append(_read_match(row))
    for row in rows_of(ToolDecision):
        found[row.turn_id].append(_read_decision(row))
    for row in rows_of(ToolCall):
        found[row.turn_id].append(read_call(row))
    for row in rows_of(ToolInsight):
        found[row.turn_id].append(_read_insight(row))
    for row in rows_of(ChoicesOffered):
        found[row.turn_id].append(_read_choices(row))
    for row in rows_of(Adherence):
        found[row.turn_id].append(_read_adherence(row))
    for row in rows_of(ModelCall).defer("messages", "settings", "answer_text"):
        found[row.turn_id].append(_read_model_call(row))
    for turn in turns:
        found[turn.pk] += _of_turn(turn)
    return found


def _of_turn(turn: Turn) -> list[trail.TrailEntry]:
    """What is kept on the turn's own row."""
    found: list[trail.TrailEntry] = []
    if turn.reply_source is not None:
        found.append(_REPLY_SOURCE.validate_python(turn.reply_source))
    if turn.limit_reached:
        limit, _colon, detail = turn.limit_reached.partition(": ")
        found.append(trail.LimitReached(limit=limit, detail=detail))
    return found


def _read_match(row: GuidelineMatch) -> trail.GuidelineMatch:
    return trail.GuidelineMatch(
        guideline=row.guideline,
        state=trail.MatchState(row.state),
        because=row.because,
        iteration=row.iteration,
        started_at=row.started_at,
        ended_at=row.ended_at or row.started_at,
        dropped_by=row.dropped_by,
        added_by=row.added_by,
        relation=RelationKind(row.relation) if row.relation else None,
        score=row.score,
        explained_afterwards=row.explained_afterwards,
        model_call=row.model_call,
    )


def _read_decision(row: ToolDecision) -> trail.ToolDecision:
    return trail.ToolDecision(
        guideline=row.guideline,
        tool=row.tool,
        state=trail.DecisionState(row.state),
        because=row.because,
        iteration=row.iteration,
        started_at=row.started_at,
        ended_at=row.ended_at or row.started_at,
        arguments=_ARGUMENTS.validate_python(row.arguments),
        missing=tuple(row.missing),
        invalid=tuple(row.invalid),
        call=row.call,
        model_call=row.model_call,
    )


def _read_insight(row: ToolInsight) -> trail.ToolInsight:
    return _INSIGHT.validate_python(
        {
            "tool": row.tool,
            "parameter": row.parameter,
            "kind": row.kind,
            "iteration": row.iteration,
            **row.data,
        }
    )


def _read_choices(row: ChoicesOffered) -> trail.ChoicesOffered:
    return trail.ChoicesOffered(
        tool=row.tool,
        iteration=row.iteration,
        started_at=row.started_at,
        ended_at=row.ended_at or row.started_at,
        choices=row.choices,
        because=row.because,
    )


def _read_adherence(row: Adherence) -> trail.Adherence:
    return trail.Adherence(
        guideline=row.guideline,
        follows=row.follows,
        note=row.note,
        checked=row.checked,
        attempt=row.attempt,
    )


def _read_model_call(row: ModelCall) -> trail.ModelCall:
    """Without prompt, schema and answer, which are long."""
    return trail.ModelCall(
        uid=row.uid,
        question=row.question,
        subject=row.subject,
        model=row.model,
        prompt_version=row.prompt_version,
        request_key=row.request_key,
        messages=(),
        schema={},
        iteration=row.iteration,
        attempt=row.attempt,
        started_at=row.started_at,
        ended_at=row.ended_at or row.started_at,
        error=row.error,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        completion_tokens=row.completion_tokens,
        first_token_at=row.first_token_at,
        used=row.used,
        probability=row.probability,
    )


def read_call(row: ToolCall) -> trail.ToolCall:
    return trail.ToolCall(
        uid=row.uid,
        tool=row.tool,
        arguments=row.arguments,
        state=trail.CallState(row.state),
        iteration=row.iteration,
        guidelines=tuple(row.guidelines),
        started_at=row.started_at,
        ended_at=row.ended_at,
        result=row.result,
        error=_ERROR.validate_python(row.error) if row.error else None,
        log=row.log,
        served=trail.Served(row.served),
        served_from=row.served_from,
    )
