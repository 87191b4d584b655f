"""Edited recordings of a session: what a replay is to find in place of recorded tool results."""

import json
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from engine.errors import ToolErrorKind
from engine.tools.results import MAX_RESULT_BYTES
from studio.access import May, allowed, load_session, load_turn, load_variant
from studio.forms.written_values import UnreadableError, json_of
from studio.models import Session, ToolCall, Variant
from studio.operations.variants import (
    EMPTY,
    RESULT,
    Edit,
    EditRefusedError,
    recorded_call,
    remove_edit,
    save_edit,
    save_variant,
)
from studio.views.signed_in import SignedInRequest

_ANY_JSON: dict[str, Any] = {"type": ["object", "array", "number", "boolean", "null"]}
_FIRST = (ToolErrorKind.TIMEOUT, ToolErrorKind.EXCEPTION)
FAILURES = (*_FIRST, *(kind for kind in ToolErrorKind if kind not in _FIRST))


@login_required
@require_GET
def variant_list(request: SignedInRequest, pk: int) -> HttpResponse:
    session = load_session(request.user, pk)
    return _page(request, session)


@login_required
@require_POST
def variant_title(request: SignedInRequest, pk: int, variant: int) -> HttpResponse:
    row = load_variant(request.user, pk, variant, May.TEST)
    try:
        save_variant(row, title=request.POST.get("title", "").replace("\x00", ""))
    except EditRefusedError as refusal:
        return _page(request, load_session(request.user, pk), refused={row.pk: str(refusal)})
    messages.success(request, _("It is called “%(title)s” now.") % {"title": row.title})
    return redirect("variants", pk=pk)


@login_required
@require_POST
def variant_delete(request: SignedInRequest, pk: int, variant: int) -> HttpResponse:
    """Replays that were made with it stay, and say what they found."""
    row = load_variant(request.user, pk, variant, May.TEST)
    row.delete()
    messages.success(request, _("“%(title)s” is deleted.") % {"title": row.title})
    return redirect("variants", pk=pk)


@login_required
@require_POST
def variant_edit_delete(request: SignedInRequest, pk: int, variant: int, call: str) -> HttpResponse:
    row = load_variant(request.user, pk, variant, May.TEST)
    remove_edit(row, call)
    messages.success(request, _("That result is the recorded one again."))
    return redirect("variants", pk=pk)


@login_required
@require_http_methods(["GET", "POST"])
def recorded_result(request: SignedInRequest, pk: int, number: int, uid: str) -> HttpResponse:
    """Change the result of one recorded call, in a new variant or in one that there is."""
    load_turn(request.user, pk, number, May.TEST)
    session = load_session(request.user, pk)
    call = recorded_call(session, uid)
    if call is None or call.turn.number != number:
        raise Http404(_("This turn has no call %(uid)r that came to an end.") % {"uid": uid})
    chosen = _variant(session, request.POST.get("variant") or request.GET.get("variant"))
    if request.method == "GET":
        return _form(request, session, call, chosen, **_stored(call, chosen))
    kind, text = request.POST.get("kind", RESULT), request.POST.get("data", "")
    title = request.POST.get("title", "").replace("\x00", "")
    try:
        row = save_edit(
            session,
            Edit(call=call, kind=kind, data=_value(text) if kind == RESULT else None),
            variant=chosen,
            title=title if chosen is None else "",
            by=request.user.get_username(),
        )
    except EditRefusedError as refusal:
        sent = {"kind": kind, "text": text, "title": title, "error": str(refusal)}
        return _form(request, session, call, chosen, status=422, **sent)
    messages.success(
        request,
        _("“%(title)s” keeps it. Nothing of the record has changed.") % {"title": row.title},
    )
    return redirect("variants", pk=pk)


def _variant(session: Session, chosen: str | None) -> Variant | None:
    if not chosen or not chosen.isdecimal() or len(chosen) > 18:
        return None
    return session.variants.filter(pk=int(chosen)).first()


def _stored(call: ToolCall, variant: Variant | None) -> dict[str, Any]:
    """What the variant has of the call already, else the recorded result."""
    edits = variant.edits if variant is not None else []
    known = next((edit for edit in edits if edit["call"] == call.uid), None)
    data = (call.result or {}).get("data")
    if known is not None and known["kind"] == RESULT:
        data = known["data"]
    return {"kind": known["kind"] if known is not None else RESULT, "text": _written(data)}


def _value(text: str) -> Any:
    if not text.strip():
        raise EditRefusedError(
            _('Write what the tool answers, as JSON: for example {"balance": 412.60}.')
        )
    if len(text) > MAX_RESULT_BYTES:
        raise EditRefusedError(
            _("This has %(count)d characters; at most %(limit)d can be a result.")
            % {"count": len(text), "limit": MAX_RESULT_BYTES}
        )
    try:
        return json_of(text.strip(), _ANY_JSON)
    except UnreadableError as error:
        raise EditRefusedError(_("What you wrote %(why)s.") % {"why": error}) from error


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _form(
    request: SignedInRequest,
    session: Session,
    call: ToolCall,
    variant: Variant | None,
    *,
    status: int = 200,
    **shown: Any,
) -> HttpResponse:
    context = {
        "session": session,
        "agent": session.agent,
        "call": call,
        "variant": variant,
        "variants": session.variants.all(),
        "failures": FAILURES,
        "empty": EMPTY,
        **shown,
    }
    return render(request, "replays/result.html", context, status=status)


def _page(
    request: SignedInRequest, session: Session, *, refused: dict[int, str] | None = None
) -> HttpResponse:
    rows = [(row, (refused or {}).get(row.pk, "")) for row in session.variants.all()]
    context = {
        "session": session,
        "agent": session.agent,
        "rows": rows,
        "may_test": allowed(request.user, May.TEST),
        "result": RESULT,
        "empty": EMPTY,
    }
    return render(request, "replays/variants.html", context, status=422 if refused else 200)
