"""The forms of tool templates: what is uploaded, and what one is called."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.tools.package import LARGEST_ARCHIVE
from studio.models import ToolTemplate

_NAME = ToolTemplate._meta.get_field("name")


class UploadForm(forms.Form):
    """A ZIP, and what becomes of it; for the next version of `target` its name is settled."""

    package = forms.FileField(
        label=gettext_lazy("The ZIP"),
        widget=forms.FileInput({"accept": ".zip,application/zip"}),
        error_messages={
            "required": gettext_lazy("Choose a ZIP file, or drop it here."),
            "empty": gettext_lazy("The file is empty. Choose the ZIP that you made."),
            "invalid": gettext_lazy("No file came along. Choose the ZIP again."),
        },
    )
    name = forms.CharField(
        label=gettext_lazy("Name"),
        required=False,
        max_length=_NAME.max_length,
        strip=False,
        validators=list(_NAME.validators),
        widget=forms.TextInput({"autocomplete": "off", "dir": "auto"}),
        help_text=gettext_lazy(
            "Letters a-z, digits and spaces. Empty takes the name of the directory in the ZIP, else that of the file."
        ),
    )
    new = forms.BooleanField(
        label=gettext_lazy("Only as a new template"),
        required=False,
        help_text=gettext_lazy(
            "Refused if the name is taken. Otherwise a name that is there already gets its next version."
        ),
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        files: Any = None,
        *,
        target: ToolTemplate | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data, files, label_suffix="", **kwargs)
        self.target = target
        if target is not None:
            del self.fields["name"], self.fields["new"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        return name.strip(" ")

    def clean_package(self) -> Any:
        """Django's UploadedFile."""
        package = self.cleaned_data["package"]
        if package.size > LARGEST_ARCHIVE:
            raise ValidationError(
                _(
                    "“%(name)s” has more than %(limit)s, which is the most. Leave out what the tool does not need, "
                    "such as its environment and caches, and let it fetch large data when it runs."
                ),
                params={"name": package.name, "limit": filesizeformat(LARGEST_ARCHIVE)},
            )
        return package


class TemplateNameForm(forms.Form):
    """Another name for a template."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=_NAME.max_length,
        strip=False,
        validators=list(_NAME.validators),
        widget=forms.TextInput({"autocomplete": "off", "dir": "auto"}),
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, template: ToolTemplate) -> None:
        super().__init__(data, initial={"name": template.name}, label_suffix="")

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        return name.strip(" ")
