"""Uploading a tool template: the file, what the rules found in it, and where it goes from there."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from studio.access import May, load_template, require
from studio.forms.templates import UploadForm
from studio.http import is_part, refused, show
from studio.models import ToolTemplate, ToolTemplateVersion
from studio.operations.templates import Uploaded, UploadRefusedError, report_of, upload
from studio.views.signed_in import SignedInRequest

_PAGE = "tools/upload.html"


@login_required
@require_http_methods(["GET", "POST"])
def upload_page(request: SignedInRequest) -> HttpResponse:
    """`template` in the address is the one whose next version is uploaded; `name` is looked up while it is written."""
    require(request.user, May.MANAGE_TOOLS)
    target = _target(request)
    if request.method == "POST":
        return _take(request, UploadForm(request.POST, request.FILES, target=target))
    form = UploadForm(target=target, initial={"name": _text(request, "name")})
    if is_part(request):
        return show(request, _PAGE, {"known": _known(_text(request, "name"))}, part="known")
    return show(request, _PAGE, _context(form))


def _text(request: SignedInRequest, name: str) -> str:
    return request.GET.get(name, "").replace("\x00", "")[:200]


def _target(request: SignedInRequest) -> ToolTemplate | None:
    wanted = request.GET.get("template", "")
    if not wanted:
        return None
    if not wanted.isdecimal() or len(wanted) > 9:
        raise Http404(_("There is no such template."))
    return load_template(request.user, int(wanted), May.MANAGE_TOOLS)


def _known(name: str) -> ToolTemplate | None:
    """The template that a name belongs to already, with its newest version's number as `newest`."""
    name = name.strip()
    return ToolTemplate.objects.filter(name__iexact=name, scope="").first() if name else None


def _context(form: UploadForm, **more: Any) -> dict[str, Any]:
    target = form.target
    name = "" if target else str(form["name"].value() or "")
    address = reverse("tool-upload") + (f"?template={target.pk}" if target else "")
    return {
        "form": form,
        "target": target,
        "known": _known(name.replace("\x00", "")),
        "address": address,
        **more,
    }


def _take(request: SignedInRequest, form: UploadForm) -> HttpResponse:
    if not form.is_valid():
        return refused(request, _PAGE, _context(form), part="upload")
    file, target = form.cleaned_data["package"], form.target
    try:
        uploaded = upload(
            file.read(),
            filename=file.name,
            by=request.user.username,
            name=target.name if target else form.cleaned_data["name"],
            scope=target.scope if target else "",
            new=bool(form.cleaned_data.get("new")),
        )
    except UploadRefusedError as error:
        said = {"refusal": error, "filename": file.name}
        return refused(request, _PAGE, _context(form, **said), part="upload")
    if len(uploaded.versions) == 1 and not uploaded.refused:
        return _go_on(request, uploaded)
    return show(request, _PAGE, _context(form, **_result(uploaded, file.name)), part="upload")


def _go_on(request: SignedInRequest, uploaded: Uploaded) -> HttpResponse:
    """To the page of the one template that came."""
    version = uploaded.versions[0]
    messages.success(request, _sentence(version, unchanged=bool(uploaded.unchanged)))
    if is_part(request):
        address = reverse("tool-template", args=[version.template_id])
        return HttpResponseClientRedirect(address)
    return redirect("tool-template", pk=version.template_id)


def _sentence(version: ToolTemplateVersion, *, unchanged: bool) -> str:
    values = {"name": version.template.name, "number": version.number}
    if unchanged:
        said = _("This is “%(name)s” as version %(number)d has it already: nothing was added.")
    elif version.number == 1:
        said = _("“%(name)s” is here. Make an instance of it, and agents can use it.")
    else:
        said = _(
            "It is version %(number)d of “%(name)s” now. Instances stay on theirs until each is upgraded."
        )
    return said % values


def _result(uploaded: Uploaded, filename: str) -> dict[str, Any]:
    """Of a workflow's archive: each template by itself."""
    unchanged = {version.pk for version in uploaded.unchanged}
    count = len(uploaded.versions)
    return {
        "filename": filename,
        "taken": [
            (version, report_of(version), version.pk in unchanged) for version in uploaded.versions
        ],
        "left_out": uploaded.refused,
        "result": ngettext("%(count)d template is here.", "%(count)d templates are here.", count)
        % {"count": count},
    }
