"""What changed between two versions of a template for those who configure it and those who call it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from engine.tools.narrowing import Difference, differences
from engine.tools.template import Report, TemplateField

Group: TypeAlias = Literal["user", "tool"]
Kind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field of UserParameters ("user") or ToolParameters ("tool") that is another.

    `breaking` where what was right before may not be right now: a configuration, a call, an example. `because` says
    in sentences what is different, what breaks first.
    """

    group: Group
    name: str
    kind: Kind
    breaking: bool
    because: str


def field_changes(before: Report, after: Report) -> tuple[FieldChange, ...]:
    """In the order of `after`, the configuration first; what is gone comes last of its group."""
    return (
        *_in_group("user", before.user_parameters, after.user_parameters),
        *_in_group("tool", before.tool_parameters, after.tool_parameters),
    )


def _in_group(
    group: Group, before: Sequence[TemplateField], after: Sequence[TemplateField]
) -> Iterator[FieldChange]:
    had = {field.name: field for field in before}
    has = {field.name: field for field in after}
    for name, field in has.items():
        if name not in had:
            yield _added(group, field)
        elif found := list(_different(had[name], field)):
            # What breaks comes first, the rest as it was found.
            found.sort(key=lambda difference: not difference.narrower)
            yield FieldChange(
                group=group,
                name=name,
                kind="changed",
                breaking=found[0].narrower,
                because=" ".join(difference.sentence for difference in found),
            )
    for name in had:
        if name not in has:
            yield _removed(group, name)


def _added(group: Group, field: TemplateField) -> FieldChange:
    if not field.required:
        because = "It may be left out."
    elif group == "user":
        because = "It is required, and has no value yet."
    else:
        because = "It is required: a call without it is refused."
    return FieldChange(
        group=group, name=field.name, kind="added", breaking=field.required, because=because
    )


def _removed(group: Group, name: str) -> FieldChange:
    if group == "user":
        because = "The value that is set for it is dropped."
    else:
        because = "Calls, examples and instructions that name it no longer fit."
    return FieldChange(
        group=group, name=name, kind="removed", breaking=group == "tool", because=because
    )


def _different(before: TemplateField, after: TemplateField) -> Iterator[Difference]:
    if after.required and not before.required:
        yield Difference(narrower=True, sentence="It is required now.")
    elif before.required and not after.required:
        yield _harmless("It may be left out now.")
    yield from differences(before.schema, after.schema)
    yield from _default(before, after)
    if after.description != before.description:
        yield _harmless("Its description is another.")
    if after.secret and not before.secret:
        yield _harmless("It is kept secret now.")
    elif before.secret and not after.secret:
        yield _harmless("It is no longer marked as a secret.")


def _default(before: TemplateField, after: TemplateField) -> Iterator[Difference]:
    had, has = (before.has_default, before.default), (after.has_default, after.default)
    if had == has and type(before.default) is type(after.default):
        return
    if before.secret or after.secret:
        yield _harmless("Its default is another.")
    elif not after.has_default:
        yield _harmless("It has no default any more.")
    elif not before.has_default:
        yield _harmless(f"Its default is {_shown(after.default)}.")
    else:
        yield _harmless(f"Its default is {_shown(after.default)}, not {_shown(before.default)}.")


def _harmless(sentence: str) -> Difference:
    return Difference(narrower=False, sentence=sentence)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"
