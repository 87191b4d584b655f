"""The form of a scenario, for its pages and for the API: what the customer says, or who plays them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from studio.forms.base import RowForm
from studio.forms.fields import ProseField
from studio.models import Customer, Scenario, Suite
from studio.operations.scenarios import save_scenario
from studio.yaml_text import DocumentSyntaxError, read_yaml, write_yaml

MAX_MESSAGES: Final = 200
MAX_MESSAGE_CHARACTERS: Final = 10_000
_BUTTONS = ("confirmed", "declined")
_SHORTER = gettext_lazy("Shorten it to what matters.")
_TURNS = gettext_lazy("Give a number of turns from 1 to 50.")
_TOKENS = gettext_lazy("Give a number of tokens from 500 to 1,000,000.")
TURNS, TOKENS = 8, 20_000
BRIEF: Final = ("persona", "goal", "stop", "turns", "tokens")
_NEEDED = ("persona", "goal", "turns", "tokens")  # of a simulated customer


def scenario_json(scenario: Scenario) -> JsonObject:
    """What `ScenarioForm.from_json` reads."""
    return {
        "title": scenario.title,
        "kind": scenario.kind,
        "messages": scenario.messages,
        "brief": scenario.brief,
        "tools": scenario.tools,
        "customer_uid": scenario.customer_uid,
        "variables": scenario.variables,
    }


class ScriptWidget(forms.Widget):
    """Rows of a page (`messages-rows` says how many), or a list as JSON has it. The page draws the rows itself."""

    def value_from_datadict(self, data: Mapping[str, Any], _files: Any, name: str) -> Any:
        if f"{name}-rows" not in data:
            return data.get(name)
        return [
            _row(data, name, number)
            for number in range(min(_count(data.get(f"{name}-rows")), MAX_MESSAGES + 1))
        ]


def _count(text: Any) -> int:
    return int(text) if str(text).isdecimal() and len(str(text)) < 6 else 0


def _row(data: Mapping[str, Any], name: str, number: int) -> JsonObject:
    does = data.get(f"{name}-{number}-does", "says")
    text = str(data.get(f"{name}-{number}-text", "")).replace("\r\n", "\n")
    row: JsonObject = {"text": text}
    if does in _BUTTONS:
        row = {"answer": does, "tool": str(data.get(f"{name}-{number}-tool", ""))}
    if data.get(f"{name}-{number}-together"):
        row["together"] = True
    return row


class ScriptField(forms.Field):
    """A list of messages as `Scenario.messages` holds it. Errors carry the row that they are about as `code`: row-2."""

    widget = ScriptWidget

    def clean(self, value: Any) -> list[JsonObject]:
        if value in (None, ""):
            return []
        if not isinstance(value, list):
            raise ValidationError(_("This is a list of messages."))
        rows = [row for row in enumerate(value) if row[1] != {} and not _is_blank(row[1])]
        if len(rows) > MAX_MESSAGES:
            raise ValidationError(
                _("These are %(count)d messages; at most %(most)d are kept. Remove some.")
                % {"count": len(rows), "most": MAX_MESSAGES}
            )
        errors = [
            ValidationError(why, code=f"row-{number}")
            for number, row in rows
            if (why := _wrong(row))
        ]
        if errors:
            raise ValidationError(errors)
        messages = [_tidy(row) for _number, row in rows]
        if messages:
            messages[0].pop("together", None)
        return messages


def _is_blank(row: Any) -> bool:
    """A row that nobody filled in."""
    return isinstance(row, dict) and isinstance(row.get("text"), str) and not row["text"].strip()


def _wrong(row: Any) -> str:
    if not isinstance(row, dict) or ("text" in row) == ("answer" in row):
        return _("A message has a text, or is the answer of a button.")
    if unknown := set(row) - {"text", "answer", "tool", "together"}:
        return _("A message has no %(name)r.") % {"name": min(map(str, unknown))}
    if "answer" in row:
        if row["answer"] not in _BUTTONS:
            return _("A button is “confirmed” or “declined”.")
        return "" if isinstance(row.get("tool", ""), str) else _("The tool is named by a text.")
    text = row["text"]
    if not isinstance(text, str):
        return _("A message is a text.")
    if len(text) > MAX_MESSAGE_CHARACTERS:
        return _("The message has %(count)d characters; at most %(most)d are kept. Shorten it.") % {
            "count": len(text),
            "most": MAX_MESSAGE_CHARACTERS,
        }
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return _("The message contains a character that cannot be stored; remove it.")
    return ""


def _tidy(row: JsonObject) -> JsonObject:
    said: JsonObject = (
        {"text": row["text"].strip()}
        if "text" in row
        else {"answer": row["answer"], "tool": row.get("tool", "")}
    )
    return {**said, "together": True} if row.get("together") else said


class VariablesField(forms.CharField):
    """An object as JSON has it, or lines of a page: name: value."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        return write_yaml(value) if isinstance(value, Mapping) and value else value or ""

    def clean(self, value: Any) -> JsonObject:
        if isinstance(value, str):
            try:
                value = read_yaml(value.replace("\r\n", "\n"))
            except DocumentSyntaxError as error:
                raise ValidationError(str(error)) from error
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ValidationError(_("Write one a line, as name: value."))
        if "\\u0000" in json.dumps(value):
            raise ValidationError(_("This contains a character that cannot be stored; remove it."))
        return {str(name): inner for name, inner in value.items()}


