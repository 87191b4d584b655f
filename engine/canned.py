"""Canned responses as templates (ENGINE.md §5): a small, bounded part of Jinja in its immutable sandbox.

A template is what an author or a tool wrote; the values that fill it are data and are never read as templates. It can
say fields, choose with `if`, list with `for`, and shape values with a few filters. It cannot call, import, repeat
without end, or reach into Python. Text only: nothing is escaped for HTML.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, Undefined, filters, nodes, pass_context
from jinja2.exceptions import TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.canonical import JsonObject
from engine.errors import SpecError

LONGEST_TEMPLATE = 4_000
"""Characters of a template."""
LONGEST_TEXT = 6_000
"""Characters of a rendered response."""
MOST_ROUNDS = 1_000
"""Rounds that all loops of one rendering take together."""
MOST_NESTED_LOOPS = 2

_BUDGET = "_rounds"  # a template cannot name it: names of its own do not begin with "_"

_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.For,
    nodes.Name,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Filter,
    nodes.Test,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.CondExpr,
    nodes.Concat,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Neg,
    nodes.Pos,
    nodes.Keyword,
)


def check_template(text: str) -> None:
    """Raises SpecError that names the line and the remedy where `text` is no usable template."""
    if not text.strip():
        raise SpecError("A canned response needs a text.", field="text")
    if len(text) > LONGEST_TEMPLATE:
        message = f"It has {len(text)} characters; shorten it to {LONGEST_TEMPLATE}."
        raise SpecError(message, field="text")
    _compiled(text)


def fields_of(text: str) -> tuple[str, ...]:
    """The fields that a template fills in, as they are written ("customer.name"), sorted; raises SpecError."""
    tree = _parsed(text)
    free = find_undeclared_variables(tree)
    used = {node.name for node in tree.find_all(nodes.Name) if node.name in free}
    paths = {path for node in tree.find_all(nodes.Getattr) if (path := _path(node))}
    for path in paths:
        if path.partition(".")[0] in free:
            used.add(path)
    return tuple(sorted(p for p in used if not any(o.startswith(f"{p}.") for o in used)))


def _path(node: nodes.Node) -> str:
    """ "order.total" for a chain of names, or nothing."""
    match node:
        case nodes.Name():
            return node.name
        case nodes.Getattr():
            before = _path(node.node)
            return f"{before}.{node.attr}" if before else ""
        case _:
            return ""


def render(text: str, fields: JsonObject) -> str | None:
    """The text with its fields filled in; None where one is not available, or it cannot be rendered at all."""
    try:
        template = _compiled(text)
        pieces: list[str] = []
        length = 0
        for piece in template.generate({**fields, _BUDGET: [MOST_ROUNDS]}):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_TEXT:
                return None
    except Exception:  # noqa: BLE001 - values are anybody's: whatever goes wrong, it is just no candidate
        return None
    return "".join(pieces).strip() or None


@lru_cache(maxsize=2_048)
def _compiled(text: str) -> Template:
    """Raises SpecError."""
    tree = _parsed(text)
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, "_bounded", [], [], None, None, lineno=loop.lineno)
    tree.set_environment(_SANDBOX)  # for the nodes put in
    try:
        return _SANDBOX.from_string(tree)
    except TemplateSyntaxError as error:
        raise _unusable(error.lineno, error.message or "It cannot be read.") from None
    except (SyntaxError, RecursionError, MemoryError):
        raise _unusable(1, "It is nested too deeply; make it simpler.") from None


def _parsed(text: str) -> nodes.Template:
    """The syntax tree, of allowed constructs only; raises SpecError."""
    try:
        tree = _SANDBOX.parse(text)
        _check_constructs(tree, loops=0)
    except TemplateSyntaxError as error:
        said = (error.message or "it cannot be read").rstrip(".")
        remedy = "Write a field as {{ name }}, and close each {% if %} with {% endif %}"
        remedy += " and each {% for %} with {% endfor %}."
        raise _unusable(error.lineno, f"{said[:1].upper()}{said[1:]}. {remedy}") from None
    except RecursionError:
        raise _unusable(1, "It is nested too deeply; make it simpler.") from None
    return tree


def _unusable(line: int, message: str) -> SpecError:
    return SpecError(f"Line {line}: {message}", field="text")


def _check_constructs(node: nodes.Node, *, loops: int) -> None:
    if not isinstance(node, _ALLOWED):
        name = type(node).__name__.lower()
        remedy = "Use fields, filters, {% if %} and {% for … in a field %} only."
        raise _unusable(node.lineno, f"A canned response cannot use {name!r}. {remedy}")
    match node:
        case nodes.For():
            loops += 1
            if node.recursive or loops > MOST_NESTED_LOOPS:
                message = (
                    f"Loops stand at most {MOST_NESTED_LOOPS} deep and do not call themselves."
                )
                raise _unusable(node.lineno, message)
        case nodes.Filter() if node.name not in FILTERS:
            known = ", ".join(sorted(FILTERS))
            raise _unusable(node.lineno, f"There is no filter {node.name!r}. Known are: {known}.")
        case nodes.Test() if node.name not in _TESTS:
            known = ", ".join(sorted(_TESTS))
            raise _unusable(node.lineno, f"There is no test {node.name!r}. Known are: {known}.")
        case nodes.Name() if node.name.startswith("_"):
            message = f"A field's name does not begin with an underscore, as {node.name!r} does."
            raise _unusable(node.lineno, message)
    for child in node.iter_child_nodes():
        _check_constructs(child, loops=loops)


class _Sandbox(ImmutableSandboxedEnvironment):
    """Values are JSON: a dot reaches the entries of objects and nothing of Python."""

    intercepted_binops = frozenset({"*", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext):
            return super().getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj[argument]  # raises, and names it
        try:
            if isinstance(obj, Mapping) or not isinstance(argument, str):
                return obj[argument]
        except (LookupError, TypeError):
            pass
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        # "x" * 10**9 and "%1000000000d" % 1 are the short ways to a text without end.
        if not (_is_number(left) and _is_number(right)):
            raise TypeError(f"{operator!r} is for numbers")
        return super().call_binop(context, operator, left, right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e15


def _shown(value: Any) -> Any:
    """What stands in the text for a value; what has no words of its own is as good as not available."""
    match value:
        case None | Mapping() | list() | tuple():
            raise UndefinedError(f"{type(value).__name__} is not text")
        case bool():
            return "yes" if value else "no"
        case float() if value.is_integer() and abs(value) < 1e15:
            return int(value)
        case _:
            return value


@pass_context
def _bounded(context: Context, value: Any) -> list[Any]:
    """The rounds of a loop, taken off what this rendering may take."""
    if isinstance(value, str):
        raise TypeError("a text is not a list")
    rounds = list(value)
    budget: list[int] = context[_BUDGET]
    budget[0] -= len(rounds)
    if budget[0] < 0:
        raise TemplateError("too many rounds")
    return rounds


def _within_bounds(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise ValueError("too long")
    return text


def _replaced(value: Any, old: str, new: str) -> str:
    text = _within_bounds(str(value))
    if not old or len(text) + text.count(old) * len(new) > LONGEST_TEXT:
        raise ValueError("too long")
    return text.replace(old, new)


def _listed(value: Sequence[Any], between: str = "", attribute: str = "") -> str:
    items = [_entry(item, attribute) for item in value] if attribute else list(value)
    if len(items) * len(between) > LONGEST_TEXT:
        raise ValueError("too long")
    return _within_bounds(between.join(str(_shown(item)) for item in items))


def _entry(item: Any, attribute: str) -> Any:
    return item[attribute]


def _rounded(value: Any, decimals: int = 0) -> Any:
    places = max(0, min(decimals, 10))
    return round(value, places) if places else round(value)


def _number(value: Any, decimals: int | None = None) -> str:
    """With separators: 1204.5 → "1,204.50" for two decimals."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    return f"{value:,}" if decimals is None else f"{value:,.{max(0, min(decimals, 10))}f}"


