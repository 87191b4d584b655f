"""`model_config`, `class Config` and the keywords of a class statement."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict

from engine.tools.extraction.scopes import Binding, Scope
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator, Place

_WITHOUT_EFFECT = frozenset(
    """title model_title_generator field_title_generator json_schema_extra json_encoders schema_generator
    plugin_settings defer_build ignored_types use_attribute_docstrings""".split()
)
_MATTERING = frozenset(ConfigDict.__annotations__) - _WITHOUT_EFFECT


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of a model, as far as its schema depends on it. `unread` names settings that cannot be told."""

    values: dict[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    attribute_docstrings: bool = False
    version_1: str = ""
    line: int = 0


def read_config(evaluator: Evaluator, node: ast.ClassDef, body: Scope, binding: Binding) -> Config:
    """What a class says of its configuration."""
    settings: dict[str, Any] = {}
    unread = []
    line = node.lineno
    for name, value, place in _settings(node, body, binding):
        line = value.lineno
        try:
            settings[name] = evaluator.value(value, place)
        except UnreadableError:
            unread.append(name)
    return Config(
        values={name: value for name, value in settings.items() if name in _MATTERING},
        unread=tuple(unread),
        attribute_docstrings=bool(settings.get("use_attribute_docstrings")),
        version_1="its configuration is a class Config" if _config_class(body) else "",
        line=line,
    )


def _settings(
    node: ast.ClassDef, body: Scope, binding: Binding
) -> Iterator[tuple[str, ast.expr, Place]]:
    config = _config_class(body)
    if config is not None and config.class_body is not None:
        for name, bounds in config.class_body.bindings.items():
            if bounds[-1].expression is not None:
                yield (
                    name,
                    bounds[-1].expression,
                    Place(scope=config.class_body, order=bounds[-1].order),
                )
    bound = body.last("model_config")
    if bound is not None and bound.expression is not None:
        for name, value in _entries(bound.expression):
            yield name, value, Place(scope=body, order=bound.order)
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value, Place(scope=binding.scope, order=binding.order)


def _config_class(body: Scope) -> Binding | None:
    bound = body.last("Config")
    return bound if bound is not None and bound.class_body is not None else None


def _entries(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Call(keywords=keywords):
            yield from (
                (keyword.arg, keyword.value) for keyword in keywords if keyword.arg is not None
            )
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
