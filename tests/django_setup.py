"""Django for tests: quick passwords, and a database file of the process's own, which threads can share."""

import os


def choose_settings() -> None:
    """To be called while pytest loads, before pytest-django looks."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "studio.settings"


def adapt_settings() -> None:
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        # SQLite's databases in memory lock whole tables as soon as a second thread looks.
        database.setdefault("TEST", {})["NAME"] = str(settings.STUDIO_VAR / "test.sqlite3")
        database["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"
