"""What a deployment gives its tools besides arguments: clients, addresses, settings (`ToolContext.plugin_data`).

A tool module says it in a function `plugin_data()` that returns a dict. It is called once per process, before the
first tool runs; what all modules return is one dict, so each key belongs to one module.
"""

import importlib
import inspect
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from engine.errors import SpecError

FUNCTION = "plugin_data"


def gather_plugin_data(modules: Iterable[str], *, group: str) -> dict[str, Any]:
    """What the named modules, and those of the entry points of `group`, give; raises SpecError naming the module."""
    installed = (entry_point.module for entry_point in entry_points(group=group))
    found: dict[str, Any] = {}
    giver: dict[str, str] = {}
    for name in dict.fromkeys((*modules, *installed)):
        for key, value in _given_by(name).items():
            if key in found:
                raise SpecError(
                    f"tool modules {giver[key]!r} and {name!r} both give {key!r} as plugin data; "
                    "rename it in one of them",
                    field=FUNCTION,
                )
            found[key], giver[key] = value, name
    return found


def _given_by(name: str) -> dict[str, Any]:
    function = getattr(importlib.import_module(name), FUNCTION, None)
    if function is None:
        return {}
    if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
        raise SpecError(
            f"{FUNCTION} of tool module {name!r} is no plain function; "
            f"write def {FUNCTION}() -> dict[str, Any]",
            field=FUNCTION,
        )
    try:
        given = function()
    except Exception as error:
        raise SpecError(
            f"{FUNCTION}() of tool module {name!r} failed ({type(error).__name__}: {error})",
            field=FUNCTION,
        ) from error
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise SpecError(
            f"{FUNCTION}() of tool module {name!r} returned {given!r:.100}; "
            "return a dict with text as keys",
            field=FUNCTION,
        )
    return given
