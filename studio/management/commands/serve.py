"""`manage.py serve`: the web and a worker, until Ctrl-C."""

import os
import socket
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from studio.checks import CONFIGURATION
from studio.supervisor import listen


def port_number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


class Command(BaseCommand):
    help = "Serve the studio: the web and a worker beside it, until Ctrl-C."
    # The others would import every view here, and web and worker run them anyway.
    requires_system_checks = [CONFIGURATION]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
        parser.add_argument(
            "--port", type=port_number, default=8000, help="0 takes any that is free"
        )
        parser.add_argument(
            "--bootstrap", action="store_true", help="run `manage.py bootstrap` before"
        )
        alone = parser.add_mutually_exclusive_group()
        alone.add_argument("--no-web", action="store_true", help="only a worker")
        alone.add_argument("--no-worker", action="store_true", help="only the web")

    def handle(self, *_args: Any, **options: Any) -> None:
        listener = None if options["no_web"] else _listen(options["host"], options["port"])
        if options["bootstrap"]:
            call_command("bootstrap", stdout=self.stdout)
        else:
            _require_migrated_database()
            call_command("sync_tools", stdout=self.stdout)
        self.stdout.flush()
        _become_supervisor(listener, worker=not options["no_worker"])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise CommandError(
            f"Port {port} of {host} cannot be used ({error.strerror}); "
            f"choose another one: `make run PORT={port + 1}`, or `manage.py serve --port {port + 1}`."
        ) from error


def _require_migrated_database() -> None:
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    except OperationalError as error:
        raise CommandError(f"The database cannot be reached: {error}") from error
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("The database is not up to date; run `manage.py bootstrap` first.")


def _become_supervisor(listener: socket.socket | None, *, worker: bool) -> None:
    """This process goes on as the small supervisor, and gives back the memory that Django took."""
    arguments = ["--worker"] * worker
    if listener is not None:
        listener.set_inheritable(True)
        arguments += ["--listener", str(listener.fileno())]
    path = os.pathsep.join([str(settings.BASE_DIR), os.environ.get("PYTHONPATH", "")])
    os.execve(  # noqa: S606
        sys.executable,
        [sys.executable, "-m", "studio.supervisor", *arguments],
        os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)},
    )
