"""The session as the offline model reads it: what is new, what came just before, what tools said."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from engine.canonical import JsonObject
from engine.events import (
    Answer,
    BriefingEvent,
    MessageEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
)
from engine.model.base import Situation
from engine.pending import answered_in

MAX_MESSAGE_CHARACTERS = 4_000
"""Longer messages are read up to here: enough for what people mean, and it bounds the time."""

_REMEMBERED_TURNS = 12
_SPACES = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n\s*\n")


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message of a customer or of an agent."""

    text: str
    offset: int
    turn: int


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Views of a Situation; lists are oldest first."""

    situation: Situation

    @cached_property
    def _split(self) -> int:
        """The index in the history after the last reply of an earlier turn."""
        history = self.situation.history
        for index in range(len(history) - 1, -1, -1):
            entry = history[index]
            if entry.turn < self.situation.turn and _is_reply(entry):
                return index + 1
        return 0

    @cached_property
    def new(self) -> list[Said]:
        """The customer's messages since the last reply."""
        return list(_customer(self.situation.history[self._split :]))

    @cached_property
    def new_text(self) -> str:
        return "\n".join(said.text for said in self.new)

    @cached_property
    def earlier(self) -> list[Said]:
        """The customer's messages before those, of the last turns."""
        first = self.situation.turn - _REMEMBERED_TURNS
        return [
            said for said in _customer(self.situation.history[: self._split]) if said.turn >= first
        ]

    @cached_property
    def last_reply(self) -> str:
        """What the agent said last, or nothing yet."""
        if not self._split:
            return ""
        event = self.situation.history[self._split - 1].event
        return event.text if isinstance(event, MessageEvent) else ""

    @cached_property
    def last_question(self) -> str:
        """The last sentence of the agent's last reply when it asks something."""
        reply = self.last_reply.strip()
        if "?" not in reply:
            return ""
        end = reply.rindex("?")
        start = max(reply.rfind(mark, 0, end) for mark in (".", "!", "?", "\n"))
        return reply[start + 1 : end + 1].strip()

    @cached_property
    def is_only_an_answer(self) -> bool:
        """Whether the newest messages give their word on a call that awaited it, and say nothing else."""
        settling = (Answer.CONFIRMED, Answer.DECLINED)
        answers = [
            answered.event
            for answered in answered_in(self.situation.history, self.situation.turn)
            if answered.answer in settling and answered.event.source is Source.CUSTOMER
        ]
        return bool(answers) and not any(event.also.strip() for event in answers)

    @cached_property
    def asked(self) -> str:
        """What the agent asked for in its last reply: its question, and the labels that it was told to ask for."""
        return "; ".join([self.last_question, *self.labels_asked_for]).strip("; ")

    @cached_property
    def labels_asked_for(self) -> list[str]:
        """Labels of the parameters that the agent was told to ask for."""
        return [str(item.get("what", "")) for item in self._asked_for]

    @cached_property
    def waiting_tools(self) -> set[str]:
        """Names of the tools for whose sake the agent asked something in its last reply."""
        return {str(item.get("needed for", "")) for item in self._asked_for}

    @cached_property
    def _asked_for(self) -> list[JsonObject]:
        """What the last briefing told the agent to ask for."""
        return [
            item
            for entry in self.situation.history[: self._split]
            if isinstance(entry.event, BriefingEvent) and entry.turn == self.last_turn
            for key in ("ask for", "ask to correct")
            for item in entry.event.content.get(key, ())
            if isinstance(item, dict)
        ]

    @cached_property
    def last_turn(self) -> int | None:
        """The number of the turn that the last reply ended."""
        return self.situation.history[self._split - 1].turn if self._split else None

    @cached_property
    def guidelines_before(self) -> tuple[str, ...]:
        """Uids of the guidelines that were in force when the last reply was written."""
        for entry in reversed(self.situation.history[: self._split]):
            if isinstance(entry.event, BriefingEvent) and entry.turn == self.last_turn:
                return entry.event.guidelines
        return ()

    @cached_property
    def briefing(self) -> JsonObject:
        """What the writer of this turn's reply is told, or nothing yet."""
        for entry in reversed(self.situation.history):
            if entry.turn == self.situation.turn and isinstance(entry.event, BriefingEvent):
                return entry.event.content
        return {}

    @cached_property
    def results(self) -> list[tuple[int, ToolFinishedEvent]]:
        """`(offset, event)` of the calls that ended well in this turn."""
        return [
            (offset, event) for offset, event in self._calls(this_turn=True) if event.error is None
        ]

    @cached_property
    def failures(self) -> list[ToolFinishedEvent]:
        """The calls of this turn that failed."""
        return [event for _, event in self._calls(this_turn=True) if event.error is not None]

    @cached_property
    def earlier_results(self) -> list[tuple[int, ToolFinishedEvent]]:
        """`(offset, event)` of the calls that ended well in earlier turns."""
        return [
            (offset, event) for offset, event in self._calls(this_turn=False) if event.error is None
        ]

    def offset_of_last_run(self, tool: str) -> int:
        """The offset of the tool's last call in the session, or -1."""
        offsets = [
            entry.offset
            for entry in self.situation.history
            if isinstance(entry.event, ToolFinishedEvent) and entry.event.tool == tool
        ]
        return max(offsets, default=-1)

    def _calls(self, *, this_turn: bool) -> Iterator[tuple[int, ToolFinishedEvent]]:
        for entry in self.situation.history:
            is_now = entry.turn == self.situation.turn
            if isinstance(entry.event, ToolFinishedEvent) and is_now is this_turn:
                yield entry.offset, entry.event


def _is_reply(entry: RecordedEvent) -> bool:
    event = entry.event
    return isinstance(event, MessageEvent) and event.source in (Source.AGENT, Source.OPERATOR)


def _customer(entries: tuple[RecordedEvent, ...]) -> Iterator[Said]:
    for entry in entries:
        event = entry.event
        if isinstance(event, MessageEvent) and event.source is Source.CUSTOMER:
            text = _SPACES.sub(" ", event.text[:MAX_MESSAGE_CHARACTERS])
            text = _EMPTY_LINES.sub("\n", text)
            yield Said(text=text, offset=entry.offset, turn=entry.turn)
