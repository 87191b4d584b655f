"""The form of a tool of the shed: what people may change about it, and about each of its parameters."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine import spec
from engine.arguments import plain_schema, reason_against
from engine.canonical import JsonObject
from studio.bridge import parameters_from_json, parameters_to_json
from studio.forms.base import RowForm
from studio.forms.fields import ListField, ProseField, shortened
from studio.models import Tool
from studio.operations.tools import save_tool

MAX_EXAMPLE_VALUES = 20
_MAX_EXAMPLE_CHARACTERS = 500
_SHORTER = gettext_lazy("Shorten it.")
_TIMEOUT_RANGE = gettext_lazy("A time limit is 0.1 to 3600 seconds; empty takes the tier's.")
_PRECEDENCE_RANGE = gettext_lazy(
    "The order of asking is a whole number from 0 to 1000; empty is last."
)


class ExampleValuesField(ListField):
    """Values of the parameter's type, one a line; what is not text is written as JSON."""

    widget = forms.Textarea

    def split(self, text: str) -> list[str]:
        return text.splitlines()

    def join(self, items: Iterable[str]) -> str:
        return "\n".join(items)

    def check(self, items: list[str]) -> None:
        if len(items) > MAX_EXAMPLE_VALUES:
            raise ValidationError(
                _("These are %(count)d examples; at most %(limit)d are kept. Remove some."),
                params={"count": len(items), "limit": MAX_EXAMPLE_VALUES},
            )
        for item in items:
            if len(item) > _MAX_EXAMPLE_CHARACTERS:
                raise ValidationError(
                    _("The example “%(example)s” is longer than %(limit)d characters."),
                    params={"example": shortened(item), "limit": _MAX_EXAMPLE_CHARACTERS},
                )


class ParameterForm(forms.Form):
    """What people may change about one parameter."""

    display_name = forms.CharField(
        label=gettext_lazy("What people call it"), max_length=80, required=False
    )
    description = ProseField(label=gettext_lazy("Description"), limit=2_000, remedy=_SHORTER)
    significance = ProseField(
        label=gettext_lazy("Why it is needed"),
        limit=1_000,
        remedy=_SHORTER,
        help_text=gettext_lazy("Told to a customer who is asked for it."),
    )
    examples = ExampleValuesField(
        label=gettext_lazy("Examples"), help_text=gettext_lazy("One a line.")
    )
    source = forms.ChoiceField(
        label=gettext_lazy("Where it may come from"),
        choices=[
            (spec.ParameterSource.ANY.value, gettext_lazy("Anywhere")),
            (
                spec.ParameterSource.CUSTOMER.value,
                gettext_lazy("Only from what the customer said"),
            ),
            (
                spec.ParameterSource.CONTEXT.value,
                gettext_lazy("Only from what is known already; never asked for"),
            ),
        ],
    )
    precedence = forms.IntegerField(
        label=gettext_lazy("Order of asking"),
        required=False,
        min_value=0,
        max_value=1000,
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), _PRECEDENCE_RANGE),
        help_text=gettext_lazy("Of several that are missing, those of the lowest number first."),
    )
    hidden = forms.BooleanField(
        label=gettext_lazy("Never mention it to the customer"), required=False
    )

    def __init__(
        self, data: Mapping[str, Any] | None, *, parameter: spec.ToolParameter, code: JsonObject
    ) -> None:
        self.parameter = parameter
        self.code = code  # the parameter as the code declares it, or empty
        now = parameters_to_json((parameter,))[0]
        examples = [self._written(example) for example in parameter.examples]
        super().__init__(
            data,
            initial={**now, "examples": examples},
            prefix=f"parameter-{parameter.name}",
            label_suffix="",
        )

    @property
    def _is_text(self) -> bool:
        return plain_schema(self.parameter.schema).get("type") == "string"

    def _written(self, example: Any) -> str:
        if isinstance(example, str) and self._is_text:
            return example
        return json.dumps(example, ensure_ascii=False)

    def _read(self, line: str) -> Any:
        """A line as a value, checked; raises ValidationError."""
        value: Any = line
        if not self._is_text:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = line
        if reason := reason_against(self.parameter.schema, value):
            raise ValidationError(
                _("“%(example)s” is no example of it: it %(reason)s."),
                params={"example": shortened(line), "reason": reason},
            )
        return value

    def clean_examples(self) -> list[Any]:
        return [self._read(line) for line in self.cleaned_data["examples"]]

    def clean_description(self) -> str:
        """Without words of its own, those of the code."""
        return str(self.cleaned_data["description"] or self.code.get("description", ""))

    def changed_parameter(self) -> JsonObject:
        now = parameters_to_json((self.parameter,))[0]
        return {**now, **self.cleaned_data}


class ToolForm(RowForm[Tool]):
    """The editable things of a tool; `parameter_forms` stand beside it. `save()` writes through `operations.tools`."""

    description = ProseField(
        label=gettext_lazy("Description"),
        limit=10_000,
        remedy=_SHORTER,
        help_text=gettext_lazy("What the model reads about it. Empty takes what the code says."),
    )
    timeout = forms.FloatField(
        label=gettext_lazy("Time limit"),
        required=False,
        min_value=0.1,
        max_value=3600,
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), _TIMEOUT_RANGE),
        help_text=gettext_lazy("Seconds after which a call is stopped; empty takes the tier's."),
    )

    class Meta:
        model = Tool
        fields = ["description", "consequential", "confirm", "latency", "timeout", "enabled"]
        labels = {
            "consequential": gettext_lazy("It changes something: money, orders, data"),
            "confirm": gettext_lazy("The customer is asked before it runs"),
            "latency": gettext_lazy("Tier"),
            "enabled": gettext_lazy("Switched on"),
        }
        help_texts = {
            "consequential": "",
            "confirm": gettext_lazy(
                "What the customer said, a result, a variable or a default is no conclusion."
            ),
        }

    def __init__(self, data: Mapping[str, Any] | None = None, *, instance: Tool) -> None:
        super().__init__(data, instance=instance, label_suffix="")
        self.fields["confirm"].required = False  # it stands beside “changes something” alone
        code = {item["name"]: item for item in instance.declared.get("parameters", [])}
        self.parameter_forms = [
            ParameterForm(data, parameter=parameter, code=code.get(parameter.name, {}))
            for parameter in parameters_from_json(instance.parameters)
        ]

    def is_valid(self) -> bool:
        parameters_valid = [form.is_valid() for form in self.parameter_forms]
        return super().is_valid() and all(parameters_valid)

    def clean_description(self) -> str:
        return str(
            self.cleaned_data["description"] or self.instance.declared.get("description", "")
        )

    def clean_confirm(self) -> str:
        return str(self.cleaned_data["confirm"] or self.initial["confirm"])

    def all_errors(self) -> Iterator[tuple[str, str]]:
        """(field, or parameter and field; message)."""
        for form in (self, *self.parameter_forms):
            start = f"{form.parameter.name}." if isinstance(form, ParameterForm) else ""
            for field, messages in form.errors.items():
                for message in messages:
                    yield f"{start}{field}", str(message)

    def save(self, commit: bool = True) -> Tool:  # noqa: ARG002 - there is one way to save
        if any(form.errors for form in (self, *self.parameter_forms)):
            raise ValueError("A tool with errors cannot be saved; see `all_errors`.")
        self.instance.parameters = [form.changed_parameter() for form in self.parameter_forms]
        return save_tool(self.instance)
