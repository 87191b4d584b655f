"""`Field(...)` and what stands in it."""

import ast
import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pydantic
from pydantic.fields import FieldInfo

from engine.tools.extraction.quiet import first_line, quiet
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator, Place, source

_LOST_AT_NO_COST = frozenset({"title", "description", "deprecated", "union_mode", "fail_fast"})
"""What may be unknown, and the schema of the value is still known."""

_MATTERING = frozenset(
    """alias alias_priority validation_alias discriminator pattern strict coerce_numbers_to_str gt ge lt le multiple_of
    allow_inf_nan max_digits decimal_places min_length max_length
    regex const min_items max_items unique_items allow_mutation""".split()
)
"""What makes the schema and the name; pydantic says itself what it does with the last six, of pydantic 1."""

OF_VERSION_1 = frozenset(
    {"regex", "const", "min_items", "max_items", "unique_items", "allow_mutation"}
)


_HARMLESS = ("default", "default_factory", "alias", "validation_alias", "description")


class Factory:
    """A function that makes a default. `value` is what it makes, where `known`."""

    def __init__(self, value: Any = None, *, known: bool = False) -> None:
        self.value = value
        self.known = known

    def __call__(self) -> Any:
        return self.value


FACTORIES: Mapping[object, Callable[[], Any]] = MappingProxyType(
    {kind: kind for kind in (list, dict, set, frozenset, tuple, str, int, float, bool)}
)


def field(evaluator: Evaluator, node: ast.Call, place: Place) -> FieldInfo:
    """What a call of `Field` makes. Constraints and aliases that cannot be told are noted in `place.unread`."""
    named: dict[str, Any] = {}
    if node.args:
        named["default"] = node.args[0]
    for keyword in node.keywords:
        if keyword.arg is None:
            raise UnreadableError(f"{source(node)} takes its arguments from a mapping")
        named[keyword.arg] = keyword.value
    told: dict[str, Any] = {}
    for name, value in named.items():
        if name == "default":
            told.update(_default(evaluator, value, place))
        elif name == "default_factory":
            told[name] = factory(evaluator, value, place)
        elif name in _LOST_AT_NO_COST or name in _MATTERING:
            told.update(_told(evaluator, name, value, place))
    try:
        with quiet():
            return pydantic.Field(**told)  # type: ignore[no-any-return]
    except (pydantic.errors.PydanticUserError, TypeError, ValueError) as error:
        place.unread.append(f"{source(node)}: {first_line(error)}")
        return pydantic.Field(**{name: told[name] for name in told if name in _HARMLESS})  # type: ignore[no-any-return]


def _told(evaluator: Evaluator, name: str, node: ast.expr, place: Place) -> dict[str, Any]:
    try:
        return {name: evaluator.value(node, place)}
    except UnreadableError as error:
        if name in _MATTERING:
            place.unread.append(f"{name}={source(node)}: {error}")
        return {}


def _default(evaluator: Evaluator, node: ast.expr, place: Place) -> dict[str, Any]:
    try:
        return {"default": evaluator.value(node, place)}
    except UnreadableError:
        return {"default_factory": Factory()}


def factory(evaluator: Evaluator, node: ast.expr, place: Place) -> Factory:
    """The function that makes a default: one of Python's own types, or a lambda of something plain."""
    try:
        if isinstance(node, ast.Lambda):
            if ast.unparse(node.args):
                return Factory()
            return Factory(evaluator.value(node.body, place), known=True)
        return Factory(FACTORIES[evaluator.value(node, place)](), known=True)
    except (UnreadableError, KeyError, TypeError):
        return Factory()


def dataclass_field(evaluator: Evaluator, node: ast.Call, place: Place) -> Any:
    """What a call of `dataclasses.field` makes."""
    for keyword in node.keywords:
        if keyword.arg == "default":
            return dataclasses.field(**_default(evaluator, keyword.value, place))
        if keyword.arg == "default_factory":
            return dataclasses.field(default_factory=factory(evaluator, keyword.value, place))
    return dataclasses.field()
