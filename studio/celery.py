"""The Celery application: `celery -A studio.celery worker` is what `manage.py serve` starts beside the web."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")

app = Celery("studio")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Otherwise only the importing thread would know it, and ASGI serves from many.
app.set_default()
