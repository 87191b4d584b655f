"""What tool modules give to their tools: one dict, made once, each key of one module."""

import sys
from types import ModuleType
from typing import Any

import pytest

from engine.errors import SpecError
from engine.tools.plugins import gather_plugin_data

GROUP = "guideline_studio.tests.nothing"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(name: str, **values: Any) -> str:
        made = ModuleType(name)
        vars(made).update(values)
        monkeypatch.setitem(sys.modules, name, made)
        return name

    return make


def gathered(*names: str) -> dict[str, Any]:
    return gather_plugin_data(names, group=GROUP)


def a() -> dict[str, Any]:
    return {"a": 1}


def b() -> dict[str, Any]:
    return {"b": 2}


def broken() -> dict[str, Any]:
    raise OSError("no route")


async def later() -> dict[str, Any]:
    return {}


def test_what_all_modules_give_is_one_dict(module: Any) -> None:
    names = [module("m.a", plugin_data=a), module("m.b", plugin_data=b), module("m.c")]
    assert gathered(*names) == {"a": 1, "b": 2}


def test_a_module_named_twice_gives_once(module: Any) -> None:
    name = module("m.a", plugin_data=a)
    assert gathered(name, name) == {"a": 1}


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (broken, "failed \\(OSError: no route\\)"),
        (later, "no plain function; write def plugin_data"),
        ({"a": 1}, "no plain function; write def plugin_data"),
        (lambda: [1], "returned \\[1\\]; return a dict"),
        (lambda: {1: 1}, "return a dict with text as keys"),
    ],
)
def test_what_gives_nothing_usable_is_named(module: Any, function: Any, problem: str) -> None:
    with pytest.raises(SpecError, match=f"'m.x'.*{problem}") as caught:
        gathered(module("m.x", plugin_data=function))
    assert caught.value.field == "plugin_data"


def test_a_key_that_two_modules_give_is_refused_naming_both(module: Any) -> None:
    names = [module("m.a", plugin_data=a), module("m.b", plugin_data=a)]
    with pytest.raises(SpecError, match=r"'m\.a' and 'm\.b' both give 'a'"):
        gathered(*names)
