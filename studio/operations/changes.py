"""What differs between two compiled agents, guideline by guideline: what publishing or restoring would change."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from django.utils.translation import gettext as _

from engine import spec
from studio.bridge import agent_spec, compile_agent
from studio.models import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One guideline before and after; `parts` are the names of the fields that differ."""

    before: spec.Guideline
    after: spec.Guideline
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """`others` are sentences about what is not a guideline."""

    added: tuple[spec.Guideline, ...]
    changed: tuple[Changed, ...]
    removed: tuple[spec.Guideline, ...]
    others: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.added) + len(self.changed) + len(self.removed) + len(self.others)


_PARTS = (
    "condition",
    "action",
    "criticality",
    "priority",
    "enabled",
    "tags",
    "tools",
    "reevaluate_after",
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
        others=tuple(_others(before, after)),
    )


def _parts(before: spec.Guideline, after: spec.Guideline) -> tuple[str, ...]:
    return tuple(name for name in _PARTS if getattr(before, name) != getattr(after, name))


def _others(before: spec.Agent, after: spec.Agent) -> list[str]:
    said = []
    if before.name != after.name:
        said.append(_("The name is now “%(name)s”.") % {"name": after.name})
    if before.description != after.description:
        said.append(_("The description was rewritten."))
    if before.max_iterations != after.max_iterations:
        said.append(
            _("A turn may take %(count)d iterations instead of %(before)d.")
            % {"count": after.max_iterations, "before": before.max_iterations}
        )
    if _order(before, after) != _order(after, before):
        said.append(_("The guidelines stand in another order."))
    return said + _tool_sentences(before, after)


def _order(one: spec.Agent, other: spec.Agent) -> list[str]:
    return [g.uid for g in one.guidelines if g.uid in other.guideline_by_uid]


def _tool_sentences(before: spec.Agent, after: spec.Agent) -> list[str]:
    old, new = before.tool_by_name, after.tool_by_name
    said = []
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            said.append(_("The tool %(name)s was added.") % {"name": name})
        elif name not in new:
            said.append(_("The tool %(name)s is no longer there.") % {"name": name})
        elif replace(old[name], uid="") != replace(new[name], uid=""):
            said.append(_("The tool %(name)s changed.") % {"name": name})
    return said
