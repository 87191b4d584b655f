"""Every address × role × method: an address or an operation that is missing from these tables fails the test."""

import json
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from io import BytesIO
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from studio.access import May, Role
from studio.models import (
    AcceptedChange,
    Agent,
    ApiToken,
    Expectation,
    Flag,
    ModelCall,
    ModelCheck,
    Rematch,
    Replay,
    ReplayedTurn,
    Scenario,
    Session,
    Suite,
    SuiteRun,
    Tool,
    ToolCall,
    ToolExample,
    ToolRun,
    Turn,
    Variant,
)
from studio.operations.agents import publish
from studio.operations.scenarios import keep_session
from studio.operations.suite_runs import start_run
from tests.studio.factories import (
    ask_to_confirm,
    make_agent,
    make_connection,
    make_guideline,
    make_overlap,
    make_price,
    make_relationship,
    make_response,
    make_session,
    make_term,
    make_tool,
    make_turn,
    make_user,
)
from tests.studio.tool_packages import make_instance, make_version, package_zip

pytestmark = pytest.mark.django_db


class Open(Enum):
    """Who may, where no role decides."""

    TO_EVERYBODY = auto()
    TO_WHOEVER_IS_SIGNED_IN = auto()


SIGNED_IN = Open.TO_WHOEVER_IS_SIGNED_IN
Rule = May | Open

# Said here once more, apart from the code; an admin may do everything.
ROLES: dict[May, set[str]] = {
    May.VIEW: {"author", "developer", "qa", "publisher"},
    May.WRITE_GUIDELINES: {"author"},
    May.CHOOSE_TOOLS: {"author", "developer"},
    May.MANAGE_TOOLS: {"developer"},
    May.CONVERSE: {"author", "developer", "qa", "publisher"},
    May.TEST: {"author", "developer", "qa", "publisher"},
    May.PUBLISH: {"publisher"},
    May.MANAGE_CONNECTIONS: {"developer"},
    May.MANAGE_PEOPLE: set(),
}
METHODS = {"GET", "POST", "PUT", "DELETE"}

