"""Manual mode: handing over and back as events, a person who answers, and nobody who runs meanwhile."""

import asyncio
import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from engine.kit import Models
from engine.testing import Expected, ScriptedModel, matches, replies
from studio.audit import audit
from studio.ledger_text import ledger_text
from studio.models import Event, Session, Turn
from studio.operations import running, turns
from studio.operations.sessions import SessionError, change_mode, change_session
from studio.operations.turns import send_message
from tests.studio.conversations import Recorded
from tests.studio.factories import make_guideline, make_session, make_turn, make_user

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def qa(client: Client) -> User:
    person = make_user("qa")
    client.force_login(person)
    return person


@pytest.fixture
def session() -> Session:
    return make_session()


def page(client: Client, session: Session) -> str:
    response = client.get(reverse("session", args=[session.pk]))
    assert response.status_code == 200
    return response.content.decode()


def chat(client: Client, session: Session) -> str:
    html = page(client, session).split('id="log"')[1].split('id="end"')[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def hand(client: Client, session: Session, mode: str, **headers: str) -> Any:
    address = reverse("session-mode", args=[session.pk])
    return client.post(address, {"mode": mode}, headers=headers)


def say(client: Client, session: Session, text: str, source: str) -> Any:
    address = reverse("session-messages", args=[session.pk])
    return client.post(address, {"text": text, "source": source}, headers=HTMX)


def modes(session: Session) -> list[tuple[str, str]]:
    events = session.events.filter(kind="mode").order_by("offset")
    return [(event.data["mode"], event.source) for event in events]


# --- handing over and back


def test_handing_over_is_an_event_that_the_chat_shows(
    client: Client, qa: User, session: Session
) -> None:
    assert "Hand over" in page(client, session)
    response = hand(client, session, "manual", **HTMX)
    assert response.status_code == 200
    fragment = response.content.decode()
    assert "handed over to a person" in fragment
    assert "Hand back" in fragment
    assert "Manual mode: a person answers until you hand back." in fragment
    session.refresh_from_db()
    assert session.mode == "manual"
    assert modes(session) == [("manual", "operator")]
    assert "handed over to a person" in chat(client, session)


def test_handing_back_is_an_event_too(client: Client, qa: User, session: Session) -> None:
    hand(client, session, "manual")
    assert hand(client, session, "auto").status_code == 302
    assert "handed back to the agent" in chat(client, session)
    assert modes(session) == [("manual", "operator"), ("auto", "operator")]
    assert "Hand over" in page(client, session)


def test_two_tabs_hand_over_and_it_happens_once(client: Client, qa: User, session: Session) -> None:
    for _ in range(2):
        assert hand(client, session, "manual", **HTMX).status_code == 200
    assert modes(session) == [("manual", "operator")]


def test_a_tool_that_hands_over_is_named(client: Client, qa: User) -> None:
    told = Recorded()
    turn = told.turn("I want a person")
    told.answer(turn, "A colleague takes over.")
    told.event(turn, "mode", "system", mode="manual", tool="transfer_to_person")
    read = chat(client, told.session)
    assert "handed over to a person by transfer_to_person" in read
    assert read.index("A colleague takes over.") < read.index("handed over to a person")
    assert "Handed over to a person by transfer_to_person." in ledger_text(audit(turn))


def test_handing_over_stops_what_runs_and_what_waits(session: Session) -> None:
    going = make_turn(session, state="RUNNING")
    waiting = make_turn(session, state="QUEUED")
    change_mode(session, "manual")
    going.refresh_from_db()
    waiting.refresh_from_db()
    assert going.stop_reason == Turn.StopReason.PERSON
    assert waiting.state == Turn.State.STOPPED
    offsets = list(session.events.order_by("offset").values_list("offset", flat=True))
    assert offsets == list(range(1, len(offsets) + 1))


def test_what_is_no_mode_is_refused(client: Client, qa: User, session: Session) -> None:
    for headers in (HTMX, {}):
        response = hand(client, session, "robot", **headers)
        assert response.status_code == 422
        assert "“auto” or “manual”" in response.content.decode()
    with pytest.raises(SessionError):
        change_session(session, mode="robot")
    assert modes(session) == []


def test_only_who_may_converse_hands_over(client: Client, session: Session) -> None:
    client.force_login(make_user())
    assert hand(client, session, "manual").status_code == 404
    client.logout()
    assert hand(client, session, "manual")["Location"].startswith("/sign-in/")
    assert modes(session) == []


def test_handing_over_is_posted(client: Client, qa: User, session: Session) -> None:
    assert client.get(reverse("session-mode", args=[session.pk])).status_code == 405


# --- meanwhile


@pytest.mark.parametrize(
    ("source", "shown"),
    [("operator", "Operator"), ("agent", "Agent, written by a person"), ("customer", "Customer:")],
)
def test_a_person_writes_as_whom_they_choose_and_nobody_answers(
    client: Client, qa: User, session: Session, source: str, shown: str
) -> None:
    change_mode(session, "manual")
    html = page(client, session)
    assert f'name="source" value="{source}"' in html
    assert say(client, session, "Good morning.", source).status_code == 200
    event = session.events.get(kind="message")
    assert (event.source, event.data["model"], event.turn) == (source, "", None)
    assert f"{shown} Good morning." in chat(client, session)
    assert not Turn.objects.exists()


def test_in_automatic_mode_one_writes_as_the_customer(
    client: Client, qa: User, session: Session
) -> None:
    assert 'name="source"' not in page(client, session)
    say(client, session, "Hello", "somebody else")
    assert session.events.get(kind="message").source == "customer"
    assert Turn.objects.count() == 1


def test_a_turn_is_not_tried_again_while_a_person_answers(
    client: Client, qa: User, session: Session
) -> None:
    turn = make_turn(session, state="FAILED")
    again = reverse("turn-retry", args=[session.pk, turn.number])
    assert again in page(client, session)
    change_mode(session, "manual")
    assert again not in page(client, session)
    refused = client.post(again, headers=HTMX)
    assert refused.status_code == 422
    assert "manual mode" in refused.content.decode()
    turn.refresh_from_db()
    assert turn.state == Turn.State.FAILED


# --- and back


def play(turn: Turn, monkeypatch: pytest.MonkeyPatch, *expected: Expected) -> ScriptedModel:
    model = ScriptedModel(*expected)
    monkeypatch.setattr(running, "models_for", lambda _session: Models.same(model))
    turns.run_turn(turn.pk)
    model.assert_used_up()
    return model


@pytest.mark.django_db(transaction=True)
def test_handing_back_answers_a_customer_who_waits(
    client: Client, qa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_session(make_guideline(condition="the customer asks for the time").agent)
    change_mode(session, "manual")
    say(client, session, "I look into it.", "operator")
    say(client, session, "What time is it?", "customer")
    response = hand(client, session, "auto", **HTMX)
    assert 'id="turn-1"' in response.content.decode()
    turn = Turn.objects.get()
    assert Event.objects.get(kind="mode", data__mode="auto").turn == turn
    model = play(turn, monkeypatch, matches("G1"), replies("It is nine.", "G1"))
    asked = model.requests[0].messages[-1].content
    assert "What time is it?" in asked
    read = chat(client, session)
    told = [
        read.index(words)
        for words in ("What time is it?", "handed back to the agent", "It is nine.")
    ]
    assert told == sorted(told)


def test_handing_back_asks_for_no_turn_where_a_person_said_the_last_word(
    session: Session,
) -> None:
    change_mode(session, "manual")
    send_message(session, text="What time is it?")
    send_message(session, text="Nine.", source="operator")
    change_mode(session, "auto")
    assert not Turn.objects.exists()
    assert send_message(session, text="Thanks") is not None


# --- the stream


@pytest.mark.django_db(transaction=True)
async def test_the_stream_brings_handing_over_with_what_changes_with_it() -> None:
    from asgiref.sync import sync_to_async

    from studio import live

    session = await sync_to_async(make_session)()
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(make_user)("qa"))
    await sync_to_async(change_mode)(session, "manual")
    address = reverse("session-stream", args=[session.pk])
    response: Any = await client.get(address, {"after": 0})
    html = ""
    async with asyncio.timeout(5):
        chunks = aiter(response)
        async for chunk in chunks:
            found = re.search(r"event: changed\ndata: (.*)\n", chunk.decode())
            if found:
                html = json.loads(found[1])["html"]
                break
    await response._iterator.aclose()
    assert "handed over to a person" in html
    assert 'id="mode"' in html
    assert "Hand back" in html
    assert 'value="operator"' in html
    while live._watch.looking:  # noqa: ASYNC110 - the thread announces its end to nobody
        await asyncio.sleep(0.02)
