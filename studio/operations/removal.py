"""Deleting an agent with everything that hangs on it, and a guideline so that it can be brought back."""

from django.db import transaction
from django.db.models import Count, Q

from studio.bridge import compile_agent
from studio.models import (
    Agent,
    Guideline,
    GuidelineExample,
    Relationship,
    Replay,
    Session,
    Suite,
    Turn,
)
from studio.operations.agents import mark_changed, save_guideline
from studio.operations.contents import (
    Content,
    GuidelineContent,
    RelationshipContent,
    guideline_content,
    relationship_content,
)
from studio.operations.soundness import new_problems


class AgentBusyError(Exception):
    """A turn of the agent is waiting or running."""


class DeletedGuideline(Content):
    """What it takes to bring a guideline back: its place, and the relationships it was the source or a target of."""

    guideline: GuidelineContent
    position: int
    relationships: list[RelationshipContent]


@transaction.atomic
def delete_agent(agent: Agent) -> None:
    """Delete the draft, the versions and all sessions with their record. Raises AgentBusyError; tools stay."""
    sessions = Session.objects.filter(agent=agent)
    if Turn.objects.unfinished().filter(session__in=sessions).exists():
        raise AgentBusyError
    # In this order, because what was said and played keeps its version, and the agent what it has published.
    sessions.delete()
    Replay.objects.filter(agent=agent).delete()
    Suite.objects.filter(agent=agent).delete()
    Agent.objects.filter(pk=agent.pk).update(published=None, snapshot=None)
    Agent.objects.get(pk=agent.pk).delete()


def relationships_of(guideline: Guideline) -> list[Relationship]:
    """Those of which it is the source first, then those it is a target of, with their guidelines."""
    found = (
        guideline.agent.relationships.filter(Q(source=guideline) | Q(targets=guideline))
        .select_related("source")
        .prefetch_related("targets")
        .distinct()
    )
    return sorted(found, key=lambda row: row.source_id != guideline.pk)


@transaction.atomic
def delete_guideline(guideline: Guideline) -> DeletedGuideline:
    """Delete it with its relationships, and with those that say nothing without it.

    Returns what was deleted, for `undelete_guideline`.
    """
    relationships = relationships_of(guideline)
    deleted = DeletedGuideline(
        guideline=guideline_content(guideline),
        position=guideline.position,
        relationships=[relationship_content(row) for row in relationships],
    )
    pks = [row.pk for row in relationships]
    guideline.delete()
    _remove_unusable(pks)
    mark_changed(guideline.agent_id)
    return deleted


def _remove_unusable(relationships: list[int]) -> None:
    """Of these, what is left without a target; or with one only, where the customer has to choose between them."""
    counted = Relationship.objects.filter(pk__in=relationships).annotate(left=Count("targets"))
    alone = Q(left=1, kind=Relationship.Kind.DISAMBIGUATES)
    gone = list(counted.filter(Q(left=0) | alone).values_list("pk", flat=True))
    Relationship.objects.filter(pk__in=gone).delete()


@transaction.atomic
def undelete_guideline(agent: Agent, deleted: DeletedGuideline) -> Guideline:
    """Bring a deleted guideline back to its place, under its uid; the one that has the uid, if it is back already.

    What the agent no longer has is left out: tools, canned responses, guidelines that it was related to.
    """
    content = deleted.guideline
    known = agent.guidelines.filter(uid=content.uid).first()
    if known is not None:
        return known
    tools = {tool.name: tool for tool in agent.tools.all()}
    parts = {"tools", "reevaluate_after", "canned_responses", "examples"}
    guideline = save_guideline(
        Guideline(agent=agent, position=deleted.position, **content.model_dump(exclude=parts)),
        tools=[tools[name] for name in content.tools if name in tools],
        reevaluate_after=[tools[name] for name in content.reevaluate_after if name in tools],
        canned_responses=agent.canned_responses.filter(uid__in=content.canned_responses),
        examples=[GuidelineExample(text=e.text, matches=e.matches) for e in content.examples],
    )
    for relationship in deleted.relationships:
        _relate_again(agent, relationship)
    return guideline


def _relate_again(agent: Agent, content: RelationshipContent) -> None:
    """A relationship as it was; where there is one of its kind and source meanwhile, that gets its targets too.

    Left out where it contradicts what was written meanwhile.
    """
    source = agent.guidelines.filter(uid=content.source).first()
    targets = list(agent.guidelines.filter(uid__in=content.targets))
    if source is None or not targets:
        return
    before = compile_agent(agent)
    place = transaction.savepoint()
    row, _new = Relationship.objects.get_or_create(
        agent=agent, kind=content.kind, source=source, defaults={"uid": content.uid}
    )
    row.targets.add(*targets)
    if new_problems(before, compile_agent(agent)):
        transaction.savepoint_rollback(place)
    else:
        transaction.savepoint_commit(place)
