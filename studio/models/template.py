"""Uploaded tools: templates with their versions, the environments they need, and the instances made of them."""

import json
from typing import Any

from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from studio.models.job import Job
from studio.models.tool import Tool
from studio.secrets import EncryptedTextField


class ToolTemplate(models.Model):
    """An uploaded package under its name. `scope` is the workflow template it came with; empty is everybody's."""

    name = models.CharField(
        max_length=80,
        validators=[
            RegexValidator(
                r"\A[a-zA-Z0-9 ]*[a-zA-Z0-9][a-zA-Z0-9 ]*\Z",
                _("A name has letters a-z, digits and spaces only."),
            )
        ],
    )
    scope = models.CharField(max_length=80, blank=True)
    slug = models.CharField(
        max_length=90
    )  # its directory when written: "{lowercase, spaces → _}_{6 characters}"
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["scope", Lower("name")]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                "scope",
                name="tool_template_name_unique",
                violation_error_message=_("Another tool template has this name already."),
            ),
            models.UniqueConstraint(fields=["slug"], name="tool_template_slug_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class ToolTemplateVersionQuerySet(models.QuerySet["ToolTemplateVersion"]):
    def without_archive(self) -> "ToolTemplateVersionQuerySet":
        return self.defer("archive")

    def newest(self) -> "ToolTemplateVersionQuerySet":
        """Of each template the last one."""
        last = ToolTemplateVersion.objects.filter(template=models.OuterRef("template"))
        return self.filter(pk=models.Subquery(last.order_by("-number").values("pk")[:1]))


class ToolTemplateVersion(models.Model):
    """What was uploaded, unchanged ever after. `report` is an engine.tools.template.Report as JSON."""

    template = models.ForeignKey(ToolTemplate, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    archive = models.BinaryField()  # engine.tools.package.write_archive of its files, at the root
    digest = models.CharField(max_length=64)  # SHA-256 of `archive`
    report = models.JSONField()
    uploaded_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ToolTemplateVersionQuerySet.as_manager()

    class Meta:
        ordering = ["template", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["template", "number"], name="tool_template_version_number_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.template} v{self.number}"


class ToolEnvironment(Job):
    """The environment for one set of requirements, shared by all instances that need the same.

    Finished means built; where it lies is this machine's affair (engine/tools/environment.py).
    """

    key = models.CharField(max_length=64)  # of engine.tools.environment.Needs
    requirements = models.TextField()
    python = models.CharField(max_length=20)
    stage = models.CharField(max_length=40, blank=True)
    log = models.TextField(blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["key"], name="tool_environment_key_unique")]

    def __str__(self) -> str:
        return f"{self.key[:12]} {self.get_state_display()}"

    @property
    def is_ready(self) -> bool:
        return self.state == self.State.FINISHED


class ToolInstance(models.Model):
    """A template version with its configuration and its environment; once that is built, `tool` can be called.

    `next_version` is the one it becomes as soon as `next_environment` is built, with `next_config` on top of its own.
    """

    template = models.ForeignKey(ToolTemplate, on_delete=models.PROTECT, related_name="instances")
    version = models.ForeignKey(ToolTemplateVersion, on_delete=models.PROTECT, related_name="+")
    environment = models.ForeignKey(
        ToolEnvironment, on_delete=models.PROTECT, related_name="instances"
    )
    next_version = models.ForeignKey(
        ToolTemplateVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    next_environment = models.ForeignKey(
        ToolEnvironment, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    tool = models.OneToOneField(Tool, on_delete=models.CASCADE, related_name="instance")
    encrypted_config = EncryptedTextField(blank=True)  # JSON object; use `config`
    # Of each parameter that is a secret: {"by": username, "at": ISO time}
    secrets = models.JSONField(default=dict)
    encrypted_next_config = EncryptedTextField(blank=True)  # JSON object; use `next_config`
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["tool__name"]

    def __str__(self) -> str:
        return self.tool.name

    @property
    def config(self) -> dict[str, Any]:
        """The values of its UserParameters, secrets among them: for the call alone, never for a page or an answer."""
        value: dict[str, Any] = json.loads(self.encrypted_config or "{}")
        return value

    @config.setter
    def config(self, value: dict[str, Any]) -> None:
        self.encrypted_config = json.dumps(value)

    @property
    def next_config(self) -> dict[str, Any]:
        """What was given for `next_version`: "given" (name → value, null removes), "secret" (names), "by" and "at"."""
        value: dict[str, Any] = json.loads(self.encrypted_next_config or "{}")
        return value

    @next_config.setter
    def next_config(self, value: dict[str, Any]) -> None:
        self.encrypted_next_config = json.dumps(value) if value else ""
