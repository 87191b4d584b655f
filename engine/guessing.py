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
from engine.choices import offered
from engine.errors import ModelError
from engine.kit import Kit
from engine.model.base import InferToolCalls
from engine.relevance import index_of
from engine.settling import answered_tools
from engine.spec import Guideline, Tool
from engine.state import TurnState, unanswered
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

        narrowed = await offered(state, kit, tool)
        if isinstance(narrowed, str):
            return None
        try:
            return await infer(state, kit, narrowed, guidelines, record=put_by)
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
    said = " ".join(unanswered(state.history, state.turn))
    if not said or not state.limits.likely_tools:
        return []
    known = state.agent.tool_by_name
    settled = answered_tools(state)
    found: dict[str, None] = {}
    for uid, score in index_of(state.agent).scores(said)[: state.limits.likely_tools * 3]:
        guideline = state.agent.guideline_by_uid[uid]
        if score < _LIKELY or not guideline.enabled:
            continue
        for name in guideline.tools:
            tool = known.get(name)
            if tool and (tool.parameters or tool.consequential) and name not in settled:
                found.setdefault(name)
    chosen = list(found)[: state.limits.likely_tools]
    return [(known[name], _owners(state, name)) for name in chosen]


def _owners(state: TurnState, tool: str) -> tuple[Guideline, ...]:
    return tuple(g for g in state.agent.guidelines if g.enabled and tool in g.tools)
