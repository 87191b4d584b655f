"""Versions of an agent: publishing the draft, reading what was published, and going back to it."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_agent
from studio.api.auth import caller
from studio.api.problems import conflict
from studio.api.reading import Body, Page, Paging
from studio.models import Agent, AgentVersion
from studio.operations.agents import NothingToPublishError, publish, restore
from studio.operations.gating import GateShutError

router = Router(tags=["versions"])


class VersionOut(BaseModel):
    number: int
    fingerprint: str
    note: str
    published_at: datetime | None
    published_by: str | None


class VersionDetail(VersionOut):
    spec: dict[str, Any] = Field(description="The compiled agent")


class Publication(Body):
    note: str = Field("", max_length=2_000)


class Restored(BaseModel):
    version: int
    missing_tools: list[str] = Field(
        description="Tools that the version used and that are no longer there"
    )


def _version(row: AgentVersion) -> JsonObject:
    return {
        "number": row.number,
        "fingerprint": row.fingerprint,
        "note": row.note,
        "published_at": row.published_at,
        "published_by": row.published_by.get_username() if row.published_by else None,
    }


@router.get("/agents/{slug}/versions", response=Page[VersionOut])
def list_versions(request: HttpRequest, slug: str, paging: Query[Paging]) -> JsonObject:
    """What was published, the newest first."""
    agent = load_agent(caller(request), slug)
    rows = agent.versions.published().select_related("published_by").defer("spec")
    return paging.page(rows.order_by("-number"), _version)


@router.post("/agents/{slug}/versions", response={201: VersionOut})
def create_version(request: HttpRequest, slug: str, body: Publication) -> Status[JsonObject]:
    """Publish the draft: it gets the next number.

    409 where the draft is what is published already, or a suite that gates publishing has not passed against it.
    """
    person = caller(request)
    agent = load_agent(person, slug, May.PUBLISH)
    try:
        return Status(201, _version(publish(agent, note=body.note.strip(), by=person)))
    except NothingToPublishError as error:
        raise conflict(_("The draft is what is published already.")) from error
    except GateShutError as error:
        raise conflict(error) from error


@router.get("/agents/{slug}/versions/{int:number}", response=VersionDetail)
def read_version(request: HttpRequest, slug: str, number: int) -> JsonObject:
    version = _load(load_agent(caller(request), slug), number)
    return _version(version) | {"spec": version.spec}


@router.post("/agents/{slug}/versions/{int:number}/restore", response=Restored)
def restore_version(request: HttpRequest, slug: str, number: int) -> JsonObject:
    """Make the draft what this version was. What is published stays published."""
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    version = _load(agent, number)
    return {"version": number, "missing_tools": restore(agent, version)}


def _load(agent: Agent, number: int) -> AgentVersion:
    version = agent.versions.select_related("published_by").filter(number=number).first()
    if version is None:
        raise Http404(
            _("%(agent)r has no version %(number)d.") % {"agent": agent.slug, "number": number}
        )
    return version
