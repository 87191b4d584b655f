"""`manage.py export_agent SLUG`: the draft of an agent as one document, fit for version control."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.models import Agent
from studio.operations.contents import content_of
from studio.operations.documents import to_text


class Command(BaseCommand):
    help = "Write the draft of an agent as one YAML or JSON document."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the agent's address, such as harbor-bank")
        parser.add_argument("--format", choices=["yaml", "json"], default="yaml")
        parser.add_argument("--output", type=Path, help="a file; standard output without it")

    def handle(self, *_args: Any, **options: Any) -> None:
        agent = Agent.objects.filter(slug=options["slug"]).first()
        if agent is None:
            known = ", ".join(Agent.objects.values_list("slug", flat=True)) or "none"
            raise CommandError(f"No agent {options['slug']!r}; there are: {known}.")
        text = to_text(content_of(agent), options["format"])
        if options["output"] is None:
            self.stdout.write(text, ending="")
        else:
            options["output"].write_text(text, encoding="utf-8")
