"""A recorded conversation as one JSON document: what it consists of, and whether a given one can be read.

Rows of the trail stand in it column by column, as the database has them. What they rest on is stored once and named:
the agent's versions by fingerprint, the pieces of prompts by key. Nothing of it is believed that can be worked out.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any, Literal, NotRequired

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)
from typing_extensions import TypedDict

from engine import spec, trail
from engine.canonical import JsonObject, is_too_deep, without_nul
from engine.errors import ToolError
from engine.events import event_adapter
from engine.spec import Criticality, RelationKind
from engine.tools.base import Lifespan
from studio.models import (
    Adherence,
    Customer,
    Event,
    GuidelineMatch,
    ModelCall,
    Session,
    ToolCall,
    ToolDecision,
    ToolInsight,
    Turn,
)
from studio.models.trail import TrailRow
from studio.uploads import LARGEST_DOCUMENT

FORMAT = "guideline-studio-session"
VERSION = 1
"""1: the first."""

MEGABYTE = 1024 * 1024
MOST_PROBLEMS = 20
_TOLERANCE = timedelta(minutes=5)  # between the clocks of two studios

TRAIL: dict[str, type[TrailRow]] = {
    "matches": GuidelineMatch,
    "decisions": ToolDecision,
    "calls": ToolCall,
    "insights": ToolInsight,
    "adherence": Adherence,
    "model_calls": ModelCall,
}
"""The rows of a turn by their name in the document; each model has this name as its `related_name` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """`place` is the path inside the document, such as `sessions[0].turns[3].state`."""

    place: str
    message: str


class DocumentRefusedError(Exception):
    """The document cannot be imported; `problems` says where and why, at most MOST_PROBLEMS of them."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems[:MOST_PROBLEMS]
        words = (f"{one.place}: {one.message}" if one.place else one.message for one in problems)
        super().__init__(" ".join(words))


# --- What it consists of ---------------------------------------------------------------------------------------------


def _keep(value: Any, read: Callable[[Any], Any]) -> Any:
    read(value)
    return value


_as_given = WrapValidator(_keep)  # checked to be readable as that, and left as it stands


class _TransientGuideline(TypedDict):
    condition: str
    action: str
    criticality: Criticality


class _Control(TypedDict, total=False):
    mode: Literal["auto", "manual"] | None
    lifespan: Lifespan


class _Result(TypedDict):
    """A ToolResult as JSON."""

    data: Any
    metadata: JsonObject
    control: NotRequired[_Control]
    canned_responses: NotRequired[list[str]]
    canned_response_fields: NotRequired[JsonObject]
    guidelines: NotRequired[list[_TransientGuideline]]


# What a column holds, where its type says too little.
_EXACT: dict[tuple[type[models.Model], str], Any] = {
    (Turn, "state"): Literal["FINISHED", "FAILED", "STOPPED", "SUPERSEDED"],
    (Turn, "reply_source"): trail.ReplySource | None,
    (GuidelineMatch, "state"): trail.MatchState,
    (GuidelineMatch, "relation"): RelationKind | Literal[""],
    (ToolDecision, "state"): trail.DecisionState,
    (ToolDecision, "arguments"): list[trail.Argument],
    (ToolDecision, "missing"): list[str],
    (ToolDecision, "invalid"): list[str],
    (ToolCall, "state"): trail.CallState,
    (ToolCall, "guidelines"): list[str],
    (ToolCall, "result"): _Result | None,
    (ToolCall, "error"): ToolError | None,
    (ToolInsight, "kind"): trail.InsightKind,
    (ModelCall, "messages"): list[tuple[str, list[str]]],
}
_NOT_TOLD: dict[type[models.Model], frozenset[str]] = {
    # Of what a worker needs to go on with a turn; an imported one never goes on.
    Turn: frozenset({"session", "version", "checkpoint", "claims", "heartbeat_at", "enqueued_at"}),
    Event: frozenset({"session", "turn"}),
    ToolCall: frozenset({"turn", "arguments_key"}),  # worked out of the arguments
    # Who opened it and what it is connected to is this studio's own business.
    Session: frozenset(
        {
            *("agent", "version", "customer", "connection", "created_by", "root", "ancestry"),
            *("imported_from", "tool_mode"),
        }
    ),
    Customer: frozenset({"created_at"}),
}


def columns(model: type[models.Model]) -> list[Any]:
    """The fields of a model that stand in the document."""
    left_out = _NOT_TOLD.get(model, frozenset({"turn"}))
    return [
        field
        for field in model._meta.concrete_fields
        if not field.primary_key and field.name not in left_out
    ]


def _kind(model: type[models.Model], field: Any) -> Any:
    exact = _EXACT.get((model, field.name))
    if exact is not None:
        return Annotated[exact, _as_given]
    kind: Any
    match field:
        case models.DateTimeField():
            kind = AwareDatetime
        case models.BooleanField():
            kind = bool
        case models.PositiveSmallIntegerField():
            kind = Annotated[int, Field(ge=0, le=2**15 - 1)]
        case models.PositiveIntegerField():
            kind = Annotated[int, Field(ge=0, le=2**31 - 1)]
        case models.FloatField():
            kind = Annotated[float, Field(allow_inf_nan=False)]
        case models.JSONField():
            kind = {list: list[Any], dict: JsonObject}.get(field.default, Any)
        case models.CharField() if field.choices:
            blank = ("",) if field.blank else ()
            kind = Literal[tuple(str(value) for value, _label in field.choices) + blank]
        case models.CharField():
            kind = Annotated[str, Field(max_length=field.max_length)]
        case _:
            kind = str  # a text, or the key of a prompt's piece
    return kind | None if field.null else kind


def _shape(model: type[models.Model], **more: Any) -> Any:
    """A TypedDict of the model's columns; those that older studios may not have had may be left out."""
    fields = {}
    for field in columns(model):
        kind = _kind(model, field)
        fields[field.name] = NotRequired[kind] if _may_be_left_out(model, field) else kind
    make: Any = TypedDict
    made = make(f"{model.__name__}Shape", fields | more)
    made.__pydantic_config__ = ConfigDict(extra="forbid", strict=False)
    return made


