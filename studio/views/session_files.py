"""A session as a file: exporting it as a page or as JSON, and importing what was exported."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from studio.access import May, load_session, require
from studio.forms.session_files import FORMATS, ExportForm, SessionFileForm
from studio.http import refused, show
from studio.models import Session
from studio.operations.redaction import Kind
from studio.operations.session_document import DocumentRefusedError, Problem
from studio.operations.session_export import ExportRefusedError, export_session
from studio.operations.session_import import Imported, import_session
from studio.views.exported_page import exported_html
from studio.views.signed_in import SignedInRequest

_EXPORT, _IMPORT = "sessions/export_form.html", "sessions/import.html"
_LISTED = 100
_TYPES = {"html": "text/html; charset=utf-8", "json": "application/json"}


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def session_export(request: SignedInRequest, pk: int) -> HttpResponse:
    """What to leave out is chosen first (`?format=html` or `json`); a POST shows what would be, or gives the file."""
    session = load_session(request.user, pk)
    style = request.GET.get("format", "")
    style = style if style in FORMATS else FORMATS[0]
    form = ExportForm(request.POST if request.method == "POST" else None, style=style)
    context: dict[str, Any] = {"session": session, "form": form, "style": style}
    if request.method != "POST":
        return show(request, _EXPORT, context)
    if not form.is_valid():
        return refused(request, _EXPORT, context)
    try:
        if request.POST.get("action") == "download":
            return _download(request, session, form, style)
        return show(request, _EXPORT, context | _preview(request, session, form))
    except ExportRefusedError as error:
        return refused(request, _EXPORT, context | {"refusal": error})


def _preview(request: SignedInRequest, session: Session, form: ExportForm) -> dict[str, Any]:
    exported = export_session(
        session, by=request.user.username, rules=form.rules, tree=form.whole_tree
    )
    found = sorted(exported.redactor.found.values(), key=lambda one: list(Kind).index(one.kind))
    return {
        "previewed": True,
        "found": found[:_LISTED],
        "found_count": len(found),
        "more": max(0, len(found) - _LISTED),
    }


def _download(
    request: SignedInRequest, session: Session, form: ExportForm, style: str
) -> HttpResponse:
    by = request.user.username
    if style == "html":
        text = exported_html(session, by=by, rules=form.rules)
    else:
        text = export_session(session, by=by, rules=form.rules, tree=form.whole_tree).text
    name = f"session-{session.pk}.{style}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type=_TYPES[style], headers=headers)


@login_required
@require_http_methods(["GET", "POST"])
def session_import(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.CONVERSE)
    if request.method != "POST":
        return show(request, _IMPORT, {"form": SessionFileForm()})
    form = SessionFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return refused(request, _IMPORT, {"form": form})

    def authorise(slug: str, exists: bool) -> None:
        if not exists:
            _require_author(request, slug)

    try:
        imported = import_session(
            form.cleaned_data["file"].read(), by=request.user, authorise=authorise
        )
    except DocumentRefusedError as error:
        context = {"form": SessionFileForm(), "problems": error.problems}
        return refused(request, _IMPORT, context)
    messages.success(request, _said(imported))
    return redirect("session", pk=imported.session.pk)


def _require_author(request: SignedInRequest, slug: str) -> None:
    try:
        require(request.user, May.WRITE_GUIDELINES)
    except PermissionDenied as error:
        message = _("There is no agent “%(slug)s” here. %(why)s") % {"slug": slug, "why": error}
        raise DocumentRefusedError(Problem(place="agent.slug", message=message)) from error


def _said(imported: Imported) -> str:
    count = len(imported.sessions)
    parts = [
        ngettext("The session is here.", "The session is here with its %(count)d branches.", count)
        % {"count": count}
    ]
    if imported.made_agent:
        agent = imported.session.agent.name
        parts.append(_("“%(agent)s” was made as a draft.") % {"agent": agent})
    if imported.missing_tools:
        names = ", ".join(imported.missing_tools)
        parts.append(
            _("Tools that are not here were left out of it: %(names)s.") % {"names": names}
        )
    return " ".join(parts)
