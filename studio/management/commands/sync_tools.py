"""`manage.py sync_tools`: the shed holds the tools of the configured Python modules."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from engine.errors import SpecError
from studio.operations.tools import sync_function_tools


class Command(BaseCommand):
    help = "Register the tools of STUDIO_TOOL_MODULES, and say what changed. Safe to run again."

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            report = sync_function_tools()
        except SpecError as error:
            raise CommandError(str(error)) from error
        if options["verbosity"] < 1:
            return
        for words, names in (
            ("new", report.created),
            ("changed", report.changed),
            ("its code is gone", report.missing),
            ("its code is back", report.returned),
            ("left out, because a tool that is no function has this name", report.taken),
        ):
            for name in names:
                self.stdout.write(f"Tool {name}: {words}.")
