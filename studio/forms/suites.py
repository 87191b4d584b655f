"""The form of a suite, for its page and for the API."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from studio.forms.base import RowForm
from studio.forms.fields import ProseField
from studio.models import Agent, Suite
from studio.operations.suites import save_suite

_REPEATS = gettext_lazy("Give a whole number from 1 to 20.")


def suite_json(suite: Suite) -> JsonObject:
    """What `SuiteForm.from_json` reads, of a stored suite or of a new one's usual values."""
    return {
        "name": suite.name,
        "description": suite.description,
        "repeats": suite.repeats,
        "gates_publishing": suite.gates_publishing,
    }


class SuiteForm(RowForm[Suite]):
    description = ProseField(
        label=gettext_lazy("What it is for"),
        limit=2_000,
        remedy=gettext_lazy("Shorten it."),
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
    )

    class Meta:
        model = Suite
        fields = ["name", "description", "repeats", "gates_publishing"]
        labels = {
            "name": gettext_lazy("Name"),
            "repeats": gettext_lazy("Runs of each scenario"),
            "gates_publishing": gettext_lazy("Publish only what has passed this suite"),
        }
        help_texts = {
            "repeats": gettext_lazy(
                "1 to 20. With several, expectations can hold in some of them, and flaky ones are found."
            ),
            "gates_publishing": gettext_lazy(
                "The agent’s draft has to pass a run of this suite before it can be published."
            ),
        }
        error_messages = {
            "name": {"required": gettext_lazy("Give the suite a name.")},
            "repeats": dict.fromkeys(("required", "invalid", "min_value", "max_value"), _REPEATS),
        }
        widgets = {"name": forms.TextInput({"dir": "auto", "autocomplete": "off"})}

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, agent: Agent, instance: Suite | None = None
    ) -> None:
        stored = instance if instance is not None else Suite(agent=agent)
        super().__init__(data, instance=stored, label_suffix="")

    def _place_of(self, constraint: Any) -> str | None:  # noqa: ARG002 - there is only one
        return "name"

    @classmethod
    def from_json(
        cls, agent: Agent, payload: Mapping[str, Any], instance: Suite | None = None
    ) -> "SuiteForm":
        """The form for a JSON object with any of the fields of `suite_json`; others stay as they are."""
        now = suite_json(instance if instance is not None else Suite(agent=agent))
        return cls({**now, **payload}, agent=agent, instance=instance)

    def store(self, by: str) -> Suite:
        return save_suite(self.instance, by=by)