class ScenarioForm(RowForm[Scenario]):
    """A new scenario of `suite`, or a changed one. Of the two kinds, the fields of the other are left alone."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        max_length=200,
        widget=forms.TextInput({"dir": "auto", "autocomplete": "off"}),
        error_messages={"required": gettext_lazy("Say in a few words what is tested.")},
    )
    messages = ScriptField(label=gettext_lazy("What the customer says"), required=False)
    persona = ProseField(
        label=gettext_lazy("Who the customer is"),
        error_messages={"required": gettext_lazy("Say who the customer is.")},
        limit=2_000,
        remedy=_SHORTER,
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
        help_text=gettext_lazy("Such as: a hurried pensioner who never gives numbers at once."),
    )
    goal = ProseField(
        label=gettext_lazy("What they want"),
        error_messages={"required": gettext_lazy("Say what the customer wants.")},
        limit=2_000,
        remedy=_SHORTER,
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
        help_text=gettext_lazy("Such as: find out whether the refund has arrived."),
    )
    stop = ProseField(
        label=gettext_lazy("When they stop"),
        limit=2_000,
        remedy=_SHORTER,
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
        help_text=gettext_lazy("Such as: the agent has named a date, or has said no twice."),
    )
    turns = forms.IntegerField(
        label=gettext_lazy("Turns at most"),
        required=False,
        min_value=1,
        max_value=50,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), _TURNS),
    )
    tokens = forms.IntegerField(
        label=gettext_lazy("Tokens at most"),
        required=False,
        min_value=500,
        max_value=1_000_000,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), _TOKENS),
        help_text=gettext_lazy("For playing the customer; the agent’s own do not count."),
    )
    customer_uid = forms.ChoiceField(label=gettext_lazy("Customer"), required=False)
    variables = VariablesField(
        label=gettext_lazy("What the agent knows of them"),
        required=False,
        widget=forms.Textarea({"dir": "auto", "rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "One a line, as name: value. Left empty for a customer chosen above, it is filled in with what is known."
        ),
    )

    class Meta:
        model = Scenario
        fields = ["title", "kind", "tools", "messages", "variables", "customer_uid"]
        labels = {"tools": gettext_lazy("Tools"), "kind": gettext_lazy("Kind")}
        help_texts = {
            "tools": gettext_lazy(
                "With recorded results nothing outside changes, and a call that was not recorded gets no answer. Where "
                "tools run, those that change something never do."
            )
        }

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        suite: Suite,
        instance: Scenario | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        stored = instance if instance is not None else Scenario(suite=suite)
        now = {"turns": TURNS, "tokens": TOKENS, **stored.brief} | dict(initial or {})
        if stored.pk is None:
            now.setdefault("tools", Scenario.Tools.LIVE)
        super().__init__(data, instance=stored, initial=now, label_suffix="")
        for name in _NEEDED:
            self.fields[name].required = self["kind"].value() == Scenario.Kind.SIMULATED
        field = self.fields["customer_uid"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above
        field.choices = _customers(stored.customer_uid)

    @classmethod
    def from_json(
        cls, suite: Suite, payload: Mapping[str, Any], instance: Scenario | None = None
    ) -> "ScenarioForm":
        """The form for a JSON object with any of the fields of `scenario_json`; others stay as they are."""
        stored = (
            instance if instance is not None else Scenario(suite=suite, tools=Scenario.Tools.LIVE)
        )
        values = {**scenario_json(stored), **payload}
        given = {name: value for name, value in values.pop("brief").items() if name in BRIEF}
        brief = {"turns": TURNS, "tokens": TOKENS, **stored.brief, **given}
        return cls({**values, **brief}, suite=suite, instance=instance)

    def rows(self) -> Sequence[JsonObject]:
        """The messages as the page draws them: {"text", "answer", "tool", "together", "errors"}; one at least."""
        value = self["messages"].value()
        told = value if isinstance(value, list) else []
        errors: dict[str, list[str]] = {}
        if self.is_bound:
            for error in self.errors.get("messages", forms.utils.ErrorList()).as_data():
                errors.setdefault(str(error.code), []).extend(error.messages)
        return [
            {**row, "errors": errors.get(f"row-{number}", [])}
            for number, row in enumerate(told or [{}])
            if isinstance(row, dict)
        ]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("kind") == Scenario.Kind.SIMULATED:
            self.instance.brief = {
                "persona": values.get("persona", ""),
                "goal": values.get("goal", ""),
                "stop": values.get("stop", ""),
                "turns": values.get("turns", TURNS),
                "tokens": values.get("tokens", TOKENS),
            }
            values["messages"] = self.instance.messages
        elif "messages" not in self.errors and not values.get("messages"):
            self.add_error("messages", _("Write at least one message."))
        uid = values.get("customer_uid")
        if uid and not values.get("variables") and "variables" not in self.errors:
            customer = Customer.objects.filter(uid=uid).first()
            values["variables"] = customer.variables if customer is not None else {}
        return values

    def store(self, by: str) -> Scenario:
        return save_scenario(self.instance, by=by)


def _customers(known: str) -> list[tuple[str, str]]:
    """Those there are, and the one that is named although it may be gone."""
    found = [(customer.uid, customer.name) for customer in Customer.objects.all()[:500]]
    if known and known not in {uid for uid, _name in found}:
        found.append((known, known))
    return [("", _("nobody in particular")), *found]
