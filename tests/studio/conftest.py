"""For tests of the studio: Django with a database file of the process's own, so that threads share it."""

import os
from collections.abc import Iterator

import pytest

os.environ["DJANGO_SETTINGS_MODULE"] = "studio.settings"


def pytest_configure() -> None:
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # SQLite's databases in memory lock whole tables as soon as a second thread looks.
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["TEST"] = {"NAME": str(settings.STUDIO_VAR / "test.sqlite3")}
        database["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"


@pytest.fixture(autouse=True)
def _an_empty_queue() -> Iterator[None]:
    """What one test puts into the queue, no other test finds there."""
    yield
    from kombu.transport.memory import Channel

    Channel.queues.clear()
