"""What a canned response looks like when it is filled in: sample values for its fields, by how it uses them."""

from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateError

from engine.canned import fields_of, render
from engine.canonical import JsonObject
from engine.errors import SpecError

_NUMBERS = frozenset({"abs", "int", "number", "round"})
_LISTS = frozenset({"each", "first", "join", "last", "length", "sort"})
_NUMBER = 1204.5
_ROUNDS = 2


def preview(text: str) -> str | None:
    """The template with a sample value in each field; None where it cannot be shown with any we can think of."""
    try:
        values = _samples(text)
    except (SpecError, TemplateError):
        return None
    return render(text, values)


def _samples(text: str) -> JsonObject:
    tree = Environment(autoescape=False).parse(text)  # noqa: S701 - text, and never rendered by this one
    numbers, lists = _used_as_number(tree), _used_as_list(tree)
    entries = {
        loop.target.name: _path(loop.iter)
        for loop in tree.find_all(nodes.For)
        if isinstance(loop.target, nodes.Name)
    }
    values: JsonObject = {}
    for field in fields_of(text):
        if field in lists:
            names = [name for name, source in entries.items() if source == field]
            _put(values, field, [_entry(tree, names, field, n) for n in range(1, _ROUNDS + 1)])
        else:
            _put(values, field, _NUMBER if field in numbers else _words(field))
    return values


def _entry(tree: nodes.Template, names: list[str], field: str, number: int) -> Any:
    """One of a list: an object where the template asks for its entries, else words."""
    paths = {_path(node) for node in tree.find_all(nodes.Getattr)}
    asked = {
        path.partition(".")[2] for path in paths for name in names if path.startswith(f"{name}.")
    } - {""}
    asked |= {
        str(argument.value)
        for node in tree.find_all(nodes.Filter)
        if node.name == "each" and node.node is not None and _path(node.node) == field
        for argument in node.args
        if isinstance(argument, nodes.Const)
    }
    if not asked:
        return _words(f"{field} {number}")
    entry: JsonObject = {}
    for name in asked:
        _put(entry, name, _words(f"{name} {number}"))
    return entry


def _used_as_number(tree: nodes.Template) -> set[str]:
    found = {
        _path(node.node)
        for node in tree.find_all(nodes.Filter)
        if node.name in _NUMBERS and node.node is not None
    }
    for node in tree.find_all((nodes.BinExpr, nodes.Neg)):
        if not isinstance(node, nodes.And | nodes.Or):
            found.update(_path(side) for side in node.iter_child_nodes())
    for compared in tree.find_all(nodes.Compare):
        sides = [compared.expr, *(operand.expr for operand in compared.ops)]
        if any(isinstance(s, nodes.Const) and isinstance(s.value, int | float) for s in sides):
            found.update(_path(side) for side in sides)
    return found


def _used_as_list(tree: nodes.Template) -> set[str]:
    found = {_path(loop.iter) for loop in tree.find_all(nodes.For)}
    found |= {
        _path(node.node)
        for node in tree.find_all(nodes.Filter)
        if node.name in _LISTS and node.node is not None
    }
    return found


def _path(node: nodes.Node) -> str:
    match node:
        case nodes.Name():
            return node.name
        case nodes.Getattr():
            before = _path(node.node)
            return f"{before}.{node.attr}" if before else ""
        case _:
            return ""


def _put(values: JsonObject, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for step in way:
        values = values.setdefault(step, {})
    values[last] = value


def _words(path: str) -> str:
    return f"‹{path.replace('.', ' ').replace('_', ' ')}›"
