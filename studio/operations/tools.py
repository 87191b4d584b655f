"""Writing the tool shed: the tools that code declares, and what people change about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from engine import spec
from engine.arguments import reason_against
from engine.canonical import JsonObject
from engine.tools.function import FunctionToolService, ToolFunction
from studio.bridge import parameters_to_json
from studio.models import Agent, Tool
from studio.operations.agents import mark_changed
from studio.toolbox import tool_service

# What people may change of a tool, and of each of its parameters; the rest is the code's alone.
TOOL_OPTIONS = ("description", "consequential", "confirm", "latency", "timeout")
PARAMETER_OPTIONS = (
    "description",
    "display_name",
    "source",
    "hidden",
    "precedence",
    "significance",
    "examples",
)


@dataclass(slots=True, kw_only=True)
class Synced:
    """Names of the tools that are new, that became another, whose code is gone, and whose code is back.

    `taken` are names of functions that are left out, because a tool of another kind has the name.
    """

    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def declared_values(tool: spec.Tool) -> JsonObject:
    """What `Tool.declared` holds of what the code says."""
    return {
        "description": tool.description,
        "consequential": tool.consequential,
        "confirm": tool.confirm.value,
        "latency": tool.latency.value,
        "timeout": tool.timeout,
        "parameters": parameters_to_json(tool.parameters),
    }


def sync_function_tools(service: FunctionToolService | None = None) -> Synced:
    """Make the shed hold the functions of `service` (this process's, unless given); safe to run again.

    What people changed about a tool stays; everything else follows the code. A tool whose code is gone stays as a row
    with `missing_since`, and agents go on without it until it is back.
    """
    functions = (service or tool_service()).functions
    try:
        return _sync(functions)
    except IntegrityError:  # another process that starts now registered one of them first
        return _sync(functions)


@transaction.atomic
def _sync(functions: Sequence[ToolFunction[..., Any]]) -> Synced:
    rows: list[Tool] = list(Tool.objects.functions().select_for_update())
    others = set(Tool.objects.exclude(kind=Tool.Kind.FUNCTION).values_list("name", flat=True))
    report = Synced()
    found = set()
    for function in functions:
        if function.spec.name in others:
            report.taken.append(function.spec.name)
            continue
        row = _row_of(function.spec, rows)
        if row is None:
            row = Tool(uid=function.spec.uid, name=function.spec.name)
            rows.append(row)
        found.add(id(row))
        _follow(row, function.spec, function.function.__module__, report)
    for row in rows:
        if id(row) not in found and row.missing_since is None:
            row.missing_since = timezone.now()
            row.save()
            report.missing.append(row.name)
    mark_users(report.changed + report.missing + report.returned)
    return report


def _row_of(tool: spec.Tool, rows: Sequence[Tool]) -> Tool | None:
    """The row of this name; or, where a function of a fixed uid was renamed, the one that had its uid."""
    by_name = next((row for row in rows if row.name == tool.name), None)
    return by_name or next((row for row in rows if row.uid == tool.uid), None)


def _follow(row: Tool, tool: spec.Tool, origin: str, report: Synced) -> None:
    new, was_missing = row.pk is None, row.missing_since is not None
    before = (row.declared, row.origin)
    changed = declare(row, tool, origin)
    if not (new or was_missing or changed or before != (row.declared, row.origin)):
        return
    row.missing_since = None
    row.save()
    if new:
        report.created.append(row.name)
    elif was_missing:
        report.returned.append(row.name)
    elif changed:
        report.changed.append(row.name)


def declare(row: Tool, tool: spec.Tool, origin: str) -> bool:
    """Write what the code says now into the row, where people did not write something else; whether it is another.

    The row is not stored yet.
    """
    new, before = row.pk is None, _values(row)
    declared = declared_values(tool)
    earlier = row.declared or before
    for name in TOOL_OPTIONS:
        # What an older declaration did not say yet, nobody can have changed.
        if new or getattr(row, name) == earlier.get(name, before[name]):
            setattr(row, name, declared[name])
    row.parameters = _merged(row.parameters, earlier.get("parameters", []), declared["parameters"])
    changed = _values(row) != before or row.name != tool.name
    row.name, row.origin, row.declared = tool.name, origin, declared
    return changed


def _values(row: Tool) -> JsonObject:
    return {name: getattr(row, name) for name in (*TOOL_OPTIONS, "parameters")}


def _merged(
    current: Sequence[JsonObject], earlier: Sequence[JsonObject], declared: Sequence[JsonObject]
) -> list[JsonObject]:
    """The parameters as declared, with the options that people changed since the earlier declaration."""
    by_name = {parameter["name"]: parameter for parameter in current}
    said_before = {parameter["name"]: parameter for parameter in earlier}
    return [
        _with_changes(
            parameter, by_name.get(parameter["name"], {}), said_before.get(parameter["name"], {})
        )
        for parameter in declared
    ]


def _with_changes(
    declared: JsonObject, current: Mapping[str, Any], earlier: Mapping[str, Any]
) -> JsonObject:
    changes = {
        option: current[option]
        for option in PARAMETER_OPTIONS
        if option in current and option in earlier and current[option] != earlier[option]
    }
    if "examples" in changes:
        changes["examples"] = [
            example
            for example in changes["examples"]
            if not reason_against(declared["schema"], example)
        ]
    return {**declared, **changes}


def overridden(tool: Tool) -> set[str]:
    """What people changed: names of the tool's options, and "<parameter>.<option>"."""
    if not tool.declared:
        return set()
    changed = {
        name
        for name in TOOL_OPTIONS
        if name in tool.declared and getattr(tool, name) != tool.declared[name]
    }
    declared = {item["name"]: item for item in tool.declared.get("parameters", [])}
    for parameter in tool.parameters:
        code = declared.get(parameter["name"], {})
        changed |= {
            f"{parameter['name']}.{option}"
            for option in PARAMETER_OPTIONS
            if option in code and parameter.get(option) != code[option]
        }
    return changed


@transaction.atomic
def save_tool(tool: Tool) -> Tool:
    """Store a changed tool; the next turn of every agent that uses it sees the change."""
    tool.save()
    mark_users([tool.name])
    return tool


def follow_code(tool: Tool) -> Tool:
    """Give up what people changed about the tool."""
    for name in TOOL_OPTIONS:
        if name in tool.declared:
            setattr(tool, name, tool.declared[name])
    tool.parameters = tool.declared.get("parameters", tool.parameters)
    return save_tool(tool)


def mark_users(names: Sequence[str]) -> None:
    """The next turn of every agent that uses one of these tools sees it as it is now."""
    if names:
        users = Agent.objects.filter(
            Q(tools__name__in=names)
            | Q(guidelines__tools__name__in=names)
            | Q(guidelines__reevaluate_after__name__in=names)
        )
        mark_changed(*users.values_list("pk", flat=True).distinct())
