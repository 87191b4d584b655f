"""Expectations and messages as the pages of suites list them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine import spec
from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.expecting import Expectation as Expected
from engine.expecting import needs_model
from studio.expectation_words import sentence
from studio.models import Expectation, Scenario, Suite
from studio.operations.expectation_checks import (
    ScenarioRefusedError,
    doubts,
    make_sure_it_fits,
)
from studio.operations.scenarios import read, turns_said
from studio.run_reports import ExpectationReport, ScenarioReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationLine:
    """`expectation` is None where what is stored cannot be read; `doubts` are sentences."""

    row: Expectation
    expectation: Expected | None
    sentence: str
    doubts: tuple[str, ...]
    judged: bool = False  # by a model
    came_to: ExpectationReport | None = None  # in the newest finished run


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidLine:
    """One turn of a scripted scenario."""

    number: int
    messages: Sequence[JsonObject]


def expectation_lines(
    scenario: Scenario, suite: Suite, agent: spec.Agent, came_to: ScenarioReport | None
) -> tuple[ExpectationLine, ...]:
    """In the order of their turns; those of the whole conversation last."""
    reports = {report.uid: report for report in came_to.expectations} if came_to else {}
    lines = [
        replace(_line(row, scenario, suite, agent), came_to=reports.get(row.uid))
        for row in scenario.expectations.all()
    ]
    return tuple(sorted(lines, key=_turn))


def _turn(line: ExpectationLine) -> float:
    turn = line.expectation.turn if line.expectation is not None else None
    return turn if turn is not None else float("inf")


def _line(row: Expectation, scenario: Scenario, suite: Suite, agent: spec.Agent) -> ExpectationLine:
    try:
        expectation = read(row)
    except SpecError as error:
        return ExpectationLine(
            row=row, expectation=None, sentence=str(row.data.get("kind")), doubts=(str(error),)
        )
    odd = doubts(expectation, suite.repeats)
    try:
        make_sure_it_fits(expectation, scenario, agent)
    except ScenarioRefusedError as error:
        odd.insert(0, str(error))
    return ExpectationLine(
        row=row,
        expectation=expectation,
        sentence=sentence(expectation, agent),
        doubts=tuple(odd),
        judged=needs_model(expectation),
    )


def said_lines(scenario: Scenario) -> list[SaidLine]:
    return [
        SaidLine(number=number, messages=messages)
        for number, messages in enumerate(turns_said(scenario.messages), start=1)
    ]
