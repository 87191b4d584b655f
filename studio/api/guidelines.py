"""The guidelines of an agent's draft."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import AwareDatetime, BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_agent, load_guideline
from studio.api.auth import caller
from studio.api.problems import conflict, invalid
from studio.api.reading import Body, Changes, Page, Paging
from studio.forms.guidelines import GuidelineForm, guideline_json
from studio.models import Guideline
from studio.operations.agents import GuidelineChangedError
from studio.operations.removal import delete_guideline

router = Router(tags=["guidelines"])


class ExampleShape(Body):
    text: str
    matches: bool = True


class GuidelineOut(BaseModel):
    uid: str
    condition: str
    action: str
    criticality: str
    priority: int
    enabled: bool
    tags: list[str]
    tools: list[str]
    reevaluate_after: list[str]
    composition: str = Field(description="Empty takes the agent's")
    canned_responses: list[str] = Field(description="Uids; candidates only while it applies")
    examples: list[ExampleShape]
    created_at: datetime
    updated_at: datetime


class NewGuideline(Body):
    condition: str = ""
    action: str = ""
    criticality: str = Guideline.Criticality.MEDIUM.value
    priority: int = 0
    enabled: bool = True
    tags: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    reevaluate_after: list[str] = Field(default_factory=list)
    composition: str = ""
    canned_responses: list[str] = Field(default_factory=list)
    examples: list[ExampleShape] = Field(default_factory=list)


class GuidelineChanges(Changes):
    condition: str = ""
    action: str = ""
    criticality: str = ""
    priority: int = 0
    enabled: bool = True
    tags: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    reevaluate_after: list[str] = Field(default_factory=list)
    composition: str = ""
    canned_responses: list[str] = Field(default_factory=list)
    examples: list[ExampleShape] = Field(default_factory=list)
    updated_at: AwareDatetime | None = Field(
        None, description="When it was read: 409 where somebody else saved since"
    )


def _guideline(row: Guideline) -> JsonObject:
    return {
        "uid": row.uid,
        **guideline_json(row),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


@router.get("/agents/{slug}/guidelines", response=Page[GuidelineOut])
def list_guidelines(
    request: HttpRequest,
    slug: str,
    paging: Query[Paging],
    enabled: bool | None = None,
    tool: str | None = None,
) -> JsonObject:
    """In the author's order; `enabled` and `tool` leave those that are so, or have it attached."""
    agent = load_agent(caller(request), slug)
    given = {"enabled": enabled, "tools__name": tool}
    rows: Any = agent.guidelines.filter(**{k: v for k, v in given.items() if v is not None})
    return paging.page(rows.with_parts(), _guideline)


@router.post("/agents/{slug}/guidelines", response={201: GuidelineOut})
def create_guideline(request: HttpRequest, slug: str, body: NewGuideline) -> Status[JsonObject]:
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    return Status(201, _saved(GuidelineForm.from_json(agent, body.model_dump())))


@router.get("/agents/{slug}/guidelines/{uid}", response=GuidelineOut)
def read_guideline(request: HttpRequest, slug: str, uid: str) -> JsonObject:
    return _guideline(load_guideline(caller(request), slug, uid))


@router.patch("/agents/{slug}/guidelines/{uid}", response=GuidelineOut)
def update_guideline(
    request: HttpRequest, slug: str, uid: str, body: GuidelineChanges
) -> JsonObject:
    guideline = load_guideline(caller(request), slug, uid, May.WRITE_GUIDELINES)
    given = body.given()
    if body.updated_at is not None:
        given["updated_at"] = body.updated_at.isoformat()
    return _saved(GuidelineForm.from_json(guideline.agent, given, instance=guideline))


@router.delete("/agents/{slug}/guidelines/{uid}", response={204: None})
def remove_guideline(request: HttpRequest, slug: str, uid: str) -> Status[None]:
    delete_guideline(load_guideline(caller(request), slug, uid, May.WRITE_GUIDELINES))
    return Status(204, None)


def _saved(form: GuidelineForm) -> JsonObject:
    if not form.is_valid():
        raise invalid(*form.json_errors())
    try:
        guideline = form.save()
    except GuidelineChangedError as error:
        raise conflict(
            _("Somebody else changed the guideline since you read it; read it again.")
        ) from error
    guideline.refresh_from_db()
    return _guideline(guideline)
