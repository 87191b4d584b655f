"""Recorded sessions for tests of the pages: rows as a worker leaves them, without running one."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import F
from django.utils import timezone

from studio.models import (
    Agent,
    Event,
    Guideline,
    GuidelineMatch,
    ModelCall,
    PromptPart,
    Session,
    Tool,
    ToolCall,
    ToolDecision,
    ToolInsight,
    Turn,
)
from studio.operations.agents import save_guideline, snapshot
from studio.operations.sessions import open_session

_numbers = count(1)


def make_person(*roles: str) -> User:
    """Somebody with these roles; without any, a stranger."""
    person = User.objects.create_user(f"person-{next(_numbers)}")
    person.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    return person


def make_bank(*conditions: str) -> Agent:
    """An agent whose guidelines say these conditions; the first owns the tool `get_balance`."""
    agent = Agent.objects.create(slug=f"bank-{next(_numbers)}", name="Harbor Bank")
    tool, _ = Tool.objects.get_or_create(name="get_balance", defaults={"description": "Balance."})
    agent.tools.add(tool)
    for place, condition in enumerate(conditions or ("the customer asks for the balance",)):
        guideline = Guideline(agent=agent, condition=condition, action=f"act on {condition}")
        save_guideline(guideline, tools=[tool] if place == 0 else [])
    return agent


@dataclass
class Recorded:
    """Writes a session as the worker would, event by event and entry by entry."""

    agent: Agent = field(default_factory=make_bank)
    session: Session = field(init=False)
    now: datetime = field(default_factory=timezone.now)

    def __post_init__(self) -> None:
        self.session = open_session(agent=self.agent)

    def uid(self, place: int = 0) -> str:
        return self.agent.guidelines.order_by("position")[place].uid

    def event(self, turn: Turn | None, kind: str, source: str = "agent", **data: Any) -> Event:
        Session.objects.filter(pk=self.session.pk).update(next_offset=F("next_offset") + 1)
        self.session.refresh_from_db()
        return Event.objects.create(
            session=self.session,
            turn=turn,
            offset=self.session.next_offset - 1,
            kind=kind,
            source=source,
            data=data,
        )

    def turn(
        self, text: str = "What is my balance?", *, state: str = "FINISHED", **fields: Any
    ) -> Turn:
        """A turn with the customer's message; finished ones took 930 ms."""
        self.session.refresh_from_db()
        over = state not in {"QUEUED", "RUNNING"}
        turn = Turn.objects.create(
            session=self.session,
            number=self.session.next_turn,
            first_offset=self.session.next_offset,
            state=state,
            version=None if state == "QUEUED" else snapshot(self.agent),
            **fields,
        )
        Turn.objects.filter(pk=turn.pk).update(
            created_at=self.now,
            finished_at=self.now + timedelta(milliseconds=930) if over else None,
        )
        turn.refresh_from_db()
        Session.objects.filter(pk=self.session.pk).update(next_turn=F("next_turn") + 1)
        self.event(turn, "message", "customer", text=text)
        return turn

    def answer(self, turn: Turn, text: str, model: str = "gpt-x", **data: Any) -> Event:
        return self.event(turn, "message", "agent", text=text, model=model, **data)

    def match(
        self, turn: Turn, place: int, state: str = "matched", because: str = "", **fields: Any
    ) -> None:
        GuidelineMatch.objects.create(
            turn=turn,
            guideline=self.uid(place),
            state=state,
            because=because,
            started_at=self.now,
            ended_at=self.now + timedelta(milliseconds=210),
            **fields,
        )

    def decide(
        self, turn: Turn, state: str, *, place: int = 0, tool: str = "get_balance", **fields: Any
    ) -> None:
        ToolDecision.objects.create(
            turn=turn,
            guideline=self.uid(place),
            tool=tool,
            state=state,
            started_at=self.now,
            **fields,
        )

    def call(
        self, turn: Turn, uid: str, state: str = "done", *, tool: str = "get_balance", **fields: Any
    ) -> None:
        ToolCall.objects.create(
            turn=turn,
            uid=uid,
            tool=tool,
            state=state,
            started_at=self.now,
            ended_at=None if state == "started" else self.now + timedelta(milliseconds=300),
            **fields,
        )

    def insight(self, turn: Turn, parameter: str, kind: str = "missing", **data: Any) -> None:
        ToolInsight.objects.create(
            turn=turn,
            tool="get_balance",
            parameter=parameter,
            kind=kind,
            data=data,
            started_at=self.now,
        )

    def ask_model(self, turn: Turn, uid: str, begin: int, end: int, **fields: Any) -> None:
        """A model call from `begin` to `end` in milliseconds of the turn."""
        part, _ = PromptPart.objects.get_or_create(
            key="p1", defaults={"text": "Judge <b>these</b>."}
        )
        ModelCall.objects.create(
            **{
                "turn": turn,
                "uid": uid,
                "question": "MatchGuidelines",
                "model": "gpt-x",
                "prompt_version": "1",
                "request_key": uid,
                "messages": [["system", [part.key]]],
                "answer_text": '{"judgements": []}',
                "started_at": self.now + timedelta(milliseconds=begin),
                "ended_at": self.now + timedelta(milliseconds=end),
                **fields,
            }
        )
