"""The form of another wording that is tried on a turn."""

from django import forms
from django.utils.translation import gettext_lazy

from studio.forms.fields import ProseField
from studio.forms.guidelines import MAX_PROSE


class RematchForm(forms.Form):
    condition = ProseField(
        label=gettext_lazy("When"),
        limit=MAX_PROSE,
        required=True,
        error_messages={
            "required": gettext_lazy(
                "Without a condition it always applies, and there is nothing to judge: write one."
            )
        },
        remedy=gettext_lazy("Shorten it, or write two guidelines."),
        widget=forms.Textarea({"dir": "auto", "rows": 3}),
    )
