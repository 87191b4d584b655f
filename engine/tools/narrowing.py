"""What two JSON Schemas of the same value accept differently, in sentences: what is refused now, and what is new.

For schemas as parameters have them (engine.arguments): types, choices, bounds, lists, objects, and unions of these.
What cannot be compared counts as narrower, so that nothing that breaks is taken for harmless.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from engine.arguments import canonical_numbers
from engine.canonical import JsonObject, canonical_json

_SAYS_NOTHING = frozenset({"title", "description", "default", "examples", "deprecated"})
_TYPES = {
    "string": "text",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "true and false",
    "array": "lists",
    "object": "objects",
    "null": "null",
    "": "anything",
}
_BOUNDS = {
    "minLength": ("at least", "characters"),
    "maxLength": ("at most", "characters"),
    "minItems": ("at least", "items"),
    "maxItems": ("at most", "items"),
    "minProperties": ("at least", "fields"),
    "maxProperties": ("at most", "fields"),
}
_RANGE = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_COMPARED = {*_BOUNDS, *_RANGE, "type", "enum", "const", "multipleOf", "uniqueItems"}
_NESTED = {"items", "prefixItems", "properties", "required", "additionalProperties"}
_CHOICES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`narrower` where a value that was accepted may be refused now."""

    narrower: bool
    sentence: str


def differences(before: JsonObject, after: JsonObject, subject: str = "It") -> list[Difference]:
    """How `after` accepts other values than `before`, as sentences about `subject`; empty where they say the same."""
    if canonical_json(_bare(before)) == canonical_json(_bare(after)):
        return []
    old, new = _branches(before), _branches(after)
    found: list[Difference] = []
    for branch in old:
        found += _against(branch, new, subject)
    found += _more_types(old, new, subject)
    return list(dict.fromkeys(found)) or [_narrower(f"{subject} is written in another way.")]


def _narrower(sentence: str) -> Difference:
    return Difference(narrower=True, sentence=sentence)


def _wider(sentence: str) -> Difference:
    return Difference(narrower=False, sentence=sentence)


def _bare(schema: Any) -> Any:
    """Without what bears on no value. Names of fields are no keywords."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bare: JsonObject = {}
    for key, value in schema.items():
        if key == "properties":
            bare[key] = {name: _bare(part) for name, part in value.items()}
        elif key in {"enum", "const", "required"}:
            bare[key] = value
        elif key not in _SAYS_NOTHING:
            bare[key] = _bare(value)
    return bare


def _branches(schema: JsonObject) -> list[JsonObject]:
    """The alternatives, each of one type; of no type where it accepts anything."""
    schema = _bare(schema)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            rest = {key: value for key, value in schema.items() if key != keyword}
            return [each for part in schema[keyword] for each in _branches({**rest, **part})]
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
        del schema["const"]
    types = schema.get("type", sorted({_type_of(choice) for choice in schema.get("enum", [])}))
    types = [types] if isinstance(types, str) else types
    return [_of_type(schema, name) for name in types] or [{**schema, "type": ""}]


def _of_type(schema: JsonObject, name: str) -> JsonObject:
    if "enum" not in schema:
        return {**schema, "type": name}
    choices = [each for each in schema["enum"] if _accepts(name, _type_of(each))]
    return {**schema, "type": name, "enum": choices}


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _accepts(wide: str, narrow: str) -> bool:
    return wide in {narrow, ""} or (wide, narrow) == ("number", "integer")


def _against(branch: JsonObject, others: Sequence[JsonObject], subject: str) -> list[Difference]:
    """One alternative of before against those of after: the closest of them counts."""
    fitting = [other for other in others if _accepts(other["type"], branch["type"])]
    if not fitting:
        return [_lost(branch["type"], others, subject)]
    candidates = [list(_in_one_type(branch, other, subject)) for other in fitting]
    return min(candidates, key=lambda found: sum(each.narrower for each in found))


def _lost(name: str, others: Sequence[JsonObject], subject: str) -> Difference:
    if name == "number" and any(other["type"] == "integer" for other in others):
        return _narrower(f"{subject} accepts whole numbers only.")
    if name == "":
        return _narrower(f"{subject} accepts {_listed_types(others)} only.")
    return _narrower(f"{subject} no longer accepts {_TYPES[name]}.")


def _more_types(
    old: Sequence[JsonObject], new: Sequence[JsonObject], subject: str
) -> list[Difference]:
    had = {branch["type"] for branch in old}
    more = [b for b in new if not any(_accepts(name, b["type"]) for name in had)]
    return [_wider(f"{subject} accepts {_listed_types(more)} too.")] if more else []


def _listed_types(branches: Sequence[JsonObject]) -> str:
    return " and ".join(dict.fromkeys(_TYPES[branch["type"]] for branch in branches))


def _in_one_type(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    yield from _choices(before, after, subject)
    if "enum" not in before and "enum" not in after:
        yield from _range(before, after, subject)
        for keyword in _BOUNDS:
            yield from _bound(keyword, before.get(keyword), after.get(keyword), subject)
        yield from _steps(before, after, subject)
        yield from _items(before, after, subject)
        yield from _properties(before, after, subject)
    yield from _others(before, after, subject)


def _choices(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    had, has = before.get("enum"), after.get("enum")
    if had is None and has is not None:
        yield _narrower(f"{subject} accepts {_listed(has)} only.")
    elif had is not None and has is None:
        yield _wider(f"{subject} is no longer limited to {_listed(had)}.")
    elif had is not None and has is not None:
        if gone := _without(had, has):
            yield _narrower(f"{subject} no longer accepts {_listed(gone)}.")
        if more := _without(has, had):
            yield _wider(f"{subject} accepts {_listed(more)} too.")


def _without(choices: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Of `choices` those that are not among `others`; to Python, 1 and true would be one."""
    known = {canonical_json(canonical_numbers(other)) for other in others}
    return [each for each in choices if canonical_json(canonical_numbers(each)) not in known]