def _list_of(shape: Any) -> Any:
    return list[shape]


def _may_be_left_out(model: type[models.Model], field: Any) -> bool:
    if field.null:
        return True
    told = isinstance(field, models.DateTimeField) or field.name.startswith("next_")
    return not told and (model, field.name) not in _EXACT and (field.has_default() or field.blank)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentPart(_Part):
    slug: str = Field(pattern=r"^[-a-zA-Z0-9_]+$", max_length=60)
    name: str = Field(min_length=1, max_length=120)


class VersionPart(_Part):
    """`fingerprint` is the version's name within the document; `spec` is engine.spec.Agent as JSON."""

    fingerprint: str
    number: int | None = Field(None, ge=1, le=2**31 - 1)
    spec: Annotated[spec.Agent, _as_given]


class Document(_Part):
    """`sessions` begins with the one that its branches go on from; `parts` are pieces of prompts by key."""

    format: Literal["guideline-studio-session"]
    version: int
    exported_at: AwareDatetime
    exported_by: str = Field(max_length=150)
    studio: str = Field(max_length=80)
    redacted: dict[str, int] = Field(default_factory=dict)
    session: int  # the id, within the document, of the one that was asked for
    agent: AgentPart
    versions: list[VersionPart]
    customer: Any = None
    parts: dict[str, str] = Field(default_factory=dict)
    sessions: list[Any] = Field(min_length=1)


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Document]:
    """With the columns of the rows, which are known once the models are loaded."""
    rows: dict[str, Any] = {
        name: NotRequired[_list_of(_shape(model))] for name, model in TRAIL.items()
    }
    turn = _shape(Turn, version=str | None, **rows)
    event = _shape(Event, turn=int | None)
    session = _shape(
        Session,
        id=int,
        version=str | None,
        ancestry=list[tuple[int, int, int]],
        turns=_list_of(turn),
        events=_list_of(event),
    )
    whole = type(
        "WholeDocument",
        (Document,),
        {
            "__annotations__": {
                "customer": _shape(Customer) | None,
                "sessions": Annotated[_list_of(session), Field(min_length=1)],
            }
        },
    )
    return TypeAdapter(whole)


# --- Reading one -----------------------------------------------------------------------------------------------------


def read_document(data: bytes | str) -> Document:
    """The document, checked as a whole; raises DocumentRefusedError. Nothing is stored."""
    value = _parsed(data)
    try:
        document = _adapter().validate_python(value)
    except ValidationError as error:
        raise DocumentRefusedError(*_problems(error)) from error
    problems = list(_wrong(document))
    if problems:
        raise DocumentRefusedError(*problems)
    return document


def _parsed(data: bytes | str) -> JsonObject:
    if len(data) > LARGEST_DOCUMENT:
        limit = LARGEST_DOCUMENT // MEGABYTE
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
    if value.get("version") != VERSION:
        message = _(
            "This studio reads version %(known)d, not %(given)s. Bring the studio up to date."
        )
        raise DocumentRefusedError(
            Problem(
                place="version",
                message=message % {"known": VERSION, "given": repr(value.get("version"))},
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
