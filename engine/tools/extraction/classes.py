"""Classes of a file, made anew from what was read of them: models, enums, dataclasses, typed dicts."""

import ast
import dataclasses
import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pydantic
import pydantic.dataclasses
import typing_extensions
from pydantic.fields import FieldInfo

from engine.tools.extraction import known
from engine.tools.extraction.annotations import Annotations, parsed
from engine.tools.extraction.configs import Config, read_config
from engine.tools.extraction.field_calls import OF_VERSION_1, Factory
from engine.tools.extraction.quiet import first_line, quiet
from engine.tools.extraction.result import Problem
from engine.tools.extraction.scopes import Annotated, Binding, Scope
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.validators import plain_validators, version_1_decorator
from engine.tools.extraction.values import Evaluator, Place

MISSING: Any = dataclasses.MISSING
CONTAINS_ITSELF = "x-contains-itself"
_DEEPEST = 20
_MOST = 500
_NAMED_TUPLES = (typing.NamedTuple, typing_extensions.NamedTuple)
_TYPED_DICTS = (typing.TypedDict, typing_extensions.TypedDict)
_OWN_SCHEMA = frozenset(
    "__get_pydantic_core_schema__ __get_pydantic_json_schema__ __class_getitem__ model_json_schema".split()
)
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a class is made of."""

    binding: Binding
    node: ast.ClassDef
    bases: tuple[Any, ...]
    unknown_bases: tuple[str, ...]
    namespace: dict[str, Any]
    sources: dict[str, Source]
    config: Config
    version_1: str


class Classes:
    """The classes of one file; what `values.Evaluator` asks for where a name stands for one."""

    def __init__(self, evaluator: Evaluator, annotations: Annotations) -> None:
        self._evaluator = evaluator
        self._annotations = annotations
        self._made: dict[Binding, Any] = {}
        self._building: list[Binding] = []
        self._within_itself: set[Binding] = set()
        self._begun = 0
        self._parts: dict[type, Parts] = {}
        self._forgiving = False
        self.problems: dict[Problem, None] = {}

    def made(self, binding: Binding) -> Any:
        """The class that a statement makes; UnreadableError where that cannot be told.

        A class that is asked for while it is being made is an object of any kind in that place.
        """
        if binding not in self._made:
            if binding in self._building:
                return self._recursion(binding)
            made: type | UnreadableError
            try:
                made = self._new(binding)
            except UnreadableError as error:
                made = error
            if binding in self._within_itself:
                self._within_itself.discard(binding)
                return _given(made)
            self._made[binding] = made
        return _given(self._made[binding])

    def body_of(self, made: Any) -> Scope | None:
        """The names in the body of a class that was made here."""
        parts = self._parts.get(made) if isinstance(made, type) else None
        return parts.binding.class_body if parts is not None else None

    def parts_of(self, made: type) -> Parts | None:
        """What a class was made of."""
        return self._parts.get(made)

    def parts(self, binding: Binding) -> Parts:
        """What a parameter class is made of; bases that are not known are left out, and noted."""
        with self._while_building(binding):
            return self._read(binding, forgiving=True)

    def assemble(self, parts: Parts, bases: tuple[Any, ...]) -> type:
        """The class; raises whatever pydantic, enum and dataclasses raise for what cannot be made."""
        decorate = self._dataclass_decorator(parts)
        with quiet():
            made = types.new_class(
                parts.node.name,
                bases,
                _keywords(parts, bases),
                lambda namespace: namespace.update(parts.namespace),
            )
            if decorate is not None and not isinstance(made, enum.EnumMeta):
                made = decorate(made)
        self._parts[made] = parts
        return made

    def _recursion(self, binding: Binding) -> Any:
        """Stands for a class within itself. What is made of it is good in this place only, as in another place the
        circle is entered elsewhere."""
        self._within_itself.update(self._building[self._building.index(binding) :])
        return typing.Annotated[
            Any, pydantic.WithJsonSchema({"type": "object", CONTAINS_ITSELF: binding.name})
        ]

    def _new(self, binding: Binding) -> type:
        forgiving = self._forgiving
        with self._while_building(binding):
            parts = self._read(binding, forgiving=forgiving)
            try:
                return self.assemble(parts, parts.bases)
            except Exception as error:
                # What classes of any kind raise for what is wrong with them is not a closed set.
                raise UnreadableError(
                    f"the class {binding.name!r} is refused: {first_line(error)}"
                ) from error

    @contextmanager
    def _while_building(self, binding: Binding) -> Iterator[None]:
        self._begun += 1
        if len(self._building) >= _DEEPEST or self._begun > _MOST:
            raise UnreadableError(
                f"the class {binding.name!r} is nested too deep, or among too many"
            )
        self._building.append(binding)
        forgiving, self._forgiving = self._forgiving, False
        try:
            yield
        finally:
            self._building.pop()
            self._forgiving = forgiving

    def _read(self, binding: Binding, *, forgiving: bool) -> Parts:
        node, body = binding.class_def, binding.class_body
        if node is None or body is None:
            raise UnreadableError(f"{binding.name!r} is not a class")
        bases, unknown, version_1 = self._bases(binding, node, forgiving=forgiving)
        functions = set(body.bindings)
        if not forgiving and functions & _OWN_SCHEMA:
            raise UnreadableError(f"the class {binding.name!r} says by a method what its schema is")
        config = read_config(self._evaluator, node, body, binding)
        namespace: dict[str, Any] = {
            "__module__": "tool",
            "__qualname__": node.name,
            "__doc__": ast.get_docstring(node, clean=False),
        }
        if any(isinstance(base, enum.EnumMeta) for base in bases):
            namespace.update(self._members(binding, body))
            sources: dict[str, Source] = {}
        else:
            documented = config.attribute_docstrings or any(self._documents(base) for base in bases)
            sources = self._fields(
                binding, body, everything=not _are_models(bases), documented=documented
            )
            namespace["__annotations__"] = {name: field.kind for name, field in sources.items()}
            namespace.update(
                {name: field.value for name, field in sources.items() if field.value is not MISSING}
            )
            namespace.update(self._unannotated(body))
        if _are_models(bases) or forgiving:
            namespace.update(plain_validators(self._evaluator, self._annotations, body))
            if config.values:
                namespace["model_config"] = config.values
        return Parts(
            binding=binding,
            node=node,
            bases=bases,
            unknown_bases=unknown,
            namespace=namespace,
            sources=sources,
            config=config,
            version_1=version_1
            or config.version_1
            or _version_1_style(body)
            or version_1_decorator(self._evaluator, body),
        )

    def _documents(self, base: Any) -> bool:
        """Whether a base has it that texts after fields describe them."""
        return isinstance(base, type) and any(
            self._parts[kind].config.attribute_docstrings
            for kind in base.__mro__
            if kind in self._parts
        )

    def _bases(
        self, binding: Binding, node: ast.ClassDef, *, forgiving: bool
    ) -> tuple[tuple[Any, ...], tuple[str, ...], str]:
        place = Place(scope=binding.scope, order=binding.order)
        bases, unknown, version_1 = [], [], ""
        for base in node.bases:
            self._forgiving = forgiving
            try:
                found = self._evaluator.value(base, place)
                if isinstance(found, str) or getattr(found, "__metadata__", None):
                    raise UnreadableError("it is not a class")
                bases.append(found)
            except UnreadableError as error:
                if not forgiving:
                    raise
                unknown.append(f"{ast.unparse(base)!r:.80}: {error}")
            finally:
                self._forgiving = False
            version_1 = version_1 or self._version_1_base(base, place)
        return tuple(bases), tuple(unknown), version_1

    def _version_1_base(self, node: ast.expr, place: Place) -> str:
        module = ""
        if isinstance(node, ast.Name):
            bound = self._evaluator.binding(node.id, place)
            module = bound.imported[0] if bound is not None and bound.imported is not None else ""
        elif isinstance(node, ast.Attribute):
            try:
                found = self._evaluator.value(node.value, place)
            except UnreadableError:
                return ""
            module = found.name if isinstance(found, known.Module) else ""
        return "it inherits from pydantic.v1" if module.startswith(known.VERSION_1) else ""

    def _members(self, binding: Binding, body: Scope) -> dict[str, Any]:
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

    def _fields(
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

    def _unannotated(self, body: Scope) -> dict[str, Any]:
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

    def _dataclass_decorator(self, parts: Parts) -> Callable[[type], type] | None:
        place = Place(scope=parts.binding.scope, order=parts.binding.order)
        for decorator in parts.node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            try:
                found = self._evaluator.value(call.func if call else decorator, place)
                named = self._evaluator.arguments(call, place)[1] if call else {}
            except UnreadableError:
                continue
            if found is dataclasses.dataclass or found is pydantic.dataclasses.dataclass:
                return found(**named)
        return None


def _given(made: Any) -> Any:
    if isinstance(made, UnreadableError):
        raise UnreadableError(str(made))
    return made


def _are_models(bases: tuple[Any, ...]) -> bool:
    return any(isinstance(base, type) and issubclass(base, pydantic.BaseModel) for base in bases)


def _keywords(parts: Parts, bases: tuple[Any, ...]) -> dict[str, Any]:
    """Keywords of the class statement; those of models are their configuration, and already there."""
    if not any(base in _TYPED_DICTS or typing_extensions.is_typeddict(base) for base in bases):
        return {}
    return {
        keyword.arg: keyword.value.value
        for keyword in parts.node.keywords
        if keyword.arg == "total" and isinstance(keyword.value, ast.Constant)
    }


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


def _version_1_style(body: Scope) -> str:
    for annotated in body.annotated.values():
        if isinstance(annotated.value, ast.Call):
            for keyword in annotated.value.keywords:
                if keyword.arg in OF_VERSION_1:
                    return f"{keyword.arg}= is of pydantic 1"
    return ""
