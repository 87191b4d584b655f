"""The form of an expectation: a few choices for each kind, from which its JSON is made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from engine import spec
from engine.canonical import JsonObject
from engine.errors import SpecError
from engine.expecting import Comparing, Expectation, Measure, read_expectation, to_json
from studio.expectation_words import DECISIONS, guideline_words
from studio.forms.expectation_values import ValueRefusedError, tolerance_of, value_of, value_text
from studio.forms.fields import ProseField
from studio.models import Scenario
from studio.operations.expectation_checks import ScenarioRefusedError, make_sure_it_fits
from studio.operations.scenario_messages import turn_count, turns_said
from studio.readable_values import shortened

KINDS: Final[dict[str, tuple[Promise, Promise]]] = {
    "guideline": (gettext_lazy("A guideline"), gettext_lazy("matches, or does not")),
    "tool": (gettext_lazy("A tool"), gettext_lazy("runs, with these arguments, or does not")),
    "decision": (gettext_lazy("A decision"), gettext_lazy("why a tool ran or did not")),
    "order": (gettext_lazy("An order"), gettext_lazy("tools run one after another")),
    "reply_contains": (gettext_lazy("Words"), gettext_lazy("a reply contains them, or does not")),
    "reply_matches": (gettext_lazy("A pattern"), gettext_lazy("a regular expression of a reply")),
    "no_promise": (gettext_lazy("No promise"), gettext_lazy("of something, judged by a model")),
    "judged": (gettext_lazy("A statement"), gettext_lazy("about a reply, judged by a model")),
    "handed_over": (gettext_lazy("A hand-over"), gettext_lazy("to a person, or none")),
    "below": (gettext_lazy("A limit"), gettext_lazy("of round trips, time, tokens or cost")),
}
_MOST_ROWS = 30
_COMPARING = {
    Comparing.EQUAL: gettext_lazy("is"),
    Comparing.CONTAINS: gettext_lazy("contains"),
    Comparing.ABOUT: gettext_lazy("is about"),
    Comparing.ONE_OF: gettext_lazy("is one of"),
}
_MEASURES = {
    Measure.ROUND_TRIPS: gettext_lazy("round trips to the model"),
    Measure.SECONDS: gettext_lazy("seconds"),
    Measure.TOKENS: gettext_lazy("tokens"),
    Measure.COST: gettext_lazy("cost, in the currency of the price list"),
}
# Kind → the field that says whether it is wanted, and the words for yes and no.
_WANTED: dict[str, tuple[str, Promise, Promise]] = {
    "guideline": ("matches", gettext_lazy("must match"), gettext_lazy("must not match")),
    "tool": ("runs", gettext_lazy("must run"), gettext_lazy("must not run")),
    "reply_contains": (
        "contains",
        gettext_lazy("must contain"),
        gettext_lazy("must not contain"),
    ),
    "reply_matches": ("matches", gettext_lazy("must match"), gettext_lazy("must not match")),
    "handed_over": (
        "expected",
        gettext_lazy("must be handed over to a person"),
        gettext_lazy("must not be handed over"),
    ),
}
_LIMIT = gettext_lazy("Give a number above 0.")


class _Rows(forms.Widget):
    """Rows of a page as a list of objects; `parts` are the names of a row's fields. The page draws them itself."""

    def __init__(self, *parts: str) -> None:
        super().__init__()
        self.parts = parts

    def value_from_datadict(self, data: Mapping[str, Any], _files: Any, name: str) -> Any:
        count = str(data.get(f"{name}-rows", "0"))
        rows = min(int(count), _MOST_ROWS) if count.isdecimal() and len(count) < 4 else 0
        return [
            {part: str(data.get(f"{name}-{row}-{part}", "")).strip() for part in self.parts}
            for row in range(rows)
        ]


class _RowsField(forms.Field):
    def __init__(self, *parts: str, **kwargs: Any) -> None:
        super().__init__(required=False, widget=_Rows(*parts), **kwargs)


