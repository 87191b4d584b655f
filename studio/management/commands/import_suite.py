"""`manage.py import_suite FILE --agent SLUG`: make a suite of an agent what a document says."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.forms.suite_files import read_suite
from studio.models import Agent
from studio.operations.document_report import Change, DocumentError, Report


class Command(BaseCommand):
    help = "Import a suite from a YAML or JSON document, as export_suite writes it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--agent", required=True, help="the address of the agent that it tests")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change, and change nothing"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        agent = Agent.objects.filter(slug=options["agent"]).first()
        if agent is None:
            known = ", ".join(Agent.objects.values_list("slug", flat=True)) or "none"
            raise CommandError(f"No agent {options['agent']!r}; there are: {known}.")
        try:
            text = options["file"].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{str(options['file'])!r} cannot be read: {error}") from error
        try:
            report, suite = read_suite(text, agent, dry_run=options["dry_run"])
        except DocumentError as error:
            self._print(error.report)
            raise CommandError("Nothing was imported.") from error
        self._print(report)
        if options["dry_run"]:
            self.stdout.write("Nothing was changed: this was a dry run.")
        elif not report.changed and suite is not None:
            self.stdout.write(f"{suite.name!r} is as the document says already.")
        elif suite is not None:
            self.stdout.write(f"Suite {suite.pk} is as the document says.")

    def _print(self, report: Report) -> None:
        for row in report.rows:
            if row.change is not Change.UNCHANGED:
                self.stdout.write(f"{row.change:9} {row.place or row.uid}  {row.title}")
            for problem in row.problems:
                self.stderr.write(f"  {problem.place}: {problem.message}")
