"""`manage.py import_agent FILE`: make the draft of an agent what a document says."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.operations.documents import Change, DocumentError, Report, import_document


class Command(BaseCommand):
    help = "Import an agent from a YAML or JSON document, as export_agent writes it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change, and change nothing"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            text = options["file"].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{str(options['file'])!r} cannot be read: {error}") from error
        try:
            report = import_document(text, dry_run=options["dry_run"])
        except DocumentError as error:
            self._print(error.report)
            raise CommandError("Nothing was imported.") from error
        self._print(report)
        if options["dry_run"]:
            self.stdout.write("Nothing was changed: this was a dry run.")

    def _print(self, report: Report) -> None:
        for row in report.rows:
            if row.change is not Change.UNCHANGED:
                self.stdout.write(f"{row.change:9} {row.place or row.uid}  {row.title}")
            for problem in row.problems:
                self.stderr.write(f"  {problem.place}: {problem.message}")
        if not report.changed:
            self.stdout.write(f"{report.slug} is as the document says already.")
