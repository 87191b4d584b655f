"""`manage.py export_suite ID`: a suite as one document, fit for version control."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.models import Suite
from studio.operations.suite_documents import suite_text


class Command(BaseCommand):
    help = "Write a suite of scenarios as one YAML or JSON document."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("suite", type=int, help="its number, as in its address")
        parser.add_argument("--format", choices=["yaml", "json"], default="yaml")
        parser.add_argument("--output", type=Path, help="a file; standard output without it")

    def handle(self, *_args: Any, **options: Any) -> None:
        suite = Suite.objects.select_related("agent").filter(pk=options["suite"]).first()
        if suite is None:
            rows = Suite.objects.values_list("pk", "agent__slug", "name")
            known = ", ".join(f"{pk} ({slug}: {name})" for pk, slug, name in rows) or "none"
            raise CommandError(f"No suite {options['suite']}; there are: {known}.")
        text = suite_text(suite, options["format"])
        if options["output"] is None:
            self.stdout.write(text, ending="")
        else:
            options["output"].write_text(text, encoding="utf-8")
