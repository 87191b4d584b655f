"""Tool templates: the list, one with its versions and its source, what changed between two, and what becomes of it."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.db.models.functions import Lower
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from engine.tools.package import starter
from engine.tools.schema_changes import field_changes
from studio.access import May, allowed, load_template, require
from studio.forms.templates import TemplateNameForm
from studio.http import refused, show
from studio.models import ToolTemplate, ToolTemplateVersion
from studio.operations.templates import (
    NameRefusedError,
    TemplateInUseError,
    delete_template,
    export_workflow,
    rename_template,
    report_of,
)
from studio.views.signed_in import SignedInRequest
from studio.views.template_files import file_differences, files_of
from studio.views.template_rows import lines_of, versions_of

_PER_PAGE = 50
_MAX_EXPORTED = 100


@login_required
@require_GET
def template_list(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.VIEW)
    rows = ToolTemplate.objects.annotate(
        version_count=Count("versions", distinct=True),
        instance_count=Count("instances", distinct=True),
    )
    ordered = rows.order_by("scope", Lower("name"))  # counting gives up the order of the model
    page = Paginator(ordered, _PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "lines": lines_of(list(page)),
        "may_manage": allowed(request.user, May.MANAGE_TOOLS),
    }
    return show(request, "tools/template_list.html", context)


@login_required
@require_GET
def template_page(request: SignedInRequest, pk: int, number: int | None = None) -> HttpResponse:
    """Its newest version, or the one asked for; `file` in the address names the file that is shown."""
    template = load_template(request.user, pk)
    return _template(request, template, number)


def _template(
    request: SignedInRequest,
    template: ToolTemplate,
    number: int | None = None,
    *,
    form: TemplateNameForm | None = None,
) -> HttpResponse:
    version = _version(template, number)
    files = files_of(version)
    chosen = request.GET.get("file", "tool.py")
    lines = versions_of(template)
    context = {
        "template": template,
        "version": version,
        "newest": lines[0].version,
        "report": report_of(version),
        "lines": lines,
        "instances": [row for line in lines for row in line.instances],
        "files": files,
        "file": next((file for file in files if file.path == chosen), files[0]),
        "address": _address(template, version if number is not None else None),
        "form": form or TemplateNameForm(template=template),
        "may_manage": allowed(request.user, May.MANAGE_TOOLS),
    }
    status = 422 if form is not None else 200
    return show(request, "tools/template.html", context, part="source", status=status)


def _address(template: ToolTemplate, version: ToolTemplateVersion | None) -> str:
    if version is None:
        return reverse("tool-template", args=[template.pk])
    return reverse("tool-template-version", args=[template.pk, version.number])


def _version(template: ToolTemplate, number: int | None) -> ToolTemplateVersion:
    """The newest one without a number, which every template has."""
    rows = template.versions.all() if number is None else template.versions.filter(number=number)
    version = rows.first()
    if version is None:
        raise Http404(
            _("“%(name)s” has no version %(number)s.") % {"name": template, "number": number}
        )
    return version


@login_required
@require_GET
def template_changes(request: SignedInRequest, pk: int, before: int, after: int) -> HttpResponse:
    template = load_template(request.user, pk)
    old, new = _version(template, before), _version(template, after)
    changes = field_changes(report_of(old), report_of(new))
    context = {
        "template": template,
        "before": old,
        "after": new,
        "breaking": [change for change in changes if change.breaking],
        "harmless": [change for change in changes if not change.breaking],
        "files": file_differences(old, new),
    }
    return show(request, "tools/template_changes.html", context)


@login_required
@require_POST
def template_name(request: SignedInRequest, pk: int) -> HttpResponse:
    template = load_template(request.user, pk, May.MANAGE_TOOLS)
    form = TemplateNameForm(request.POST, template=template)
    if form.is_valid():
        try:
            rename_template(template, form.cleaned_data["name"])
        except NameRefusedError as error:
            form.add_error("name", error.issue.message)
    if form.errors:
        template.refresh_from_db()
        return _template(request, template, form=form)
    messages.success(request, _("It is called “%(name)s” now.") % {"name": template.name})
    return redirect("tool-template", pk=pk)


@login_required
@require_http_methods(["GET", "POST"])
def template_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Says first who uses it; refused as long as somebody does."""
    template = load_template(request.user, pk, May.MANAGE_TOOLS)
    context: dict[str, Any] = {
        "template": template,
        "version_count": template.versions.count(),
    }
    if request.method == "POST":
        try:
            delete_template(template)
        except TemplateInUseError as error:
            context["instances"] = error.instances
            return refused(request, "tools/template_delete.html", context)
        messages.success(request, _("“%(name)s” is deleted.") % {"name": template.name})
        return redirect("tool-templates")
    context["instances"] = template.instances.select_related("tool", "version")
    return show(request, "tools/template_delete.html", context)


# --- What leaves as a file


@login_required
@require_GET
def template_download(request: SignedInRequest, pk: int) -> HttpResponse:
    """A version as it was uploaded, the newest without `version`. Its name is one that an upload reads back."""
    template = load_template(request.user, pk)
    wanted = request.GET.get("version", "")
    version = _version(template, int(wanted) if wanted.isdecimal() and len(wanted) < 9 else None)
    return _file(bytes(version.archive), f"{template.slug}.zip")


@login_required
@require_GET
def template_starter(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.VIEW)
    return _file(starter(), "starter.zip")


@login_required
@require_GET
def template_export(request: SignedInRequest) -> HttpResponse:
    """The newest versions of the templates that the address names, as one workflow-template ZIP."""
    require(request.user, May.VIEW)
    wanted = [each for each in request.GET.getlist("template") if each.isdecimal()][:_MAX_EXPORTED]
    templates = list(ToolTemplate.objects.filter(pk__in=[int(each[:9]) for each in wanted]))
    if not templates:
        messages.info(request, _("Nothing to export: choose at least one template."))
        return redirect("tool-templates")
    name = request.GET.get("name", "").strip()[:80] or templates[0].name
    return _file(export_workflow(templates, name), f"{slugify(name) or 'tools'}.zip")


def _file(data: bytes, name: str) -> HttpResponse:
    disposition = content_disposition_header(as_attachment=True, filename=name)
    return HttpResponse(
        data, content_type="application/zip", headers={"Content-Disposition": disposition}
    )
