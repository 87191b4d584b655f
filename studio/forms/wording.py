"""The forms of a canned response and of a term, for their pages and for the API."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from studio.forms.base import RowForm
from studio.forms.fields import ListField, ProseField
from studio.models import Agent, CannedResponse, Term
from studio.operations.wording import (
    save_response,
    save_term,
    tidy_synonyms,
    why_no_synonyms,
    why_no_template,
)


def response_json(response: CannedResponse) -> JsonObject:
    """What `ResponseForm.from_json` reads."""
    return {"text": response.text}


class ResponseForm(RowForm[CannedResponse]):
    """A new canned response of `agent`, or a changed one."""

    text = ProseField(
        label=gettext_lazy("Text"),
        required=True,
        limit=4_000,
        remedy=gettext_lazy("Shorten it, or make two responses of it."),
        error_messages={
            "required": gettext_lazy("Write what the agent says; {{ field }} fills in a value.")
        },
        widget=forms.Textarea({"dir": "auto", "rows": 5, "spellcheck": "true"}),
    )

    class Meta:
        model = CannedResponse
        fields = ["text"]

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        agent: Agent,
        instance: CannedResponse | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        stored = instance if instance is not None else CannedResponse(agent=agent)
        super().__init__(data, instance=stored, initial=dict(initial or {}), label_suffix="")
        self.agent = agent

    @classmethod
    def from_json(
        cls, agent: Agent, payload: Mapping[str, Any], instance: CannedResponse | None = None
    ) -> "ResponseForm":
        now = response_json(instance) if instance is not None else {}
        return cls({**now, **payload}, agent=agent, instance=instance)

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if why := why_no_template(text):
            raise ValidationError(why, code="template")
        return text

    def save(self, commit: bool = True) -> CannedResponse:  # noqa: ARG002 - there is one way to save
        if self.errors:
            raise ValueError("A response with errors cannot be saved; see `errors`.")
        return save_response(self.instance)


class SynonymsField(ListField):
    """Other names, between commas in a page."""

    widget = forms.TextInput

    def split(self, text: str) -> list[str]:
        return text.replace("\n", ",").split(",")

    def join(self, items: Any) -> str:
        return ", ".join(items)

    def check(self, items: list[str]) -> None:
        if why := why_no_synonyms(items):
            raise ValidationError(why, code="synonyms")


def term_json(term: Term) -> JsonObject:
    """What `TermForm.from_json` reads."""
    return {"name": term.name, "description": term.description, "synonyms": list(term.synonyms)}


class TermForm(RowForm[Term]):
    """A new term of `agent`, or a changed one."""

    name = forms.CharField(
        label=gettext_lazy("Term"),
        max_length=120,
        widget=forms.TextInput({"dir": "auto", "autocomplete": "off"}),
    )
    description = ProseField(
        label=gettext_lazy("What it means here"),
        required=True,
        limit=2_000,
        remedy=gettext_lazy("Shorten it to what the agent has to know."),
        widget=forms.Textarea({"dir": "auto", "rows": 3}),
    )
    synonyms = SynonymsField(
        label=gettext_lazy("Other names"),
        help_text=gettext_lazy(
            "What customers call it, between commas: a message with one of these is read as the term."
        ),
        widget=forms.TextInput({"dir": "auto", "autocomplete": "off"}),
    )

    class Meta:
        model = Term
        fields = ["name", "description", "synonyms"]

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        agent: Agent,
        instance: Term | None = None,
    ) -> None:
        stored = instance if instance is not None else Term(agent=agent)
        super().__init__(data, instance=stored, label_suffix="")
        self.agent = agent

    @classmethod
    def from_json(
        cls, agent: Agent, payload: Mapping[str, Any], instance: Term | None = None
    ) -> "TermForm":
        now = term_json(instance) if instance is not None else {}
        return cls({**now, **payload}, agent=agent, instance=instance)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        others = self.agent.terms.exclude(pk=self.instance.pk).values_list("name", flat=True)
        if name.casefold() in {other.casefold() for other in others}:
            raise ValidationError(_("This agent explains this term already; change that one."))
        return name

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if "synonyms" in values:
            values["synonyms"] = tidy_synonyms(values.get("name", ""), values["synonyms"])
        return values

    def save(self, commit: bool = True) -> Term:  # noqa: ARG002 - there is one way to save
        if self.errors:
            raise ValueError("A term with errors cannot be saved; see `errors`.")
        return save_term(self.instance)
