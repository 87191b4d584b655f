"""Instances of tool templates: making, configuring, upgrading and deleting them."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_instance, load_template, load_template_version, require
from studio.api.auth import caller
from studio.api.problems import ProblemError, invalid
from studio.api.reading import Body, Page, Paging
from studio.models import ToolEnvironment, ToolInstance
from studio.operations.configuration import ConfigRefusedError
from studio.operations.instances import (
    InstanceInUseError,
    NameRefusedError,
    cancel_upgrade,
    configure,
    create_instance,
    delete_instance,
    environment_state,
    retry_build,
    shown_config,
    upgrade,
)
from studio.operations.templates import newest_version

router = Router(tags=["tool instances"])

State = Literal["QUEUED", "BUILDING", "READY", "FAILED"]


class SecretOut(BaseModel):
    set_by: str
    set_at: datetime | None
    fingerprint: str = Field(description="By which whoever knows the secret recognises it")


class _BuildOut(BaseModel):
    """How far the environment is."""

    state: State
    stage: str
    error: str = Field(description="Why it could not be built")


class _NamedOut(BaseModel):
    id: int
    name: str
    tool: str = Field(description="The name of its tool in the shed")
    template: int
    template_name: str
    version: int


class UpgradeOut(_BuildOut):
    version: int
    log: str = Field(description="What building said; empty in lists")


class InstanceOut(_BuildOut, _NamedOut):
    log: str = Field(description="What building said; empty in lists")
    config: dict[str, Any] = Field(description="Its values, without those of secrets")
    secrets: dict[str, SecretOut] = Field(description="The secrets that are set")
    upgrade: UpgradeOut | None = Field(description="What it becomes as soon as that is built")
    created_by: str
    created_at: datetime
    updated_at: datetime


class _Configuring(Body):
    config: dict[str, Any] = Field(
        default_factory=dict, description="Parameter → value of its type; null removes a value"
    )
    secret: list[str] = Field(
        default_factory=list, description="Parameters to be kept secret besides those that are"
    )


class NewInstance(_Configuring):
    name: str = Field(description="Of its tool: letters, digits, _ and -")
    version: int | None = Field(None, description="The newest where it is left out")
    consequential: bool = Field(False, description="It changes something: money, orders, data")


class InstanceChanges(_Configuring):
    """Values that are not given stay."""


class Upgrade(_Configuring):
    version: int


def _build(environment: ToolEnvironment, *, log: bool) -> JsonObject:
    return {
        "state": environment_state(environment),
        "stage": environment.stage,
        "log": environment.log if log else "",
        "error": environment.error,
    }


def _instance(row: ToolInstance, *, log: bool = True) -> JsonObject:
    values = shown_config(row)
    waiting = None
    if row.next_version is not None and row.next_environment is not None:
        waiting = {"version": row.next_version.number, **_build(row.next_environment, log=log)}
    return {
        "id": row.pk,
        "name": row.tool.name,
        **_build(row.environment, log=log),
        "tool": row.tool.name,
        "template": row.template_id,
        "template_name": row.template.name,
        "version": row.version.number,
        "config": {
            each.field.name: each.value for each in values if each.is_set and not each.is_secret
        },
        "secrets": {
            each.field.name: {
                "set_by": each.set_by,
                "set_at": each.set_at,
                "fingerprint": each.fingerprint,
            }
            for each in values
            if each.is_set and each.is_secret
        },
        "upgrade": waiting,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _again(request: HttpRequest, row: ToolInstance) -> JsonObject:
    """As it is stored now."""
    return _instance(load_instance(caller(request), row.pk))


def _wrong(error: ConfigRefusedError) -> ProblemError:
    if isinstance(error, NameRefusedError):
        return invalid(("name", error.message))
    return invalid(
        *((f"config.{name}" if name else "", message) for name, message in error.errors.items())
    )


@router.post("/tool-templates/{int:template_id}/instances", response={202: InstanceOut})
def make_instance(request: HttpRequest, template_id: int, body: NewInstance) -> Status[JsonObject]:
    """A tool of the shed; until its environment is built, a call of it fails with the reason.

    422 names each value of `config` that is wrong or missing.
    """
    person = caller(request)
    template = load_template(person, template_id, May.MANAGE_TOOLS)
    version = newest_version(template)
    if body.version is not None or version is None:
        version = load_template_version(person, template_id, body.version or 0)
    try:
        row = create_instance(
            version,
            name=body.name,
            config=body.config,
            secret_names=body.secret,
            consequential=body.consequential,
            by=person.get_username(),
        )
    except ConfigRefusedError as error:
        raise _wrong(error) from error
    return Status(202, _again(request, row))


@router.get("/tool-instances", response=Page[InstanceOut])
def list_instances(
    request: HttpRequest, paging: Query[Paging], template: int | None = None
) -> JsonObject:
    """By name; `template` leaves those of one."""
    require(caller(request), May.VIEW)
    rows = ToolInstance.objects.select_related(
        "tool", "template", "version", "environment", "next_version", "next_environment"
    ).defer(
        "version__archive", "next_version__archive", "environment__log", "next_environment__log"
    )
    if template is not None:
        rows = rows.filter(template=template)
    return paging.page(rows, lambda row: _instance(row, log=False))


@router.get("/tool-instances/{int:instance_id}", response=InstanceOut)
def read_instance(request: HttpRequest, instance_id: int) -> JsonObject:
    return _instance(load_instance(caller(request), instance_id))


@router.patch("/tool-instances/{int:instance_id}", response=InstanceOut)
def update_instance(request: HttpRequest, instance_id: int, body: InstanceChanges) -> JsonObject:
    """Replace the values that are given; the next call has them."""
    person = caller(request)
    row = load_instance(person, instance_id, May.MANAGE_TOOLS)
    try:
        configure(row, config=body.config, secret_names=body.secret, by=person.get_username())
    except ConfigRefusedError as error:
        raise _wrong(error) from error
    return _again(request, row)


@router.delete("/tool-instances/{int:instance_id}", response={204: None})
def remove_instance(request: HttpRequest, instance_id: int) -> Status[None]:
    """Deletes its tool too; 409 with `agents` and `guidelines` while these use it."""
    row = load_instance(caller(request), instance_id, May.MANAGE_TOOLS)
    try:
        delete_instance(row)
    except InstanceInUseError as error:
        agents = [agent.slug for agent in error.agents]
        raise ProblemError(
            409,
            _("%(tool)r is in use by %(agents)s; take it from their tools, and publish, first.")
            % {"tool": error.tool.name, "agents": ", ".join(agents)},
            agents=agents,
            guidelines=[guideline.uid for guideline in error.guidelines],
        ) from error
    return Status(204, None)


@router.post("/tool-instances/{int:instance_id}/build", response={202: InstanceOut})
def build_instance(request: HttpRequest, instance_id: int) -> Status[JsonObject]:
    """Build its environment again, and that of its upgrade, where that failed or was stopped."""
    person = caller(request)
    row = load_instance(person, instance_id, May.MANAGE_TOOLS)
    retry_build(row, by=person.get_username())
    return Status(202, _again(request, row))


@router.post("/tool-instances/{int:instance_id}/upgrade", response={202: InstanceOut})
def upgrade_instance(request: HttpRequest, instance_id: int, body: Upgrade) -> Status[JsonObject]:
    """Make it another version of its template, as soon as that is built; until then it runs as it is.

    `config` are values that change with it. 422 names what the version needs and what it does not accept.
    """
    person = caller(request)
    row = load_instance(person, instance_id, May.MANAGE_TOOLS)
    version = load_template_version(person, row.template_id, body.version)
    try:
        upgrade(
            row,
            version,
            config=body.config,
            secret_names=body.secret,
            by=person.get_username(),
        )
    except ConfigRefusedError as error:
        raise _wrong(error) from error
    return Status(202, _again(request, row))


@router.delete("/tool-instances/{int:instance_id}/upgrade", response=InstanceOut)
def cancel_instance_upgrade(request: HttpRequest, instance_id: int) -> JsonObject:
    """It stays the version that it is."""
    row = load_instance(caller(request), instance_id, May.MANAGE_TOOLS)
    cancel_upgrade(row)
    return _again(request, row)
