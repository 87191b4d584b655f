"""Connections to language models, and what came of checking them."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from studio.models.job import Job
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


class ModelCheck(Job):
    """One check of a connection's judging model; `result` is an engine.model.check.Report, in part while it runs."""

    connection = models.ForeignKey(ModelConnection, on_delete=models.CASCADE, related_name="checks")
    model = models.CharField(max_length=120)  # as it was then
    cases = models.PositiveIntegerField(default=0)
    asked = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True, blank=True)

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


class ModelPrice(models.Model):
    """What a model's tokens cost, per million. `model` is its name, or the beginning of it with “*” at the end."""

    model = models.CharField(max_length=120)
    input_price = models.DecimalField(
        max_digits=12, decimal_places=6, validators=[MinValueValidator(0)]
    )
    cached_price = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Of input that the model had in its cache; empty: as other input."),
    )
    output_price = models.DecimalField(
        max_digits=12, decimal_places=6, validators=[MinValueValidator(0)]
    )
    currency = models.CharField(max_length=3, default="USD")
    updated_by = models.CharField(max_length=150, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["model"]
        constraints = [
            models.UniqueConstraint(
                fields=["model"],
                name="model_price_model_unique",
                violation_error_message=_("This model has a price already."),
            )
        ]

    def __str__(self) -> str:
        return self.model
