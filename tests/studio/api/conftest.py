"""Callers of the API, one per role, and somebody to talk about.

Loaded before Django is set up when these tests are named on the command line, hence the imports inside.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.studio.api.calling import Caller


@pytest.fixture
def caller_as(db: None) -> Callable[..., Caller]:
    """A caller with these roles; the same one for the same roles."""
    from django.contrib.auth.models import Group, User

    from studio.models import ApiToken

    made: dict[tuple[str, ...], Caller] = {}

    def make(*roles: str) -> Caller:
        if roles not in made:
            user = User.objects.create_user("-".join(roles) or "stranger")
            user.groups.set(Group.objects.get_or_create(name=role)[0] for role in roles)
            _row, token = ApiToken.make(user.pk)
            made[roles] = Caller(token)
        return made[roles]

    return make


@pytest.fixture
def admin(caller_as: Callable[..., Caller]) -> Caller:
    return caller_as("admin")


@pytest.fixture
def nobody() -> Caller:
    """Somebody without a token."""
    return Caller()


@pytest.fixture
def agent(db: None) -> Any:
    """An agent with two guidelines, one of which owns a tool."""
    from studio.models import Agent, Guideline, Tool
    from studio.operations.agents import allow_tool, save_guideline

    agent = Agent.objects.create(slug="depot", name="Depot", description="Parcels.")
    tool = Tool.objects.create(
        name="find_parcel",
        description="Where a parcel is.",
        parameters=[{"name": "number", "schema": {"type": "string"}}],
    )
    allow_tool(agent, tool)
    owner = Guideline(agent=agent, uid="parcel", condition="asks for a parcel", action="find it")
    save_guideline(owner, tools=[tool])
    save_guideline(Guideline(agent=agent, uid="brief", action="be brief"))
    return agent


@pytest.fixture
def session(agent: Any) -> Any:
    from studio.operations.sessions import open_session

    return open_session(agent=agent, title="First")
