"""The sandbox: one session's chat beside what happened in each turn."""

from collections.abc import Sequence

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from engine.events import Answer
from studio.access import May, allowed, load_session, load_turn
from studio.http import is_part
from studio.models import Session, Turn
from studio.operations.confirmations import (
    ConfirmationRefusedError,
    ConfirmationUnknownError,
    answer_confirmation,
    pending_confirmations,
)
from studio.operations.played_sessions import played_for
from studio.operations.sessions import SessionError, change_mode, change_session
from studio.operations.turns import (
    MAX_MESSAGE_CHARACTERS,
    MessageRefusedError,
    TurnNotOverError,
    TurnNotRetriableError,
    retry_turn,
    send_message,
    stop_turn,
)
from studio.views.audit_views import pane_context
from studio.views.branch_rail import branch_rail
from studio.views.chat_lines import Line
from studio.views.conversation import (
    asking_turns,
    lines_of,
    loose_line,
    page_of,
    spend_of,
    status_of,
)
from studio.views.session_forms import SessionForm
from studio.views.signed_in import SignedInRequest

_SPEAKERS = frozenset({"customer", "agent", "operator"})
_WORDS = frozenset({Answer.CONFIRMED.value, Answer.DECLINED.value})


@login_required
@never_cache  # a fragment and the whole page have one address
@require_GET
def session_page(request: SignedInRequest, pk: int) -> HttpResponse:
    """The sandbox; for htmx also its ledger (`?turn=n`) or older turns (`?before=n`) alone."""
    session = load_session(request.user, pk)
    target = request.headers.get("HX-Target", "")
    if target == "ledger":
        return render(
            request,
            "sandbox/_ledger.html",
            pane_context(request, session, _turn(request, session)),
        )
    if target == "earlier":
        page = page_of(session, before=_number(request, "before"))
        may_converse = allowed(request.user, May.CONVERSE)
        context = {"session": session, "page": page, "may_converse": may_converse}
        return render(request, "sandbox/_earlier.html", context)
    return sandbox_page(request, session, editing=_number(request, "edit"))


def sandbox_page(
    request: SignedInRequest,
    session: Session,
    *,
    text: str = "",
    refused: str = "",
    editing: int | None = None,
    status: int = 200,
) -> HttpResponse:
    """The whole page. `editing` is the turn whose message is written anew; `text` stands in the field."""
    # The cursor and the status are read before what they stand for: what ends meanwhile is looked at again.
    after = session.next_offset - 1
    status_now = status_of(session)
    turn = _turn(request, session)
    page = page_of(session, before=_number(request, "before"))
    context = {
        **pane_context(request, session, turn),
        "page": page,
        "after": after,
        "status": status_now,
        "spend": spend_of(session),
        "form": SessionForm(agent=session.agent, session=session),
        "following": "turn" not in request.GET,
        "may_converse": allowed(request.user, May.CONVERSE),
        "branches": branch_rail(session),
        "played": played_for(session),
        "editing": editing,
        "text": text or _said_in(session, editing),
        "refused": refused,
        "most": MAX_MESSAGE_CHARACTERS,
    }
    return render(request, "sandbox/session.html", context, status=status)


def _said_in(session: Session, number: int | None) -> str:
    """The customer's last message of the turn, to be edited; empty without a turn."""
    if number is None:
        return ""
    said = session.line.events.filter(kind="message", source="customer", turn__number=number)
    last = said.order_by("offset").last()
    return str(last.data["text"]) if last is not None else ""


def _number(request: SignedInRequest, name: str) -> int | None:
    """A whole number of the query; what is none counts as absent."""
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _turn(request: SignedInRequest, session: Session) -> Turn | None:
    """The turn that the address names, else the last one."""
    number = _number(request, "turn")
    # What the agent was is kept in memory by its fingerprint, and may be long.
    turns = session.line.turns.select_related("version").defer("version__spec").order_by("-number")
    turn = turns.filter(number=number).first() if number is not None else turns.first()
    if turn is None and "turn" in request.GET:
        raise Http404(_("This session has no turn %(turn)s.") % {"turn": request.GET["turn"]})
    return turn


@login_required
@require_POST
def messages(request: SignedInRequest, pk: int) -> HttpResponse:
    """Say something, as the customer unless `source` names another; 422 with the words kept where it cannot be."""
    session = load_session(request.user, pk, May.CONVERSE)
    text = request.POST.get("text", "")
    source = request.POST.get("source", "")
    try:
        turn = send_message(
            session, text=text, source=source if source in _SPEAKERS else "customer"
        )
    except MessageRefusedError as refusal:
        return _refusal(request, session, str(refusal), text=text)
    return _as_it_is(request, session, [turn.number] if turn else [])


