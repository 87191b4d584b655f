"""Batches worked through by all of the worker's threads: each lane takes cells for a moment, then queues up again.

So a long batch never keeps a chat waiting for longer than a lane's moment, stopping is heard within it, and what a
killed worker held is taken again by the next one. What is done is never done twice: a cell is claimed and finished by
compare-and-set.
"""

import logging
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Thread
from typing import Any, ClassVar, Final, Protocol

from celery import group, shared_task
from django.conf import settings
from django.db import connections, transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from studio.models import Batch, Cell, JobState

log = logging.getLogger(__name__)

MOMENT: Final = 0.5  # seconds that a lane works before others have their turn
SPARE_THREADS: Final = 4  # left to chats by batches whose cells wait long for a live model
FORGOTTEN_AFTER: Final = timedelta(seconds=8)
HEARD_OF_EVERY: Final = 2.0  # seconds; well below what a cell or a batch is taken for lost after


class Crew(Protocol):
    """How the cells of one kind of batch are taken and played."""

    kind: ClassVar[str]
    batches: ClassVar[Any]  # the manager of the Batch
    cells: ClassVar[Any]  # the manager of the Cell

    def cells_of(self, batch: Any) -> Any:
        """The query of a batch's cells."""
        ...

    def next_keys(self, batch: Any) -> list[int]:
        """Cells to claim and play together, of those that wait; empty where none does."""
        ...

    def expected_tokens(self, batch: Any, keys: Sequence[int]) -> int:
        """What these cells will use, as far as that can be said before."""
        ...

    def play(self, batch: Any, keys: Sequence[int], hand: "Hand") -> None:
        """Play claimed cells and finish each through `hand`; gives up where `hand.wanted()` no longer holds."""
        ...

    def closing(self, batch: Any) -> dict[str, Any]:
        """What to store with the batch when all its cells are over."""
        ...

    def waits_long(self, batch: Any) -> bool:
        """Do its cells wait for a live model?"""
        ...


_CREWS: dict[str, Crew] = {}


def register(crew: Crew) -> Crew:
    _CREWS[crew.kind] = crew
    return crew


def start(crew: Crew, batch: Batch) -> None:
    """Put its lanes into the queue when the transaction is through."""
    threads = settings.STUDIO_WORKER_THREADS
    if crew.waits_long(batch):
        threads = max(1, threads - SPARE_THREADS)
    waiting = crew.cells_of(batch).waiting().count()
    lanes = max(1, min(threads, waiting))
    kind, pk = crew.kind, batch.pk
    transaction.on_commit(lambda: group(lane.s(kind, pk) for _ in range(lanes)).apply_async())


def pause(batch: Batch) -> bool:
    """Take up no more cells; False where it is over or paused already."""
    return bool(_unfinished(batch).filter(paused=False).update(paused=True) == 1)


def go_on(crew: Crew, batch: Batch, *, cap: int | None = None) -> bool:
    """Go on with a paused batch, or with one that was stopped before its end; what is done stays done."""
    with transaction.atomic():
        rows = type(batch).objects.filter(pk=batch.pk)
        paused = rows.filter(paused=True, state__in=_OPEN).update(
            paused=False, heartbeat_at=timezone.now()
        )
        left = not paused and crew.cells_of(batch).exclude(state=Cell.State.DONE).exists()
        reopened = left and rows.filter(state__in=_ENDED).update(
            state=JobState.QUEUED,
            stop_requested=False,
            paused=False,
            capped=False,
            error="",
            finished_at=None,
            queued_at=timezone.now(),
        )
        if cap is not None:
            rows.update(cap=cap)
        if not paused and not reopened:
            return False
        # Who is at a cell since before the pause may finish it.
        release(crew.cells_of(batch).abandoned(timezone.now() - Cell.LOST_AFTER))
        start(crew, batch)
    return True


