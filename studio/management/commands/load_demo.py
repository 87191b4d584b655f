"""`manage.py load_demo`: the demo agent, its tools, its customers, its first sessions and its suite, once."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from studio.demo import data, sessions, suite, uploads
from studio.models import Agent, Customer
from studio.operations.agents import NothingToPublishError, publish
from studio.operations.documents import DocumentError, import_document
from studio.operations.tools import sync_function_tools

SLUG = "harbor-bank"
TOOL_MODULE = "studio.demo.bank"
DOCUMENT = Path(data.__file__).with_name("harbor_bank.yaml")


class Command(BaseCommand):
    help = "Load the demo agent “Harbor Bank” with its customers and first sessions, unless it is there already."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--reset",
            action="store_true",
            help="make the agent's draft, the customers and the accounts what they were on the first day; "
            "versions and sessions stay",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if TOOL_MODULE not in settings.STUDIO_TOOL_MODULES:
            self._say(
                options, f"The demo is not loaded: STUDIO_TOOL_MODULES leaves {TOOL_MODULE} out."
            )
            return
        if Agent.objects.filter(slug=SLUG).exists() and not options["reset"]:
            self._say(options, f"The demo agent {SLUG} is there already; --reset makes it new.")
            return
        version = _load()
        if options["reset"]:
            data.reset()
        agent = Agent.objects.select_related("published").get(slug=SLUG)
        if agent.published is not None and not agent.sessions.exists():
            sessions.record_sessions(agent, agent.published)
            suite.keep_suite(agent)
        self._say(options, f"The demo agent {SLUG} is loaded and published as {version}.")

    def _say(self, options: dict[str, Any], line: str) -> None:
        if options["verbosity"] > 0:
            self.stdout.write(line)


@transaction.atomic
def _load() -> str:
    """Everything in one transaction, so that half a demo is never taken for a whole one; returns the version's name."""
    sync_function_tools()
    uploads.install()
    try:
        import_document(DOCUMENT.read_text(encoding="utf-8"))
    except DocumentError as error:
        raise CommandError(f"{DOCUMENT.name} cannot be imported:\n{error}") from error
    for uid, customer in data.seed()["customers"].items():
        Customer.objects.update_or_create(
            uid=uid, defaults={"name": customer["name"], "variables": customer["variables"]}
        )
    agent = Agent.objects.get(slug=SLUG)
    try:
        version = publish(agent, note="The demo as it comes with the studio.", by=None)
    except NothingToPublishError:
        return str(agent.published.label) if agent.published else ""
    return str(version.label)
