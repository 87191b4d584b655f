"""What a replay would cost, and which turns cannot be played from their record, told before it is begun."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum

from engine.canonical import JsonObject
from studio.costs import OFFLINE_MODEL, Usage, cost_of
from studio.models import ModelCall, ModelConnection, Replay, Session, Turn
from studio.operations.recordings import obstacle_to

_WRITTEN = frozenset({"ComposeReply", "ChooseResponse"})
"""Questions that go to the writing model."""
_SHOWN = 20


class Certainty(StrEnum):
    FREE = "free"  # nothing is asked
    UP_TO = "up_to"  # what the record answers is not asked
    ABOUT = "about"  # as much is asked as when it was recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPrice:
    """`cost` as studio.costs has it, at today's prices; `uncounted` recorded calls have no tokens to go by."""

    certainty: Certainty
    tokens: int = 0
    cost: JsonObject = field(default_factory=lambda: {"amounts": [], "unpriced": []})
    models: tuple[str, ...] = ()  # that would be asked
    uncounted: int = 0

    @property
    def is_offline(self) -> bool:
        """Is nothing asked but the built-in offline model?"""
        return self.models == (OFFLINE_MODEL,)


def turns_of(sessions: Sequence[Session]) -> QuerySet[Turn]:
    """The turns along the lines of these sessions that ran on a version."""
    branched = [session for session in sessions if session.ancestry]
    along = [pk for session in branched for pk in session.line.turns.values_list("pk", flat=True)]
    whole = [session.pk for session in sessions if not session.ancestry]
    return Turn.objects.filter(Q(session__in=whole) | Q(pk__in=along), version__isnull=False)


def price_of(
    sessions: Sequence[Session],
    *,
    model: str,
    until_it_differs: bool,
    connection: ModelConnection | None = None,
) -> ReplayPrice:
    """From the tokens of the recorded calls, priced for the models that would be asked now."""
    if model == Replay.Model.RECORDED and not until_it_differs:
        return ReplayPrice(certainty=Certainty.FREE)
    usages, uncounted = _usages(sessions, connection)
    certainty = Certainty.ABOUT if model == Replay.Model.LIVE else Certainty.UP_TO
    return ReplayPrice(
        certainty=certainty,
        tokens=round(sum(u.prompt_tokens + u.completion_tokens for u in usages)),
        cost=cost_of(usages),
        models=tuple(sorted({usage.model for usage in usages})),
        uncounted=uncounted,
    )


def _usages(
    sessions: Sequence[Session], connection: ModelConnection | None
) -> tuple[list[Usage], int]:
    """What each model would use, and how many calls have no tokens on record."""
    default = ModelConnection.objects.filter(is_default=True).first()
    own = {session.pk: session.connection or default for session in sessions}
    rows = (
        ModelCall.objects.filter(turn__in=turns_of(sessions), used=True)
        .order_by()
        .values("turn__session", "question")
        .annotate(
            told=Count("pk", filter=Q(prompt_tokens__gt=0)),
            calls=Count("pk"),
            asked=Sum("prompt_tokens"),
            answered=Sum("completion_tokens"),
        )
    )
    found, uncounted = list[Usage](), 0
    for row in rows:
        asked = connection or own.get(row["turn__session"], default)
        uncounted += row["calls"] - row["told"]
        found.append(
            Usage(
                model=_model(asked, writes=row["question"] in _WRITTEN),
                calls=row["calls"],
                prompt_tokens=row["asked"],
                completion_tokens=row["answered"],
            )
        )
    return found, uncounted


def _model(connection: ModelConnection | None, *, writes: bool) -> str:
    if connection is None:
        return settings.STUDIO_MODEL or OFFLINE_MODEL
    return (connection.writing_model if writes else "") or connection.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Turns that cannot be played from their record for the same reason: `places` are the first (session, number)."""

    reason: str
    count: int
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """`broken_off` turns cannot be compared with anything, however they are replayed."""

    turns: int
    not_frozen: tuple[Obstacle, ...]
    broken_off: tuple[Obstacle, ...]
    gone: tuple[str, ...]  # names of connections that turns ran on and that are no longer there

    @property
    def frozen(self) -> int:
        return self.turns - sum(each.count for each in (*self.not_frozen, *self.broken_off))


def preflight(sessions: Sequence[Session]) -> Preflight:
    """A constant number of queries for sessions that are no branches."""
    turns = turns_of(sessions)
    versions: dict[int, dict[str, str]] = {}
    asked = ModelCall.objects.filter(turn__in=turns).order_by()
    for turn, question, version in asked.values_list(
        "turn", "question", "prompt_version"
    ).distinct():
        versions.setdefault(turn, {})[question] = version
    rows = list(
        turns.order_by("session_id", "number").values_list(
            "pk", "session", "number", "state", "ran_with"
        )
    )
    not_frozen: dict[str, list[tuple[int, int]]] = {}
    broken_off: dict[str, list[tuple[int, int]]] = {}
    for pk, session, number, state, ran_with in rows:
        over = state in {Turn.State.FINISHED, Turn.State.FAILED}
        if reason := obstacle_to(state, ran_with, versions.get(pk, {})):
            (not_frozen if over else broken_off).setdefault(reason, []).append((session, number))
    return Preflight(
        turns=len(rows),
        not_frozen=_obstacles(not_frozen),
        broken_off=_obstacles(broken_off),
        gone=_gone(ran_with for *_others, ran_with in rows),
    )


def _obstacles(found: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[Obstacle, ...]:
    return tuple(
        Obstacle(reason=reason, count=len(places), places=tuple(places[:_SHOWN]))
        for reason, places in found.items()
    )


def _gone(ran_with: Iterable[JsonObject]) -> tuple[str, ...]:
    named = {stored.get("connection", "") for stored in ran_with} - {""}
    known = set(ModelConnection.objects.filter(name__in=named).values_list("name", flat=True))
    return tuple(sorted(named - known))
