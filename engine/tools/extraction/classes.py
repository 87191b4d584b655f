"""Classes of a file, made anew from what was read of them: models, enums, dataclasses, typed dicts."""

import ast
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pydantic
import pydantic.dataclasses
import typing_extensions
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from engine.tools.extraction import known
from engine.tools.extraction.annotations import Annotations
from engine.tools.extraction.bodies import MISSING, Bodies, Source
from engine.tools.extraction.configs import Config, read_config
from engine.tools.extraction.quiet import first_line, quiet
from engine.tools.extraction.result import Problem
from engine.tools.extraction.scopes import Binding, Scope
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.validators import plain_validators, version_1_style
from engine.tools.extraction.values import Evaluator, Place

CONTAINS_ITSELF = "x-contains-itself"
_DEEPEST = 20
_MOST = 500
_NAMED_TUPLES = (typing.NamedTuple, typing_extensions.NamedTuple)
_TYPED_DICTS = (typing.TypedDict, typing_extensions.TypedDict)
_OWN_SCHEMA = frozenset(
    "__get_pydantic_core_schema__ __get_pydantic_json_schema__ __class_getitem__ model_json_schema".split()
)


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


class _Within:
    """Stands for the class `name` within itself."""

    name: str

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "type": "object", CONTAINS_ITSELF: cls.name}


class Classes:
    """The classes of one file; what `values.Evaluator` asks for where a name stands for one."""

    def __init__(self, evaluator: Evaluator, annotations: Annotations) -> None:
        self._evaluator = evaluator
        self._annotations = annotations
        self._bodies = Bodies(evaluator, annotations)
        self._made: dict[Binding, Any] = {}
        self._building: list[Binding] = []
        self._within_itself: set[Binding] = set()
        self._begun = 0
        self._parts: dict[type, Parts] = {}
        self._forgiving = False

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

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be told of fields of the classes that were read."""
        return tuple(self._bodies.problems)

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
        return type("Within", (_Within,), {"name": binding.name})

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
        if not forgiving and _OWN_SCHEMA & set(body.bindings):
            raise UnreadableError(f"the class {binding.name!r} says by a method what its schema is")
        bases, unknown, version_1 = self._bases(binding, node, forgiving=forgiving)
        config = read_config(self._evaluator, node, body, binding)
        sources: dict[str, Source] = {}
        namespace: dict[str, Any] = {
            "__module__": "tool",
            "__qualname__": node.name,
            "__doc__": ast.get_docstring(node, clean=False),
        }
        if any(isinstance(base, enum.EnumMeta) for base in bases):
            namespace |= self._bodies.members(binding, body)
        else:
            documented = config.attribute_docstrings or any(self._documents(base) for base in bases)
            everything = not _are_models(bases)
            sources = self._bodies.fields(
                binding, body, everything=everything, documented=documented
            )
            namespace["__annotations__"] = {name: field.kind for name, field in sources.items()}
            namespace |= {
                name: field.value for name, field in sources.items() if field.value is not MISSING
            }
            namespace |= self._bodies.unannotated(body)
        if _are_models(bases) or forgiving:
            namespace |= plain_validators(self._evaluator, self._annotations, body)
            namespace |= {"model_config": config.values} if config.values else {}
        return Parts(
            binding=binding,
            node=node,
            bases=bases,
            unknown_bases=unknown,
            namespace=namespace,
            sources=sources,
            config=config,
            version_1=version_1 or config.version_1 or version_1_style(self._evaluator, body),
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
                if isinstance(found, str) or (
                    isinstance(found, type) and issubclass(found, _Within)
                ):
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
