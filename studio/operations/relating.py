"""How guidelines bear on one another and which tools overlap: writing it."""

from collections.abc import Iterable

from django.db import transaction

from studio.models import Guideline, Relationship, Tool, ToolOverlap
from studio.operations.agents import mark_changed


@transaction.atomic
def save_relationship(relationship: Relationship, *, targets: Iterable[Guideline]) -> Relationship:
    relationship.save()
    relationship.targets.set(targets)
    mark_changed(relationship.agent_id)
    return relationship


@transaction.atomic
def delete_relationship(relationship: Relationship) -> None:
    relationship.delete()
    mark_changed(relationship.agent_id)


@transaction.atomic
def save_overlap(overlap: ToolOverlap, *, tools: Iterable[Tool]) -> ToolOverlap:
    overlap.save()
    overlap.tools.set(tools)
    mark_changed(overlap.agent_id)
    return overlap


@transaction.atomic
def delete_overlap(overlap: ToolOverlap) -> None:
    overlap.delete()
    mark_changed(overlap.agent_id)
