"""The `calculator` tool: exact arithmetic on fractions, with bounds on everything that could run away.

Reference: "calculator" in the tools page of protovoice.
"""

import ast
import operator
import re
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated, Any

from simpleeval import SimpleEval  # type: ignore[import-untyped]

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext
from engine.tools.function import tool
from engine.tools.parameters import ToolParameterOptions

MAX_LENGTH = 500  # characters of an expression
MAX_DEPTH = 50  # operations inside one another
MAX_EXPONENT = 1000
MAX_WORKING_DIGITS = 700  # of a numerator or denominator on the way
MAX_RESULT_DIGITS = 50  # before the decimal point, and zeros after it
EXACT_DIGITS = 15  # up to which a decimal is written in full
SHOWN_DIGITS = 12  # of a longer one

_GLUED_KEYWORD = re.compile(r"[\da-fA-F_.](?:and|else|for|if|in|is|not|or)\b")
_WRITING = Context(prec=2 * MAX_RESULT_DIGITS)
_KNOWN = "it knows only numbers, + - * / // % ** and brackets"

# Signs that people write for the operators.
_WRITTEN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})
_Operation = Callable[[Fraction, Fraction], Fraction]


@tool
def calculator(
    _context: ToolContext,
    expression: Annotated[
        str,
        ToolParameterOptions(
            description="The arithmetic to work out, with numbers, brackets and + - * / // % ** only",
            examples=("15 * 1.2 + 3", "(250 - 40) / 3", "1200 * (1 + 0.035) ** 5"),
        ),
    ],
) -> JsonObject:
    """Works out an arithmetic expression exactly. Use it for every calculation with numbers.

    It knows + - * / // (whole division) % (remainder) ** (power) and brackets, but no names, functions, units
    or currencies.
    """
    shown = " ".join(expression.split())
    value = evaluate(expression)
    text, exact = written(value)
    return {
        "expression": shown,
        "result": int(value) if value.denominator == 1 else float(value),
        "text": f"{shown} {'equals' if exact else 'equals about'} {text}.",
    }


def evaluate(expression: str) -> Fraction:
    """The value of an expression; raises ToolFailure with a reason to tell for what it cannot be."""
    source = " ".join(expression.translate(_WRITTEN).split())
    if len(source) > MAX_LENGTH:
        raise _refused(f"the expression is longer than {MAX_LENGTH} characters")
    if not source:
        raise _refused("the expression is empty")
    tree = _parse(source)
    _refuse_beyond_arithmetic(tree)
    evaluator = SimpleEval(operators=_OPERATORS, functions={}, names={})
    evaluator.nodes = {
        ast.BinOp: evaluator.nodes[ast.BinOp],
        ast.UnaryOp: evaluator.nodes[ast.UnaryOp],
        ast.Constant: lambda node: _number(source, node),
    }
    value: Fraction = evaluator.eval(source, previously_parsed=tree)
    if abs(value) >= 10**MAX_RESULT_DIGITS:
        raise _refused(f"the result has more than {MAX_RESULT_DIGITS} digits")
    if value and abs(value) < Fraction(1, 10**MAX_RESULT_DIGITS):
        raise _refused("the result is too close to zero")
    return value


def written(value: Fraction) -> tuple[str, bool]:
    """A number as people write it, and whether that is exact: "0.3" of 3/10, "0.333333333333" of 1/3."""
    if value.denominator == 1:
        return str(value.numerator), True
    exact = _WRITING.divide(Decimal(value.numerator), Decimal(value.denominator))
    digits = len(exact.as_tuple().digits)
    if digits > EXACT_DIGITS:
        # Money keeps its cents however large it is.
        digits = max(SHOWN_DIGITS, exact.adjusted() + 3)
    rounded = Decimal(f"{exact:.{digits}g}").normalize(_WRITING)
    text = format(rounded, "f" if rounded.adjusted() >= -7 else "e")
    return text, Fraction(rounded) == value


def _parse(source: str) -> ast.expr:
    try:
        if _GLUED_KEYWORD.search(source):  # Python would read "1or 2", with a warning to the log
            raise ValueError(source)
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _refused(f"{_short(source)!r} is not an arithmetic expression") from error


def _refuse_beyond_arithmetic(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        for node in level:
            if type(node) not in _ARITHMETIC:
                raise _refused(_why_not(node))
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise _refused(f"the expression is nested more than {MAX_DEPTH} levels deep")


def _why_not(node: ast.AST) -> str:
    match node:
        case ast.Tuple():
            return "numbers must be written without separators between thousands"
        case ast.Name(id=name):
            return f"{_short(name)!r} is not a number; use digits only"
        case ast.BitXor():
            return "a power is written ** here, not ^"
        case ast.Call():
            return f"it has no functions; {_KNOWN}"
        case _:
            return _KNOWN


def _number(source: str, node: ast.Constant) -> Fraction:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(f"{_short(str(value))!r} is not a real number")
    if isinstance(value, int):
        return _bounded(Fraction(value))
    # The text, because the float has lost digits; its exponent first, because 1e999999999 would be written out.
    decimal = Decimal(ast.get_source_segment(source, node) or repr(value))
    if decimal and abs(decimal.adjusted()) > MAX_WORKING_DIGITS // 2:
        raise _refused("a number is too large or too small")
    return _bounded(Fraction(decimal))


def _bounded(value: Fraction) -> Fraction:
    # 10 bits are about 3 digits.
    if (
        max(value.numerator.bit_length(), value.denominator.bit_length())
        > MAX_WORKING_DIGITS * 10 // 3
    ):
        raise _refused("the numbers on the way become too large")
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if abs(exponent) > MAX_EXPONENT:
        raise _refused(f"an exponent is larger than {MAX_EXPONENT}")
    if base == 0 and exponent < 0:
        raise _refused("it divides by zero")
    if exponent.denominator == 1:
        size = max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(exponent)
        if size > 2 * MAX_WORKING_DIGITS * 10 // 3 and abs(base) != 1:
            raise _refused("the numbers on the way become too large")
        return Fraction(base**exponent)
    if base < 0:
        raise _refused("a negative number has no real root")
    try:
        return Fraction(repr(float(base) ** float(exponent)))
    except (OverflowError, ValueError) as error:
        raise _refused("the numbers on the way become too large") from error


def _divided(operation: Callable[[Fraction, Fraction], Any]) -> _Operation:
    def divide(left: Fraction, right: Fraction) -> Fraction:
        if right == 0:
            raise _refused("it divides by zero")
        return Fraction(operation(left, right))

    return divide


def _kept_small(operation: _Operation) -> _Operation:
    return lambda left, right: _bounded(operation(left, right))


_OPERATORS: dict[type[ast.AST], Callable[..., Fraction]] = {
    ast.Add: _kept_small(operator.add),
    ast.Sub: _kept_small(operator.sub),
    ast.Mult: _kept_small(operator.mul),
    ast.Div: _kept_small(_divided(operator.truediv)),
    ast.FloorDiv: _kept_small(_divided(operator.floordiv)),
    ast.Mod: _kept_small(_divided(operator.mod)),
    ast.Pow: _kept_small(_power),
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_ARITHMETIC = {ast.BinOp, ast.UnaryOp, ast.Constant, *_OPERATORS}


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _refused(reason: str) -> ToolFailure:
    return ToolFailure(ToolError(kind=ToolErrorKind.EXCEPTION, public=reason, detail=reason))