class ExpectationForm(forms.Form):
    """An expectation of this kind, of a scenario of this agent. `expectation()` is what a valid form says."""

    turn = forms.TypedChoiceField(
        label=gettext_lazy("Where"), required=False, coerce=int, empty_value=None
    )
    at_least = forms.IntegerField(
        label=gettext_lazy("In at least so many runs"),
        required=False,
        min_value=1,
        max_value=20,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            gettext_lazy("Give a number of runs from 1 to 20, or leave it empty: in every run."),
        ),
    )
    because = ProseField(
        label=gettext_lazy("Because"),
        limit=2_000,
        remedy=gettext_lazy("Shorten it."),
        widget=forms.Textarea({"dir": "auto", "rows": 2}),
        help_text=gettext_lazy("Why it is expected, for whoever sees it fail."),
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        kind: str,
        scenario: Scenario,
        agent: spec.Agent,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}), label_suffix="")
        self.kind = kind
        self.scenario = scenario
        self.agent = agent
        self._made: Expectation | None = None
        own = _fields(kind, agent, self.initial)
        self.own_names = list(own)
        self.fields = {**own, **self.fields}
        repeats = scenario.suite.repeats
        self.fields["at_least"].help_text = ngettext(
            "Empty: in every run. The suite runs each scenario %(count)d time.",
            "Empty: in every run. The suite runs each scenario %(count)d times.",
            repeats,
        ) % {"count": repeats}
        turn = self.fields["turn"]
        assert isinstance(turn, forms.TypedChoiceField)  # noqa: S101 - declared above
        turn.choices = _turns(kind, scenario, self.initial.get("turn"))

    @property
    def own(self) -> list[forms.BoundField]:
        """The fields of this kind alone that are drawn like any other."""
        return [self[name] for name in self.own_names if name not in {"arguments", "tools"}]

    def rows(self, name: str) -> list[JsonObject]:
        """The rows of `arguments` or `tools` as the page draws them, each with its `errors`; one at least."""
        value = self[name].value() or [{}]
        errors: dict[str, list[str]] = {}
        if self.is_bound:
            for error in self.errors.get(name, forms.utils.ErrorList()).as_data():
                errors.setdefault(str(error.code), []).extend(error.messages)
        return [
            {**row, "errors": errors.get(f"row-{number}", [])} for number, row in enumerate(value)
        ]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.errors:
            return values
        try:
            self._made = read_expectation(self._json(values))
            make_sure_it_fits(self._made, self.scenario, self.agent)
        except (SpecError, ScenarioRefusedError) as error:
            field, row = _place_of(error.field)
            message = ValidationError(str(error), code=row)
            self.add_error(field if field in self.fields else None, message)
        return values

    def expectation(self) -> Expectation:
        if self._made is None or self.errors:
            raise ValueError("A form with errors says nothing; see `errors`.")
        return self._made

    def _json(self, values: Mapping[str, Any]) -> JsonObject:
        told: JsonObject = {"kind": self.kind}
        for name in ("turn", "at_least"):
            if values.get(name) is not None:
                told[name] = values[name]
        for name in self.own_names:
            told[name] = values[name]
        if self.kind in _WANTED:
            wanted = _WANTED[self.kind][0]
            told[wanted] = values[wanted] == "yes"
        if self.kind == "tool":
            told["arguments"] = self._arguments(values)
        if self.kind == "order":
            told["tools"] = [row["tool"] for row in values["tools"] if row["tool"]]
            if len(told["tools"]) < 2:
                raise ScenarioRefusedError("tools", _("Choose at least two tools."))
        return told

    def _arguments(self, values: Mapping[str, Any]) -> list[JsonObject]:
        tool = self.agent.tool_by_name.get(values["tool"])
        found: list[JsonObject] = []
        for number, row in enumerate(values["arguments"]):
            if not row["name"] and not row["value"]:
                continue
            place = f"arguments.{number}.value"
            if not row["name"]:
                raise ScenarioRefusedError(place, _("Say which parameter this is about."))
            try:
                one = _argument(row, tool)
            except ValueRefusedError as error:
                raise ScenarioRefusedError(place, str(error)) from error
            # What is wrong with one row is said at that row, also where others before it are empty.
            single = {"kind": "tool", "tool": values["tool"], "arguments": [one]}
            try:
                make_sure_it_fits(read_expectation(single), self.scenario, self.agent)
            except (SpecError, ScenarioRefusedError) as error:
                if error.field.startswith("arguments"):
                    raise ScenarioRefusedError(place, str(error)) from error
                raise
            found.append(one)
        return found


