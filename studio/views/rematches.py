"""Why a guideline did not apply in a turn, or did; and trying another wording on that turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from engine.spec import Guideline
from studio.access import May, allowed, load_rematch, load_session, load_turn
from studio.audit import audit
from studio.forms.rematches import RematchForm
from studio.http import refused, show
from studio.models import Rematch, Session, Turn
from studio.operations.rematches import (
    GuidelineUnknownError,
    RematchRefusedError,
    guideline_of,
    start_rematch,
)
from studio.views.ledger import GuidelineRow, ledger
from studio.views.signed_in import SignedInRequest

_PAGE = "sandbox/why_not.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the turn's record says of the guideline; `row` is None where it ended before anything was decided of it."""

    row: GuidelineRow | None
    judgements: tuple[
        Mapping[str, Any], ...
    ]  # one after another, with what relationships made of them
    verdict: str  # the last judgement's own, whatever relationships made of it
    asked: Mapping[str, Any] | None  # the model call that gave it

    @property
    def asked_together(self) -> bool:
        """Did the question hold other guidelines too? Its tokens and time are then not of this one alone."""
        return self.asked is not None and any(mark in self.asked["subject"] for mark in "–,")


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A wording that was tried, and whether the verdict is another one than the recorded."""

    job: Rematch
    changed: bool
    same_words: bool  # the recorded wording, judged once more
    elapsed_ms: int | None


@login_required
@never_cache
@require_GET
def why_not(request: SignedInRequest, pk: int, number: int, uid: str) -> HttpResponse:
    """One guideline in one turn: the record, a form, and what was tried; `?tried=` puts that wording into the form."""
    turn = load_turn(request.user, pk, number)
    guideline = _guideline(turn, uid)
    Rematch.objects.give_up_lost()
    chosen = request.GET.get("tried", "")
    tried = (
        turn.rematches.filter(guideline=uid, pk=int(chosen)).first()
        if chosen.isdecimal() and len(chosen) < 19
        else None
    )
    wording = tried.condition if tried is not None else guideline.condition
    form = RematchForm(initial={"condition": wording}, label_suffix="")
    return show(request, _PAGE, _context(request, pk, turn, guideline, form), part="tried")


@login_required
@require_POST
def rematches(request: SignedInRequest, pk: int, number: int, uid: str) -> HttpResponse:
    """Judge it under another `condition`, or under the recorded one once more (`again`)."""
    turn = load_turn(request.user, pk, number, May.CONVERSE)
    guideline = _guideline(turn, uid)
    again = "again" in request.POST
    form = RematchForm(
        {"condition": guideline.condition} if again else request.POST, label_suffix=""
    )
    if form.is_valid():
        wording = None if again else form.cleaned_data["condition"]
        try:
            row = start_rematch(turn, uid, wording, by=request.user.get_username())
        except RematchRefusedError as refusal:
            form.add_error("condition", str(refusal))
        else:
            return redirect(f"{_address(pk, number, uid)}?{urlencode({'tried': row.pk})}#tried")
    return refused(request, _PAGE, _context(request, pk, turn, guideline, form))


@login_required
@require_POST
def rematch_stop(
    request: SignedInRequest, pk: int, number: int, uid: str, tried: int
) -> HttpResponse:
    row = load_rematch(request.user, pk, number, tried, May.CONVERSE, guideline=uid)
    if not row.request_stop():
        messages.info(request, _("It is over already."))
    return redirect(f"{_address(pk, number, uid)}?{urlencode({'tried': row.pk})}#tried")


def _address(pk: int, number: int, uid: str) -> str:
    return reverse("turn-guideline", args=[pk, number, uid])


def _guideline(turn: Turn, uid: str) -> Guideline:
    try:
        return guideline_of(turn, uid)
    except GuidelineUnknownError as error:
        raise Http404(str(error)) from error


def _context(
    request: SignedInRequest, pk: int, turn: Turn, guideline: Guideline, form: RematchForm
) -> dict[str, Any]:
    session = load_session(request.user, pk)
    record = audit(turn)
    recorded = _recorded(record, guideline.uid)
    tried = [
        _try(row, recorded, guideline) for row in turn.rematches.filter(guideline=guideline.uid)
    ]
    return {
        "session": session,
        "turn": turn,
        "guideline": guideline,
        "said": [m["text"] for m in record["messages"] if m["source"] == "customer"],
        "recorded": recorded,
        "form": form,
        "tried": tried,
        "going": any(not each.job.is_over for each in tried),
        "draft": _draft(session, guideline),
        "may_try": turn.is_over and allowed(request.user, May.CONVERSE),
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
    }


def _recorded(record: Mapping[str, Any], uid: str) -> Recorded:
    rows = ledger(record)
    known = (*rows.matched, *rows.stopped, *rows.silent)
    matches = [match for match in record["matches"] if match["guideline"] == uid]
    asked = [match for match in matches if match["model_call"]]
    # Relationships and reasons asked for afterwards stand under the same model call, after the judgement.
    judged = next((m for m in asked if m["model_call"] == asked[-1]["model_call"]), None)
    last = judged or (matches[-1] if matches else None)
    calls = {call["uid"]: call for call in record["model_calls"]}
    return Recorded(
        row=next((row for row in known if row.uid == uid), None),
        judgements=tuple(matches),
        verdict=last["state"] if last is not None else "",
        asked=calls.get(judged["model_call"]) if judged is not None else None,
    )


def _try(row: Rematch, recorded: Recorded, guideline: Guideline) -> Try:
    now = row.finished_at or timezone.now()
    begun = row.started_at
    return Try(
        job=row,
        changed=row.result is not None and row.result["state"] != recorded.verdict,
        same_words=row.condition == guideline.condition.strip(),
        elapsed_ms=round((now - begun).total_seconds() * 1000) if begun is not None else None,
    )


def _draft(session: Session, guideline: Guideline) -> dict[str, Any] | None:
    """The guideline as the draft has it by now; None where it is no longer there."""
    stored = session.agent.guidelines.filter(uid=guideline.uid).first()
    if stored is None:
        return None
    return {
        "condition": stored.condition,
        "changed": stored.condition.strip() != guideline.condition.strip(),
        "address": reverse("guideline", args=[session.agent.slug, guideline.uid]),
    }
