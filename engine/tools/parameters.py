"""From a Python signature to ToolParameters: annotations become JSON Schema, JSON values become Python's types.

Everything that a tool function can get wrong in its signature is refused here, when its module is imported,
as a SpecError whose `field` is the parameter and whose message says what to write instead.
"""

import inspect
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, WithJsonSchema
from pydantic.fields import FieldInfo

from engine.arguments import allows_null, refuse_unsupported, with_choices
from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.spec import ParameterSource, ToolParameter
from engine.tools.adapting import Adapter, input_of
from engine.tools.base import ToolContext
from engine.tools.docstring import Docstring
from engine.tools.jsonable import as_json
from engine.tools.providing import ChoiceProvider, check_provider
from engine.tools.schemas import schema_of

Email: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "email"})]
"""An e-mail address; arrives as a str."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolParameterOptions:
    """How a parameter is filled and asked for, written as `Annotated[type, ToolParameterOptions(...)]`.

    `description` helps to find the value. `source` says where it may come from: "any", "customer" (only what
    the customer said counts) or "context". A `hidden` parameter is never mentioned to the customer. Of
    several missing parameters only those of the lowest `precedence` are asked for at a time. `significance`
    tells the customer why it is needed, `examples` show its form, `display_name` is what people call it, and
    `choices` are the only values it may have (for a list: each of its items); `choice_provider` names them anew in each
    turn: a sync or async function of the ToolContext that returns a list. `adapter` is a plain function that turns the
    validated value into the tool's own type, so that the annotation may be any class: what it takes, by the annotation
    of its first parameter (text, where it has none), is then the parameter's JSON type.
    """

    description: str = ""
    source: ParameterSource | Literal["any", "customer", "context"] = ParameterSource.ANY
    hidden: bool = False
    precedence: int | None = None
    significance: str = ""
    examples: Sequence[Any] = ()
    display_name: str = ""
    choices: Sequence[Any] = ()
    choice_provider: ChoiceProvider | None = None
    adapter: Adapter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionParameter:
    """A parameter of a tool function: its `spec`, and the way from a JSON value to what the function receives."""

    spec: ToolParameter
    reader: TypeAdapter[Any]
    has_default: bool
    accepts_null: bool
    provider: ChoiceProvider | None = None
    adapter: Adapter | None = None

    def read(self, value: Any) -> Any:
        """The Python value of a JSON value; raises pydantic.ValidationError where it is not one.

        Strict as JSON is: a date may be written as text, a number or a boolean may not.
        """
        return self.reader.validate_json(json.dumps(value), strict=True)

    def adapt(self, value: Any) -> Any:
        """What the function receives for what was read; raises whatever the adapter raises."""
        is_none = value is None and self.accepts_null
        return value if self.adapter is None or is_none else self.adapter(value)


def read_signature(function: Callable[..., Any]) -> tuple[FunctionParameter, ...]:
    """The parameters of a tool function after its ToolContext; raises SpecError for what cannot be a tool's."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise SpecError(
            f"tool {name!r} has an annotation that cannot be resolved ({error}); "
            "import or define its types at module level, above the tool"
        ) from error
    first, *rest = inspect.signature(function).parameters.values() or (None,)
    if first is None or hints.get(first.name) is not ToolContext or _by_keyword_only(first):
        raise SpecError(
            f"tool {name!r} must take the context first: def {name}(context: ToolContext, ...)",
            field=first.name if first else "",
        )
    descriptions = Docstring.of(function).parameters
    return tuple(
        _read_parameter(name, parameter, hints, descriptions.get(parameter.name, ""))
        for parameter in rest
    )


def _by_keyword_only(parameter: inspect.Parameter) -> bool:
    return parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)


