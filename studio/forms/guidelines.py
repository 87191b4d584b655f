"""The form of a guideline, for the editor and for the API."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from studio.bridge import compile_agent
from studio.forms.base import RowForm
from studio.forms.fields import (
    AgentToolsField,
    MessagesField,
    ProseField,
    TagsField,
    shortened,
)
from studio.forms.references import AgentPartsField, AgentResponsesField
from studio.models import Agent, Guideline, GuidelineExample
from studio.operations.agents import save_guideline
from studio.operations.soundness import new_problems

_SPLIT = gettext_lazy("Shorten it, or write two guidelines.")
MAX_PROSE = 10_000
_PRIORITY_RANGE = gettext_lazy("Priority is a whole number from −100 to 100.")


def _prose(rows: int, placeholder: Any) -> forms.Textarea:
    return forms.Textarea({"dir": "auto", "rows": rows, "placeholder": placeholder})


def guideline_json(guideline: Guideline) -> JsonObject:
    """What `GuidelineForm.from_json` reads, of a stored guideline or of a new one's usual values."""
    stored = guideline.pk is not None
    return {
        "condition": guideline.condition,
        "action": guideline.action,
        "criticality": guideline.criticality,
        "priority": guideline.priority,
        "enabled": guideline.enabled,
        "tags": list(guideline.tags),
        "composition": guideline.composition,
        "canned_responses": sorted(response.uid for response in guideline.canned_responses.all())
        if stored
        else [],
        "tools": sorted(tool.name for tool in guideline.tools.all()) if stored else [],
        "reevaluate_after": sorted(tool.name for tool in guideline.reevaluate_after.all())
        if stored
        else [],
        "examples": [
            {"text": example.text, "matches": example.matches}
            for example in guideline.examples.all()
        ]
        if stored
        else [],
    }


