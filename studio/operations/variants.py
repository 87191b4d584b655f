"""Edited recordings: what a replay is to find in place of a recorded tool result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from engine.errors import ToolErrorKind, ToolFailure
from engine.tools.base import ToolResult
from engine.tools.mocked import failure_of
from engine.tools.recorded import RecordedCall
from engine.tools.results import checked
from engine.trail import CallState
from studio.models import Session, ToolCall, Variant

RESULT, EMPTY = "result", "empty"
KINDS: Final = (RESULT, EMPTY, *(kind.value for kind in ToolErrorKind))
"""Another result, an empty one of the same shape (`[]`, `{}`, `""`, null), or a failure of a kind."""

_LONGEST_TITLE = 200


class EditRefusedError(Exception):
    """Nothing was kept; `field` names what to change, the message says why and how."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def edited(calls: Sequence[RecordedCall], variant: Variant) -> tuple[RecordedCall, ...]:
    """The calls, in which those that the variant names (by uid) end as it says."""
    edits = {str(edit["call"]): edit for edit in variant.edits}
    return tuple(_edited(call, edits[call.uid]) if call.uid in edits else call for call in calls)


def _edited(call: RecordedCall, edit: JsonObject) -> RecordedCall:
    """Its record names no place: it is repeated from nowhere, and is nothing for others to repeat."""
    kind = edit["kind"]
    if kind in list(ToolErrorKind):
        error = failure_of(call.tool, ToolErrorKind(kind))
        return replace(call, record=replace(call.record, place="", result=None, error=error))
    data = _empty(call.record.result) if kind == EMPTY else edit.get("data")
    result = ToolResult(data=data).to_json()
    return replace(call, record=replace(call.record, place="", result=result, error=None))


def _empty(result: JsonObject | None) -> Any:
    data = (result or {}).get("data")
    return type(data)() if isinstance(data, list | dict | str) else None


@dataclass(frozen=True, kw_only=True)
class Edit:
    """How one recorded call is to end: `kind` is one of KINDS, `data` counts for RESULT only."""

    call: ToolCall
    kind: str
    data: Any = None


def save_variant(
    row: Variant, *, title: str | None = None, edits: Sequence[Edit] | None = None
) -> Variant:
    """Store a variant, new or changed; what is left out stays as it is. Raises EditRefusedError."""
    if edits is not None:
        row.edits = [_stored(edit, f"edits.{place}") for place, edit in enumerate(edits)]
    if title is not None or not row.title:
        row.title = _title(title or "", edits or (), new=row.pk is None)
    row.save()
    return row


def _title(given: str, edits: Sequence[Edit], *, new: bool) -> str:
    title = given.strip()
    if len(title) > _LONGEST_TITLE:
        raise EditRefusedError(
            _("At most %(most)d characters.") % {"most": _LONGEST_TITLE}, field="title"
        )
    if not title and new and edits:
        told = {"tool": edits[0].call.tool, "kind": edits[0].kind.replace("_", " ")}
        return (_("%(tool)s: %(kind)s") % told)[:_LONGEST_TITLE]
    if not title:
        raise EditRefusedError(_("Give it a name."), field="title")
    return title


def _stored(edit: Edit, field: str) -> JsonObject:
    if edit.kind not in KINDS:
        raise EditRefusedError(
            _("An edit is one of: %(kinds)s.") % {"kinds": ", ".join(KINDS)}, field=f"{field}.kind"
        )
    data = edit.data if edit.kind == RESULT else None
    if edit.kind == RESULT:
        try:
            data = checked(edit.call.tool, ToolResult(data=data)).data
        except ToolFailure as failure:
            raise EditRefusedError(
                _("This cannot be a result: %(why)s.") % {"why": failure.error.detail},
                field=f"{field}.data",
            ) from failure
    return {
        "turn": edit.call.turn.number,
        "call": edit.call.uid,
        "tool": edit.call.tool,
        "kind": edit.kind,
        "data": data,
    }


def save_edit(
    session: Session, edit: Edit, *, variant: Variant | None = None, title: str = "", by: str = ""
) -> Variant:
    """Keep an edit of one call, in this variant or in a new one of this title. Raises EditRefusedError."""
    if variant is None:
        new = Variant(session=session, created_by=by[:150])
        return save_variant(new, title=title, edits=[edit])
    stored = _stored(edit, "edits.0")
    others = [each for each in variant.edits if each["call"] != edit.call.uid]
    variant.edits = [*others, stored]
    variant.save(update_fields=["edits", "updated_at"])
    return variant


def remove_edit(variant: Variant, call: str) -> None:
    variant.edits = [edit for edit in variant.edits if edit["call"] != call]
    variant.save(update_fields=["edits", "updated_at"])


def recorded_call(session: Session, uid: str) -> ToolCall | None:
    """A call along the session's line that came to an end, so that its result can be edited."""
    calls = ToolCall.objects.filter(turn__in=session.line.turns.values("pk"), uid=uid)
    ended = calls.filter(state__in=[CallState.DONE.value, CallState.FAILED.value])
    row: ToolCall | None = ended.select_related("turn").defer("turn__checkpoint").first()
    return row
