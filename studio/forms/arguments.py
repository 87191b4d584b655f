"""The run form of a tool, made of its parameters: each asked for by its type, or all of them at once as JSON."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine import spec
from engine.arguments import Checked, canonical_numbers, check_arguments
from engine.canonical import JsonObject
from studio.forms.inputs import ABSENT, About, Input, JsonInput
from studio.forms.schema_inputs import filled, loaded
from studio.forms.written_values import example_of
from studio.models import Customer, ToolExample

PREFIX = "arguments"  # of the names of its inputs
MODE = "as"  # the name of the field that says whether all is written as JSON
_MOST_CUSTOMERS = 500


class ArgumentsForm:
    """What a tool is to be called with. `arguments` are there once `is_valid()`.

    Give either `data`, what was sent, or `arguments` to begin with. `whole` is the one input for all of them as JSON;
    it is None where each parameter has its own in `inputs`.
    """

    def __init__(
        self,
        tool: spec.Tool,
        data: QueryDict | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        as_json: bool = False,
    ) -> None:
        self._tool = tool
        self._by_name: dict[str, Input] = {}
        self.arguments: JsonObject = {}
        self.whole: JsonInput | None = None
        if as_json or (data is not None and data.get(MODE) == "json"):
            self.whole = _whole(tool, data, dict(arguments or {}))
        elif data is not None:
            self._by_name = {
                parameter.name: loaded(_about(parameter), parameter.schema, data)
                for parameter in tool.parameters
            }
        else:
            given = arguments or {}
            self._by_name = {
                parameter.name: filled(
                    _about(parameter), parameter.schema, given.get(parameter.name, ABSENT)
                )
                for parameter in tool.parameters
            }

    @property
    def inputs(self) -> list[Input]:
        return list(self._by_name.values())

    @property
    def errors(self) -> list[tuple[Input, str]]:
        """(input, sentence), in the order of the page."""
        inputs = [self.whole] if self.whole is not None else self.inputs
        return [error for each in inputs for error in each.errors()]

    def is_valid(self) -> bool:
        given = self._read_whole() if self.whole is not None else self._read_each()
        if given is None or self.errors:
            return False
        checked = check_arguments(self._tool, given)
        self._report(checked)
        self.arguments = checked.values
        return not self.errors

    def in_the_other_form(self) -> "ArgumentsForm":
        """What was typed so far, as JSON or one by one; itself, with its error, where JSON cannot be read."""
        if self.whole is None:
            typed = _given({name: each.typed() for name, each in self._by_name.items()})
            return ArgumentsForm(self._tool, arguments=typed, as_json=True)
        given = self._read_whole()
        if given is None:
            return self
        if unknown := check_arguments(self._tool, given).unknown:
            self._report(Checked(values={}, defaults={}, unknown=unknown))
            return self
        return ArgumentsForm(self._tool, arguments=given)

    def _read_each(self) -> JsonObject:
        return _given({name: each.value() for name, each in self._by_name.items()})

    def _read_whole(self) -> JsonObject | None:
        assert self.whole is not None  # noqa: S101 - for the type checker
        self.whole.error = ""
        value = {} if self.whole.is_empty else self.whole.value()
        return None if value is ABSENT else value

    def _report(self, checked: Checked) -> None:
        wrong = [(name, _("is required")) for name in checked.missing]
        wrong += [(argument.name, argument.reason) for argument in checked.invalid]
        wrong += [(name, _("is no parameter of this tool")) for name in checked.unknown]
        if self.whole is not None and wrong:
            self.whole.error = " ".join(f"“{name}” {reason}." for name, reason in wrong)
            return
        for name, reason in wrong:
            self._by_name[name].refuse(reason)


def _about(parameter: spec.ToolParameter) -> About:
    return About(
        name=f"{PREFIX}.{parameter.name}",
        key=parameter.name,
        label=parameter.label,
        help=parameter.description,
        required=parameter.required,
        default=canonical_numbers(parameter.default),
        examples=parameter.examples,
    )


def _given(values: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not ABSENT}


def _whole(tool: spec.Tool, data: QueryDict | None, arguments: JsonObject) -> JsonInput:
    example = {each.name: example_of(each.schema) for each in tool.parameters if each.required}
    about = About(
        name=f"{PREFIX}{JsonInput.SUFFIX}",
        key="",
        label=_("Arguments as JSON"),
        examples=(example,),
    )
    whole = JsonInput(about, {"type": "object"})
    if data is None:
        whole.fill(arguments)
    else:
        whole.load(data)
    return whole


class RunForm(forms.Form):
    """What a run takes beside its arguments."""

    customer = forms.ModelChoiceField(
        label=gettext_lazy("Run for"),
        queryset=Customer.objects.none(),
        required=False,
        empty_label=gettext_lazy("nobody"),
        to_field_name="uid",
        error_messages={"invalid_choice": gettext_lazy("There is no such customer.")},
        help_text=gettext_lazy(
            "Tools that look up what belongs to a customer look it up of this one."
        ),
    )
    sure = forms.BooleanField(
        label=gettext_lazy("Run it for real: what it changes stays changed"),
        error_messages={"required": gettext_lazy("Tick this to run it: it changes something.")},
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        consequential: bool,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}), label_suffix="")
        newest = Customer.objects.order_by("-pk").values("pk")[:_MOST_CUSTOMERS]
        self.fields["customer"].queryset = Customer.objects.filter(pk__in=newest)  # type: ignore[attr-defined]
        if not consequential:
            del self.fields["sure"]


class ExampleForm(forms.Form):
    """The name under which the arguments of a run are kept."""

    name = forms.CharField(
        label=gettext_lazy("Name of the example"),
        max_length=ToolExample._meta.get_field("name").max_length,
        error_messages={"required": gettext_lazy("Name the example.")},
    )
