"""Writing an agent's draft, and its versions.

Whatever changes a draft goes through here, because each change must let the next turn see it (`mark_changed`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils import timezone

from studio.bridge import agent_spec, compile_agent
from studio.models import (
    Agent,
    AgentVersion,
    CannedResponse,
    Guideline,
    GuidelineExample,
    Tool,
)
from studio.operations.contents import (
    GUIDELINE_FIELDS,
    content_of,
    content_of_spec,
    rows_of_tools,
    settled,
    tools_named,
)
from studio.operations.drafts import replace_draft

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


class GuidelineChangedError(Exception):
    """Somebody else saved or deleted the guideline meanwhile; `stored` is what there is now, or None."""

    def __init__(self, stored: Guideline | None) -> None:
        super().__init__(f"guideline {stored.uid!r} changed" if stored else "guideline deleted")
        self.stored = stored


def mark_changed(*agents: int) -> None:
    """The drafts of these agents (by pk) are no longer what their snapshots say."""
    Agent.objects.filter(pk__in=agents).update(
        snapshot=None, revision=F("revision") + 1, updated_at=timezone.now()
    )


def snapshot(agent: Agent) -> AgentVersion:
    """The draft as an AgentVersion: stored on first use, the same row for the same fingerprint."""
    agent.refresh_from_db(fields=["snapshot", "revision"])
    if agent.snapshot_id is not None:
        return AgentVersion.objects.without_spec().get(pk=agent.snapshot_id)
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


# What `save_guideline` writes of a stored guideline: not its place, which others may have changed meanwhile.
_WRITTEN = (*GUIDELINE_FIELDS, "updated_at")


@transaction.atomic
def save_guideline(
    guideline: Guideline,
    *,
    tools: Iterable[Tool] | None = None,
    reevaluate_after: Iterable[Tool] | None = None,
    examples: Iterable[GuidelineExample] | None = None,
    canned_responses: Iterable[CannedResponse] | None = None,
    unchanged_since: datetime | None = None,
) -> Guideline:
    """Store a new or changed guideline with its parts; a part that is None stays as it is.

    `examples` are unsaved rows (text, matches); they replace those there are. With `unchanged_since`, the
    `updated_at` that its writer has read, raises GuidelineChangedError where the stored one is another.
    """
    if guideline.pk is None:
        guideline.position = guideline.position or _last_position(guideline.agent) + 1
        guideline.save()
    else:
        if unchanged_since is not None:
            _refuse_changed(guideline, unchanged_since)
        guideline.save(update_fields=_WRITTEN)
    if tools is not None:
        guideline.tools.set(tools)
    if reevaluate_after is not None:
        guideline.reevaluate_after.set(reevaluate_after)
    if canned_responses is not None:
        guideline.canned_responses.set(canned_responses)
    if examples is not None:
        guideline.examples.all().delete()
        rows = list(examples)
        for example in rows:
            example.guideline = guideline
        GuidelineExample.objects.bulk_create(rows)
    mark_changed(guideline.agent_id)
    return guideline


def _last_position(agent: Agent) -> int:
    return agent.guidelines.aggregate(last=Max("position"))["last"] or 0


def _refuse_changed(guideline: Guideline, unchanged_since: datetime) -> None:
    stored = Guideline.objects.select_for_update().filter(pk=guideline.pk).first()
    if stored is None or stored.updated_at != unchanged_since:
        raise GuidelineChangedError(stored)


@transaction.atomic
def set_enabled(agent: Agent, uids: Iterable[str], *, enabled: bool) -> int:
    """How many guidelines changed.

    `updated_at` stays: it is about what a guideline says, and switching one does not disturb who edits it.
    """
    changed = agent.guidelines.filter(uid__in=list(uids)).exclude(enabled=enabled)
    count: int = changed.update(enabled=enabled)
    if count:
        mark_changed(agent.pk)
    return count


@transaction.atomic
def move_guideline(guideline: Guideline, *, steps: int) -> None:
    """Move up (negative) or down among all guidelines of the agent; stops at the ends."""
    pks, positions = _order(guideline.agent)
    here = pks.index(guideline.pk)
    there = max(0, min(len(pks) - 1, here + steps))
    pks.insert(there, pks.pop(here))
    _write_order(guideline.agent, pks, positions)


@transaction.atomic
def place_guideline(guideline: Guideline, *, beside: Guideline, after: bool) -> None:
    """Move to the place right before or after another guideline of the agent; the same again changes nothing."""
    pks, positions = _order(guideline.agent)
    pks.remove(guideline.pk)
    if beside.pk in pks:
        pks.insert(pks.index(beside.pk) + after, guideline.pk)
        _write_order(guideline.agent, pks, positions)


def _order(agent: Agent) -> tuple[list[int], dict[int, int]]:
    """Primary keys in their order, and the position of each."""
    rows = agent.guidelines.select_for_update().order_by("position", "pk")
    positions = dict(rows.values_list("pk", "position"))
    return list(positions), positions


def _write_order(agent: Agent, pks: Sequence[int], positions: dict[int, int]) -> None:
    moved = [
        Guideline(pk=pk, position=position)
        for position, pk in enumerate(pks, start=1)
        if positions[pk] != position
    ]
    if moved:
        Guideline.objects.bulk_update(moved, ["position"], batch_size=500)
        mark_changed(agent.pk)


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
    for overlap in agent.overlaps.filter(tools=tool):
        overlap.tools.remove(tool)
        if overlap.tools.count() < 2:
            overlap.delete()
    mark_changed(agent.pk)


def publish(agent: Agent, *, note: str, by: "User | None") -> AgentVersion:
    """Give the draft the next number and make it the published version.

    Raises NothingToPublishError where the draft is what is published, GateShutError where a suite that gates
    publishing has not passed against it.
    """
    for _attempt in range(3):
        try:
            return _publish(agent, note=note, by=by)
        except IntegrityError:  # somebody published at the same moment and took the number
            continue
    return _publish(agent, note=note, by=by)


@transaction.atomic
def _publish(agent: Agent, *, note: str, by: "User | None") -> AgentVersion:
    from studio.operations.gating import require_gates  # which reads runs, and those drafts

    agent.refresh_from_db()
    value = compile_agent(agent)
    if agent.published is not None and agent.published.fingerprint == value.fingerprint:
        raise NothingToPublishError
    require_gates(agent, value.fingerprint)
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
    content = settled(content_of_spec(agent_spec(version)), content_of(agent))
    names = tools_named(content)
    tools = rows_of_tools(names)
    replace_draft(agent, content, tools)
    mark_changed(agent.pk)
    return sorted(names - tools.keys())
