"""The form of a model connection. Its key can be given and removed, and never read."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from studio.forms.base import RowForm
from studio.models import ModelConnection
from studio.operations.connections import save_connection

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_MAX_KEY = 4_000


class ConnectionForm(RowForm[ModelConnection]):
    base_url = forms.URLField(
        label=gettext_lazy("Base URL"),
        required=False,
        max_length=300,
        assume_scheme="https",
        widget=forms.URLInput({"placeholder": "https://api.openai.com/v1"}),
        help_text=gettext_lazy("Empty means the address of OpenAI itself."),
    )
    new_key = forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        max_length=_MAX_KEY,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )
    drop_key = forms.BooleanField(label=gettext_lazy("Remove the stored key"), required=False)
    make_default = forms.BooleanField(
        label=gettext_lazy("Default: sessions that choose no connection use this one"),
        required=False,
    )

    class Meta:
        model = ModelConnection
        fields = [
            "name",
            "base_url",
            "model",
            "writing_model",
            "batch_size",
            "judging_style",
            "timeout",
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "model": gettext_lazy("Model"),
            "writing_model": gettext_lazy("Model that writes"),
            "batch_size": gettext_lazy("Batch size"),
            "judging_style": gettext_lazy("Judging style"),
            "timeout": gettext_lazy("Timeout"),
        }
        widgets = {
            "name": forms.TextInput({"autocomplete": "off"}),
            "model": forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
            "writing_model": forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.instance.pk is not None
        first = not stored and not ModelConnection.objects.exists()
        self.initial.setdefault("make_default", self.instance.is_default or first)
        self.fields["new_key"].help_text = (
            _("Empty keeps the stored key.") if self.instance.api_key else _("Stored encrypted.")
        )
        if not self.instance.api_key:
            del self.fields["drop_key"]

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        if url and not url.startswith(("http://", "https://")):
            raise ValidationError(_("Write it as http://HOST/v1 or https://HOST/v1."))
        return url.rstrip("/")

    def clean_new_key(self) -> str:
        key: str = self.cleaned_data["new_key"].strip()
        if not (key.isascii() and key.isprintable()):
            raise ValidationError(_("This holds characters that no key has: paste it again."))
        return key

    def store(self, by: "User") -> ModelConnection:
        return save_connection(
            self.instance,
            by=by,
            new_key=self.cleaned_data["new_key"],
            drop_key=self.cleaned_data.get("drop_key", False),
            make_default=self.cleaned_data["make_default"],
        )
