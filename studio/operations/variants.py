"""Edited recordings: what a replay is to find in place of a recorded tool result."""

from collections.abc import Sequence
from dataclasses import replace
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
    """The edit was not kept; the message says why and what to do."""


def edited(calls: Sequence[RecordedCall], variant: Variant) -> tuple[RecordedCall, ...]:
    """The calls, in which those that the variant names (by uid) end as it says."""
    edits = {str(edit["call"]): edit for edit in variant.edits}
    return tuple(_edited(call, edits[call.uid]) if call.uid in edits else call for call in calls)


def _edited(call: RecordedCall, edit: JsonObject) -> RecordedCall:
    kind = edit["kind"]
    if kind in list(ToolErrorKind):
        error = failure_of(call.tool, ToolErrorKind(kind))
        return replace(call, record=replace(call.record, result=None, error=error))
    data = _empty(call.record.result) if kind == EMPTY else edit.get("data")
    result = ToolResult(data=data).to_json()
    return replace(call, record=replace(call.record, result=result, error=None))


def _empty(result: JsonObject | None) -> Any:
    data = (result or {}).get("data")
    return type(data)() if isinstance(data, list | dict | str) else None


def save_edit(
    session: Session,
    call: ToolCall,
    *,
    kind: str,
    data: Any = None,
    variant: Variant | None = None,
    title: str = "",
    by: str = "",
) -> Variant:
    """Keep an edit of one call, in this variant or a new one. Raises EditRefusedError."""
    if kind not in KINDS:
        raise EditRefusedError(_("An edit is one of: %(kinds)s.") % {"kinds": ", ".join(KINDS)})
    if kind == RESULT:
        try:
            data = checked(call.tool, ToolResult(data=data)).data
        except ToolFailure as failure:
            raise EditRefusedError(
                _("This cannot be a result: %(why)s.") % {"why": failure.error.detail}
            ) from failure
    if variant is None:
        variant = Variant(session=session, created_by=by[:150])
        variant.title = title.strip()[:_LONGEST_TITLE] or _("%(tool)s: %(kind)s") % {
            "tool": call.tool,
            "kind": kind,
        }
    elif title.strip():
        variant.title = title.strip()[:_LONGEST_TITLE]
    edit = {
        "turn": call.turn.number,
        "call": call.uid,
        "tool": call.tool,
        "kind": kind,
        "data": data if kind == RESULT else None,
    }
    variant.edits = [e for e in variant.edits if e["call"] != call.uid] + [edit]
    variant.save()
    return variant


def remove_edit(variant: Variant, call: str) -> None:
    variant.edits = [edit for edit in variant.edits if edit["call"] != call]
    variant.save(update_fields=["edits", "updated_at"])


def rename(variant: Variant, title: str) -> None:
    """Raises EditRefusedError."""
    title = title.strip()
    if not title:
        raise EditRefusedError(_("Give it a name."))
    if len(title) > _LONGEST_TITLE:
        raise EditRefusedError(_("At most %(most)d characters.") % {"most": _LONGEST_TITLE})
    variant.title = title
    variant.save(update_fields=["title", "updated_at"])


def recorded_call(session: Session, uid: str) -> ToolCall | None:
    """A call along the session's line that came to an end, so that its result can be edited."""
    calls = ToolCall.objects.filter(turn__in=session.line.turns.values("pk"), uid=uid)
    ended = calls.filter(state__in=[CallState.DONE.value, CallState.FAILED.value])
    row: ToolCall | None = ended.select_related("turn").defer("turn__checkpoint").first()
    return row
