"""A whole agent as one value, as its author decides it: read from the rows of a draft, or from a version."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from engine import spec
from studio.models import Agent, Guideline, Relationship, Term, Tool
from studio.models.agent import new_uid

GUIDELINE_FIELDS = (
    "condition",
    "action",
    "criticality",
    "priority",
    "enabled",
    "tags",
    "composition",
)
AGENT_FIELDS = (
    "name",
    "description",
    "tone",
    "composition",
    "max_iterations",
    "no_match",
    "verified_replies",
)


class Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ExampleContent(Content):
    text: str
    matches: bool = True


class TermContent(Content):
    uid: str = ""
    name: str = ""
    description: str = ""
    synonyms: list[str] = Field(default_factory=list)


class ResponseContent(Content):
    """A canned response."""

    uid: str = ""
    text: str = ""


class GuidelineContent(Content):
    """A guideline of a document. Tools are named; `uid` may be left out of one that is new."""

    uid: str = ""
    condition: str = ""
    action: str = ""
    criticality: str = Guideline.Criticality.MEDIUM.value
    priority: int = 0
    enabled: bool = True
    tags: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    reevaluate_after: list[str] = Field(default_factory=list)
    composition: str = ""
    canned_responses: list[str] = Field(default_factory=list)  # uids
    examples: list[ExampleContent] = Field(default_factory=list)


class RelationshipContent(Content):
    """Guidelines are named by uid."""

    uid: str = ""
    kind: str = ""
    source: str = ""
    targets: list[str] = Field(default_factory=list)


class OverlapContent(Content):
    """Tools are named."""

    uid: str = ""
    tools: list[str] = Field(default_factory=list)


class AgentContent(Content):
    """Everything an author decides about an agent; guidelines in their order, `tools` the agent's by name."""

    slug: str = ""
    name: str = ""
    description: str = ""
    tone: str = ""
    composition: str = Agent.Composition.FLUID.value
    max_iterations: int = 3
    no_match: str = ""
    verified_replies: bool = False
    tools: list[str] = Field(default_factory=list)
    terms: list[TermContent] = Field(default_factory=list)
    canned_responses: list[ResponseContent] = Field(default_factory=list)
    guidelines: list[GuidelineContent] = Field(default_factory=list)
    relationships: list[RelationshipContent] = Field(default_factory=list)
    overlaps: list[OverlapContent] = Field(default_factory=list)


# By what an item that names no uid is recognised as one that there is: what no two of an agent share, or all its words.
SAME: dict[str, Callable[[Any], Hashable]] = {
    "terms": lambda item: item.name.casefold(),
    "canned_responses": lambda item: item.text,
    "guidelines": lambda item: (item.condition, item.action),
    "relationships": lambda item: (item.kind, item.source),
    "overlaps": lambda item: frozenset(item.tools),
}

SECTIONS = tuple(SAME)
"""The fields of an AgentContent that are lists of items with a uid."""

Item = TypeVar("Item", bound=Any)


# --- From rows -------------------------------------------------------------------------------------------------------


def content_of(agent: Agent) -> AgentContent:
    """The draft as it is now, tools that are switched off included. A constant number of queries."""
    relationships = agent.relationships.select_related("source").prefetch_related("targets")
    return AgentContent(
        slug=agent.slug,
        **{name: getattr(agent, name) for name in AGENT_FIELDS},
        tools=sorted(tool.name for tool in agent.tools.all()),
        terms=[term_content(row) for row in agent.terms.all()],
        canned_responses=[
            ResponseContent(uid=row.uid, text=row.text) for row in agent.canned_responses.all()
        ],
        guidelines=[guideline_content(row) for row in agent.guidelines.with_parts()],
        relationships=[relationship_content(row) for row in relationships],
        overlaps=[
            OverlapContent(uid=row.uid, tools=sorted(tool.name for tool in row.tools.all()))
            for row in agent.overlaps.prefetch_related("tools")
        ],
    )


def term_content(row: Term) -> TermContent:
    return TermContent(
        uid=row.uid, name=row.name, description=row.description, synonyms=list(row.synonyms)
    )


