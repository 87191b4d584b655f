"""Every address of the studio, assembled in one place."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from studio.api import api
from studio.views import sandbox, sessions, stream


async def healthz(_request: HttpRequest) -> HttpResponse:
    """The web process answers; asked by `manage.py serve` and by load balancers."""
    return HttpResponse("ok", content_type="text/plain")


sandbox_urls = [
    path("agents/<slug:slug>/sandbox/", sessions.start, name="sandbox"),
    path("sessions/", sessions.session_list, name="sessions"),
    path("sessions/<int:pk>/", sandbox.session_page, name="session"),
    path("sessions/<int:pk>/messages/", sandbox.messages, name="session-messages"),
    path("sessions/<int:pk>/settings/", sandbox.session_settings, name="session-settings"),
    path("sessions/<int:pk>/stream/", stream.session_stream, name="session-stream"),
    path("sessions/<int:pk>/turns/<int:number>/", sandbox.turn_page, name="session-turn"),
    path("sessions/<int:pk>/turns/<int:number>/stop/", sandbox.stop, name="turn-stop"),
    path("sessions/<int:pk>/turns/<int:number>/retry/", sandbox.retry, name="turn-retry"),
    path(
        "sessions/<int:pk>/turns/<int:number>/prompts/<str:uid>/",
        sandbox.prompt_page,
        name="turn-prompt",
    ),
]

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("api/v1/", api.urls),
    *sandbox_urls,
]
