"""Adapters: functions that turn a validated JSON value into a type of the developer's own."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Optional, TypeAlias, Union, get_args, get_origin, get_type_hints

from engine.errors import SpecError

Adapter: TypeAlias = Callable[[Any], Any]
"""A plain function of one value, or a class; what it returns is what the tool receives."""


def input_of(name: str, adapter: Any, annotation: Any) -> Any:
    """What the adapter takes: the annotation of its first parameter, or str; with None where `annotation` has it.

    So the type of the tool's own parameter may be any class. Raises SpecError, naming parameter `name`, for what
    cannot adapt a value.
    """
    remedy = "write def adapter(value: str) -> YourType"
    if not callable(adapter):
        raise SpecError(
            f"parameter {name!r} has the adapter {adapter!r}, which cannot be called; {remedy}",
            field=name,
        )
    if inspect.iscoroutinefunction(adapter) or inspect.isgeneratorfunction(adapter):
        raise SpecError(
            f"parameter {name!r} has an adapter that does not return its value at once; {remedy}",
            field=name,
        )
    taken = _annotation_of(name, adapter, _first_parameter(name, adapter, remedy))
    return Optional[taken] if may_be_none(annotation) else taken  # noqa: UP045 - `|` fails on text


def may_be_none(annotation: Any) -> bool:
    """Is it a union with None, at its top?"""
    if hasattr(annotation, "__metadata__"):  # Annotated
        return may_be_none(get_args(annotation)[0])
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return annotation is None or (is_union and type(None) in get_args(annotation))


def _first_parameter(name: str, adapter: Any, remedy: str) -> str:
    """Its name; empty for a built-in without a signature."""
    try:
        signature = inspect.signature(adapter)
        signature.bind(None)
    except ValueError:
        return ""
    except TypeError as error:
        raise SpecError(
            f"parameter {name!r} has an adapter that does not take one value ({error}); {remedy}",
            field=name,
        ) from error
    return next(iter(signature.parameters))


def _annotation_of(name: str, adapter: Any, parameter: str) -> Any:
    target: Any = adapter.func if isinstance(adapter, functools.partial) else adapter
    if isinstance(target, type):
        target = vars(target).get("__init__", target)
    elif not hasattr(target, "__annotations__"):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True).get(parameter, str)
    except (AttributeError, TypeError):  # a built-in says nothing of its types
        return str
    except NameError as error:
        raise SpecError(
            f"parameter {name!r} has an adapter with an annotation that cannot be resolved ({error}); "
            "import or define its types at module level",
            field=name,
        ) from error