def initial_of(expectation: Expectation) -> JsonObject:
    """What the form of its kind begins with."""
    told: JsonObject = to_json(expectation)
    kind = told["kind"]
    if kind in _WANTED:
        wanted = _WANTED[kind][0]
        told[wanted] = "yes" if told[wanted] else "no"
    if kind == "tool":
        told["arguments"] = [
            {
                "name": argument["name"],
                "how": argument["how"],
                "value": value_text(argument["value"], argument["how"]),
                "tolerance": f"{argument['tolerance']:g}" if argument.get("tolerance") else "",
            }
            for argument in told["arguments"]
        ]
    if kind == "order":
        told["tools"] = [{"tool": name} for name in told["tools"]]
    return told


def posted(data: Any, kind: str, agent: spec.Agent) -> JsonObject:
    """What somebody filled in up to now, to go on from; `add` is the name of rows of which one more is wanted."""
    found: JsonObject = {}
    fields = {**_fields(kind, agent, {}), **ExpectationForm.base_fields}
    for name, field in fields.items():
        found[name] = field.widget.value_from_datadict(data, {}, name)
    more = data.get("add", "")
    if isinstance(found.get(more), list):
        found[more] = [*found[more], {}]
    return found


def _argument(row: Mapping[str, str], tool: spec.Tool | None) -> JsonObject:
    """Raises ValueRefusedError."""
    name, how = row["name"], row["how"] or Comparing.EQUAL.value
    found = {"name": name, "how": how, "value": value_of(row["value"], name, how, tool)}
    if row["tolerance"] and how == Comparing.ABOUT:
        found["tolerance"] = tolerance_of(row["tolerance"], name)
    return found


def _place_of(field: str) -> tuple[str, str]:
    """("arguments", "row-1") of "arguments.1.value"."""
    name, _dot, rest = field.partition(".")
    number = rest.partition(".")[0]
    return name, f"row-{number}" if number.isdecimal() else ""


def _turns(kind: str, scenario: Scenario, now: Any) -> list[tuple[Any, str]]:
    anywhere = (
        _("in every turn, tokens and cost together")
        if kind == "below"
        else _("anywhere in the conversation")
    )
    choices: list[tuple[Any, str]] = [("", anywhere)]
    said = turns_said(scenario.messages) if scenario.kind == Scenario.Kind.SCRIPTED else []
    for number in range(1, turn_count(scenario) + 1):
        words = _("in turn %(turn)d") % {"turn": number}
        if said and "text" in said[number - 1][0]:
            text = shortened(" ".join(said[number - 1][0]["text"].split()), 60)
            words = _("in turn %(turn)d: “%(text)s”") % {"turn": number, "text": text}
        choices.append((number, words))
    if isinstance(now, int) and now >= len(choices):
        choices.append(
            (now, _("in turn %(turn)d, which the scenario does not have") % {"turn": now})
        )
    return choices


