"""Writing the reply (ENGINE.md §1 step 8, §5): briefed by what is in force, streamed, with the writer's own report."""

import asyncio
import time
from typing import Any

import pydantic_core

from engine import prompts
from engine.asking import ask
from engine.canonical import JsonObject, canonical_json
from engine.errors import ModelError, ModelErrorKind
from engine.events import (
    BriefingEvent,
    MessageEvent,
    MessagePartEvent,
    Phase,
    Source,
    StatusEvent,
    ToolFinishedEvent,
)
from engine.kit import Kit
from engine.model.base import ComposeReply
from engine.spec import Criticality, Guideline
from engine.state import TurnState
from engine.trail import Adherence, DecisionState, InsightKind, ToolInsight

# Pieces of a streamed reply are handed on at most this often (seconds); the first one at once.
PIECE_INTERVAL = 0.05

_CRITICALITY = {Criticality.HIGH: "must hold", Criticality.LOW: "advice"}


async def write_reply(state: TurnState, kit: Kit) -> None:
    """Emit the briefing, the reply in pieces and as a whole, and the adherence report; raises ModelError."""
    if _replied(state):  # before an interruption that came between the reply and its checkpoint
        return
    matched = tuple(state.matched())
    told = insights_to_tell(state)
    await kit.outbox.put(StatusEvent(phase=Phase.WRITING))
    resumed = state.briefing() is not None
    if not resumed:
        briefing = BriefingEvent(
            guidelines=tuple(guideline.uid for guideline in matched),
            content=brief(state, matched, told),
        )
        await kit.outbox.put(briefing)
        state.witness(briefing)
    question = ComposeReply(situation=state.situation, guidelines=matched, insights=told)
    pieces = Pieces(kit, restarted=resumed)
    try:
        answered = await ask(
            kit,
            kit.models.writing,
            prompts.build(question),
            iteration=state.checkpoint.iteration,
            on_text=pieces.add,
        )
    except asyncio.CancelledError:
        if pieces.said.strip():
            partial = MessageEvent(source=Source.AGENT, text=pieces.said.strip(), partial=True)
            await kit.outbox.put(partial)
        raise
    reply = str(answered.answer["reply"]).strip()
    if not reply:
        message = "The model wrote an empty reply."
        raise ModelError(message, kind=ModelErrorKind.EMPTY, retryable=True)
    await kit.outbox.put(MessageEvent(source=Source.AGENT, text=reply, model=answered.call.model))
    for entry in _adherence(state, matched, answered.answer["follows"]):
        await kit.outbox.put(entry)


def _replied(state: TurnState) -> bool:
    """Does a whole reply of this turn stand after its briefing?"""
    this_turn = [entry.event for entry in state.history if entry.turn == state.turn]
    for event in reversed(this_turn):
        if isinstance(event, BriefingEvent):
            return False
        if isinstance(event, MessageEvent) and event.source is Source.AGENT and not event.partial:
            return state.briefing() is not None
    return False


def brief(
    state: TurnState, matched: tuple[Guideline, ...], told: tuple[ToolInsight, ...]
) -> JsonObject:
    """What the writer is told: guidelines in force, what to ask for, what failed, as JSON."""
    content: JsonObject = {
        "guidelines": [_guideline(state, g) for g in matched]
        or "none applies to the customer's newest messages",
    }
    missing = [_insight(i) for i in told if i.kind is InsightKind.MISSING]
    invalid = [_insight(i) for i in told if i.kind is InsightKind.INVALID]
    failed = [
        {"tool": entry.event.tool, "because": entry.event.error.public}
        for entry in state.history
        if entry.turn == state.turn
        and isinstance(entry.event, ToolFinishedEvent)
        and entry.event.error is not None
    ]
    failed += [
        {"tool": decision.tool, "because": "it was not run"}
        for decision in state.decisions
        if decision.state is DecisionState.CANNOT_RUN
        and not decision.missing
        and not decision.invalid
    ]
    for key, items in (("ask for", missing), ("ask to correct", invalid), ("failed", failed)):
        if items:
            content[key] = items
    return content


