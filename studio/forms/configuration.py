"""The form of an instance's configuration, made of its template's UserParameters; secrets go in and never come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.arguments import canonical_numbers
from engine.canonical import JsonObject
from engine.tools.template import TemplateField
from studio.forms.inputs import ABSENT, About, Input, LineInput, TextInput
from studio.forms.schema_inputs import filled, input_for, loaded
from studio.models import Tool
from studio.operations.configuration import ShownValue

PREFIX = "config"  # of the names of its inputs
_KEPT_SECRET = "secret"  # noqa: S105 - of ticks “keep secret”
_REMOVED = "remove"  # of ticks “remove”


@dataclass(slots=True, kw_only=True)
class Setting:
    """One parameter: its input, and of a secret what may be said of the value that is set."""

    input: Input
    shown: ShownValue
    keep_secret: bool = False
    remove: bool = False
    typed_again: bool = False  # it was typed, and is not sent back

    @property
    def name(self) -> str:
        return self.shown.field.name

    @property
    def keep_secret_name(self) -> str:
        return f"{_KEPT_SECRET}.{self.name}"

    @property
    def remove_name(self) -> str:
        return f"{_REMOVED}.{self.name}"

    @property
    def is_set_secret(self) -> bool:
        return self.shown.is_secret and self.shown.is_set

    @property
    def may_be_kept_secret(self) -> bool:
        return not self.shown.is_secret and isinstance(self.input, TextInput | LineInput)

    def forget(self) -> None:
        """Let nothing of a secret that was typed stand in the page; a refusal may cite it."""
        hidden = self.keep_secret or self.shown.is_secret
        if not hidden or self.input.is_empty:
            return
        if str(self.input.raw) in self.input.error:
            self.input.error = _("It does not fit what the template asks for.")
        self.input.raw = ""
        self.typed_again = True

    def given(self) -> Any:
        """The value that was given, None for one to be removed, ABSENT for one that stays."""
        value = self.input.value()
        if value is not ABSENT:
            return value
        if self.remove or (self.shown.is_set and not self.shown.is_secret):
            return None
        return ABSENT


class ConfigurationForm:
    """The values of the parameters: `config` and `secret_names` are there once `is_valid()`.

    `shown` says of each parameter what is set now, see `shown_config`; for a new instance nothing is.
    """

    def __init__(self, shown: Sequence[ShownValue], data: QueryDict | None = None) -> None:
        self.settings = [_setting(each, data) for each in shown]
        self.other_errors: list[str] = []
        self.config: JsonObject = {}
        self.secret_names: tuple[str, ...] = ()

    @classmethod
    def new(
        cls, fields: Sequence[TemplateField], data: QueryDict | None = None
    ) -> "ConfigurationForm":
        nothing = [
            ShownValue(field=field, value=None, is_secret=field.secret, is_set=False)
            for field in fields
        ]
        return cls(nothing, data)

    @property
    def errors(self) -> list[tuple[Input, str]]:
        """(input, sentence), in the order of the page; `other_errors` are about none of them."""
        return [error for setting in self.settings for error in setting.input.errors()]

    @property
    def has_errors(self) -> bool:
        return bool(self.errors or self.other_errors)

    def is_valid(self) -> bool:
        given = {setting.name: setting.given() for setting in self.settings}
        self.config = {name: value for name, value in given.items() if value is not ABSENT}
        self.secret_names = tuple(
            setting.name
            for setting in self.settings
            if setting.keep_secret and self.config.get(setting.name) is not None
        )
        return not self.has_errors

    def forget_secrets(self) -> None:
        """To be called before it is shown again: who filled it in types secrets once more."""
        for setting in self.settings:
            setting.forget()

    @property
    def has_forgotten(self) -> bool:
        return any(setting.typed_again for setting in self.settings)

    def report(self, errors: Mapping[str, str]) -> None:
        """Say at its input what an operation refused: parameter → sentence."""
        settings = {setting.name: setting for setting in self.settings}
        for name, sentence in errors.items():
            if name in settings:
                settings[name].input.error = sentence
            else:
                self.other_errors.append(f"{name}: {sentence}" if name else sentence)


def _setting(shown: ShownValue, data: QueryDict | None) -> Setting:
    field = shown.field
    stays = shown.is_secret and shown.is_set  # where nothing is typed
    about = About(
        name=f"{PREFIX}.{field.name}",
        key=field.name,
        label=_("Replace %(name)s") % {"name": field.name} if stays else field.name,
        help=field.description,
        required=field.required and not stays,
        default=canonical_numbers(field.default),
    )
    if data is not None:
        setting = Setting(
            input=loaded(about, field.schema, data, secret=shown.is_secret), shown=shown
        )
        setting.keep_secret = setting.keep_secret_name in data and setting.may_be_kept_secret
        setting.remove = setting.remove_name in data and setting.is_set_secret
        return setting
    if shown.is_secret or not shown.is_set:
        return Setting(input=input_for(about, field.schema, secret=shown.is_secret), shown=shown)
    return Setting(input=filled(about, field.schema, shown.value), shown=shown)


class InstanceForm(forms.Form):
    """What a new instance takes beside its configuration."""

    name = forms.CharField(
        label=gettext_lazy("Name of the tool"),
        max_length=Tool._meta.get_field("name").max_length,
        help_text=gettext_lazy("What the model calls it by: letters, digits, _ and -."),
        error_messages={"required": gettext_lazy("Name the tool.")},
    )
    consequential = forms.BooleanField(
        label=gettext_lazy("It changes something: money, orders, data"),
        required=False,
        help_text=gettext_lazy("The customer is then asked before it runs."),
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, template: str = "") -> None:
        super().__init__(data, initial={"name": tool_name(template)}, label_suffix="")


def tool_name(template: str) -> str:
    """A name for a tool of this template: its words in small letters, joined by underscores."""
    return "_".join(template.lower().split())[:64]
