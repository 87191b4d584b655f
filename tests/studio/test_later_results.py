"""What a tool brings after its turn is over has its place in the chat, and in what the agent remembers."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from studio.operations.agents import snapshot
from studio.operations.redaction import Rules
from studio.operations.situations import beginning
from studio.views.conversation import page_of
from studio.views.exported_page import exported_html
from tests.studio.conversations import Recorded
from tests.studio.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def qa(client: Client) -> User:
    person = make_user("qa")
    client.force_login(person)
    return person


@pytest.fixture
def recorded() -> Recorded:
    """The turn is over, and what it asked for came after it."""
    recorded = Recorded()
    turn = recorded.turn("Look into parcel P-7")
    recorded.event(turn, "tool.started", source="system", call="c1", tool="research", arguments={})
    recorded.event(turn, "message", text="I will look into it.")
    recorded.event(
        None,
        "tool.finished",
        source="system",
        call="c1",
        tool="research",
        arguments={},
        data={"found": "<b>in Lyon</b>"},
        metadata={},
        error=None,
    )
    return recorded


def test_it_stands_in_the_chat_with_the_turn_that_asked_for_it(
    client: Client, recorded: Recorded
) -> None:
    shown = client.get(reverse("session", args=[recorded.session.pk])).content.decode()

    assert "Arrived later" in shown
    assert "&lt;b&gt;in Lyon&lt;/b&gt;" in shown
    assert "asked for in turn 1" in shown
    turn, later = page_of(recorded.session).lines
    assert turn.offset < later.offset


def test_a_failure_is_said_in_words(client: Client, recorded: Recorded) -> None:
    recorded.event(
        None,
        "tool.finished",
        source="system",
        call="gone",
        tool="research",
        arguments={},
        data=None,
        metadata={},
        error={"kind": "timeout", "public": "it took too long", "detail": ""},
    )

    shown = client.get(reverse("session", args=[recorded.session.pk])).content.decode()

    assert "failed later" in shown
    assert "it took too long" in shown


def test_the_agent_remembers_it_in_its_next_turn(recorded: Recorded) -> None:
    turn = recorded.turn("And?")
    turn.version = snapshot(recorded.agent)

    state = beginning(turn)

    assert "tool.finished" in [entry.event.kind for entry in state.history]


def test_an_export_tells_of_it(recorded: Recorded) -> None:
    page = exported_html(recorded.session, by="qa", rules=Rules())

    assert "Arrived later" in page
    assert "&lt;b&gt;in Lyon&lt;/b&gt;" in page
