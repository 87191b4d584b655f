"""Annotations of a file as the types they stand for, without a string that anything else would evaluate."""

import ast
import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from enum import Enum
from typing import Any

import annotated_types
import pydantic
import typing_extensions
from pydantic.fields import FieldInfo

from engine.tools.extraction import known
from engine.tools.extraction.field_calls import Factory, dataclass_field, field
from engine.tools.extraction.quiet import quiet
from engine.tools.extraction.scopes import Binding
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator, Place, source

_LITERALS = (typing.Literal, typing_extensions.Literal)
_ANNOTATED = (typing.Annotated, typing_extensions.Annotated)
_NO_TYPES = (
    *(
        bool,
        int,
        float,
        complex,
        bytes,
        list,
        tuple,
        dict,
        set,
        frozenset,
        Enum,
        FieldInfo,
        re.Pattern,
    ),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType, known.Module, Factory),
)
_METADATA = (
    *(
        annotated_types.BaseMetadata,
        FieldInfo,
        pydantic.Strict,
        pydantic.AllowInfNan,
        pydantic.FailFast,
    ),
    *(pydantic.Discriminator, pydantic.Tag, pydantic.UrlConstraints, pydantic.StringConstraints),
    *(
        pydantic.AfterValidator,
        pydantic.BeforeValidator,
        pydantic.WrapValidator,
        pydantic.PlainValidator,
    ),
)
_WITHOUT_EFFECT = (
    ""  # still metadata: Optional within Annotated is not flattened into a union around it
)
_TYPE_VARIABLES = (typing.TypeVar, typing_extensions.TypeVar)
_NAMED = (
    *_TYPE_VARIABLES,
    typing.NewType,
    typing_extensions.NewType,
    typing_extensions.TypeAliasType,
)


