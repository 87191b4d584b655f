"""What came of a run in words, for pages, files and the terminal."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from engine.expecting import Aspect, Outcome, OutcomeState, Verdict
from studio.run_reports import ScenarioReport

VERDICTS = {
    Verdict.PASSED: gettext_lazy("Passed"),
    Verdict.FAILED: gettext_lazy("Failed"),
    Verdict.FLAKY: gettext_lazy("Flaky"),
    Verdict.INVALID: gettext_lazy("Invalid"),
}
MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.FLAKY: "≈", Verdict.INVALID: "?"}
KINDS = {
    Verdict.PASSED: "good",
    Verdict.FAILED: "bad",
    Verdict.FLAKY: "warn",
    Verdict.INVALID: "wait",
}
"""Chip classes (static/css/parts.css)."""
ASPECTS = {
    Aspect.DECISIONS: gettext_lazy("decisions"),
    Aspect.WORDING: gettext_lazy("wording"),
    Aspect.EFFORT: gettext_lazy("effort"),
}
_OUTCOMES = {
    OutcomeState.HELD: gettext_lazy("held"),
    OutcomeState.FAILED: gettext_lazy("failed"),
    OutcomeState.UNKNOWN: gettext_lazy("could not be told"),
}
_ENDINGS = {
    "script": gettext_lazy("Everything was said."),
    "unasked": gettext_lazy(
        "It ended early: a button was to be pressed, and no call waited for it."
    ),
    "done": gettext_lazy("The customer ended it."),
    "turns": gettext_lazy("It ended at its limit of turns."),
    "tokens": gettext_lazy("It ended at its limit of tokens."),
    "handed_over": gettext_lazy("It was handed over to a person."),
    "failed": gettext_lazy("A turn failed."),
}


def verdict_words(scenario: ScenarioReport) -> str:
    """ "Passed", "flaky: 2 of 3", "Failed in decisions and wording", "invalid"."""
    verdict = scenario.verdict
    if verdict is None:
        return _("Not over")
    if verdict is Verdict.FLAKY:
        times = scenario.passed_times
        return _("flaky: %(passed)d of %(all)d") % {"passed": times, "all": len(scenario.cells)}
    if verdict is Verdict.FAILED:
        words = _(" and ").join(str(ASPECTS[aspect]) for aspect in scenario.failing_aspects)
        return _("failed in %(aspects)s") % {"aspects": words}
    return str(VERDICTS[verdict]).lower()


def outcome_words(outcome: Outcome) -> str:
    return str(_OUTCOMES[outcome.state])


def ending_words(ended_by: str) -> str:
    return str(_ENDINGS.get(ended_by, ""))


def summary(counted: dict[str, int]) -> list[tuple[str, str]]:
    """“3 passed”, “1 flaky”: each with its verdict, those that there are."""
    words: dict[str, Any] = {
        "failed": lambda n: ngettext("%d failed", "%d failed", n) % n,
        "flaky": lambda n: ngettext("%d flaky", "%d flaky", n) % n,
        "invalid": lambda n: ngettext("%d invalid", "%d invalid", n) % n,
        "quarantined": lambda n: ngettext("%d in quarantine", "%d in quarantine", n) % n,
        "passed": lambda n: ngettext("%d passed", "%d passed", n) % n,
    }
    return [(key, say(counted[key])) for key, say in words.items() if counted[key]]
