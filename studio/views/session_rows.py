"""What a list shows of each session: how it began, how it stands, what it used, and where the words were found."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Max, Min, OuterRef, QuerySet, Subquery, Sum
from django.urls import reverse

from engine.canonical import JsonObject
from studio.costs import costs_of_sessions
from studio.models import Event, Flag, Session, Turn
from studio.session_filters import Filters
from studio.session_search import Asked, saying
from studio.views.conversation import TURNS_AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The last message of the session in which the words were found, as (piece, is it a hit); `more` found it too."""

    address: str
    source: str
    pieces: list[tuple[str, bool]]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    session: Session
    began: str
    last_state: str
    turns: int  # along its line
    tokens: int  # of its own turns, as the time is
    milliseconds: float | None
    cost: JsonObject  # of its own turns, of studio.costs
    flags: int  # open ones
    hit: Hit | None = None
    turn: int | None = None  # the first that fits what is asked of turns

    @property
    def turn_address(self) -> str:
        return place_of(self.session, self.turn, f"turn-{self.turn}")


def rows_of(keys: Iterable[int], filters: Filters | None = None) -> list[Row]:
    """The sessions with these keys, the latest first. A constant number of queries, however many."""
    keys = list(keys)
    found = list(_with_words(keys))
    used, costs, flags = _used(keys), costs_of_sessions(keys), _open_flags(keys)
    hits = _hits(found, filters.asked) if filters else {}
    turns = _turns(keys, filters) if filters else {}
    return [
        Row(
            session=one,
            began=one.began or "",
            last_state=one.last_state or "",
            turns=one.next_turn - 1,
            flags=flags.get(one.pk, 0),
            cost=costs[one.pk],
            hit=hits.get(one.pk),
            turn=turns.get(one.pk),
            **used.get(one.pk, {"tokens": 0, "milliseconds": None}),
        )
        for one in found
    ]


def _with_words(keys: Iterable[int]) -> QuerySet[Any]:
    said = Event.objects.filter(session=OuterRef("pk"), kind="message").order_by("offset")
    turns = Turn.objects.filter(session=OuterRef("pk")).order_by("-number")
    sessions = Session.objects.filter(pk__in=keys).order_by("-last_event_at", "-pk")
    return (
        sessions.select_related("agent", "version", "customer")
        .defer("version__spec")
        .annotate(
            began=Subquery(said.values("data__text")[:1]),
            last_state=Subquery(turns.values("state")[:1]),
        )
    )


def _used(keys: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = (
        Turn.objects.filter(session__in=keys)
        .values("session")
        .annotate(
            tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
            took=Sum(F("finished_at") - F("created_at")),
        )
        .order_by()
    )
    return {
        row["session"]: {
            "tokens": row["tokens"],
            "milliseconds": row["took"] / timedelta(milliseconds=1) if row["took"] else None,
        }
        for row in rows
    }


def _open_flags(keys: Iterable[int]) -> dict[int, int]:
    rows = Flag.objects.filter(event__session__in=keys, closed_at=None).order_by()
    return dict(rows.values_list("event__session").annotate(count=Count("pk")))


def _turns(keys: Iterable[int], filters: Filters) -> dict[int, int]:
    if not filters.concern_turns:
        return {}
    rows = filters.turns().filter(session__in=keys).order_by()
    return dict(rows.values_list("session").annotate(first=Min("number")))


def _hits(sessions: Iterable[Session], asked: Asked) -> dict[int, Hit]:
    if not asked:
        return {}
    by_key = {session.pk: session for session in sessions}
    found = saying(asked).filter(session__in=by_key).order_by()
    counted = found.values("session").annotate(last=Max("pk"), count=Count("pk"))
    more = {row["last"]: row["count"] - 1 for row in counted}
    events = Event.objects.filter(pk__in=more)
    shown = events.values("pk", "session", "offset", "source", "data", "turn__number")
    return {
        event["session"]: Hit(
            address=place_of(
                by_key[event["session"]], event["turn__number"], f"event-{event['offset']}"
            ),
            source=event["source"],
            pieces=asked.marked(str(event["data"].get("text", ""))),
            more=more[event["pk"]],
        )
        for event in shown
    }


def place_of(session: Session, turn: int | None, anchor: str, *, ledger: int | None = None) -> str:
    """The session at a place of a turn, with its ledger or that of another; an old turn stands where older ones do."""
    address = reverse("session", args=[session.pk])
    if turn is not None:
        address += f"?turn={turn if ledger is None else ledger}"
        if turn < session.next_turn - TURNS_AT_ONCE:
            address += f"&before={turn + TURNS_AT_ONCE // 2}"
    return f"{address}#{anchor}"
