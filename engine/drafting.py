"""A version of the reply: asking for it, showing it as it grows, and the writer's own report on it."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pydantic_core

from engine import prompts
from engine.asking import OnText, ask
from engine.canonical import JsonObject
from engine.errors import ModelError, ModelErrorKind
from engine.events import MessagePartEvent
from engine.kit import Kit
from engine.model.base import ComposeReply
from engine.spec import Agent, Guideline
from engine.state import TurnState
from engine.trail import Adherence

# Pieces of a streamed reply are handed on at most this often (seconds); the first one at once.
PIECE_INTERVAL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A written reply, the model that wrote it, and its own word on which guidelines (uids) it follows."""

    text: str
    model: str
    follows: dict[str, bool]

    def report(self, *, attempt: int = 1) -> tuple[Adherence, ...]:
        return tuple(
            Adherence(guideline=uid, follows=follows, attempt=attempt)
            for uid, follows in self.follows.items()
        )


async def draft(
    state: TurnState, kit: Kit, question: ComposeReply, *, on_text: OnText | None = None
) -> Draft:
    """Have the reply written; raises ModelError."""
    answered = await ask(
        kit,
        kit.models.writing,
        prompts.build(question),
        iteration=state.checkpoint.iteration,
        on_text=on_text,
    )
    text = str(answered.answer["reply"]).strip()
    if not text:
        message = "The model wrote an empty reply."
        raise ModelError(message, kind=ModelErrorKind.EMPTY, retryable=True)
    follows = reported(state.agent, question.guidelines, answered.answer["follows"])
    return Draft(text=text, model=answered.call.model, follows=follows)


def reported(
    agent: Agent, guidelines: Iterable[Guideline], follows: list[JsonObject]
) -> dict[str, bool]:
    """The report by uid: about guidelines in force only, each once, the last word counting."""
    uid_of = {agent.label_of[g.uid]: g.uid for g in guidelines}
    found: dict[str, bool] = {}
    for entry in follows:
        uid = uid_of.get(entry["guideline"].strip())
        if uid is not None:
            found[uid] = entry["follows"]
    return found


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
        value: Any = pydantic_core.from_json(raw, allow_partial="trailing-strings")
    except ValueError:
        return ""
    reply = value.get("reply") if isinstance(value, dict) else None
    return reply.replace("\x00", "") if isinstance(reply, str) else ""
