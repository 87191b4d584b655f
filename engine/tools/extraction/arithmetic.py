"""Operators and methods on plain values, as far as they cannot take long or grow without end."""

import ast
import datetime as dt
import operator
import pathlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from engine.tools.extraction.unreadable import UnreadableError

_LONGEST = 100_000  # characters or items
_WIDEST = 1024  # bits of a whole number
_SEQUENCES = (str, bytes, list, tuple)

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Pow: operator.pow,
        ast.BitOr: operator.or_,
        ast.BitAnd: operator.and_,
        ast.LShift: operator.lshift,
    }
)
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = MappingProxyType(
    {
        ast.USub: operator.neg,
        ast.UAdd: operator.pos,
        ast.Not: operator.not_,
        ast.Invert: operator.invert,
    }
)
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Is: operator.is_,
        ast.IsNot: operator.is_not,
        ast.In: lambda left, right: left in right,
        ast.NotIn: lambda left, right: left not in right,
    }
)

METHODS = frozenset(
    "strip lstrip rstrip lower upper title capitalize removeprefix removesuffix join split".split()
)
"""Methods of text that are followed."""


def method(text: str, name: str, positional: list[Any], named: dict[str, Any]) -> Any:
    """The result of a method of text, one of METHODS."""
    if name == "join":
        (parts,) = positional
        if sum(len(part) + len(text) for part in parts) > _LONGEST:
            raise UnreadableError("a text that is too long")
    return getattr(text, name)(*positional, **named)


def binary(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """The result of `left <operator> right`; UnreadableError where it would be too large, or is not plain."""
    apply = _OPERATORS.get(kind)
    if apply is None or not _is_harmless(kind, left, right):
        raise UnreadableError("a computation that is not followed")
    return apply(left, right)


def unary(kind: type[ast.unaryop], value: Any) -> Any:
    if kind is not ast.Not and not isinstance(value, (int, float, complex, dt.timedelta)):
        raise UnreadableError("a computation that is not followed")
    return _UNARY[kind](value)


def compare(kind: type[ast.cmpop], left: Any, right: Any) -> bool:
    return bool(_COMPARISONS[kind](left, right))


def _is_harmless(kind: type[ast.operator], left: Any, right: Any) -> bool:
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _is_narrow(kind, left, right)
    if isinstance(left, _SEQUENCES) and type(left) is type(right):
        return kind is ast.Add and len(left) + len(right) <= _LONGEST
    if isinstance(left, int) and isinstance(right, _SEQUENCES):
        left, right = right, left
    if isinstance(left, _SEQUENCES) and isinstance(right, int):
        return kind is ast.Mult and len(left) * max(right, 0) <= _LONGEST and _is_flat(left)
    if isinstance(left, pathlib.PurePath):
        return kind is ast.Div and isinstance(right, (str, pathlib.PurePath))
    if isinstance(left, dt.timedelta) or isinstance(right, dt.timedelta):
        return True
    return isinstance(left, (dict, set, frozenset)) and kind is ast.BitOr


def _is_narrow(kind: type[ast.operator], left: float, right: float) -> bool:
    if kind in (ast.Pow, ast.LShift):
        return abs(left) < 2**32 and abs(right) <= _WIDEST // 32
    return all(
        isinstance(number, float) or number.bit_length() <= _WIDEST for number in (left, right)
    )


def _is_flat(values: str | bytes | list[Any] | tuple[Any, ...]) -> bool:
    """Whether a repetition of it grows by its own items only, and not by what they hold."""
    return isinstance(values, (str, bytes)) or all(
        value is None
        or isinstance(value, (int, float))
        or (isinstance(value, str) and len(value) <= 100)
        for value in values
    )
