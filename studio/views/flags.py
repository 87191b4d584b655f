"""Flags on a message: seen and set below it in the chat, or on a page of their own."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from studio.access import May, allowed, load_flag, load_message, load_session
from studio.http import is_part, show
from studio.models import Event, Session
from studio.operations.flags import (
    MAX_COMMENT_CHARACTERS,
    FlagRefusedError,
    close_flag,
    reopen_flag,
    set_flag,
)
from studio.views.session_rows import place_of
from studio.views.signed_in import SignedInRequest


@login_required
@never_cache  # a fragment and the whole page have one address
@require_http_methods(["GET", "POST"])
def flags(request: SignedInRequest, pk: int, offset: int) -> HttpResponse:
    """All flags of a message with the form for another; for htmx the part of the chat below the message.

    `?form=no` is that part as it stands in the chat, without the form.
    """
    may = May.CONVERSE if request.method == "POST" else May.VIEW
    event = load_message(request.user, pk, offset, may)
    session = load_session(request.user, pk)
    if request.method == "GET":
        return _flags(request, session, event, asking=request.GET.get("form") != "no")
    comment = request.POST.get("comment", "")
    try:
        set_flag(event, comment, by=request.user)
    except FlagRefusedError as refusal:
        return _flags(request, session, event, asking=True, comment=comment, refused=str(refusal))
    return _after(request, session, event)


@login_required
@require_POST
def flag_state(request: SignedInRequest, pk: int, flag: int) -> HttpResponse:
    """Closes the flag (`state=closed`) or opens it again (`state=open`); one that is so already stays so."""
    row = load_flag(request.user, pk, flag, May.CONVERSE)
    session = load_session(request.user, pk)
    if request.POST.get("state") == "open":
        reopen_flag(row)
    else:
        close_flag(row, by=request.user)
    return _after(request, session, row.event)


def _after(request: SignedInRequest, session: Session, event: Event) -> HttpResponse:
    if is_part(request):
        return _flags(request, session, event, asking=False, done=True)
    return redirect(_place(session, event))


def _place(session: Session, event: Event) -> str:
    turn = event.turn.number if event.turn is not None else None
    return place_of(session, turn, f"event-{event.offset}")


def _flags(
    request: SignedInRequest,
    session: Session,
    event: Event,
    *,
    asking: bool,
    comment: str = "",
    refused: str = "",
    done: bool = False,
) -> HttpResponse:
    rows = list(event.flags.all())
    context: dict[str, Any] = {
        "session": session,
        "event": event,
        "offset": event.offset,
        "source": event.source,
        "back": _place(session, event),
        "done": done,
        "flags": [flag for flag in rows if flag.closed_at is None],
        "closed": [flag for flag in rows if flag.closed_at is not None],
        "asking": asking,
        "comment": comment,
        "refused": refused,
        "most": MAX_COMMENT_CHARACTERS,
        "may_converse": allowed(request.user, May.CONVERSE),
    }
    status = 422 if refused else 200
    return show(request, "sandbox/flags.html", context, part="below", status=status)
