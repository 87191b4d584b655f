"""A run's report for other programs: JUnit's XML for build servers, and a table for spreadsheets."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO, StringIO
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from engine.expecting import Verdict
from studio.run_reports import CellReport, RunReport, ScenarioReport, VersionReport
from studio.run_words import ending_words, outcome_words, verdict_words

_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\t\r]")

COLUMNS: Final = (
    "run",
    "agent",
    "suite",
    "version",
    "fingerprint",
    "scenario",
    "scenario_uid",
    "scenario_verdict",
    "quarantined_until",
    "repeat",
    "session",
    "conversation_verdict",
    "problem",
    "expectation",
    "about",
    "outcome",
    "because",
    "turn",
    "tokens",
    "duration_ms",
)


# --- JUnit


def junit(report: RunReport) -> str:
    """A testsuite per version, a testcase per scenario: failed or flaky ones are failures, invalid ones errors.

    What is quarantined and did not pass is skipped, with a message. What was never run is an error once the run is
    over.
    """
    run = report.run
    document = JUnitXml(_xml(f"{run.suite.name} #{run.pk}"))
    for version in report.versions:
        document.add_testsuite(_suite(report, version))
    document.update_statistics()
    file = BytesIO()
    document.write(file)
    return file.getvalue().decode()


def _suite(report: RunReport, version: VersionReport) -> TestSuite:
    run = report.run
    suite = TestSuite(_xml(f"{run.suite.name}: {version.label}"))
    suite.timestamp = (run.started_at or run.queued_at).strftime("%Y-%m-%dT%H:%M:%S")
    for name, value in (
        ("agent", run.suite.agent.slug),
        ("suite", run.suite.name),
        ("run", run.pk),
        ("version", version.label),
        ("fingerprint", version.version.fingerprint),
        ("repeats", run.repeats),
        ("verdict", version.verdict or ""),
        ("connection", run.connection.name if run.connection else ""),
        ("tokens", sum(cell.tokens for one in version.scenarios for cell in one.cells)),
    ):
        suite.add_property(name, _xml(str(value)))
    titles = Counter(one.title for one in version.scenarios)
    group = f"{run.suite.agent.slug}.{run.suite.name.replace('.', ' ')}"
    for scenario in version.scenarios:
        # Build servers take cases of the same name for one.
        twin = f" ({scenario.uid[:8]})" if titles[scenario.title] > 1 else ""
        case = TestCase(_xml(scenario.title + twin), _xml(group), scenario.duration_ms / 1000)
        if (result := _result(report, scenario)) is not None:
            case.result = [result]
        case.system_out = _xml("\n".join(told(scenario)))
        suite.add_testcase(case)
    return suite


def _result(report: RunReport, scenario: ScenarioReport) -> FinalResult | None:
    if not scenario.is_over:
        if report.run.is_over:
            return _made(Error, _("Not run to its end: the run was stopped."), "not run")
        return _made(Skipped, _("Not over yet."), "not run")
    verdict = scenario.verdict
    if verdict is Verdict.PASSED:
        return None
    words = in_words(scenario)
    if scenario.quarantined is not None:
        return _made(Skipped, quarantine_in_words(scenario), "quarantined")
    kind = Error if verdict is Verdict.INVALID else Failure
    return _made(kind, words, str(verdict), "\n".join(failures(scenario)))


def _made(kind: type[FinalResult], message: str, type_: str, text: str = "") -> FinalResult:
    result = kind(_xml(message), type_)
    if text:
        result.text = _xml(text)
    return result


def in_words(scenario: ScenarioReport) -> str:
    """ "flaky: 2 of 3", and the first thing that was found instead."""
    first = (line.strip() for line in islice(failures(scenario), 2))
    return ". ".join([verdict_words(scenario), *first])


def quarantine_in_words(scenario: ScenarioReport) -> str:
    return _("Quarantined until %(until)s (%(reason)s). %(words)s") % {
        "until": scenario.quarantined,
        "reason": scenario.quarantine_reason,
        "words": in_words(scenario),
    }


def failures(scenario: ScenarioReport) -> Iterator[str]:
    """What was expected and what was found instead, in a line each; why a conversation tells nothing."""
    for expectation in scenario.failing:
        yield _("Expected: %(sentence)s (%(held)d of %(of)d)") % {
            "sentence": expectation.sentence,
            "held": expectation.held,
            "of": expectation.of,
        }
        for cell, outcome in expectation.instead:
            yield "  " + _("Run %(repeat)d: %(because)s") % {
                "repeat": cell.repeat,
                "because": outcome.because,
            }
    if not scenario.failing:
        for cell in scenario.problems:
            yield _("Run %(repeat)d: %(because)s") % {
                "repeat": cell.repeat,
                "because": cell.problem,
            }
        if not scenario.expectations:
            yield _("The scenario expects nothing: write an expectation.")


def told(scenario: ScenarioReport) -> Iterator[str]:
    """Every expectation with what came of it, and where the conversations are."""
    for expectation in scenario.expectations:
        if expectation.verdict is not None:
            yield f"[{expectation.verdict}] {expectation.sentence} ({expectation.held}/{expectation.of})"
    for cell in scenario.cells:
        if cell.is_over:
            where = f"/sessions/{cell.session}/" if cell.session else ""
            yield " ".join(filter(None, [f"#{cell.repeat}", ending_words(cell.ended_by), where]))


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NO_XML.sub("�", text)


# --- CSV


def table(report: RunReport) -> str:
    """A row for each conversation and expectation. What a spreadsheet would take for a formula is quoted."""
    file = StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for version in report.versions:
        for scenario in version.scenarios:
            for cell in scenario.cells:
                for row in _rows(report, version, scenario, cell):
                    writer.writerow([_harmless(row[column]) for column in COLUMNS])
    return file.getvalue()


def _rows(
    report: RunReport, version: VersionReport, scenario: ScenarioReport, cell: CellReport
) -> Iterator[dict[str, Any]]:
    common = {
        "run": report.run.pk,
        "agent": report.run.suite.agent.slug,
        "suite": report.run.suite.name,
        "version": version.version.number or "draft",
        "fingerprint": version.version.fingerprint,
        "scenario": scenario.title,
        "scenario_uid": scenario.uid,
        "scenario_verdict": scenario.verdict or "",
        "quarantined_until": scenario.quarantined or "",
        "repeat": cell.repeat,
        "session": cell.session or "",
        "conversation_verdict": cell.verdict or cell.state.value,
        "problem": cell.problem,
        "tokens": cell.tokens,
        "duration_ms": cell.duration_ms,
        "expectation": "",
        "about": "",
        "outcome": "",
        "because": "",
        "turn": "",
    }
    if not scenario.expectations:
        yield common
    for expectation in scenario.expectations:
        outcome = next((found for one, found in expectation.outcomes if one is cell), None)
        yield common | {
            "expectation": expectation.sentence,
            "about": expectation.aspect.value,
            "outcome": outcome_words(outcome) if outcome else "",
            "because": outcome.because if outcome else "",
            "turn": (outcome.turn or "") if outcome else "",
        }


def _harmless(value: Any) -> Any:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and _FORMULA.match(text) else text
