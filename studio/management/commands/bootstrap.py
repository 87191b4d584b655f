"""`manage.py bootstrap`: from an empty database to a studio that somebody can sign in to. Safe to run again."""

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import transaction

from studio.checks import CONFIGURATION

ADMIN = "admin"
# Without letters that are read as others, because people copy it by hand: 31 of them, 16 times, make 79 bits.
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


class Command(BaseCommand):
    help = "Bring the database up to date, load the demo agent once, and make the first person who may sign in."
    requires_system_checks = [CONFIGURATION]

    def handle(self, *_args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("load_demo", verbosity=options["verbosity"], stdout=self.stdout)
        call_command("sync_tools", verbosity=options["verbosity"], stdout=self.stdout)
        password = self._first_person()
        if password:
            self.stdout.write(
                f"First sign-in: user {ADMIN}, password {password} (shown only now; "
                f"`manage.py changepassword {ADMIN}` sets another)"
            )

    @transaction.atomic
    def _first_person(self) -> str:
        """The new person's password; empty where there is somebody already."""
        if User.objects.exists():
            return ""
        password = "-".join("".join(secrets.choice(ALPHABET) for _ in range(4)) for _ in range(4))
        User.objects.create_superuser(ADMIN, password=password)
        return password
