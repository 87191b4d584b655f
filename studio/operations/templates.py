"""Uploading tool templates: checked by their text alone, and kept as versions that never change."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.db import IntegrityError, transaction
from django.db.models import Max, ProtectedError
from django.utils.translation import gettext as _

from engine.tools.checking.rulebook import shown
from engine.tools.package import (
    Archive,
    Package,
    PackageError,
    new_slug,
    read_archive,
    write_archive,
    write_workflow,
)
from engine.tools.packing.zip_files import read_files
from engine.tools.rules import check_package
from engine.tools.template import Issue, Report, Severity
from studio.models import ToolInstance, ToolTemplate, ToolTemplateVersion

NAME_RULE, TAKEN_RULE = "N-001", "N-002"
_LONGEST_SCOPE = 80
_ATTEMPTS = 5  # at a name that others take, and give up, at the same moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """What came of an upload that was taken.

    Of `versions`, one for each template in the file, `unchanged` are those that were there already. `refused` are the
    reports of those templates of a workflow's archive that were not taken.
    """

    versions: tuple[ToolTemplateVersion, ...]
    refused: tuple[Report, ...] = ()
    unchanged: tuple[ToolTemplateVersion, ...] = ()


class UploadRefusedError(Exception):
    """Nothing was stored. `issues` are all that was found; `reports` one for each template that could be read."""

    def __init__(self, issues: Sequence[Issue], reports: Sequence[Report] = ()) -> None:
        super().__init__(" ".join(issue.message for issue in issues))
        self.issues = tuple(issues)
        self.reports = tuple(reports)


class NameRefusedError(Exception):
    """A template cannot have this name; `issue` says why."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


class TemplateInUseError(Exception):
    """Instances are made of the template; `instances` are they."""

    def __init__(self, instances: Sequence[ToolInstance]) -> None:
        super().__init__(", ".join(str(instance) for instance in instances))
        self.instances = tuple(instances)


@dataclass(slots=True)
class _Taken:
    """What has come of an archive so far."""

    versions: list[ToolTemplateVersion] = field(default_factory=list)
    unchanged: list[ToolTemplateVersion] = field(default_factory=list)
    refused: list[Report] = field(default_factory=list)


def upload(
    data: bytes, *, filename: str, by: str, name: str = "", scope: str = "", new: bool = False
) -> Uploaded:
    """Take a ZIP of one template, or of a workflow template, each of whose tool templates is taken for itself.

    Under a name that its scope has, a template becomes the next version of that one, and with `new` it is refused;
    what is the same as the newest version adds none. `name` counts for a single template; without it, its own does.
    The scope of a workflow's templates is the workflow. Raises UploadRefusedError where nothing could be taken.
    """
    try:
        archive = read_archive(data, filename=filename)
    except PackageError as error:
        raise UploadRefusedError(error.issues) from error
    taken = _Taken()
    scope = _scope(scope or archive.workflow)
    for package, report in _checked(archive, name):
        if report.ok:
            _take(package, report, taken, by=by, scope=scope, new=new)
        else:
            taken.refused.append(report)
    if not taken.versions:
        issues = [issue for report in taken.refused for issue in report.issues]
        raise UploadRefusedError(issues, taken.refused)
    return Uploaded(
        versions=tuple(taken.versions),
        refused=tuple(taken.refused),
        unchanged=tuple(taken.unchanged),
    )


def _scope(text: str) -> str:
    """A name in one line, with nothing in it that cannot be seen or stored."""
    words = "".join(sign if sign.isprintable() else " " for sign in text).split()
    return " ".join(words)[:_LONGEST_SCOPE].strip()


def _checked(archive: Archive, name: str) -> Iterable[tuple[Package, Report]]:
    """Each package with what is to be said of it; of two that have one name, the second is refused."""
    given = name if len(archive.packages) == 1 else ""
    seen: set[str] = set()
    for package in archive.packages:
        report = check_package(package, name=given)
        if report.name.lower() in seen:
            report = _with(report, _taken_issue(report.name))
        seen.add(report.name.lower())
        yield package, report


