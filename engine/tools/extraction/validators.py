"""Validators of a class, as far as they matter: a plain one takes over, and its field accepts anything. And what a
class has of pydantic 1."""

import ast
from collections.abc import Iterator
from typing import Any

import pydantic

from engine.tools.extraction.annotations import Annotations
from engine.tools.extraction.field_calls import OF_VERSION_1
from engine.tools.extraction.scopes import Scope
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator, Place

_VERSION_1 = (pydantic.validator, pydantic.root_validator)


def plain_validators(evaluator: Evaluator, annotations: Annotations, body: Scope) -> dict[str, Any]:
    """Stand-ins for validators that change the schema, by the name of their method."""
    stand_ins: dict[str, Any] = {}
    for name, decorator, place in _decorators(body):
        if not isinstance(decorator, ast.Call):
            continue
        try:
            found = evaluator.value(decorator.func, place)
            if found is not pydantic.field_validator:
                continue
            named = {keyword.arg: keyword.value for keyword in decorator.keywords}
            mode = evaluator.value(named["mode"], place) if "mode" in named else "after"
            fields = [evaluator.value(argument, place) for argument in decorator.args]
        except UnreadableError:
            continue
        taken: dict[str, Any] = {}
        if "json_schema_input_type" in named:
            taken["json_schema_input_type"] = annotations.read(
                named["json_schema_input_type"], place
            )
        if mode == "plain" or taken:
            stand_ins[name] = pydantic.field_validator(
                *fields, mode=mode, check_fields=False, **taken
            )(_as_it_is(mode))
    return stand_ins


def version_1_style(evaluator: Evaluator, body: Scope) -> str:
    """The words for what a class has of pydantic 1 in its body, if anything."""
    for annotated in body.annotated.values():
        if isinstance(annotated.value, ast.Call):
            for keyword in annotated.value.keywords:
                if keyword.arg in OF_VERSION_1:
                    return f"{keyword.arg}= is of pydantic 1"
    return _version_1_decorator(evaluator, body)


def _version_1_decorator(evaluator: Evaluator, body: Scope) -> str:
    for _, decorator, place in _decorators(body):
        try:
            found = evaluator.value(
                decorator.func if isinstance(decorator, ast.Call) else decorator, place
            )
        except UnreadableError:
            continue
        if any(found is old for old in _VERSION_1):
            return f"@{found.__name__} is of pydantic 1"
    return ""


def _decorators(body: Scope) -> Iterator[tuple[str, ast.expr, Place]]:
    for name, bounds in body.bindings.items():
        function = bounds[-1].function
        for decorator in function.decorator_list if function is not None else ():
            yield name, decorator, Place(scope=body, order=bounds[-1].order)


def _as_it_is(mode: str) -> Any:
    if mode == "wrap":
        return classmethod(lambda _cls, value, handler: handler(value))
    return classmethod(lambda _cls, value: value)
