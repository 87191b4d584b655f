"""Instances of tool templates: their configuration, their upgrades, and their end."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from engine.tools.environment import Needs
from engine.tools.installed import remove_tree
from studio.bridge import agent_spec
from studio.models import (
    Agent,
    Guideline,
    Tool,
    ToolEnvironment,
    ToolInstance,
    ToolTemplateVersion,
)
from studio.operations.configuration import (
    ConfigRefusedError,
    Configuration,
    Given,
    ShownValue,
    fields_of,
)
from studio.operations.environments import environment_for, remove_unused, request_build
from studio.operations.instance_versions import (
    UnusableVersionError,
    forget_next,
    make_tool,
    refuse_unusable,
    settle,
)
from studio.operations.templates import package_of

__all__ = [
    "ConfigRefusedError",
    "InstanceInUseError",
    "NameRefusedError",
    "ShownValue",
    "cancel_upgrade",
    "configure",
    "create_instance",
    "delete_instance",
    "instance_state",
    "retry_build",
    "shown_config",
    "upgrade",
]

# What stands after `/tools/` in the studio's own addresses.
RESERVED = frozenset({"upload", "templates", "instances", "services", "delegates", "starter"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STATES = {
    ToolEnvironment.State.QUEUED: "QUEUED",
    ToolEnvironment.State.RUNNING: "BUILDING",
    ToolEnvironment.State.FINISHED: "READY",
}


class NameRefusedError(ConfigRefusedError):
    """The tool cannot have this name."""

    def __init__(self, message: str) -> None:
        super().__init__({"": message})
        self.message = message


class InstanceInUseError(Exception):
    """Agents may use its tool, or guidelines have it attached."""

    def __init__(
        self, tool: Tool, agents: Sequence[Agent], guidelines: Sequence[Guideline]
    ) -> None:
        super().__init__(f"{tool.name!r} is used by {len(agents)} agents")
        self.tool = tool
        self.agents = tuple(agents)
        self.guidelines = tuple(guidelines)


@transaction.atomic
def create_instance(
    version: ToolTemplateVersion,
    *,
    name: str,
    config: Mapping[str, Any],
    secret_names: Collection[str] = (),
    consequential: bool = False,
    by: str,
) -> ToolInstance:
    """A tool of this name made of the version, whose environment is built unless it is there.

    Words of the name are joined by underscores. Values of `config` are of their parameters' types; those of secrets,
    and of `secret_names`, are never shown again. Raises NameRefusedError, and ConfigRefusedError for the values and
    for a version of which no tool can be made.
    """
    name = _refusing_name("_".join(name.split()))
    fields = fields_of(version)
    given = Given.now(config, by=by, secret=secret_names)
    configuration = Configuration(values={}, secrets={}).with_given(fields, given)
    configuration.refuse_wrong(fields, given)
    try:
        with transaction.atomic():
            tool = make_tool(version, name=name, consequential=consequential)
    except UnusableVersionError as error:
        raise ConfigRefusedError({"": str(error)}) from error
    except IntegrityError as error:
        raise NameRefusedError(
            _("Another tool is named %(name)r already; choose another name.") % {"name": name}
        ) from error
    instance = ToolInstance(
        template=version.template,
        version=version,
        environment=environment_for(Needs.of(package_of(version))),
        tool=tool,
        created_by=by,
    )
    configuration.write(instance)
    instance.save()
    request_build(instance.environment, by=by)
    return instance


def _refusing_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise NameRefusedError(
            _(
                "A tool's name has 1 to 64 letters a-z, digits, _ and -; %(name)r is not such a name."
            )
            % {"name": name[:80]}
        )
    if name.lower() in RESERVED:
        raise NameRefusedError(
            _("%(name)r is a page of the studio; choose another name.") % {"name": name}
        )
    return name


@transaction.atomic
def configure(
    instance: ToolInstance,
    *,
    config: Mapping[str, Any],
    secret_names: Collection[str] = (),
    by: str,
) -> ToolInstance:
    """Replace the values that are given, and remove those given as None; the others stay. Raises ConfigRefusedError.

    Values that its upgrade would not accept are refused while it waits for one.
    """
    instance = _locked(instance)
    fields = fields_of(instance.version)
    given = Given.now(config, by=by, secret=secret_names)
    configuration = Configuration.of(instance).with_given(fields, given)
    configuration.refuse_wrong(fields, given)
    if configuration.waiting is not None:
        version, waiting = configuration.waiting
        configuration.for_next().refuse_wrong(fields_of(version), waiting)
    configuration.write(instance)
    instance.save()
    return instance


@transaction.atomic
def upgrade(
    instance: ToolInstance,
    version: ToolTemplateVersion,
    *,
    config: Mapping[str, Any],
    secret_names: Collection[str] = (),
    by: str,
) -> ToolInstance:
    """Make it another version of its template, an older one too, as soon as that version's environment is built.

    Until then it runs as it is. `config` are the values that change with it, as for `configure`. Raises
    ConfigRefusedError.
    """
    instance = _locked(instance)
    _refuse_version(instance, version)
    fields = fields_of(version)
    given = Given.now(config, by=by, secret=secret_names)
    Configuration.of(instance).with_given(fields, given).refuse_wrong(fields, given)
    instance.next_version = version
    instance.next_environment = environment_for(Needs.of(package_of(version)))
    instance.next_config = given.to_json()
    instance.save()
    request_build(instance.next_environment, by=by)
    settle(instance.next_environment)
    transaction.on_commit(remove_unused)
    return _locked(instance)


def _refuse_version(instance: ToolInstance, version: ToolTemplateVersion) -> None:
    if version.template_id != instance.template_id:
        raise ConfigRefusedError({"": _("This is a version of another template.")})
    if version.pk == instance.version_id:
        raise ConfigRefusedError({"": _("It runs on this version already.")})
    try:
        refuse_unusable(version)
    except UnusableVersionError as error:
        raise ConfigRefusedError({"": str(error)}) from error


@transaction.atomic
def cancel_upgrade(instance: ToolInstance) -> ToolInstance:
    """It stays the version that it is; nothing happens where it is no longer to become another."""
    stored = _stored(instance)
    if stored is None:
        return instance
    forget_next(stored)
    stored.save()
    transaction.on_commit(remove_unused)
    return stored


def retry_build(instance: ToolInstance, by: str) -> None:
    """Build again what it needs now, or for its upgrade, where that failed or was stopped."""
    for environment in (instance.environment, instance.next_environment):
        if environment is not None:
            request_build(environment, by=by)


@transaction.atomic
def delete_instance(instance: ToolInstance) -> None:
    """Delete it, its tool and what its calls left in its workspace, unless it is gone. Raises InstanceInUseError."""
    stored = _stored(instance)
    if stored is None:
        return
    tool = stored.tool
    agents, guidelines = users_of(tool)
    if agents or guidelines:
        raise InstanceInUseError(tool, agents, guidelines)
    workspace = settings.STUDIO_VAR / "tools" / "workspaces" / str(stored.pk)
    stored.delete()
    tool.delete()

    def remove() -> None:
        if workspace.is_dir():
            remove_tree(workspace)
        remove_unused()

    transaction.on_commit(remove)


def users_of(tool: Tool) -> tuple[list[Agent], list[Guideline]]:
    """The agents that may use it, by their draft or by what they have published, and the guidelines that name it."""
    agents = {agent.pk: agent for agent in Agent.objects.filter(tools=tool)}
    for agent in Agent.objects.filter(published__isnull=False).select_related("published"):
        if agent.published is not None and _uses(agent, tool):
            agents[agent.pk] = agent
    attached = Guideline.objects.filter(tools=tool) | Guideline.objects.filter(
        reevaluate_after=tool
    )
    guidelines = list(attached.select_related("agent").distinct())
    return sorted(agents.values(), key=lambda agent: agent.name), guidelines


def _uses(agent: Agent, tool: Tool) -> bool:
    return agent.published is not None and any(
        each.uid == tool.uid for each in agent_spec(agent.published).tools
    )


def shown_config(instance: ToolInstance) -> tuple[ShownValue, ...]:
    """Its configuration, one value for each of its version's UserParameters, without secrets."""
    return Configuration.of(instance).shown(fields_of(instance.version))


def instance_state(instance: ToolInstance) -> str:
    """QUEUED, BUILDING, READY or FAILED, of the version that it is."""
    return environment_state(instance.environment)


def environment_state(environment: ToolEnvironment) -> str:
    return _STATES.get(ToolEnvironment.State(environment.state), "FAILED")


def _locked(instance: ToolInstance) -> ToolInstance:
    """As it is stored, for changing; raises ConfigRefusedError where it was deleted."""
    stored = _stored(instance)
    if stored is None:
        raise ConfigRefusedError({"": _("Somebody deleted it meanwhile.")})
    return stored


def _stored(instance: ToolInstance) -> ToolInstance | None:
    rows = ToolInstance.objects.select_for_update(of=("self",)).select_related(
        "tool", "template", "version", "environment", "next_version", "next_environment"
    )
    return rows.defer("version__archive", "next_version__archive").filter(pk=instance.pk).first()
