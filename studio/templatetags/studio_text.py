"""Values of the tool shed in words: types, what a parameter needs, times."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.arguments import canonical_numbers, choices_of, plain_schema

register = template.Library()

_CHOICES_SHOWN = 6
_LINE = 120  # characters
_TYPES = {
    "string": gettext_lazy("text"),
    "integer": gettext_lazy("a whole number"),
    "number": gettext_lazy("a number"),
    "boolean": gettext_lazy("yes or no"),
    "array": gettext_lazy("a list"),
    "object": gettext_lazy("several fields"),
    "null": gettext_lazy("nothing"),
}
# Words that begin a sentence in capitals and stand inside one without; names keep theirs.
_LOWERED = frozenset("the a an any there they it this that no one some somebody someone".split())
_FORMATS = {
    "date": gettext_lazy("a date"),
    "date-time": gettext_lazy("a date and time"),
    "time": gettext_lazy("a time of day"),
    "duration": gettext_lazy("a duration"),
    "uuid": gettext_lazy("an identifier"),
    "email": gettext_lazy("an e-mail address"),
}


@register.filter
def after_when(condition: str) -> str:
    """A condition as it goes on after "When": authors also write it as a sentence of its own."""
    text = condition.strip()
    first, space, rest = text.partition(" ")
    if first.casefold() in ("when", "if") and rest:
        return rest
    return first.lower() + space + rest if first.casefold() in _LOWERED else text


@register.filter
def just_now(moment: datetime) -> bool:
    """Less than a minute ago."""
    return timezone.now() - moment < timedelta(minutes=1)


@register.filter
def type_words(schema: Mapping[str, Any]) -> str:
    """The type of a JSON Schema as an expert of the business reads it: "one of checking, savings"."""
    plain = canonical_numbers(plain_schema(dict(schema)))
    if plain.get("type") == "array":
        return _list_words(plain)
    if choices := choices_of(plain):
        return _choice_words(choices)
    if branches := plain.get("anyOf") or plain.get("oneOf"):
        words = [type_words(branch) for branch in branches if branch.get("type") != "null"]
        return _(" or ").join(dict.fromkeys(words))
    if plain.get("type") == "object" and plain.get("properties"):
        return _("fields %(names)s") % {"names": ", ".join(plain["properties"])}
    if plain.get("format") in _FORMATS:
        return str(_FORMATS[plain["format"]])
    return _type_names(plain.get("type", "")) + _bounds(plain)


def _list_words(plain: Mapping[str, Any]) -> str:
    items = plain.get("items")
    if not isinstance(items, dict):
        return str(_TYPES["array"])
    if choices := choices_of(items):
        return _("any of %(choices)s") % {"choices": _shown(choices)}
    return _("a list, each %(type)s") % {"type": type_words(items)}


def _choice_words(choices: tuple[Any, ...]) -> str:
    if len(choices) == 1:
        return _("always %(value)s") % {"value": _shown(choices)}
    return _("one of %(choices)s") % {"choices": _shown(choices)}


def _shown(choices: tuple[Any, ...]) -> str:
    more = len(choices) - _CHOICES_SHOWN
    shown = ", ".join(value_words(choice) for choice in choices[:_CHOICES_SHOWN])
    return (
        _("%(shown)s and %(count)d more") % {"shown": shown, "count": more} if more > 0 else shown
    )


def _type_names(types: str | list[str]) -> str:
    names = [types] if isinstance(types, str) else types
    return _(" or ").join(str(_TYPES.get(name, name or _("anything"))) for name in names)


def _bounds(plain: Mapping[str, Any]) -> str:
    low, high = plain.get("minimum"), plain.get("maximum")
    above, below = plain.get("exclusiveMinimum"), plain.get("exclusiveMaximum")
    if low is not None and high is not None:
        return _(" from %(low)s to %(high)s") % {"low": low, "high": high}
    for bound, words in (
        (low, _(" of at least %(bound)s")),
        (above, _(" above %(bound)s")),
        (high, _(" of at most %(bound)s")),
        (below, _(" below %(bound)s")),
    ):
        if bound is not None:
            return words % {"bound": bound}
    return ""


@register.filter
def value_words(value: Any) -> str:
    """A default or a choice as people write it."""
    match value:
        case str():
            return value
        case bool():
            return _("yes") if value else _("no")
        case _:
            return json.dumps(value, ensure_ascii=False)


@register.filter
def examples_words(examples: Sequence[Any]) -> str:
    return ", ".join(value_words(example) for example in examples)


@register.filter
def arguments_line(arguments: Mapping[str, Any]) -> str:
    """Arguments in one line, as lists of runs show them."""
    parts = (f"{name}: {value_words(value)}" for name, value in arguments.items())
    line = " ".join(", ".join(parts).split())
    if len(line) > _LINE:
        return line[: _LINE - 1] + "…"
    return line or _("without arguments")


_OPTIONS = ("hidden", "provides_choices", "significance", "examples")


@register.filter
def has_options(parameter: Mapping[str, Any]) -> bool:
    """Is there more to say of a parameter than its type and what it means?"""
    return (
        any(parameter.get(name) for name in _OPTIONS)
        or parameter.get("precedence") is not None
        or parameter.get("source", "any") != "any"
    )


@register.filter
def milliseconds(value: float | None) -> str:
    """A duration in milliseconds, in the unit that reads best."""
    if value is None:
        return "–"
    if value < 1000:
        return _("%(count)d ms") % {"count": round(value)}
    return _("%(count).1f s") % {"count": value / 1000}
