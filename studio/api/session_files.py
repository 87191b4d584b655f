"""Sessions as documents: exporting one, and importing what was exported."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from ninja import File, Query, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import Field

from engine.canonical import JsonObject
from studio.access import May, load_session, require
from studio.api.auth import caller
from studio.api.problems import conflict, invalid
from studio.api.sessions import SessionOut, shown_session
from studio.operations.redaction import Rules
from studio.operations.session_document import DocumentRefusedError
from studio.operations.session_export import ExportRefusedError, export_session
from studio.operations.session_import import import_session

router = Router(tags=["sessions"])

LeaveOut = Literal["customer", "emails", "phones", "accounts", "numbers", "metadata", "prompts"]
Word = Annotated[str, Field(min_length=2, max_length=200)]


class ImportedOut(SessionOut):
    imported_from: str
    branches: list[int] = Field(description="Ids of all sessions that were imported with it")
    made_agent: bool = Field(description="There was no such agent: a draft was made")
    missing_tools: list[str] = Field(description="Tools of that draft that are not here")


class Export(Schema):
    """What of it, and without what."""

    tree: bool = False
    leave_out: list[LeaveOut] = Field(default_factory=list)
    word: list[Word] = Field(default_factory=list, max_length=200)


@router.get(
    "/sessions/{int:session_id}/export",
    openapi_extra={
        "responses": {200: {"content": {"application/json": {"schema": {"type": "object"}}}}}
    },
)
def export_one_session(
    request: HttpRequest, session_id: int, chosen: Query[Export]
) -> HttpResponse:
    """The document that `POST /sessions/import` takes: the session along its line or, as a `tree`, with all branches.

    `leave_out` names what is replaced by labels; each `word` is, too. 409 while a turn is running.
    """
    person = caller(request)
    session = load_session(person, session_id)
    rules = Rules(
        words=tuple(chosen.word),
        **dict.fromkeys(chosen.leave_out, True),
    )
    try:
        exported = export_session(session, by=person.get_username(), rules=rules, tree=chosen.tree)
    except ExportRefusedError as error:
        raise conflict(error) from error
    return HttpResponse(exported.text, content_type="application/json")


@router.post("/sessions/import", response={201: ImportedOut})
def import_one_session(request: HttpRequest, file: File[UploadedFile]) -> Status[JsonObject]:
    """Take in a session's document, all or nothing; nothing of it runs. Twice the same gives two sessions.

    It joins the agent of the same slug. Where there is none, one is made as a draft, which takes the role to write
    guidelines. 422 names each place of the document with what is wrong about it.
    """
    person = caller(request)
    require(person, May.CONVERSE)

    def authorise(_slug: str, exists: bool) -> None:
        if not exists:
            require(person, May.WRITE_GUIDELINES)

    try:
        imported = import_session(file.read(), by=person, authorise=authorise)
    except DocumentRefusedError as error:
        raise invalid(*((one.place, one.message) for one in error.problems)) from error
    return Status(
        201,
        {
            **shown_session(imported.session),
            "imported_from": imported.session.imported_from,
            "branches": [row.pk for row in imported.sessions],
            "made_agent": imported.made_agent,
            "missing_tools": list(imported.missing_tools),
        },
    )
