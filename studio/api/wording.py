"""The words of an agent's draft: its canned responses, and the terms of its glossary."""

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canned import fields_of
from engine.canonical import JsonObject
from studio.access import May, load_agent, load_response, load_term
from studio.api.auth import caller
from studio.api.problems import ProblemError, invalid_form
from studio.api.reading import Body, Changes, Page, Paging
from studio.forms.wording import ResponseForm, TermForm, response_json, term_json
from studio.models import CannedResponse, Term
from studio.operations.wording import (
    ResponseInUseError,
    delete_response,
    delete_term,
)

router = Router(tags=["wording"])


class ResponseOut(BaseModel):
    uid: str
    text: str = Field(description="A Jinja template")
    fields: list[str] = Field(description="What the template fills in")
    guidelines: list[str] = Field(
        description="Uids of those that use it; where there are none, any reply may"
    )
    created_at: datetime
    updated_at: datetime


class NewResponse(Body):
    text: str


class ResponseChanges(Changes):
    text: str = ""


class TermOut(BaseModel):
    uid: str
    name: str
    description: str
    synonyms: list[str]


class NewTerm(Body):
    name: str
    description: str
    synonyms: list[str] = Field(default_factory=list)


class TermChanges(Changes):
    name: str = ""
    description: str = ""
    synonyms: list[str] = Field(default_factory=list)


def _response(row: CannedResponse) -> JsonObject:
    users: Any = row.guidelines  # type: ignore[attr-defined]
    return {
        "uid": row.uid,
        **response_json(row),
        "fields": fields_of(row.text),
        "guidelines": [guideline.uid for guideline in users.all()],
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


@router.get("/agents/{slug}/responses", response=Page[ResponseOut])
def list_responses(
    request: HttpRequest, slug: str, paging: Query[Paging], q: str = ""
) -> JsonObject:
    """The oldest first; `q` leaves those whose text has it."""
    agent = load_agent(caller(request), slug)
    rows: Any = agent.canned_responses.filter(text__icontains=q)
    return paging.page(rows.prefetch_related("guidelines"), _response)


@router.post("/agents/{slug}/responses", response={201: ResponseOut})
def create_response(request: HttpRequest, slug: str, body: NewResponse) -> Status[JsonObject]:
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    return Status(201, _saved_response(ResponseForm.from_json(agent, body.model_dump())))


@router.get("/agents/{slug}/responses/{uid}", response=ResponseOut)
def read_response(request: HttpRequest, slug: str, uid: str) -> JsonObject:
    return _response(load_response(caller(request), slug, uid))


@router.patch("/agents/{slug}/responses/{uid}", response=ResponseOut)
def update_response(request: HttpRequest, slug: str, uid: str, body: ResponseChanges) -> JsonObject:
    row = load_response(caller(request), slug, uid, May.WRITE_GUIDELINES)
    return _saved_response(ResponseForm.from_json(row.agent, body.given(), instance=row))


@router.delete("/agents/{slug}/responses/{uid}", response={204: None})
def remove_response(
    request: HttpRequest, slug: str, uid: str, detach: bool = False
) -> Status[None]:
    """409 while guidelines use it, unless `detach=true` says that they lose it."""
    row = load_response(caller(request), slug, uid, May.WRITE_GUIDELINES)
    try:
        delete_response(row, detach=detach)
    except ResponseInUseError as error:
        raise ProblemError(
            409,
            _("%(count)d guidelines use it; detach=true takes it off them too.")
            % {"count": len(error.guidelines)},
            guidelines=[guideline.uid for guideline in error.guidelines],
        ) from error
    return Status(204, None)


def _saved_response(form: ResponseForm) -> JsonObject:
    if not form.is_valid():
        raise invalid_form(form)
    return _response(form.save())


def _term(row: Term) -> JsonObject:
    return {"uid": row.uid, **term_json(row)}


@router.get("/agents/{slug}/terms", response=Page[TermOut])
def list_terms(request: HttpRequest, slug: str, paging: Query[Paging], q: str = "") -> JsonObject:
    """By name; `q` leaves those whose name or meaning has it."""
    agent = load_agent(caller(request), slug)
    rows = agent.terms.filter(Q(name__icontains=q) | Q(description__icontains=q))
    return paging.page(rows, _term)


@router.post("/agents/{slug}/terms", response={201: TermOut})
def create_term(request: HttpRequest, slug: str, body: NewTerm) -> Status[JsonObject]:
    agent = load_agent(caller(request), slug, May.WRITE_GUIDELINES)
    return Status(201, _saved_term(TermForm.from_json(agent, body.model_dump())))


@router.get("/agents/{slug}/terms/{uid}", response=TermOut)
def read_term(request: HttpRequest, slug: str, uid: str) -> JsonObject:
    return _term(load_term(caller(request), slug, uid))


@router.patch("/agents/{slug}/terms/{uid}", response=TermOut)
def update_term(request: HttpRequest, slug: str, uid: str, body: TermChanges) -> JsonObject:
    row = load_term(caller(request), slug, uid, May.WRITE_GUIDELINES)
    return _saved_term(TermForm.from_json(row.agent, body.given(), instance=row))


@router.delete("/agents/{slug}/terms/{uid}", response={204: None})
def remove_term(request: HttpRequest, slug: str, uid: str) -> Status[None]:
    delete_term(load_term(caller(request), slug, uid, May.WRITE_GUIDELINES))
    return Status(204, None)


def _saved_term(form: TermForm) -> JsonObject:
    if not form.is_valid():
        raise invalid_form(form)
    return _term(form.save())
