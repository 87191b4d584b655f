"""What stands at the top level of a tool.py, told from its tree."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

OLD_BASE = "StudioBaseTool"
_DEFINITION = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a name is bound. `inside` is the statement it stands in (“if”, “try” …), empty at the top level itself."""

    node: ast.stmt
    inside: str = ""

    @property
    def line(self) -> int:
        return self.node.lineno


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """`names`: each name bound at module level → where, last binding last. `nested`: the same within classes.

    `old_style` are the classes that inherit from the former base class.
    """

    names: dict[str, list[Place]] = field(default_factory=dict)
    nested: dict[str, tuple[str, int]] = field(default_factory=dict)
    old_style: list[ast.ClassDef] = field(default_factory=list)
    runs_as_program: bool = False

    def last(self, name: str) -> Place | None:
        places = self.names.get(name)
        return places[-1] if places else None


def survey(tree: ast.Module) -> Survey:
    names: dict[str, list[Place]] = {}
    nested: dict[str, tuple[str, int]] = {}
    old_style = []
    old_names = {OLD_BASE}
    runs = False
    for node, inside in _statements(tree):
        for name in _bound(node):
            names.setdefault(name, []).append(Place(node=node, inside=inside))
        if isinstance(node, ast.ImportFrom):
            old_names |= {
                each.asname for each in node.names if each.name == OLD_BASE and each.asname
            }
        elif isinstance(node, ast.If):
            runs = runs or _asks_for_main(node.test)
        elif isinstance(node, ast.ClassDef):
            if any(_last_name(base) in old_names for base in node.bases):
                old_style.append(node)
            for inner in node.body:
                if isinstance(inner, _DEFINITION):
                    nested.setdefault(inner.name, (node.name, inner.lineno))
    return Survey(names=names, nested=nested, old_style=old_style, runs_as_program=runs)


def text_of(value: ast.expr | None, names: dict[str, list[Place]]) -> str | None:
    """The text that an expression is: a string, a sum of strings, or a name bound to one; None if it cannot be told."""
    parts: list[str] = []
    waiting = [value]
    seen = set()
    while waiting:
        here = waiting.pop()
        if isinstance(here, ast.Constant) and isinstance(here.value, str):
            parts.append(here.value)
        elif isinstance(here, ast.BinOp) and isinstance(here.op, ast.Add):
            waiting += [here.right, here.left]
        elif isinstance(here, ast.Name) and here.id in names and here.id not in seen:
            seen.add(here.id)
            waiting.append(assigned(names[here.id][-1].node))
        else:
            return None
    return "".join(parts)


def assigned(node: ast.stmt) -> ast.expr | None:
    """The value of an assignment to one name."""
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None


def _statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Every statement that runs when the module does, in order, and what it stands in."""
    waiting: list[tuple[ast.stmt, str]] = [(node, "") for node in reversed(tree.body)]
    while waiting:
        node, inside = waiting.pop()
        yield node, inside
        bodies = list(_bodies(node))
        if bodies:
            word = "with" if isinstance(node, ast.AsyncWith) else type(node).__name__.lower()
            within = [(each, word.removesuffix("star")) for body in bodies for each in body]
            waiting += reversed(within)


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            if not _is_never(test):
                yield body
            yield orelse
        case ast.Try() | ast.TryStar():
            yield node.body
            for handler in node.handlers:
                yield handler.body
            yield node.orelse
            yield node.finalbody
        case ast.With(body=body):
            yield body
        case ast.For() | ast.While():
            yield node.body
            yield node.orelse


def _is_never(test: ast.expr) -> bool:
    """Is the condition false whenever the file runs?"""
    if isinstance(test, ast.Constant):
        return not test.value
    return _last_name(test) == "TYPE_CHECKING"


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _names_in(target)
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name.partition(".")[0]


def _names_in(target: ast.expr) -> Iterator[str]:
    for each in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        if isinstance(each, ast.Name):
            yield each.id


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _asks_for_main(test: ast.expr) -> bool:
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return any(
        isinstance(part, ast.Compare)
        and isinstance(part.ops[0], ast.Eq)
        and {_word(part.left), _word(part.comparators[0])} == {"__name__", "__main__"}
        for part in parts
    )


def _word(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id if node.id == "__name__" else ""
    return node.value if isinstance(node, ast.Constant) and node.value == "__main__" else ""
