"""`manage.py create_token USERNAME`: a bearer token for the API."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from studio.models import ApiToken


class Command(BaseCommand):
    help = "Make an API token for a user and print it; it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="what the token is for")

    def handle(self, *_args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['username']!r}.")
        if not user.is_active:
            raise CommandError(f"The user {options['username']!r} is not active.")
        if len(options["name"]) > 80:
            raise CommandError("The name of a token has at most 80 characters.")
        _row, token = ApiToken.make(user.pk, options["name"])
        self.stdout.write(token)