def _guideline(state: TurnState, guideline: Guideline) -> JsonObject:
    told: JsonObject = {"id": state.agent.label_of[guideline.uid]}
    if guideline.condition:
        told["when"] = guideline.condition
    if guideline.action:
        told["then"] = guideline.action
    if guideline.criticality in _CRITICALITY:
        told["weight"] = _CRITICALITY[guideline.criticality]
    return told


def _insight(insight: ToolInsight) -> JsonObject:
    told: JsonObject = {"what": insight.label, "needed for": insight.tool}
    optional: dict[str, Any] = {
        "means": insight.description,
        "reason": insight.significance,
        "examples": list(insight.examples),
        "choices": list(insight.choices),
        "given": insight.value,
        "problem": insight.reason,
    }
    return told | {key: value for key, value in optional.items() if value not in ("", [], None)}


def insights_to_tell(state: TurnState) -> tuple[ToolInsight, ...]:
    """What the customer is asked for: nothing hidden or cured, and only the first group by precedence."""
    told = [i for i in state.insights if not i.hidden and not _is_cured(state, i)]
    unique = {_as_told(insight): insight for insight in told}
    present = [i.precedence for i in unique.values() if i.precedence is not None]
    first = min(present, default=None)
    return tuple(i for i in unique.values() if first is None or i.precedence == first)


def _is_cured(state: TurnState, insight: ToolInsight) -> bool:
    """Was its tool decided anew in a later iteration, to a call or to insights that replace this one?"""
    replacing = {
        DecisionState.NEEDS_TO_RUN,
        DecisionState.DATA_ALREADY_IN_CONTEXT,
        DecisionState.CANNOT_RUN,
    }
    return any(
        d.tool == insight.tool and d.iteration > insight.iteration and d.state in replacing
        for d in state.decisions
    )


def _as_told(insight: ToolInsight) -> str:
    """What makes two insights one and the same request to the customer."""
    told = [insight.label, insight.kind, insight.reason, insight.description, insight.value]
    return canonical_json(told)


def _adherence(
    state: TurnState, matched: tuple[Guideline, ...], follows: list[JsonObject]
) -> list[Adherence]:
    uid_of = {state.agent.label_of[g.uid]: g.uid for g in matched}
    found: dict[str, Adherence] = {}
    for entry in follows:
        uid = uid_of.get(entry["guideline"].strip())
        if uid is not None:
            found[uid] = Adherence(guideline=uid, follows=entry["follows"])
    return list(found.values())


class Pieces:
    """The reply's text as it grows out of the streamed JSON, handed on in pieces."""

    def __init__(self, kit: Kit, *, restarted: bool) -> None:
        self._kit = kit
        self._raw = ""
        self._sent_at = 0.0
        self._restarted = restarted
        self.said = ""

    async def add(self, text: str | None) -> None:
        """The next raw text; None voids all before it."""
        if text is None:
            self._raw, self.said, self._restarted = "", "", True
            return
        self._raw += text
        now = time.monotonic()
        if now - self._sent_at < PIECE_INTERVAL:
            return
        reply = reply_so_far(self._raw)
        if len(reply) <= len(self.said):
            return
        piece, self.said, self._sent_at = reply[len(self.said) :], reply, now
        await self._kit.outbox.put(MessagePartEvent(text=piece, restart=self._restarted))
        self._restarted = False


def reply_so_far(raw: str) -> str:
    """The reply in an unfinished JSON answer, as far as it can be read."""
    try:
        value = pydantic_core.from_json(raw, allow_partial="trailing-strings")
    except ValueError:
        return ""
    reply = value.get("reply") if isinstance(value, dict) else None
    return reply.replace("\x00", "") if isinstance(reply, str) else ""
