"""What an instance is made of: its tool as its version declares it, and the version that it becomes."""

from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from engine import spec
from engine.arguments import reason_against, refuse_unsupported
from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.formats import UNREADABLE_FORMATS
from engine.tools.template import Report, TemplateField
from studio.models import Tool, ToolEnvironment, ToolInstance, ToolTemplateVersion
from studio.operations.configuration import Configuration
from studio.operations.templates import report_of
from studio.operations.tools import declare, mark_users

# One of these says what a value may be.
_SAYING = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}


class UnusableVersionError(Exception):
    """The engine cannot call a tool of this version; its text says which parameter is why, and what to do."""


def make_tool(version: ToolTemplateVersion, *, name: str, consequential: bool) -> Tool:
    """A tool of the shed as the version declares it; raises UnusableVersionError."""
    row = Tool(kind=Tool.Kind.TEMPLATE, name=name)
    declare(row, _declared(row, version, consequential=consequential), str(version))
    row.save()
    return row


@transaction.atomic
def follow_version(instance: ToolInstance) -> None:
    """Its tool becomes what its version declares, but for what people changed; raises UnusableVersionError."""
    row = instance.tool = Tool.objects.select_for_update().get(pk=instance.tool_id)
    consequential = bool(row.declared.get("consequential", row.consequential))
    tool = _declared(row, instance.version, consequential=consequential)
    changed = declare(row, tool, str(instance.version))
    row.save()
    if changed:
        mark_users([row.name])


def refuse_unusable(version: ToolTemplateVersion) -> None:
    """Raises UnusableVersionError for a version of which no tool can be made."""
    _parameters(report_of(version))


def _declared(row: Tool, version: ToolTemplateVersion, *, consequential: bool) -> spec.Tool:
    report = report_of(version)
    return spec.Tool(
        uid=row.uid,
        name=row.name,
        description=report.description or report.name,
        parameters=_parameters(report),
        consequential=consequential,
        # A process of its own, and mostly a service behind it: the specification says nothing of time.
        latency=spec.Latency.MEDIUM,
    )


def _parameters(report: Report) -> tuple[spec.ToolParameter, ...]:
    return tuple(_parameter(field) for field in report.tool_parameters)


def _parameter(field: TemplateField) -> spec.ToolParameter:
    schema = _fillable(field.schema)
    parameter = spec.ToolParameter(
        name=field.name,
        schema=schema,
        required=field.required,
        description=field.description,
    )
    try:
        refuse_unsupported(parameter)
    except SpecError as error:
        raise UnusableVersionError(str(error)) from error
    return replace(parameter, default=_default(field, schema))


def _fillable(schema: Any) -> JsonObject:
    """What agents can fill: where the template accepts anything, or cannot say what, they give it text."""
    if not isinstance(schema, dict) or not schema.keys() & _SAYING:
        return {"type": "string"}
    fillable: JsonObject = {**schema}
    if schema.get("format") in UNREADABLE_FORMATS:
        del fillable["format"]
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if keyword in schema:
            fillable[keyword] = [_fillable(part) for part in schema[keyword]]
    if "properties" in schema:
        fields = schema["properties"].items()
        fillable["properties"] = {name: _fillable(part) for name, part in fields}
    if isinstance(schema.get("additionalProperties"), dict):
        fillable["additionalProperties"] = _fillable(schema["additionalProperties"])
    if schema.get("items", False) is not False:  # false: nothing after prefixItems
        fillable["items"] = _fillable(schema["items"])
    elif schema.get("type") == "array" and "prefixItems" not in schema:
        fillable["items"] = {"type": "string"}
    return fillable


def _default(field: TemplateField, schema: JsonObject) -> Any:
    """Pydantic does not check defaults: one that its own type refuses is the tool's affair, and nobody else's."""
    fits = not reason_against(schema, field.default)
    return field.default if field.has_default and fits else None


def settle(environment: ToolEnvironment) -> None:
    """What waited for this environment becomes the version it waited to become; safe to call again."""
    _settle(ToolInstance.objects.filter(next_environment=environment))


def sweep_upgrades() -> int:
    """Settle what nobody did: its worker was killed just then. How many upgrades there were to settle."""
    return _settle(ToolInstance.objects.all())


def _settle(instances: QuerySet[ToolInstance]) -> int:
    ready = instances.filter(next_environment__state=ToolEnvironment.State.FINISHED)
    waiting = list(ready.values_list("pk", "next_environment"))
    for pk, environment_pk in waiting:
        become_next(pk, environment_pk)
    return len(waiting)


@transaction.atomic
def become_next(pk: int, environment_pk: int) -> bool:
    """Switch one instance to its next version, which needs this environment; False where it no longer waits for it."""
    instance = (
        ToolInstance.objects.select_for_update(of=("self",))
        .select_related("template", "next_version")
        .defer("next_version__archive")
        .filter(pk=pk, next_environment_id=environment_pk)
        .first()
    )
    if instance is None or instance.next_version is None:
        return False
    configuration = Configuration.of(instance).for_next()
    instance.version = instance.next_version
    instance.environment_id = environment_pk
    configuration.write(instance)
    forget_next(instance)
    instance.save()
    follow_version(instance)
    return True


def forget_next(instance: ToolInstance) -> None:
    instance.next_version = instance.next_environment = None
    instance.next_config = {}
