"""Inferring the calls of likely tools beside matching, to save a round trip (ENGINE.md §1, step 4).

A guess is only an answer put by. It counts when, and only when, a guideline that owns its tool comes into force; its
ModelCall says whether it was used.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from engine import prompts
from engine.asking import ask
from engine.canonical import JsonObject
from engine.errors import ModelError
from engine.events import MessageEvent, Source
from engine.kit import Kit
from engine.model.base import InferToolCalls
from engine.relevance import index_of
from engine.spec import Guideline, Tool
from engine.state import TurnState
from engine.trail import ModelCall

# Guidelines this relevant to what was just said are likely enough to be worth a question ahead.
_LIKELY = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """A model's answer about one tool."""

    answer: JsonObject
    call: ModelCall


async def infer(
    state: TurnState,
    kit: Kit,
    tool: Tool,
    guidelines: tuple[Guideline, ...],
    *,
    record: Callable[[ModelCall], Awaitable[None]] | None = None,
) -> Inference:
    """Ask about one tool; raises ModelError."""
    question = InferToolCalls(situation=state.situation, tool=tool, guidelines=guidelines)
    answered = await ask(
        kit,
        kit.models.judging,
        prompts.build(question),
        iteration=state.checkpoint.iteration,
        record=record,
    )
    return Inference(answer=answered.answer, call=answered.call)


class Guesses:
    """The questions asked ahead in one turn."""

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Task[Inference | None]] = {}
        self._attempts: dict[str, list[ModelCall]] = {}

    def __contains__(self, tool: str) -> bool:
        return tool in self._asked

    def start(self, state: TurnState, kit: Kit) -> None:
        """Ask about the likely tools, beside whatever comes next."""
        for tool, guidelines in likely_tools(state):
            self._attempts[tool.name] = []
            self._asked[tool.name] = asyncio.create_task(self._guess(state, kit, tool, guidelines))

    async def _guess(
        self, state: TurnState, kit: Kit, tool: Tool, guidelines: tuple[Guideline, ...]
    ) -> Inference | None:
        async def put_by(call: ModelCall) -> None:
            self._attempts[tool.name].append(call)

        try:
            return await infer(state, kit, tool, guidelines, record=put_by)
        except ModelError:  # a failed guess costs only itself: the tool is asked about again
            return None

    async def take(self, kit: Kit, tool: str) -> Inference | None:
        """The answer about a tool whose guideline is in force; None where none was asked for or none came."""
        asked = self._asked.pop(tool, None)
        if asked is None:
            return None
        answer = await asked
        await self._record(kit, tool, used=answer is not None)
        return answer

    async def drop(self, kit: Kit) -> None:
        """Give up what nobody took; its model calls go on record as not used."""
        for asked in self._asked.values():
            asked.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        self._asked.clear()
        for tool in list(self._attempts):
            await self._record(kit, tool, used=False)

    async def _record(self, kit: Kit, tool: str, *, used: bool) -> None:
        for call in self._attempts.pop(tool, []):
            await kit.outbox.put(replace(call, used=call.used and used))


def likely_tools(state: TurnState) -> list[tuple[Tool, tuple[Guideline, ...]]]:
    """Tools with a question to ask whose guidelines are closest, by words, to what the customer just said."""
    said = " ".join(_unanswered(state))
    if not said or not state.limits.likely_tools:
        return []
    known = state.agent.tool_by_name
    found: dict[str, None] = {}
    for uid, score in index_of(state.agent).scores(said)[: state.limits.likely_tools * 3]:
        guideline = state.agent.guideline_by_uid[uid]
        if score < _LIKELY or not guideline.enabled:
            continue
        for name in guideline.tools:
            tool = known.get(name)
            if tool and (tool.parameters or tool.consequential):
                found.setdefault(name)
    chosen = list(found)[: state.limits.likely_tools]
    return [(known[name], _owners(state, name)) for name in chosen]


def _owners(state: TurnState, tool: str) -> tuple[Guideline, ...]:
    return tuple(g for g in state.agent.guidelines if g.enabled and tool in g.tools)


def _unanswered(state: TurnState) -> list[str]:
    """What the customer said since the last reply, oldest first.

    By turn before place: a message may come while the turn before it is still being answered.
    """
    said = [
        ((entry.turn, entry.offset), entry.event)
        for entry in state.history
        if isinstance(entry.event, MessageEvent)
    ]
    replies = [
        place
        for place, message in said
        if message.source is not Source.CUSTOMER and place[0] < state.turn
    ]
    last = max(replies, default=(-1, -1))
    return [
        message.text
        for place, message in sorted(said, key=lambda pair: pair[0])
        if message.source is Source.CUSTOMER and place > last
    ]
