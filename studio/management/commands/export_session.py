"""`manage.py export_session NUMBER`: a recorded session as JSON for another studio, or as a page to read."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.models import Session
from studio.operations.redaction import Rules
from studio.operations.session_export import ExportRefusedError, export_session
from studio.views.exported_page import exported_html

_OPTIONS = ("customer", "emails", "phones", "accounts", "numbers", "metadata", "prompts")


class Command(BaseCommand):
    help = "Write a recorded session as JSON for another studio, or as an HTML page to read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", type=int, help="the session's number")
        parser.add_argument("--format", choices=["json", "html"], default="json")
        parser.add_argument("--tree", action="store_true", help="with all branches (JSON only)")
        parser.add_argument(
            "--leave-out", nargs="*", choices=_OPTIONS, default=[], help="replace by labels"
        )
        parser.add_argument("--word", action="append", default=[], help="replace this word, too")
        parser.add_argument("--by", default="", help="who exports it")
        parser.add_argument("--output", type=Path, help="a file; standard output without it")

    def handle(self, *_args: Any, **options: Any) -> None:
        rows = Session.objects.select_related("agent", "customer")
        session = rows.filter(pk=options["session"]).first()
        if session is None:
            raise CommandError(f"There is no session {options['session']}.")
        rules = Rules(words=tuple(options["word"]), **dict.fromkeys(options["leave_out"], True))
        try:
            if options["format"] == "html":
                text = exported_html(session, by=options["by"], rules=rules)
            else:
                exported = export_session(
                    session, by=options["by"], rules=rules, tree=options["tree"]
                )
                text = exported.text
        except ExportRefusedError as error:
            raise CommandError(str(error)) from error
        if options["output"] is None:
            self.stdout.write(text, ending="")
        else:
            options["output"].write_text(text, encoding="utf-8")