def _range(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    for name, sign in (("minimum", 1), ("maximum", -1)):
        had, has = _end(before, name, sign), _end(after, name, sign)
        if had == has:
            continue
        if has is None:
            assert had is not None  # noqa: S101 - they differ
            yield _wider(f"{subject} may be {_beyond(had, sign)}.")
            continue
        words = f"{subject} must be {_within(has, sign)} now."
        yield _narrower(words) if had is None or has > had else _wider(words)


def _end(schema: JsonObject, name: str, sign: int) -> tuple[float, bool] | None:
    """(bound, exclusive) of which the larger is the tighter, whichever end it is."""
    exclusive = "exclusive" + name[0].upper() + name[1:]
    ends = [
        (schema[key] * sign, key == exclusive)
        for key in (name, exclusive)
        if isinstance(schema.get(key), int | float)
    ]
    return max(ends, default=None)


def _within(end: tuple[float, bool], sign: int) -> str:
    bound, exclusive = end[0] * sign, end[1]
    if exclusive:
        return f"{'more' if sign > 0 else 'less'} than {_number(bound)}"
    return f"at {'least' if sign > 0 else 'most'} {_number(bound)}"


def _beyond(end: tuple[float, bool], sign: int) -> str:
    bound, exclusive = end[0] * sign, end[1]
    word = "less" if sign > 0 else "more"
    return f"{_number(bound)} or {word}" if exclusive else f"{word} than {_number(bound)}"


def _number(value: float) -> str:
    return canonical_json(int(value) if float(value).is_integer() else value)


def _bound(keyword: str, had: Any, has: Any, subject: str) -> Iterator[Difference]:
    if had == has:
        return
    most, things = _BOUNDS[keyword]
    if has is None:
        yield _wider(f"{subject} need not have {most} {had} {things} any more.")
        return
    words = f"{subject} must have {most} {has} {things} now."
    tighter = had is None or (has > had) == keyword.startswith("min")
    yield _narrower(words) if tighter else _wider(words)


def _steps(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    had, has = before.get("multipleOf"), after.get("multipleOf")
    if had == has:
        return
    if has is None:
        yield _wider(f"{subject} need not be a multiple of {had} any more.")
        return
    words = f"{subject} must be a multiple of {has} now."
    fits = had is not None and (Fraction(str(had)) / Fraction(str(has))).denominator == 1
    yield _wider(words) if fits else _narrower(words)


def _items(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    of = "" if subject == "It" else f" of {subject[0].lower()}{subject[1:]}"
    had, has = before.get("prefixItems", []), after.get("prefixItems", [])
    if len(had) != len(has):
        yield _narrower(f"{subject} has {len(has)} fixed parts now, not {len(had)}.")
        return
    for number, (old, new) in enumerate(zip(had, has, strict=True), start=1):
        yield from differences(old, new, f"Part {number}{of}")
    yield from _any_or(before.get("items"), after.get("items"), f"Each item{of}")


def _any_or(before: Any, after: Any, subject: str) -> Iterator[Difference]:
    """Two schemas of which each may be absent, or true (anything) or false (nothing)."""
    had, has = ({} if each in (None, True) else each for each in (before, after))
    if had == has:
        return
    if has is False:
        yield _narrower(f"{subject} is no longer accepted.")
    elif had is False:
        yield _wider(f"{subject} is accepted now.")
    else:
        yield from differences(had, has, subject)


def _properties(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    of = "" if subject == "It" else f" of {subject[0].lower()}{subject[1:]}"
    had, has = before.get("properties", {}), after.get("properties", {})
    needed, needs = before.get("required", []), after.get("required", [])
    for name in has:
        field = f"Its field {name!r}{of}"
        if name not in had:
            new = f"{field} is new"
            yield _narrower(f"{new}, and required.") if name in needs else _wider(f"{new}.")
            further = before.get("additionalProperties")
            if further is not None:  # where it is, such a field was read already
                yield from _any_or(further, has[name], field)
            continue
        if (name in needed) != (name in needs):
            required = name in needs
            words = "is required now" if required else "may be left out now"
            yield Difference(narrower=required, sentence=f"{field} {words}.")
        yield from differences(had[name], has[name], field)
    for name in had:
        if name not in has:
            yield _narrower(f"Its field {name!r}{of} is gone.")
    for name in needs:
        if name not in has and name not in needed:
            yield _narrower(f"Its field {name!r}{of} is required now.")
    old, new_ = before.get("additionalProperties"), after.get("additionalProperties")
    yield from _any_or(old, new_, f"Each further field{of}")


def _others(before: JsonObject, after: JsonObject, subject: str) -> Iterator[Difference]:
    """What is written in words of its own, such as a pattern or a format."""
    if before.get("uniqueItems", False) != after.get("uniqueItems", False):
        once = bool(after.get("uniqueItems"))
        words = "must not name anything twice now" if once else "may name things twice now"
        yield Difference(narrower=once, sentence=f"{subject} {words}.")
    for keyword in sorted((before.keys() | after.keys()) - _COMPARED - _NESTED):
        had, has = before.get(keyword), after.get(keyword)
        if had == has:
            continue
        if has is None:
            yield _wider(f"{subject} no longer has the {keyword} {_shown(had)}.")
        else:
            yield _narrower(f"{subject} must have the {keyword} {_shown(has)} now.")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(_shown(value) for value in values[:_CHOICES_SHOWN])
    return shown + (" …" if len(values) > _CHOICES_SHOWN else "")
