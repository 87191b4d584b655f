"""Messages in, turns out: storing what is said, and running the turns it asks for."""

import logging
from datetime import timedelta

from celery import shared_task
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.events import Event as EngineEvent
from engine.events import MessageEvent, Phase, Source, StatusEvent
from studio.bridge import event_row
from studio.models import Event, Session, Turn

log = logging.getLogger(__name__)

MAX_MESSAGE_CHARACTERS = 32_000

# A running turn's worker is heard of every second; a queued turn is taken within milliseconds.
STALE_AFTER = timedelta(seconds=6)
FORGOTTEN_AFTER = timedelta(seconds=12)


class MessageRefusedError(Exception):
    """The message was not stored; the text says why and what to do."""


class TurnNotOverError(Exception):
    """The turn is still waiting or running."""


class TurnNotRetriableError(Exception):
    """Only the last turn of a session can be run again, if it failed or was stopped, and not in manual mode."""


def check_text(text: str) -> str:
    """The message as it will be stored; raises MessageRefusedError."""
    if not text.strip():
        raise MessageRefusedError(_("The message is empty: write something."))
    if len(text) > MAX_MESSAGE_CHARACTERS:
        raise MessageRefusedError(
            _("The message has %(count)d characters; at most %(limit)d can be sent. Shorten it.")
            % {"count": len(text), "limit": MAX_MESSAGE_CHARACTERS}
        )
    return text.strip().replace("\x00", "")


def why_only_read(session: Session) -> str:
    """Why nothing is added to the session; empty where it may be."""
    if session.imported_from:
        return _("This session was imported and stays as it was recorded. Branch from it to go on.")
    if session.is_only_read:
        return _("This was played by the studio. Branch from it to go on.")
    return ""


def send_message(
    session: Session,
    *,
    text: str,
    source: str = "customer",
    enqueue: bool = True,
) -> Turn | None:
    """Store a message and, for a customer's in automatic mode, ask for the turn that answers it.

    A turn that runs now is superseded: the new one answers everything since the last reply. A turn that still waits
    takes the message in. Returns the turn, or None where nobody is to answer. Without `enqueue` the caller runs the
    turn itself, by calling `run_turn`. Raises MessageRefusedError.
    """
    event = MessageEvent(source=Source(source), text=check_text(text))
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=session.pk)
        if why := why_only_read(session):
            raise MessageRefusedError(why)
        answered = source == Source.CUSTOMER and session.mode == Session.Mode.AUTO
        turn = turn_to_answer(session) if answered else None
        append_event(session, turn, event)
        if turn is not None:
            supersede(session, turn, enqueue=enqueue)
    return turn


def turn_to_answer(session: Session) -> Turn:
    """The turn of a locked session that takes in what comes next: one that still waits, else a new one.

    Store the event that it is to answer with `append_event`, which keeps the session's counters, and call
    `supersede` last.
    """
    waiting = session.turns.filter(state=Turn.State.QUEUED, started_at__isnull=True).first()
    if waiting is not None:
        return waiting
    turn = Turn.objects.create(
        session=session, number=session.next_turn, first_offset=session.next_offset
    )
    session.next_turn += 1
    return turn


def supersede(session: Session, turn: Turn, *, enqueue: bool = True) -> None:
    """Let `turn` take over from the one that runs now, if any, and ask for it."""
    session.turns.running().update(stop_reason=Turn.StopReason.MESSAGE)
    if enqueue:
        _enqueue(turn)


def _enqueue(turn: Turn) -> None:
    transaction.on_commit(lambda: run_turn.delay(turn.pk))


def append_event(session: Session, turn: Turn | None, event: EngineEvent) -> Event:
    """Add one event to a locked session."""
    row = event_row(session.pk, turn.pk if turn else None, session.next_offset, event)
    row.save()
    session.next_offset += 1
    session.last_event_at = row.created_at
    session.save(update_fields=["next_offset", "next_turn", "last_event_at"])
    return row


def stop_turn(turn: Turn) -> bool:
    """End the turn at its next safe point, or before it starts; False where it is over already."""
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=turn.session_id)
        waiting = Turn.objects.filter(pk=turn.pk, state=Turn.State.QUEUED).update(
            state=Turn.State.STOPPED,
            stop_reason=Turn.StopReason.PERSON,
            finished_at=timezone.now(),
        )
        if waiting:
            append_event(session, turn, StatusEvent(phase=Phase.STOPPED))
            return True
    return turn.request_stop(Turn.StopReason.PERSON)


def retry_turn(turn: Turn, *, enqueue: bool = True) -> Turn:
    """Run a failed or stopped turn again from where it got to; what was done is not done again.

    Without `enqueue` the caller runs it, as in `send_message`.
    """
    if not turn.is_over:
        raise TurnNotOverError(_("This turn is still running."))
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=turn.session_id)
        if why := why_only_read(session):
            raise TurnNotRetriableError(why)
        if session.mode == Session.Mode.MANUAL:
            raise TurnNotRetriableError(
                _("Nothing runs in manual mode: hand the session back to the agent first.")
            )
        if turn.is_gone_on_from():
            raise TurnNotRetriableError(
                _("A branch goes on from this turn, so it stays as it is: regenerate it instead.")
            )
        retried = Turn.objects.filter(
            pk=turn.pk,
            number=session.next_turn - 1,
            state__in=[Turn.State.FAILED, Turn.State.STOPPED],
        ).update(
            state=Turn.State.QUEUED,
            stop_reason=Turn.StopReason.NONE,
            reference="",
            error="",
            finished_at=None,
            enqueued_at=timezone.now(),
        )
        if not retried:
            raise TurnNotRetriableError(
                _("Only the last turn of a session can be run again, if it failed or was stopped.")
            )
        append_event(session, turn, StatusEvent(phase=Phase.QUEUED))
        if enqueue:
            _enqueue(turn)
    turn.refresh_from_db()
    return turn


@shared_task
def run_turn(turn_id: int) -> None:
    """Claim the turn and run it to its end; does nothing where it is taken, over, or another one is running."""
    from studio.operations.running import run_claimed

    if not Turn.objects.claim(turn_id):
        return
    turn = Turn.objects.with_what_it_runs_on().get(pk=turn_id)
    run_claimed(turn)
    following = (
        Turn.objects.filter(session=turn.session_id, state=Turn.State.QUEUED)
        .order_by("number")
        .first()
    )
    if following is not None:
        run_turn.delay(following.pk)


def sweep() -> int:
    """Enqueue again what a killed worker held and what a broker forgot; how many turns that were."""
    now = timezone.now()
    for turn in Turn.objects.stale(now - STALE_AFTER):
        log.warning("Turn %s lost its worker; it goes on from its last step.", turn)
        Turn.objects.filter(pk=turn.pk, state=Turn.State.RUNNING, claims=turn.claims).update(
            state=Turn.State.QUEUED, enqueued_at=now - FORGOTTEN_AFTER, claims=F("claims") + 1
        )
    forgotten = list(
        Turn.objects.forgotten(now - FORGOTTEN_AFTER + timedelta(milliseconds=1)).values_list(
            "pk", flat=True
        )
    )
    Turn.objects.filter(pk__in=forgotten).update(enqueued_at=now)
    for pk in forgotten:
        run_turn.delay(pk)
    return len(forgotten)
