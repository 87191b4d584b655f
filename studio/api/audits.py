"""The shapes in which turns and their audits are answered; `studio.audit` fills them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class TurnOut(BaseModel):
    number: int
    state: str = Field(description="QUEUED, RUNNING, FINISHED, FAILED, STOPPED or SUPERSEDED")
    version: int | str | None = Field(description="A published version's number, or “draft”")
    fingerprint: str
    reply: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    prompt_tokens: int
    completion_tokens: int
    limit_reached: str
    reference: str = Field(description="What a customer may be told of a failure")
    error: str = Field(description="Why the turn failed, for people of the studio")


class MessageOut(BaseModel):
    offset: int
    source: str
    text: str
    model: str
    partial: bool
    created_at: datetime


class Timed(BaseModel):
    iteration: int
    started_at: datetime
    ended_at: datetime | None
    duration_ms: int | None


class MatchOut(Timed):
    guideline: str
    condition: str
    action: str
    state: str = Field(description="matched, not_matched, not_evaluated or dropped")
    because: str
    dropped_by: str
    model_call: str


class ArgumentOut(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    value: Any
    source: str
    evidence: str
    verified: bool


class DecisionOut(Timed):
    guideline: str
    condition: str
    action: str
    tool: str
    tool_description: str
    state: str
    because: str
    arguments: list[ArgumentOut]
    missing: list[str]
    invalid: list[str]
    call: str
    model_call: str


class CallOut(Timed):
    uid: str
    tool: str
    tool_description: str
    arguments: dict[str, Any]
    state: str
    guidelines: list[str]
    result: Any
    error: Any


class InsightOut(Timed):
    model_config = ConfigDict(extra="allow")

    tool: str
    tool_description: str
    parameter: str
    kind: str


class AdherenceOut(BaseModel):
    guideline: str
    condition: str
    action: str
    follows: bool
    note: str


class PromptMessage(BaseModel):
    role: str
    content: str


class ModelCallOut(Timed):
    """One request to a model; the last four only where the prompts were asked for."""

    uid: str
    question: str
    subject: str
    model: str
    prompt_version: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    attempt: int
    used: bool
    error: str
    request_key: str
    first_token_at: datetime | None
    messages: list[PromptMessage] | None = None
    schema_: Any = Field(None, alias="schema")
    settings: dict[str, Any] | None = None
    answer_text: str | None = None


class AuditOut(TurnOut):
    """A turn with all that was decided in it and why."""

    messages: list[MessageOut]
    matches: list[MatchOut]
    decisions: list[DecisionOut]
    calls: list[CallOut]
    insights: list[InsightOut]
    adherence: list[AdherenceOut]
    model_calls: list[ModelCallOut]
