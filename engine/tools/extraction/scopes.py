"""What the names of a file stand for, at each of its places: statements followed as the interpreter would."""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from engine.tools.extraction import known

_OWN_NAMES = (ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
type_alias = getattr(ast, "TypeAlias", None)  # from Python 3.12 on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binding:
    """That a name got a value. `order` counts all bindings and annotations of a file, in the order of running.

    What it got is one of: an `expression`; `imported` (module, name; name empty for the module itself); a `class_body`
    with its statement; a `function`; or nothing that could be told.
    """

    name: str
    order: int
    scope: "Scope"
    certain: bool = True
    expression: ast.expr | None = None
    lazy: bool = False
    imported: tuple[str, str] | None = None
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    class_def: ast.ClassDef | None = None
    class_body: "Scope | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotated:
    """A name that was annotated in a class: `name: annotation`, with or without value."""

    annotation: ast.expr
    order: int
    line: int
    certain: bool
    value: ast.expr | None
    docstring: str | None


@dataclass(slots=True, kw_only=True)
class Scope:
    """The names of a module, or of a class body in it (`outer` is the module then)."""

    outer: "Scope | None" = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    annotated: dict[str, Annotated] = field(default_factory=dict)
    deferred: bool = False  # from __future__ import annotations
    end: int = 0

    def latest(self, name: str, order: int) -> Binding | None:
        """The binding that holds at a place: the last one before it."""
        return next(
            (bound for bound in reversed(self.bindings.get(name, ())) if bound.order < order), None
        )

    def last(self, name: str) -> Binding | None:
        """The binding that holds when the file has run."""
        bound = self.bindings.get(name)
        return bound[-1] if bound else None


Test = Callable[[ast.expr, Scope, int], bool | None]
"""Whether a condition holds at a place; None where only running the file would tell."""


class Walk:
    """Follows statements and writes down what they bind."""

    def __init__(self, test: Test) -> None:
        self._test = test
        self._order = count(1)
        self._module = Scope()
        self._follow: dict[type[ast.stmt], Callable[..., None]] = {
            ast.Assign: self._assign,
            ast.AugAssign: self._augmented,
            ast.Expr: self._expression,
            ast.Delete: self._delete,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.ClassDef: self._class,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.If: self._if,
            ast.With: self._with,
            ast.Try: self._try,
            ast.For: self._maybe,
            ast.While: self._maybe,
            ast.Match: self._maybe,
        }
        if type_alias is not None:
            self._follow[type_alias] = self._type_alias

    def module(self, tree: ast.Module) -> Scope:
        """The names of a whole file."""
        self._statements(tree.body, self._module, certain=True)
        self._module.end = next(self._order)
        return self._module

    def _statements(self, body: Sequence[ast.stmt], scope: Scope, *, certain: bool) -> None:
        for position, statement in enumerate(body):
            follow = self._follow.get(type(statement))
            if isinstance(statement, ast.AnnAssign):
                following = body[position + 1] if position + 1 < len(body) else None
                self._annotated(statement, following, scope, certain=certain)
            elif follow is not None:
                follow(statement, scope, certain)
            else:
                self._unknown(_stored(statement), scope)

    def _bind(self, scope: Scope, name: str, certain: bool, **what: object) -> None:
        binding = Binding(name=name, order=next(self._order), scope=scope, certain=certain, **what)  # type: ignore[arg-type]
        scope.bindings.setdefault(name, []).append(binding)

    def _unknown(self, names: Iterable[str], scope: Scope) -> None:
        for name in names:
            self._bind(scope, name, certain=False)

    def _annotated(
        self, statement: ast.AnnAssign, following: ast.stmt | None, scope: Scope, *, certain: bool
    ) -> None:
        if not isinstance(statement.target, ast.Name) or not statement.simple:
            return
        name = statement.target.id
        scope.annotated[name] = Annotated(
            annotation=statement.annotation,
            order=next(self._order),
            line=statement.lineno,
            certain=certain,
            value=statement.value,
            docstring=_text(following),
        )
        if statement.value is not None:
            self._bind(scope, name, certain, expression=statement.value)

    def _assign(self, statement: ast.Assign, scope: Scope, certain: bool) -> None:
        for target in statement.targets:
            self._target(target, statement.value, scope, certain)

    def _target(self, target: ast.expr, value: ast.expr, scope: Scope, certain: bool) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self._bind(scope, name, certain, expression=value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(
                elts=values
            ) | ast.List(elts=values) if len(targets) == len(values) and not any(
                isinstance(e, ast.Starred) for e in [*targets, *values]
            ):
                for part, part_value in zip(targets, values, strict=True):
                    self._target(part, part_value, scope, certain)
            case ((ast.Attribute() | ast.Subscript()), _):
                self._changed(target, scope)
            case _:
                self._unknown(_stored(target), scope)

    def _changed(self, node: ast.expr, scope: Scope) -> None:
        """Something of what a name stands for was changed: a constant is not known any more, a class still is."""
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name):
            return
        bound = scope.last(node.id)
        if bound is not None and bound.expression is not None:
            self._bind(scope, node.id, certain=False)

    def _augmented(self, statement: ast.AugAssign, scope: Scope, certain: bool) -> None:
        if not isinstance(statement.target, ast.Name):
            self._changed(statement.target, scope)
            return
        name = statement.target.id
        before = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), statement)
        together = ast.copy_location(
            ast.BinOp(left=before, op=statement.op, right=statement.value), statement
        )
        self._bind(scope, name, certain, expression=together)

    def _expression(self, statement: ast.Expr, scope: Scope, _certain: bool) -> None:
        if isinstance(statement.value, ast.Call):
            self._changed(statement.value.func, scope)
        self._unknown(_stored(statement), scope)

    def _delete(self, statement: ast.Delete, scope: Scope, _certain: bool) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name):
                self._bind(scope, target.id, certain=False)
            else:
                self._changed(target, scope)

    def _import(self, statement: ast.Import, scope: Scope, certain: bool) -> None:
        for alias in statement.names:
            if alias.asname:
                self._bind(scope, alias.asname, certain, imported=(alias.name, ""))
            else:
                first = alias.name.partition(".")[0]
                self._bind(scope, first, certain, imported=(first, ""))

    def _import_from(self, statement: ast.ImportFrom, scope: Scope, certain: bool) -> None:
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            if alias.name == "*":
                names = known.names_of(module) if module in known.MODULES else ()
                for name in names:
                    self._bind(scope, name, certain, imported=(module, name))
            elif module == "__future__" and alias.name == "annotations":
                scope.deferred = True
            else:
                self._bind(
                    scope, alias.asname or alias.name, certain, imported=(module, alias.name)
                )

    def _class(self, statement: ast.ClassDef, scope: Scope, certain: bool) -> None:
        body = Scope(outer=self._module, deferred=self._module.deferred)
        self._statements(statement.body, body, certain=True)
        body.end = next(self._order)
        self._bind(scope, statement.name, certain, class_def=statement, class_body=body)

    def _function(
        self, statement: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, certain: bool
    ) -> None:
        self._bind(scope, statement.name, certain, function=statement)

    def _type_alias(self, statement: ast.stmt, scope: Scope, certain: bool) -> None:
        name = statement.name.id  # type: ignore[attr-defined]
        self._bind(scope, name, certain, expression=statement.value, lazy=True)  # type: ignore[attr-defined]

    def _if(self, statement: ast.If, scope: Scope, certain: bool) -> None:
        branch: ast.If | None = statement
        while branch is not None:  # a chain of elif may be long
            holds = self._test(branch.test, scope, next(self._order))
            certain = certain and holds is not None
            if holds is not False:
                self._statements(branch.body, scope, certain=certain)
            if holds:
                return
            match branch.orelse:
                case [ast.If() as following]:
                    branch = following
                case otherwise:
                    self._statements(otherwise, scope, certain=certain)
                    branch = None

    def _with(self, statement: ast.With, scope: Scope, certain: bool) -> None:
        self._unknown([name for item in statement.items for name in _stored(item)], scope)
        self._statements(statement.body, scope, certain=certain)

    def _maybe(self, statement: ast.stmt, scope: Scope, _certain: bool) -> None:
        """A loop or a match: what it binds is not known, and classes in it are there perhaps."""
        self._unknown(_stored(statement), scope)
        for node in ast.walk(statement):
            if isinstance(node, ast.ClassDef):
                self._class(node, scope, False)

    def _try(self, statement: ast.Try, scope: Scope, certain: bool) -> None:
        failing = next((at for at, part in enumerate(statement.body) if _fails(part)), None)
        if failing is not None and statement.handlers:
            self._statements(statement.body[:failing], scope, certain=certain)
            self._statements(statement.handlers[0].body, scope, certain=certain)
        else:
            self._statements(statement.body, scope, certain=certain)
            self._statements(statement.orelse, scope, certain=certain)
            if not all(_succeeds(part) for part in statement.body):
                for handler in statement.handlers:
                    self._handled(handler, scope)
        self._statements(statement.finalbody, scope, certain=certain)

    def _handled(self, handler: ast.ExceptHandler, scope: Scope) -> None:
        """What happens if something fails: after it, either value of a name may hold, and a field be there or not."""
        self._unknown(_bound_in(handler.body, scope), scope)
        for statement in handler.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                before = scope.annotated.get(statement.target.id)
                if before is not None:
                    scope.annotated[statement.target.id] = replace(before, certain=False)
                else:
                    self._annotated(statement, None, scope, certain=False)


