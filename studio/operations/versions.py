"""Which version is meant by "draft", "published" or a number."""

from django.utils.translation import gettext as _

from studio.models import Agent, AgentVersion
from studio.operations.agents import snapshot

DRAFT, PUBLISHED = "draft", "published"


class VersionUnknownError(Exception):
    """The agent has no such version; the message says what to choose."""


def version_named(agent: Agent, name: str | int) -> AgentVersion:
    """The version, of the draft as it is now; its spec is read where it is asked for. Raises VersionUnknownError."""
    text = str(name).strip()
    if text == DRAFT:
        return snapshot(agent)
    if text == PUBLISHED:
        if agent.published_id is None:
            raise VersionUnknownError(
                _("%(agent)s has no published version yet: publish it, or take the draft.")
                % {"agent": agent.name}
            )
        return AgentVersion.objects.without_spec().get(pk=agent.published_id)
    if not text.isdecimal():
        raise VersionUnknownError(_("A version is “draft”, “published” or a number."))
    return numbered(agent, int(text))


def numbered(agent: Agent, number: int) -> AgentVersion:
    """Raises VersionUnknownError."""
    rows = AgentVersion.objects.without_spec().filter(agent=agent, number=number)
    version = rows.first() if number < 2**31 else None
    if version is None:
        raise VersionUnknownError(
            _("%(agent)s has no version %(number)s.") % {"agent": agent.name, "number": number}
        )
    return version
