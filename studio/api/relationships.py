"""How the guidelines of an agent's draft bear on one another, and which of its tools overlap."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_agent, load_overlap, load_relationship
from studio.api.auth import caller
from studio.api.problems import invalid_form
from studio.api.reading import Body, Changes, Page, Paging
from studio.forms.relationships import (
    OverlapForm,
    RelationshipForm,
    overlap_json,
    relationship_json,
)
from studio.models import Relationship, ToolOverlap
from studio.operations.relating import delete_overlap, delete_relationship

router = Router(tags=["relationships"])

_KINDS = "One of: " + ", ".join(Relationship.Kind.values)


class RelationshipOut(BaseModel):
    uid: str
    kind: str
    source: str = Field(description="The uid of the guideline that it is about")
    targets: list[str] = Field(description="Uids of guidelines")


class NewRelationship(Body):
    kind: str = Field(description=_KINDS)
    source: str
    targets: list[str]


class RelationshipChanges(Changes):
    kind: str = Field("", description=_KINDS)
    source: str = ""
    targets: list[str] = Field(default_factory=list)


class OverlapOut(BaseModel):
    uid: str
    tools: list[str] = Field(description="Names; they are judged together, and the better one wins")


class NewOverlap(Body):
    tools: list[str]


class OverlapChanges(Changes):
    tools: list[str] = Field(default_factory=list)


def _relationship(row: Relationship) -> JsonObject:
    return {"uid": row.uid, **relationship_json(row)}


@router.get("/agents/{slug}/relationships", response=Page[RelationshipOut])
def list_relationships(
    request: HttpRequest,
    slug: str,
    paging: Query[Paging],
    kind: str | None = None,
    guideline: str | None = None,
) -> JsonObject:
    """The oldest first; `kind` and `guideline` (a uid, as source) leave those that are so."""
    agent = load_agent(caller(request), slug)
    given = {"kind": kind, "source__uid": guideline}
    rows: Any = agent.relationships.filter(**{k: v for k, v in given.items() if v is not None})
    return paging.page(rows.select_related("source").prefetch_related("targets"), _relationship)


@router.post("/agents/{slug}/relationships", response={201: RelationshipOut})
def create_relationship(
    request: HttpRequest, slug: str, body: NewRelationship
) -> Status[JsonObject]:
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    return Status(201, _saved(RelationshipForm.from_json(agent, body.model_dump())))


@router.get("/agents/{slug}/relationships/{uid}", response=RelationshipOut)
def read_relationship(request: HttpRequest, slug: str, uid: str) -> JsonObject:
    return _relationship(load_relationship(caller(request), slug, uid))


@router.patch("/agents/{slug}/relationships/{uid}", response=RelationshipOut)
def update_relationship(
    request: HttpRequest, slug: str, uid: str, body: RelationshipChanges
) -> JsonObject:
    row = load_relationship(caller(request), slug, uid, May.WRITE_GUIDELINES)
    return _saved(RelationshipForm.from_json(row.agent, body.given(), instance=row))


@router.delete("/agents/{slug}/relationships/{uid}", response={204: None})
def remove_relationship(request: HttpRequest, slug: str, uid: str) -> Status[None]:
    delete_relationship(load_relationship(caller(request), slug, uid, May.WRITE_GUIDELINES))
    return Status(204, None)


def _saved(form: RelationshipForm) -> JsonObject:
    if not form.is_valid():
        raise invalid_form(form)
    return _relationship(form.save())


def _overlap(row: ToolOverlap) -> JsonObject:
    return {"uid": row.uid, **overlap_json(row)}


@router.get("/agents/{slug}/overlaps", response=Page[OverlapOut])
def list_overlaps(request: HttpRequest, slug: str, paging: Query[Paging]) -> JsonObject:
    """Groups of tools that can do one another's work, the oldest first."""
    agent = load_agent(caller(request), slug)
    return paging.page(agent.overlaps.prefetch_related("tools"), _overlap)


@router.post("/agents/{slug}/overlaps", response={201: OverlapOut})
def create_overlap(request: HttpRequest, slug: str, body: NewOverlap) -> Status[JsonObject]:
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    return Status(201, _saved_overlap(OverlapForm.from_json(agent, body.model_dump())))


@router.get("/agents/{slug}/overlaps/{uid}", response=OverlapOut)
def read_overlap(request: HttpRequest, slug: str, uid: str) -> JsonObject:
    return _overlap(load_overlap(caller(request), slug, uid))


@router.patch("/agents/{slug}/overlaps/{uid}", response=OverlapOut)
def update_overlap(request: HttpRequest, slug: str, uid: str, body: OverlapChanges) -> JsonObject:
    row = load_overlap(caller(request), slug, uid, May.WRITE_GUIDELINES)
    return _saved_overlap(OverlapForm.from_json(row.agent, body.given(), instance=row))


@router.delete("/agents/{slug}/overlaps/{uid}", response={204: None})
def remove_overlap(request: HttpRequest, slug: str, uid: str) -> Status[None]:
    delete_overlap(load_overlap(caller(request), slug, uid, May.WRITE_GUIDELINES))
    return Status(204, None)


def _saved_overlap(form: OverlapForm) -> JsonObject:
    if not form.is_valid():
        raise invalid_form(form)
    return _overlap(form.save())
