"""A recorded session as a document that another studio can read: everything that its audit pages show."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from studio.bridge import agent_spec
from studio.bridge.trail import part_key
from studio.models import (
    AgentVersion,
    Customer,
    Event,
    ModelCall,
    PromptPart,
    Session,
    Turn,
)
from studio.operations.branches import tree_of
from studio.operations.redaction import Redactor, Rules
from studio.operations.session_document import FORMAT, TRAIL, VERSION, columns
from studio.operations.session_redaction import redacted_document


class ExportRefusedError(Exception):
    """The session cannot be exported as it is now; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """`redactor` knows what was replaced, and replaces the same elsewhere."""

    document: JsonObject
    redactor: Redactor

    @property
    def text(self) -> str:
        return json.dumps(self.document, indent=1, ensure_ascii=False, default=_told) + "\n"


def export_session(
    session: Session, *, by: str, rules: Rules | None = None, tree: bool = False
) -> Exported:
    """The session along its line or, as a `tree`, with all branches. Raises ExportRefusedError.

    `by` is the name of the person who exports it. A constant number of queries for each branch.
    """
    chosen = tree_of(session) if tree else [session]
    turns = {row.pk: _turns(row, tree=tree) for row in chosen}
    _refuse_unfinished(row for rows in turns.values() for row in rows)
    versions = _versions(chosen, (row for rows in turns.values() for row in rows))
    document: JsonObject = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": timezone.now(),
        "exported_by": by,
        "studio": studio_name(),
        "session": session.pk,
        "agent": {"slug": session.agent.slug, "name": session.agent.name},
        "versions": [_version(row) for row in versions.values()],
        "customer": _columns(session.customer) if session.customer is not None else None,
        "sessions": [_session(row, turns[row.pk], versions, tree=tree) for row in chosen],
    }
    redactor = redactor_of(session, rules or Rules())
    document = redacted_document(document, redactor)
    document["redacted"] = redactor.counted
    document["parts"] = _packed(document["sessions"])
    return Exported(document=_fitting(document), redactor=redactor)


def redactor_of(session: Session, rules: Rules) -> Redactor:
    customer = session.customer
    if customer is None:
        return Redactor(rules)
    # What is known of a customer changes: turns said what was known then.
    root = session.root_id or session.pk
    turns = Turn.objects.filter(Q(session=root) | Q(session__root=root)).exclude(ran_with={})
    then = [kept.get("variables") for kept in turns.values_list("ran_with", flat=True)]
    known = {"now": customer.variables, "then": then}
    return Redactor(rules, name=customer.name, variables=known if rules.customer else None)


def studio_name() -> str:
    """The program that writes a document, with its version."""
    try:
        return f"Guideline Studio {version('guideline-studio')}"
    except PackageNotFoundError:  # run from its source
        return "Guideline Studio"


def _told(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"A session's document holds a {type(value).__name__}, no JSON.")


def _turns(session: Session, *, tree: bool) -> list[Turn]:
    rows = session.turns.all() if tree else session.line.turns
    return list(rows.select_related("version").defer("version__spec").order_by("number"))


def _refuse_unfinished(turns: Iterable[Turn]) -> None:
    for turn in turns:
        if not turn.is_over:
            raise ExportRefusedError(
                _("Turn %(number)d is still running: stop it, or wait for its end.")
                % {"number": turn.number}
            )


def _versions(sessions: Iterable[Session], turns: Iterable[Turn]) -> dict[int, AgentVersion]:
    """By pk, the one that was used last at the end."""
    each = [*(row.version for row in sessions), *(row.version for row in turns)]
    used = [version for version in each if version is not None]
    # Each where it was used last.
    return {row.pk: row for row in reversed(list({v.pk: v for v in reversed(used)}.values()))}


def _version(row: AgentVersion) -> JsonObject:
    value = agent_spec(row)
    return {"fingerprint": row.fingerprint, "number": row.number, "spec": value.to_json()}


def _columns(row: models.Model) -> JsonObject:
    return {field.name: getattr(row, field.attname) for field in columns(type(row))}


