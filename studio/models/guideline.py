"""Guidelines with their examples and tools, as rows of a draft."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from studio.models.agent import Agent, new_uid

if TYPE_CHECKING:
    from studio.models.tool import Tool
    from studio.models.wording import CannedResponse


class GuidelineQuerySet(models.QuerySet["Guideline"]):
    def enabled(self) -> "GuidelineQuerySet":
        return self.filter(enabled=True)

    def with_parts(self) -> "GuidelineQuerySet":
        """Everything that `bridge.compile_agent` reads, in a constant number of queries."""
        return self.prefetch_related("tools", "reevaluate_after", "examples", "canned_responses")


class Guideline(models.Model):
    """`condition` → `action`, in plain language."""

    class Criticality(models.TextChoices):
        LOW = "low", _("Low: advice")
        MEDIUM = "medium", _("Medium: the rule")
        HIGH = "high", _("High: must hold")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="guidelines")
    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    condition = models.TextField(blank=True, max_length=10_000)
    action = models.TextField(blank=True, max_length=10_000)
    criticality = models.CharField(
        max_length=8, choices=Criticality.choices, default=Criticality.MEDIUM
    )
    priority = models.SmallIntegerField(
        default=0,
        validators=[MinValueValidator(-100), MaxValueValidator(100)],
        help_text=_("Higher comes first in the reply. −100 to 100."),
    )
    enabled = models.BooleanField(default=True)
    tags = models.JSONField(default=list, blank=True)  # list of str
    position = models.PositiveIntegerField(default=0)
    tools: "models.ManyToManyField[Tool, Tool]" = models.ManyToManyField(
        "Tool", related_name="guidelines", blank=True
    )
    reevaluate_after: "models.ManyToManyField[Tool, Tool]" = models.ManyToManyField(
        "Tool", related_name="reevaluated_guidelines", blank=True
    )
    composition = models.CharField(
        max_length=12,
        choices=Agent.Composition.choices,
        blank=True,
        help_text=_("How a reply under this guideline is written; empty takes the agent's way."),
    )
    canned_responses: "models.ManyToManyField[CannedResponse, CannedResponse]" = (
        models.ManyToManyField("CannedResponse", related_name="guidelines", blank=True)
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = GuidelineQuerySet.as_manager()

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "uid"],
                name="guideline_uid_unique_in_agent",
                violation_error_message=_("This agent has a guideline of this uid already."),
            ),
            models.CheckConstraint(
                condition=~models.Q(condition="", action=""),
                name="guideline_says_something",
                violation_error_message=_("Write when it applies, what to do, or both."),
            ),
            models.CheckConstraint(
                condition=models.Q(priority__gte=-100, priority__lte=100),
                name="guideline_priority_range",
                violation_error_message=_("Priority is a whole number from −100 to 100."),
            ),
        ]

    def __str__(self) -> str:
        return self.condition or self.action

    @property
    def action_of_tools(self) -> str:
        """What is done where no action is written: what its tools are for (see engine.spec.Agent.action_of)."""
        return said_by_tools(self.tools.all())


def said_by_tools(tools: "Iterable[Tool]") -> str:
    return " ".join(tool.description.partition("\n")[0] for tool in tools).strip()


class GuidelineExample(models.Model):
    """A customer message that the guideline should, or should not, match."""

    guideline = models.ForeignKey(Guideline, on_delete=models.CASCADE, related_name="examples")
    text = models.TextField(max_length=2_000)
    matches = models.BooleanField(default=True)

    class Meta:
        ordering = ["-matches", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["guideline", "text"],
                name="guideline_example_unique",
                violation_error_message=_("This message is an example of the guideline already."),
            ),
            models.CheckConstraint(
                condition=~models.Q(text=""),
                name="guideline_example_given",
                violation_error_message=_("An example needs a message."),
            ),
        ]

    def __str__(self) -> str:
        return self.text
