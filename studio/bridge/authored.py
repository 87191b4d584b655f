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
        latency=spec.Latency(row.latency),
        timeout=row.timeout,
    )


def compile_agent(row: Agent) -> spec.Agent:
    """The draft as a frozen value. Tools that are switched off, or whose code is gone, are left out."""
    tools = tuple(compile_tool(tool) for tool in Tool.objects.available().filter(agents=row))
    value = spec.Agent(
        slug=row.slug,
        name=row.name,
        description=row.description,
        guidelines=_compile_guidelines(row, frozenset(tool.name for tool in tools)),
        tools=tools,
        composition=spec.Composition(row.composition),
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
    columns = ("uid", "condition", "action", "priority", "enabled")
    return tuple(
        spec.Guideline(
            **dict(zip(columns, values, strict=True)),
            criticality=spec.Criticality(criticality),
            tags=tuple(tags),
            tools=tuple(tools[pk]),
            reevaluate_after=tuple(reevaluate_after[pk]),
            examples=tuple(examples[pk]),
        )
        for pk, criticality, tags, *values in row.guidelines.order_by("position", "pk").values_list(
            "pk", "criticality", "tags", *columns
        )
    )


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
