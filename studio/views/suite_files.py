"""A suite as a file, out and in."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from studio.access import May, load_agent, load_suite, require
from studio.forms.suite_files import SuiteFileForm, read_suite
from studio.http import refused, show
from studio.models import Agent
from studio.operations.document_report import DocumentError
from studio.operations.suite_documents import suite_text
from studio.views.signed_in import SignedInRequest

_PAGE = "suites/import.html"


@login_required
@require_GET
def suite_export(request: SignedInRequest, pk: int) -> HttpResponse:
    """YAML, or with `?format=json` JSON."""
    suite = load_suite(request.user, pk)
    as_json = request.GET.get("format") == "json"
    name = slugify(suite.name) or f"suite-{suite.pk}"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.{"json" if as_json else "yaml"}"'
    }
    return HttpResponse(
        suite_text(suite, "json" if as_json else "yaml"),
        content_type="application/json" if as_json else "application/yaml",
        headers=headers,
    )


@login_required
@require_http_methods(["GET", "POST"])
def suite_import(request: SignedInRequest) -> HttpResponse:
    """Into the agent of `agent`. With `look` the page says row by row what would change, and changes nothing."""
    require(request.user, May.TEST)
    given = request.POST if request.method == "POST" else request.GET
    slug = given.get("agent", "").replace("\x00", "")
    agents = list(Agent.objects.order_by("name").only("slug", "name"))
    context: dict[str, Any] = {"agents": agents, "chosen": slug}
    if request.method == "GET":
        return show(request, _PAGE, context | {"form": SuiteFileForm(label_suffix="")})
    form = SuiteFileForm(request.POST, request.FILES, label_suffix="")
    context["form"] = form
    if not form.is_valid():
        return refused(request, _PAGE, context)
    agent = load_agent(request.user, slug, May.TEST)
    look = "look" in request.POST
    try:
        report, suite = read_suite(
            form.cleaned_data["file"], agent, dry_run=look, by=request.user.username
        )
    except DocumentError as error:
        return refused(request, _PAGE, context | {"report": error.report})
    if look or suite is None:
        return show(request, _PAGE, context | {"report": report, "looked": True})
    messages.success(
        request,
        _("“%(name)s” is as the document says.") % {"name": suite.name}
        if report.changed
        else _("“%(name)s” was as the document says already.") % {"name": suite.name},
    )
    return redirect("suite", pk=suite.pk)
