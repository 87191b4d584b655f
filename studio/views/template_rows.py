"""Tool templates and their versions as lists show them, without what was uploaded itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from engine.tools.schema_changes import FieldChange, field_changes
from engine.tools.template import Report
from studio.models import ToolInstance, ToolTemplate, ToolTemplateVersion
from studio.operations.templates import report_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateLine:
    template: ToolTemplate
    version: ToolTemplateVersion  # the newest
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLine:
    version: ToolTemplateVersion
    report: Report
    earlier: int | None  # the version before it
    changes: tuple[FieldChange, ...]  # since that one
    instances: tuple[ToolInstance, ...]  # that run on it

    @property
    def breaking(self) -> int:
        return sum(change.breaking for change in self.changes)


def lines_of(templates: Sequence[ToolTemplate]) -> list[TemplateLine]:
    """Each with its newest version, in one query."""
    later = ToolTemplateVersion.objects.filter(
        template=OuterRef("template"), number__gt=OuterRef("number")
    )
    rows = ToolTemplateVersion.objects.without_archive().filter(
        ~Exists(later), template__in=[each.pk for each in templates]
    )
    versions = {row.template_id: row for row in rows}
    return [
        TemplateLine(template=template, version=version, report=report_of(version))
        for template in templates
        if (version := versions.get(template.pk)) is not None
    ]


def versions_of(template: ToolTemplate) -> list[VersionLine]:
    """All its versions, the newest first, each with what it changed and who runs on it."""
    versions = list(template.versions.without_archive())
    reports = [report_of(version) for version in versions]
    instances: dict[int, list[ToolInstance]] = {}
    rows = template.instances.select_related(
        "tool", "environment", "version", "next_version", "next_environment"
    ).defer("version__archive", "version__report", "next_version__archive", "next_version__report")
    for row in rows:
        instances.setdefault(row.version_id, []).append(row)
    before = [*zip(versions[1:], reports[1:], strict=True), None]
    return [
        VersionLine(
            version=version,
            report=report,
            earlier=earlier[0].number if earlier else None,
            changes=field_changes(earlier[1], report) if earlier else (),
            instances=tuple(instances.get(version.pk, ())),
        )
        for version, report, earlier in zip(versions, reports, before, strict=True)
    ]
