"""Background work of many parts: a batch and its cells, which the worker's threads share out among themselves."""

from datetime import datetime, timedelta
from typing import Any, Self

from django.db import connection, models, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from studio.models.job import Job


class Batch(Job):
    """Started, it goes through its cells; paused, it keeps what is done and takes up no more.

    `cap` is what may be spent, in tokens of prompts and answers; 0 for no cap.
    """

    paused = models.BooleanField(default=False)
    total = models.PositiveIntegerField(default=0)  # cells
    cap = models.PositiveBigIntegerField(
        default=0, help_text=_("Tokens that may be used; 0 for no cap.")
    )
    capped = models.BooleanField(default=False)  # it ended because the cap was reached

    class Meta:
        abstract = True


class CellQuerySet(models.QuerySet[Any]):
    def waiting(self) -> Self:
        return self.filter(state=Cell.State.WAITING)

    def over(self) -> Self:
        return self.filter(state=Cell.State.DONE)

    def abandoned(self, before: datetime) -> Self:
        """Taken by a worker that was not heard of since."""
        return self.filter(state=Cell.State.RUNNING, heartbeat_at__lt=before)

    def claim(self, keys: list[int]) -> list[int]:
        """Take these, those that nobody else has taken; the keys of those that were taken here."""
        with transaction.atomic():
            free = self.filter(pk__in=keys, state=Cell.State.WAITING)
            # Where rows are locked one by one; SQLite lets in one writer at a time anyway.
            if connection.features.has_select_for_update_skip_locked:
                free = free.select_for_update(skip_locked=True)
            taken = list(free.values_list("pk", flat=True))
            self.filter(pk__in=taken).update(
                state=Cell.State.RUNNING, heartbeat_at=timezone.now(), claims=F("claims") + 1
            )
        return taken


class Cell(models.Model):
    """One part: WAITING → RUNNING → DONE. `claims` counts takers: one taken for dead writes nothing."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")

    LOST_AFTER = timedelta(seconds=10)

    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    claims = models.PositiveIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(default=0)

    objects = CellQuerySet.as_manager()

    class Meta:
        abstract = True