class GuidelineForm(RowForm[Guideline]):
    """A new guideline of `agent`, or a changed one; `save()` writes it through `operations.agents`.

    `updated_at` says what the person has read: where somebody else saved since, `save()` raises GuidelineChangedError
    and nothing is written. A program builds the form by `from_json` and reads its errors by `json_errors`.
    """

    condition = ProseField(
        label=gettext_lazy("When"),
        limit=MAX_PROSE,
        remedy=_SPLIT,
        help_text=gettext_lazy("Empty means: always."),
        widget=_prose(2, gettext_lazy("the customer asks for a refund")),
    )
    action = ProseField(
        label=gettext_lazy("then"),
        limit=MAX_PROSE,
        remedy=_SPLIT,
        help_text=gettext_lazy(
            "Empty means: what its tools are for, or else only to take note that it applies."
        ),
        widget=_prose(3, gettext_lazy("check the order, then explain the policy")),
    )
    tools = AgentToolsField(label=gettext_lazy("Tools"))
    reevaluate_after = AgentToolsField(label=gettext_lazy("Judge again after"))
    canned_responses = AgentResponsesField(label=gettext_lazy("Canned responses"))
    matching = MessagesField(
        label=gettext_lazy("Messages it should match"),
        widget=_prose(2, gettext_lazy("One message a line")),
    )
    not_matching = MessagesField(
        label=gettext_lazy("Messages it should not match"),
        widget=_prose(2, gettext_lazy("One message a line")),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        required=False,
        min_value=-100,
        max_value=100,
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), _PRIORITY_RANGE),
        help_text=gettext_lazy("Higher comes first in the reply. −100 to 100."),
    )
    tags = TagsField(
        label=gettext_lazy("Tags"),
        help_text=gettext_lazy("Between commas."),
        widget=forms.TextInput({"dir": "auto", "autocomplete": "off"}),
    )
    updated_at = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Guideline
        fields = [
            "condition",
            "action",
            "criticality",
            "priority",
            "enabled",
            "tags",
            "composition",
        ]
        labels = {
            "criticality": gettext_lazy("Criticality"),
            "enabled": gettext_lazy("Switched on"),
            "composition": gettext_lazy("How the reply is written"),
        }
        help_texts = {
            "composition": gettext_lazy("While it applies, if it is stricter than the agent's way.")
        }
        error_messages = {
            "criticality": {
                "invalid_choice": gettext_lazy(
                    "“%(value)s” is no criticality; choose low, medium or high."
                )
            },
            "composition": {
                "invalid_choice": gettext_lazy(
                    "“%(value)s” is no way to write; choose fluid, composited, strict or none."
                )
            },
        }

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        agent: Agent,
        instance: Guideline | None = None,
        **kwargs: Any,
    ) -> None:
        guideline = instance if instance is not None else Guideline(agent=agent)
        now = guideline_json(guideline)
        initial = {**now, **_split_examples(now)}
        if guideline.pk is not None:
            initial["updated_at"] = guideline.updated_at.isoformat()
        initial |= kwargs.pop("initial", None) or {}
        super().__init__(data, instance=guideline, initial=initial, label_suffix="", **kwargs)
        self.agent = agent
        for field in self.fields.values():
            if isinstance(field, AgentToolsField | AgentPartsField):
                field.agent = agent
        ways: Any = self.fields["composition"]
        ways.choices = [("", _("As the agent writes"))] + [
            choice for choice in ways.choices if choice[0]
        ]

    @classmethod
    def from_json(
        cls, agent: Agent, payload: Mapping[str, Any], instance: Guideline | None = None
    ) -> "GuidelineForm":
        """The form for a JSON object with any of the fields of `guideline_json`; what it leaves out stays as it is.

        `updated_at` (ISO 8601) may be among them, to be refused where somebody else saved since.
        """
        now = guideline_json(instance if instance is not None else Guideline(agent=agent))
        values = {**now, **payload}
        return cls({**values, **_split_examples(values)}, agent=agent, instance=instance)

    def json_errors(self) -> list[tuple[str, str]]:
        """(field as a program names it, message); the field is empty for what concerns several."""
        names = {"matching": "examples", "not_matching": "examples", "__all__": ""}
        return [
            (names.get(field, field), str(message))
            for field, messages in self.errors.items()
            for message in messages
        ]

    def clean_enabled(self) -> bool:
        """What the person did not touch stays what it is by now: the table beside the editor switches it too."""
        given: bool = self.cleaned_data["enabled"]
        before = self.data.get(self["enabled"].html_initial_name)
        if self.instance.pk is not None and before is not None and given == (before == "True"):
            return self.instance.enabled
        return given

    def clean_priority(self) -> int:
        return self.cleaned_data["priority"] or 0

    def clean_updated_at(self) -> datetime | None:
        given = self.cleaned_data["updated_at"]
        try:
            moment = parse_datetime(given) if given else None
        except ValueError:
            moment = None
        if given and (moment is None or moment.tzinfo is None):
            raise ValidationError(_("This is the moment at which it was saved, with its zone."))
        return moment

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        matching = {text.casefold() for text in values.get("matching", [])}
        for text in values.get("not_matching", []):
            if text.casefold() in matching:
                self.add_error(
                    "not_matching",
                    _("“%(text)s” stands in both lists; keep it in one.")
                    % {"text": shortened(text)},
                )
        return values

    def _post_clean(self) -> None:
        """A number decides between alternatives, so that another one may contradict what relates them."""
        stored = self.instance.priority
        super()._post_clean()
        if self.errors or self.instance.pk is None or self.instance.priority == stored:
            return
        if not self.agent.relationships.exists():
            return
        before = compile_agent(Agent.objects.get(pk=self.agent.pk))
        guidelines = tuple(
            replace(each, priority=self.instance.priority)
            if each.uid == self.instance.uid
            else each
            for each in before.guidelines
        )
        for message in new_problems(before, replace(before, guidelines=guidelines)):
            self.add_error("priority", message)

    def save(self, commit: bool = True) -> Guideline:  # noqa: ARG002 - there is one way to save
        """Raises GuidelineChangedError."""
        if self.errors:
            raise ValueError("A guideline with errors cannot be saved; see `errors`.")
        values = self.cleaned_data
        return save_guideline(
            self.instance,
            tools=values["tools"],
            reevaluate_after=values["reevaluate_after"],
            canned_responses=values["canned_responses"],
            examples=[
                GuidelineExample(text=text, matches=matches)
                for matches, name in ((True, "matching"), (False, "not_matching"))
                for text in values[name]
            ],
            unchanged_since=values["updated_at"],
        )


def _split_examples(values: Mapping[str, Any]) -> dict[str, Any]:
    """`examples` as the two fields of the form, which refuse what is no list of examples."""
    examples = values.get("examples") or []
    if not isinstance(examples, list | tuple) or not all(
        isinstance(example, Mapping) for example in examples
    ):
        return {"matching": {}, "not_matching": []}
    return {
        "matching": [e.get("text", "") for e in examples if e.get("matches", True)],
        "not_matching": [e.get("text", "") for e in examples if not e.get("matches", True)],
    }
