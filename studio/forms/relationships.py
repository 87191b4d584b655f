"""The forms of a relationship between guidelines and of a group of overlapping tools, for pages and for the API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine import spec
from engine.canonical import JsonObject
from studio.bridge import compile_agent
from studio.forms.base import RowForm
from studio.forms.fields import AgentToolsField
from studio.forms.references import AgentGuidelinesField
from studio.models import Agent, Guideline, Relationship, Tool, ToolOverlap
from studio.operations.relating import save_overlap, save_relationship
from studio.operations.soundness import new_problems


def relationship_json(relationship: Relationship) -> JsonObject:
    """What `RelationshipForm.from_json` reads, of a stored relationship."""
    return {
        "kind": relationship.kind,
        "source": relationship.source.uid,
        "targets": sorted(target.uid for target in relationship.targets.all()),
    }


class RelationshipForm(RowForm[Relationship]):
    """A new relationship of `agent`, or a changed one. Guidelines are named by uid."""

    source = AgentGuidelinesField(
        label=gettext_lazy("Guideline"),
        required=True,
        error_messages={"required": gettext_lazy("Choose the guideline that it is about.")},
    )
    targets = AgentGuidelinesField(
        label=gettext_lazy("These guidelines"),
        required=True,
        error_messages={"required": gettext_lazy("Choose at least one guideline.")},
    )

    class Meta:
        model = Relationship
        fields = ["kind"]
        labels = {"kind": gettext_lazy("Relationship")}
        error_messages = {
            "kind": {
                "required": gettext_lazy("Choose how they are related."),
                "invalid_choice": gettext_lazy("“%(value)s” is no relationship; choose one."),
            }
        }

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        agent: Agent,
        instance: Relationship | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        stored = instance if instance is not None else Relationship(agent=agent)
        now: dict[str, Any] = relationship_json(stored) if stored.pk is not None else {}
        super().__init__(data, instance=stored, initial=now | dict(initial or {}), label_suffix="")
        self.agent = agent
        for name in ("source", "targets"):
            field = self.fields[name]
            assert isinstance(field, AgentGuidelinesField)  # noqa: S101 - declared above
            field.agent = agent

    @classmethod
    def from_json(
        cls, agent: Agent, payload: Mapping[str, Any], instance: Relationship | None = None
    ) -> "RelationshipForm":
        """The form for a JSON object with any of the fields of `relationship_json`; others stay as they are."""
        now = relationship_json(instance) if instance is not None else {}
        values = {**now, **payload}
        if isinstance(values.get("source"), str) and values["source"]:
            values["source"] = [values["source"]]
        return cls(values, agent=agent, instance=instance)

    def clean_source(self) -> Guideline:
        rows: list[Guideline] = self.cleaned_data["source"]
        if len(rows) != 1:
            raise ValidationError(_("Choose the one guideline that it is about."))
        return rows[0]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        source, targets = values.get("source"), values.get("targets")
        if source is None or not targets:
            return values
        self.instance.source = source
        if source in targets:
            self.add_error(
                "targets", _("A guideline has no relationship to itself; take it off the list.")
            )
        return values

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.errors:
            return
        before = compile_agent(Agent.objects.get(pk=self.agent.pk))
        mine = spec.Relationship(
            uid=self.instance.uid,
            kind=spec.RelationKind(self.cleaned_data["kind"]),
            source=self.cleaned_data["source"].uid,
            targets=tuple(sorted(target.uid for target in self.cleaned_data["targets"])),
        )
        others = (each for each in before.relationships if each.uid != mine.uid)
        after = replace(before, relationships=(*others, mine))
        for message in new_problems(before, after):
            self.add_error("targets", message)

    def save(self, commit: bool = True) -> Relationship:  # noqa: ARG002 - there is one way to save
        if self.errors:
            raise ValueError("A relationship with errors cannot be saved; see `errors`.")
        return save_relationship(self.instance, targets=self.cleaned_data["targets"])


def overlap_json(overlap: ToolOverlap) -> JsonObject:
    """What `OverlapForm.from_json` reads, of a stored group."""
    return {"tools": sorted(tool.name for tool in overlap.tools.all())}


class OverlapForm(RowForm[ToolOverlap]):
    """A new group of overlapping tools of `agent`, or a changed one."""

    tools = AgentToolsField(label=gettext_lazy("Tools"))

    class Meta:
        model = ToolOverlap
        fields: list[str] = []

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        agent: Agent,
        instance: ToolOverlap | None = None,
    ) -> None:
        stored = instance if instance is not None else ToolOverlap(agent=agent)
        initial = overlap_json(stored) if stored.pk is not None else {}
        super().__init__(data, instance=stored, initial=initial, label_suffix="")
        self.agent = agent
        field = self.fields["tools"]
        assert isinstance(field, AgentToolsField)  # noqa: S101 - declared above
        field.agent = agent

    @classmethod
    def from_json(
        cls, agent: Agent, payload: Mapping[str, Any], instance: ToolOverlap | None = None
    ) -> "OverlapForm":
        now = overlap_json(instance) if instance is not None else {}
        return cls({**now, **payload}, agent=agent, instance=instance)

    def clean_tools(self) -> list[Tool]:
        tools: list[Tool] = self.cleaned_data["tools"]
        if len(tools) < 2:
            raise ValidationError(_("Choose at least two tools that can do the same work."))
        chosen = {tool.pk for tool in tools}
        others = self.agent.overlaps.exclude(pk=self.instance.pk).prefetch_related("tools")
        if any({tool.pk for tool in other.tools.all()} == chosen for other in others):
            raise ValidationError(_("These tools are a group already; change that one."))
        return tools

    def save(self, commit: bool = True) -> ToolOverlap:  # noqa: ARG002 - there is one way to save
        if self.errors:
            raise ValueError("A group with errors cannot be saved; see `errors`.")
        return save_overlap(self.instance, tools=self.cleaned_data["tools"])