def cancel(crew: Crew, batch: Batch) -> bool:
    """End it now: whoever is at a cell of it gives up within a moment. False where it is over."""
    ended = _unfinished(batch).update(
        state=JobState.STOPPED, stop_requested=True, paused=False, finished_at=timezone.now()
    )
    if ended:
        release(crew.cells_of(batch).filter(state=Cell.State.RUNNING))
    return bool(ended == 1)


def release(cells: Any) -> int:
    """Give cells back that somebody holds; who held them writes nothing any more."""
    released: int = cells.update(
        state=Cell.State.WAITING, heartbeat_at=None, claims=F("claims") + 1
    )
    return released


class Hand:
    """What one lane holds while it plays cells: it says whether they are still wanted, and finishes them."""

    def __init__(self, crew: Crew, batch: Batch, keys: Sequence[int]) -> None:
        self.crew = crew
        self._batch = batch
        self._claims = dict(crew.cells.filter(pk__in=keys).values_list("pk", "claims"))
        self._heard_of = 0.0

    def is_stopped(self) -> bool:
        """Was the batch stopped? As quickly as that can be read."""
        return not _unfinished(self._batch).exists()

    def wanted(self) -> bool:
        """False where the batch was stopped; says now and then that these cells are worked on.

        Not each time: many lanes ask often, and a stop would wait for all that they write.
        """
        if time.monotonic() - self._heard_of < HEARD_OF_EVERY:
            return not self.is_stopped()
        self._heard_of = time.monotonic()
        now = timezone.now()
        if not _unfinished(self._batch).update(heartbeat_at=now):
            return False
        self.crew.cells.filter(pk__in=self._claims, state=Cell.State.RUNNING).update(
            heartbeat_at=now
        )
        return True

    def finish(self, key: int, **changes: Any) -> bool:
        """Store what came of a cell; False where it is no longer this lane's, and nothing was stored."""
        row = self.crew.cells.filter(pk=key, claims=self._claims[key], state=Cell.State.RUNNING)
        stored = row.update(
            state=Cell.State.DONE, finished_at=timezone.now(), heartbeat_at=None, **changes
        )
        return bool(stored == 1)

    def give_back(self) -> None:
        """What was not finished waits again."""
        for key, claims in self._claims.items():
            release(self.crew.cells.filter(pk=key, claims=claims, state=Cell.State.RUNNING))


@shared_task
def lane(kind: str, pk: int) -> None:
    """Work on the batch for a moment; queues up again where more is to be done."""
    if _work_for_a_moment(_CREWS[kind], pk):
        lane.delay(kind, pk)


def play_here(crew: Crew, batch: Batch, *, threads: int, watch: Callable[[], None]) -> None:
    """Work it through to its end in this process, which takes no worker; `watch` is called four times a second.

    What comes out of `watch`, KeyboardInterrupt too, cancels the batch and is raised.
    """
    lanes = [Thread(target=_stay, args=[crew, batch.pk], daemon=True) for _ in range(threads)]
    for thread in lanes:
        thread.start()
    try:
        while any(thread.is_alive() for thread in lanes):
            watch()
            time.sleep(MOMENT / 2)
    except BaseException:
        cancel(crew, batch)
        raise
    finally:
        for thread in lanes:
            thread.join()


def _stay(crew: Crew, pk: int) -> None:
    """One lane without a queue, until the batch is over; a pause is waited for."""
    try:
        while crew.batches.filter(pk=pk, state__in=_OPEN).exists():
            if not _work_for_a_moment(crew, pk):
                time.sleep(MOMENT / 2)
    finally:
        connections.close_all()


def _work_for_a_moment(crew: Crew, pk: int) -> bool:
    """Is more to be done after it?"""
    crew.batches.claim(pk)
    until = time.monotonic() + MOMENT
    while time.monotonic() < until:
        batch = crew.batches.filter(pk=pk).first()
        if batch is None or batch.is_over or batch.paused:
            return False
        _be_heard_of(batch)
        if not _work(crew, batch):
            _close(crew, batch)
            return False
    return True


