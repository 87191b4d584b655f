"""The shapes in which turns and their audits are answered; `studio.audit` fills them."""

from datetime import datetime
from typing import Any, Literal

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
    added_by: str
    relation: str = Field(description="The kind of relationship that dropped or added it, or empty")
    effect: str = Field(description="What that relationship did, in words")
    score: float | None = Field(description="The probability of a bare verdict, 0 to 1")
    explained_afterwards: bool = Field(description="`because` was asked for after a bare verdict")
    given_by: str = Field(description="The tool whose result brought it for this turn, or empty")
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
    given_by: str = Field(description="The tool whose result brought the guideline, or empty")
    tool: str
    tool_description: str
    state: str
    because: str
    arguments: list[ArgumentOut]
    missing: list[str]
    invalid: list[str]
    call: str
    model_call: str


class PlaceOut(BaseModel):
    """A call of some turn."""

    session: int
    turn: int
    call: str


class CallOut(Timed):
    uid: str
    tool: str
    tool_description: str
    arguments: dict[str, Any]
    state: str
    guidelines: list[str]
    result: Any
    error: Any
    log: str = Field(description="What it printed beside its result, without its secrets")
    served: Literal["live", "recorded", "mock"] = Field(
        description="Did the tool run, was an earlier outcome repeated, or is it written by hand?"
    )
    served_from: PlaceOut | None = Field(description="Where recorded: the call that was repeated")


class InsightOut(Timed):
    model_config = ConfigDict(extra="allow")

    tool: str
    tool_description: str
    parameter: str
    kind: str


class ChoicesOut(BaseModel):
    """What a tool's service named for this turn as what its parameters can be."""

    tool: str
    tool_description: str
    choices: dict[str, list[Any]] = Field(description="Parameter → values")
    because: str = Field(description="Why nothing could be offered; else empty")


class AdherenceOut(BaseModel):
    guideline: str
    condition: str
    action: str
    given_by: str = Field(description="The tool whose result brought the guideline, or empty")
    follows: bool
    note: str
    checked: bool = Field(description="By a question of its own; else the writing model's report")
    attempt: int = Field(description="Which version of the reply, from 1; the last one was said")


class PromptMessage(BaseModel):
    role: str
    content: str
    parts: list[int] = Field(
        description="Characters of each piece that the content was put together from"
    )


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
    probability: float | None = Field(description="That a bare verdict is “true”, 0 to 1")
    request_key: str
    first_token_at: datetime | None
    messages: list[PromptMessage] | None = None
    schema_: Any = Field(None, alias="schema")
    settings: dict[str, Any] | None = None
    answer_text: str | None = None


class ReplyResponseOut(BaseModel):
    uid: str
    text: str = Field(description="The template; empty where it is gone")


class ReplySourceOut(BaseModel):
    composition: str = Field(description="fluid, composited or strict")
    responses: list[ReplyResponseOut]
    because: str
    fits: bool


class ModeOut(BaseModel):
    offset: int
    mode: str
    source: str
    tool: str = Field(description="The tool whose result asked for it, or empty")


class BriefingOut(BaseModel):
    """What the writer of the reply was told."""

    offset: int
    content: dict[str, Any]


class ConfirmationOut(BaseModel):
    """A consequential call that awaits the customer's word, or did."""

    call: str = Field(description="The uid that its ToolCall has, or will have")
    tool: str
    tool_description: str
    arguments: dict[str, Any] = Field(description="It runs with exactly these, or not at all")
    labels: dict[str, str] = Field(description="The arguments that a customer is told of, in words")
    guidelines: list[str]
    turn: int = Field(description="In which it was asked for")
    asked_at: datetime
    expires_at: datetime
    answer: str = Field(description="confirmed, declined, changed, expired; empty while it waits")
    answered_in: int | None
    by: str = Field(description="customer, or system where it expired or can no longer run")
    because: str = Field(description="Why it was read so; empty for a button")


class LostOut(BaseModel):
    """A call that an earlier turn started and nobody saw end."""

    offset: int
    call: str
    tool: str
    arguments: dict[str, Any]


class AmountOut(BaseModel):
    currency: str
    amount: str = Field(description="An exact decimal")


class UnpricedOut(BaseModel):
    model: str
    calls: int


class CostOut(BaseModel):
    """What the model calls cost at the prices that stand in the price list now."""

    amounts: list[AmountOut] = Field(description="One for each currency")
    unpriced: list[UnpricedOut] = Field(description="Models without a price; not in `amounts`")


class AuditOut(TurnOut):
    """A turn with all that was decided in it and why."""

    cost: CostOut
    tool_mode: str = Field(
        description="Where its tools' results come from: live, recorded, mock; empty while it waits"
    )
    reply_source: ReplySourceOut | None
    messages: list[MessageOut]
    lost: list[LostOut]
    modes: list[ModeOut]
    briefings: list[BriefingOut]
    confirmations: list[ConfirmationOut]
    matches: list[MatchOut]
    decisions: list[DecisionOut]
    calls: list[CallOut]
    insights: list[InsightOut]
    choices: list[ChoicesOut]
    adherence: list[AdherenceOut]
    model_calls: list[ModelCallOut]
