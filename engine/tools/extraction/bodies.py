"""What a class body holds: fields with their types and defaults, and the members of an enum."""

import ast
import dataclasses
import inspect
import sys
import typing
from typing import Any

import pydantic
from pydantic.fields import FieldInfo

from engine.tools.extraction.annotations import Annotations, parsed
from engine.tools.extraction.field_calls import Factory
from engine.tools.extraction.result import Problem
from engine.tools.extraction.scopes import Annotated, Binding, Scope
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator, Place

MISSING: Any = dataclasses.MISSING
_OWN_MEMBERS = frozenset("_generate_next_value_ __new__ _ignore_".split())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A field as its class writes it. `kind` and `value` (MISSING where there is none) are what pydantic is given;
    `declared` is the type before what could not be told of it (`unread`) made it Any."""

    name: str
    annotation: ast.expr
    line: int
    kind: Any
    declared: Any
    value: Any
    unread: tuple[str, ...]


class Bodies:
    """Reads class bodies of one file. `problems` collects what could not be told of their fields."""

    def __init__(self, evaluator: Evaluator, annotations: Annotations) -> None:
        self._evaluator = evaluator
        self._annotations = annotations
        self.problems: dict[Problem, None] = {}

    def members(self, binding: Binding, body: Scope) -> dict[str, Any]:
        """The names of an enum in order, with their values."""
        if _OWN_MEMBERS & set(body.bindings):
            raise UnreadableError(f"the enum {binding.name!r} makes its members itself")
        members: dict[str, Any] = {}
        for name, bounds in body.bindings.items():
            if name.startswith("__") or bounds[-1].function is not None:
                continue
            if bounds[-1].expression is None or not bounds[-1].certain:
                raise UnreadableError(f"the value of {binding.name}.{name} is not known")
            members[name] = self._evaluator.value(
                bounds[-1].expression, Place(scope=body, order=bounds[-1].order)
            )
        return members

    def fields(
        self, binding: Binding, body: Scope, *, everything: bool, documented: bool
    ) -> dict[str, Source]:
        fields: dict[str, Source] = {}
        for name, annotated in body.annotated.items():
            if name == "model_config" or (name.startswith("_") and not everything):
                continue
            fields[name] = self._field(name, annotated, body, documented=documented)
            unread = fields[name].unread
            if unread:
                told = f"the type of {name!r} cannot be told without running the tool: {unread[0]}"
                self.problems[Problem(code="unknown_type", message=told, line=annotated.line)] = (
                    None
                )
            if not annotated.certain:
                told = f"whether {binding.name} has the field {name!r} depends on what happens when the tool starts"
                self.problems[Problem(code="conditional", message=told, line=annotated.line)] = None
        return fields

    def _field(self, name: str, annotated: Annotated, body: Scope, *, documented: bool) -> Source:
        deferred = body.deferred or sys.version_info >= (3, 14)
        place = Place(
            scope=body, order=body.end if deferred else annotated.order, deferred=deferred
        )
        declared = kind = self._annotations.read(annotated.annotation, place)
        value = self._value(name, body, place.unread)
        if (
            documented
            and annotated.docstring
            and not any(info.description for info in _infos(kind))
        ):
            kind = typing.Annotated[
                kind, pydantic.Field(description=inspect.cleandoc(annotated.docstring))
            ]
        if place.unread and typing.get_origin(kind) is not typing.ClassVar:
            kind, value = what_is_left(kind, value)
        return Source(
            name=name,
            annotation=_shown(annotated.annotation),
            line=annotated.line,
            kind=kind,
            declared=declared,
            value=value,
            unread=tuple(place.unread),
        )

    def _value(self, name: str, body: Scope, unread: list[str]) -> Any:
        bound = body.last(name)
        if bound is None:
            return MISSING
        if bound.expression is None or not bound.certain:
            return pydantic.Field(default_factory=Factory())
        try:
            return self._evaluator.value(
                bound.expression, Place(scope=body, order=bound.order, unread=unread)
            )
        except UnreadableError:
            return pydantic.Field(default_factory=Factory())

    def unannotated(self, body: Scope) -> dict[str, Any]:
        """Names with a plain value and no annotation, which pydantic refuses, or which a field of a base becomes."""
        values: dict[str, Any] = {}
        for name, bounds in body.bindings.items():
            bound = bounds[-1]
            if (
                name.startswith("_")
                or name in body.annotated
                or name == "model_config"
                or bound.expression is None
            ):
                continue
            try:
                values[name] = self._evaluator.value(
                    bound.expression, Place(scope=body, order=bound.order)
                )
            except UnreadableError:
                continue
        return values


def _infos(kind: Any) -> list[FieldInfo]:
    return [item for item in getattr(kind, "__metadata__", ()) if isinstance(item, FieldInfo)]


def what_is_left(kind: Any, value: Any) -> tuple[Any, Any]:
    """A field of any type, with the names, texts and default of the one whose type cannot be told."""
    infos = _infos(kind) + ([value] if isinstance(value, FieldInfo) else [])
    kept: dict[str, Any] = (
        {} if value is MISSING or isinstance(value, FieldInfo) else {"default": value}
    )
    for info in infos:
        told = {
            "alias": info.alias,
            "validation_alias": info.validation_alias,
            "description": info.description,
        }
        kept.update({name: text for name, text in told.items() if text is not None})
        if not info.is_required():
            kept.pop("default", None)
            kept.update(
                {"default_factory": info.default_factory}
                if info.default_factory
                else {"default": info.default}
            )
    return Any, pydantic.Field(**kept)


def _shown(node: ast.expr) -> ast.expr:
    """An annotation as people read it: what a string says, and what Annotated is about."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _shown(parsed(node.value))
        except UnreadableError:
            return node
    return node
