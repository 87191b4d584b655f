"""The form of a suite's run: against which versions, how often, with which model, up to which spend."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from studio.models import ModelConnection, Suite
from studio.operations.suite_runs import MOST_REPEATS
from studio.views.session_forms import versions_of


class RunForm(forms.Form):
    """`chosen()` is the form as the arguments of `start_run`."""

    against = forms.MultipleChoiceField(
        label=gettext_lazy("Against"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one version to run against.")},
    )
    repeats = forms.IntegerField(
        label=gettext_lazy("How often each scenario is run"),
        help_text=gettext_lazy(
            "Empty: as often as the suite says. Repeats find what is flaky, decided now so, now so."
        ),
        required=False,
        min_value=1,
        max_value=MOST_REPEATS,
    )
    connection = forms.ModelChoiceField(
        label=gettext_lazy("Model that is asked"),
        queryset=ModelConnection.objects.all(),
        required=False,
        empty_label=gettext_lazy("The default"),
    )
    cap = forms.IntegerField(
        label=gettext_lazy("Stop at"),
        help_text=gettext_lazy(
            "Tokens; empty for no cap. No conversation is begun that would go beyond it."
        ),
        required=False,
        min_value=1,
        max_value=10**12,
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, suite: Suite, **kwargs: Any
    ) -> None:
        initial = {"against": ["draft"], "repeats": suite.repeats} | (kwargs.pop("initial", {}))
        super().__init__(data, initial=initial, label_suffix="", **kwargs)
        against = self.fields["against"]
        assert isinstance(against, forms.MultipleChoiceField)  # noqa: S101 - declared above
        against.choices = versions_of(suite.agent)

    def chosen(self) -> dict[str, Any]:
        return self.cleaned_data | {"cap": self.cleaned_data["cap"] or 0}
