"""One replayed turn: its decisions beside those on record, guideline by guideline, words last; changes accepted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from engine.replaying import Difference, DifferenceKind, is_decision, words
from studio.access import May, allowed, load_replayed_turn
from studio.audit import audit
from studio.difference_words import Names, kind_words, sentence
from studio.expectation_words import sentence as expected_words
from studio.http import refused, show
from studio.models import AcceptedChange, ReplayedTurn, Session
from studio.operations.accepting import (
    AcceptRefusedError,
    accept,
    accepted_of,
    key_of,
    take_back,
)
from studio.operations.recordings import recordings_of, turns_to_replay
from studio.operations.scenarios import draft_of, read
from studio.views.ledger import GuidelineRow, ledger
from studio.views.replay_rows import address_of, names_of, neighbours, said_in
from studio.views.signed_in import SignedInRequest

_PAGE = "replays/turn.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A change that was found right, and what is expected since, as a sentence."""

    row: AcceptedChange
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One difference: its place among those of the turn, from 0, and how it reads."""

    place: int
    kind: str
    words: str
    because: tuple[str, str]  # as recorded in each run
    decision: bool
    accepted: Accepted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What differs about one guideline, with its row in either ledger; about none, what concerns the whole turn."""

    uid: str
    title: str
    found: tuple[Found, ...]
    before: GuidelineRow | None
    after: GuidelineRow | None

    @property
    def is_reworded(self) -> bool:
        """Does the guideline itself say something else in the other version?"""
        if self.before is None or self.after is None:
            return False
        says = (self.before.condition, self.before.action)
        return says != (self.after.condition, self.after.action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run of the turn: the rows of its ledger by lasting uid, and where the messages behind arguments stand."""

    rows: Mapping[str, GuidelineRow]
    reply: str
    elsewhere: Mapping[int, str]  # offset → address


@login_required
@require_GET
def replayed_turn(request: SignedInRequest, pk: int, session: int, number: int) -> HttpResponse:
    cell = load_replayed_turn(request.user, pk, session, number)
    return show(request, _PAGE, _context(request, cell))


@login_required
@require_POST
def turn_accept(request: SignedInRequest, pk: int, session: int, number: int) -> HttpResponse:
    """Accept the ticked differences, for a reason."""
    cell = load_replayed_turn(request.user, pk, session, number, May.TEST)
    chosen = [int(place) for place in request.POST.getlist("difference") if place.isdecimal()]
    reason = request.POST.get("reason", "").replace("\x00", "")
    try:
        rows = accept(cell, chosen, reason=reason, by=request.user.get_username())
    except AcceptRefusedError as refusal:
        context = _context(request, cell) | {
            "refusal": refusal,
            "reason": reason,
            "ticked": chosen,
        }
        return refused(request, _PAGE, context)
    expected = sum(row.expectation_id is not None for row in rows)
    messages.success(
        request,
        _("Accepted. %(expected)d of %(count)d are expected from now on.")
        % {"expected": expected, "count": len(rows)},
    )
    return redirect(address_of(cell))


@login_required
@require_POST
def turn_accepted_undo(
    request: SignedInRequest, pk: int, session: int, number: int, accepted: int
) -> HttpResponse:
    cell = load_replayed_turn(request.user, pk, session, number, May.TEST)
    row = AcceptedChange.objects.filter(turn=cell.turn_id, pk=accepted).first()
    if row is None:
        raise Http404(_("This was not accepted, or is taken back already."))
    take_back(row)
    messages.success(request, _("Taken back: the change is a surprise again."))
    return redirect(address_of(cell))


def _context(request: SignedInRequest, cell: ReplayedTurn) -> dict[str, Any]:
    replay = cell.replay
    names = names_of(replay, cell)
    differences = [Difference.read(each) for each in cell.differences]
    accepted = _accepted(cell)
    found = [
        Found(
            place=place,
            kind=kind_words(each.kind),
            words=sentence(each, names, below=each.guideline),
            because=(each.before_because, each.after_because),
            decision=is_decision(each.kind),
            accepted=accepted.get(key_of(each)),
        )
        for place, each in enumerate(differences)
    ]
    before = _side(cell.session, cell.number, "before") if differences else None
    after = _side(cell.played, cell.number, "after") if differences and cell.played else None
    return {
        "replay": replay,
        "agent": replay.agent,
        "cell": cell,
        "said": said_in([cell.turn_id]).get(cell.turn_id, ""),
        "groups": _groups(differences, found, names, before, after),
        "rewritten": _rewritten(differences, found),
        "before": before,
        "after": after,
        "reply": words(before.reply, after.reply) if before and after else (),
        "accepted": list(accepted.values()),
        "open": [each for each in found if each.accepted is None],
        "acceptable": cell.verdict == ReplayedTurn.Verdict.CHANGED,
        "may_test": allowed(request.user, May.TEST),
        **neighbours(cell),
    }


def _accepted(cell: ReplayedTurn) -> dict[str, Accepted]:
    rows = accepted_of(cell.turn_id)
    if not rows:
        return {}
    draft = draft_of(cell.session.agent)
    return {
        key: Accepted(
            row=row,
            expected=expected_words(read(row.expectation), draft) if row.expectation else "",
        )
        for key, row in rows.items()
    }


def _side(session: Session, number: int, name: str) -> Side | None:
    turn = turns_to_replay(session).filter(number=number).select_related("session", "version")
    row = turn.first()
    if row is None:
        return None
    (recording,) = recordings_of(session, [row])
    record = audit(row)
    told = ledger(record)
    rows = (*told.matched, *told.stopped, *told.silent)
    return Side(
        rows={recording.record.lasting_uid(each.uid): _anchored(each, name) for each in rows},
        reply=recording.record.reply,
        elsewhere=_elsewhere(session, record),
    )


def _elsewhere(session: Session, record: Mapping[str, Any]) -> dict[int, str]:
    here = {message["offset"] for message in record["messages"]}
    arguments = (a for decision in record["decisions"] for a in decision["arguments"])
    turn = reverse("session-turn", args=[session.pk, record["number"]])
    chat = f"{reverse('session', args=[session.pk])}?turn={record['number']}"
    return {
        offset: f"{turn if offset in here else chat}#event-{offset}"
        for argument in arguments
        if (offset := argument.get("offset"))
    }


def _anchored(row: GuidelineRow, name: str) -> GuidelineRow:
    """Both runs stand on one page, so that places in them are told apart."""
    tools = (replace(tool, anchor=f"{name}-{row.uid}-{tool.anchor}") for tool in row.tools)
    return replace(row, tools=tuple(tools))


_WORDS = frozenset({DifferenceKind.REPLY, DifferenceKind.RESPONSE})


def _rewritten(differences: Sequence[Difference], found: Sequence[Found]) -> list[Found]:
    return [
        each
        for each, difference in zip(found, differences, strict=True)
        if difference.kind in _WORDS
    ]


def _groups(
    differences: Sequence[Difference],
    found: Sequence[Found],
    names: Names,
    before: Side | None,
    after: Side | None,
) -> list[Group]:
    """In the order in which the first difference of each is listed."""
    by_guideline: dict[str, list[Found]] = {}
    for each, difference in zip(found, differences, strict=True):
        if difference.kind not in _WORDS:
            by_guideline.setdefault(difference.guideline, []).append(each)
    return [
        Group(
            uid=uid,
            title=names.guideline(uid) if uid else _("The turn as a whole"),
            found=tuple(members),
            before=before.rows.get(uid) if before else None,
            after=after.rows.get(uid) if after else None,
        )
        for uid, members in by_guideline.items()
    ]
