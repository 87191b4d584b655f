"""Forms of a session's export, where people choose what to leave out, and of the import."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from studio.operations.redaction import EVERYTHING, Rules
from studio.uploads import LARGEST_DOCUMENT

FORMATS = ("html", "json")
MOST_WORDS = 200
_SHORTEST_WORD, _LONGEST_WORD = 2, 200
_OPTIONS = ("customer", "emails", "phones", "accounts", "numbers", "metadata", "prompts")


class ExportForm(forms.Form):
    """What is left out: by default everything in a page to be passed on, nothing in JSON for another studio."""

    customer = forms.BooleanField(
        label=gettext_lazy("The customer’s name and variables"),
        help_text=gettext_lazy("Each value is also replaced where somebody speaks of it."),
        required=False,
    )
    emails = forms.BooleanField(label=gettext_lazy("E-mail addresses"), required=False)
    phones = forms.BooleanField(label=gettext_lazy("Phone numbers"), required=False)
    accounts = forms.BooleanField(
        label=gettext_lazy("Numbers of cards and accounts, IBANs"), required=False
    )
    numbers = forms.BooleanField(
        label=gettext_lazy("Other numbers of eight digits and more"), required=False
    )
    metadata = forms.BooleanField(
        label=gettext_lazy("What tools gave for front ends only, and what they printed"),
        required=False,
    )
    prompts = forms.BooleanField(
        label=gettext_lazy("Prompts and the models’ answers word for word"), required=False
    )
    words = forms.CharField(
        label=gettext_lazy("These words"),
        help_text=gettext_lazy("One a line; also inside of other words, in upper or lower case."),
        required=False,
        widget=forms.Textarea({"rows": 3, "dir": "auto", "spellcheck": "false"}),
    )
    tree = forms.BooleanField(
        label=gettext_lazy("With all branches"),
        help_text=gettext_lazy("Otherwise what was said up to the end of this branch."),
        required=False,
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, style: str = "html", **kwargs: Any
    ) -> None:
        usual = EVERYTHING if style == "html" else Rules()
        initial = {name: getattr(usual, name) for name in _OPTIONS}
        super().__init__(data, initial=initial, label_suffix="", **kwargs)
        if style == "html":
            del self.fields["tree"]

    def clean_words(self) -> tuple[str, ...]:
        lines = [line.strip() for line in self.cleaned_data["words"].splitlines()]
        words = tuple(dict.fromkeys(line for line in lines if line))
        if len(words) > MOST_WORDS:
            raise ValidationError(_("At most %(most)d words."), params={"most": MOST_WORDS})
        for word in words:
            if not _SHORTEST_WORD <= len(word) <= _LONGEST_WORD:
                raise ValidationError(
                    _("“%(word)s” has to have %(least)d to %(most)d characters."),
                    params={"word": word[:40], "least": _SHORTEST_WORD, "most": _LONGEST_WORD},
                )
        return words

    @property
    def rules(self) -> Rules:
        """Of a valid form."""
        chosen = {name: bool(self.cleaned_data[name]) for name in _OPTIONS}
        return Rules(words=self.cleaned_data["words"], **chosen)

    @property
    def whole_tree(self) -> bool:
        return bool(self.cleaned_data.get("tree"))

    @property
    def left_out(self) -> list[Any]:
        """The fields to be ticked, as bound fields."""
        return [self[name] for name in _OPTIONS]


class SessionFileForm(forms.Form):
    """The JSON of an export."""

    file = forms.FileField(
        label=gettext_lazy("The exported session"),
        widget=forms.FileInput({"accept": ".json,application/json"}),
        error_messages={
            "required": gettext_lazy("Choose the JSON file that a session’s export gave."),
            "empty": gettext_lazy("The file is empty. Export the session again."),
            "invalid": gettext_lazy("No file came along. Choose it again."),
        },
    )

    def __init__(self, data: Mapping[str, Any] | None = None, files: Any = None) -> None:
        super().__init__(data, files, label_suffix="")

    def clean_file(self) -> Any:
        """Django's UploadedFile."""
        file = self.cleaned_data["file"]
        if file.size > LARGEST_DOCUMENT:
            raise ValidationError(
                _("The file has more than %(limit)s. Export the session without its prompts."),
                params={"limit": filesizeformat(LARGEST_DOCUMENT)},
            )
        return file
