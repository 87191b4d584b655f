"""`manage.py run_suite SUITE --against draft --junit out.xml`: a suite as a step of a build.

The conversations are had in this process, through the same machinery as in a worker; neither a worker nor a queue is
needed. The exit code is 0 where the suite passed, 1 where it did not, 2 where it could not be run like that.
"""

import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError

from engine.expecting import Verdict
from studio.ledger_text import printable
from studio.models import ModelConnection, Suite, SuiteRun
from studio.operations import lanes
from studio.operations.suite_runs import CREW, RunRefusedError, start_run
from studio.run_costs import cost_of_run
from studio.run_files import failures, junit, quarantine_in_words, table
from studio.run_reports import RunReport, ScenarioReport, report
from studio.run_words import MARKS, summary, verdict_words
from studio.templatetags.studio_costs import money
from studio.views.exported_run import exported_run

TOLD_EVERY = 5.0  # seconds, where progress is written to no terminal
CLEAR_LINE = "\r\x1b[K"
MOST_NAMED = 20
INTERRUPTED = 130


class Command(BaseCommand):
    help = (
        "Run a suite of scenarios here, without a worker. The exit code is 0 where it passed, 1 where it did not, and "
        "2 where it cannot be run like that."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "suite", help="its number or its name; AGENT/NAME where several agents have it"
        )
        parser.add_argument(
            "--against",
            action="append",
            metavar="VERSION",
            help="draft (the default), published, or a number; may be given several times",
        )
        parser.add_argument("--repeats", type=int, metavar="N", help="as often as the suite says")
        parser.add_argument(
            "--only",
            action="append",
            metavar="UID",
            help="only this scenario; may be given several times",
        )
        parser.add_argument(
            "--connection", metavar="NAME", help="a model connection; else the default"
        )
        parser.add_argument(
            "--cap", type=_number, default=0, metavar="N", help="tokens that may be used"
        )
        parser.add_argument(
            "--threads", type=_number, metavar="N", help="conversations had at a time"
        )
        parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
        parser.add_argument("--csv", type=Path, metavar="FILE", help="write a table")
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")

    def handle(self, *_args: Any, **options: Any) -> None:
        suite = _suite(options["suite"])
        files = _writable(options)
        try:
            run = start_run(
                suite,
                against=options["against"] or ["draft"],
                repeats=options["repeats"],
                connection=_connection(options["connection"]),
                cap=options["cap"],
                scenarios=options["only"],
                by="run_suite",
                enqueue=False,
            )
        except RunRefusedError as error:
            raise _refusal(str(error)) from error
        self._say(f"{suite.agent.name} · {suite.name} · run {run.pk}, also at /runs/{run.pk}/")
        self._play(run, options["threads"] or settings.STUDIO_WORKER_THREADS)
        run = SuiteRun.objects.select_related("suite__agent", "connection").get(pk=run.pk)
        found = report(run)
        for line in _lines(run, found):
            self._say(line)
        _write(run, found, files)
        if run.verdict != Verdict.PASSED:
            raise SystemExit(1)

    def _play(self, run: SuiteRun, threads: int) -> None:
        progress = _Progress(run, self)
        try:
            lanes.play_here(CREW, run, threads=min(threads, run.total), watch=progress.tell)
        except KeyboardInterrupt:
            progress.end()
            done = run.cells.over().count()
            self._say(
                f"Cancelled. {done} of {run.total} conversations are kept; go on with the rest at /runs/{run.pk}/."
            )
            raise SystemExit(INTERRUPTED) from None
        progress.end()

    def _say(self, text: str) -> None:
        self.stdout.write(printable(text))


class _Progress:
    """How many conversations are over: one line that is written anew, or now and then one in a log."""

    def __init__(self, run: SuiteRun, command: Command) -> None:
        self._run = run
        self._out = command.stderr
        self._told = time.monotonic()
        self._begun = time.monotonic()
        self._on_line = False

    def tell(self) -> None:
        terminal = self._out.isatty()
        if not terminal and time.monotonic() - self._told < TOLD_EVERY:
            return
        self._told = time.monotonic()
        done = self._run.cells.over().count()
        line = f"{done} of {self._run.total} conversations{self._left(done)}"
        if terminal:
            self._out.write(f"{CLEAR_LINE}{line}", ending="")
            self._out.flush()
            self._on_line = True
        else:
            self._out.write(line)

    def _left(self, done: int) -> str:
        if not done:
            return ""
        spent = time.monotonic() - self._begun
        left = round(spent / done * (self._run.total - done))
        return f", about {left} s left" if left < 90 else f", about {round(left / 60)} min left"

    def end(self) -> None:
        if self._on_line:
            self._out.write(CLEAR_LINE, ending="")


