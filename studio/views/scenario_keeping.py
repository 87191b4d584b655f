"""From a session to a test: a row of a ledger, a message, or the whole of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from engine.expecting import Expectation
from engine.turn_record import TurnRecord
from studio.access import May, load_message, load_session, load_turn
from studio.expectation_words import sentence
from studio.forms.expectations import KINDS, ExpectationForm
from studio.http import refused, safe_next, show
from studio.models import Scenario, Session, Suite
from studio.operations import proposals
from studio.operations.keeping import expect_all, keep_at, keepable, places_for
from studio.operations.proposals import Proposal
from studio.operations.scenario_messages import as_messages, place_of_turn, said_in
from studio.operations.scenarios import (
    ScenarioRefusedError,
    add_expectation,
    draft_of,
    keep_session,
)
from studio.operations.suites import default_suite
from studio.views.session_rows import place_of
from studio.views.signed_in import SignedInRequest

_ROW, _WHOLE, _REPLY = "suites/expect.html", "suites/keep.html", "suites/expect_reply.html"
_OF_REPLIES = ("reply_contains", "no_promise", "judged", "reply_matches")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A proposal as a page offers it."""

    key: str
    sentence: str
    chosen: bool


@login_required
@require_http_methods(["GET", "POST"])
def turn_expect(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """What a row of the turn's ledger says, as an expectation: `guideline` (uid), `call` (uid), `decision` (its place)
    or `hand-over` names the row; without one, the turn is shown. A POST keeps those of `choose` at `place`."""
    load_turn(request.user, pk, number, May.TEST)
    session = load_session(request.user, pk)
    given = request.POST if request.method == "POST" else request.GET
    row = {
        name: given[name]
        for name in ("guideline", "call", "decision", "hand-over")
        if name in given
    }
    if not row:
        return redirect("session-turn", pk=pk, number=number)
    record = proposals.record_of(session, number)
    offered = _of_row(record, row) if record is not None else []
    if not offered:
        raise Http404(_("Turn %(number)d has no such row.") % {"number": number})
    can, cannot = keepable(session, offered)
    back = safe_next(request, place_of(session, number, f"turn-{number}"))
    refusal = ""
    if request.method == "POST":
        chosen = [one for one in can if one.key in request.POST.getlist("choose")]
        try:
            if not chosen:
                raise ScenarioRefusedError("choose", _("Choose what is to be expected."))
            scenario = _keep(request, session, number, [one.expectation for one in chosen])
            return _back(request, scenario, back)
        except ScenarioRefusedError as error:
            refusal = str(error)
    picked = request.POST.getlist("choose") if request.method == "POST" else None
    context = _shared(session, number) | {
        "row": row,
        "choices": _choices(session, can, picked or [one.key for one in can[:1]]),
        "gone": _choices(session, cannot, []),
        "refusal": refusal,
        "because": request.POST.get("because", ""),
        "chosen_place": request.POST.get("place", ""),
        "back": back,
    }
    return (refused if refusal else show)(request, _ROW, context)


def _of_row(record: TurnRecord, row: dict[str, str]) -> list[Proposal]:
    if "guideline" in row:
        return proposals.of_guideline(record, row["guideline"])
    if "call" in row:
        return proposals.of_call(record, row["call"])
    if "decision" in row and row["decision"].isdecimal() and len(row["decision"]) < 6:
        return proposals.of_decision(record, int(row["decision"]))
    return proposals.of_hand_over(record) if "hand-over" in row else []


@login_required
@require_http_methods(["GET", "POST"])
def message_expect(request: SignedInRequest, pk: int, offset: int) -> HttpResponse:
    """An expectation of what a message of the agent says: `?kind=` is one of those about replies.

    What the customer said leads to the conversation up to there.
    """
    event = load_message(request.user, pk, offset, May.TEST)
    session = load_session(request.user, pk)
    if event.turn is not None and event.source == "customer":
        return redirect(f"{reverse('session-keep', args=[pk])}?up_to={event.turn.number}")
    if event.turn is None or event.source != "agent":
        raise Http404(_("Only what the agent answered in a turn can be expected again."))
    number = event.turn.number
    said = said_in(session)
    place = place_of_turn(said, number)
    if place is None:
        raise Http404(_("Nothing was said in turn %(number)d.") % {"number": number})
    text = str(event.data.get("text", ""))
    back = place_of(session, number, f"event-{offset}")
    given = request.POST if request.method == "POST" else request.GET
    kind = given.get("kind", "") if given.get("kind", "") in _OF_REPLIES else _OF_REPLIES[0]
    suite = session.agent.suites.order_by("pk").first() or Suite(agent=session.agent)
    form = ExpectationForm(
        request.POST if request.method == "POST" else None,
        kind=kind,
        scenario=Scenario(suite=suite, messages=as_messages(said)),
        agent=draft_of(session.agent),
        initial={"turn": place, "text": text[:2_000] if kind == "reply_contains" else ""},
    )
    refusal = ""
    if form.is_valid():
        try:
            return _back(request, _keep_reply(request, session, number, form), back)
        except ScenarioRefusedError as error:
            refusal = str(error)
    context = _shared(session, number) | {
        "event": event,
        "text": text,
        "form": form,
        "kind": kind,
        "kinds": [(name, *KINDS[name]) for name in _OF_REPLIES],
        "refusal": refusal,
        "chosen_place": request.POST.get("place", ""),
        "back": back,
    }
    return (refused if form.errors or refusal else show)(request, _REPLY, context)


@transaction.atomic
def _keep_reply(
    request: SignedInRequest, session: Session, number: int, form: ExpectationForm
) -> Scenario:
    """The form counts turns as the scenario does. Raises ScenarioRefusedError."""
    scenario = _keep(request, session, number, [])
    because = form.cleaned_data["because"]
    add_expectation(scenario, form.expectation(), because=because, by=request.user.username)
    return scenario


@login_required
@require_http_methods(["GET", "POST"])
def session_keep(request: SignedInRequest, pk: int) -> HttpResponse:
    """The whole session, or its turns up to `up_to`, as a scenario, with what was decided as expectations."""
    session = load_session(request.user, pk, May.TEST)
    given = request.POST if request.method == "POST" else request.GET
    said = said_in(session)
    last = said[-1].numbers[-1] if said else 0
    wanted = given.get("up_to", "")
    up_to = min(int(wanted), last) if wanted.isdecimal() and len(wanted) < 8 else last
    can, cannot = keepable(session, proposals.of_session(session, up_to=up_to))
    refusal = (
        _("The customer said nothing in it that an agent has answered yet.") if not said else ""
    )
    if request.method == "POST" and said and "look" not in request.POST:
        chosen = [one.expectation for one in can if one.key in request.POST.getlist("choose")]
        try:
            return _kept_whole(request, session, up_to, chosen)
        except ScenarioRefusedError as error:
            refusal = str(error)
    picked = [one.key for one in can if one.likely]
    if request.method == "POST":
        picked = request.POST.getlist("choose")
    suites = list(session.agent.suites.order_by("pk"))
    turns = groupby(can, key=lambda one: one.turn)
    context = {
        "session": session,
        "agent": session.agent,
        "said": said,
        "up_to": up_to,
        "last": last,
        "turns": [(number, _choices(session, list(found), picked)) for number, found in turns],
        "gone": _choices(session, cannot, []),
        "suites": suites,
        "chosen_suite": given.get("suite", str(suites[0].pk) if suites else ""),
        "title": given.get("title", session.title),
        "refusal": refusal,
        "back": place_of(session, None, "end"),
    }
    return (refused if refusal else show)(request, _WHOLE, context)


@transaction.atomic
def _kept_whole(
    request: SignedInRequest, session: Session, up_to: int, chosen: Sequence[Expectation]
) -> HttpResponse:
    by, wanted = request.user.username, request.POST.get("suite", "")
    suite = (
        session.agent.suites.filter(pk=int(wanted)).first()
        if wanted.isdecimal() and len(wanted) < 12
        else default_suite(session.agent, by)
    )
    if suite is None:
        raise ScenarioRefusedError("suite", _("Choose the suite that it is kept in."))
    title = request.POST.get("title", "").replace("\x00", "")
    scenario = keep_session(session, suite, title=title, up_to=up_to, by=by)
    expect_all(session, scenario, chosen, by=by)
    words = ngettext(
        "Kept as a test, with %(count)d expectation.",
        "Kept as a test, with %(count)d expectations.",
        len(chosen),
    )
    messages.success(request, words % {"count": len(chosen)})
    return redirect("scenario", pk=scenario.suite_id, uid=scenario.uid)


def _keep(
    request: SignedInRequest, session: Session, number: int, chosen: Sequence[Expectation]
) -> Scenario:
    """Raises ScenarioRefusedError."""
    return keep_at(
        session,
        request.POST.get("place", ""),
        chosen,
        turn=number,
        because=request.POST.get("because", "").replace("\x00", "")[:2_000],
        by=request.user.username,
    )


def _back(request: SignedInRequest, scenario: Scenario, back: str) -> HttpResponse:
    """To where the row stands, with a link to what was kept."""
    words = format_html(
        _("Kept: <a href='{}'>{}</a> expects it from now on."),
        reverse("scenario", args=[scenario.suite_id, scenario.uid]),
        scenario.title,
    )
    messages.success(request, words)
    return redirect(back)


def _choices(session: Session, offered: Sequence[Proposal], picked: Sequence[str]) -> list[Choice]:
    agent = draft_of(session.agent)
    return [
        Choice(
            key=one.key,
            sentence=sentence(one.expectation, agent),
            chosen=one.key in picked,
        )
        for one in offered
    ]


def _shared(session: Session, number: int) -> dict[str, Any]:
    return {
        "session": session,
        "agent": session.agent,
        "number": number,
        "places": places_for(session, turn=number),
    }
