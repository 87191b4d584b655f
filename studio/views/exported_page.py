"""A session as one HTML page that needs nothing else: no studio, no network, no script."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.template.loader import render_to_string

from engine.canonical import JsonObject
from studio.audit import audit
from studio.models import Session
from studio.operations.redaction import LABELS, Kind, Redactor, Rules
from studio.operations.session_export import Exported, export_session
from studio.operations.session_redaction import redacted_audit, redacted_event
from studio.views.conversation import LOOSE
from studio.views.ledger import Ledger, ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A turn with its audit and what is drawn of it, or an event outside of turns."""

    offset: int
    audit: JsonObject | None = None
    ledger: Ledger | None = None
    event: JsonObject | None = None


def exported_html(session: Session, *, by: str, rules: Rules) -> str:
    """The page, along the session's line. Raises ExportRefusedError where a turn is still running."""
    exported = export_session(session, by=by, rules=rules)
    items = sorted(_items(session, exported.redactor), key=lambda item: item.offset)
    context = {
        "document": exported.document,
        "session": exported.document["sessions"][0],
        "exported_at": exported.document["exported_at"],
        "items": items,
        "turns": [item for item in items if item.audit is not None],
        "prompts": not rules.prompts,
        "left_out": left_out(exported),
    }
    return render_to_string("sessions/export.html", context)


def left_out(exported: Exported) -> list[tuple[str, int]]:
    """What was replaced, in words, with the number of different values."""
    counted = exported.redactor.counted
    return [(str(LABELS[Kind(kind)]), count) for kind, count in counted.items()]


def _items(session: Session, redactor: Redactor) -> Iterator[Item]:
    prompts = not redactor.rules.prompts
    turns = session.line.turns.select_related("version", "session").defer(
        "version__spec", "checkpoint"
    )
    for turn in turns.order_by("number"):
        record = redacted_audit(audit(turn, prompts=prompts), redactor)
        yield Item(offset=turn.first_offset, audit=record, ledger=ledger(record))
    for row in session.line.events.filter(turn=None, kind__in=LOOSE).order_by("offset"):
        told = {
            "offset": row.offset,
            "kind": row.kind,
            "source": row.source,
            "data": row.data,
            "created_at": row.created_at,
        }
        yield Item(offset=row.offset, event=redacted_event(told, redactor))
