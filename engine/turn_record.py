"""One turn as it was recorded or played: everything that a comparison or an expectation reads of it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from engine.canonical import canonical_json
from engine.events import BY_TOOL, Event, MessageEvent, Mode, ModeEvent, Source
from engine.outcomes import joined_by, transient_guidelines
from engine.spec import Agent, Guideline
from engine.trail import (
    Adherence,
    CallState,
    GuidelineMatch,
    LimitReached,
    MatchState,
    ModelCall,
    ReplySource,
    ToolCall,
    ToolDecision,
    ToolInsight,
    TrailEntry,
)


@dataclass(frozen=True, kw_only=True)
class TurnRecord:
    """`events` are those of this turn, `trail` its entries in the order of their record; `error` is why it failed.

    `agent` is the agent that it ran on. `cost` is what its model calls cost at today's prices, None where a price is
    not known.
    """

    number: int
    agent: Agent
    events: tuple[Event, ...]
    trail: tuple[TrailEntry, ...]
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str = ""
    cost: float | None = None

    @cached_property
    def matches(self) -> dict[str, GuidelineMatch]:
        """By guideline uid, as each stood at the end of the turn."""
        return {e.guideline: e for e in self.trail if isinstance(e, GuidelineMatch)}

    @cached_property
    def matched(self) -> frozenset[str]:
        """The uids of the guidelines in force at the end of the turn."""
        return frozenset(u for u, m in self.matches.items() if m.state is MatchState.MATCHED)

    @cached_property
    def decisions(self) -> tuple[ToolDecision, ...]:
        return tuple(e for e in self.trail if isinstance(e, ToolDecision))

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """Each call once, as it ended, in the order in which they began."""
        return tuple({e.uid: e for e in self.trail if isinstance(e, ToolCall)}.values())

    @cached_property
    def ran(self) -> tuple[ToolCall, ...]:
        """The calls that were made: whatever came of them, they were not cancelled."""
        return tuple(call for call in self.calls if call.state is not CallState.CANCELLED)

    @cached_property
    def insights(self) -> tuple[ToolInsight, ...]:
        return tuple(e for e in self.trail if isinstance(e, ToolInsight))

    @cached_property
    def adherence(self) -> tuple[Adherence, ...]:
        return tuple(e for e in self.trail if isinstance(e, Adherence))

    @cached_property
    def model_calls(self) -> tuple[ModelCall, ...]:
        return tuple(e for e in self.trail if isinstance(e, ModelCall))

    @cached_property
    def limit(self) -> LimitReached | None:
        return next((e for e in self.trail if isinstance(e, LimitReached)), None)

    @cached_property
    def reply_source(self) -> ReplySource | None:
        found = [e for e in self.trail if isinstance(e, ReplySource)]
        return found[-1] if found else None

    @cached_property
    def said(self) -> tuple[str, ...]:
        """What the customer wrote."""
        return _texts(e for e in self._messages if e.source is Source.CUSTOMER)

    @cached_property
    def reply(self) -> str:
        """What the agent answered, without what its tools said while they worked."""
        agents = (e for e in self._messages if e.source is Source.AGENT)
        return "\n\n".join(_texts(e for e in agents if not e.model.startswith(BY_TOOL)))

    @cached_property
    def handed_over(self) -> bool:
        """Did the turn hand the session over to a person?"""
        return any(
            isinstance(e, ModeEvent) and e.mode is Mode.MANUAL and e.source is Source.SYSTEM
            for e in self.events
        )

    @property
    def duration_ms(self) -> int | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return round((self.ended_at - self.started_at).total_seconds() * 1000)

    @cached_property
    def tokens(self) -> int:
        """Of prompts and answers, of failed attempts too."""
        return sum(call.prompt_tokens + call.completion_tokens for call in self.model_calls)

    @cached_property
    def round_trips(self) -> int:
        """The most model calls of which each began after the one before it had ended; unused ones do not count."""
        count, free_at = 0, None
        for call in sorted((c for c in self.model_calls if c.used), key=lambda c: c.ended_at):
            if free_at is None or call.started_at >= free_at:
                count, free_at = count + 1, call.ended_at
        return count

    def guideline(self, uid: str) -> Guideline | None:
        """The agent's own, or one that a result of this turn brought along, by its uid or its lasting uid."""
        known = self._whole.guideline_by_uid
        if uid in known:
            return known[uid]
        return next((known[own] for own, lasting in self._lasting.items() if lasting == uid), None)

    def lasting_uid(self, uid: str) -> str:
        """The same for the same guideline in every run of the turn: those that results bring are named after calls."""
        return self._lasting.get(uid, uid)

    @cached_property
    def _whole(self) -> Agent:
        agent = self.agent
        for call in self.calls:
            agent = joined_by(agent, call)
        return agent

    @cached_property
    def _lasting(self) -> dict[str, str]:
        """Numbered by tool, in an order that does not hang on which of several parallel calls began first."""
        bringing = [call for call in self.calls if transient_guidelines(call)]
        found: dict[str, str] = {}
        numbers: Counter[str] = Counter()
        for call in sorted(bringing, key=lambda c: (c.iteration, canonical_json(c.arguments))):
            for guideline in transient_guidelines(call):
                numbers[call.tool] += 1
                found[guideline.uid] = f"{call.tool}:{numbers[call.tool]}"
        return found

    @cached_property
    def _messages(self) -> tuple[MessageEvent, ...]:
        return tuple(e for e in self.events if isinstance(e, MessageEvent))


def _texts(messages: Iterable[MessageEvent]) -> tuple[str, ...]:
    return tuple(message.text for message in messages)
