"""Every error of the API as problem details (RFC 9457): what went wrong, where, and what to do about it."""

import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError

from engine.canonical import JsonObject
from studio.api.writing import Encoder

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
_NOT_ALLOWED = HTTPStatus.METHOD_NOT_ALLOWED

View = Callable[..., HttpResponseBase] | Callable[..., Awaitable[HttpResponseBase]]


class FieldError(Schema):
    field: str
    message: str


class Problem(Schema):
    """Problem details, for the OpenAPI document."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None


class ProblemError(Exception):
    """Ends a request with a problem; `more` are further members of it."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.more = more


def invalid(*errors: tuple[str, Any]) -> ProblemError:
    """A 422 that names each field with what is wrong about it; the field is empty for what concerns several."""
    listed = [{"field": field, "message": str(message)} for field, message in errors]
    words = [f"{e['field']}: {e['message']}" if e["field"] else e["message"] for e in listed]
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, " ".join(words), errors=listed)


def invalid_form(form: BaseForm) -> ProblemError:
    """A 422 with the errors of a form."""
    return invalid(
        *(
            ("" if field == "__all__" else field, message)
            for field, messages in form.errors.items()
            for message in messages
        )
    )


def conflict(detail: Any) -> ProblemError:
    """A 409: right in itself, but not in the state things are in."""
    return ProblemError(HTTPStatus.CONFLICT, str(detail))


def respond(status: int, detail: str, **more: Any) -> HttpResponse:
    body: JsonObject = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
        **more,
    }
    return HttpResponse(
        json.dumps(body, cls=Encoder, ensure_ascii=False), status=status, content_type=CONTENT_TYPE
    )


def install(api: NinjaAPI) -> None:
    """Answer every exception of the API's views with a problem."""
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        ProblemError: lambda _r, error: respond(error.status, error.detail, **error.more),
        AuthenticationError: lambda _r, _error: _who_are_you(),
        HttpError: lambda _r, error: _http_error(error),
        ValidationError: lambda _r, error: _validation_error(error),
        PermissionDenied: lambda _r, error: respond(403, str(error) or _("Not allowed.")),
        Http404: lambda _r, error: _not_found(error),
        RequestDataTooBig: lambda _r, _error: respond(413, _("The body is too large.")),
        UnreadablePostError: lambda _r, _error: respond(400, _("The body broke off.")),
        Exception: _failure,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def answering_with_problems(view: View) -> View:
    """The view, with a problem for what never reaches the API's own handlers: a wrong method, an unknown address."""
    if iscoroutinefunction(view):

        @wraps(view)
        async def answer_async(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if _unstorable(request):
                return _unstorable_problem()
            try:
                response: HttpResponseBase = await view(request, *args, **kwargs)
            except Http404 as error:
                return _not_found(error)
            return _method_problem(request, response)

        return answer_async

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if _unstorable(request):
            return _unstorable_problem()
        try:
            response: Any = view(request, *args, **kwargs)
        except Http404 as error:
            return _not_found(error)
        return _method_problem(request, response)

    return answer


def _unstorable(request: HttpRequest) -> bool:
    """No database looks for the character U+0000."""
    return "\x00" in request.path or any(
        "\x00" in value for values in request.GET.lists() for value in (values[0], *values[1])
    )


def _unstorable_problem() -> HttpResponse:
    return respond(400, _("The address contains the character U+0000."))


def _method_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code != _NOT_ALLOWED:
        return response
    allowed = response.headers.get("Allow", "")
    answer = respond(
        _NOT_ALLOWED,
        _("%(method)s is not possible here; use %(allowed)s.")
        % {"method": request.method, "allowed": allowed},
    )
    answer["Allow"] = allowed
    return answer


def _not_found(error: Http404) -> HttpResponse:
    said = error.args[0] if error.args else ""
    # An address that Django resolved to nothing carries a dictionary, which is for developers.
    return respond(404, said if isinstance(said, str) and said else _("There is nothing here."))


def _who_are_you() -> HttpResponse:
    response = respond(
        401,
        _("Send a valid token as “Authorization: Bearer <token>”; create_token makes one."),
    )
    response["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HttpError) -> HttpResponse:
    # Ninja wraps whatever its parser raises.
    cause = error.__cause__
    if isinstance(cause, ProblemError):
        return respond(cause.status, cause.detail, **cause.more)
    return respond(error.status_code, str(error))


def _validation_error(error: ValidationError) -> HttpResponse:
    problem = invalid(*_named(error.errors))
    return respond(problem.status, problem.detail, **problem.more)


def _named(errors: Iterable[JsonObject]) -> list[tuple[str, str]]:
    """Pydantic's errors by field, as the caller names it: without the parameter of our function that holds it."""
    named = []
    for error in errors:
        source, *place = error["loc"]
        if source == "body":
            place = place[1:]
        message = _("This is missing.") if error["type"] == "missing" else error["msg"]
        if not place and error["type"] == "missing":
            message = _("Send a JSON object.")
        named.append((".".join(str(step) for step in place), str(message)))
    return named


def _failure(request: HttpRequest, error: Exception) -> HttpResponse:
    reference = secrets.token_hex(4)
    logger.error(
        "Reference %s: %s %s failed", reference, request.method, request.path, exc_info=error
    )
    return respond(
        500,
        _("Something went wrong in the studio; its log tells more under %(reference)s.")
        % {"reference": reference},
        reference=reference,
    )
