"""Calls that await the customer's word: which there are, and answering one by a button (ENGINE.md §4).

What was asked and answered are events of the session; nothing else is kept, so that the engine, the pages and the API
read the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from engine.events import Answer, ConfirmationAnsweredEvent
from engine.state import Limits
from studio.models import Event, Session, Turn
from studio.operations.turns import append_event, supersede, turn_to_answer, why_only_read

ASKED, ANSWERED = "confirmation.asked", "confirmation.answered"
_BEGUN = ("tool.started", "tool.finished")
_LIMITS = Limits()
_ANSWERS = {
    Answer.CONFIRMED: gettext_lazy("It was answered already: confirmed."),
    Answer.DECLINED: gettext_lazy("It was answered already: declined."),
    Answer.CHANGED: gettext_lazy("It was answered already: the customer changed it."),
    Answer.EXPIRED: gettext_lazy("Nobody answered in time, so it is not done. Ask for it again."),
}


class ConfirmationUnknownError(Exception):
    """No call of this name ever awaited the customer's word in this session."""


class ConfirmationRefusedError(Exception):
    """The call cannot be answered like that, or no longer; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A consequential call that awaits the customer's word, or did. `answer` is None while it waits.

    `by` is the source of the answer: the customer, or the system where it expired or can no longer run. `because` is
    the reason; empty where a person pressed a button.
    """

    call: str
    tool: str
    arguments: JsonObject
    labels: dict[str, str]
    guidelines: tuple[str, ...]
    turn: int  # in which it was asked for
    asked_at: datetime
    answer: Answer | None = None
    answered_in: int | None = None
    by: str = ""
    because: str = ""

    @property
    def expires_at(self) -> datetime:
        return self.asked_at + timedelta(seconds=_LIMITS.confirmation_seconds)

    def waits(self, session: Session) -> bool:
        """Would its answer still count?"""
        late = session.next_turn - self.turn > _LIMITS.confirmation_turns
        return self.answer is None and not late and timezone.now() < self.expires_at


def confirmations_of(session: Session, asked: Iterable[Event]) -> list[Confirmation]:
    """What became of the calls that these events (each with its turn) asked for. One query, none without events."""
    events = list(asked)
    if not events:
        return []
    later = session.line.events.filter(
        kind__in=[ANSWERED, *_BEGUN],
        offset__gt=events[0].offset,
        data__call__in=[event.data["call"] for event in events],
    )
    what_followed: dict[str, list[Event]] = defaultdict(list)
    for event in later.order_by("offset").select_related("turn").defer("turn__checkpoint"):
        what_followed[event.data["call"]].append(event)
    return [_confirmation(event, what_followed[event.data["call"]]) for event in events]


def _confirmation(asked: Event, followed: Sequence[Event]) -> Confirmation:
    """Of several answers the last one counts; once the call has begun, it is the confirmation that let it."""
    answers = [event for event in followed if event.kind == ANSWERED]
    begun = any(event.kind in _BEGUN for event in followed)
    counting = [e for e in answers if not begun or e.data["answer"] == Answer.CONFIRMED]
    answered = counting[-1] if counting else None
    data = asked.data
    return Confirmation(
        call=data["call"],
        tool=data["tool"],
        arguments=data["arguments"],
        labels=data.get("labels", {}),
        guidelines=tuple(data.get("guidelines", ())),
        turn=asked.turn.number if asked.turn is not None else 0,
        asked_at=datetime.fromisoformat(data["asked_at"]),
        answer=Answer(answered.data["answer"]) if answered is not None else None,
        answered_in=answered.turn.number if answered is not None and answered.turn else None,
        by=answered.source if answered is not None else "",
        because=answered.data.get("because", "") if answered is not None else "",
    )


def pending_confirmations(session: Session) -> list[Confirmation]:
    """The calls that await the customer's word now, the oldest first."""
    oldest = session.next_turn - _LIMITS.confirmation_turns
    turns = session.line.turns.filter(number__gte=oldest).values_list("pk", flat=True)
    asked = session.line.events_in(list(turns)).filter(kind=ASKED).order_by("offset")
    found = confirmations_of(session, asked.select_related("turn").defer("turn__checkpoint"))
    return [confirmation for confirmation in found if confirmation.waits(session)]


def answer_confirmation(
    session: Session, call: str, answer: Answer, *, enqueue: bool = True
) -> Turn:
    """The customer's word by a button: "confirmed" or "declined"; gives the turn that acts on it.

    The answer is an event of that turn, because a confirmed call runs only in the turn in which it was answered. The
    same answer once more changes nothing and gives the same turn. Raises ConfirmationUnknownError and
    ConfirmationRefusedError; `enqueue` as in `send_message`.
    """
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=session.pk)
        found = _asked(session, call)
        if found.answer is not None and found.answer is answer and found.answered_in:
            return session.line.turns.get(number=found.answered_in)
        _check(session, found)
        turn = turn_to_answer(session)
        append_event(
            session, turn, ConfirmationAnsweredEvent(call=call, tool=found.tool, answer=answer)
        )
        supersede(session, turn, enqueue=enqueue)
    return turn


def _asked(session: Session, call: str) -> Confirmation:
    asked = session.line.events.filter(kind=ASKED, data__call=call).select_related("turn")
    found = confirmations_of(session, asked[:1])
    if not found:
        raise ConfirmationUnknownError(
            _("No call %(call)r awaits an answer in this session.") % {"call": call}
        )
    return found[0]


def _check(session: Session, found: Confirmation) -> None:
    if why := why_only_read(session):
        raise ConfirmationRefusedError(why)
    if found.answer is not None:
        raise ConfirmationRefusedError(str(_ANSWERS[found.answer]))
    if not found.waits(session):
        raise ConfirmationRefusedError(str(_ANSWERS[Answer.EXPIRED]))
    if session.mode == Session.Mode.MANUAL:
        raise ConfirmationRefusedError(
            _("Nothing runs in manual mode: hand the session back to the agent first.")
        )