class Annotations:
    """Types of one file; what `values.Evaluator` asks for whatever is not a plain value."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._named: dict[ast.Call, Any] = {}

    def read(self, node: ast.expr, place: Place) -> Any:
        """The type that an annotation stands for, Any for a part that cannot be told, which `place.unread` says."""
        try:
            return self._typed(self._evaluator.value(node, place), place)
        except UnreadableError as error:
            place.unread.append(f"{source(node)}: {error}")
        except RecursionError:
            place.unread.append("it is nested too deep")
        return Any

    def _typed(self, value: Any, place: Place) -> Any:
        if isinstance(value, str):
            return self.read(parsed(value), dataclasses.replace(place, deferred=True))
        if value is ... or (isinstance(value, _NO_TYPES) and not isinstance(value, type)):
            raise UnreadableError(f"{value!r:.80} is not a type")
        return value

    def subscript(self, base: Any, node: ast.Subscript, place: Place) -> Any:
        if base in _LITERALS:
            return typing.Literal[self._evaluator.value(node.slice, place)]
        if isinstance(base, _NO_TYPES) and not isinstance(base, type):
            raise UnreadableError(f"{source(node)} is not a type")
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if base in _ANNOTATED:
            return self._annotated(items, place)
        parts = tuple(self._part(item, place) for item in items)
        with quiet() if isinstance(base, type) else nullcontext():
            return base[parts if isinstance(node.slice, ast.Tuple) else parts[0]]

    def _part(self, node: ast.expr, place: Place) -> Any:
        match node:
            case ast.Constant(value=value) if value is ...:
                return ...
            case ast.Tuple(elts=[]):
                return ()
            case ast.List() | ast.Starred():
                raise UnreadableError(f"{source(node)} is not followed")
        return self.read(node, place)

    def _annotated(self, items: list[ast.expr], place: Place) -> Any:
        kind = self.read(items[0], place)
        told = tuple(self._told(items[1:], place))
        return typing.Annotated[(kind, *told)] if told else kind

    def _told(self, items: list[ast.expr], place: Place) -> Iterator[object]:
        for item in items:
            try:
                value = self._metadata(item, place)
            except UnreadableError as error:
                place.unread.append(f"{source(item)}: {error}")
            else:
                yield value

    def _metadata(self, node: ast.expr, place: Place) -> object:
        value = self._evaluator.value(node, place)
        if value is None or value is _WITHOUT_EFFECT or isinstance(value, (str, int, float, bytes)):
            return _WITHOUT_EFFECT
        if not isinstance(value, _METADATA):
            raise UnreadableError(f"what {source(node)} does to the type is not known")
        return value

    def either(self, left: Any, right: Any, place: Place) -> Any:
        if left is None and right is None:
            raise UnreadableError("Python has no None | None")
        return typing.Union[self._typed(left, place), self._typed(right, place)]  # noqa: UP007

    def alias(self, binding: Binding) -> Any:
        """`type Name = …`, as a type of its own; what it says is read with the rest of the file known."""
        if binding.expression is None:
            raise UnreadableError(f"{binding.name!r} has no value")
        place = Place(scope=binding.scope, order=binding.scope.end, deferred=True)
        kind = self.read(binding.expression, place)
        if place.unread:
            raise UnreadableError(place.unread[0])
        return typing_extensions.TypeAliasType(binding.name, kind)

    def call(self, called: Any, node: ast.Call, place: Place) -> Any:
        """Calls that make fields, types and their metadata."""
        if called is pydantic.Field:
            return field(self._evaluator, node, place)
        if called is dataclasses.field:
            return dataclass_field(self._evaluator, node, place)
        if called in known.VALIDATORS:
            return self._validator(called, node, place)
        if called in known.WITHOUT_EFFECT:
            return _WITHOUT_EFFECT
        if called in known.OF_TYPES:
            return self._of_type(called, node, place)
        if called in _NAMED:
            if node not in self._named:  # the same one wherever its name is used
                self._named[node] = self._of_a_name(called, node, place)
            return self._named[node]
        if called in (typing.cast, typing_extensions.cast):
            return self._evaluator.value(node.args[1], place)
        raise UnreadableError(f"{source(node)} is a call, which is made when the tool starts")

    def _of_a_name(self, called: Any, node: ast.Call, place: Place) -> Any:
        if called in _TYPE_VARIABLES:
            return self._type_variable(node, place)
        name, kind = self._evaluator.value(node.args[0], place), self.read(node.args[1], place)
        if called is typing_extensions.TypeAliasType:
            return typing_extensions.TypeAliasType(name, kind)
        return typing.NewType(name, kind)

    def _validator(self, called: Any, node: ast.Call, place: Place) -> object:
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        if "json_schema_input_type" in named:
            kind = self.read(named["json_schema_input_type"], place)
            return called(lambda value: value, json_schema_input_type=kind)
        if called is pydantic.WrapValidator:
            return called(lambda value, handler: handler(value))
        return called(lambda value: value)

    def _of_type(self, called: Callable[..., Any], node: ast.Call, place: Place) -> Any:
        kinds = [
            *node.args[:1],
            *(keyword.value for keyword in node.keywords if keyword.arg == "item_type"),
        ]
        rest = [keyword for keyword in node.keywords if keyword.arg != "item_type"]
        _, named = self._evaluator.arguments(
            ast.Call(func=node.func, args=[], keywords=rest), place
        )
        return called(self.read(kinds[0], place), **named)

    def _type_variable(self, node: ast.Call, place: Place) -> Any:
        name, *kinds = node.args
        bounds = [keyword.value for keyword in node.keywords if keyword.arg == "bound"]
        return typing_extensions.TypeVar(
            self._evaluator.value(name, place),
            *(self.read(kind, place) for kind in kinds),
            bound=self.read(bounds[0], place) if bounds else None,
        )


def parsed(text: str) -> ast.expr:
    """A string annotation as an expression; UnreadableError where it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"{text[:80]!r} is not a type") from error
