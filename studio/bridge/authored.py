"""Drafts, tools and versions ↔ engine.spec."""

from collections import OrderedDict, defaultdict
from threading import Lock
from typing import Any

from django.db.models import Model
from pydantic import TypeAdapter

from engine import spec
from engine.canonical import JsonObject
from studio.models import Agent, AgentVersion, Guideline, GuidelineExample, Tool

_PARAMETERS = TypeAdapter(tuple[spec.ToolParameter, ...])


def parameters_to_json(parameters: tuple[spec.ToolParameter, ...]) -> list[JsonObject]:
    value: list[JsonObject] = _PARAMETERS.dump_python(parameters, mode="json")
    return value


def parameters_from_json(value: list[JsonObject]) -> tuple[spec.ToolParameter, ...]:
    return _PARAMETERS.validate_python(value)


def compile_tool(row: Tool) -> spec.Tool:
    return spec.Tool(
        uid=row.uid,
        name=row.name,
        description=row.description,
        parameters=parameters_from_json(row.parameters),
        consequential=row.consequential,
        confirm=spec.Confirm(row.confirm),
        latency=spec.Latency(row.latency),
        timeout=row.timeout,
    )


def compile_agent(row: Agent) -> spec.Agent:
    """The draft as a frozen value. Tools that are switched off, or whose code is gone, are left out.

    What has no order of its own stands by uid, so that a draft that was restored is the same as before, row by row.
    """
    tools = tuple(compile_tool(tool) for tool in Tool.objects.available().filter(agents=row))
    value = spec.Agent(
        slug=row.slug,
        name=row.name,
        description=row.description,
        tone=row.tone,
        guidelines=_compile_guidelines(row, frozenset(tool.name for tool in tools)),
        tools=tools,
        relationships=_compile_relationships(row),
        overlaps=_compile_overlaps(row, frozenset(tool.name for tool in tools)),
        canned_responses=tuple(
            spec.CannedResponse(uid=response.uid, text=response.text)
            for response in row.canned_responses.order_by("uid")
        ),
        terms=tuple(
            spec.Term(
                uid=term.uid,
                name=term.name,
                description=term.description,
                synonyms=tuple(term.synonyms),
            )
            for term in row.terms.all()
        ),
        composition=spec.Composition(row.composition),
        no_match=row.no_match,
        verified_replies=row.verified_replies,
        max_iterations=row.max_iterations,
    )
    _specs.keep(value)
    return value


def _compile_guidelines(row: Agent, usable: frozenset[str]) -> tuple[spec.Guideline, ...]:
    """Without an object for each row: an agent may have a thousand guidelines, and its next turn waits for this."""
    tools = _tool_names(Guideline.tools.through, row, usable)
    reevaluate_after = _tool_names(Guideline.reevaluate_after.through, row, usable)
    examples: dict[int, list[spec.Example]] = defaultdict(list)
    for pk, text, matches in (
        GuidelineExample.objects.filter(guideline__agent=row)
        .order_by("-matches", "pk")
        .values_list("guideline_id", "text", "matches")
    ):
        examples[pk].append(spec.Example(text=text, matches=matches))
    responses: dict[int, list[str]] = defaultdict(list)
    chosen: type[Model] = Guideline.canned_responses.through
    for pk, uid in (
        chosen._default_manager.filter(guideline__agent=row)  # noqa: SLF001 - Django's documented access
        .order_by("cannedresponse__uid")
        .values_list("guideline_id", "cannedresponse__uid")
    ):
        responses[pk].append(uid)
    columns = ("uid", "condition", "action", "priority", "enabled")
    return tuple(
        spec.Guideline(
            **dict(zip(columns, values, strict=True)),
            criticality=spec.Criticality(criticality),
            tags=tuple(tags),
            tools=tuple(tools[pk]),
            reevaluate_after=tuple(reevaluate_after[pk]),
            examples=tuple(examples[pk]),
            composition=spec.Composition(composition) if composition else None,
            canned_responses=tuple(responses[pk]),
        )
        for pk, criticality, tags, composition, *values in row.guidelines.order_by(
            "position", "pk"
        ).values_list("pk", "criticality", "tags", "composition", *columns)
    )


def _compile_relationships(row: Agent) -> tuple[spec.Relationship, ...]:
    return tuple(
        spec.Relationship(
            uid=relationship.uid,
            kind=spec.RelationKind(relationship.kind),
            source=relationship.source.uid,
            targets=tuple(sorted(target.uid for target in relationship.targets.all())),
        )
        for relationship in row.relationships.order_by("uid")
        .select_related("source")
        .prefetch_related("targets")
    )


def _compile_overlaps(row: Agent, usable: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of at least two usable tools."""
    groups = (
        tuple(tool.name for tool in overlap.tools.all() if tool.name in usable)
        for overlap in row.overlaps.prefetch_related("tools")
    )
    return tuple(sorted(group for group in groups if len(group) > 1))


def _tool_names(
    links: type[Model], row: Agent, usable: frozenset[str]
) -> defaultdict[int, list[str]]:
    """By guideline (pk): the names of its usable tools, sorted."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for pk, name in (
        links._default_manager.filter(guideline__agent=row)  # noqa: SLF001 - Django's documented access
        .order_by("tool__name")
        .values_list("guideline_id", "tool__name")
    ):
        if name in usable:
            found[pk].append(name)
    return found


class _Specs:
    """Compiled agents by fingerprint, the newest few: what has one fingerprint is one value, wherever it is stored."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, spec.Agent] = OrderedDict()
        self._lock = Lock()

    def keep(self, value: spec.Agent) -> None:
        with self._lock:
            self._kept[value.fingerprint] = value
            self._kept.move_to_end(value.fingerprint)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def get(self, fingerprint: str) -> spec.Agent | None:
        with self._lock:
            return self._kept.get(fingerprint)


_specs = _Specs(most=256)


def agent_spec(version: AgentVersion) -> spec.Agent:
    """The compiled agent of a version; kept in memory, because versions never change."""
    value = _specs.get(version.fingerprint)
    if value is None:
        stored: Any = AgentVersion.objects.values_list("spec", flat=True).get(pk=version.pk)
        value = spec.Agent.from_json(stored)
        _specs.keep(value)
    return value
