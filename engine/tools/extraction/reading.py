"""A parameter class, read as a whole: found, made anew, and asked for its schema."""

import ast
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import new_class
from typing import Any

import pydantic
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from engine.canonical import JsonObject
from engine.tools.extraction.annotations import Annotations
from engine.tools.extraction.bodies import MISSING, Source, what_is_left
from engine.tools.extraction.classes import Classes, Parts
from engine.tools.extraction.fields import Property, template_field
from engine.tools.extraction.finding import find
from engine.tools.extraction.quiet import first_line, quiet
from engine.tools.extraction.result import Extracted, Problem
from engine.tools.extraction.scopes import Binding, Walk
from engine.tools.extraction.self_contained import SelfContained
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator
from engine.tools.template import TemplateField

_DESCRIBED = "ToolParameters"
"""The class whose fields an agent fills in, and needs descriptions for."""


def read_fields(tree: ast.Module, class_name: str) -> Extracted:
    """The fields of a class of the file, without running anything of it. Never raises, whatever the file holds."""
    try:
        return _read(tree, class_name)
    except RecursionError:
        message = f"the file is nested too deep for {class_name!r} to be read"
        return Extracted(found=False, problems=(Problem(code="absent", message=message),))


def _forget_types() -> None:
    """Empties typing's caches, by which List[Union[int, str]] would be another file's List[Union[str, int]]."""
    for forget in getattr(typing, "_cleanups", ()):
        forget()


def _read(tree: ast.Module, class_name: str) -> Extracted:
    _forget_types()
    evaluator = Evaluator()
    annotations = Annotations(evaluator)
    classes = Classes(evaluator, annotations)
    evaluator.types, evaluator.classes = annotations, classes
    module = Walk(evaluator.test).module(tree)
    target = find(evaluator, module, class_name)
    if target.binding is None:
        return Extracted(found=target.found, problems=target.problems)
    reading = _Reading(classes=classes, class_name=class_name)
    fields = reading.fields(target.binding)
    problems = (*target.problems, *classes.problems, *reading.problems)
    return Extracted(found=target.found, fields=fields, problems=tuple(dict.fromkeys(problems)))


