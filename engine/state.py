"""TurnState, the one mutable value of a turn, and the point in the loop from which a turn can go on."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from engine.canonical import JsonObject
from engine.events import (
    BriefingEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    ModeEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
)
from engine.model.base import Situation
from engine.outcomes import joined_by, transient_guidelines, with_outcome_of
from engine.spec import Agent, Criticality, Guideline
from engine.trail import (
    CallState,
    DecisionState,
    GuidelineMatch,
    MatchState,
    ToolCall,
    ToolDecision,
    ToolInsight,
    TrailEntry,
)


class Step(StrEnum):
    """The steps of the loop (ENGINE.md §1), in order."""

    CONFIRMING = "confirming"
    MATCHING = "matching"
    RESOLVING = "resolving"
    CALLING = "calling"
    RUNNING = "running"
    WRITING = "writing"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything before `step` of `iteration` is in the trail and need not be done again."""

    step: Step = Step.CONFIRMING
    iteration: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one turn; `max_iterations` is the agent's."""

    max_calls: int = 20
    batch_retries: int = 2
    likely_tools: int = 2
    # A call waits so long for the customer's word: turns after the one in which it was asked for, and seconds.
    confirmation_turns: int = 5
    confirmation_seconds: float = 1800.0
    choice_seconds: float = 5.0  # for the choices of one tool


@dataclass(kw_only=True)
class TurnState:
    """What a turn knows so far. Built from the trail again when a turn resumes."""

    agent: Agent
    turn: int
    history: tuple[RecordedEvent, ...]
    variables: JsonObject = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    matches: dict[str, GuidelineMatch] = field(default_factory=dict)
    decisions: list[ToolDecision] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    insights: list[ToolInsight] = field(default_factory=list)
    _rendered: dict[int, str] = field(default_factory=dict)

    def recall(self, trail: Iterable[TrailEntry]) -> None:
        """Take in what an interrupted run of this turn has recorded."""
        for entry in trail:
            self.learn(entry)

    def learn(self, entry: TrailEntry) -> None:
        match entry:
            case GuidelineMatch():
                self.matches[entry.guideline] = entry
            case ToolDecision():
                self.decisions.append(entry)
            case ToolCall():
                self.calls[entry.uid] = entry
                self.agent = joined_by(self.agent, entry)
                self.history = with_outcome_of(self.history, entry)
            case ToolInsight():
                self.insights.append(entry)
            case _:  # model calls, adherence and limits change nothing that follows
                pass

    def witness(self, event: Event) -> None:
        """Add an event of this turn to the history that later questions see."""
        offset = self.history[-1].offset + 1 if self.history else 1
        self.history += (RecordedEvent(offset=offset, turn=self.turn, event=event),)

    @property
    def situation(self) -> Situation:
        return Situation(
            agent=self.agent,
            history=self.history,
            turn=self.turn,
            variables=self.variables,
            rendered=self._rendered,
        )

    def history_at(self, moment: datetime) -> tuple[RecordedEvent, ...]:
        """What a question saw that was asked then: not what this turn did since."""
        return tuple(entry for entry in self.history if self._stood(entry, moment))

    def _stood(self, entry: RecordedEvent, moment: datetime) -> bool:
        if entry.turn < self.turn:
            return True
        match entry.event:
            case ToolFinishedEvent(call=uid):
                call = self.calls.get(uid)
                return call is None or call.ended_at is None or call.ended_at <= moment
            case ConfirmationAskedEvent(asked_at=asked_at):
                return asked_at <= moment
            case MessageEvent(source=source):
                return source is Source.CUSTOMER
            case ModeEvent(source=source):
                return source is not Source.SYSTEM  # a turn hands over only after its reply
            case BriefingEvent():
                return False
            case _:
                return True

    def in_force(self, guideline: Guideline) -> bool:
        match = self.matches.get(guideline.uid)
        return match is not None and match.state is MatchState.MATCHED

    def matched(self) -> list[Guideline]:
        """The guidelines in force, by criticality, then priority, then the author's order."""
        rank = {Criticality.HIGH: 0, Criticality.MEDIUM: 1, Criticality.LOW: 2}
        found = filter(self.in_force, self.agent.guidelines)
        return sorted(found, key=lambda g: (rank[g.criticality], -g.priority))

    def matched_in(self, iteration: int) -> list[Guideline]:
        """The guidelines that came into force in this iteration."""
        return [g for g in self.matched() if self.matches[g.uid].iteration == iteration]

    def to_run(self) -> list[ToolDecision]:
        """Decisions of this iteration to run a tool whose call was not seen to its end."""
        open_calls = [
            decision
            for decision in self.decisions
            if decision.iteration == self.checkpoint.iteration
            and decision.state is DecisionState.NEEDS_TO_RUN
            and self._is_open(decision.call)
        ]
        return list({decision.call: decision for decision in open_calls}.values())

    def _is_open(self, uid: str) -> bool:
        call = self.calls.get(uid)
        return call is None or call.state in {CallState.STARTED, CallState.CANCELLED}

    def briefing(self) -> BriefingEvent | None:
        """What the writer of this turn's reply was told, if the turn came that far before it was interrupted."""
        for entry in reversed(self.history):
            if entry.turn == self.turn and isinstance(entry.event, BriefingEvent):
                return entry.event
        return None

    def transient(self) -> dict[str, str]:
        """The guidelines that results brought along for this turn only: uid → the tool that gave it."""
        return {
            g.uid: call.tool for call in self.calls.values() for g in transient_guidelines(call)
        }

    def calls_done(self, *, iteration: int | None = None) -> list[ToolCall]:
        return [
            call
            for call in self.calls.values()
            if call.state is CallState.DONE and iteration in {None, call.iteration}
        ]


def customer_messages(history: Iterable[RecordedEvent]) -> list[tuple[int, str]]:
    """(offset, text) of what the customer said, newest first."""
    found = [
        (entry.offset, entry.event.text)
        for entry in history
        if isinstance(entry.event, MessageEvent) and entry.event.source is Source.CUSTOMER
    ]
    return found[::-1]


def unanswered(history: Iterable[RecordedEvent], turn: int) -> list[str]:
    """What the customer said since the last reply before `turn`, oldest first.

    By turn before place: a message may come while the turn before it is still being answered.
    """
    said = [
        ((entry.turn, entry.offset), entry.event)
        for entry in history
        if isinstance(entry.event, MessageEvent)
    ]
    replies = [
        place
        for place, message in said
        if message.source is not Source.CUSTOMER and place[0] < turn
    ]
    last = max(replies, default=(-1, -1))
    return [
        message.text
        for place, message in sorted(said, key=lambda pair: pair[0])
        if message.source is Source.CUSTOMER and place > last
    ]
