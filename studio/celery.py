"""The Celery application: what web processes enqueue with, and what the workers of `manage.py serve` run."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")

app = Celery("studio")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Otherwise only the importing thread would know it, and ASGI serves from many.
app.set_default()


@worker_ready.connect
def look_after_turns(**_signal: Any) -> None:
    """From the start, not from the first task on: a worker that starts again finds the turns it lost."""
    from studio.operations import environments
    from studio.operations.watching import watch

    watch()
    environments.clean_up()
