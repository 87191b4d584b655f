"""Instances of tool templates: made, built, configured, upgraded, deleted."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from engine.tools.isolation import detect
from engine.tools.schema_changes import FieldChange, field_changes
from studio.access import May, allowed, load_instance, load_template
from studio.forms.configuration import ConfigurationForm, InstanceForm
from studio.http import refused, show
from studio.models import Agent, ToolEnvironment, ToolInstance, ToolTemplate, ToolTemplateVersion
from studio.operations.configuration import Configuration, fields_of
from studio.operations.instances import (
    ConfigRefusedError,
    InstanceInUseError,
    NameRefusedError,
    cancel_upgrade,
    configure,
    create_instance,
    delete_instance,
    retry_build,
    shown_config,
    upgrade,
    users_of,
)
from studio.operations.templates import newest_version, report_of
from studio.views.signed_in import SignedInRequest

_STATES = {
    ToolEnvironment.State.QUEUED: gettext_lazy("Waiting to be built"),
    ToolEnvironment.State.RUNNING: gettext_lazy("Being built"),
    ToolEnvironment.State.FINISHED: gettext_lazy("Ready"),
    ToolEnvironment.State.FAILED: gettext_lazy("Build failed"),
    ToolEnvironment.State.STOPPED: gettext_lazy("Build stopped"),
}
# As engine.tools.environment tells them, in their order.
_STAGES = ("Creating the environment", "Resolving", "Installing", "Checking")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """An environment as the page shows it. `place` tells two of a page apart, `others` counts who else needs it."""

    environment: ToolEnvironment
    place: str
    others: int

    @property
    def words(self) -> str:
        return str(_STATES[ToolEnvironment.State(self.environment.state)])

    @property
    def elapsed_ms(self) -> int | None:
        began, over = self.environment.started_at, self.environment.finished_at
        if began is None:
            return None
        return round(((over or timezone.now()) - began).total_seconds() * 1000)

    @property
    def stages(self) -> list[tuple[str, str]]:
        """(stage, "done", "now" or "later"); one of its own, such as a wait, stands before them."""
        at = self.environment.stage
        names = _STAGES if at in _STAGES or not at else (at, *_STAGES)
        place = names.index(at) if at else -1
        return [
            (name, "done" if number < place else "now" if number == place else "later")
            for number, name in enumerate(names)
        ]


# --- A new one


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "POST"])
def instance_new(request: SignedInRequest, pk: int) -> HttpResponse:
    """Of the newest version, unless the address names another one."""
    template = load_template(request.user, pk, May.MANAGE_TOOLS)
    version = _version_of(request, template)
    fields = fields_of(version)
    context: dict[str, Any] = {"template": template, "version": version}
    if request.method == "GET":
        context |= {
            "form": InstanceForm(template=template.name),
            "configuration": ConfigurationForm.new(fields),
        }
        return show(request, "tools/instance_new.html", context)
    form = InstanceForm(request.POST)
    configuration = ConfigurationForm.new(fields, request.POST)
    if form.is_valid() & configuration.is_valid():
        instance = _made(request, version, form, configuration)
        if instance is not None:
            return redirect("tool-instance", pk=instance.pk)
    configuration.forget_secrets()
    context |= {"form": form, "configuration": configuration}
    return refused(request, "tools/instance_new.html", context)


def _made(
    request: SignedInRequest,
    version: ToolTemplateVersion,
    form: InstanceForm,
    configuration: ConfigurationForm,
) -> ToolInstance | None:
    """The instance, or None where it is refused; the forms then say why."""
    try:
        return create_instance(
            version,
            name=form.cleaned_data["name"],
            config=configuration.config,
            secret_names=configuration.secret_names,
            consequential=form.cleaned_data["consequential"],
            by=request.user.username,
        )
    except NameRefusedError as error:
        form.add_error("name", error.message)
    except ConfigRefusedError as error:
        configuration.report(error.errors)
    return None


def _version_of(request: SignedInRequest, template: ToolTemplate) -> ToolTemplateVersion:
    """The version that the address names, else the newest one."""
    wanted = request.GET.get("version", "")
    if not wanted:
        version = newest_version(template)
    else:
        number = int(wanted) if wanted.isdecimal() and len(wanted) <= 9 else 0
        version = template.versions.without_archive().filter(number=number).first()
    if version is None:
        raise Http404(_("There is no such version."))
    version.template = template
    return version


# --- Its page


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "POST"])
def instance_page(request: SignedInRequest, pk: int) -> HttpResponse:
    if request.method == "GET":
        instance = load_instance(request.user, pk)
        return _instance(request, instance, ConfigurationForm(shown_config(instance)))
    instance = load_instance(request.user, pk, May.MANAGE_TOOLS)
    form = ConfigurationForm(shown_config(instance), request.POST)
    if form.is_valid():
        try:
            configure(
                instance,
                config=form.config,
                secret_names=form.secret_names,
                by=request.user.username,
            )
        except ConfigRefusedError as error:
            form.report(error.errors)
    if form.has_errors:
        form.forget_secrets()
        return _instance(request, instance, form, status=422)
    messages.success(request, _("Saved. The next call runs on it."))
    return redirect("tool-instance", pk=pk)


def _instance(
    request: SignedInRequest, instance: ToolInstance, form: ConfigurationForm, *, status: int = 200
) -> HttpResponse:
    users, guidelines = users_of(instance.tool)
    newer = newest_version(instance.template)
    is_newer = newer is not None and newer.number > instance.version.number
    changes = _changes(instance, newer) if is_newer and newer else []
    builds = _builds(instance)
    context = {
        "instance": instance,
        "tool": instance.tool,
        "template": instance.template,
        "configuration": form,
        **builds,
        "is_building": any(not each.environment.is_over for each in builds.values() if each),
        "newer": newer if is_newer and instance.next_version is None else None,
        "changes": changes,
        "breaking": sum(change.breaking for change in changes),
        "users": users,
        "guidelines": guidelines,
        "agents": [] if users else list(Agent.objects.all()[:5]),
        "isolation": detect().sentence,
        "may_manage": allowed(request.user, May.MANAGE_TOOLS),
    }
    return show(request, "tools/instance.html", context, part="state", status=status)


def _builds(instance: ToolInstance) -> dict[str, Build | None]:
    """Of what it is, and of what it becomes."""
    return {
        "now": _build(instance, instance.environment, "now"),
        "next": _build(instance, instance.next_environment, "next"),
    }


def _build(instance: ToolInstance, environment: ToolEnvironment | None, place: str) -> Build | None:
    if environment is None:
        return None
    needing = ToolInstance.objects.filter(
        Q(environment=environment) | Q(next_environment=environment)
    )
    return Build(
        environment=environment, place=place, others=needing.exclude(pk=instance.pk).count()
    )


@login_required
@require_POST
def instance_build(request: SignedInRequest, pk: int) -> HttpResponse:
    """Build again what failed or was stopped."""
    instance = load_instance(request.user, pk, May.MANAGE_TOOLS)
    retry_build(instance, request.user.username)
    return redirect("tool-instance", pk=pk)


@login_required
@require_POST
def instance_build_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    instance = load_instance(request.user, pk, May.MANAGE_TOOLS)
    stopped = [each.environment.request_stop() for each in _builds(instance).values() if each]
    if not any(stopped):
        messages.info(request, _("The build is over already."))
    return redirect("tool-instance", pk=pk)


# --- Another version


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "POST"])
def instance_upgrade(request: SignedInRequest, pk: int) -> HttpResponse:
    """What another version changes, and the configuration for it."""
    instance = load_instance(request.user, pk, May.MANAGE_TOOLS)
    version = _version_of(request, instance.template)
    if version.pk == instance.version_id:
        messages.info(request, _("It runs on this version already."))
        return redirect("tool-instance", pk=pk)
    shown = Configuration.of(instance).shown(fields_of(version))
    if request.method == "GET":
        return _upgrade(request, instance, version, ConfigurationForm(shown))
    form = ConfigurationForm(shown, request.POST)
    if form.is_valid():
        try:
            instance = upgrade(
                instance,
                version,
                config=form.config,
                secret_names=form.secret_names,
                by=request.user.username,
            )
        except ConfigRefusedError as error:
            form.report(error.errors)
    if form.has_errors:
        form.forget_secrets()
        return _upgrade(request, instance, version, form, status=422)
    if instance.next_version is None:
        messages.success(request, _("It is version %(number)d now.") % {"number": version.number})
    return redirect("tool-instance", pk=pk)


def _upgrade(
    request: SignedInRequest,
    instance: ToolInstance,
    version: ToolTemplateVersion,
    form: ConfigurationForm,
    *,
    status: int = 200,
) -> HttpResponse:
    known = [instance.version_id, version.pk]
    context = {
        "instance": instance,
        "tool": instance.tool,
        "template": instance.template,
        "version": version,
        "changes": _changes(instance, version),
        "configuration": form,
        "others": list(instance.template.versions.without_archive().exclude(pk__in=known)),
    }
    return show(request, "tools/instance_upgrade.html", context, status=status)


def _changes(instance: ToolInstance, version: ToolTemplateVersion) -> list[FieldChange]:
    """From its version to this one, what breaks first."""
    found = field_changes(report_of(instance.version), report_of(version))
    return sorted(found, key=lambda change: not change.breaking)


@login_required
@require_POST
def instance_upgrade_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    instance = cancel_upgrade(load_instance(request.user, pk, May.MANAGE_TOOLS))
    messages.info(
        request, _("It stays on version %(number)d.") % {"number": instance.version.number}
    )
    return redirect("tool-instance", pk=pk)


# --- Its end


@login_required
@require_http_methods(["GET", "POST"])
def instance_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Says first who uses it; refused as long as somebody does."""
    instance = load_instance(request.user, pk, May.MANAGE_TOOLS)
    context: dict[str, Any] = {"instance": instance, "tool": instance.tool}
    if request.method == "GET":
        users, guidelines = users_of(instance.tool)
        context |= {"users": users, "guidelines": guidelines}
        return show(request, "tools/instance_delete.html", context)
    name, template = instance.tool.name, instance.template_id
    try:
        delete_instance(instance)
    except InstanceInUseError as error:
        context |= {"users": error.agents, "guidelines": error.guidelines, "refused": True}
        return refused(request, "tools/instance_delete.html", context)
    messages.success(request, _("“%(name)s” is deleted.") % {"name": name})
    return redirect("tool-template", pk=template)
