"""Background work that people watch: waiting, running, over; it tells how far it is and can be stopped."""

from datetime import timedelta
from typing import Any, ClassVar, Self

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class JobState(models.TextChoices):
    QUEUED = "queued", _("Waiting")
    RUNNING = "running", _("Running")
    FINISHED = "finished", _("Finished")
    FAILED = "failed", _("Failed")
    STOPPED = "stopped", _("Stopped")


class JobQuerySet(models.QuerySet[Any]):
    def unfinished(self) -> Self:
        return self.filter(state__in=[JobState.QUEUED, JobState.RUNNING])

    def claim(self, pk: int) -> bool:
        """Take it for running; False where somebody else has, or it is over."""
        now = timezone.now()
        return (
            self.filter(pk=pk, state=JobState.QUEUED).update(
                state=JobState.RUNNING, started_at=now, heartbeat_at=now
            )
            == 1
        )

    def give_up_lost(self) -> int:
        """Mark as failed what lost its worker and what no worker took; how many those were."""
        now = timezone.now()
        lost = self.filter(
            state=JobState.RUNNING, heartbeat_at__lt=now - self.model.LOST_AFTER
        ).update(
            state=JobState.FAILED,
            finished_at=now,
            error=_("The worker that ran it was stopped in the middle. Start it again."),
        )
        untaken = self.filter(
            state=JobState.QUEUED, queued_at__lt=now - self.model.UNTAKEN_AFTER
        ).update(
            state=JobState.FAILED,
            finished_at=now,
            error=_("No worker took it. See whether one is running, and start it again."),
        )
        return lost + untaken


class Job(models.Model):
    """A row of background work. Each transition is a compare-and-set, so that a second worker changes nothing."""

    State: ClassVar[type[JobState]] = JobState

    LOST_AFTER: ClassVar[timedelta] = timedelta(seconds=30)  # its worker is heard of every few
    UNTAKEN_AFTER: ClassVar[timedelta] = timedelta(minutes=5)

    state = models.CharField(max_length=8, choices=JobState.choices, default=JobState.QUEUED)
    stop_requested = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    started_by = models.CharField(max_length=150, blank=True)
    queued_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        abstract = True

    @property
    def is_over(self) -> bool:
        return self.state not in {JobState.QUEUED, JobState.RUNNING}

    @property
    def _row(self) -> JobQuerySet:
        rows: JobQuerySet = type(self).objects.filter(pk=self.pk)
        return rows

    def note(self, **changes: Any) -> bool:
        """Store progress, and that its worker lives; False where it is to run no further."""
        running = self._row.filter(state=JobState.RUNNING, stop_requested=False)
        return running.update(heartbeat_at=timezone.now(), **changes) == 1

    def end(self, state: JobState, **changes: Any) -> bool:
        """Store how it ended; False where that was stored before."""
        running = self._row.filter(state=JobState.RUNNING)
        now = timezone.now()
        return running.update(state=state, finished_at=now, heartbeat_at=None, **changes) == 1

    def request_stop(self) -> bool:
        """End it: at once where it waits, else as soon as its worker reads this; False where it is over."""
        now = timezone.now()
        waiting = self._row.filter(state=JobState.QUEUED)
        if waiting.update(state=JobState.STOPPED, finished_at=now):
            return True
        return self._row.filter(state=JobState.RUNNING).update(stop_requested=True) == 1
