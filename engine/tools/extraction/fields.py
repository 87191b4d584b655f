"""One field of a parameter class, as a report has it."""

import ast
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from engine.canonical import JsonObject
from engine.tools.extraction.bodies import Source
from engine.tools.extraction.field_calls import Factory
from engine.tools.extraction.kinds import choices_in, holds_secret, is_optional, is_usual
from engine.tools.extraction.result import Problem
from engine.tools.extraction.self_contained import SelfContained, TooLargeError, is_json
from engine.tools.template import TemplateField


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What pydantic says of a field, under the `key` that its value is passed by, beside what its class says."""

    key: str
    info: FieldInfo
    source: Source
    schema: Any
    required: bool
    version_1: bool
    for_agent: bool


def template_field(told: Property, writing: SelfContained) -> tuple[TemplateField, list[Problem]]:
    """The field, and what its author should know of it."""
    schema, problems = _written_out(told, writing)
    source = told.source
    kind = source.declared if source.unread else told.info.annotation
    secret = holds_secret(told.key, schema) or holds_secret(source.name, schema)
    optional = is_optional(kind)
    description = schema.pop("description", "")
    field = TemplateField(
        name=told.key,
        type=_text(source.annotation),
        schema={name: part for name, part in schema.items() if name != "default"}
        if not source.unread
        else {},
        required=told.required and not optional,
        required_by_pydantic=told.required and not (optional and told.version_1),
        description=description if isinstance(description, str) else "",
        has_default=not told.required,
        default=None if secret else _default(told.info, schema),
        choices=() if source.unread else choices_in(schema),
        secret=secret,
        line=source.line,
    )
    if not source.unread and not is_usual(kind):
        problems.append(
            Problem(
                code="unusual_type",
                message=f"{told.key!r} is of the type {field.type}; the specification's types are str, int, float, "
                "bool, List[…], Optional[…] and Literal[…]",
                line=source.line,
            )
        )
    if told.for_agent and not field.description.strip():
        problems.append(
            Problem(
                code="no_description",
                message=f'{told.key!r} has no description that can be read; write Field(description="…"), so that an '
                "agent knows what to pass",
                line=source.line,
            )
        )
    return field, problems


def _written_out(told: Property, writing: SelfContained) -> tuple[JsonObject, list[Problem]]:
    problems = []
    try:
        schema = writing.schema(told.schema)
    except TooLargeError:
        message = f"the type of {told.key!r} has too many parts to be shown to an agent; use a simpler one"
        problems.append(Problem(code="too_large", message=message, line=told.source.line))
        schema = {
            name: told.schema[name] for name in ("description", "default") if name in told.schema
        }
    for name in writing.recursive[:1]:
        message = f"the type of {told.key!r} contains itself ({name}); use one of limited depth"
        problems.append(Problem(code="recursive_type", message=message, line=told.source.line))
    if not is_json(schema):
        message = f"the type of {told.key!r} has no JSON form: {schema!r:.200}"
        problems.append(Problem(code="unknown_type", message=message, line=told.source.line))
        schema = {name: part for name, part in schema.items() if name == "description"}
    return dict(schema), problems


def _default(info: FieldInfo, schema: JsonObject) -> Any:
    """The default as JSON, None where it has no such form or is not known."""
    default = schema.get("default")
    if isinstance(info.default_factory, Factory):
        try:
            default = to_jsonable_python(info.default_factory.value)
        except (PydanticSerializationError, ValueError, RecursionError):
            return None
    return default if is_json(default) else None


def _text(annotation: ast.expr) -> str:
    """An annotation as people read it: without what Annotated says beside the type."""
    match annotation:
        case ast.Subscript(
            value=ast.Name(id="Annotated") | ast.Attribute(attr="Annotated"),
            slice=ast.Tuple(elts=[kind, *_]),
        ):
            return _text(kind)
    try:
        return ast.unparse(annotation)
    except RecursionError:
        return "…"
