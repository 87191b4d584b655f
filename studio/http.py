"""Small things that every view needs: a page or its part, refused forms, events for other regions of the page."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import trigger_client_event

log = logging.getLogger(__name__)

Response = TypeVar("Response", bound=HttpResponseBase)


def is_part(request: HttpRequest) -> bool:
    """Does htmx ask for a part of the page? Not for a whole one that it shows again from the browser's history."""
    headers = request.headers
    return (
        headers.get("HX-Request") == "true" and headers.get("HX-History-Restore-Request") != "true"
    )


def show(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or for htmx its partial named `part`; both have one address, so caches must tell them apart."""
    name = f"{template}#{part}" if part and is_part(request) else template
    response = render(request, name, dict(context or {}), status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def refused(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, part: str = ""
) -> HttpResponse:
    """A form with its errors, as 422: htmx swaps it like any other answer."""
    return show(request, template, context, part=part, status=422)


def announce(response: Response, event: str, **detail: Any) -> Response:
    """Tell the rest of the page what happened: `announce(response, "guideline:saved", uid=uid)`.

    Another region reloads itself with `hx-trigger="guideline:saved from:body"`.
    """
    trigger_client_event(response, event, detail or None)
    return response


def safe_next(request: HttpRequest, default: str = "/") -> str:
    """The address that the request asks to go on to, if it is one of ours."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours else default


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for what nobody foresaw: a reference that stands in the log too, and nothing else of it."""
    reference = secrets.token_hex(4)
    log.error("Reference %s: %s %s", reference, request.method, request.path)
    # Without the request: what broke may be what the page would read of it.
    return render(None, "500.html", {"reference": reference}, status=500)