# Name of the address → method → what it takes. A method that is not there is answered with 405.
PAGES: dict[str, dict[str, Rule]] = {
    "healthz": dict.fromkeys(METHODS, Open.TO_EVERYBODY),
    "sign-in": {"GET": Open.TO_EVERYBODY, "POST": Open.TO_EVERYBODY},
    "sign-out": {"POST": Open.TO_EVERYBODY},
    "password": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "appearance": {"POST": SIGNED_IN},
    "agents": {"GET": May.VIEW},
    "agent-new": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "agent": {"GET": May.VIEW},
    "agent-versions": {"GET": May.VIEW, "POST": May.PUBLISH},
    "agent-version": {"GET": May.VIEW},
    "agent-version-restore": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "agent-settings": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "agent-delete": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "settings": {"GET": SIGNED_IN},
    "connections": {"GET": May.MANAGE_CONNECTIONS},
    "connection-new": {"GET": May.MANAGE_CONNECTIONS, "POST": May.MANAGE_CONNECTIONS},
    "connection": {"GET": May.MANAGE_CONNECTIONS, "POST": May.MANAGE_CONNECTIONS},
    "connection-default": {"POST": May.MANAGE_CONNECTIONS},
    "connection-test": {"POST": May.MANAGE_CONNECTIONS},
    "connection-delete": {"GET": May.MANAGE_CONNECTIONS, "POST": May.MANAGE_CONNECTIONS},
    "connection-checks": {"POST": May.MANAGE_CONNECTIONS},
    "connection-check": {"GET": May.MANAGE_CONNECTIONS},
    "connection-check-stop": {"POST": May.MANAGE_CONNECTIONS},
    "connection-check-proposal": {"POST": May.MANAGE_CONNECTIONS},
    "prices": {"GET": May.MANAGE_CONNECTIONS, "POST": May.MANAGE_CONNECTIONS},
    "price": {"GET": May.MANAGE_CONNECTIONS, "POST": May.MANAGE_CONNECTIONS},
    "price-delete": {"POST": May.MANAGE_CONNECTIONS},
    "tokens": {"GET": May.VIEW, "POST": May.VIEW},
    "token-revoke": {"POST": May.VIEW},
    "people": {"GET": May.MANAGE_PEOPLE},
    "person-new": {"GET": May.MANAGE_PEOPLE, "POST": May.MANAGE_PEOPLE},
    "person": {"GET": May.MANAGE_PEOPLE, "POST": May.MANAGE_PEOPLE},
    "person-password": {"POST": May.MANAGE_PEOPLE},
    "guidelines": {"GET": May.VIEW},
    "guideline-new": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "guidelines-enabled": {"POST": May.WRITE_GUIDELINES},
    "guideline": {"GET": May.VIEW, "POST": May.WRITE_GUIDELINES},
    "guideline-delete": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "guideline-undelete": {"POST": May.WRITE_GUIDELINES},
    "guideline-enabled": {"POST": May.WRITE_GUIDELINES},
    "guideline-position": {"POST": May.WRITE_GUIDELINES},
    "coverage": {"GET": May.VIEW},
    "coverage-turns": {"GET": May.VIEW},
    "coverage-test": {"GET": May.TEST, "POST": May.TEST},
    "relationships": {"GET": May.VIEW},
    "relationship-new": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "relationship": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "relationship-delete": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "overlap-new": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "overlap": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "overlap-delete": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "responses": {"GET": May.VIEW},
    "response-new": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "response": {"GET": May.VIEW, "POST": May.WRITE_GUIDELINES},
    "response-delete": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "glossary": {"GET": May.VIEW},
    "term-new": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "term": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "term-delete": {"GET": May.WRITE_GUIDELINES, "POST": May.WRITE_GUIDELINES},
    "tools": {"GET": May.VIEW},
    "tool": {"GET": May.VIEW, "POST": May.MANAGE_TOOLS},
    "tool-code": {"POST": May.MANAGE_TOOLS},
    "tool-upload": {"GET": May.MANAGE_TOOLS, "POST": May.MANAGE_TOOLS},
    "tool-starter": {"GET": May.VIEW},
    "tool-templates": {"GET": May.VIEW},
    "tool-template-export": {"GET": May.VIEW},
    "tool-template": {"GET": May.VIEW},
    "tool-template-version": {"GET": May.VIEW},
    "tool-template-changes": {"GET": May.VIEW},
    "tool-template-download": {"GET": May.VIEW},
    "tool-template-delete": {"GET": May.MANAGE_TOOLS, "POST": May.MANAGE_TOOLS},
    "tool-template-name": {"POST": May.MANAGE_TOOLS},
    "tool-instance-new": {"GET": May.MANAGE_TOOLS, "POST": May.MANAGE_TOOLS},
    "tool-instance": {"GET": May.VIEW, "POST": May.MANAGE_TOOLS},
    "tool-instance-build": {"POST": May.MANAGE_TOOLS},
    "tool-instance-build-stop": {"POST": May.MANAGE_TOOLS},
    "tool-instance-upgrade": {"GET": May.MANAGE_TOOLS, "POST": May.MANAGE_TOOLS},
    "tool-instance-upgrade-cancel": {"POST": May.MANAGE_TOOLS},
    "tool-instance-delete": {"GET": May.MANAGE_TOOLS, "POST": May.MANAGE_TOOLS},
    "tool-run-form": {"GET": May.MANAGE_TOOLS, "POST": May.MANAGE_TOOLS},
    "tool-run": {"GET": May.MANAGE_TOOLS},
    "tool-run-stop": {"POST": May.MANAGE_TOOLS},
    "tool-run-example": {"POST": May.MANAGE_TOOLS},
    "tool-example-run": {"POST": May.MANAGE_TOOLS},
    "tool-example-delete": {"POST": May.MANAGE_TOOLS},
    "agent-tools": {"GET": May.VIEW},
    "agent-tool": {"POST": May.CHOOSE_TOOLS},
    "sandbox": {"GET": May.VIEW, "POST": May.CONVERSE},
    "sessions": {"GET": May.VIEW},
    "session": {"GET": May.VIEW},
    "session-import": {"GET": May.CONVERSE, "POST": May.CONVERSE},
    "session-export": {"GET": May.VIEW, "POST": May.VIEW},
    "session-messages": {"POST": May.CONVERSE},
    "session-settings": {"POST": May.CONVERSE},
    "session-mocks": {"GET": May.VIEW, "POST": May.CONVERSE},
    "session-mode": {"POST": May.CONVERSE},
    "session-flags": {"GET": May.VIEW, "POST": May.CONVERSE},
    "session-flag-state": {"POST": May.CONVERSE},
    "session-confirmation": {"POST": May.CONVERSE},
    "session-stream": {"GET": May.VIEW},
    "session-turn": {"GET": May.VIEW},
    "turn-guideline": {"GET": May.VIEW},
    "turn-rematches": {"POST": May.CONVERSE},
    "turn-rematch-stop": {"POST": May.CONVERSE},
    "turn-stop": {"POST": May.CONVERSE},
    "turn-retry": {"POST": May.CONVERSE},
    "turn-regenerate": {"POST": May.CONVERSE},
    "turn-resend": {"POST": May.CONVERSE},
    "session-branches": {"POST": May.CONVERSE},
    "turn-prompt": {"GET": May.VIEW},
    "turn-record": {"GET": May.VIEW},
    "turn-markdown": {"GET": May.VIEW},
    "replays": {"GET": May.VIEW},
    "replay-new": {"GET": May.TEST, "POST": May.TEST},
    "replay": {"GET": May.VIEW},
    "replay-pause": {"POST": May.TEST},
    "replay-resume": {"POST": May.TEST},
    "replay-cancel": {"POST": May.TEST},
    "replay-rest": {"POST": May.TEST},
    "replay-delete": {"GET": May.TEST, "POST": May.TEST},
    "replayed-turn": {"GET": May.VIEW},
    "replayed-turn-accept": {"POST": May.TEST},
    "replayed-turn-undo": {"POST": May.TEST},
    "variants": {"GET": May.VIEW},
    "variant": {"POST": May.TEST},
    "variant-delete": {"POST": May.TEST},
    "variant-edit-delete": {"POST": May.TEST},
    "recorded-result": {"GET": May.TEST, "POST": May.TEST},
}
PAGES |= {
    "suites": {"GET": May.VIEW},
    "suite-new": {"GET": May.TEST, "POST": May.TEST},
    "suite-import": {"GET": May.TEST, "POST": May.TEST},
    "suite": {"GET": May.VIEW, "POST": May.TEST},
    "suite-export": {"GET": May.VIEW},
    "suite-delete": {"GET": May.TEST, "POST": May.TEST},
    "suite-runs": {"GET": May.VIEW, "POST": May.TEST},
    "run": {"GET": May.VIEW},
    "run-pause": {"POST": May.TEST},
    "run-resume": {"POST": May.TEST},
    "run-cancel": {"POST": May.TEST},
    "run-retry": {"POST": May.TEST},
    "run-junit": {"GET": May.VIEW},
    "run-csv": {"GET": May.VIEW},
    "run-html": {"GET": May.VIEW},
    "scenario-new": {"GET": May.TEST, "POST": May.TEST},
    "scenario": {"GET": May.VIEW},
    "scenario-edit": {"GET": May.TEST, "POST": May.TEST},
    "scenario-position": {"POST": May.TEST},
    "scenario-quarantine": {"POST": May.TEST},
    "scenario-copy": {"POST": May.TEST},
    "scenario-delete": {"GET": May.TEST, "POST": May.TEST},
    "expectation-new": {"GET": May.TEST, "POST": May.TEST},
    "expectation": {"GET": May.TEST, "POST": May.TEST},
    "expectation-delete": {"POST": May.TEST},
    "session-keep": {"GET": May.TEST, "POST": May.TEST},
    "turn-expect": {"GET": May.TEST, "POST": May.TEST},
    "message-expect": {"GET": May.TEST, "POST": May.TEST},
}
# Parts of an agent that are named by a uid; the fixture gives one of each this one: "parcel".
_PARTS = {"relationship", "overlap", "response", "term"}
# What a page answers to an empty form although one may: there is nothing of the kind to act upon.
_NOTHING_THERE = {("guideline-undelete", "POST")}