@login_required
@require_POST
def confirmation(request: SignedInRequest, pk: int, call: str) -> HttpResponse:
    """The customer's word to a call that awaits it, by button: `answer` is "confirmed" or "declined".

    422 with the reason where it can no longer be answered like that; the same answer from two tabs counts once.
    """
    session = load_session(request.user, pk, May.CONVERSE)
    answer = request.POST.get("answer", "")
    if answer not in _WORDS:
        return _refusal(request, session, _("Answer with “confirmed” or “declined”."))
    try:
        turn = answer_confirmation(session, call, Answer(answer))
    except ConfirmationUnknownError as error:
        raise Http404(str(error)) from error
    except ConfirmationRefusedError as refusal:
        return _refusal(request, session, str(refusal))
    return _as_it_is(request, session, [turn.number])


@login_required
@require_POST
def mode(request: SignedInRequest, pk: int) -> HttpResponse:
    """Hand the session over to a person (`mode=manual`) or back to the agent (`mode=auto`)."""
    session = load_session(request.user, pk, May.CONVERSE)
    try:
        event = change_mode(session, request.POST.get("mode", ""))
    except SessionError as error:
        return _refusal(request, session, str(error))
    if event is None:
        return _as_it_is(request, session, [])
    if event.turn is not None:
        return _as_it_is(request, session, [event.turn.number])
    return _as_it_is(request, session, [], [loose_line(event)])


@login_required
@require_POST
def stop(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """Ask a turn to end; one that is over stays as it is."""
    turn = load_turn(request.user, pk, number, May.CONVERSE)
    stop_turn(turn)
    return _as_it_is(request, turn.session, [number])


@login_required
@require_POST
def retry(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """Run a failed or stopped turn again; one that already runs again just goes on."""
    turn = load_turn(request.user, pk, number, May.CONVERSE)
    try:
        retry_turn(turn)
    except TurnNotOverError:
        pass
    except TurnNotRetriableError as refusal:
        return _refusal(request, turn.session, str(refusal))
    return _as_it_is(request, turn.session, [number])


@login_required
@require_POST
def session_settings(request: SignedInRequest, pk: int) -> HttpResponse:
    """What the next turns run on: version, customer, model connection."""
    session = load_session(request.user, pk, May.CONVERSE)
    form = SessionForm(request.POST, agent=session.agent, session=session)
    saved = False
    if form.is_valid():
        try:
            change_session(session, **form.chosen())
            saved = True
        except SessionError as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
    if saved and not is_part(request):
        return redirect("session", pk=pk)
    context = {"session": session, "form": form, "saved": saved, "may_converse": True}
    template = "sandbox/_settings.html" if is_part(request) else "sandbox/settings.html"
    return render(request, template, context, status=200 if saved else 422)


def _refusal(
    request: SignedInRequest, session: Session, words: str, *, text: str = ""
) -> HttpResponse:
    """422: the reason for a script, which leaves everything else as it is, else the page with it."""
    if is_part(request):
        return render(request, "sandbox/_refused.html", {"refused": words}, status=422)
    return sandbox_page(request, session, text=text, refused=words, status=422)


def _as_it_is(
    request: SignedInRequest,
    session: Session,
    numbers: list[int],
    loose: Sequence[Line] = (),
) -> HttpResponse:
    """After a change: the changed parts of the chat for a script, else the page."""
    if not is_part(request):
        return redirect(reverse("session", args=[session.pk]) + "#end")
    return HttpResponse(fragments(session.pk, numbers, loose))


def fragments(
    session_pk: int, numbers: list[int], loose: Sequence[Line] = (), *, may_converse: bool = True
) -> str:
    """Turns, single messages, status, and spend where a turn ended: each an element with an id that takes its place.

    The turn before the first of them comes along, because it may no longer be the last one; so do those whose calls
    wait for the customer's word or were answered here, because their buttons come and go.
    """
    session = Session.objects.select_related("agent").get(pk=session_pk)
    wanted = {*numbers, min(numbers) - 1, *asking_turns(session, numbers)} if numbers else set()
    wanted |= {found.turn for found in pending_confirmations(session)}
    lines = lines_of(session, wanted)
    # What was spent is summed up over the whole conversation: once a turn, not with every step of it.
    ended = any(
        line.turn is not None and line.turn.number in numbers and line.turn.is_over
        for line in lines
    )
    context = {
        "session": session,
        "may_converse": may_converse,
        "lines": [*lines, *loose],
        "status": status_of(session),
        "spend": spend_of(session) if ended else None,
    }
    return render_to_string("sandbox/_fragments.html", context)
