"""Tool templates: uploading, reading, comparing and deleting them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import File, Form, Query, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from engine.tools.package import starter
from engine.tools.schema_changes import FieldChange, field_changes
from engine.tools.template import Issue, Report, TemplateField
from studio.access import May, load_template, load_template_version, require
from studio.api.auth import caller
from studio.api.problems import ProblemError, invalid
from studio.api.reading import Body, Page, Paging
from studio.models import ToolTemplate, ToolTemplateVersion
from studio.operations.templates import (
    NameRefusedError,
    TemplateInUseError,
    UploadRefusedError,
    delete_template,
    export_workflow,
    newest_version,
    rename_template,
    report_of,
    upload,
)

router = Router(tags=["tool templates"])

_ZIP = "application/zip"
_ZIP_ANSWER: Any = {200: {"content": {_ZIP: {"schema": {"type": "string", "format": "binary"}}}}}


class ParameterOut(BaseModel):
    name: str
    type: str = Field(description="As it is annotated")
    required: bool = Field(description="By the specification: Optional makes a field optional")
    required_by_pydantic: bool = Field(
        description="Where only this is true, null is passed when no value is given"
    )
    description: str
    choices: list[Any]
    default: Any = Field(description="Null also where there is none: see has_default")
    has_default: bool
    secret: bool = Field(description="Its value is hidden from everybody once it is set")
    value_schema: dict[str, Any] = Field(
        serialization_alias="schema", description="The JSON Schema of its value"
    )


class IssueOut(BaseModel):
    rule: str
    severity: Literal["error", "warning"]
    message: str
    path: str
    line: int = Field(description="From 1; 0 where there is none")
    source: str = Field(description="The text of that line")


class VersionOut(BaseModel):
    version: int
    description: str
    user_parameters: list[ParameterOut]
    tool_parameters: list[ParameterOut]
    output_key: str | None
    requirements: list[str]
    issues: list[IssueOut]
    digest: str = Field(description="SHA-256 of the archive, as it is downloaded")
    uploaded_by: str
    uploaded_at: datetime


class _NamedOut(BaseModel):
    id: int
    name: str
    scope: str = Field(description="The workflow template it came with; empty for everybody's")


class TemplateOut(VersionOut, _NamedOut):
    """A template with its newest version."""

    instances: int = Field(description="How many are made of it")
    created_by: str
    created_at: datetime


class RefusedOut(BaseModel):
    name: str
    issues: list[IssueOut]


class UploadOut(TemplateOut):
    unchanged: bool = Field(description="The newest version was the same already: none was added")
    others: list[TemplateOut] = Field(description="Further templates of a workflow's archive")
    refused: list[RefusedOut] = Field(description="Templates of a workflow's archive not taken")


class ChangeOut(BaseModel):
    group: Literal["user", "tool"]
    name: str
    kind: Literal["added", "removed", "changed"]
    breaking: bool
    because: str


class ChangesOut(BaseModel):
    from_version: int
    to_version: int
    breaking: bool
    changes: list[ChangeOut]


class Between(Schema):
    """Numbers of two versions."""

    before: int = Field(alias="from")
    after: int = Field(alias="to")


class TemplateChanges(Body):
    name: str


def issue_json(issue: Issue) -> JsonObject:
    return {name: getattr(issue, name) for name in IssueOut.model_fields}


def change_json(change: FieldChange) -> JsonObject:
    return {name: getattr(change, name) for name in ChangeOut.model_fields}


def _parameter(field: TemplateField) -> JsonObject:
    plain = {name: getattr(field, name, None) for name in ParameterOut.model_fields}
    return plain | {"choices": list(field.choices), "value_schema": field.schema}


def _version(row: ToolTemplateVersion) -> JsonObject:
    report = report_of(row)
    return {
        "version": row.number,
        "description": report.description,
        "user_parameters": [_parameter(field) for field in report.user_parameters],
        "tool_parameters": [_parameter(field) for field in report.tool_parameters],
        "output_key": report.output_key,
        "requirements": list(report.requirements),
        "issues": [issue_json(issue) for issue in report.issues],
        "digest": row.digest,
        "uploaded_by": row.uploaded_by,
        "uploaded_at": row.created_at,
    }


def _templates(rows: Iterable[ToolTemplate]) -> list[JsonObject]:
    """Two queries for all of them."""
    shown = list(rows)
    newest = ToolTemplateVersion.objects.newest().without_archive().filter(template__in=shown)
    versions = {version.template_id: version for version in newest}
    counted = ToolTemplate.objects.filter(pk__in=versions).annotate(count=Count("instances"))
    counts = dict(counted.order_by().values_list("pk", "count"))
    return [
        {
            "id": row.pk,
            "name": row.name,
            "scope": row.scope,
            **_version(versions[row.pk]),
            "instances": counts[row.pk],
            "created_by": row.created_by,
            "created_at": row.created_at,
        }
        for row in shown
        if row.pk in versions
    ]


def _template(row: ToolTemplate) -> JsonObject:
    found = _templates([row])
    if not found:  # deleted a moment ago
        raise Http404(_("There is nothing here."))
    return found[0]


def _refusal(error: UploadRefusedError) -> ProblemError:
    words = [issue.message for issue in error.issues if issue.severity.value == "error"]
    refused = [_refused(report) for report in error.reports] if len(error.reports) > 1 else []
    return ProblemError(
        422,
        " ".join(words),
        issues=[issue_json(issue) for issue in error.issues],
        **({"refused": refused} if refused else {}),
    )


def _refused(report: Report) -> JsonObject:
    return {"name": report.name, "issues": [issue_json(issue) for issue in report.issues]}


@router.post("/tool-templates", response={201: UploadOut}, by_alias=True)
def upload_template(
    request: HttpRequest,
    file: File[UploadedFile],
    name: Form[str] = "",
    scope: Form[str] = "",
    new: Form[bool] = False,
) -> Status[JsonObject]:
    """Check a ZIP and take it. Nothing of it is run.

    Under a name that its `scope` has, it becomes the next version; with `new=true` that is refused. `name` is for a
    ZIP of one template. Of a workflow template's ZIP each tool template is taken for itself, into the scope of the
    workflow. 422 with `issues` where nothing is taken.
    """
    person = caller(request)
    require(person, May.MANAGE_TOOLS)
    try:
        taken = upload(
            file.read(),
            filename=file.name or "",
            by=person.get_username(),
            name=name,
            scope=scope,
            new=new,
        )
    except UploadRefusedError as error:
        raise _refusal(error) from error
    first, *others = _templates(version.template for version in taken.versions)
    return Status(
        201,
        {
            **first,
            "unchanged": taken.versions[0] in taken.unchanged,
            "others": others,
            "refused": [_refused(report) for report in taken.refused],
        },
    )


@router.get("/tool-templates", response=Page[TemplateOut], by_alias=True)
def list_templates(
    request: HttpRequest, paging: Query[Paging], q: str = "", scope: str | None = None
) -> JsonObject:
    """By scope and name; `q` leaves those whose name has it."""
    require(caller(request), May.VIEW)
    rows = ToolTemplate.objects.filter(name__icontains=q)
    if scope is not None:
        rows = rows.filter(scope=scope)
    page = paging.page(rows, lambda row: row)
    return page | {"items": _templates(page["items"])}


@router.get("/tool-templates/starter", openapi_extra={"responses": _ZIP_ANSWER})
def read_starter(request: HttpRequest) -> HttpResponse:
    """The ZIP of a small template that runs as it is, to begin one's own from."""
    require(caller(request), May.VIEW)
    return _zip(starter(), "starter")


