"""The API under `/api/v1`, put together in this one place."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import NinjaAPI, Router

from studio.api import (
    agents,
    branches,
    confirmations,
    coverage,
    events,
    flags,
    guidelines,
    instances,
    mocks,
    prices,
    problems,
    relationships,
    rematches,
    replays,
    runs,
    session_files,
    sessions,
    suites,
    templates,
    tools,
    turns,
    variants,
    versions,
    wording,
)
from studio.api.auth import BearerToken
from studio.api.reading import JsonParser
from studio.api.writing import Renderer

_EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class StudioAPI(NinjaAPI):
    """Every answer that is no success is a problem, also where no operation is reached."""

    @property
    def urls(self) -> Any:
        patterns, app_name, namespace = super().urls
        for pattern in patterns:
            view: Any = pattern.callback
            pattern.callback = problems.answering_with_problems(view)
        return patterns, app_name, namespace

    def get_openapi_schema(self, **kwargs: Any) -> Any:
        document = super().get_openapi_schema(**kwargs)
        problem = {"$ref": "#/components/schemas/Problem"}
        document["components"]["schemas"] |= {
            shape.__name__: shape.model_json_schema(ref_template="#/components/schemas/{model}")
            for shape in (problems.FieldError, problems.Problem)
        }
        document["components"]["schemas"]["Problem"].pop("$defs", None)
        for operations in document["paths"].values():
            for operation in operations.values():
                # JSON has no other keys, and sorting knows no mixed ones.
                found = {str(status): shape for status, shape in operation["responses"].items()}
                operation["responses"] = found
                found["default"] = {
                    "description": "A problem",
                    "content": {problems.CONTENT_TYPE: {"schema": problem}},
                }
        return document

    def get_openapi_operation_id(self, operation: Any) -> str:
        return str(operation.view_func.__name__)


api = StudioAPI(
    title="Guideline Studio",
    version="1",
    description=(
        "Agents and their guidelines, conversations with them, and why they did what they did. "
        "Every error is a problem document (RFC 9457); lists take `limit` and `offset`."
    ),
    auth=BearerToken(),
    parser=JsonParser(),
    renderer=Renderer(),
    urls_namespace="api",
)
problems.install(api)
for _resource in (
    agents,
    guidelines,
    coverage,
    relationships,
    wording,
    versions,
    tools,
    templates,
    instances,
    prices,
    sessions,
    session_files,
    turns,
    branches,
    rematches,
    replays,
    variants,
    runs,
    confirmations,
    events,
    mocks,
    flags,
    suites,
):
    api.add_router("", _resource.router)

_elsewhere = Router()


@_elsewhere.api_operation(
    _EVERY_METHOD, "/{path:address}", auth=None, include_in_schema=False, url_name="nothing"
)
def nothing_here(request: HttpRequest, address: str) -> None:
    raise Http404(f"There is nothing at {address!r}; see the document at openapi.json.")


api.add_router("", _elsewhere)
