"""The tool shed: every tool as a row."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from studio.models.agent import new_uid


class ToolQuerySet(models.QuerySet["Tool"]):
    def available(self) -> "ToolQuerySet":
        return self.filter(enabled=True, missing_since__isnull=True)


class Tool(models.Model):
    """What agents choose from. Today every tool is a Python function; the code is found through `name`."""

    class Latency(models.TextChoices):
        FAST = "fast", _("Fast: under 5 s")
        MEDIUM = "medium", _("Medium: under 15 s")
        SLOW = "slow", _("Slow: under 60 s")

    class Confirm(models.TextChoices):
        ALWAYS = "always", _("Always")
        INFERRED = "inferred", _("Only where an argument is a conclusion of the model")

    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    name = models.CharField(max_length=64)
    description = models.TextField(blank=True, max_length=10_000)
    parameters = models.JSONField(default=list)  # engine.spec.ToolParameter as JSON, in order
    consequential = models.BooleanField(
        default=False, help_text=_("It changes something: money, orders, data.")
    )
    confirm = models.CharField(
        max_length=8,
        choices=Confirm.choices,
        default=Confirm.ALWAYS,
        help_text=_("When the customer is asked before it runs, if it changes something."),
    )
    latency = models.CharField(max_length=8, choices=Latency.choices, default=Latency.FAST)
    timeout = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.1), MaxValueValidator(3600)],
        help_text=_("Seconds after which a call is stopped; empty takes the tier's."),
    )
    enabled = models.BooleanField(default=True)
    origin = models.CharField(max_length=200, blank=True)  # module of the function
    # What the code itself says: a value of the row that differs from it was written by people, and is theirs to keep.
    declared = models.JSONField(default=dict, blank=True, editable=False)
    missing_since = models.DateTimeField(null=True, blank=True)  # its code is no longer found
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ToolQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="tool_name_unique",
                violation_error_message=_("Another tool has this name already."),
            ),
            models.UniqueConstraint(fields=["uid"], name="tool_uid_unique"),
            models.CheckConstraint(
                condition=models.Q(timeout__isnull=True) | models.Q(timeout__gt=0),
                name="tool_timeout_positive",
                violation_error_message=_("A time limit is more than 0 seconds."),
            ),
        ]

    def __str__(self) -> str:
        return self.name