def _each(value: Sequence[Any], attribute: str) -> list[Any]:
    return [_entry(item, attribute) for item in value]


def _first(value: Sequence[Any]) -> Any:
    return value[0]


def _last(value: Sequence[Any]) -> Any:
    return value[-1]


FILTERS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "capitalize": filters.do_capitalize,
    "default": filters.do_default,
    "each": _each,
    "first": _first,
    "int": filters.do_int,
    "join": _listed,
    "last": _last,
    "length": len,
    "lower": filters.do_lower,
    "number": _number,
    "replace": _replaced,
    "round": _rounded,
    "sort": filters.do_sort,
    "title": filters.do_title,
    "trim": filters.do_trim,
    "truncate": filters.do_truncate,
    "upper": filters.do_upper,
}
"""What a template may do with a value, by name."""

_TESTS = frozenset(
    "defined undefined none true false number string mapping sequence odd even divisibleby in "
    "eq equalto ne lt lessthan le gt greaterthan ge".split()
)


def _sandbox() -> _Sandbox:
    sandbox = _Sandbox(undefined=StrictUndefined, finalize=_shown, autoescape=False)
    sandbox.globals = {}
    sandbox.filters = FILTERS | {"_bounded": _bounded}
    sandbox.tests = {name: test for name, test in sandbox.tests.items() if name in _TESTS}
    return sandbox


_SANDBOX = _sandbox()
