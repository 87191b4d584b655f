"""The buttons that begin a branch of a session."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from studio.access import May, load_session
from studio.http import is_part
from studio.models import Session
from studio.operations.branches import BranchRefusedError, branch_from, regenerate, resend
from studio.operations.turns import MessageRefusedError
from studio.views.sandbox import sandbox_page
from studio.views.signed_in import SignedInRequest


@login_required
@require_POST
def branches(request: SignedInRequest, pk: int) -> HttpResponse:
    """Go on after the turn `from_turn` in a branch of its own."""
    session = load_session(request.user, pk, May.CONVERSE)
    text = request.POST.get("from_turn", "")
    number = int(text) if text.isdecimal() and len(text) < 10 else -1
    try:
        if number < 0:
            raise BranchRefusedError(_("Name the turn to go on from."))
        branch = branch_from(session, number, by=request.user)
    except BranchRefusedError as refusal:
        return _refusal(request, session, str(refusal))
    return _go_to(request, branch)


@login_required
@require_POST
def turn_regenerate(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """Answer what was said in the turn once more, in a sibling branch."""
    session = load_session(request.user, pk, May.CONVERSE)
    try:
        made = regenerate(session, number, by=request.user)
    except BranchRefusedError as refusal:
        return _refusal(request, session, str(refusal))
    return _go_to(request, made.session)


@login_required
@require_POST
def turn_resend(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """Say something else than what was said in the turn, in a sibling branch; 422 with the words kept."""
    session = load_session(request.user, pk, May.CONVERSE)
    text = request.POST.get("text", "")
    try:
        made = resend(session, number, text, by=request.user)
    except (BranchRefusedError, MessageRefusedError) as refusal:
        return _refusal(request, session, str(refusal), text=text, editing=number)
    return _go_to(request, made.session)


def _go_to(request: SignedInRequest, branch: Session) -> HttpResponse:
    address = reverse("session", args=[branch.pk]) + "#end"
    if is_part(request):
        return HttpResponseClientRedirect(address)
    return redirect(address)


def _refusal(
    request: SignedInRequest, session: Session, words: str, *, text: str = "", editing: int = 0
) -> HttpResponse:
    if is_part(request):
        return render(request, "sandbox/_refused.html", {"refused": words}, status=422)
    return sandbox_page(
        request, session, text=text, refused=words, editing=editing or None, status=422
    )
