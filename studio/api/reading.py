"""What requests bring: JSON bodies, and the pages of lists."""

import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Schema
from ninja.parser import Parser
from pydantic import BaseModel, ConfigDict, Field

from engine.canonical import JsonObject
from studio.api.problems import ProblemError

T = TypeVar("T")

Wait = Annotated[float, Field(ge=0, le=60)]  # seconds

_NUL = re.compile(
    r"(?<!\\)(?:\\\\)*\\u0000"
)  # as JSON writes it; an escaped backslash before it is not one


class JsonParser(Parser):
    """Reads a body only if it says that it is JSON, and only what every part of the studio can store."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise ProblemError(
                415,
                _("Send JSON with “Content-Type: application/json”, not %(type)r.")
                % {"type": request.content_type or ""},
            )
        try:
            value = json.loads(request.body, parse_constant=_refuse_constant)
            # Halves of characters cannot be written in UTF-8.
            text = json.dumps(value, ensure_ascii=False)
            text.encode()
        except (ValueError, RecursionError) as error:
            raise ProblemError(400, _("This is not JSON: %(why)s") % {"why": error}) from error
        if _NUL.search(text):
            raise ProblemError(400, _("The character U+0000 cannot be stored."))
        return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


class Body(Schema):
    """What a request may hold, and nothing else: a misspelt field is an error and not ignored."""

    model_config = ConfigDict(extra="forbid")


def _without_defaults(schema: JsonObject) -> None:
    for described in schema["properties"].values():
        described.pop("default", None)


class Changes(Body):
    """What a PATCH may hold: a field that is left out stays as it is, so defaults mean nothing."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    def given(self) -> JsonObject:
        return self.model_dump(exclude_unset=True)


class Paging(Schema):
    limit: int = Field(50, ge=1, le=200)
    offset: int = Field(0, ge=0, le=2**31 - 1)

    def page(self, rows: QuerySet[Any], shown: Callable[[Any], JsonObject]) -> JsonObject:
        """The rows of this page as they are shown, and how many there are in all."""
        found = rows[self.offset : self.offset + self.limit]
        return {"items": [shown(row) for row in found], "count": rows.count()}


class Page(BaseModel, Generic[T]):
    items: list[T]
    count: int
