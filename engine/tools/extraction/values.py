"""What expressions of a file amount to, as far as that can be told without running it."""

import ast
import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic.fields import FieldInfo

from engine.tools.extraction import arithmetic, known
from engine.tools.extraction.quiet import first_line
from engine.tools.extraction.scopes import Binding, Scope
from engine.tools.extraction.unreadable import UnreadableError

_DEEPEST = 50
_MOST_STEPS = 50_000
_MOST_ALTERNATIVES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an expression stands. `unread` collects what of it could not be told, where the rest is of use."""

    scope: Scope
    order: int
    deferred: bool = False
    unread: list[str] = field(default_factory=list)


class Types(Protocol):
    """What expressions that are not plain values amount to: types, and calls that make types and fields."""

    def subscript(self, base: Any, node: ast.Subscript, place: Place) -> Any: ...

    def either(self, left: Any, right: Any, place: Place) -> Any: ...

    def call(self, called: Any, node: ast.Call, place: Place) -> Any: ...

    def alias(self, binding: Binding) -> Any: ...


class Classes(Protocol):
    """The classes of the file."""

    def made(self, binding: Binding) -> Any: ...

    def body_of(self, made: Any) -> Scope | None: ...


class Evaluator:
    """Evaluates expressions of one file: plain values, known names, and what `types` and `classes` make of the rest."""

    types: Types
    classes: Classes

    def __init__(self) -> None:
        self._steps = _MOST_STEPS
        self._depth = 0
        self._kinds: dict[type[ast.expr], Callable[..., Any]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.BoolOp: self._logical,
            ast.IfExp: self._conditional,
            ast.List: self._list,
            ast.Tuple: self._tuple,
            ast.Set: self._set,
            ast.Dict: self._dict,
            ast.JoinedStr: self._format,
            ast.Call: self._call,
        }

    def value(self, node: ast.expr, place: Place) -> Any:
        """What an expression amounts to; UnreadableError with the reason where that cannot be told."""
        evaluate = self._kinds.get(type(node))
        self._steps -= 1
        if evaluate is None:
            raise UnreadableError(f"{source(node)} is computed when the tool starts")
        if self._steps < 0 or self._depth > _DEEPEST:
            raise UnreadableError(f"{source(node)} goes too deep to be followed")
        self._depth += 1
        try:
            return evaluate(node, place)
        except (UnreadableError, RecursionError):
            raise
        except Exception as error:
            # What a type or a value raises for arguments that it does not take is not a closed set.
            raise UnreadableError(f"{source(node)} fails: {first_line(error)}") from error
        finally:
            self._depth -= 1

    def test(self, node: ast.expr, scope: Scope, order: int) -> bool | None:
        """Whether a condition holds, as scopes.Walk asks."""
        try:
            return bool(self.value(node, Place(scope=scope, order=order)))
        except (UnreadableError, RecursionError):
            return None

    def binding(self, name: str, place: Place) -> Binding | None:
        """What a name stands for at a place, in its class body or the file; for a string, also what comes later."""
        scopes = [place.scope] + ([place.scope.outer] if place.scope.outer is not None else [])
        for find in (Scope.latest, _last) if place.deferred else (Scope.latest,):
            for scope in scopes:
                bound = find(scope, name, place.order)
                if bound is not None:
                    return bound
        return None

    def _constant(self, node: ast.Constant, _place: Place) -> Any:
        if isinstance(node.value, (str, bytes)):
            self._steps -= len(node.value) // 100
        return node.value

    def _name(self, node: ast.Name, place: Place) -> Any:
        bound = self.binding(node.id, place)
        if bound is not None:
            return self._bound(bound, place)
        if node.id in known.BUILTINS:
            return known.BUILTINS[node.id]
        if node.id == "__name__":
            return "__main__"  # how a tool is run
        raise UnreadableError(f"{node.id!r} is not defined before it is used, or is not known here")

    def _bound(self, bound: Binding, place: Place) -> Any:
        if not bound.certain:
            raise UnreadableError(f"{bound.name!r} depends on what happens when the tool starts")
        if bound.imported is not None:
            return imported(*bound.imported)
        if bound.class_body is not None:
            return self.classes.made(bound)
        if bound.expression is None:
            raise UnreadableError(f"{bound.name!r} is a function of the file")
        if bound.lazy:
            return self.types.alias(bound)
        return self.value(
            bound.expression, replace(place, scope=bound.scope, order=bound.order, deferred=False)
        )

    def _attribute(self, node: ast.Attribute, place: Place) -> Any:
        base = self.value(node.value, place)
        if isinstance(base, known.Module):
            return imported(base.name, node.attr)
        if isinstance(base, enum.EnumMeta):
            return base.__members__[node.attr]
        if isinstance(base, enum.Enum) and node.attr in ("value", "name"):
            return getattr(base, node.attr)
        if base is sys.version_info and node.attr in ("major", "minor"):
            return getattr(base, node.attr)
        body = self.classes.body_of(base)
        bound = body.last(node.attr) if body is not None else None
        if body is None or bound is None:
            raise UnreadableError(f"{source(node)} is not followed")
        return self._bound(bound, Place(scope=body, order=body.end, unread=place.unread))

    def _subscript(self, node: ast.Subscript, place: Place) -> Any:
        base = self.value(node.value, place)
        if isinstance(base, (list, tuple, dict, str)):
            return base[self.value(node.slice, place)]
        return self.types.subscript(base, node, place)

    def _binary(self, node: ast.BinOp, place: Place) -> Any:
        chain: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):  # a text may be put together of many pieces
            chain.append(first)
            first = first.left
        left = self.value(first, place)
        for link in reversed(chain):
            right = self.value(link.right, place)
            if isinstance(link.op, ast.BitOr) and not isinstance(left, (int, dict, set, frozenset)):
                if len(chain) > _MOST_ALTERNATIVES:  # typing compares each with each
                    raise UnreadableError("it has too many alternatives")
                left = self.types.either(left, right, place)
            else:
                left = arithmetic.binary(type(link.op), left, right)
        return left

    def _unary(self, node: ast.UnaryOp, place: Place) -> Any:
        return arithmetic.unary(type(node.op), self.value(node.operand, place))

    def _compare(self, node: ast.Compare, place: Place) -> bool:
        left = self.value(node.left, place)
        for kind, operand in zip(node.ops, node.comparators, strict=True):
            right = self.value(operand, place)
            if not arithmetic.compare(type(kind), left, right):
                return False
            left = right
        return True

    def _logical(self, node: ast.BoolOp, place: Place) -> Any:
        for operand in node.values:
            value = self.value(operand, place)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _conditional(self, node: ast.IfExp, place: Place) -> Any:
        return self.value(node.body if self.value(node.test, place) else node.orelse, place)

    def _items(self, nodes: list[ast.expr], place: Place) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items.extend(self.value(node.value, place))
            else:
                items.append(self.value(node, place))
        return items

    def _list(self, node: ast.List, place: Place) -> list[Any]:
        return self._items(node.elts, place)

    def _tuple(self, node: ast.Tuple, place: Place) -> tuple[Any, ...]:
        return tuple(self._items(node.elts, place))

    def _set(self, node: ast.Set, place: Place) -> set[Any]:
        return set(self._items(node.elts, place))

    def _dict(self, node: ast.Dict, place: Place) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self.value(item, place))
            else:
                result[self.value(key, place)] = self.value(item, place)
        return result

    def _format(self, node: ast.JoinedStr, place: Place) -> str:
        return "".join(str(self._plain(part, place)) for part in node.values)

    def _plain(self, part: ast.expr, place: Place) -> str | int:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        if isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion != -1):
            raise UnreadableError(f"{source(part)} is formatted text")
        value = self.value(inner, place) if isinstance(inner, ast.expr) else inner
        if type(value) not in (str, int):
            raise UnreadableError(f"{source(part)} is formatted text")
        return value  # type: ignore[no-any-return]

    def _call(self, node: ast.Call, place: Place) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr in arithmetic.METHODS:
            base = self.value(node.func.value, place)
            if isinstance(base, str):
                positional, named = self.arguments(node, place)
                return arithmetic.method(base, node.func.attr, positional, named)
        called = self.value(node.func, place)
        if isinstance(called, (str, int, float, list, tuple, dict, set, FieldInfo)):
            raise UnreadableError(f"{source(node)} fails: it is not a function")
        make = known.CONSTRUCTORS.get(called)
        if make is None:
            return self.types.call(called, node, place)
        positional, named = self.arguments(node, place)
        return make(*positional, **named)

    def arguments(self, node: ast.Call, place: Place) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, all of them evaluated."""
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, place)
            named.update(value if keyword.arg is None else {keyword.arg: value})
        return self._items(node.args, place), named


def imported(module: str, name: str) -> Any:
    """What an import stands for; UnreadableError where that is not known here."""
    if not name:
        return known.Module(module)
    try:
        return known.attribute(module, name)
    except KeyError:
        raise UnreadableError(
            f"'{module}.{name}' is not a name that is known without running the tool"
        ) from None


def source(node: ast.AST) -> str:
    """The text of an expression, for a sentence: shortened, in quotes."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        text = "…"
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _last(scope: Scope, name: str, _order: int) -> Binding | None:
    return scope.last(name)
