"""The audit of one turn: ledger, waterfall, prompts, record, each a view of one dictionary."""

import math
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from studio.access import load_session, load_turn
from studio.audit import audit
from studio.ledger_markdown import ledger_markdown
from studio.models import Session, Turn
from studio.prompt_sections import prompt_pieces
from studio.record import record_json
from studio.views.conversation import TURNS_AT_ONCE, lines_of
from studio.views.ledger import ledger
from studio.views.session_rows import place_of
from studio.views.signed_in import SignedInRequest
from studio.waterfall import waterfall

LEDGER = "ledger"
_SHOWN: dict[str, Promise] = {
    LEDGER: gettext_lazy("Ledger"),
    "waterfall": gettext_lazy("Waterfall"),
    "prompts": gettext_lazy("Prompts"),
    "record": gettext_lazy("Record"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One way of looking at the turn, with its address."""

    name: str
    title: Promise
    address: str
    current: bool


def pane_context(
    request: SignedInRequest, session: Session, turn: Turn | None, *, alone: bool = False
) -> dict[str, Any]:
    """What "What happened" shows of a turn: `?show=` names the tab, `?call=` a prompt and `?open=` a row to unfold."""
    if turn is None:
        return {"session": session, "turn": None, "alone": alone}
    shown = request.GET.get("show", LEDGER)
    shown = shown if shown in _SHOWN else LEDGER
    wanted = request.GET.get("call", "") if shown == "prompts" else ""
    record = audit(turn, prompts=bool(wanted))
    return {
        "session": session,
        "turn": turn,
        "alone": alone,
        **drawn(record, shown, call=wanted),
        "tabs": _tabs(session, turn.number, shown, alone=alone),
        "prompts": _address(session, turn.number, "prompts", alone=alone),
        "elsewhere": _sources_elsewhere(session, record, alone=alone),
        "opened": request.GET.get("open", ""),
    }


def drawn(record: dict[str, Any], shown: str = LEDGER, *, call: str = "") -> dict[str, Any]:
    """What is drawn of a record, from it alone; with the prompts in it, also the one of the model call `call`."""
    context = {"audit": record, "ledger": ledger(record), "shown": shown}
    if shown == "waterfall":
        context["waterfall"] = waterfall(record)
    elif shown == "prompts":
        wanted = next(
            (each for each in record["model_calls"] if call and each["uid"] == call), None
        )
        context["wanted"] = wanted
        context["pieces"] = prompt_pieces(wanted) if wanted is not None else ()
    elif shown == "record":
        context |= {"record": record_json(record), "record_name": "record.json"}
        context["markdown"] = ledger_markdown(record)
    return context


def _sources_elsewhere(session: Session, record: dict[str, Any], *, alone: bool) -> dict[int, str]:
    """Offset → address of those messages that arguments came from and that do not stand on this page."""
    here = {message["offset"] for message in record["messages"]}
    named = {
        argument.get("offset")
        for decision in record["decisions"]
        for argument in decision["arguments"]
    }
    far = named - here - {None}
    if not far:
        return {}
    shown = math.inf if alone else session.next_turn - TURNS_AT_ONCE
    said = session.line.events.filter(offset__in=far, turn__isnull=False)
    return {
        offset: place_of(session, number, f"event-{offset}", ledger=record["number"])
        for offset, number in said.values_list("offset", "turn__number")
        if number < shown
    }


def _tabs(session: Session, number: int, shown: str, *, alone: bool) -> list[Tab]:
    return [
        Tab(
            name=name,
            title=title,
            address=_address(session, number, name, alone=alone),
            current=name == shown,
        )
        for name, title in _SHOWN.items()
    ]


def _address(session: Session, number: int, show: str, *, alone: bool) -> str:
    query = {"show": show} if show != LEDGER or not alone else {}
    if alone:
        page = reverse("session-turn", args=[session.pk, number])
    else:
        page, query = reverse("session", args=[session.pk]), {"turn": str(number)} | query
    return f"{page}?{urlencode(query)}" if query else page


@login_required
@never_cache  # a fragment and the whole page have one address
@require_GET
def turn_page(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """The audit of one turn as a page of its own, with an address for each of its rows; for htmx its pane alone."""
    turn = load_turn(request.user, pk, number)
    session = load_session(request.user, pk)
    context = pane_context(request, session, turn, alone=True)
    if request.headers.get("HX-Target") == "ledger":
        return render(request, "sandbox/_ledger.html", context)
    context["line"] = lines_of(session, [number])[0]
    return render(request, "sandbox/turn.html", context)


@login_required
@require_GET
def prompt_page(request: SignedInRequest, pk: int, number: int, uid: str) -> HttpResponse:
    """One model call word for word: what was asked, and what came back."""
    turn = load_turn(request.user, pk, number)
    calls = [call for call in audit(turn, prompts=True)["model_calls"] if call["uid"] == uid]
    if not calls:
        raise Http404(_("This turn has no model call %(uid)r.") % {"uid": uid})
    part = request.headers.get("HX-Request") == "true"
    template = "sandbox/_prompt.html" if part else "sandbox/prompt.html"
    session = load_session(request.user, pk)
    context = {
        "session": session,
        "turn": turn,
        "call": calls[0],
        "pieces": prompt_pieces(calls[0]),
        "part": part,
    }
    return render(request, template, context)


@login_required
@never_cache
@require_GET
def turn_record(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """The audit with its prompts as a file: the same JSON that the API answers with."""
    record = audit(load_turn(request.user, pk, number), prompts=True)
    return _file(record_json(record), "application/json", f"session-{pk}-turn-{number}.json")


@login_required
@never_cache
@require_GET
def turn_markdown(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """The ledger as Markdown, to be put into an issue or a message."""
    text = ledger_markdown(audit(load_turn(request.user, pk, number)))
    return _file(text, "text/markdown; charset=utf-8", f"session-{pk}-turn-{number}.md")


def _file(text: str, content_type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type=content_type, headers=headers)
