"""The forms of an agent itself, for its pages and for the API."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy, slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from engine.spec import NO_MATCH
from studio.forms.base import RowForm
from studio.forms.fields import ProseField
from studio.models import Agent
from studio.operations.agents import save_agent

# Addresses beside those of the agents.
RESERVED_SLUGS = frozenset({"import", "new"})


def agent_json(agent: Agent) -> JsonObject:
    """What `AgentForm.from_json` reads, of a stored agent or of a new one's usual values."""
    return {name: getattr(agent, name) for name in AgentForm.Meta.fields}


class AgentForm(RowForm[Agent]):
    """A new agent, or a changed one. Without a slug a new one takes that of its name.

    A program builds the form by `from_json` and reads its errors by `json_errors`.
    """

    slug = forms.SlugField(
        label=gettext_lazy("Address"),
        required=False,
        max_length=60,
        help_text=gettext_lazy("Part of the agent's address; empty takes it from the name."),
    )
    description = ProseField(
        label=gettext_lazy("Description"),
        limit=10_000,
        remedy=gettext_lazy("Shorten it, or make guidelines of it."),
        help_text=gettext_lazy("Who the agent is, and for whom it speaks."),
    )
    tone = ProseField(
        label=gettext_lazy("Tone"),
        limit=2_000,
        remedy=gettext_lazy("Shorten it to what one hears."),
        help_text=gettext_lazy(
            "How it speaks: “brief, warm, no jargon”. Every reply is written so."
        ),
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
    )
    no_match = ProseField(
        label=gettext_lazy("When no canned response fits"),
        limit=2_000,
        remedy=gettext_lazy("Shorten it to a sentence or two."),
        help_text=format_lazy(
            gettext_lazy(
                "Said where only canned responses may be used and none fits. Empty says: “{words}”"
            ),
            words=NO_MATCH,
        ),
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
    )

    class Meta:
        model = Agent
        fields = [
            "name",
            "slug",
            "description",
            "tone",
            "composition",
            "no_match",
            "verified_replies",
            "max_iterations",
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "composition": gettext_lazy("How replies are written"),
            "verified_replies": gettext_lazy("Verify replies"),
            "max_iterations": gettext_lazy("Iterations a turn"),
        }
        help_texts = {
            "composition": gettext_lazy(
                "A guideline may be stricter than its agent: of all that apply, the strictest way counts."
            ),
            "verified_replies": gettext_lazy(
                "Each reply is checked against the guidelines that must hold, and written anew, at most twice, "
                "where it does not follow them. The customer reads only what was checked; it takes longer."
            ),
        }
        error_messages = {
            "composition": {
                "invalid_choice": gettext_lazy(
                    "“%(value)s” is no way to write; choose fluid, composited or strict."
                )
            }
        }

    @classmethod
    def from_json(cls, payload: Mapping[str, Any], instance: Agent | None = None) -> "AgentForm":
        """The form for a JSON object with any of the fields of `agent_json`; what it leaves out stays as it is."""
        stored = instance if instance is not None else Agent()
        return cls({**agent_json(stored), **payload}, instance=stored)

    def json_errors(self) -> list[tuple[str, str]]:
        """(field, message); the field is empty for what concerns several."""
        return [
            ("" if field == "__all__" else field, str(message))
            for field, messages in self.errors.items()
            for message in messages
        ]

    def clean_slug(self) -> str:
        name: str = self.cleaned_data.get("name", "")
        slug: str = self.cleaned_data["slug"] or self.instance.slug or slugify(name)[:60]
        if slug in RESERVED_SLUGS:
            raise ValidationError(
                _("“%(slug)s” is an address of the studio itself; choose another."),
                params={"slug": slug},
            )
        if name and not slug:
            raise ValidationError(_("Give it an address of letters a–z, digits and hyphens."))
        return slug

    def save(self, commit: bool = True) -> Agent:  # noqa: ARG002 - there is one way to save
        if self.errors:
            raise ValueError("An agent with errors cannot be saved; see `errors`.")
        return save_agent(self.instance)


class PublishForm(forms.Form):
    """What the next version is about."""

    note = forms.CharField(
        label=gettext_lazy("Note"),
        required=False,
        max_length=2_000,
        widget=forms.Textarea({"rows": 2}),
        help_text=gettext_lazy("What is new in it, for those who look later."),
    )


class DeleteAgentForm(forms.Form):
    """Deleting takes the agent's name, so that nobody deletes by one wrong click."""

    name = forms.CharField(
        label=gettext_lazy("Name of the agent"), widget=forms.TextInput({"autocomplete": "off"})
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, agent: Agent) -> None:
        super().__init__(data)
        self.agent = agent

    def clean_name(self) -> str:
        given: str = self.cleaned_data["name"]
        if given != self.agent.name:
            raise ValidationError(
                _("Write “%(name)s” to delete it."), params={"name": self.agent.name}
            )
        return given
