"""Sessions that the studio played by itself: what each was played for, and removing them with that."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from studio.models import Replay, ReplayedTurn, RunCell, Session, SuiteRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedFor:
    """What a session was played for: the first of the turns that a replay kept in it, or a conversation of a run.

    None of both where that was removed since, and the session was kept because somebody goes on from it.
    """

    turn: ReplayedTurn | None = None
    cell: RunCell | None = None

    @property
    def scenario(self) -> str:
        """The title of the run's scenario, as it was then."""
        if self.cell is None:
            return ""
        known = {each["uid"]: each["title"] for each in self.cell.run.scenarios}
        return str(known.get(self.cell.scenario, ""))


def played_for(session: Session) -> PlayedFor:
    """At most one query."""
    match session.purpose:
        case Session.Purpose.REPLAY:
            turns = ReplayedTurn.objects.filter(played=session).order_by("number")
            turns = turns.select_related("replay__version", "session")
            return PlayedFor(turn=turns.defer("replay__version__spec").first())
        case Session.Purpose.TEST:
            cells = RunCell.objects.filter(session=session).order_by("pk")
            cells = cells.select_related("run__suite", "version")
            return PlayedFor(cell=cells.defer("version__spec").first())
        case _:
            return PlayedFor()


def forget(batch: Replay | SuiteRun) -> None:
    """Delete the replay or run with the sessions that it played: `remove_played`."""
    with transaction.atomic():
        if isinstance(batch, Replay):
            kept = set(batch.turns.exclude(played=None).values_list("played", flat=True))
            Replay.objects.filter(pk=batch.pk).delete()
        else:
            kept = set(batch.cells.exclude(session=None).values_list("session", flat=True))
            SuiteRun.objects.filter(pk=batch.pk).delete()
        remove_played(kept)


def remove_played(sessions: Iterable[int]) -> None:
    """Delete these (keys) that the studio played; those stay that other sessions go on from."""
    played = Session.objects.filter(pk__in=list(sessions)).exclude(purpose=Session.Purpose.CHAT)
    own = {pk: root or pk for pk, root in played.values_list("pk", "root")}
    Session.objects.filter(pk__in=own.keys() - _gone_on_from(own)).delete()


def _gone_on_from(own: dict[int, int]) -> set[int]:
    """Of these sessions (with their roots) those that others need: branches go on from them."""
    others = Session.objects.filter(root__in=set(own.values())).exclude(pk__in=own)
    needed: set[int] = set()
    for root, ancestry in others.values_list("root", "ancestry"):
        needed |= {pk for pk, _turn, _offset in ancestry}
        if root is not None:
            needed.add(root)
    return needed