def _read_parameter(
    tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], description: str
) -> FunctionParameter:
    name = parameter.name

    def refuse(problem: str) -> SpecError:
        return SpecError(f"parameter {name!r} of tool {tool!r} {problem}", field=name)

    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            raise refuse("takes any number of values; name each parameter")
        case inspect.Parameter.POSITIONAL_ONLY:
            raise refuse("is positional-only; remove the '/' after it")
    if name not in hints:
        raise refuse(f"has no annotation; write {name}: str, or what else it is")
    has_default = parameter.default is not parameter.empty
    if isinstance(parameter.default, FieldInfo):
        raise refuse(f"has a Field as its default; write {name}: Annotated[type, Field(...)]")
    try:
        return build_parameter(
            name,
            hints[name],
            description=description,
            default=parameter.default if has_default else None,
            has_default=has_default,
        )
    except SpecError as error:
        problem = str(error).removeprefix(f"parameter {name!r} ")
        raise refuse(problem) from error


def build_parameter(
    name: str,
    annotation: Any,
    *,
    description: str = "",
    default: Any = None,
    has_default: bool = False,
) -> FunctionParameter:
    """One parameter from its annotation; `Optional[...]` without a default may be left out and is then None.

    The description is that of the options, else `description` (of the docstring), else that of the type.
    """
    options = _options_in(name, annotation) or ToolParameterOptions()
    if options.adapter is not None:
        annotation = input_of(name, options.adapter, annotation)
    reader, schema = schema_of(name, annotation)
    if "default" in schema:
        raise SpecError(
            f"parameter {name!r} has its default in Field; write it as {name}: ... = default",
            field=name,
        )
    type_description = schema.pop("description", "")
    accepts_null = allows_null(schema)
    spec = ToolParameter(
        name=name,
        schema=_with_choices(name, schema, options.choices),
        required=not has_default and not accepts_null,
        # Of a type of its own only the function knows the default.
        default=None if options.adapter else as_json(name, default),
        description=options.description or description or type_description,
        display_name=options.display_name,
        source=_source(name, options.source),
        hidden=options.hidden,
        precedence=options.precedence,
        significance=options.significance,
        examples=tuple(as_json(name, example) for example in options.examples),
        provides_choices=options.choice_provider is not None,
    )
    refuse_unsupported(spec)
    _check_provider(spec, options)
    return FunctionParameter(
        spec=spec,
        reader=reader,
        has_default=has_default,
        accepts_null=accepts_null,
        provider=options.choice_provider,
        adapter=options.adapter,
    )


def _check_provider(spec: ToolParameter, options: ToolParameterOptions) -> None:
    if options.choice_provider is None:
        return
    if options.choices:
        raise SpecError(
            f"parameter {spec.name!r} has both choices and a choice_provider; keep one of them",
            field=spec.name,
        )
    check_provider(spec.name, options.choice_provider)
    try:
        with_choices(spec.schema, ())
    except ValueError as error:
        raise SpecError(f"parameter {spec.name!r} {error}", field=spec.name) from error


def _source(name: str, source: str) -> ParameterSource:
    try:
        return ParameterSource(source)
    except ValueError as error:
        raise SpecError(
            f"parameter {name!r} has the source {source!r}; use any, customer or context",
            field=name,
        ) from error


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _options_in(name: str, annotation: Any, *, inside: bool = False) -> ToolParameterOptions | None:
    """The options of an annotation; on the whole or on the branch of a union, not on a part of the value."""
    found: ToolParameterOptions | None = None
    if get_origin(annotation) is Annotated:
        for mark in get_args(annotation)[1:]:
            if isinstance(mark, ToolParameterOptions):
                found = mark
            elif mark is ToolParameterOptions:
                raise SpecError(
                    f"parameter {name!r} names ToolParameterOptions without calling it; "
                    "write ToolParameterOptions(...)",
                    field=name,
                )
        found = found or _options_in(name, get_args(annotation)[0], inside=inside)
    else:
        inside = inside or not _is_union(annotation)
        for part in get_args(annotation):
            found = _options_in(name, part, inside=inside) or found
    if found is not None and inside:
        raise SpecError(
            f"parameter {name!r} has ToolParameterOptions on a part of its value; "
            "put them around the whole: Annotated[list[str], ToolParameterOptions(...)]",
            field=name,
        )
    return found


def _with_choices(name: str, schema: JsonObject, choices: Sequence[Any]) -> JsonObject:
    if not choices:
        return schema
    try:
        return with_choices(schema, [as_json(name, choice) for choice in choices])
    except ValueError as error:
        raise SpecError(f"parameter {name!r} {error}", field=name) from error
