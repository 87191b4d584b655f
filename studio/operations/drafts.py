"""A whole draft as one value: read from rows or from a version, and written over the rows."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Model
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field

from engine import spec
from studio.models import Agent, Guideline, GuidelineExample, Tool

_FIELDS = ("condition", "action", "criticality", "priority", "enabled", "tags")
_BATCH = 500


class ExampleContent(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    text: str
    matches: bool = True


class GuidelineContent(BaseModel):
    """A guideline of a document. Tools are named; `uid` may be left out of one that is new."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    uid: str = ""
    condition: str = ""
    action: str = ""
    criticality: str = Guideline.Criticality.MEDIUM.value
    priority: int = 0
    enabled: bool = True
    tags: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    reevaluate_after: list[str] = Field(default_factory=list)
    examples: list[ExampleContent] = Field(default_factory=list)


class AgentContent(BaseModel):
    """Everything an author decides about an agent; guidelines in their order, `tools` the agent's by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    slug: str = ""
    name: str = ""
    description: str = ""
    composition: str = Agent.Composition.FLUID.value
    max_iterations: int = 3
    tools: list[str] = Field(default_factory=list)
    guidelines: list[GuidelineContent] = Field(default_factory=list)


def content_of(agent: Agent) -> AgentContent:
    """The draft as it is now, tools that are switched off included. A constant number of queries."""
    return AgentContent(
        slug=agent.slug,
        name=agent.name,
        description=agent.description,
        composition=agent.composition,
        max_iterations=agent.max_iterations,
        tools=sorted(tool.name for tool in agent.tools.all()),
        guidelines=[guideline_content(row) for row in agent.guidelines.with_parts()],
    )


def guideline_content(row: Guideline) -> GuidelineContent:
    """A stored guideline with its parts; read `with_parts` where there are many."""
    return GuidelineContent(
        uid=row.uid,
        **{name: getattr(row, name) for name in _FIELDS},
        tools=sorted(tool.name for tool in row.tools.all()),
        reevaluate_after=sorted(tool.name for tool in row.reevaluate_after.all()),
        examples=[ExampleContent(text=e.text, matches=e.matches) for e in row.examples.all()],
    )


def content_of_spec(agent: spec.Agent) -> AgentContent:
    """A compiled agent, such as a version's, as what an author decides."""
    return AgentContent(
        slug=agent.slug,
        name=agent.name,
        description=agent.description,
        composition=agent.composition.value,
        max_iterations=agent.max_iterations,
        tools=sorted(tool.name for tool in agent.tools),
        guidelines=[
            GuidelineContent(
                uid=guideline.uid,
                condition=guideline.condition,
                action=guideline.action,
                criticality=guideline.criticality.value,
                priority=guideline.priority,
                enabled=guideline.enabled,
                tags=list(guideline.tags),
                tools=list(guideline.tools),
                reevaluate_after=list(guideline.reevaluate_after),
                examples=[
                    ExampleContent(text=example.text, matches=example.matches)
                    for example in guideline.examples
                ],
            )
            for guideline in agent.guidelines
        ],
    )


def tools_named(content: AgentContent) -> set[str]:
    """The names of all tools that the content speaks of."""
    named = set(content.tools)
    for guideline in content.guidelines:
        named.update(guideline.tools, guideline.reevaluate_after)
    return named


def rows_of_tools(names: Iterable[str]) -> dict[str, Tool]:
    """Name → tool, for those that there are."""
    return {tool.name: tool for tool in Tool.objects.filter(name__in=set(names))}


def replace_draft(agent: Agent, content: AgentContent, tools: Mapping[str, Tool]) -> None:
    """Make the stored draft of `agent` what the valid `content` says, except for its slug.

    Guidelines keep their rows by uid, which every one of `content` has; names that `tools` lacks are left out. To be
    called inside a transaction, and `mark_changed` after it. The number of queries does not grow with the guidelines.
    """
    for name in ("name", "description", "composition", "max_iterations"):
        setattr(agent, name, getattr(content, name))
    agent.save(update_fields=["name", "description", "composition", "max_iterations", "updated_at"])
    agent.tools.set([tools[name] for name in content.tools if name in tools])
    agent.guidelines.exclude(uid__in=[item.uid for item in content.guidelines]).delete()
    rows = _write_guidelines(agent, content)
    _write_parts(rows, content, tools)


def _write_guidelines(agent: Agent, content: AgentContent) -> dict[str, Guideline]:
    """Uid → row of every guideline of the content, stored."""
    known: dict[str, Guideline] = {row.uid: row for row in agent.guidelines.all()}
    new, changed = [], []
    now = timezone.now()
    for position, item in enumerate(content.guidelines, start=1):
        values = {name: getattr(item, name) for name in _FIELDS} | {"position": position}
        row = known.get(item.uid)
        if row is None:
            new.append(Guideline(agent=agent, uid=item.uid, **values))
        elif any(getattr(row, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(row, name, value)
            row.updated_at = now
            changed.append(row)
    Guideline.objects.bulk_create(new, batch_size=_BATCH)
    Guideline.objects.bulk_update(changed, [*_FIELDS, "position", "updated_at"], batch_size=_BATCH)
    return {row.uid: row for row in agent.guidelines.all()}


def _write_parts(
    rows: Mapping[str, Guideline], content: AgentContent, tools: Mapping[str, Tool]
) -> None:
    _link(Guideline.tools.through, rows, content, tools, "tools")
    _link(Guideline.reevaluate_after.through, rows, content, tools, "reevaluate_after")
    GuidelineExample.objects.filter(guideline__in=rows.values()).delete()
    GuidelineExample.objects.bulk_create(
        (
            GuidelineExample(guideline=rows[item.uid], text=example.text, matches=example.matches)
            for item in content.guidelines
            for example in item.examples
        ),
        batch_size=_BATCH,
    )


def _link(
    through: type[Model],
    rows: Mapping[str, Guideline],
    content: AgentContent,
    tools: Mapping[str, Tool],
    field: str,
) -> None:
    links: Any = through._default_manager  # noqa: SLF001 - Django's documented access
    links.filter(guideline__in=rows.values()).delete()
    links.bulk_create(
        (
            through(guideline=rows[item.uid], tool=tools[name])
            for item in content.guidelines
            for name in dict.fromkeys(getattr(item, field))
            if name in tools
        ),
        batch_size=_BATCH,
    )
