"""Connections to language models, and what came of checking them."""

from datetime import datetime, timedelta
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from studio.secrets import EncryptedTextField


class ModelConnection(models.Model):
    """An OpenAI-compatible endpoint. Matching and composing may use different models of it."""

    class JudgingStyle(models.TextChoices):
        REASONED = "reasoned", _("Reasoned: the reason first, then the verdict")
        SCORED = "scored", _("Scored: a bare verdict with its probability, the reason afterwards")

    name = models.CharField(max_length=80)
    base_url = models.URLField(
        max_length=300, blank=True, help_text=_("Empty means the address of OpenAI itself.")
    )
    api_key = EncryptedTextField(blank=True)
    api_key_set_by = models.CharField(max_length=150, blank=True)
    api_key_set_at = models.DateTimeField(null=True, blank=True)
    model = models.CharField(max_length=120, help_text=_("Judges guidelines and reads arguments."))
    writing_model = models.CharField(
        max_length=120, blank=True, help_text=_("Writes replies; empty means the same model.")
    )
    batch_size = models.PositiveSmallIntegerField(
        default=12,
        validators=[MinValueValidator(1), MaxValueValidator(200)],
        help_text=_(
            "Guidelines judged in one question: 1 for small models, a dozen for large ones."
        ),
    )
    judging_style = models.CharField(
        max_length=8,
        choices=JudgingStyle.choices,
        default=JudgingStyle.REASONED,
        help_text=_("How guidelines are judged. “Check the model” proposes what suits it."),
    )
    timeout = models.FloatField(
        default=60.0,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_("Seconds to wait for one answer."),
    )
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="model_connection_name_unique",
                violation_error_message=_("Another connection has this name already."),
            ),
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True),
                name="model_connection_one_default",
                violation_error_message=_("Another connection is the default already."),
            ),
            models.CheckConstraint(
                condition=models.Q(batch_size__gte=1, batch_size__lte=200),
                name="model_connection_batch_size_range",
                violation_error_message=_("A batch holds 1 to 200 guidelines."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ModelCheckQuerySet(models.QuerySet["ModelCheck"]):
    def unfinished(self) -> "ModelCheckQuerySet":
        return self.filter(state__in=[ModelCheck.State.QUEUED, ModelCheck.State.RUNNING])

    def claim(self, pk: int) -> bool:
        """Take it for running; False where somebody else has, or it is over."""
        now = timezone.now()
        return (
            self.filter(pk=pk, state=ModelCheck.State.QUEUED).update(
                state=ModelCheck.State.RUNNING, started_at=now, heartbeat_at=now
            )
            == 1
        )

    def give_up_lost(self) -> int:
        """Mark as failed what lost its worker and what no worker took; how many those were."""
        now = timezone.now()
        lost = self.filter(
            state=ModelCheck.State.RUNNING, heartbeat_at__lt=now - ModelCheck.LOST_AFTER
        ).update(
            state=ModelCheck.State.FAILED,
            finished_at=now,
            error=_("The worker that ran it was stopped in the middle. Check again."),
        )
        untaken = self.filter(
            state=ModelCheck.State.QUEUED, created_at__lt=now - ModelCheck.UNTAKEN_AFTER
        ).update(
            state=ModelCheck.State.FAILED,
            finished_at=now,
            error=_("No worker took it. See whether one is running, and check again."),
        )
        return lost + untaken


class ModelCheck(models.Model):
    """One check of a connection's judging model; `result` is an engine.model.check.Report, in part while it runs."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        FINISHED = "finished", _("Finished")
        FAILED = "failed", _("Failed")
        STOPPED = "stopped", _("Stopped")

    LOST_AFTER = timedelta(seconds=30)  # its worker is heard of at least every two
    UNTAKEN_AFTER = timedelta(minutes=5)

    connection = models.ForeignKey(ModelConnection, on_delete=models.CASCADE, related_name="checks")
    model = models.CharField(max_length=120)  # as it was then
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    cases = models.PositiveIntegerField(default=0)
    asked = models.PositiveIntegerField(default=0)
    stop_requested = models.BooleanField(default=False)
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    started_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ModelCheckQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["connection"],
                condition=models.Q(state__in=["queued", "running"]),
                name="model_check_one_at_a_time",
                violation_error_message=_("This connection is being checked already."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.model}, {self.get_state_display()}"

    @property
    def is_over(self) -> bool:
        return self.state not in {self.State.QUEUED, self.State.RUNNING}

    def note(self, **changes: Any) -> bool:
        """Store progress, and that its worker lives; False where it is to run no further."""
        running = ModelCheck.objects.filter(pk=self.pk, state=self.State.RUNNING)
        noted = running.filter(stop_requested=False)
        return noted.update(heartbeat_at=timezone.now(), **changes) == 1

    def end(self, state: State, **changes: Any) -> bool:
        """Store how it ended; False where that was stored before."""
        running = ModelCheck.objects.filter(pk=self.pk, state=self.State.RUNNING)
        now = timezone.now()
        return running.update(state=state, finished_at=now, heartbeat_at=None, **changes) == 1

    def request_stop(self) -> bool:
        """End it: at once where it waits, else after the question that it asks; False where it is over."""
        own = ModelCheck.objects.filter(pk=self.pk)
        now: datetime = timezone.now()
        if own.filter(state=self.State.QUEUED).update(state=self.State.STOPPED, finished_at=now):
            return True
        return own.filter(state=self.State.RUNNING).update(stop_requested=True) == 1
