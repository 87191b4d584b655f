"""Writing an agent's draft, and its versions.

Whatever changes a draft goes through here, because each change must let the next turn see it (`mark_changed`).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils import timezone

from studio.bridge import agent_spec, compile_agent
from studio.models import Agent, AgentVersion, Guideline, GuidelineExample, Tool
from studio.operations.drafts import (
    content_of_spec,
    replace_draft,
    rows_of_tools,
    tools_named,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class NothingToPublishError(Exception):
    """The draft is what is published already."""


class ToolInUseError(Exception):
    """Guidelines of the agent still use the tool; `guidelines` are they."""

    def __init__(self, tool: Tool, guidelines: Sequence[Guideline]) -> None:
        super().__init__(f"{tool.name!r} is used by {len(guidelines)} guidelines")
        self.tool = tool
        self.guidelines = guidelines


def mark_changed(*agents: int) -> None:
    """The drafts of these agents (by pk) are no longer what their snapshots say."""
    Agent.objects.filter(pk__in=agents).update(
        snapshot=None, revision=F("revision") + 1, updated_at=timezone.now()
    )


def snapshot(agent: Agent) -> AgentVersion:
    """The draft as an AgentVersion: stored on first use, the same row for the same fingerprint."""
    agent.refresh_from_db(fields=["snapshot", "revision"])
    if agent.snapshot is not None:
        return agent.snapshot
    revision = agent.revision
    agent.refresh_from_db()
    value = compile_agent(agent)
    version, _ = AgentVersion.objects.get_or_create(
        agent=agent, fingerprint=value.fingerprint, number=None, defaults={"spec": value.to_json()}
    )
    Agent.objects.filter(pk=agent.pk, revision=revision).update(snapshot=version)
    return version


@transaction.atomic
def save_agent(agent: Agent) -> Agent:
    agent.save()
    mark_changed(agent.pk)
    return agent


@transaction.atomic
def save_guideline(
    guideline: Guideline,
    *,
    tools: Iterable[Tool] | None = None,
    reevaluate_after: Iterable[Tool] | None = None,
    examples: Iterable[GuidelineExample] | None = None,
) -> Guideline:
    """Store a new or changed guideline with its parts; a part that is None stays as it is.

    `examples` are unsaved rows (text, matches); they replace those there are.
    """
    if guideline.pk is None and not guideline.position:
        last = guideline.agent.guidelines.aggregate(last=Max("position"))["last"]
        guideline.position = (last or 0) + 1
    guideline.save()
    if tools is not None:
        guideline.tools.set(tools)
    if reevaluate_after is not None:
        guideline.reevaluate_after.set(reevaluate_after)
    if examples is not None:
        guideline.examples.all().delete()
        for example in examples:
            example.guideline = guideline
        GuidelineExample.objects.bulk_create(examples)
    mark_changed(guideline.agent_id)
    return guideline


@transaction.atomic
def delete_guideline(guideline: Guideline) -> None:
    guideline.delete()
    mark_changed(guideline.agent_id)


@transaction.atomic
def set_enabled(agent: Agent, uids: Iterable[str], *, enabled: bool) -> int:
    """How many guidelines changed."""
    changed = agent.guidelines.filter(uid__in=list(uids)).exclude(enabled=enabled)
    count: int = changed.update(enabled=enabled, updated_at=timezone.now())
    if count:
        mark_changed(agent.pk)
    return count


@transaction.atomic
def move_guideline(guideline: Guideline, *, steps: int) -> None:
    """Move up (negative) or down among all guidelines of the agent; stops at the ends."""
    rows = list(guideline.agent.guidelines.order_by("position", "pk"))
    here = next(place for place, row in enumerate(rows) if row.pk == guideline.pk)
    there = max(0, min(len(rows) - 1, here + steps))
    rows.insert(there, rows.pop(here))
    for position, row in enumerate(rows, start=1):
        row.position = position
    Guideline.objects.bulk_update(rows, ["position"])
    mark_changed(guideline.agent_id)


@transaction.atomic
def allow_tool(agent: Agent, tool: Tool) -> None:
    agent.tools.add(tool)
    mark_changed(agent.pk)


@transaction.atomic
def disallow_tool(agent: Agent, tool: Tool) -> None:
    """Raises ToolInUseError while guidelines of the agent have the tool attached."""
    users = list(agent.guidelines.filter(tools=tool))
    if users:
        raise ToolInUseError(tool, users)
    agent.tools.remove(tool)
    for guideline in agent.guidelines.filter(reevaluate_after=tool):
        guideline.reevaluate_after.remove(tool)
    mark_changed(agent.pk)


def publish(agent: Agent, *, note: str, by: "User | None") -> AgentVersion:
    """Give the draft the next number and make it the published version.

    Raises NothingToPublishError where the draft is what is published.
    """
    for _attempt in range(3):
        try:
            return _publish(agent, note=note, by=by)
        except IntegrityError:  # somebody published at the same moment and took the number
            continue
    return _publish(agent, note=note, by=by)


@transaction.atomic
def _publish(agent: Agent, *, note: str, by: "User | None") -> AgentVersion:
    agent.refresh_from_db()
    value = compile_agent(agent)
    if agent.published is not None and agent.published.fingerprint == value.fingerprint:
        raise NothingToPublishError
    last = agent.versions.aggregate(last=Max("number"))["last"]
    version = AgentVersion.objects.create(
        agent=agent,
        fingerprint=value.fingerprint,
        spec=value.to_json(),
        number=(last or 0) + 1,
        note=note,
        published_by=by,
        published_at=timezone.now(),
    )
    Agent.objects.filter(pk=agent.pk).update(published=version)
    agent.published = version
    return version


@transaction.atomic
def restore(agent: Agent, version: AgentVersion) -> list[str]:
    """Make the draft what the version was; guidelines keep their uids, and what is published stays published.

    Returns the names of tools that the version used and that are no longer there: those are left out.
    """
    content = content_of_spec(agent_spec(version))
    names = tools_named(content)
    tools = rows_of_tools(names)
    replace_draft(agent, content, tools)
    mark_changed(agent.pk)
    return sorted(names - tools.keys())
