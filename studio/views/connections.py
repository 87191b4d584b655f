"""Model connections: which endpoints answer, and whether they do."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from studio.access import May, load_connection, require
from studio.forms.connections import ConnectionForm
from studio.http import refused, show
from studio.models import ModelConnection
from studio.operations.connections import make_default, test_connection
from studio.secrets import fingerprint
from studio.views.signed_in import SignedInRequest


def key_facts(connection: ModelConnection) -> dict[str, Any] | None:
    """What may be shown of a key: who set it, when, and four characters to recognise it by."""
    if not connection.api_key:
        return None
    return {
        "by": connection.api_key_set_by,
        "at": connection.api_key_set_at,
        "fingerprint": fingerprint(connection.api_key),
    }


@login_required
@require_GET
def connection_list(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.MANAGE_CONNECTIONS)
    rows = list(ModelConnection.objects.all())
    context = {
        "rows": [(row, key_facts(row)) for row in rows],
        "has_default": any(row.is_default for row in rows),
        "environment_model": settings.STUDIO_MODEL,
        "environment_url": settings.OPENAI_BASE_URL,
    }
    return show(request, "settings/connections.html", context)


@sensitive_post_parameters("new_key")
@login_required
@require_http_methods(["GET", "POST"])
def connection_new(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.MANAGE_CONNECTIONS)
    form = ConnectionForm(request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return show(request, "settings/connection.html", {"form": form})
    if not form.is_valid():
        return refused(request, "settings/connection.html", {"form": form})
    connection = form.store(request.user)
    messages.success(request, _("The connection is stored. Test it next."))
    return redirect("connection", pk=connection.pk)


@sensitive_post_parameters("new_key")
@login_required
@require_http_methods(["GET", "POST"])
def connection(request: SignedInRequest, pk: int) -> HttpResponse:
    row = load_connection(request.user, pk)
    key = key_facts(row)
    form = ConnectionForm(request.POST if request.method == "POST" else None, instance=row)
    if request.method == "POST" and form.is_valid():
        form.store(request.user)
        messages.success(request, _("Saved. The next turn uses it."))
        return redirect("connection", pk=pk)
    context = {
        "connection": load_connection(request.user, pk),
        "key": key,
        "form": form,
        "last_check": row.checks.first(),
    }
    if form.errors:
        return refused(request, "settings/connection.html", context)
    return show(request, "settings/connection.html", context)


@login_required
@require_POST
def connection_default(request: SignedInRequest, pk: int) -> HttpResponse:
    row = load_connection(request.user, pk)
    make_default(row)
    messages.success(
        request, _("Sessions that choose no connection now use “%(name)s”.") % {"name": row.name}
    )
    return redirect("connections")


@login_required
@require_POST
def connection_test(request: SignedInRequest, pk: int) -> HttpResponse:
    """Ask it one small question now; the answer is a report, whether it went well or not."""
    row = load_connection(request.user, pk)
    context = {"connection": row, "report": test_connection(row)}
    return show(request, "settings/connection_test.html", context, part="report")


@login_required
@require_http_methods(["GET", "POST"])
def connection_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    row = load_connection(request.user, pk)
    if request.method == "POST":
        row.delete()
        messages.success(request, _("“%(name)s” is deleted.") % {"name": row.name})
        return redirect("connections")
    context = {"connection": row, "session_count": row.sessions.chats().count()}
    return show(request, "settings/connection_delete.html", context)
