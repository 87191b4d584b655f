"""The forms of the people who may sign in, and of their API tokens."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from studio.access import Role, roles_of
from studio.forms.base import RowForm

ROLE_WORDS: dict[Role, Any] = {
    Role.AUTHOR: gettext_lazy("Author: writes agents and their guidelines"),
    Role.DEVELOPER: gettext_lazy("Developer: tools and model connections"),
    Role.QA: gettext_lazy("QA: sessions and what happened in them"),
    Role.PUBLISHER: gettext_lazy("Publisher: publishes versions"),
    Role.ADMIN: gettext_lazy("Admin: everything, and people"),
}


class PersonForm(RowForm[User]):
    roles = forms.MultipleChoiceField(
        label=gettext_lazy("Roles"),
        choices=[(role.value, words) for role, words in ROLE_WORDS.items()],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one role.")},
    )

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "is_active"]
        labels = {
            "username": gettext_lazy("User name"),
            "first_name": gettext_lazy("First name"),
            "last_name": gettext_lazy("Last name"),
            "is_active": gettext_lazy("May sign in"),
        }
        help_texts = {"username": "", "is_active": ""}
        widgets = {
            "username": forms.TextInput(
                {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
            )
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            del self.fields["is_active"]
        else:
            del self.fields["username"]
            self.initial["roles"] = [role.value for role in roles_of(self.instance)]

    def clean_username(self) -> str:
        """Names that differ in capitals only would be taken for one another."""
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise ValidationError(_("“%(name)s” is somebody else already."), params={"name": name})
        return name

    def chosen_roles(self) -> Iterable[Role]:
        return [Role(name) for name in self.cleaned_data["roles"]]


class TokenForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("What it is for"),
        max_length=80,
        widget=forms.TextInput({"autocomplete": "off", "placeholder": "CI", "dir": "auto"}),
    )
