"""Replays: recorded sessions played again against a version, and what was different, turn by turn."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field, Strict

from engine.canonical import JsonObject
from engine.replaying import Difference
from studio.access import May, load_replay, load_replayed_turn, load_session, require
from studio.api.auth import caller
from studio.api.problems import conflict, invalid
from studio.api.reading import Body, Page, Paging
from studio.bridge import agent_spec
from studio.difference_words import Names, sentence
from studio.expectation_words import sentence as expected_words
from studio.models import AcceptedChange, ModelConnection, Replay, ReplayedTurn, Session
from studio.operations import lanes
from studio.operations.accepting import AcceptRefusedError, accept
from studio.operations.played_sessions import forget
from studio.operations.replays import (
    CREW,
    ReplayRefusedError,
    start_replay,
    verdicts_of,
)
from studio.operations.scenarios import draft_of, read

router = Router(tags=["replays"])

MOST_SESSIONS = 1_000
_Version = Annotated[int, Strict()] | Annotated[str, Strict(), Field(max_length=20)]


class NewReplay(Body):
    against: _Version = Field("draft", description="“draft”, “published” or a number")
    model: Literal["recorded", "live"] = Field(
        "recorded",
        description="recorded asks nothing: what the record does not hold stops the turn",
    )
    tools: Literal["recorded", "live", "mock"] = Field(
        "recorded", description="live runs tools, but none that changes something"
    )
    until_it_differs: bool = Field(
        False, description="With a recorded model: ask the live one where the record has no answer"
    )
    free_running: bool = Field(
        False, description="Each turn on what the replay itself has said, not on the record"
    )
    connection: str | None = Field(
        None, description="The name of the live model's connection; else that of each session"
    )
    variant: int | None = Field(None, description="An edited recording of the one session")
    cap: int = Field(0, ge=0, le=10**12, description="Tokens; 0 for no cap")


class NewReplayOfSessions(NewReplay):
    sessions: list[Annotated[int, Strict(), Field(ge=1, lt=2**63)]] = Field(
        min_length=1, max_length=MOST_SESSIONS
    )


class Resuming(Body):
    cap: int | None = Field(None, ge=0, le=10**12, description="Another cap; 0 for none")


class Acceptance(Body):
    differences: list[int] | None = Field(
        None, description="Their places in the turn's list, from 0; left out, all"
    )
    reason: str


class DifferenceOut(BaseModel):
    kind: str = Field(
        description="confirmation, guideline, decision, argument, result, handed_over, limit, failure, response, "
        "adherence or reply"
    )
    guideline: str
    tool: str
    parameter: str
    arguments: dict[str, Any] = Field(description="Those that tell calls of one tool apart")
    before: Any
    after: Any
    before_because: str
    after_because: str
    sentence: str


class ReplayedTurnOut(BaseModel):
    session: int
    number: int
    verdict: str = Field(
        description="same, changed, accepted, failed or impossible; empty while it waits"
    )
    reason: str = Field(description="Why it failed or could not be replayed")
    played: int | None = Field(description="The session that holds the turn as it was played")
    duration_ms: int
    prompt_tokens: int
    completion_tokens: int
    differences: list[DifferenceOut]


class ReplaySummary(BaseModel):
    id: int
    agent: str
    state: str = Field(description="queued, running, finished, failed or stopped")
    paused: bool
    capped: bool = Field(description="It ended because its cap was reached")
    error: str
    against: str
    version: int | None = Field(description="None for a draft")
    fingerprint: str
    model: str
    tools: str
    until_it_differs: bool
    free_running: bool
    connection: str | None
    variant: int | None
    cap: int
    total: int = Field(description="Turns")
    started_by: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ReplayOut(ReplaySummary):
    done: int
    tokens: int
    verdicts: dict[str, int] = Field(description="Turns by verdict")
    turns: list[ReplayedTurnOut] = Field(description="By session and number: a page of them")
    count: int = Field(description="Turns that `turns` is a page of")


class AcceptedOut(BaseModel):
    id: int
    reason: str
    accepted_by: str
    accepted_at: datetime
    expectation: str | None = Field(description="What is expected since, as a sentence")


class Chosen(Paging):
    verdict: Literal["same", "changed", "accepted", "failed", "impossible"] | None = None


_FIRST_PAGE = Chosen(limit=50, offset=0)


class OfAgent(Paging):
    agent: str | None = None


@router.get("/replays", response=Page[ReplaySummary])
def list_replays(request: HttpRequest, chosen: Query[OfAgent]) -> JsonObject:
    require(caller(request), May.VIEW)
    rows = _summaries(Replay.objects.all())
    if chosen.agent is not None:
        rows = rows.filter(agent__slug=chosen.agent)
    return chosen.page(rows, _summary)


@router.post("/replays", response={202: ReplayOut})
def create_replay(request: HttpRequest, body: NewReplayOfSessions) -> Status[JsonObject]:
    """Replay sessions of one agent together."""
    person = caller(request)
    require(person, May.TEST)
    rows = Session.objects.select_related("agent", "connection").filter(pk__in=body.sessions)
    found = {row.pk: row for row in rows}
    missing = [str(pk) for pk in body.sessions if pk not in found]
    if missing:
        raise invalid(
            (
                "sessions",
                _("There is no session %(numbers)s.") % {"numbers": ", ".join(missing[:20])},
            )
        )
    return _start(request, [found[pk] for pk in body.sessions], body)


@router.get("/sessions/{int:session_id}/replays", response=Page[ReplaySummary])
def list_session_replays(
    request: HttpRequest, session_id: int, paging: Query[Paging]
) -> JsonObject:
    session = load_session(caller(request), session_id)
    of_session = ReplayedTurn.objects.filter(session=session).values("replay")
    return paging.page(_summaries(Replay.objects.filter(pk__in=of_session)), _summary)


@router.post("/sessions/{int:session_id}/replays", response={202: ReplayOut})
def create_session_replay(
    request: HttpRequest, session_id: int, body: NewReplay
) -> Status[JsonObject]:
    """Replay one session; `GET /replays/{id}` says how far it is."""
    session = load_session(caller(request), session_id, May.TEST)
    return _start(request, [session], body)


@router.get("/replays/{int:replay_id}", response=ReplayOut)
def read_replay(request: HttpRequest, replay_id: int, chosen: Query[Chosen]) -> JsonObject:
    """How far it is, and its turns; those of one `verdict`, if it is named."""
    return _shown(load_replay(caller(request), replay_id), chosen)


@router.post("/replays/{int:replay_id}/pause", response=ReplayOut)
def pause_replay(request: HttpRequest, replay_id: int) -> JsonObject:
    row = load_replay(caller(request), replay_id, May.TEST)
    if not lanes.pause(row):
        raise conflict(_("It is over, or paused already."))
    return _shown(load_replay(caller(request), replay_id), _FIRST_PAGE)


@router.post("/replays/{int:replay_id}/resume", response={202: ReplayOut})
def resume_replay(
    request: HttpRequest, replay_id: int, body: Resuming | None = None
) -> Status[JsonObject]:
    """Go on after a pause, or with what is left where it was stopped; what is done stays done."""
    row = load_replay(caller(request), replay_id, May.TEST)
    if not lanes.go_on(CREW, row, cap=body.cap if body is not None else None):
        raise conflict(_("Nothing of it is left to be replayed."))
    return Status(202, _shown(load_replay(caller(request), replay_id), _FIRST_PAGE))


@router.post("/replays/{int:replay_id}/cancel", response=ReplayOut)
def cancel_replay(request: HttpRequest, replay_id: int) -> JsonObject:
    row = load_replay(caller(request), replay_id, May.TEST)
    if not lanes.cancel(CREW, row):
        raise conflict(_("It is over already."))
    return _shown(load_replay(caller(request), replay_id), _FIRST_PAGE)


@router.delete("/replays/{int:replay_id}", response={204: None})
def delete_replay(request: HttpRequest, replay_id: int) -> Status[None]:
    """With the turns that it played; 409 while it runs."""
    row = load_replay(caller(request), replay_id, May.TEST)
    if not row.is_over:
        raise conflict(_("It is still running: cancel it first."))
    forget(row)
    return Status(204, None)


@router.post(
    "/replays/{int:replay_id}/turns/{int:session_id}/{int:number}/accept",
    response=list[AcceptedOut],
)
def accept_changes(
    request: HttpRequest, replay_id: int, session_id: int, number: int, body: Acceptance
) -> list[JsonObject]:
    """What differs in the turn is right; where it can be said so, it is expected from now on."""
    person = caller(request)
    cell = load_replayed_turn(person, replay_id, session_id, number, May.TEST)
    try:
        rows = accept(cell, body.differences, reason=body.reason, by=person.get_username())
    except AcceptRefusedError as error:
        raise invalid((error.field, error)) from error
    return [_accepted(row, cell) for row in rows]


def _start(
    request: HttpRequest, sessions: Sequence[Session], body: NewReplay
) -> Status[JsonObject]:
    given = body.model_dump(exclude={"sessions", "connection", "variant"})
    variant = None
    if body.variant is not None:
        variant = sessions[0].variants.filter(pk=body.variant).first()
        if variant is None:
            raise invalid(("variant", _("The session has no such variant.")))
    try:
        row = start_replay(
            sessions,
            **given,
            connection=_connection(body.connection),
            variant=variant,
            by=caller(request).get_username(),
        )
    except ReplayRefusedError as refusal:
        raise invalid((refusal.field, refusal)) from refusal
    return Status(202, _shown(load_replay(caller(request), row.pk), _FIRST_PAGE))


def _connection(name: str | None) -> ModelConnection | None:
    if name is None:
        return None
    row = ModelConnection.objects.filter(name=name).first()
    if row is None:
        raise invalid(
            ("connection", _("There is no model connection “%(name)s”.") % {"name": name})
        )
    return row


def _summaries(rows: Any) -> Any:
    return rows.select_related("agent", "version", "connection").defer("version__spec")


def _summary(row: Replay) -> JsonObject:
    plain = {name: getattr(row, name) for name in _PLAIN}
    return plain | {
        "agent": row.agent.slug,
        "version": row.version.number,
        "fingerprint": row.version.fingerprint,
        "connection": row.connection.name if row.connection is not None else None,
        "variant": row.variant_id,
    }


_TOLD = {"agent", "version", "fingerprint", "connection", "variant"}
_PLAIN = ["id", *(name for name in ReplaySummary.model_fields if name not in {*_TOLD, "id"})]


def _shown(row: Replay, chosen: Chosen) -> JsonObject:
    turns = row.turns.select_related("turn__version").order_by("session_id", "number")
    turns = turns.defer("turn__version__spec", "turn__checkpoint")
    if chosen.verdict is not None:
        turns = turns.filter(verdict=chosen.verdict)
    page = chosen.page(turns, lambda cell: _turn(row, cell))
    verdicts = verdicts_of(row)
    return _summary(row) | {
        "done": sum(verdicts.values()),
        "tokens": lanes.spent(CREW, row),
        "verdicts": verdicts,
        "turns": page["items"],
        "count": page["count"],
    }


def _turn(row: Replay, cell: ReplayedTurn) -> JsonObject:
    found = []
    if cell.differences and cell.turn.version is not None:
        names = Names(before=agent_spec(cell.turn.version), after=agent_spec(row.version))
        found = [
            {
                **{name: each[name] for name in DifferenceOut.model_fields if name in each},
                "sentence": sentence(Difference.read(each), names),
            }
            for each in cell.differences
        ]
    return {
        "session": cell.session_id,
        "played": cell.played_id,
        "differences": found,
        **{name: getattr(cell, name) for name in _OF_TURN},
    }


_OF_TURN = ("number", "verdict", "reason", "duration_ms", "prompt_tokens", "completion_tokens")


def _accepted(row: AcceptedChange, cell: ReplayedTurn) -> JsonObject:
    expected = None
    if row.expectation is not None:
        expected = expected_words(read(row.expectation), draft_of(cell.session.agent))
    return {
        "id": row.pk,
        "reason": row.reason,
        "accepted_by": row.accepted_by,
        "accepted_at": row.accepted_at,
        "expectation": expected,
    }
