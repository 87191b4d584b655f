"""Agents and their immutable versions."""

import secrets
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from studio.models.tool import Tool


def new_uid() -> str:
    """A short random name that stays the same in every version: 8 hexadecimal characters."""
    return secrets.token_hex(4)


class Agent(models.Model):
    """The draft of an agent: what authors edit. A turn runs on one of its versions, never on the rows."""

    class Composition(models.TextChoices):
        FLUID = "fluid", _("Fluid: the model writes")
        COMPOSITED = (
            "composited",
            _("Composited: the model writes in the style of canned responses"),
        )
        STRICT = "strict", _("Strict: only canned responses")

    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=120)
    description = models.TextField(
        blank=True, max_length=10_000, help_text=_("Who the agent is and how it speaks.")
    )
    tone = models.TextField(
        blank=True,
        max_length=2_000,
        help_text=_("How the agent speaks: “brief, warm, no jargon”."),
    )
    composition = models.CharField(
        max_length=12, choices=Composition.choices, default=Composition.FLUID
    )
    max_iterations = models.PositiveSmallIntegerField(
        default=3,
        validators=[MinValueValidator(1), MaxValueValidator(10)],
        help_text=_("How often a turn may match guidelines and run tools before it answers."),
    )
    no_match = models.TextField(
        blank=True,
        max_length=2_000,
        help_text=_("What the agent says where only canned responses may be used and none fits."),
    )
    verified_replies = models.BooleanField(
        default=False,
        help_text=_(
            "Check each reply against the guidelines of high criticality, and revise it where it does not follow them."
        ),
    )
    tools: "models.ManyToManyField[Tool, Tool]" = models.ManyToManyField(
        "Tool", related_name="agents", blank=True
    )
    # Counts the changes of the draft, so that a snapshot taken while somebody saved is not kept as the newest.
    revision = models.PositiveIntegerField(default=1)
    # The stored snapshot of the rows as they are now; empty when they changed since (see operations.agents).
    snapshot = models.ForeignKey(
        "AgentVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    published = models.ForeignKey(
        "AgentVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug"],
                name="agent_slug_unique",
                violation_error_message=_("Another agent has this address already."),
            ),
            models.CheckConstraint(
                condition=models.Q(max_iterations__gte=1, max_iterations__lte=10),
                name="agent_max_iterations_range",
                violation_error_message=_("An agent may take 1 to 10 iterations a turn."),
            ),
            models.CheckConstraint(
                condition=~models.Q(name=""),
                name="agent_name_given",
                violation_error_message=_("An agent needs a name."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AgentVersionQuerySet(models.QuerySet["AgentVersion"]):
    def published(self) -> "AgentVersionQuerySet":
        return self.filter(number__isnull=False)

    def without_spec(self) -> "AgentVersionQuerySet":
        """For who needs only its name, or gets the compiled agent from memory: a spec can be large."""
        return self.defer("spec")


class AgentVersion(models.Model):
    """An immutable compiled agent. Published ones carry a number; the others are snapshots of a draft that was run."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    fingerprint = models.CharField(max_length=64)
    spec = models.JSONField()  # engine.spec.Agent.to_json
    number = models.PositiveIntegerField(null=True, blank=True)
    note = models.TextField(blank=True, max_length=2_000)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="published_versions",
    )
    published_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AgentVersionQuerySet.as_manager()

    class Meta:
        ordering = ["-number", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "fingerprint"],
                condition=models.Q(number__isnull=True),
                name="agent_version_one_snapshot_per_fingerprint",
                violation_error_message=_("This draft is stored already."),
            ),
            models.UniqueConstraint(
                fields=["agent", "number"],
                condition=models.Q(number__isnull=False),
                name="agent_version_number_unique",
                violation_error_message=_("This version number is taken; publish again."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent.name}, {self.label}"

    @property
    def label(self) -> Any:
        """What people call it."""
        if self.number is None:
            return _("draft %(fingerprint)s") % {"fingerprint": self.fingerprint[:8]}
        return _("version %(number)d") % {"number": self.number}
