"""The JSON Schema of a Python type as models and forms read it: self-contained, numbers as numbers, no noise."""

from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema

from engine.canonical import JsonObject
from engine.errors import SpecError

_NAMED_PARTS = ("properties", "patternProperties", "dependentSchemas")
_LISTED_PARTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE_PARTS = ("items", "additionalProperties", "not", "contains", "propertyNames")
_DROPPED = ("$defs", "$ref", "title", "discriminator")


def schema_of(name: str, annotation: Any) -> tuple[TypeAdapter[Any], JsonObject]:
    """The adapter and the JSON Schema of a parameter's annotation; SpecError for what JSON cannot hold."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        schema = adapter.json_schema(schema_generator=_ReadableSchema)
    except ImportError as error:  # EmailStr asks for a package that is not a dependency
        raise SpecError(
            f"parameter {name!r} has a type that needs another package ({error}); "
            "for an e-mail address use engine.tools.parameters.Email",
            field=name,
        ) from error
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        first_line = str(error).partition("\n")[0]
        raise SpecError(
            f"parameter {name!r} has a type that JSON cannot hold or pydantic cannot read "
            f"({first_line}); use text, numbers, dates, enums, lists or a pydantic model",
            field=name,
        ) from error
    return adapter, _inline(name, schema, schema.get("$defs", {}), ())


class _ReadableSchema(GenerateJsonSchema):
    """Pydantic's schema, with money as a number, and an error where a type has no honest JSON form."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        number: JsonSchemaValue = super().decimal_schema(schema)["anyOf"][0]
        places = schema.get("decimal_places")
        if places is not None:
            number.setdefault("multipleOf", 1 if places == 0 else float(f"1e-{places}"))
        return number

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        return self.handle_invalid_for_json_schema(schema, "bytes")

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        return self.handle_invalid_for_json_schema(schema, "a complex number")

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind == "skipped-choice":  # a union would lose a branch that its author wrote
            raise PydanticInvalidForJsonSchema(detail)


def _inline(name: str, schema: Any, definitions: JsonObject, inside: tuple[str, ...]) -> Any:
    """`schema` with references replaced by what they refer to, and without generated titles.

    `inside` names the definitions that are being written out around it.
    """
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        target = schema["$ref"].removeprefix("#/$defs/")
        if target in inside:
            raise SpecError(
                f"parameter {name!r} has the type {target!r}, which contains itself; "
                "use a type of limited depth",
                field=name,
            )
        schema = {**definitions[target], **schema}
        inside = (*inside, target)

    def inline(part: Any) -> Any:
        return _inline(name, part, definitions, inside)

    def inline_under(key: str, value: Any) -> Any:
        if key in _SINGLE_PARTS:
            return inline(value)
        if key in _LISTED_PARTS:
            return [inline(part) for part in value]
        if key in _NAMED_PARTS:
            return {field: inline(part) for field, part in value.items()}
        return value

    return {key: inline_under(key, part) for key, part in schema.items() if key not in _DROPPED}
