"""The words an agent is given: canned responses, and the terms of its business."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from studio.models.agent import Agent, new_uid


class CannedResponse(models.Model):
    """A reply written beforehand; `text` is a Jinja template."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="canned_responses")
    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    text = models.TextField(max_length=4_000)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "uid"],
                name="canned_response_uid_unique_in_agent",
                violation_error_message=_("This agent has a response of this uid already."),
            ),
            models.UniqueConstraint(
                fields=["agent", "text"],
                name="canned_response_text_unique_in_agent",
                violation_error_message=_("This agent has this response already."),
            ),
            models.CheckConstraint(
                condition=~models.Q(text=""),
                name="canned_response_given",
                violation_error_message=_("A canned response needs a text."),
            ),
        ]

    def __str__(self) -> str:
        return self.text


class Term(models.Model):
    """A word of the agent's business, and what it means there."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="terms")
    uid = models.CharField(max_length=32, default=new_uid, editable=False)
    name = models.CharField(max_length=120)
    description = models.TextField(max_length=2_000)
    synonyms = models.JSONField(default=list, blank=True)  # list of str

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "uid"],
                name="term_uid_unique_in_agent",
                violation_error_message=_("This agent has a term of this uid already."),
            ),
            models.UniqueConstraint(
                fields=["agent", "name"],
                name="term_name_unique_in_agent",
                violation_error_message=_("This agent explains this term already."),
            ),
            models.CheckConstraint(
                condition=~models.Q(name="") & ~models.Q(description=""),
                name="term_explained",
                violation_error_message=_("A term needs a name and what it means."),
            ),
        ]

    def __str__(self) -> str:
        return self.name
