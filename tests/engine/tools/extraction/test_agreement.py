"""What is read from the source of a class is what pydantic says of it."""

import ast
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, seed, settings

from engine.tools.extraction import read_fields
from tests.engine.tools.extraction.generated import files
from tests.engine.tools.extraction.hand_written import cases
from tests.engine.tools.extraction.real_pydantic import RealPydantic, RefusedError, as_extracted

CASES = cases()


def test_there_are_enough_styles_to_compare() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("name", CASES)
def test_a_class_is_read_as_pydantic_has_it(name: str, real_pydantic: RealPydantic) -> None:
    compare(CASES[name], real_pydantic.fields(CASES[name], "ToolParameters"))


def compare(source: str, told: list[dict[str, Any]]) -> None:
    """What is read of the class in `source` against what pydantic told; defaults where they are known and shown."""
    extracted = read_fields(ast.parse(source), "ToolParameters")
    assert extracted.found
    read = [as_extracted(field) for field in extracted.fields]
    for field, theirs in zip(extracted.fields, told, strict=False):
        if field.secret or (theirs["default"] is None and field.has_default):
            theirs["default"] = field.default  # hidden, or of a factory
    assert read == told
    assert not {problem.code for problem in extracted.problems} & {
        "unknown_type",
        "refused",
        "conditional",
    }


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(source=files())
def test_a_generated_class_is_read_as_pydantic_has_it(
    source: str, real_pydantic: RealPydantic
) -> None:
    try:
        told = real_pydantic.fields(source, "ToolParameters")
    except RefusedError:
        reject()
    compare(source, told)


@seed(4)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(source=files())
def collect(seen: Counter[bool], real: RealPydantic, source: str) -> None:
    try:
        real.fields(source, "ToolParameters")
    except RefusedError:
        seen[False] += 1
    else:
        seen[True] += 1


def test_most_generated_classes_are_good(real_pydantic: RealPydantic) -> None:
    seen: Counter[bool] = Counter()
    collect(seen, real_pydantic)
    assert seen[True] > 3 * seen[False]
