"""Replays as pages show them: what was asked for in words, how far it is, and a line for each turn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.replaying import Difference
from studio.bridge import agent_spec
from studio.difference_words import Names, sentence
from studio.models import Event, Replay, ReplayedTurn
from studio.operations.lanes import spent
from studio.operations.replays import CREW, rest_of, verdicts_of
from studio.views.replay_forms import NEXT_WAY, WAYS, Way, way_of

Verdict = ReplayedTurn.Verdict
DIFFERENT = "different"
WAITING = "waiting"
_ENOUGH = 3  # turns that are over before it is said what is left
_OTHER = (Verdict.CHANGED, Verdict.FAILED, Verdict.IMPOSSIBLE, Verdict.ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One filter of the turns, as a chip with its count."""

    name: str
    words: str
    count: int
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One turn: what the customer said, and the first difference as a sentence."""

    cell: ReplayedTurn
    said: str
    first: str
    more: int  # differences besides the first

    @property
    def address(self) -> str:
        return address_of(self.cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    done: int
    total: int
    tokens: int
    seconds_left: int | None

    @property
    def minutes_left(self) -> int:
        return round((self.seconds_left or 0) / 60)


def address_of(cell: ReplayedTurn) -> str:
    return reverse("replayed-turn", args=[cell.replay_id, cell.session_id, cell.number])


def progress_of(replay: Replay) -> Progress:
    """One query; the time that is left is told once a few turns are over."""
    done = replay.turns.filter(state=ReplayedTurn.State.DONE).count()
    left = None
    if not replay.is_over and not replay.paused and replay.started_at and done >= _ENOUGH:
        took = (timezone.now() - replay.started_at).total_seconds()
        left = max(0, round(took / done * (replay.total - done)))
    return Progress(done=done, total=replay.total, tokens=spent(CREW, replay), seconds_left=left)


def tallies(replay: Replay, chosen: str) -> list[Tally]:
    counts = verdicts_of(replay)
    waiting = replay.total - sum(counts.values())
    different = sum(counts.get(verdict, 0) for verdict in _OTHER)
    found = [
        ("all", _("All"), replay.total),
        (DIFFERENT, _("Not the same"), different),
        *((v.value, str(v.label), counts.get(v, 0)) for v in Verdict),
        (WAITING, _("Not over"), waiting),
    ]
    return [
        Tally(name=name, words=words, count=count, current=name == chosen)
        for name, words, count in found
        if count or name == chosen or name in {"all", DIFFERENT}
    ]


def cells_of(replay: Replay, chosen: str) -> Any:
    """The turns of a filter, session by session."""
    cells = replay.turns.order_by("session_id", "number")
    if chosen == DIFFERENT:
        return cells.filter(verdict__in=_OTHER)
    if chosen == WAITING:
        return cells.exclude(state=ReplayedTurn.State.DONE)
    return cells.filter(verdict=chosen) if chosen in Verdict.values else cells


def lines_of(replay: Replay, cells: Sequence[ReplayedTurn]) -> list[Line]:
    """For cells with their turns and versions; a constant number of queries."""
    said = said_in(cell.turn_id for cell in cells)
    found = []
    for cell in cells:
        first = ""
        if cell.differences:
            first = sentence(Difference.read(cell.differences[0]), names_of(replay, cell))
        found.append(
            Line(
                cell=cell,
                said=said.get(cell.turn_id, ""),
                first=first,
                more=max(0, len(cell.differences) - 1),
            )
        )
    return found


def names_of(replay: Replay, cell: ReplayedTurn) -> Names:
    assert cell.turn.version is not None  # noqa: S101 - turns without one are not replayed
    return Names(before=agent_spec(cell.turn.version), after=agent_spec(replay.version))


def said_in(turns: Iterable[int]) -> dict[int, str]:
    """Turn → what the customer said in it, in one line."""
    rows = Event.objects.filter(turn__in=list(turns), kind="message", source="customer")
    found: dict[int, list[str]] = {}
    for turn, data in rows.order_by("offset").values_list("turn", "data"):
        found.setdefault(turn, []).append(str(data.get("text", "")))
    return {
        turn: " · ".join(" ".join(text.split()) for text in texts) for turn, texts in found.items()
    }


def state_context(replay: Replay, chosen: str) -> dict[str, Any]:
    way = way_of(replay)
    rest = rest_of(replay).count() if replay.is_over else 0
    return {
        "replay": replay,
        "agent": replay.agent,
        "way": way,
        "progress": progress_of(replay),
        "tallies": tallies(replay, chosen),
        "chosen": chosen,
        "sessions": replay.turns.values("session").distinct().count(),
        "rest": rest,
        "next_way": next_way(replay) if rest else None,
    }


def next_way(replay: Replay) -> Way | None:
    """The way that asks more than this one did; None where none does."""
    way = way_of(replay)
    following = WAYS[NEXT_WAY[way.name]]
    return following if following is not way and following.name != "live" else None


def with_counts(replays: Any) -> Any:
    counted = {
        f"{verdict.value}_turns": Count("turns", filter=Q(turns__verdict=verdict))
        for verdict in Verdict
    }
    return replays.annotate(session_count=Count("turns__session", distinct=True), **counted)


def neighbours(cell: ReplayedTurn) -> Mapping[str, str]:
    """Addresses of the turns with a difference before and after this one, as far as there are any."""
    others = cell.replay.turns.exclude(differences=[]).only("replay", "session", "number")
    after = Q(session__gt=cell.session_id) | Q(session=cell.session_id, number__gt=cell.number)
    before = Q(session__lt=cell.session_id) | Q(session=cell.session_id, number__lt=cell.number)
    found = {
        "next": others.filter(after).order_by("session_id", "number").first(),
        "previous": others.filter(before).order_by("-session_id", "-number").first(),
    }
    return {name: address_of(other) for name, other in found.items() if other is not None}
