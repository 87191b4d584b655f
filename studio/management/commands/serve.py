"""`manage.py serve`: the web and a worker, until Ctrl-C."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor


def port_number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


class Command(BaseCommand):
    help = "Serve the studio: the web and a worker beside it, until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
        parser.add_argument(
            "--port", type=port_number, default=8000, help="0 takes any that is free"
        )
        alone = parser.add_mutually_exclusive_group()
        alone.add_argument("--no-web", action="store_true", help="only a worker")
        alone.add_argument("--no-worker", action="store_true", help="only the web")

    def handle(self, *_args: Any, **options: Any) -> None:
        self._require_migrated_database()
        arguments = ["--host", options["host"], "--port", str(options["port"])]
        arguments += ["--no-web"] * options["no_web"] + ["--no-worker"] * options["no_worker"]
        path = os.pathsep.join([str(settings.BASE_DIR), os.environ.get("PYTHONPATH", "")])
        # This process becomes the supervisor, and gives back the memory that Django took.
        os.execve(  # noqa: S606
            sys.executable,
            [sys.executable, "-m", "studio.supervisor", *arguments],
            os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)},
        )

    def _require_migrated_database(self) -> None:
        try:
            executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
        except OperationalError as error:
            raise CommandError(f"The database cannot be reached: {error}") from error
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise CommandError("The database is not up to date; run `manage.py migrate` first.")