def _with(report: Report, issue: Issue) -> Report:
    return replace(report, issues=(*report.issues, issue))


def _taken_issue(name: str) -> Issue:
    message = _("Another tool template is named %(name)r already; choose another name.")
    return Issue(rule=TAKEN_RULE, severity=Severity.ERROR, message=message % {"name": shown(name)})


def _take(
    package: Package, report: Report, taken: _Taken, *, by: str, scope: str, new: bool
) -> None:
    archive = write_archive(package.files)
    version = ToolTemplateVersion(
        archive=archive,
        digest=hashlib.sha256(archive).hexdigest(),
        report=report.to_json(),
        uploaded_by=by,
    )
    try:
        stored = _stored(version, report.name, scope=scope, new=new)
    except NameRefusedError as error:
        taken.refused.append(_with(report, error.issue))
        return
    taken.versions.append(stored)
    if stored is not version:
        taken.unchanged.append(stored)


def _stored(
    version: ToolTemplateVersion, name: str, *, scope: str, new: bool
) -> ToolTemplateVersion:
    """The version as the next one of its template, or the newest one where that is the same."""
    for _attempt in range(_ATTEMPTS):
        try:
            return _store(version, name, scope=scope, new=new)
        except (
            IntegrityError
        ):  # somebody gave a template this name, or a version this number, just now
            version.pk = None
    return _store(version, name, scope=scope, new=new)


@transaction.atomic
def _store(
    version: ToolTemplateVersion, name: str, *, scope: str, new: bool
) -> ToolTemplateVersion:
    # The row is locked, so that two uploads to one template have their numbers one after the other.
    template = (
        ToolTemplate.objects.select_for_update().filter(name__iexact=name, scope=scope).first()
    )
    if template is not None and new:
        raise NameRefusedError(_taken_issue(name))
    if template is None:
        template = ToolTemplate.objects.create(
            name=name, scope=scope, slug=new_slug(name), created_by=version.uploaded_by
        )
    newest = newest_version(template)
    if newest is not None and newest.digest == version.digest:
        return newest
    last = template.versions.aggregate(last=Max("number"))["last"]
    version.template, version.number = template, (last or 0) + 1
    version.save()
    return version


def newest_version(template: ToolTemplate) -> ToolTemplateVersion | None:
    """Without its archive, which is large."""
    return template.versions.newest().without_archive().first()


def report_of(version: ToolTemplateVersion) -> Report:
    return Report.from_json(version.report)


def package_of(version: ToolTemplateVersion) -> Package:
    """The files of a version, under its template's name."""
    return Package(name=version.template.name, files=read_files(bytes(version.archive)))


def rename_template(template: ToolTemplate, name: str) -> ToolTemplate:
    """Its slug and its versions stay. Raises NameRefusedError."""
    report = check_package(Package(name=name, files={}), name=name)
    wrong = [issue for issue in report.issues if issue.rule == NAME_RULE]
    if wrong:
        raise NameRefusedError(wrong[0])
    try:
        with transaction.atomic():
            ToolTemplate.objects.filter(pk=template.pk).update(name=name)
    except IntegrityError as error:
        raise NameRefusedError(_taken_issue(name)) from error
    template.name = name
    return template


def delete_template(template: ToolTemplate) -> None:
    """Delete it with all its versions; raises TemplateInUseError while instances are made of it."""
    try:
        with transaction.atomic():
            template.delete()
    except ProtectedError as error:
        instances = template.instances.select_related("tool").defer("encrypted_config")
        raise TemplateInUseError(list(instances)) from error


def export_workflow(templates: Iterable[ToolTemplate], name: str) -> bytes:
    """The newest versions as the archive of a workflow template, which `upload` takes again."""
    packages = {}
    for template in templates:
        version = template.versions.newest().first()
        if version is not None:
            packages[template.slug] = package_of(version)
    return write_workflow(name, packages)
