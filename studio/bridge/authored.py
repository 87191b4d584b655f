"""Drafts, tools and versions ↔ engine.spec."""

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from engine import spec
from engine.canonical import JsonObject
from studio.models import Agent, AgentVersion, Guideline, Tool

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
        latency=spec.Latency(row.latency),
        timeout=row.timeout,
    )


def _compile_guideline(row: Guideline, usable: set[str]) -> spec.Guideline:
    return spec.Guideline(
        uid=row.uid,
        condition=row.condition,
        action=row.action,
        criticality=spec.Criticality(row.criticality),
        priority=row.priority,
        enabled=row.enabled,
        tags=tuple(row.tags),
        tools=tuple(sorted(t.name for t in row.tools.all() if t.name in usable)),
        reevaluate_after=tuple(
            sorted(t.name for t in row.reevaluate_after.all() if t.name in usable)
        ),
        examples=tuple(spec.Example(text=e.text, matches=e.matches) for e in row.examples.all()),
    )


def compile_agent(row: Agent) -> spec.Agent:
    """The draft as a frozen value. Tools that are switched off, or whose code is gone, are left out."""
    tools = tuple(compile_tool(tool) for tool in Tool.objects.available().filter(agents=row))
    usable = {tool.name for tool in tools}
    return spec.Agent(
        slug=row.slug,
        name=row.name,
        description=row.description,
        guidelines=tuple(_compile_guideline(g, usable) for g in row.guidelines.with_parts()),
        tools=tools,
        composition=spec.Composition(row.composition),
        max_iterations=row.max_iterations,
    )


@lru_cache(maxsize=256)
def _spec_of(version_id: int, _fingerprint: str) -> spec.Agent:
    value: Any = AgentVersion.objects.values_list("spec", flat=True).get(pk=version_id)
    return spec.Agent.from_json(value)


def agent_spec(version: AgentVersion) -> spec.Agent:
    """The compiled agent of a version; kept in memory, because versions never change."""
    return _spec_of(version.pk, version.fingerprint)