@router.get("/tool-templates/export", openapi_extra={"responses": _ZIP_ANSWER})
def export_templates(
    request: HttpRequest, template: Query[list[int]], name: str = "Tools"
) -> HttpResponse:
    """The newest versions of these templates (`template`, several times) as a workflow template's ZIP."""
    person = caller(request)
    rows = [load_template(person, pk) for pk in dict.fromkeys(template)]
    return _zip(export_workflow(rows, name), "tool-templates")


@router.get("/tool-templates/{int:template_id}", response=TemplateOut, by_alias=True)
def read_template(request: HttpRequest, template_id: int) -> JsonObject:
    return _template(load_template(caller(request), template_id))


@router.patch("/tool-templates/{int:template_id}", response=TemplateOut, by_alias=True)
def update_template(request: HttpRequest, template_id: int, body: TemplateChanges) -> JsonObject:
    """Rename it."""
    row = load_template(caller(request), template_id, May.MANAGE_TOOLS)
    try:
        return _template(rename_template(row, body.name))
    except NameRefusedError as error:
        raise invalid(("name", error.issue.message)) from error


@router.delete("/tool-templates/{int:template_id}", response={204: None})
def remove_template(request: HttpRequest, template_id: int) -> Status[None]:
    """409 with `instances` while instances are made of it."""
    row = load_template(caller(request), template_id, May.MANAGE_TOOLS)
    try:
        delete_template(row)
    except TemplateInUseError as error:
        names = [instance.tool.name for instance in error.instances]
        raise ProblemError(
            409,
            _("%(name)r is in use: delete its instances first (%(instances)s).")
            % {"name": row.name, "instances": ", ".join(names)},
            instances=names,
        ) from error
    return Status(204, None)


@router.get("/tool-templates/{int:template_id}/versions", response=Page[VersionOut], by_alias=True)
def list_template_versions(
    request: HttpRequest, template_id: int, paging: Query[Paging]
) -> JsonObject:
    """The newest first."""
    row = load_template(caller(request), template_id)
    rows = row.versions.without_archive().order_by("-number")
    return paging.page(rows, _version)


@router.get(
    "/tool-templates/{int:template_id}/versions/{int:number}", response=VersionOut, by_alias=True
)
def read_template_version(request: HttpRequest, template_id: int, number: int) -> JsonObject:
    return _version(load_template_version(caller(request), template_id, number))


@router.get("/tool-templates/{int:template_id}/download", openapi_extra={"responses": _ZIP_ANSWER})
def download_template(
    request: HttpRequest, template_id: int, version: int | None = None
) -> HttpResponse:
    """The files of the newest version, or of `version`, as a ZIP that can be uploaded again."""
    person = caller(request)
    row = load_template(person, template_id)
    found = newest_version(row) if version is None else None
    if found is None:
        found = load_template_version(person, template_id, version or 0)
    return _zip(bytes(found.archive), row.slug)


@router.get("/tool-templates/{int:template_id}/changes", response=ChangesOut)
def read_template_changes(
    request: HttpRequest, template_id: int, between: Query[Between]
) -> JsonObject:
    """What the parameters of version `to` are that those of `from` are not, and what of it breaks."""
    person = caller(request)
    numbers = (between.before, between.after)
    versions = [load_template_version(person, template_id, number) for number in numbers]
    changes = field_changes(*map(report_of, versions))
    return {
        "from_version": between.before,
        "to_version": between.after,
        "breaking": any(change.breaking for change in changes),
        "changes": [change_json(change) for change in changes],
    }


def _zip(data: bytes, name: str) -> HttpResponse:
    response = HttpResponse(data, content_type=_ZIP)
    response["Content-Disposition"] = f'attachment; filename="{name}.zip"'
    return response
