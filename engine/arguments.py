"""Arguments against a tool's parameters: validated by JSON Schema, never cast (ENGINE.md §3).

A value either is what its parameter asks for or it is named with the reason why not, in words that a
customer could be told.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend

from engine.canonical import JsonObject, canonical_json
from engine.errors import SpecError
from engine.formats import FORMAT_CHECKER, FORMAT_WORDS, UNREADABLE_FORMATS
from engine.spec import Tool, ToolParameter

_TYPE_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object with named fields",
    "null": "null",
}
_ALTERNATIVES = ("anyOf", "oneOf")
_PARTS = ("allOf", "prefixItems", *_ALTERNATIVES)
_CHOICES_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidArgument:
    """A given value that its parameter does not accept.

    `reason` continues "<label> …", such as "must be at least 1".
    """

    name: str
    value: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of the arguments of one call.

    `values` are the given, valid ones, to call with. `defaults` are what absent optional parameters will
    hold (those with a default other than null); the tool knows them itself, so they need not be sent.
    `missing` are names of required parameters without a value, `unknown` names that the tool does not
    have; unknown ones are left out.
    """

    values: JsonObject
    defaults: JsonObject
    missing: tuple[str, ...] = ()
    invalid: tuple[InvalidArgument, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the tool may be called with `values`."""
        return not self.missing and not self.invalid


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> Checked:
    """Sorts `arguments` (name → JSON value; an absent name was not given) into valid and not valid.

    Null counts as not given where the parameter does not accept null. Nothing is cast; only `5.0` is
    written as `5`, which in JSON is the same number, so that equal calls have one canonical text.
    """
    values: JsonObject = {}
    defaults: JsonObject = {}
    missing: list[str] = []
    invalid: list[InvalidArgument] = []
    for parameter in tool.parameters:
        name = parameter.name
        value = arguments.get(name)
        given = name in arguments and (value is not None or allows_null(parameter.schema))
        if given:
            value = canonical_numbers(value)
            if reason := reason_against(parameter.schema, value):
                invalid.append(InvalidArgument(name=name, value=value, reason=reason))
            else:
                values[name] = value
        elif parameter.required:
            missing.append(name)
        elif parameter.default is not None:
            defaults[name] = parameter.default
    known = {parameter.name for parameter in tool.parameters}
    return Checked(
        values=values,
        defaults=defaults,
        missing=tuple(missing),
        invalid=tuple(invalid),
        unknown=tuple(name for name in arguments if name not in known),
    )


def reason_against(schema: JsonObject, value: Any) -> str:
    """Why `value` does not fit `schema`, such as "must be one of EUR, USD"; empty where it fits."""
    if not _finite(value):
        return "must be a finite number"
    errors = _validator(canonical_json(schema)).iter_errors(value)
    error = min(errors, key=lambda e: (len(e.absolute_path), str(e.absolute_path)), default=None)
    return "" if error is None else _explain(error)


def allows_null(schema: JsonObject) -> bool:
    """Whether null is a value of `schema`."""
    return reason_against(schema, None) == ""


def plain_schema(schema: JsonObject) -> JsonObject:
    """`schema` without its union with null: the schema of the value itself, where there is one."""
    for keyword in _ALTERNATIVES:
        others = [part for part in schema.get(keyword, ()) if part.get("type") != "null"]
        if len(others) == 1:
            return {**{k: v for k, v in schema.items() if k != keyword}, **others[0]}
    types = schema.get("type")
    if isinstance(types, list) and "null" in types:
        rest = [name for name in types if name != "null"]
        plain = {**schema, "type": rest[0] if len(rest) == 1 else rest}
        if "enum" in plain:
            plain["enum"] = [choice for choice in plain["enum"] if choice is not None]
        return plain
    return schema


def choices_of(schema: JsonObject) -> tuple[Any, ...]:
    """The only values that `schema` accepts, or for a list its items; empty where it is not limited to choices."""
    plain = plain_schema(schema)
    if plain.get("type") == "array" and isinstance(plain.get("items"), dict):
        plain = plain["items"]
    if "const" in plain:
        return (plain["const"],)
    return tuple(plain.get("enum", ()))


def with_choices(schema: JsonObject, choices: Sequence[Any]) -> JsonObject:
    """`schema` that accepts only `choices`: as its value, or for a list as its items; null stays where it was.

    Raises ValueError, whose text continues "<parameter> …", for a schema of several types and for a choice that the
    schema itself refuses.
    """
    plain = plain_schema(schema)
    whole = plain.get("items") if plain.get("type") == "array" else plain
    if not isinstance(whole, dict) or "anyOf" in whole:
        raise ValueError("has choices for a value of several types; give it one type")
    for choice in choices:
        if reason := reason_against(whole, choice):
            raise ValueError(f"has the choice {choice!r}, which {reason}")
    narrowed = {**whole, "enum": list(choices)}
    if whole is not plain:
        narrowed = {**plain, "items": narrowed}
    if plain is schema:
        return narrowed
    return {"anyOf": [narrowed, {"type": "null"}]}


def canonical_numbers(value: Any) -> Any:
    """`value` with each whole float as an integer, at any depth: 5.0 and 5 are one number in JSON."""
    match value:
        case float() if value.is_integer() and abs(value) < 1e21:
            return int(value)
        case dict():
            return {key: canonical_numbers(item) for key, item in value.items()}
        case list() | tuple():
            return [canonical_numbers(item) for item in value]
        case _:
            return value


def refuse_unsupported(parameter: ToolParameter) -> None:
    """Raises SpecError (`field` is the parameter's name) for a schema outside the supported types.

    Supported: string (with the formats date, date-time, time, duration, uuid, email), integer, number,
    boolean, enum and const, lists that say what they hold, objects, unions of these and with null;
    nested to any depth.
    """
    name = parameter.name

    def refuse(problem: str) -> SpecError:
        return SpecError(f"parameter {name!r} {problem}", field=name)

    try:
        Draft202012Validator.check_schema(parameter.schema)
        canonical_json(parameter.schema)
    except SchemaError as error:
        raise refuse(f"has an invalid JSON Schema: {error.message}") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise refuse(f"has a schema that JSON cannot hold: {error}") from error
    if problem := _unsupported(parameter.schema):
        raise refuse(problem)
    if parameter.default is not None:
        reason = reason_against(parameter.schema, parameter.default)
        if reason:
            raise refuse(f"has the default {parameter.default!r}, which {reason}")


def _unsupported(schema: Any) -> str:
    """The first thing in `schema` that is not supported, as the end of a sentence, or empty."""
    if not isinstance(schema, dict):
        return "accepts anything; give it a type"
    if "$ref" in schema:
        return f"refers to {schema['$ref']!r}; write the referenced schema in its place"
    if problem := _unsupported_type(schema):
        return problem
    for part in _parts(schema):
        if problem := _unsupported(part):
            return problem
    return ""


def _unsupported_type(schema: JsonObject) -> str:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if not types and not any(key in schema for key in ("enum", "const", "allOf", *_ALTERNATIVES)):
        return "accepts anything somewhere; give every part a type or choices"
    if schema.get("format") in UNREADABLE_FORMATS:
        return f"has the format {schema['format']!r}, which JSON cannot hold; use text"
    if "array" in types and "items" not in schema and "prefixItems" not in schema:
        return "is a list that does not say what it holds; add `items`, or annotate list[str]"
    return ""


def _parts(schema: JsonObject) -> Iterable[Any]:
    for keyword in _PARTS:
        yield from schema.get(keyword, ())
    yield from schema.get("properties", {}).values()
    if schema.get("items", False) is not False:  # false: nothing after prefixItems
        yield schema["items"]
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        yield schema["additionalProperties"]


def _finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(_finite(item) for item in value.values())
        case list() | tuple():
            return all(_finite(item) for item in value)
        case _:
            return True


def _multiple_of(_validator: Any, step: Any, value: Any, _schema: Any) -> Iterable[ValidationError]:
    # The library divides floats, and 19.99 / 0.01 is not whole; fractions of what is written are.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if (Fraction(str(value)) / Fraction(str(step))).denominator != 1:
        yield ValidationError(f"{value!r} is not a multiple of {step!r}")


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"multipleOf": _multiple_of}
)


@lru_cache(maxsize=1024)
def _validator(schema_text: str) -> Any:
    return _Validator(json.loads(schema_text), format_checker=FORMAT_CHECKER)


def _explain(error: ValidationError) -> str:
    """One error as the end of a sentence, with its place inside the value where it has one."""
    error = _in_the_only_branch(error)
    place = "".join(
        f"item {step + 1} " if isinstance(step, int) else f"field {step!r} "
        for step in error.absolute_path
    )
    return place + _reason(error)


def _in_the_only_branch(error: ValidationError) -> ValidationError:
    """For a failed union the error of the one branch that was meant, where there is one."""
    while error.validator in _ALTERNATIVES and error.context:
        of_another_type = {
            e.schema_path[0] for e in error.context if e.validator == "type" and not e.relative_path
        }
        meant = [e for e in error.context if e.schema_path[0] not in of_another_type] or [
            e for e in error.context if e.validator_value != "null"
        ]
        if len({e.schema_path[0] for e in meant}) != 1:
            break
        error = meant[0]
    return error


def _reason(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    match str(error.validator):
        case "type":
            return f"must be {_type_words(wanted)}"
        case "anyOf" | "oneOf":
            return f"must be {_union_words(wanted)}"
        case "enum":
            return f"must be one of {_listed(wanted)}"
        case "const":
            return f"must be {wanted}"
        case "format":
            return FORMAT_WORDS.get(wanted, f"must be written as {wanted}")
        case "required" | "additionalProperties" | "dependentRequired":
            return _field_reason(error)
        case keyword:
            return _bound_reason(keyword, wanted) or f"does not fit: {error.message[:200]}"


def _field_reason(error: ValidationError) -> str:
    given: Any = error.instance
    required: Any = error.validator_value
    if error.validator == "required":
        absent = [name for name in required if name not in given]
        return f"needs {_listed(absent)}"
    known = (error.schema if isinstance(error.schema, dict) else {}).get("properties", {})
    return f"must not have {_listed([name for name in given if name not in known])}"


def _bound_reason(keyword: str, bound: Any) -> str:
    words = {
        "minimum": f"must be at least {bound}",
        "maximum": f"must be at most {bound}",
        "exclusiveMinimum": f"must be more than {bound}",
        "exclusiveMaximum": f"must be less than {bound}",
        "multipleOf": f"must be a multiple of {bound}",
        "minLength": f"must have at least {bound} characters"
        if bound != 1
        else "must not be empty",
        "maxLength": f"must have at most {bound} characters",
        "pattern": f"must be written like {bound}",
        "minItems": f"must have at least {bound} item{'s' * (bound != 1)}",
        "maxItems": f"must have at most {bound} item{'s' * (bound != 1)}",
        "uniqueItems": "must not name anything twice",
    }
    return words.get(keyword, "")


def _type_words(types: str | list[str]) -> str:
    names = [types] if isinstance(types, str) else [name for name in types if name != "null"]
    return " or ".join(_TYPE_WORDS.get(name, name) for name in names)


def _union_words(branches: list[JsonObject]) -> str:
    words = []
    for branch in branches:
        if "enum" in branch:
            words.append(f"one of {_listed(branch['enum'])}")
        elif branch.get("format") in FORMAT_WORDS:
            words.append(FORMAT_WORDS[branch["format"]].removeprefix("must be "))
        elif branch.get("type") != "null":
            words.append(_type_words(branch.get("type", "object")))
    return ", or ".join(dict.fromkeys(words))


def _listed(values: Sequence[Any]) -> str:
    shown = [
        value if isinstance(value, str) else canonical_json(value)
        for value in values[:_CHOICES_SHOWN]
        if value is not None
    ]
    return ", ".join(shown) + (" …" if len(values) > _CHOICES_SHOWN else "")