def _session(
    session: Session, turns: list[Turn], versions: dict[int, AgentVersion], *, tree: bool
) -> JsonObject:
    names = {pk: row.fingerprint for pk, row in versions.items()}
    numbers = {turn.pk: turn.number for turn in turns}
    events = session.events.all() if tree else session.line.events
    trails = {name: _trail(name, numbers) for name in TRAIL}
    if not tree:
        _in_one(session, trails["calls"])
    said = [
        {**_columns(row), "turn": _number(row, numbers)}
        for row in events.lasting().order_by("offset")
    ]
    return {
        **_columns(session),
        # It may have gone on since it was read.
        "next_turn": max([session.next_turn, *(number + 1 for number in numbers.values())]),
        "next_offset": max([session.next_offset, *(row["offset"] + 1 for row in said)]),
        "id": session.pk,
        "version": names.get(session.version_id or 0),
        "ancestry": session.ancestry if tree else [],
        "turns": [
            {
                **_columns(turn),
                "ran_with": _ran_with(turn),
                "version": names.get(turn.version_id or 0),
                **{name: rows[turn.pk] for name, rows in trails.items()},
            }
            for turn in turns
        ],
        "events": said,
    }


def _ran_with(turn: Turn) -> JsonObject:
    """Without the connection: which one a studio has is its own business."""
    return {name: value for name, value in turn.ran_with.items() if name != "connection"}


def _in_one(session: Session, calls: dict[int, list[JsonObject]]) -> None:
    """Along its line, what the session goes on from is part of it: so are calls whose outcome was repeated."""
    line = {str(number) for number, _turn, _offset in session.ancestry}
    for rows in calls.values():
        for row in rows:
            number, _slash, rest = row.get("served_from", "").partition("/")
            if number in line:
                row["served_from"] = f"{session.pk}/{rest}"


def _number(event: Event, numbers: dict[int, int]) -> int | None:
    return numbers.get(event.turn_id) if event.turn_id is not None else None


def _trail(name: str, turns: Iterable[int]) -> dict[int, list[JsonObject]]:
    """By the pk of the turn; prompts with their texts in place of keys."""
    found: dict[int, list[JsonObject]] = defaultdict(list)
    model: Any = TRAIL[name]
    rows = list(model.objects.filter(turn__in=list(turns)).order_by("pk"))
    words = _words(rows) if model is ModelCall else {}
    for row in rows:
        told = _columns(row)
        if model is ModelCall:
            told["messages"] = [
                [role, [words.get(key, "") for key in keys]] for role, keys in row.messages
            ]
            told["schema"] = words.get(row.schema_id)
        found[row.turn_id].append(told)
    return found


def _words(rows: Iterable[ModelCall]) -> dict[str | None, str]:
    keys = {key for row in rows for _role, parts in row.messages for key in parts}
    keys |= {row.schema_id for row in rows if row.schema_id is not None}
    return {key: part.text for key, part in PromptPart.objects.in_bulk(list(keys)).items()}


def _packed(sessions: Iterable[JsonObject]) -> dict[str, str]:
    """Prompts with keys in place of their texts; the texts by key, each once."""
    parts: dict[str, str] = {}

    def keyed(text: str) -> str:
        key = part_key(text)
        parts[key] = text
        return key

    for session in sessions:
        for turn in session["turns"]:
            for call in turn["model_calls"]:
                call["messages"] = [
                    [role, list(map(keyed, texts))] for role, texts in call["messages"]
                ]
                call["schema"] = None if call["schema"] is None else keyed(call["schema"])
    return parts


def _fitting(document: JsonObject) -> JsonObject:
    """Labels may be longer than what they stand for: no text is longer than its column."""
    name = document["agent"]["name"]
    document["agent"]["name"] = name[:120]
    if document["customer"] is not None:
        _cut(Customer, document["customer"])
    for session in document["sessions"]:
        _cut(Session, session)
        for turn in session["turns"]:
            _cut(Turn, turn)
            for part, model in TRAIL.items():
                for row in turn[part]:
                    _cut(model, row)
    return document


def _cut(model: type[models.Model], row: JsonObject) -> None:
    for field in columns(model):
        most = getattr(field, "max_length", None)
        if most and isinstance(row[field.name], str):
            row[field.name] = row[field.name][:most]
