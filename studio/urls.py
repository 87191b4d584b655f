"""Every address of the studio, assembled in one place."""

from django.http import HttpRequest, HttpResponse
from django.urls import path


async def healthz(_request: HttpRequest) -> HttpResponse:
    """The web process answers; asked by `manage.py serve` and by load balancers."""
    return HttpResponse("ok", content_type="text/plain")


urlpatterns = [
    path("healthz", healthz, name="healthz"),
]
