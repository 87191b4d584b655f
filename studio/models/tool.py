"""The tool shed: every tool as a row."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from studio.models.agent import new_uid
from studio.models.job import Job


class ToolQuerySet(models.QuerySet["Tool"]):
    def available(self) -> "ToolQuerySet":
        """Switched on, with its code there.

        The environment of an uploaded one may still be in the making, or gone: that changes no agent, and a call then
        fails with the reason.
        """
        return self.filter(enabled=True, missing_since__isnull=True)

    def with_instances(self) -> "ToolQuerySet":
        """With what lists say of uploaded ones, and without what is long or nobody's to read."""
        return self.select_related(
            "instance__template", "instance__version", "instance__environment"
        ).defer(
            "instance__encrypted_config",
            "instance__version__archive",
            "instance__version__report",
            "instance__environment__log",
            "instance__environment__requirements",
        )

    def functions(self) -> "ToolQuerySet":
        return self.filter(kind=Tool.Kind.FUNCTION)


class Tool(models.Model):
    """What agents choose from: a Python function, whose code is found through `name`, or a ToolInstance."""

    class Kind(models.TextChoices):
        FUNCTION = "function", _("Python function")
        TEMPLATE = "template", _("Tool template")

    class Latency(models.TextChoices):
        FAST = "fast", _("Fast: under 5 s")
        MEDIUM = "medium", _("Medium: under 15 s")
        SLOW = "slow", _("Slow: under 60 s")

    class Confirm(models.TextChoices):
        ALWAYS = "always", _("Always")
        INFERRED = "inferred", _("Only where an argument is a conclusion of the model")

    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.FUNCTION)
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


class ToolRun(Job):
    """One run of a tool by hand, outside of any session, to see what it does."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="runs")
    arguments = models.JSONField(default=dict)
    customer = models.ForeignKey(
        "studio.Customer", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    log = models.TextField(blank=True)  # what it printed and said so far, secrets masked
    result = models.JSONField(null=True, blank=True)  # engine.tools.base.ToolResult as JSON
    failure = models.JSONField(null=True, blank=True)  # engine.errors.ToolError as JSON
    duration_ms = models.PositiveIntegerField(null=True, blank=True)  # of the call alone

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.tool_id} {self.get_state_display()}"


class ToolExample(models.Model):
    """Arguments kept under a name, to run the tool with again."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="run_examples")
    name = models.CharField(max_length=80)
    arguments = models.JSONField(default=dict)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tool", "name"],
                name="tool_example_name_unique",
                violation_error_message=_("Another example of this tool has this name already."),
            )
        ]

    def __str__(self) -> str:
        return self.name