class Operation(NamedTuple):
    may: May
    body: Mapping[str, Any] | None = None


API: dict[tuple[str, str], Operation] = {
    ("get", "/agents"): Operation(May.VIEW),
    ("post", "/agents"): Operation(May.WRITE_GUIDELINES, {"name": "New"}),
    ("post", "/agents/import"): Operation(
        May.WRITE_GUIDELINES, {"schema_version": 1, "slug": "imported", "name": "Imported"}
    ),
    ("get", "/agents/{slug}"): Operation(May.VIEW),
    ("patch", "/agents/{slug}"): Operation(May.WRITE_GUIDELINES, {"name": "Renamed"}),
    ("delete", "/agents/{slug}"): Operation(May.WRITE_GUIDELINES),
    ("get", "/agents/{slug}/export"): Operation(May.VIEW),
    ("get", "/agents/{slug}/guidelines"): Operation(May.VIEW),
    ("post", "/agents/{slug}/guidelines"): Operation(May.WRITE_GUIDELINES, {"action": "be kind"}),
    ("get", "/agents/{slug}/guidelines/{uid}"): Operation(May.VIEW),
    ("patch", "/agents/{slug}/guidelines/{uid}"): Operation(
        May.WRITE_GUIDELINES, {"action": "be kind"}
    ),
    ("delete", "/agents/{slug}/guidelines/{uid}"): Operation(May.WRITE_GUIDELINES),
    ("get", "/agents/{slug}/coverage"): Operation(May.VIEW),
    ("get", "/agents/{slug}/relationships"): Operation(May.VIEW),
    ("post", "/agents/{slug}/relationships"): Operation(
        May.WRITE_GUIDELINES, {"kind": "entails", "source": "brief", "targets": ["parcel"]}
    ),
    ("get", "/agents/{slug}/relationships/{uid}"): Operation(May.VIEW),
    ("patch", "/agents/{slug}/relationships/{uid}"): Operation(
        May.WRITE_GUIDELINES, {"kind": "entails"}
    ),
    ("delete", "/agents/{slug}/relationships/{uid}"): Operation(May.WRITE_GUIDELINES),
    ("get", "/agents/{slug}/overlaps"): Operation(May.VIEW),
    ("post", "/agents/{slug}/overlaps"): Operation(
        May.WRITE_GUIDELINES, {"tools": ["find_parcel", "weigh"]}
    ),
    ("get", "/agents/{slug}/overlaps/{uid}"): Operation(May.VIEW),
    ("patch", "/agents/{slug}/overlaps/{uid}"): Operation(
        May.WRITE_GUIDELINES, {"tools": ["weigh", "find_parcel"]}
    ),
    ("delete", "/agents/{slug}/overlaps/{uid}"): Operation(May.WRITE_GUIDELINES),
    ("get", "/agents/{slug}/responses"): Operation(May.VIEW),
    ("post", "/agents/{slug}/responses"): Operation(May.WRITE_GUIDELINES, {"text": "Hello."}),
    ("get", "/agents/{slug}/responses/{uid}"): Operation(May.VIEW),
    ("patch", "/agents/{slug}/responses/{uid}"): Operation(May.WRITE_GUIDELINES, {"text": "Hi."}),
    ("delete", "/agents/{slug}/responses/{uid}"): Operation(May.WRITE_GUIDELINES),
    ("get", "/agents/{slug}/terms"): Operation(May.VIEW),
    ("post", "/agents/{slug}/terms"): Operation(
        May.WRITE_GUIDELINES, {"name": "A", "description": "b"}
    ),
    ("get", "/agents/{slug}/terms/{uid}"): Operation(May.VIEW),
    ("patch", "/agents/{slug}/terms/{uid}"): Operation(May.WRITE_GUIDELINES, {"name": "B"}),
    ("delete", "/agents/{slug}/terms/{uid}"): Operation(May.WRITE_GUIDELINES),
    ("get", "/agents/{slug}/tools"): Operation(May.VIEW),
    ("put", "/agents/{slug}/tools/{name}"): Operation(May.CHOOSE_TOOLS),
    ("delete", "/agents/{slug}/tools/{name}"): Operation(May.CHOOSE_TOOLS),
    ("get", "/agents/{slug}/versions"): Operation(May.VIEW),
    ("post", "/agents/{slug}/versions"): Operation(May.PUBLISH, {"note": "New."}),
    ("get", "/agents/{slug}/versions/{number}"): Operation(May.VIEW),
    ("post", "/agents/{slug}/versions/{number}/restore"): Operation(May.WRITE_GUIDELINES),
    ("get", "/tools"): Operation(May.VIEW),
    ("get", "/tools/{name}"): Operation(May.VIEW),
    ("post", "/tools/{name}/run"): Operation(May.MANAGE_TOOLS, {"arguments": {}}),
    ("post", "/tool-templates"): Operation(May.MANAGE_TOOLS, {"file": BytesIO(package_zip())}),
    ("get", "/tool-templates"): Operation(May.VIEW),
    ("get", "/tool-templates/starter"): Operation(May.VIEW),
    ("get", "/tool-templates/export"): Operation(May.VIEW),
    ("get", "/tool-templates/{template_id}"): Operation(May.VIEW),
    ("patch", "/tool-templates/{template_id}"): Operation(May.MANAGE_TOOLS, {"name": "Renamed"}),
    ("delete", "/tool-templates/{template_id}"): Operation(May.MANAGE_TOOLS),
    ("get", "/tool-templates/{template_id}/versions"): Operation(May.VIEW),
    ("get", "/tool-templates/{template_id}/versions/{number}"): Operation(May.VIEW),
    ("get", "/tool-templates/{template_id}/download"): Operation(May.VIEW),
    ("get", "/tool-templates/{template_id}/changes"): Operation(May.VIEW),
    ("post", "/tool-templates/{template_id}/instances"): Operation(
        May.MANAGE_TOOLS, {"name": "weather", "config": {}}
    ),
    ("get", "/tool-instances"): Operation(May.VIEW),
    ("get", "/tool-instances/{instance_id}"): Operation(May.VIEW),
    ("patch", "/tool-instances/{instance_id}"): Operation(May.MANAGE_TOOLS, {"config": {}}),
    ("delete", "/tool-instances/{instance_id}"): Operation(May.MANAGE_TOOLS),
    ("post", "/tool-instances/{instance_id}/build"): Operation(May.MANAGE_TOOLS),
    ("post", "/tool-instances/{instance_id}/upgrade"): Operation(May.MANAGE_TOOLS, {"version": 1}),
    ("delete", "/tool-instances/{instance_id}/upgrade"): Operation(May.MANAGE_TOOLS),
    ("get", "/model-prices"): Operation(May.VIEW),
    ("post", "/model-prices"): Operation(
        May.MANAGE_CONNECTIONS, {"model": "gpt-x", "input_price": "1", "output_price": "2"}
    ),
    ("get", "/model-prices/{price_id}"): Operation(May.VIEW),
    ("patch", "/model-prices/{price_id}"): Operation(May.MANAGE_CONNECTIONS, {"currency": "EUR"}),
    ("delete", "/model-prices/{price_id}"): Operation(May.MANAGE_CONNECTIONS),
    ("get", "/sessions"): Operation(May.VIEW),
    ("post", "/sessions"): Operation(May.CONVERSE, {"agent": "depot"}),
    ("post", "/sessions/import"): Operation(May.CONVERSE, {"file": BytesIO(b"{}")}),
    ("get", "/sessions/{session_id}"): Operation(May.VIEW),
    ("get", "/sessions/{session_id}/export"): Operation(May.VIEW),
    ("patch", "/sessions/{session_id}"): Operation(May.CONVERSE, {"title": "Named"}),
    ("post", "/sessions/{session_id}/messages"): Operation(May.CONVERSE, {"text": "Hello"}),
    ("get", "/sessions/{session_id}/confirmations"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/confirmations/{call}"): Operation(
        May.CONVERSE, {"answer": "confirmed"}
    ),
    ("get", "/sessions/{session_id}/events"): Operation(May.VIEW),
    ("get", "/sessions/{session_id}/stream"): Operation(May.VIEW),
    ("get", "/sessions/{session_id}/turns"): Operation(May.VIEW),
    ("get", "/sessions/{session_id}/turns/{number}"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/turns/{number}/stop"): Operation(May.CONVERSE),
    ("post", "/sessions/{session_id}/turns/{number}/retry"): Operation(May.CONVERSE),
    ("post", "/sessions/{session_id}/turns/{number}/regenerate"): Operation(May.CONVERSE),
    ("get", "/sessions/{session_id}/mocks"): Operation(May.VIEW),
    ("put", "/sessions/{session_id}/mocks/{name}"): Operation(May.CONVERSE, {"data": 1}),
    ("delete", "/sessions/{session_id}/mocks/{name}"): Operation(May.CONVERSE),
    ("get", "/sessions/{session_id}/flags"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/flags"): Operation(
        May.CONVERSE, {"offset": 1, "comment": "Look at this."}
    ),
    ("get", "/sessions/{session_id}/flags/{flag_id}"): Operation(May.VIEW),
    ("patch", "/sessions/{session_id}/flags/{flag_id}"): Operation(May.CONVERSE, {"open": False}),
    ("get", "/sessions/{session_id}/turns/{number}/rematches"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/turns/{number}/rematches"): Operation(
        May.CONVERSE, {"guideline": "parcel"}
    ),
    ("get", "/sessions/{session_id}/turns/{number}/rematches/{rematch_id}"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/turns/{number}/rematches/{rematch_id}/stop"): Operation(
        May.CONVERSE
    ),
    ("get", "/suites"): Operation(May.VIEW),
    ("post", "/suites"): Operation(May.TEST, {"agent": "depot", "name": "Smoke"}),
    ("post", "/suites/import"): Operation(May.TEST, {"format": "guideline-studio-suite"}),
    ("get", "/suites/{suite_id}"): Operation(May.VIEW),
    ("patch", "/suites/{suite_id}"): Operation(May.TEST, {"repeats": 2}),
    ("delete", "/suites/{suite_id}"): Operation(May.TEST),
    ("get", "/suites/{suite_id}/export"): Operation(May.VIEW),
    ("get", "/suites/{suite_id}/runs"): Operation(May.VIEW),
    ("post", "/suites/{suite_id}/runs"): Operation(May.TEST, {"repeats": 2}),
    ("get", "/runs/{run_id}"): Operation(May.VIEW),
    ("get", "/runs/{run_id}.xml"): Operation(May.VIEW),
    ("get", "/runs/{run_id}.csv"): Operation(May.VIEW),
    ("post", "/runs/{run_id}/pause"): Operation(May.TEST),
    ("post", "/runs/{run_id}/resume"): Operation(May.TEST),
    ("post", "/runs/{run_id}/cancel"): Operation(May.TEST),
    ("post", "/runs/{run_id}/retry"): Operation(May.TEST),
    ("get", "/suites/{suite_id}/scenarios"): Operation(May.VIEW),
    ("post", "/suites/{suite_id}/scenarios"): Operation(
        May.TEST, {"title": "Hello", "messages": [{"text": "Hello"}]}
    ),
    ("get", "/suites/{suite_id}/scenarios/{uid}"): Operation(May.VIEW),
    ("patch", "/suites/{suite_id}/scenarios/{uid}"): Operation(May.TEST, {"title": "Hello"}),
    ("delete", "/suites/{suite_id}/scenarios/{uid}"): Operation(May.TEST),
    ("get", "/replays"): Operation(May.VIEW),
    ("post", "/replays"): Operation(May.TEST, {"sessions": [2**62]}),
    ("get", "/sessions/{session_id}/replays"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/replays"): Operation(May.TEST, {"against": "published"}),
    ("get", "/replays/{replay_id}"): Operation(May.VIEW),
    ("delete", "/replays/{replay_id}"): Operation(May.TEST),
    ("post", "/replays/{replay_id}/pause"): Operation(May.TEST),
    ("post", "/replays/{replay_id}/resume"): Operation(May.TEST),
    ("post", "/replays/{replay_id}/cancel"): Operation(May.TEST),
    ("post", "/replays/{replay_id}/turns/{session_id}/{number}/accept"): Operation(
        May.TEST, {"reason": "It is right."}
    ),
    ("get", "/sessions/{session_id}/variants"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/variants"): Operation(
        May.TEST, {"edits": [{"call": "found", "kind": "timeout"}]}
    ),
    ("get", "/sessions/{session_id}/variants/{variant_id}"): Operation(May.VIEW),
    ("patch", "/sessions/{session_id}/variants/{variant_id}"): Operation(
        May.TEST, {"title": "Late"}
    ),
    ("delete", "/sessions/{session_id}/variants/{variant_id}"): Operation(May.TEST),
    ("get", "/sessions/{session_id}/branches"): Operation(May.VIEW),
    ("post", "/sessions/{session_id}/branches"): Operation(May.CONVERSE, {"from_turn": 0}),
}


# --- Somebody of each kind, and something of each kind to reach for


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(slug="depot")
    tool = make_tool(agent, name="find_parcel")
    parcel = make_guideline(agent, uid="parcel", tools=[tool])
    make_relationship(parcel, make_guideline(agent, uid="brief"), uid="parcel")
    weigh, track = (make_tool(agent, name=name) for name in ("weigh", "track"))
    make_overlap(agent, weigh, track, uid="parcel")
    make_response(agent, uid="parcel")
    make_term(agent, uid="parcel")
    publish(agent, note="First.", by=None)
    return agent


@pytest.fixture
def session(agent: Agent) -> Session:
    session = make_session(agent)
    turn = make_turn(session, version=agent.published)
    Rematch.objects.create(turn=turn, guideline="parcel", condition="it is lost")
    ModelCall.objects.create(
        turn=turn,
        uid="m1",
        question="ComposeReply",
        model="small",
        prompt_version="1",
        request_key="k",
        started_at=timezone.now(),
    )
    ask_to_confirm(turn, "call1")
    Flag.objects.create(event=turn.events.get(kind="message"), comment="Look at this.")
    make_replay(turn)
    make_suite(session)
    return session


def make_suite(session: Session) -> None:
    """One scenario of the session with one expectation; both are named "parcel"."""
    suite = Suite.objects.create(agent=session.agent, name="Regression")
    scenario = keep_session(session, suite)
    Scenario.objects.filter(pk=scenario.pk).update(uid="parcel")
    start_run(suite)
    data = {"kind": "guideline", "guideline": "parcel", "matches": True}
    Expectation.objects.create(scenario=scenario, uid="parcel", data=data)


def make_replay(turn: Turn) -> None:
    """A replay of the turn, a change of it that was accepted, and a variant of its one call."""
    assert turn.version is not None
    replay = Replay.objects.create(agent=turn.session.agent, against="1", version=turn.version)
    ReplayedTurn.objects.create(replay=replay, session=turn.session, turn=turn, number=1)
    AcceptedChange.objects.create(turn=turn, key="k", difference={}, reason="Right.")
    now = timezone.now()
    ToolCall.objects.create(
        turn=turn, uid="found", tool="find_parcel", state="done", started_at=now, ended_at=now
    )
    Variant.objects.create(session=turn.session, title="Late")


@pytest.fixture
def people() -> dict[str, User]:
    """One for each role, and a stranger: signed in, without any."""
    make_user("admin")  # so that no admin below is the last one
    return {"stranger": make_user(), **{role.value: make_user(role.value) for role in Role}}


def has(name: str, rule: Rule) -> bool:
    """May the person of this name in `people` do it?"""
    if isinstance(rule, Open):
        return True
    return name == Role.ADMIN or name in ROLES[rule]


# --- Pages


def named_addresses() -> Iterator[str]:
    def walk(patterns: list[Any]) -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                if pattern.namespace is None:
                    yield from walk(pattern.url_patterns)
            elif isinstance(pattern, URLPattern):
                yield str(pattern.name)

    yield from walk(get_resolver().url_patterns)


def test_every_address_stands_in_the_table() -> None:
    assert sorted(PAGES) == sorted(named_addresses())


def address(name: str, session: Session, person: User) -> str:
    """The address with something that exists in each of its places."""
    token, _text = ApiToken.make(person.pk)
    price = make_price()
    rematch = Rematch.objects.values_list("pk", flat=True).get()
    places: dict[str, dict[str, Any]] = {
        "agent-version": {"number": 1},
        "agent-version-restore": {"number": 1},
        "tool": {"name": "find_parcel"},
        "tool-code": {"name": "find_parcel"},
        "agent-tool": {"name": "find_parcel"},
        "tool-template-version": {"number": 1},
        "tool-template-changes": {"before": 1, "after": 1},
        "session-turn": {"number": 1},
        "session-flags": {"offset": 1},
        "session-flag-state": {"flag": Flag.objects.values_list("pk", flat=True).get()},
        "session-confirmation": {"call": "call1"},
        "turn-guideline": {"number": 1, "uid": "parcel"},
        "turn-rematches": {"number": 1, "uid": "parcel"},
        "turn-rematch-stop": {"number": 1, "uid": "parcel", "tried": rematch},
        "turn-stop": {"number": 1},
        "turn-retry": {"number": 1},
        "turn-regenerate": {"number": 1},
        "turn-resend": {"number": 1},
        "turn-prompt": {"number": 1, "uid": "m1"},
        "turn-record": {"number": 1},
        "turn-markdown": {"number": 1},
        **replay_places(session),
        **suite_places(session),
        "coverage-turns": {"uid": "parcel"},
        "price": {"pk": price.pk},
        "price-delete": {"pk": price.pk},
        "token-revoke": {"pk": token.pk},
    }
    kwargs = dict(places.get(name, {}))
    if name.startswith(("relationship", "overlap", "response", "glossary", "term")):
        kwargs["slug"] = "depot"
    if name.removesuffix("-delete") in {*_PARTS, "coverage-turns"}:
        kwargs["uid"] = "parcel"
    if name.startswith(("agent", "coverage", "guideline", "sandbox")) and name not in {
        "agents",
        "agent-new",
    }:
        kwargs["slug"] = "depot"
    if name in {"guideline", "guideline-delete", "guideline-undelete"} or name.startswith(
        ("guideline-enabled", "guideline-position")
    ):
        kwargs["uid"] = "parcel"
    if (name.startswith(("session-", "turn-")) or name == "session") and name != "session-import":
        kwargs["pk"] = session.pk
    if name.startswith("connection") and name not in {"connections", "connection-new"}:
        # Nobody listens there, so that a test of the connection ends at once.
        connection = make_connection(base_url="http://127.0.0.1:9/v1")
        kwargs["pk"] = connection.pk
        if name.startswith("connection-check") and name != "connection-checks":
            kwargs["number"] = ModelCheck.objects.create(connection=connection).pk
    if name.startswith("tool-"):
        kwargs |= tool_places(name)
    if name in {"person", "person-password"}:
        kwargs["pk"] = make_user("qa").pk
    return reverse(name, kwargs=kwargs)


_OF_SCENARIO = ("-edit", "-position", "-quarantine", "-copy", "-delete", "")


_OF_RUN = tuple(name for name in PAGES if name == "run" or name.startswith("run-"))


def suite_places(session: Session) -> dict[str, dict[str, Any]]:
    suite = {"pk": Suite.objects.get(name="Regression").pk}
    scenario = {**suite, "uid": "parcel"}
    return {
        **{name: {"pk": SuiteRun.objects.get().pk} for name in _OF_RUN},
        "suite-runs": suite,
        **dict.fromkeys(("suite", "suite-export", "suite-delete", "scenario-new"), suite),
        **{f"scenario{act}": scenario for act in _OF_SCENARIO},
        "expectation-new": scenario,
        "expectation": {**scenario, "expectation": "parcel"},
        "expectation-delete": {**scenario, "expectation": "parcel"},
        "turn-expect": {"number": 1},
        "message-expect": {"pk": session.pk, "offset": 1},
    }


_OF_REPLAY = (
    *("replay", "replay-pause", "replay-resume", "replay-cancel", "replay-rest"),
    "replay-delete",
)


def replay_places(session: Session) -> dict[str, dict[str, Any]]:
    replay = Replay.objects.get()
    variant = {"pk": session.pk, "variant": session.variants.get().pk}
    turn = {"pk": replay.pk, "session": session.pk, "number": 1}
    accepted = AcceptedChange.objects.values_list("pk", flat=True).get()
    return {
        **{name: {"pk": replay.pk} for name in _OF_REPLAY},
        "replayed-turn": turn,
        "replayed-turn-accept": turn,
        "replayed-turn-undo": {**turn, "accepted": accepted},
        "variants": {"pk": session.pk},
        "variant": variant,
        "variant-delete": variant,
        "variant-edit-delete": {**variant, "call": "found"},
        "recorded-result": {"pk": session.pk, "number": 1, "uid": "found"},
    }


def tool_places(name: str) -> dict[str, Any]:
    """A template, an instance, a run or an example, as the address asks for."""
    tool = Tool.objects.get(name="find_parcel")
    match name.split("-")[1:]:
        case ["run", "form"]:
            return {"name": tool.name}
        case ["run", *_rest]:
            return {"name": tool.name, "pk": ToolRun.objects.create(tool=tool).pk}
        case ["example", *_rest]:
            example = ToolExample.objects.create(tool=tool, name=f"{tool.run_examples.count()}")
            return {"name": tool.name, "pk": example.pk}
        case ["instance", "new"] | ["template", _] | ["template"] if name != "tool-template-export":
            return {"pk": make_version().template_id}
        case ["instance", *_rest]:
            return {"pk": make_instance().pk}
    return {}


def ask(name: str, method: str, who: str, session: Session, people: dict[str, User]) -> Any:
    """The answer to this person; what it changed is taken back."""
    client = Client(raise_request_exception=False)
    client.force_login(people[who])
    place = transaction.savepoint()
    response = client.generic(method, address(name, session, people[who]))
    transaction.savepoint_rollback(place)
    return response


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_opens_to_whom_the_table_says_and_to_nobody_else(
    name: str, session: Session, people: dict[str, User]
) -> None:
    for method, rule in PAGES[name].items():
        for who in people:
            response = ask(name, method, who, session, people)
            said = (name, method, who, response.status_code)
            if has(who, rule):
                missing = {404} if (name, method) not in _NOTHING_THERE else set()
                assert response.status_code not in {401, 403, 405, 500} | missing, said
                assert not response.headers.get("Location", "").startswith("/sign-in/?"), said
            else:
                assert response.status_code == (404 if who == "stranger" else 403), said


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_method_that_the_table_leaves_out_is_refused(
    name: str, session: Session, people: dict[str, User]
) -> None:
    for method in METHODS - PAGES[name].keys():
        assert ask(name, method, "admin", session, people).status_code == 405, (name, method)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_nobody_is_let_in_without_signing_in(name: str, session: Session) -> None:
    person = make_user("qa")
    for method in METHODS:
        rule = PAGES[name].get(method)
        response = Client().generic(method, address(name, session, person))
        if rule is Open.TO_EVERYBODY:
            assert response.status_code in {200, 302, 422}
        elif any(each is not Open.TO_EVERYBODY for each in PAGES[name].values()):
            assert response.status_code == 302
            assert response.headers["Location"].startswith("/sign-in/?next=/")
        else:
            assert response.status_code == 405


# --- The API


def operations() -> set[tuple[str, str]]:
    from studio.api import api

    paths: dict[str, dict[str, Any]] = api.get_openapi_schema()["paths"]
    return {
        (method, path.removeprefix("/api/v1")) for path, each in paths.items() for method in each
    }


def test_every_operation_of_the_api_stands_in_the_table() -> None:
    assert sorted(API) == sorted(operations())


def encoded(body: Mapping[str, Any] | None) -> tuple[bytes, str]:
    """The body and its type: files as a form sends them, the rest as JSON."""
    if body and any(isinstance(value, BytesIO) for value in body.values()):
        for file in body.values():
            file.seek(0)
        return encode_multipart(BOUNDARY, body), MULTIPART_CONTENT
    return json.dumps(body).encode() if body is not None else b"", "application/json"


@pytest.mark.parametrize(("method", "path"), sorted(API))
def test_an_operation_is_for_whom_the_table_says_and_for_nobody_else(
    method: str, path: str, session: Session, people: dict[str, User]
) -> None:
    operation = API[method, path]
    name = "find_parcel" if "tools" in path or "mocks" in path else ""
    instance = make_instance()
    filled = path.format(
        slug="depot",
        uid="parcel",
        name=name,
        number=1,
        session_id=session.pk,
        call="call1",
        template_id=instance.template_id,
        instance_id=instance.pk,
        price_id=make_price().pk,
        rematch_id=Rematch.objects.values_list("pk", flat=True).get(),
        flag_id=Flag.objects.values_list("pk", flat=True).get(),
        replay_id=Replay.objects.values_list("pk", flat=True).get(),
        variant_id=session.variants.get().pk,
        suite_id=Suite.objects.values_list("pk", flat=True).get(),
        run_id=SuiteRun.objects.values_list("pk", flat=True).get(),
    )
    if path.endswith("/changes"):
        filled += "?from=1&to=1"
    if path == "/suites/import":
        filled += "?agent=depot"
    if path == "/tool-templates/export":
        filled += f"?template={instance.template_id}"
    client = Client(raise_request_exception=False)

    def status_for(**headers: str) -> int:
        place = transaction.savepoint()
        response = client.generic(
            method.upper(), f"/api/v1{filled}", *encoded(operation.body), headers=headers
        )
        transaction.savepoint_rollback(place)
        return int(response.status_code)

    assert status_for() == 401
    for who, person in people.items():
        _row, token = ApiToken.make(person.pk)
        status = status_for(authorization=f"Bearer {token}")
        if has(who, operation.may):
            assert status not in {401, 403, 404, 405, 500}, (who, status)
        else:
            assert status == (404 if who == "stranger" else 403), (who, status)
