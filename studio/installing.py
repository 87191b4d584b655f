"""Uploaded tools of the shed as what this process can run: their code unpacked, their environment, their values."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from engine import spec
from engine.tools.installed import InstalledTool, remove_tree
from engine.tools.package import PackageError, unpack
from engine.tools.runner import Program
from engine.tools.template import Report, TemplateField
from studio.models import ToolEnvironment, ToolInstance, ToolTemplateVersion
from studio.operations.environments import ensure_here


def tools_root() -> Path:
    """Where everything of uploaded tools lies on this machine."""
    root: Path = settings.STUDIO_VAR / "tools"
    return root


def installed_tools(
    tools: Iterable[spec.Tool],
) -> tuple[list[InstalledTool], dict[str, str]]:
    """Those of the tools that are instances and can run, and of the other instances why not: uid → sentence.

    One query; one more where a package is not unpacked yet on this machine.
    """
    instances = list(
        ToolInstance.objects.filter(tool__uid__in=[tool.uid for tool in tools])
        .select_related("tool", "template", "version", "environment")
        .defer("version__archive", "environment__log", "environment__requirements")
    )
    problems = _unpack_missing([instance.version for instance in instances])
    installed, unavailable = [], {}
    for instance in instances:
        found = problems.get(instance.version.digest) or _installed(instance)
        if isinstance(found, InstalledTool):
            installed.append(found)
        else:
            unavailable[instance.tool.uid] = found
    return installed, unavailable


def _installed(instance: ToolInstance) -> InstalledTool | str:
    """Or the sentence that says why it cannot run now."""
    python = ensure_here(instance.environment)
    if python is None:
        return _without_environment(instance.environment)
    report = Report.from_json(instance.version.report)
    config = instance.config
    missing = [field.name for field in report.user_parameters if _is_missing(field, config)]
    if missing:
        return _("Its configuration lacks %(names)s: enter it on the tool's page.") % {
            "names": ", ".join(repr(name) for name in missing)
        }
    return InstalledTool(
        uid=instance.tool.uid,
        name=instance.tool.name,
        program=Program(
            package=_place(instance.version.digest),
            slug=instance.template.slug,
            workspace=_workspace(instance),
            python=python,
        ),
        user_params=dict.fromkeys(_nullable(report.user_parameters)) | config,
        secrets=tuple(_secrets(instance, report, config)),
        output_key=report.output_key,
        nullable=_nullable(report.tool_parameters),
    )


def _is_missing(field: TemplateField, config: Mapping[str, Any]) -> bool:
    return field.required and config.get(field.name) is None


def _nullable(fields: Iterable[TemplateField]) -> tuple[str, ...]:
    return tuple(
        field.name for field in fields if field.required_by_pydantic and not field.required
    )


def _secrets(instance: ToolInstance, report: Report, config: Mapping[str, Any]) -> Iterator[str]:
    names = {field.name for field in report.user_parameters if field.secret} | set(instance.secrets)
    for name in names & config.keys():
        yield from _texts(config[name])


def _texts(value: Any) -> Iterator[str]:
    """What a tool may print of a value, leaf by leaf."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for item in value.values():
                yield from _texts(item)


def _without_environment(environment: ToolEnvironment) -> str:
    match environment.state:
        case ToolEnvironment.State.QUEUED | ToolEnvironment.State.RUNNING:
            return _("Its environment is still being built.")
        case ToolEnvironment.State.FINISHED:
            return _("Its environment is not on this machine; it is being built again.")
        case ToolEnvironment.State.STOPPED:
            return _("Building its environment was stopped; build it again on the tool's page.")
        case _:
            return _("Its environment could not be built: %(reason)s") % {
                "reason": environment.error
            }


def _workspace(instance: ToolInstance) -> Path:
    path = tools_root() / "workspaces" / str(instance.pk)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _place(digest: str) -> Path:
    return tools_root() / "packages" / digest


def _unpack_missing(versions: Sequence[ToolTemplateVersion]) -> dict[str, str]:
    """Unpack the packages that are not on this machine yet; of what failed why: digest → sentence."""
    missing = {
        version.digest: version.pk for version in versions if not _place(version.digest).is_dir()
    }
    if not missing:
        return {}
    rows = ToolTemplateVersion.objects.filter(pk__in=missing.values())
    problems = {}
    for digest, archive in rows.values_list("digest", "archive"):
        try:
            _unpack(bytes(archive), _place(digest))
        except (OSError, PackageError) as error:
            problems[digest] = _("Its files could not be written: %(reason)s") % {"reason": error}
    return problems


def _unpack(archive: bytes, place: Path) -> None:
    """Whole or not at all, and read-only; whoever else unpacks it at the same moment finds the same."""
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    try:
        unpack(archive, made)
        for folder, _folders, names in os.walk(made, topdown=False):
            for name in names:
                (Path(folder) / name).chmod(0o444)
            Path(folder).chmod(0o555)
        made.rename(place)
    except FileExistsError:
        return  # the other was first
    except OSError:
        if not place.is_dir():
            raise
    finally:
        if made.exists():
            remove_tree(made)
