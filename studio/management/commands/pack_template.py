"""`manage.py pack_template DIR`: a tool template as the ZIP that is uploaded, the same bytes for the same files."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from engine.tools.package import PackageError, read_directory, write_archive


class Command(BaseCommand):
    help = (
        "Pack a tool template's directory as a ZIP beside it; environments and caches are left out."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", metavar="DIR")
        parser.add_argument("--output", metavar="ZIP", help="where to write it")

    def handle(self, *_args: Any, **options: Any) -> None:
        directory = Path(options["directory"])
        target = Path(options["output"] or directory.resolve().with_suffix(".zip"))
        try:
            package = read_directory(directory)
            target.write_bytes(write_archive(package.files))
        except PackageError as error:
            raise CommandError("\n".join(issue.message for issue in error.issues)) from error
        except OSError as error:
            raise CommandError(
                f"{str(target)!r} cannot be written ({error.strerror}); choose another with --output."
            ) from error
        self.stdout.write(f"{target}: {len(package.files)} files")