def _be_heard_of(batch: Batch) -> None:
    """Say now and then that the batch is worked on, however short its cells are."""
    now = timezone.now()
    if batch.heartbeat_at is None or (now - batch.heartbeat_at).total_seconds() >= HEARD_OF_EVERY:
        _unfinished(batch).update(heartbeat_at=now)


def _work(crew: Crew, batch: Batch) -> bool:
    """Play the next cells; False where none waits or the cap allows no more."""
    keys = crew.next_keys(batch)
    if not keys:
        return False
    if batch.cap and _could_exceed_cap(crew, batch, keys):
        if not crew.cells_of(batch).filter(state=Cell.State.RUNNING).exists():
            return False
        time.sleep(MOMENT / 2)  # what the running ones really use is known soon
        return True
    taken = crew.cells.claim(keys)
    if not taken:
        return True  # another lane was faster
    hand = Hand(crew, batch, taken)
    try:
        crew.play(batch, taken, hand)
    except Exception as error:
        log.exception("Cells %s of the %s %s could not be played.", taken, crew.kind, batch.pk)
        end = crew.batches.filter(pk=batch.pk, state__in=_OPEN)
        end.update(
            state=JobState.FAILED,
            finished_at=timezone.now(),
            error=f"{type(error).__name__}: {error}"[:4000],
        )
    finally:
        hand.give_back()
    return True


def spent(crew: Crew, batch: Batch) -> int:
    """Tokens that its finished cells used."""
    sums = crew.cells_of(batch).aggregate(
        prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens")
    )
    return (sums["prompt"] or 0) + (sums["completion"] or 0)


def _could_exceed_cap(crew: Crew, batch: Batch, keys: Sequence[int]) -> bool:
    """Is it reached, or could these cells beside those that run go beyond it? What is known least is tried alone."""
    cells = crew.cells_of(batch)
    running = list(cells.filter(state=Cell.State.RUNNING).values_list("pk", flat=True))
    begun = [*running, *keys]
    used, over = spent(crew, batch), cells.over().count()
    if used >= batch.cap:
        return True
    expected = crew.expected_tokens(batch, begun)
    if over:
        expected = max(expected, len(begun) * used // over)
    elif running and not expected:
        return True
    return used + expected > batch.cap


def _close(crew: Crew, batch: Batch) -> None:
    """End the batch where nothing runs any more: finished, or stopped at its cap."""
    cells = crew.cells_of(batch)
    if cells.filter(state=Cell.State.RUNNING).exists():
        return  # whoever is at the last one closes it
    left = cells.waiting().exists()
    if left and not batch.cap:
        return
    changes = crew.closing(batch)
    _unfinished(batch).update(
        state=JobState.STOPPED if left else JobState.FINISHED,
        capped=left,
        finished_at=timezone.now(),
        heartbeat_at=None,
        **changes,
    )


def sweep_batches() -> None:
    """Take up again what a killed worker left and what a broker forgot."""
    long_ago = timezone.now() - FORGOTTEN_AFTER
    for crew in _CREWS.values():
        unheard = Q(heartbeat_at__lt=long_ago) | Q(
            heartbeat_at__isnull=True, queued_at__lt=long_ago
        )
        for batch in crew.batches.filter(unheard, state__in=_OPEN, paused=False):
            lost = crew.cells_of(batch).abandoned(timezone.now() - Cell.LOST_AFTER)
            log.warning(
                "The %s %s was left alone; %s cells wait again.", crew.kind, batch.pk, release(lost)
            )
            crew.batches.filter(pk=batch.pk).update(heartbeat_at=timezone.now())
            start(crew, batch)


_OPEN = (JobState.QUEUED, JobState.RUNNING)
_ENDED = (JobState.STOPPED, JobState.FAILED, JobState.FINISHED)


def _unfinished(batch: Batch) -> Any:
    return type(batch).objects.filter(pk=batch.pk, state__in=_OPEN)
