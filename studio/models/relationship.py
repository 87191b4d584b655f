"""How the parts of an agent bear on one another: guidelines on guidelines, tools on tools."""

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from studio.models.agent import Agent, new_uid
from studio.models.guideline import Guideline

if TYPE_CHECKING:
    from studio.models.tool import Tool


class Relationship(models.Model):
    """One guideline (`source`) bears on others (`targets`); see engine.spec.RelationKind."""

    class Kind(models.TextChoices):
        DEPENDS_ON_ALL = "depends_on_all", _("applies only together with all of")
        DEPENDS_ON_ANY = "depends_on_any", _("applies only together with one of")
        HAS_PRIORITY_OVER = "has_priority_over", _("has priority over")
        ENTAILS = "entails", _("brings along")
        DISAMBIGUATES = "disambiguates", _("asks which is meant of")
        ALTERNATIVE_TO = "alternative_to", _("is an alternative to (the highest priority wins)")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="relationships")
    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    source = models.ForeignKey(Guideline, on_delete=models.CASCADE, related_name="relationships")
    targets: "models.ManyToManyField[Guideline, Guideline]" = models.ManyToManyField(
        Guideline, related_name="targeted_by"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "uid"],
                name="relationship_uid_unique_in_agent",
                violation_error_message=_("This agent has a relationship of this uid already."),
            ),
            models.UniqueConstraint(
                fields=["source", "kind"],
                name="relationship_one_of_a_kind_per_source",
                violation_error_message=_(
                    "This guideline has such a relationship already: add to its targets."
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.get_kind_display()}"


class ToolOverlap(models.Model):
    """Tools of an agent that can do one another's work: they are judged together, and the better one wins."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="overlaps")
    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    tools: "models.ManyToManyField[Tool, Tool]" = models.ManyToManyField(
        "Tool", related_name="overlaps"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "uid"],
                name="tool_overlap_uid_unique_in_agent",
                violation_error_message=_("This agent has a group of this uid already."),
            )
        ]

    def __str__(self) -> str:
        return ", ".join(tool.name for tool in self.tools.all())
