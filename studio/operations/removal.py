"""Deleting an agent with everything that hangs on it."""

from django.db import transaction

from studio.models import Agent, Session, Turn


class AgentBusyError(Exception):
    """A turn of the agent is waiting or running."""


@transaction.atomic
def delete_agent(agent: Agent) -> None:
    """Delete the draft, the versions and all sessions with their record. Raises AgentBusyError; tools stay."""
    sessions = Session.objects.filter(agent=agent)
    if Turn.objects.unfinished().filter(session__in=sessions).exists():
        raise AgentBusyError
    # In this order, because what was said keeps its version, and the agent what it has published.
    sessions.delete()
    Agent.objects.filter(pk=agent.pk).update(published=None, snapshot=None)
    Agent.objects.get(pk=agent.pk).delete()
