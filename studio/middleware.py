"""Middleware of our own."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware


@sync_only_middleware
def in_one_thread(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Stands innermost, so that Django runs all middleware of a request in one thread, in one go.

    Otherwise each of them goes to the thread and back twice, which under ASGI costs more than what they do there.
    Streams are sent from the event loop either way.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        return get_response(request)

    return middleware
