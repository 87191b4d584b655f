"""What differs between two compiled agents, guideline by guideline: what publishing or restoring would change."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.utils.translation import gettext as _

from engine import spec
from studio.bridge import agent_spec, compile_agent
from studio.models import Agent
from studio.operations.part_changes import (
    PartChange,
    agent_sentences,
    part_changes,
    tool_sentences,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One guideline before and after; `parts` are the names of the fields that differ."""

    before: spec.Guideline
    after: spec.Guideline
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """`parts` are its terms, responses and relationships; `others` sentences about what is none of these."""

    added: tuple[spec.Guideline, ...]
    changed: tuple[Changed, ...]
    removed: tuple[spec.Guideline, ...]
    parts: tuple[PartChange, ...]
    others: tuple[str, ...]

    @property
    def count(self) -> int:
        guidelines = len(self.added) + len(self.changed) + len(self.removed)
        return guidelines + len(self.parts) + len(self.others)


_PARTS = (
    "condition",
    "action",
    "criticality",
    "priority",
    "enabled",
    "tags",
    "tools",
    "reevaluate_after",
    "composition",
    "canned_responses",
    "examples",
)


def draft_spec(agent: Agent) -> spec.Agent:
    """The draft as it would be published now, compiled once after each change. `agent` as it is in the database."""
    if agent.snapshot is not None:
        return agent_spec(agent.snapshot)
    return _compiled(agent.pk, agent.revision, agent.updated_at)


@lru_cache(maxsize=16)
def _compiled(pk: int, _revision: int, _changed_at: datetime) -> spec.Agent:
    return compile_agent(Agent.objects.get(pk=pk))


def compare(before: spec.Agent, after: spec.Agent) -> Changes:
    old, new = before.guideline_by_uid, after.guideline_by_uid
    changed = [
        Changed(before=old[g.uid], after=g, parts=parts)
        for g in after.guidelines
        if g.uid in old and (parts := _parts(old[g.uid], g))
    ]
    return Changes(
        added=tuple(g for g in after.guidelines if g.uid not in old),
        changed=tuple(changed),
        removed=tuple(g for g in before.guidelines if g.uid not in new),
        parts=part_changes(before, after),
        others=tuple(_others(before, after)),
    )


def _parts(before: spec.Guideline, after: spec.Guideline) -> tuple[str, ...]:
    return tuple(name for name in _PARTS if getattr(before, name) != getattr(after, name))


def _others(before: spec.Agent, after: spec.Agent) -> list[str]:
    said = agent_sentences(before, after)
    if _order(before, after) != _order(after, before):
        said.append(_("The guidelines stand in another order."))
    return said + tool_sentences(before, after)


def _order(one: spec.Agent, other: spec.Agent) -> list[str]:
    return [g.uid for g in one.guidelines if g.uid in other.guideline_by_uid]