# --- What is asked for


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise ArgumentTypeError(f"{text!r} is no number.")
    return int(text)


def _suite(name: str) -> Suite:
    rows = Suite.objects.select_related("agent")
    agent, slash, rest = name.partition("/")
    try:
        found = list(rows.filter(agent__slug=agent, name=rest)) if slash else []
        found = found or list(rows.filter(name=name))
        if not found and name.isdecimal() and len(name) < 19:
            found = list(rows.filter(pk=int(name)))
        known = [f"{row.agent.slug}/{row.name} ({row.pk})" for row in found or rows[:MOST_NAMED]]
    except (OperationalError, ProgrammingError) as error:
        raise _refusal(
            f"The database is not ready ({error}); run `manage.py bootstrap` first."
        ) from error
    if len(found) == 1:
        return found[0]
    if found:
        raise _refusal(f"Several agents have a suite {name!r}; say which: {', '.join(known)}.")
    raise _refusal(f"There is no suite {name!r}; there are: {', '.join(known) or 'none'}.")


def _connection(name: str | None) -> ModelConnection | None:
    if name is None:
        return None
    row = ModelConnection.objects.filter(name=name).first()
    if row is None:
        known = ModelConnection.objects.values_list("name", flat=True)
        raise _refusal(
            f"There is no connection {name!r}; there are: {', '.join(map(repr, known)) or 'none'}."
        )
    return row


def _writable(options: dict[str, Any]) -> dict[str, Path]:
    """The files asked for; found out before anything is run and paid."""
    files: dict[str, Path] = {k: options[k] for k in ("junit", "csv", "html") if options[k]}
    for path in files.values():
        if not path.parent.is_dir() or path.is_dir():
            raise _refusal(
                f"{str(path)!r} cannot be written; name a file in a folder that is there."
            )
    return files


def _refusal(message: str) -> CommandError:
    return CommandError(message, returncode=2)


# --- What is told


def _lines(run: SuiteRun, found: RunReport) -> Iterator[str]:
    for version in found.versions:
        yield ""
        yield version.label
        for scenario in version.scenarios:
            yield from _of_scenario(scenario)
    yield ""
    words = ", ".join(words for _key, words in summary(found.counted))
    paid = money(cost_of_run(run))
    spent = f"{found.tokens} tokens" + (f", {paid}" if paid else "")
    yield f"{_verdict(run)}: {words or 'nothing was run'}. {spent}."


def _verdict(run: SuiteRun) -> str:
    if run.verdict:
        return run.verdict.upper()
    if run.capped:
        return "NO VERDICT, stopped at the cap"
    return f"NO VERDICT, {run.error or run.state}"


def _of_scenario(scenario: ScenarioReport) -> Iterator[str]:
    mark = MARKS[scenario.verdict] if scenario.verdict else "-"
    if not scenario.counts:
        yield f"  {mark} {scenario.title}: {quarantine_in_words(scenario)}"
        return
    words = verdict_words(scenario)
    passed = scenario.verdict is Verdict.PASSED
    yield f"  {mark} {scenario.title}" + ("" if passed else f": {words}")
    if scenario.verdict is not None and not passed:
        for line in failures(scenario):
            yield f"      {line}"


def _write(run: SuiteRun, found: RunReport, files: dict[str, Path]) -> None:
    texts: dict[str, Callable[[], str]] = {
        "junit": lambda: junit(found),
        "csv": lambda: table(found),
        "html": lambda: exported_run(run),
    }
    for kind, path in files.items():
        try:
            path.write_text(texts[kind](), encoding="utf-8", newline="")
        except OSError as error:
            raise CommandError(f"{str(path)!r} was not written: {error.strerror}.") from error
