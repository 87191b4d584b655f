"""A session's document on its way in: read as a whole, and everything that is wrong with it named by its place."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import ValidationError

from engine.canonical import JsonObject, is_too_deep, without_nul
from engine.events import event_adapter
from studio.operations.session_document import (
    FORMAT,
    MOST_PROBLEMS,
    READABLE,
    Document,
    DocumentRefusedError,
    Problem,
    document_adapter,
)
from studio.uploads import LARGEST_DOCUMENT

_MEGABYTE = 1024 * 1024
_TOLERANCE = timedelta(minutes=5)  # between the clocks of two studios


def read_document(data: bytes | str) -> Document:
    """The document, checked as a whole; raises DocumentRefusedError. Nothing is stored."""
    value = _parsed(data)
    try:
        document = document_adapter().validate_python(value)
    except ValidationError as error:
        raise DocumentRefusedError(*_problems(error)) from error
    problems = list(_wrong(document))
    if problems:
        raise DocumentRefusedError(*problems)
    return document


def _parsed(data: bytes | str) -> JsonObject:
    if len(data) > LARGEST_DOCUMENT:
        limit = LARGEST_DOCUMENT // _MEGABYTE
        raise _refused(_("The document has more than %(limit)d MB.") % {"limit": limit})
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
        text = json.dumps(value)
        json.dumps(value, ensure_ascii=False).encode()  # halves of characters cannot be stored
    except (ValueError, RecursionError) as error:
        raise _refused(_("This is not JSON: %(why)s") % {"why": error}) from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise _refused(
            _(
                "This is no exported session: it does not say “format”: “%(format)s”. Choose the JSON that a "
                "session’s export gave."
            )
            % {"format": FORMAT}
        )
    if value.get("version") not in READABLE:
        message = _(
            "This studio reads versions up to %(known)d, not %(given)s. Bring the studio up to date."
        )
        raise DocumentRefusedError(
            Problem(
                place="version",
                message=message % {"known": max(READABLE), "given": repr(value.get("version"))},
            )
        )
    if without_nul(text) != text:
        raise _refused(_("The character U+0000 cannot be stored."))
    if is_too_deep(value):
        raise _refused(_("A value is nested too deeply."))
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _refused(message: str) -> DocumentRefusedError:
    return DocumentRefusedError(Problem(place="", message=message))


def _problems(error: ValidationError) -> Iterator[Problem]:
    for found in error.errors(include_url=False, include_context=False)[:MOST_PROBLEMS]:
        missing = found["type"] == "missing"
        message = _("This is missing.") if missing else str(found["msg"])
        yield Problem(place=_place(found["loc"]), message=message)


def _place(steps: Iterable[int | str]) -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path


def _wrong(document: Document) -> Iterator[Problem]:
    """What the parts say of one another."""
    known = {version.fingerprint for version in document.versions}
    ids: set[int] = set()
    for place, session in enumerate(document.sessions):
        where = f"sessions[{place}]"
        if session["id"] in ids:
            yield Problem(place=f"{where}.id", message=_("Another session has this id."))
        for gone_on_from, _turn, _offset in session["ancestry"]:
            if gone_on_from not in ids:
                message = _("No session before this one has the id %(id)d.") % {"id": gone_on_from}
                yield Problem(place=f"{where}.ancestry", message=message)
        ids.add(session["id"])
        yield from _wrong_version(session, where, known)
        yield from _wrong_turns(session, where, known, document.parts)
        yield from _wrong_events(session, where)
    if document.session not in ids:
        message = _("No session has the id %(id)d.") % {"id": document.session}
        yield Problem(place="session", message=message)


def _wrong_version(row: JsonObject, where: str, known: set[str]) -> Iterator[Problem]:
    if row["version"] is not None and row["version"] not in known:
        message = _("The document has no version “%(name)s”.") % {"name": row["version"]}
        yield Problem(place=f"{where}.version", message=message)


def _wrong_turns(
    session: JsonObject, where: str, known: set[str], parts: dict[str, str]
) -> Iterator[Problem]:
    yield from _twice(session["turns"], "number", f"{where}.turns")
    for place, turn in enumerate(session["turns"]):
        here = f"{where}.turns[{place}]"
        yield from _wrong_version(turn, here, known)
        if not 1 <= turn["number"] < session["next_turn"]:
            message = _("The session's “next_turn” is not above it.")
            yield Problem(place=f"{here}.number", message=message)
        yield from _twice(turn.get("calls", ()), "uid", f"{here}.calls")
        for at, call in enumerate(turn.get("model_calls", ())):
            yield from _wrong_parts(call, f"{here}.model_calls[{at}]", parts)


def _wrong_parts(call: JsonObject, where: str, parts: dict[str, str]) -> Iterator[Problem]:
    for at, (_role, keys) in enumerate(call["messages"]):
        for key in keys:
            if key not in parts:
                message = _("The document has no part “%(key)s”.") % {"key": key}
                yield Problem(place=f"{where}.messages[{at}]", message=message)
    schema = call.get("schema")
    if schema is None:
        return
    try:
        json.loads(parts[schema])
    except (KeyError, ValueError):
        message = _("The document has no part “%(key)s” that is JSON.") % {"key": schema}
        yield Problem(place=f"{where}.schema", message=message)


def _wrong_events(session: JsonObject, where: str) -> Iterator[Problem]:
    yield from _twice(session["events"], "offset", f"{where}.events")
    numbers = {turn["number"] for turn in session["turns"]}
    for place, event in enumerate(session["events"]):
        here = f"{where}.events[{place}]"
        if event["turn"] is not None and event["turn"] not in numbers:
            message = _("The session has no turn %(number)d.") % {"number": event["turn"]}
            yield Problem(place=f"{here}.turn", message=message)
        if not 1 <= event["offset"] < session["next_offset"]:
            message = _("The session's “next_offset” is not above it.")
            yield Problem(place=f"{here}.offset", message=message)
        yield from _wrong_event(event, here)


def _wrong_event(event: JsonObject, where: str) -> Iterator[Problem]:
    value = {**event["data"], "kind": event["kind"], "source": event["source"]}
    try:
        read: Any = event_adapter().validate_python(value)
    except ValidationError as error:
        for problem in _problems(error):
            yield Problem(place=f"{where}.data.{problem.place}", message=problem.message)
        return
    asked_at = getattr(read, "asked_at", None)
    if asked_at is None:
        return
    # A call that awaits a word must not await it for ever.
    if asked_at.tzinfo is None or asked_at > timezone.now() + _TOLERANCE:
        yield Problem(
            place=f"{where}.data.asked_at", message=_("It was asked for before now, in UTC.")
        )


def _twice(rows: Iterable[JsonObject], name: str, where: str) -> Iterator[Problem]:
    counted = Counter(row[name] for row in rows)
    for value, count in counted.items():
        if count > 1:
            message = _("Several have the %(name)s %(value)s.") % {"name": name, "value": value}
            yield Problem(place=where, message=message)
