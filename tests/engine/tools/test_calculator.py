"""The calculator is exact where decimals are, and nothing that is written can make it run away."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ToolFailure
from engine.tools.base import ToolContext
from engine.tools.builtin.calculator import calculator, evaluate

CONTEXT = ToolContext(agent_id="a", session_id="s", turn_id="t", customer_id="c")


def test_it_answers_with_a_sentence_to_say() -> None:
    assert calculator(CONTEXT, "15 * 1.2 + 3") == {
        "expression": "15 * 1.2 + 3",
        "result": 21,
        "text": "15 * 1.2 + 3 equals 21.",
    }


@pytest.mark.parametrize(
    ("expression", "result", "written"),
    [
        ("0.1 + 0.2", 0.3, "equals 0.3."),
        ("2 / 3 * 3", 2, "equals 2."),
        ("19.99 * 3", 59.97, "equals 59.97."),
        ("-7 // 2", -4, "equals -4."),
        ("-7 % 3", 2, "equals 2."),
        ("-2 ** 2", -4, "equals -4."),
        ("2 ** -2", 0.25, "equals 0.25."),
        ("+(2 + 3) * -4", -20, "equals -20."),
        ("2 ** 100", 2**100, "equals 1267650600228229401496703205376."),
        ("1e5 + 1_000", 101000, "equals 101000."),
        ("15 × 1.2 ÷ 3 − 1", 5, "equals 5."),
        ("10 / 3", 10 / 3, "equals about 3.33333333333."),
        ("2 ** 0.5", 2**0.5, "equals about 1.41421356237."),
        ("12345678901234567.89 + 0.01", 12345678901234567.9, "equals 12345678901234567.9."),
        ("5\n+ 5", 10, "5 + 5 equals 10."),
    ],
)
def test_it_calculates(expression: str, result: Any, written: str) -> None:
    answer = calculator(CONTEXT, expression)
    assert answer["result"] == result
    assert answer["text"].endswith(written)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("5 / 0", "divides by zero"),
        ("5 // 0", "divides by zero"),
        ("5 % 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("", "empty"),
        ("   ", "empty"),
        ("2 +", "not an arithmetic expression"),
        ("((2)", "not an arithmetic expression"),
        ("1or 2", "not an arithmetic expression"),
        ("2; 3", "not an arithmetic expression"),
        ("2\x003", "not an arithmetic expression"),
        ("1,500 + 2", "without separators"),
        ("2 ^ 3", "written **"),
        ("True + 1", "'True' is not a real number"),
        ("3j * 2", "'3j' is not a real number"),
        ("(-8) ** 0.5", "no real root"),
        ("'a' * 3", "'a' is not a real number"),
        ("pi * 2", "'pi' is not a number"),
        ("inf - inf", "'inf' is not a number"),
        ("abs(-3)", "no functions"),
        ("__import__('os').system('id')", "no functions"),
        ("(1).real", "only numbers"),
        ("[1, 2][0]", "only numbers"),
        ("1 if 2 else 3", "only numbers"),
        ("1 < 2", "only numbers"),
        ("1 << 5", "only numbers"),
        ("~5", "only numbers"),
        ("f'{1}'", "only numbers"),
    ],
)
def test_what_is_not_arithmetic_is_refused_with_a_reason_to_tell(
    expression: str, reason: str
) -> None:
    with pytest.raises(ToolFailure) as caught:
        calculator(CONTEXT, expression)
    assert reason in caught.value.error.public


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "10 ** 1000",
        "2 ** 200",
        "(2 ** 999) ** 999",
        "0.1 ** 1000",
        "1e999999999",
        "1e-999999999",
        "1e308 * 1e308",
        "-" * 60 + "1",
        "(" * 240 + "1" + ")" * 240,
        "1 + " * 200 + "1",
        "1 + " * 100 + "1",
        "9" * 600,
        "2.5 ** 999.5",
        "1 / 3 ** 900 / 7 ** 900",
        "0.1 ** 60",
    ],
)
def test_what_would_run_away_is_refused_at_once(expression: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ToolFailure):
        calculator(CONTEXT, expression)
    assert time.perf_counter() - started < 0.5


@given(st.text(alphabet="0123456789.+-*/%() e_", max_size=60))
def test_whatever_is_written_gives_a_number_or_a_reason(expression: str) -> None:
    try:
        result = calculator(CONTEXT, expression)["result"]
    except ToolFailure as failure:
        result = failure.error.public
    assert result or result == 0
    assert type(result) in (int, float, str)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.sampled_from("+-*"))
def test_whole_numbers_come_out_as_python_counts(left: int, right: int, sign: str) -> None:
    wanted = {"+": left + right, "-": left - right, "*": left * right}[sign]
    assert evaluate(f"({left}) {sign} ({right})") == wanted