def _fields(kind: str, agent: spec.Agent, now: Mapping[str, Any]) -> dict[str, forms.Field]:
    """The fields that only this kind has, in the order in which they are read."""
    made: dict[str, forms.Field] = {}
    if kind in {"tool", "decision"}:
        made["tool"] = _choice(
            _("Tool"), _("Choose the tool."), _tools(agent, now.get("tool")), required=True
        )
    if kind in {"guideline", "decision"}:
        needed = kind == "guideline"
        empty = _("Choose a guideline") if needed else _("any guideline")
        choices = _guidelines(agent, now.get("guideline"))
        made["guideline"] = _choice(
            _("Guideline") if needed else _("Under"),
            _("Choose the guideline."),
            [("", empty), *choices],
            required=needed,
        )
    if kind == "decision":
        states = [(state.value, str(words)) for state, words in DECISIONS.items()]
        made["state"] = _choice(_("The tool"), _("Choose what it comes to."), states, required=True)
    if kind == "order":
        made["tools"] = _RowsField("tool", label=_("Tools, the first to run first"))
    made |= _texts(kind)
    if kind == "below":
        measures = [(measure.value, str(words)) for measure, words in _MEASURES.items()]
        made["measure"] = _choice(_("What"), _("Choose what."), measures, required=True)
        made["limit"] = forms.FloatField(
            label=_("stays below"),
            error_messages=dict.fromkeys(("required", "invalid"), str(_LIMIT)),
            widget=forms.TextInput({"inputmode": "decimal", "autocomplete": "off"}),
        )
    if kind in _WANTED:
        name, yes, no = _WANTED[kind]
        field = forms.ChoiceField(
            label=_("It"),
            choices=[("yes", yes), ("no", no)],
            initial="yes",
            widget=forms.RadioSelect,
        )
        made = {**made, name: field} if kind != "reply_contains" else {name: field, **made}
    if kind == "tool":
        made["arguments"] = _RowsField("name", "how", "value", "tolerance", label=_("With"))
    return made


def _texts(kind: str) -> dict[str, forms.Field]:
    match kind:
        case "reply_contains":
            name, label, help_text = (
                "text",
                _("Words"),
                _("Only what has to be there. Capitals and line breaks do not count."),
            )
        case "reply_matches":
            name, label = "pattern", _("Pattern")
            help_text = _("A regular expression, such as: \\b\\d{4}\\b")
        case "no_promise":
            name, label, help_text = "text", _("No reply promises"), _("Such as: a refund")
        case "judged":
            name, label = "statement", _("Of the reply it is true that")
            help_text = _("Such as: it names the fee before it asks for a confirmation.")
        case _:
            return {}
    field = forms.CharField(
        label=label,
        help_text=help_text,
        max_length=500 if name == "pattern" else 2_000,
        widget=forms.Textarea(
            {"dir": "auto", "rows": 2, "spellcheck": str(name != "pattern").lower()}
        ),
        error_messages={"required": _("Write what is to be looked for.")},
    )
    return {name: field}


def _choice(
    label: str, missing: str, choices: Sequence[tuple[str, str]], *, required: bool
) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        choices=choices,
        required=required,
        error_messages={
            "required": missing,
            "invalid_choice": _("“%(value)s” is not among the choices. ") + missing,
        },
    )


def _tools(agent: spec.Agent, now: Any) -> list[tuple[str, str]]:
    gone = [(now, _("%(tool)s (no longer there)") % {"tool": now})] if _is_gone(now, agent) else []
    return [("", _("Choose a tool")), *((name, name) for name in agent.tool_by_name), *gone]


def _is_gone(name: Any, agent: spec.Agent) -> bool:
    return isinstance(name, str) and bool(name) and name not in agent.tool_by_name


def _guidelines(agent: spec.Agent, now: Any) -> Iterable[tuple[str, str]]:
    choices = [(g.uid, guideline_words(g.uid, agent)) for g in agent.guidelines]
    if isinstance(now, str) and now and now not in agent.guideline_by_uid:
        choices.append((now, guideline_words(now, agent)))
    return choices


def parameter_names(agent: spec.Agent, tool: str) -> list[str]:
    """Of the tool, or of all tools while none is chosen."""
    tools = [agent.tool_by_name[tool]] if tool in agent.tool_by_name else list(agent.tools)
    return list(dict.fromkeys(p.name for found in tools for p in found.parameters))


def comparings() -> list[tuple[str, Promise]]:
    return [(how.value, words) for how, words in _COMPARING.items()]
