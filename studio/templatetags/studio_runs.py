"""Verdicts of runs as chips say them."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from engine.expecting import Outcome, Verdict
from studio.models import RunCell
from studio.run_reports import CellReport, ScenarioReport
from studio.run_words import (
    ASPECTS,
    KINDS,
    MARKS,
    VERDICTS,
    ending_words,
    outcome_words,
    verdict_words,
)

register = template.Library()


@register.filter
def verdict_chip(verdict: str) -> SafeString | str:
    """Of a run or a scenario; nothing where there is none yet."""
    if verdict not in set(Verdict):
        return ""
    known = Verdict(verdict)
    return format_html(
        '<span class="chip {}" data-mark="{}">{}</span>',
        KINDS[known],
        MARKS[known],
        VERDICTS[known],
    )


@register.filter
def verdict_name(verdict: str | None) -> str:
    """ "Passed"; also of a verdict as rows hold it."""
    return str(VERDICTS[Verdict(verdict)]) if verdict else ""


@register.filter
def verdict_mark(verdict: str | None) -> str:
    return MARKS[Verdict(verdict)] if verdict else "…"


@register.filter
def verdict_kind(verdict: str | None) -> str:
    """The class of a chip."""
    return KINDS[Verdict(verdict)] if verdict else ""


@register.filter
def scenario_words(scenario: ScenarioReport) -> str:
    return verdict_words(scenario)


@register.filter
def any_failing(reports: Iterable[tuple[str, ScenarioReport]]) -> bool:
    """Did the scenario not pass against one of the versions?"""
    return any(one.verdict not in {None, Verdict.PASSED} for _label, one in reports)


@register.filter
def aspect_words(aspect: str) -> str:
    return str(ASPECTS[aspect])  # type: ignore[index]


@register.filter
def came_to(outcome: Outcome) -> str:
    return outcome_words(outcome)


@register.filter
def how_it_ended(cell: CellReport) -> str:
    return ending_words(cell.ended_by)


@register.filter
def cell_state(cell: CellReport) -> str:
    """ "Waiting", "Running", or the verdict."""
    if cell.verdict is not None:
        return verdict_name(cell.verdict)
    return str(RunCell.State(cell.state).label)
