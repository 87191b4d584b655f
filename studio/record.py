"""The record of a turn: `studio.audit.audit` as JSON text, and what has to be read back from it."""

import json
from datetime import datetime
from typing import Any

from engine.canonical import JsonObject


def record_json(audit: JsonObject) -> str:
    """The audit as indented JSON, times in ISO 8601: what the API answers, character for character readable."""
    return json.dumps(audit, indent=2, ensure_ascii=False, default=_told)


def moment(at: datetime | str) -> datetime:
    """A time of the audit, whether it comes from the database or from its JSON."""
    return at if isinstance(at, datetime) else datetime.fromisoformat(at)


def _told(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(
        f"The audit of a turn holds a {type(value).__name__}, which JSON has no form for."
    )
