"""Every address of the studio, assembled in one place."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from studio.api import api
from studio.views import (
    accounts,
    agents,
    connections,
    guidelines,
    sandbox,
    sessions,
    settings,
    stream,
    tools,
)


async def healthz(_request: HttpRequest) -> HttpResponse:
    """The web process answers; asked by `manage.py serve` and by load balancers."""
    return HttpResponse("ok", content_type="text/plain")


account_urls = [
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("settings/password/", accounts.password, name="password"),
    path("settings/appearance/", accounts.appearance, name="appearance"),
]

agent_urls = [
    path("", agents.agent_list, name="agents"),
    path("agents/new/", agents.agent_new, name="agent-new"),
    path("agents/<slug:slug>/", agents.overview, name="agent"),
    path("agents/<slug:slug>/versions/", agents.versions, name="agent-versions"),
    path("agents/<slug:slug>/versions/<int:number>/", agents.version_page, name="agent-version"),
    path(
        "agents/<slug:slug>/versions/<int:number>/restore/",
        agents.version_restore,
        name="agent-version-restore",
    ),
    path("agents/<slug:slug>/settings/", agents.agent_settings, name="agent-settings"),
    path("agents/<slug:slug>/settings/delete/", agents.agent_delete, name="agent-delete"),
]

settings_urls = [
    path("settings/", settings.index, name="settings"),
    path("settings/connections/", connections.connection_list, name="connections"),
    path("settings/connections/new/", connections.connection_new, name="connection-new"),
    path("settings/connections/<int:pk>/", connections.connection, name="connection"),
    path(
        "settings/connections/<int:pk>/default/",
        connections.connection_default,
        name="connection-default",
    ),
    path(
        "settings/connections/<int:pk>/test/", connections.connection_test, name="connection-test"
    ),
    path(
        "settings/connections/<int:pk>/delete/",
        connections.connection_delete,
        name="connection-delete",
    ),
    path("settings/tokens/", settings.tokens, name="tokens"),
    path("settings/tokens/<int:pk>/revoke/", settings.token_revoke, name="token-revoke"),
    path("settings/people/", settings.people, name="people"),
    path("settings/people/new/", settings.person_new, name="person-new"),
    path("settings/people/<int:pk>/", settings.person, name="person"),
    path("settings/people/<int:pk>/password/", settings.person_password, name="person-password"),
]

guideline_urls = [
    path("agents/<slug:slug>/guidelines/", guidelines.guideline_list, name="guidelines"),
    path("agents/<slug:slug>/guidelines/new/", guidelines.new_guideline, name="guideline-new"),
    path(
        "agents/<slug:slug>/guidelines/enabled/",
        guidelines.guidelines_enabled,
        name="guidelines-enabled",
    ),
    path("agents/<slug:slug>/guidelines/<slug:uid>/", guidelines.guideline_page, name="guideline"),
    path(
        "agents/<slug:slug>/guidelines/<slug:uid>/delete/",
        guidelines.guideline_delete,
        name="guideline-delete",
    ),
    path(
        "agents/<slug:slug>/guidelines/<slug:uid>/restored/",
        guidelines.guideline_undelete,
        name="guideline-undelete",
    ),
    path(
        "agents/<slug:slug>/guidelines/<slug:uid>/enabled/",
        guidelines.guideline_enabled,
        name="guideline-enabled",
    ),
    path(
        "agents/<slug:slug>/guidelines/<slug:uid>/position/",
        guidelines.guideline_position,
        name="guideline-position",
    ),
]

tool_urls = [
    path("tools/", tools.tool_list, name="tools"),
    path("tools/<slug:name>/", tools.tool_page, name="tool"),
    path("tools/<slug:name>/code/", tools.tool_code, name="tool-code"),
    path("agents/<slug:slug>/tools/", tools.agent_tools, name="agent-tools"),
    path("agents/<slug:slug>/tools/<slug:name>/", tools.agent_tool, name="agent-tool"),
]

sandbox_urls = [
    path("agents/<slug:slug>/sandbox/", sessions.start, name="sandbox"),
    path("sessions/", sessions.session_list, name="sessions"),
    path("sessions/<int:pk>/", sandbox.session_page, name="session"),
    path("sessions/<int:pk>/messages/", sandbox.messages, name="session-messages"),
    path("sessions/<int:pk>/mode/", sandbox.mode, name="session-mode"),
    path(
        "sessions/<int:pk>/confirmations/<str:call>/",
        sandbox.confirmation,
        name="session-confirmation",
    ),
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
    *account_urls,
    *agent_urls,
    *settings_urls,
    *guideline_urls,
    *tool_urls,
    *sandbox_urls,
]

handler500 = "studio.http.server_error"
