"""Every address of the studio, assembled in one place."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from studio.api import api
from studio.views import (
    accounts,
    agents,
    audit_views,
    branches,
    connections,
    coverage,
    flags,
    guidelines,
    instances,
    mocks,
    model_checks,
    prices,
    relationships,
    rematches,
    replayed_turns,
    replays,
    runs,
    sandbox,
    scenario_expectations,
    scenario_keeping,
    scenarios,
    session_files,
    sessions,
    settings,
    stream,
    suite_files,
    suites,
    template_upload,
    templates,
    tool_runs,
    tools,
    variants,
    wording,
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
    path("settings/connections/<int:pk>/checks/", model_checks.checks, name="connection-checks"),
    path(
        "settings/connections/<int:pk>/checks/<int:number>/",
        model_checks.check_page,
        name="connection-check",
    ),
    path(
        "settings/connections/<int:pk>/checks/<int:number>/stop/",
        model_checks.check_stop,
        name="connection-check-stop",
    ),
    path(
        "settings/connections/<int:pk>/checks/<int:number>/proposal/",
        model_checks.check_proposal,
        name="connection-check-proposal",
    ),
    path("settings/prices/", prices.prices, name="prices"),
    path("settings/prices/<int:pk>/", prices.price, name="price"),
    path("settings/prices/<int:pk>/delete/", prices.price_delete, name="price-delete"),
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

coverage_urls = [
    path("agents/<slug:slug>/coverage/", coverage.coverage_page, name="coverage"),
    path(
        "agents/<slug:slug>/coverage/guidelines/<slug:uid>/",
        coverage.coverage_turns,
        name="coverage-turns",
    ),
    path("agents/<slug:slug>/coverage/tests/new/", coverage.coverage_test, name="coverage-test"),
]

wording_urls = [
    path(
        "agents/<slug:slug>/relationships/", relationships.relationship_list, name="relationships"
    ),
    path(
        "agents/<slug:slug>/relationships/new/",
        relationships.relationship_new,
        name="relationship-new",
    ),
    path(
        "agents/<slug:slug>/relationships/<slug:uid>/",
        relationships.relationship_page,
        name="relationship",
    ),
    path(
        "agents/<slug:slug>/relationships/<slug:uid>/delete/",
        relationships.relationship_delete,
        name="relationship-delete",
    ),
    path("agents/<slug:slug>/overlaps/new/", relationships.overlap_new, name="overlap-new"),
    path("agents/<slug:slug>/overlaps/<slug:uid>/", relationships.overlap_page, name="overlap"),
    path(
        "agents/<slug:slug>/overlaps/<slug:uid>/delete/",
        relationships.overlap_delete,
        name="overlap-delete",
    ),
    path("agents/<slug:slug>/responses/", wording.responses, name="responses"),
    path("agents/<slug:slug>/responses/new/", wording.response_new, name="response-new"),
    path("agents/<slug:slug>/responses/<slug:uid>/", wording.response_page, name="response"),
    path(
        "agents/<slug:slug>/responses/<slug:uid>/delete/",
        wording.response_delete,
        name="response-delete",
    ),
    path("agents/<slug:slug>/glossary/", wording.glossary, name="glossary"),
    path("agents/<slug:slug>/glossary/new/", wording.term_new, name="term-new"),
    path("agents/<slug:slug>/glossary/<slug:uid>/", wording.term_page, name="term"),
    path("agents/<slug:slug>/glossary/<slug:uid>/delete/", wording.term_delete, name="term-delete"),
]

template_urls = [
    path("tools/upload/", template_upload.upload_page, name="tool-upload"),
    path("tools/starter/", templates.template_starter, name="tool-starter"),
    path("tools/templates/", templates.template_list, name="tool-templates"),
    path("tools/templates/export/", templates.template_export, name="tool-template-export"),
    path("tools/templates/<int:pk>/", templates.template_page, name="tool-template"),
    path(
        "tools/templates/<int:pk>/versions/<int:number>/",
        templates.template_page,
        name="tool-template-version",
    ),
    path(
        "tools/templates/<int:pk>/changes/<int:before>..<int:after>/",
        templates.template_changes,
        name="tool-template-changes",
    ),
    path(
        "tools/templates/<int:pk>/download/",
        templates.template_download,
        name="tool-template-download",
    ),
    path(
        "tools/templates/<int:pk>/delete/", templates.template_delete, name="tool-template-delete"
    ),
    path("tools/templates/<int:pk>/name/", templates.template_name, name="tool-template-name"),
]

tool_urls = [
    path("tools/", tools.tool_list, name="tools"),
    path(
        "tools/templates/<int:pk>/instances/new/", instances.instance_new, name="tool-instance-new"
    ),
    path("tools/instances/<int:pk>/", instances.instance_page, name="tool-instance"),
    path("tools/instances/<int:pk>/build/", instances.instance_build, name="tool-instance-build"),
    path(
        "tools/instances/<int:pk>/build/stop/",
        instances.instance_build_stop,
        name="tool-instance-build-stop",
    ),
    path(
        "tools/instances/<int:pk>/upgrade/",
        instances.instance_upgrade,
        name="tool-instance-upgrade",
    ),
    path(
        "tools/instances/<int:pk>/upgrade/cancel/",
        instances.instance_upgrade_cancel,
        name="tool-instance-upgrade-cancel",
    ),
    path(
        "tools/instances/<int:pk>/delete/", instances.instance_delete, name="tool-instance-delete"
    ),
    path("tools/<slug:name>/", tools.tool_page, name="tool"),
    path("tools/<slug:name>/code/", tools.tool_code, name="tool-code"),
    path("tools/<slug:name>/run/", tool_runs.run_form, name="tool-run-form"),
    path("tools/<slug:name>/runs/<int:pk>/", tool_runs.run_page, name="tool-run"),
    path("tools/<slug:name>/runs/<int:pk>/stop/", tool_runs.run_stop, name="tool-run-stop"),
    path(
        "tools/<slug:name>/runs/<int:pk>/example/", tool_runs.run_example, name="tool-run-example"
    ),
    path(
        "tools/<slug:name>/examples/<int:pk>/run/", tool_runs.example_run, name="tool-example-run"
    ),
    path(
        "tools/<slug:name>/examples/<int:pk>/delete/",
        tool_runs.example_delete,
        name="tool-example-delete",
    ),
    path("agents/<slug:slug>/tools/", tools.agent_tools, name="agent-tools"),
    path("agents/<slug:slug>/tools/<slug:name>/", tools.agent_tool, name="agent-tool"),
]

sandbox_urls = [
    path("agents/<slug:slug>/sandbox/", sessions.start, name="sandbox"),
    path("sessions/", sessions.session_list, name="sessions"),
    path("sessions/import/", session_files.session_import, name="session-import"),
    path("sessions/<int:pk>/", sandbox.session_page, name="session"),
    path("sessions/<int:pk>/export/", session_files.session_export, name="session-export"),
    path("sessions/<int:pk>/messages/", sandbox.messages, name="session-messages"),
    path("sessions/<int:pk>/mode/", sandbox.mode, name="session-mode"),
    path("sessions/<int:pk>/events/<int:offset>/flags/", flags.flags, name="session-flags"),
    path("sessions/<int:pk>/flags/<int:flag>/", flags.flag_state, name="session-flag-state"),
    path(
        "sessions/<int:pk>/confirmations/<str:call>/",
        sandbox.confirmation,
        name="session-confirmation",
    ),
    path("sessions/<int:pk>/settings/", sandbox.session_settings, name="session-settings"),
    path("sessions/<int:pk>/mocks/", mocks.session_mocks, name="session-mocks"),
    path("sessions/<int:pk>/stream/", stream.session_stream, name="session-stream"),
    path("sessions/<int:pk>/turns/<int:number>/", audit_views.turn_page, name="session-turn"),
    path(
        "sessions/<int:pk>/turns/<int:number>/guidelines/<slug:uid>/",
        rematches.why_not,
        name="turn-guideline",
    ),
    path(
        "sessions/<int:pk>/turns/<int:number>/guidelines/<slug:uid>/rematches/",
        rematches.rematches,
        name="turn-rematches",
    ),
    path(
        "sessions/<int:pk>/turns/<int:number>/guidelines/<slug:uid>/rematches/<int:tried>/stop/",
        rematches.rematch_stop,
        name="turn-rematch-stop",
    ),
    path("sessions/<int:pk>/turns/<int:number>/stop/", sandbox.stop, name="turn-stop"),
    path("sessions/<int:pk>/turns/<int:number>/retry/", sandbox.retry, name="turn-retry"),
    path("sessions/<int:pk>/branches/", branches.branches, name="session-branches"),
    path(
        "sessions/<int:pk>/turns/<int:number>/regenerate/",
        branches.turn_regenerate,
        name="turn-regenerate",
    ),
    path("sessions/<int:pk>/turns/<int:number>/resend/", branches.turn_resend, name="turn-resend"),
    path(
        "sessions/<int:pk>/turns/<int:number>/prompts/<str:uid>/",
        audit_views.prompt_page,
        name="turn-prompt",
    ),
    path(
        "sessions/<int:pk>/turns/<int:number>/record.json",
        audit_views.turn_record,
        name="turn-record",
    ),
    path(
        "sessions/<int:pk>/turns/<int:number>/record.md",
        audit_views.turn_markdown,
        name="turn-markdown",
    ),
]

suite_urls = [
    path("suites/", suites.suite_list, name="suites"),
    path("suites/new/", suites.suite_new, name="suite-new"),
    path("suites/import/", suite_files.suite_import, name="suite-import"),
    path("suites/<int:pk>/", suites.suite_page, name="suite"),
    path("suites/<int:pk>/export/", suite_files.suite_export, name="suite-export"),
    path("suites/<int:pk>/delete/", suites.suite_delete, name="suite-delete"),
    path("suites/<int:pk>/scenarios/new/", scenarios.scenario_new, name="scenario-new"),
    path("suites/<int:pk>/scenarios/<slug:uid>/", scenarios.scenario_page, name="scenario"),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/edit/", scenarios.scenario_edit, name="scenario-edit"
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/position/",
        scenarios.scenario_position,
        name="scenario-position",
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/quarantine/",
        scenarios.scenario_quarantine,
        name="scenario-quarantine",
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/copy/",
        scenarios.scenario_duplicate,
        name="scenario-copy",
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/delete/",
        scenarios.scenario_delete,
        name="scenario-delete",
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/expectations/new/",
        scenario_expectations.expectation_new,
        name="expectation-new",
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/expectations/<slug:expectation>/",
        scenario_expectations.expectation_page,
        name="expectation",
    ),
    path(
        "suites/<int:pk>/scenarios/<slug:uid>/expectations/<slug:expectation>/delete/",
        scenario_expectations.expectation_delete,
        name="expectation-delete",
    ),
    path("sessions/<int:pk>/keep/", scenario_keeping.session_keep, name="session-keep"),
    path(
        "sessions/<int:pk>/turns/<int:number>/expect/",
        scenario_keeping.turn_expect,
        name="turn-expect",
    ),
    path(
        "sessions/<int:pk>/events/<int:offset>/expect/",
        scenario_keeping.message_expect,
        name="message-expect",
    ),
]

replay_urls = [
    path("replays/", replays.replay_list, name="replays"),
    path("replays/new/", replays.replay_new, name="replay-new"),
    path("replays/<int:pk>/", replays.replay_page, name="replay"),
    path("replays/<int:pk>/pause/", replays.replay_pause, name="replay-pause"),
    path("replays/<int:pk>/resume/", replays.replay_resume, name="replay-resume"),
    path("replays/<int:pk>/cancel/", replays.replay_cancel, name="replay-cancel"),
    path("replays/<int:pk>/rest/", replays.replay_rest_start, name="replay-rest"),
    path("replays/<int:pk>/delete/", replays.replay_delete, name="replay-delete"),
    path(
        "replays/<int:pk>/<int:session>/<int:number>/",
        replayed_turns.replayed_turn,
        name="replayed-turn",
    ),
    path(
        "replays/<int:pk>/<int:session>/<int:number>/accept/",
        replayed_turns.turn_accept,
        name="replayed-turn-accept",
    ),
    path(
        "replays/<int:pk>/<int:session>/<int:number>/accepted/<int:accepted>/undo/",
        replayed_turns.turn_accepted_undo,
        name="replayed-turn-undo",
    ),
    path("sessions/<int:pk>/variants/", variants.variant_list, name="variants"),
    path("sessions/<int:pk>/variants/<int:variant>/", variants.variant_title, name="variant"),
    path(
        "sessions/<int:pk>/variants/<int:variant>/delete/",
        variants.variant_delete,
        name="variant-delete",
    ),
    path(
        "sessions/<int:pk>/variants/<int:variant>/edits/<str:call>/delete/",
        variants.variant_edit_delete,
        name="variant-edit-delete",
    ),
    path(
        "sessions/<int:pk>/turns/<int:number>/calls/<str:uid>/result/",
        variants.recorded_result,
        name="recorded-result",
    ),
]

run_urls = [
    path("suites/<int:pk>/runs/", runs.run_list, name="suite-runs"),
    path("runs/<int:pk>/", runs.run_page, name="run"),
    path("runs/<int:pk>/pause/", runs.run_pause, name="run-pause"),
    path("runs/<int:pk>/resume/", runs.run_resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", runs.run_cancel, name="run-cancel"),
    path("runs/<int:pk>/retry/", runs.run_retry, name="run-retry"),
    path("runs/<int:pk>/junit.xml", runs.run_junit, name="run-junit"),
    path("runs/<int:pk>/cells.csv", runs.run_csv, name="run-csv"),
    path("runs/<int:pk>/report.html", runs.run_html, name="run-html"),
]

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("api/v1/", api.urls),
    *account_urls,
    *agent_urls,
    *settings_urls,
    *guideline_urls,
    *coverage_urls,
    *wording_urls,
    *template_urls,
    *tool_urls,
    *sandbox_urls,
    *run_urls,
    *replay_urls,
    *suite_urls,
]

handler500 = "studio.http.server_error"
