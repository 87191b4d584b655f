"""`manage.py import_session FILE`: take in a session that export_session wrote."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.operations.session_document import DocumentRefusedError
from studio.operations.session_import import import_session
from studio.uploads import LARGEST_DOCUMENT


class Command(BaseCommand):
    help = "Import a recorded session from JSON, as export_session writes it. Nothing of it runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            with options["file"].open("rb") as file:
                data = file.read(LARGEST_DOCUMENT + 1)
        except OSError as error:
            raise CommandError(f"{str(options['file'])!r} cannot be read: {error}") from error
        try:
            imported = import_session(data)
        except DocumentRefusedError as error:
            for problem in error.problems:
                place = f"{problem.place}: " if problem.place else ""
                self.stderr.write(f"{place}{problem.message}")
            raise CommandError("Nothing was imported.") from error
        self.stdout.write(f"Session {imported.session.pk} of {imported.session.agent.slug}.")
        if imported.missing_tools:
            names = ", ".join(imported.missing_tools)
            self.stdout.write(f"The agent was made without tools that are not here: {names}.")