def _text(statement: ast.stmt | None) -> str | None:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return None


def _stored(node: ast.AST) -> list[str]:
    """Names that get a value somewhere in it, other than in functions, classes and comprehensions of their own."""
    names: list[str] = []
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.extend((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif not isinstance(
            node,
            (ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
        ):
            waiting.extend(ast.iter_child_nodes(node))
    return names


def _bound_in(body: Sequence[ast.stmt], scope: Scope) -> list[str]:
    """Names that a handler binds anew, so that either value may hold after it. Where the other one is not known
    either (most often a module that is not there), it makes no difference."""
    names = [name for statement in body for name in _stored(statement)]
    names += [statement.name for statement in body if isinstance(statement, ast.ClassDef)]
    return [name for name in names if scope.last(name) is not None]


def _fails(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and any(
        known.lacks(statement.module or "", alias.name)
        for alias in statement.names
        if not statement.level and alias.name != "*"
    )


def _succeeds(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import(names=names):
            return all(known.is_known(alias.name) for alias in names)
        case ast.ImportFrom(module=module, level=0):
            return known.is_known(module or "") and not _fails(statement)
        case (
            ast.Assign(targets=[ast.Name()], value=ast.Constant())
            | ast.Expr(value=ast.Constant())
            | ast.Pass()
        ):
            return True
    return False
