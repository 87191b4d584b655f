"""A whole draft written over its rows, in a number of queries that does not grow with what it says."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F, Model, Value
from django.db.models.functions import Concat
from django.utils import timezone

from studio.models import (
    Agent,
    CannedResponse,
    Guideline,
    GuidelineExample,
    Relationship,
    Term,
    Tool,
    ToolOverlap,
)
from studio.operations.contents import (
    AGENT_FIELDS,
    GUIDELINE_FIELDS,
    AgentContent,
    OverlapContent,
    RelationshipContent,
)

_BATCH = 500


def replace_draft(agent: Agent, content: AgentContent, tools: Mapping[str, Tool]) -> None:
    """Make the stored draft of `agent` what the valid `content` says, except for its slug.

    Rows are the same by uid, which every item of `content` has; names that `tools` lacks are left out. To be called
    inside a transaction, and `mark_changed` after it.
    """
    for name in AGENT_FIELDS:
        setattr(agent, name, getattr(content, name))
    agent.save(update_fields=[*AGENT_FIELDS, "updated_at"])
    agent.tools.set([tools[name] for name in content.tools if name in tools])
    _write_unique(agent.terms, content.terms, fields=("name", "description", "synonyms"))
    responses = _write_unique(agent.canned_responses, content.canned_responses, fields=("text",))
    agent.guidelines.exclude(uid__in=[item.uid for item in content.guidelines]).delete()
    rows = _write_guidelines(agent, content)
    _write_parts(rows, content, tools, responses)
    _write_relationships(agent, content.relationships, rows)
    _write_overlaps(agent, content.overlaps, tools)


def _write_unique(
    stored: Any, items: Sequence[Any], *, fields: tuple[str, ...]
) -> dict[str, Term | CannedResponse]:
    """Uid → row of the items. The first of `fields` is what no two rows of the agent share."""
    stored.exclude(uid__in=[item.uid for item in items]).delete()
    known = {row.uid: row for row in stored.all()}
    new, changed = [], []
    for item in items:
        values = {name: getattr(item, name) for name in fields}
        row = known.get(item.uid)
        if row is None:
            new.append(stored.model(agent=stored.instance, uid=item.uid, **values))
        elif any(getattr(row, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(row, name, value)
            changed.append(row)
    if changed:
        # Two rows may exchange what they must not share: until all are written, each has something of its own.
        stored.filter(pk__in=[row.pk for row in changed]).update(
            **{fields[0]: Concat(Value("⇄ "), F("uid"))}
        )
        stored.bulk_update(changed, fields, batch_size=_BATCH)
    stored.bulk_create(new, batch_size=_BATCH)
    return {row.uid: row for row in stored.all()}


def _write_guidelines(agent: Agent, content: AgentContent) -> dict[str, Guideline]:
    """Uid → row of every guideline of the content, stored."""
    known: dict[str, Guideline] = {row.uid: row for row in agent.guidelines.all()}
    new, changed = [], []
    now = timezone.now()
    for position, item in enumerate(content.guidelines, start=1):
        values = {name: getattr(item, name) for name in GUIDELINE_FIELDS} | {"position": position}
        row = known.get(item.uid)
        if row is None:
            new.append(Guideline(agent=agent, uid=item.uid, **values))
        elif any(getattr(row, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(row, name, value)
            row.updated_at = now
            changed.append(row)
    Guideline.objects.bulk_create(new, batch_size=_BATCH)
    Guideline.objects.bulk_update(
        changed, [*GUIDELINE_FIELDS, "position", "updated_at"], batch_size=_BATCH
    )
    return {row.uid: row for row in agent.guidelines.all()}


def _write_parts(
    rows: Mapping[str, Guideline],
    content: AgentContent,
    tools: Mapping[str, Tool],
    responses: Mapping[str, Model],
) -> None:
    for field in ("tools", "reevaluate_after"):
        _link(Guideline, field, rows, content.guidelines, tools)
    _link(Guideline, "canned_responses", rows, content.guidelines, responses)
    GuidelineExample.objects.filter(guideline__in=rows.values()).delete()
    GuidelineExample.objects.bulk_create(
        (
            GuidelineExample(guideline=rows[item.uid], text=example.text, matches=example.matches)
            for item in content.guidelines
            for example in item.examples
        ),
        batch_size=_BATCH,
    )


def _write_relationships(
    agent: Agent, items: Sequence[RelationshipContent], guidelines: Mapping[str, Guideline]
) -> None:
    wanted = {(item.uid, item.kind, item.source): item for item in items}
    known = {
        (uid, kind, source): pk
        for pk, uid, kind, source in agent.relationships.values_list(
            "pk", "uid", "kind", "source__uid"
        )
    }
    gone = [pk for key, pk in known.items() if key not in wanted]
    agent.relationships.filter(pk__in=gone).delete()
    Relationship.objects.bulk_create(
        (
            Relationship(agent=agent, uid=item.uid, kind=item.kind, source=guidelines[item.source])
            for key, item in wanted.items()
            if key not in known
        ),
        batch_size=_BATCH,
    )
    stored = {row.uid: row for row in agent.relationships.all()}
    _link(Relationship, "targets", stored, items, guidelines)


def _write_overlaps(
    agent: Agent, items: Sequence[OverlapContent], tools: Mapping[str, Tool]
) -> None:
    """Groups of which fewer than two tools are left are left out."""
    groups = [item for item in items if len([name for name in item.tools if name in tools]) > 1]
    agent.overlaps.exclude(uid__in=[item.uid for item in groups]).delete()
    known = set(agent.overlaps.values_list("uid", flat=True))
    ToolOverlap.objects.bulk_create(
        (ToolOverlap(agent=agent, uid=item.uid) for item in groups if item.uid not in known),
        batch_size=_BATCH,
    )
    stored = {row.uid: row for row in agent.overlaps.all()}
    _link(ToolOverlap, "tools", stored, groups, tools)


def _link(
    model: type[Model],
    field: str,
    rows: Mapping[str, Any],
    items: Iterable[Any],
    targets: Mapping[str, Any],
) -> None:
    """Make the many-to-many `field` of the rows (by uid) what the items say."""
    many: Any = model._meta.get_field(field)
    through = many.remote_field.through
    of, to = many.m2m_field_name(), many.m2m_reverse_field_name()
    links: Any = through._default_manager  # noqa: SLF001 - Django's documented access
    links.filter(**{f"{of}__in": list(rows.values())}).delete()
    links.bulk_create(
        (
            through(**{of: rows[item.uid], to: targets[name]})
            for item in items
            for name in dict.fromkeys(getattr(item, field))
            if name in targets
        ),
        batch_size=_BATCH,
    )