def guideline_content(row: Guideline) -> GuidelineContent:
    """A stored guideline with its parts; read `with_parts` where there are many."""
    return GuidelineContent(
        uid=row.uid,
        **{name: getattr(row, name) for name in GUIDELINE_FIELDS},
        tools=sorted(tool.name for tool in row.tools.all()),
        reevaluate_after=sorted(tool.name for tool in row.reevaluate_after.all()),
        canned_responses=sorted(response.uid for response in row.canned_responses.all()),
        examples=[ExampleContent(text=e.text, matches=e.matches) for e in row.examples.all()],
    )


def relationship_content(row: Relationship) -> RelationshipContent:
    """Read with `source` and `targets` where there are many."""
    return RelationshipContent(
        uid=row.uid,
        kind=row.kind,
        source=row.source.uid,
        targets=sorted(target.uid for target in row.targets.all()),
    )


# --- From a compiled agent -------------------------------------------------------------------------------------------


def content_of_spec(agent: spec.Agent) -> AgentContent:
    """A compiled agent, such as a version's, as what an author decides; `settled` gives its overlaps their uids."""
    return AgentContent(
        slug=agent.slug,
        name=agent.name,
        description=agent.description,
        tone=agent.tone,
        composition=agent.composition.value,
        max_iterations=agent.max_iterations,
        no_match=agent.no_match,
        verified_replies=agent.verified_replies,
        tools=sorted(tool.name for tool in agent.tools),
        terms=[
            TermContent(
                uid=term.uid,
                name=term.name,
                description=term.description,
                synonyms=list(term.synonyms),
            )
            for term in agent.terms
        ],
        canned_responses=[
            ResponseContent(uid=response.uid, text=response.text)
            for response in agent.canned_responses
        ],
        guidelines=[_guideline_of_spec(guideline) for guideline in agent.guidelines],
        relationships=[
            RelationshipContent(
                uid=relationship.uid,
                kind=relationship.kind.value,
                source=relationship.source,
                targets=sorted(relationship.targets),
            )
            for relationship in agent.relationships
        ],
        overlaps=[OverlapContent(tools=sorted(group)) for group in agent.overlaps],
    )


def _guideline_of_spec(guideline: spec.Guideline) -> GuidelineContent:
    return GuidelineContent(
        uid=guideline.uid,
        condition=guideline.condition,
        action=guideline.action,
        criticality=guideline.criticality.value,
        priority=guideline.priority,
        enabled=guideline.enabled,
        tags=list(guideline.tags),
        tools=list(guideline.tools),
        reevaluate_after=list(guideline.reevaluate_after),
        composition=guideline.composition.value if guideline.composition is not None else "",
        canned_responses=sorted(guideline.canned_responses),
        examples=[
            ExampleContent(text=example.text, matches=example.matches)
            for example in guideline.examples
        ],
    )


# --- What both have --------------------------------------------------------------------------------------------------


def tools_named(content: AgentContent) -> set[str]:
    """The names of all tools that the content speaks of."""
    named = set(content.tools)
    for guideline in content.guidelines:
        named.update(guideline.tools, guideline.reevaluate_after)
    for overlap in content.overlaps:
        named.update(overlap.tools)
    return named


def rows_of_tools(names: Iterable[str]) -> dict[str, Tool]:
    """Name → tool, for those that there are."""
    return {tool.name: tool for tool in Tool.objects.filter(name__in=set(names))}


def settled(content: AgentContent, stored: AgentContent) -> AgentContent:
    """Every item with a uid: one without is the stored one that says the same, or a new one."""
    return content.model_copy(
        update={
            name: _settled(getattr(content, name), getattr(stored, name), same)
            for name, same in SAME.items()
        }
    )


def _settled(items: list[Item], stored: list[Item], same: Callable[[Item], Hashable]) -> list[Item]:
    named = {item.uid for item in items}
    known: dict[Hashable, list[str]] = {}
    for item in reversed(stored):
        if item.uid not in named:
            known.setdefault(same(item), []).append(item.uid)
    return [
        item
        if item.uid
        else item.model_copy(
            update={"uid": left.pop() if (left := known.get(same(item))) else new_uid()}
        )
        for item in items
    ]
