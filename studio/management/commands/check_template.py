"""`manage.py check_template DIR_OR_ZIP`: what the rules find in a tool template, without a server or database."""

import json
import textwrap
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from engine.canonical import canonical_json
from engine.tools.checking.rulebook import shown
from engine.tools.package import (
    LARGEST_ARCHIVE,
    Archive,
    PackageError,
    read_archive,
    read_directory,
)
from engine.tools.rules import check_package
from engine.tools.template import Issue, Report, TemplateField

WIDTH = 100
MOST_IN_CELL = 40
_HEAD = ("name", "type", "required", "default", "description")


class Command(BaseCommand):
    help = (
        "Check a tool template, or all of a workflow template's, by its files: nothing of it is run. "
        "The exit code is 1 where there is an error."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="DIR_OR_ZIP")
        parser.add_argument(
            "--name", default="", help="the name it is to have, not its directory's"
        )
        parser.add_argument("--json", action="store_true", help="print the whole report as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        path = Path(options["path"])
        issues: tuple[Issue, ...] = ()
        archive = Archive(())
        try:
            archive = _archive(path)
        except PackageError as error:
            issues = error.issues
        reports = [
            check_package(package, name=options["name"] if len(archive.packages) == 1 else "")
            for package in archive.packages
        ]
        ok = not issues and all(report.ok for report in reports)
        if options["json"]:
            self.stdout.write(_json(archive, reports, issues, ok=ok))
        else:
            self.stdout.write("\n".join(_lines(str(path), archive, reports, issues)))
        if not ok:
            raise SystemExit(1)


def _archive(path: Path) -> Archive:
    if path.is_dir():
        return Archive((read_directory(path),))
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_ARCHIVE + 1)
    except OSError as error:
        raise CommandError(
            f"{shown(str(path))!r} cannot be read ({error.strerror}); name a directory or a ZIP."
        ) from error
    return read_archive(data, filename=path.name)


def _json(archive: Archive, reports: Sequence[Report], issues: Iterable[Issue], *, ok: bool) -> str:
    value = {
        "ok": ok,
        "workflow": archive.workflow,
        "issues": Report(name="", issues=tuple(issues)).to_json()["issues"],
        "templates": [report.to_json() for report in reports],
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def _lines(
    path: str, archive: Archive, reports: Sequence[Report], issues: Sequence[Issue]
) -> Iterator[str]:
    if archive.workflow:
        yield f"Workflow template {archive.workflow!r}, tools: {len(reports)}"
        yield ""
    if issues:
        yield shown(path)
        yield from _issues(issues)
        yield _verdict(issues)
    for place, report in enumerate(reports):
        if place:
            yield ""
        yield from _report(report)


def _report(report: Report) -> Iterator[str]:
    yield shown(report.name)
    if report.description:
        yield f"  {_cut(report.description, WIDTH)}"
    yield from _issues(report.issues)
    for title, fields in (
        ("UserParameters", report.user_parameters),
        ("ToolParameters", report.tool_parameters),
    ):
        yield ""
        yield f"  {title}" if fields else f"  {title}: no fields"
        yield from _table([_HEAD, *map(_cells, fields)] if fields else [])
    yield ""
    if report.output_key is not None:
        yield f"  Output key: {shown(report.output_key)}"
    yield f"  Requirements: {shown(', '.join(report.requirements)) or 'none'}"
    yield _verdict(report.issues)


def _issues(issues: Iterable[Issue]) -> Iterator[str]:
    for issue in issues:
        where = f" {issue.path}:{issue.line}" if issue.line else f" {issue.path}".rstrip()
        yield ""
        yield f"  {issue.severity.value} {issue.rule}{where}"
        yield textwrap.fill(issue.message, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
        if issue.source:
            yield f"    | {issue.source}"


def _verdict(issues: Iterable[Issue]) -> str:
    severities = [issue.severity.value for issue in issues]
    errors, warnings = severities.count("error"), severities.count("warning")
    return f"  {'Refused' if errors else 'Accepted'}: {errors} error(s), {warnings} warning(s)"


def _cells(field: TemplateField) -> tuple[str, ...]:
    required = "yes" if field.required else "null if none" if field.required_by_pydantic else "no"
    default = canonical_json(field.default) if field.has_default else ""
    secret = "secret " if field.secret else ""
    return tuple(
        _cut(cell, MOST_IN_CELL)
        for cell in (field.name, secret + field.type, required, default, field.description)
    )


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))] if rows else []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"    {'  '.join(cells)}".rstrip()


def _cut(text: str, most: int) -> str:
    line = shown(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"
