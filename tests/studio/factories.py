"""Rows for tests, one plain function each: what a test does not say is something ordinary and unlike the others."""

from collections.abc import Iterable
from decimal import Decimal
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from studio.models import (
    Agent,
    CannedResponse,
    Customer,
    Event,
    Guideline,
    GuidelineExample,
    ModelConnection,
    ModelPrice,
    Relationship,
    Session,
    Term,
    Tool,
    ToolOverlap,
    Turn,
)
from studio.operations.agents import allow_tool, publish, save_guideline
from studio.operations.relating import save_overlap, save_relationship
from studio.operations.sessions import open_session
from studio.operations.wording import save_response, save_term

PASSWORD = "correct horse battery"
_numbers = count(1)


def make_user(*roles: str, username: str = "", **overrides: Any) -> User:
    """A person with these roles, whose password is PASSWORD."""
    name = username or f"{'-'.join(roles) or 'stranger'}{next(_numbers)}"
    user = User.objects.create_user(name, password=PASSWORD, **overrides)
    user.groups.set(Group.objects.get_or_create(name=role)[0] for role in roles)
    return user


def make_agent(**overrides: Any) -> Agent:
    number = next(_numbers)
    values = {"slug": f"agent-{number}", "name": f"Agent {number}", "description": "Friendly."}
    return Agent.objects.create(**(values | overrides))


def make_tool(agent: Agent | None = None, **overrides: Any) -> Tool:
    """A tool of the shed, which `agent` may use."""
    values: dict[str, Any] = {
        "name": f"look_up_{next(_numbers)}",
        "description": "Looks something up.",
        "parameters": [{"name": "number", "schema": {"type": "string"}}],
    }
    tool = Tool.objects.create(**(values | overrides))
    if agent is not None:
        allow_tool(agent, tool)
    return tool


def make_guideline(
    agent: Agent | None = None,
    *,
    tools: Iterable[Tool] = (),
    reevaluate_after: Iterable[Tool] = (),
    canned_responses: Iterable[CannedResponse] = (),
    matching: Iterable[str] = (),
    not_matching: Iterable[str] = (),
    **overrides: Any,
) -> Guideline:
    number = next(_numbers)
    values = {"condition": f"the customer asks for {number}", "action": f"say {number}"}
    guideline = Guideline(agent=agent or make_agent(), **(values | overrides))
    return save_guideline(
        guideline,
        tools=tools,
        reevaluate_after=reevaluate_after,
        canned_responses=canned_responses,
        examples=[
            GuidelineExample(text=text, matches=matches)
            for matches, texts in ((True, matching), (False, not_matching))
            for text in texts
        ],
    )


def make_relationship(
    source: Guideline, *targets: Guideline, kind: str = "has_priority_over", **overrides: Any
) -> Relationship:
    relationship = Relationship(agent=source.agent, source=source, kind=kind, **overrides)
    return save_relationship(relationship, targets=targets)


def make_overlap(agent: Agent, *tools: Tool, **overrides: Any) -> ToolOverlap:
    return save_overlap(ToolOverlap(agent=agent, **overrides), tools=tools)


def make_response(agent: Agent, **overrides: Any) -> CannedResponse:
    values = {"text": f"Good day, this is {next(_numbers)}."}
    return save_response(CannedResponse(agent=agent, **(values | overrides)))


def make_term(agent: Agent, **overrides: Any) -> Term:
    number = next(_numbers)
    values = {"name": f"Term {number}", "description": f"What {number} means."}
    return save_term(Term(agent=agent, **(values | overrides)))


def make_published(**overrides: Any) -> Agent:
    """An agent with one guideline, published as version 1."""
    agent = make_agent(**overrides)
    make_guideline(agent)
    publish(agent, note="First.", by=None)
    return agent


def make_customer(**overrides: Any) -> Customer:
    return Customer.objects.create(**({"name": f"Customer {next(_numbers)}"} | overrides))


def make_session(agent: Agent | None = None, **overrides: Any) -> Session:
    return open_session(agent=agent or make_agent(), **overrides)


def make_turn(session: Session, *, text: str = "Hello", **overrides: Any) -> Turn:
    """The session's next turn, with the customer's message that asked for it; FINISHED unless said otherwise."""
    session.refresh_from_db()
    values = {
        "number": session.next_turn,
        "first_offset": session.next_offset,
        "state": Turn.State.FINISHED,
    }
    turn = Turn.objects.create(session=session, **(values | overrides))
    Event.objects.create(
        session=session,
        turn=turn,
        offset=session.next_offset,
        kind="message",
        source="customer",
        data={"text": text},
    )
    Session.objects.filter(pk=session.pk).update(
        next_turn=session.next_turn + 1, next_offset=session.next_offset + 1
    )
    session.refresh_from_db()
    return turn


def ask_to_confirm(turn: Turn, call: str, **overrides: Any) -> Event:
    """A consequential call that awaits the customer's word since this turn."""
    session = Session.objects.get(pk=turn.session_id)
    data = {
        "call": call,
        "tool": "transfer_money",
        "arguments": {"amount": 250, "payee": "Leo"},
        "guidelines": [],
        "labels": {"amount": "amount", "payee": "payee"},
        "asked_at": timezone.now().isoformat(),
    }
    event = Event.objects.create(
        session=session,
        turn=turn,
        offset=session.next_offset,
        kind="confirmation.asked",
        source="system",
        data=data | overrides,
    )
    Session.objects.filter(pk=session.pk).update(next_offset=session.next_offset + 1)
    return event


def make_connection(**overrides: Any) -> ModelConnection:
    values = {"name": f"Connection {next(_numbers)}", "model": "small"}
    return ModelConnection.objects.create(**(values | overrides))


def make_price(**overrides: Any) -> ModelPrice:
    """2.5 USD in, 10 out, per million tokens."""
    values = {"model": f"model-{next(_numbers)}", "input_price": Decimal("2.5")}
    return ModelPrice.objects.create(**({"output_price": Decimal(10)} | values | overrides))