class _Quietly(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """A default that has no JSON form is none in the schema; nobody has to be told."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """A model with its schema; `error` says why one of them is missing."""

    model: type[pydantic.BaseModel] | None
    schema: JsonObject | None
    error: str = ""


class _Reading:
    """One class being read."""

    def __init__(self, *, classes: Classes, class_name: str) -> None:
        self._classes = classes
        self._class_name = class_name
        self._is_model = True
        self.problems: list[Problem] = []

    def fields(self, binding: Binding) -> tuple[TemplateField, ...]:
        """Its fields in pydantic's order."""
        try:
            parts = self._classes.parts(binding)
        except UnreadableError as error:
            line = binding.class_def.lineno if binding.class_def is not None else 0
            self._note(
                "not_a_model",
                f"{self._class_name} cannot be read as a pydantic BaseModel: {error}",
                line,
            )
            return ()
        self._judge_class(parts)
        bases, self._is_model = parts.bases, _are_models(parts.bases)
        if not self._is_model:
            bases = (pydantic.BaseModel, *(base for base in bases if _is_plain(base)))
            parts = replace(parts, namespace=_of_fields(parts))
        shape = self._shape(partial(self._classes.assemble, parts, bases))
        self._note_settings(shape.model, parts)
        if shape.model is None or shape.schema is None:
            return self._one_by_one(parts, shape)
        return self._of_model(shape.model, shape.schema, self._sources(shape.model))

    def _shape(self, make: Callable[[], Any]) -> _Shape:
        model = None
        try:
            model = make()
            with quiet():
                return _Shape(model, model.model_json_schema(schema_generator=_Quietly))
        except Exception as error:  # noqa: BLE001 - what pydantic raises for types of all kinds is not a closed set
            return _Shape(model, None, first_line(error))

    def _judge_class(self, parts: Parts) -> None:
        line = parts.node.lineno
        bases = [base for base in parts.bases if isinstance(base, type)]
        if parts.unknown_bases:
            self._note(
                "unknown_base",
                f"what {self._class_name} inherits cannot be told without running the tool: {parts.unknown_bases[0]}; "
                "write its fields into the class itself",
                line,
            )
        elif not any(issubclass(base, pydantic.BaseModel) for base in bases):
            self._note(
                "not_a_model",
                f"{self._class_name} is not a pydantic BaseModel; make it inherit from one",
                line,
            )

    def _note_settings(self, model: type[pydantic.BaseModel] | None, parts: Parts) -> None:
        line = parts.node.lineno
        if model is None:
            family = [parts]
        else:
            family = [
                made for kind in model.__mro__ if (made := self._classes.parts_of(kind)) is not None
            ]
        for reason in [made.version_1 for made in family if made.version_1][:1]:
            self._note(
                "v1",
                f"{self._class_name} is written for pydantic 1 ({reason}); write it for pydantic 2",
                line,
            )
        for made in family:
            if "alias_generator" in made.config.unread:
                self._note(
                    "alias_generator",
                    f"the names of the fields of {self._class_name} come from a function, which is not run; "
                    "give each field its alias",
                    made.config.line,
                )
        if model is not None and model.model_config.get("extra") == "allow":
            self._note(
                "extra_allowed",
                f"{self._class_name} takes values that no field names; an agent cannot know of them",
                line,
            )

    def _note(self, code: str, message: str, line: int) -> None:
        self.problems.append(Problem(code=code, message=message, line=line))

    def _sources(self, model: type[pydantic.BaseModel]) -> dict[str, Source]:
        sources: dict[str, Source] = {}
        for kind in reversed(model.__mro__):
            made = self._classes.parts_of(kind)
            sources.update(made.sources if made is not None else {})
        return sources

    def _one_by_one(self, parts: Parts, shape: _Shape) -> tuple[TemplateField, ...]:
        """The fields of a class that pydantic does not take as a whole, each in a class of its own."""
        sources: dict[str, Source] = {}
        for base in reversed(parts.bases):
            sources.update(self._sources(base) if isinstance(base, type) else {})
        sources.update(parts.sources)
        fields: list[TemplateField] = []
        blamed = False
        for written in sources.values():
            source = written
            single = self._shape(partial(_single, parts, source.kind, source, source.value))
            if single.schema is None:
                blamed = True
                self._blame(source, single)
                kind, value = what_is_left(source.kind, source.value)
                source = replace(source, unread=("refused",))
                single = self._shape(partial(_single, parts, kind, source, value))
            if single.model is not None and single.schema is not None:
                fields.extend(self._of_model(single.model, single.schema, {source.name: source}))
        if not blamed and self._is_model:
            self._note(
                "refused", f"pydantic refuses {self._class_name}: {shape.error}", parts.node.lineno
            )
        return tuple(fields)

    def _blame(self, source: Source, shape: _Shape) -> None:
        if shape.model is None and self._is_model:
            self._note("refused", f"pydantic refuses {source.name!r}: {shape.error}", source.line)
        else:
            self._note(
                "unknown_type",
                f"the type of {source.name!r} has no JSON form: {shape.error}",
                source.line,
            )

    def _of_model(
        self, model: type[pydantic.BaseModel], schema: JsonObject, sources: dict[str, Source]
    ) -> tuple[TemplateField, ...]:
        definitions = schema.get("$defs", {})
        if "$ref" in schema:
            schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        writing = SelfContained(definitions)
        version_1 = any(problem.code == "v1" for problem in self.problems)
        fields: dict[str, TemplateField] = {}
        for name, info in model.model_fields.items():
            source, key = sources.get(name), _key(model, name, info)
            if source is None or key not in properties:
                continue
            described = Property(
                key=key,
                info=info,
                source=source,
                schema=properties[key],
                required=key in required,
                version_1=version_1,
                for_agent=self._class_name == _DESCRIBED,
            )
            if key in fields:
                self._note(
                    "same_name",
                    f"two fields take the value of {key!r}; give one of them another alias",
                    source.line,
                )
            fields[key], problems = template_field(described, writing)
            self.problems.extend(problems)
        return tuple(fields.values())


def _single(parts: Parts, kind: Any, source: Source, value: Any) -> type[pydantic.BaseModel]:
    """A model of one field, with the configuration of the class that it is of."""
    namespace: dict[str, Any] = {
        "__module__": "tool",
        "__qualname__": "Single",
        "__annotations__": {source.name: kind},
    }
    if parts.config.values:
        namespace["model_config"] = parts.config.values
    if value is not MISSING:
        namespace[source.name] = value
    with quiet():
        return new_class("Single", (pydantic.BaseModel,), {}, lambda names: names.update(namespace))


def _key(model: type[pydantic.BaseModel], name: str, info: FieldInfo) -> str:
    """The key under which the value of a field is passed, as the schema has it."""
    alias = info.validation_alias
    if alias is None or model.model_config.get("validate_by_alias") is False:
        return name
    if isinstance(alias, str):
        return alias
    choices = alias.choices if isinstance(alias, pydantic.AliasChoices) else [alias]
    for choice in choices:
        path = [choice] if isinstance(choice, str) else choice.path
        if len(path) == 1 and isinstance(path[0], str):
            return path[0]
    return name


def _are_models(bases: tuple[Any, ...]) -> bool:
    return any(isinstance(base, type) and issubclass(base, pydantic.BaseModel) for base in bases)


def _of_fields(parts: Parts) -> dict[str, Any]:
    """What a class that is not a model has in common with one: its fields, without anything else that it holds."""
    return {
        name: value
        for name, value in parts.namespace.items()
        if name in parts.sources or name.startswith("__")
    }


def _is_plain(base: Any) -> bool:
    """Whether a class can stand beside BaseModel."""
    return isinstance(base, type) and type(base) is type and base.__module__ == "tool"
