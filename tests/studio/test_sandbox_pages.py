"""The sandbox: pages, sending, stopping, trying again, and what the next turns run on."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from studio.models import Customer, Event, ModelConnection, Session, Turn
from studio.operations.agents import publish
from studio.operations.turns import MAX_MESSAGE_CHARACTERS
from tests.studio.conversations import Recorded, make_bank, make_person

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def qa(client: Client) -> User:
    person = make_person("qa")
    client.force_login(person)
    return person


@pytest.fixture
def told() -> Recorded:
    return Recorded()


def page(client: Client, session: Session, query: str = "") -> str:
    response = client.get(reverse("session", args=[session.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def queries(client: Client, session: Session, query: str = "") -> int:
    with CaptureQueriesContext(
        connection,
    ) as seen:
        page(client, session, query)
    return len(seen)


# --- the page


def test_a_new_session_says_what_to_do(client: Client, qa: User, told: Recorded) -> None:
    html = page(client, told.session)
    assert "Write a message as the customer of <b>Harbor Bank</b>." in html
    assert "Ready." in html
    assert 'role="log"' in html
    assert 'role="status"' in html
    assert "0 turns" in html


def test_the_page_shows_chat_ledger_time_and_tokens(
    client: Client, qa: User, told: Recorded
) -> None:
    turn = told.turn("How much do I have?", prompt_tokens=1_100, completion_tokens=140)
    told.match(turn, 0, "matched", "The balance is asked for.")
    told.call(turn, "c1")
    told.answer(turn, "You have **€ 412.60**.")
    html = page(client, told.session)
    assert "How much do I have?" in html
    assert "<strong>€ 412.60</strong>" in html
    assert "The balance is asked for." in html
    assert "1 turn · 0.93 s · 1,240 tokens" in html
    assert "0.93 s · 1 guideline · 1 tool call" in html
    assert "offline model" not in html


def test_what_the_offline_model_wrote_is_labelled(client: Client, qa: User, told: Recorded) -> None:
    told.answer(told.turn(), "Hello.", model="offline")
    assert "offline model" in page(client, told.session)


def test_customers_words_are_text_and_keep_their_direction(
    client: Client, qa: User, told: Recorded
) -> None:
    told.turn(f"שלום **you** {SCRIPT}")
    html = page(client, told.session)
    assert (
        '<div class="text" dir="auto">שלום **you** &lt;script&gt;alert(1)&lt;/script&gt;</div>'
        in html
    )
    assert SCRIPT not in html


def test_an_agents_markup_is_no_markup(client: Client, qa: User, told: Recorded) -> None:
    told.answer(told.turn(), f"Look {SCRIPT}<img src=x onerror=alert(1)>")
    html = page(client, told.session)
    assert SCRIPT not in html
    assert "<img src=x" not in html


def test_fifty_kilobytes_of_json_as_a_message_show_as_text(
    client: Client, qa: User, told: Recorded
) -> None:
    told.turn('{"a": "<b>"}, ' * 4_000)
    html = page(client, told.session)
    beginning, whole = html.split('id="turn-1"')[1].split('<details class="fold whole"')
    assert 0 < beginning.count("&quot;a&quot;: &quot;&lt;b&gt;&quot;") < 200
    assert whole.count("&quot;a&quot;: &quot;&lt;b&gt;&quot;") == 4_000
    assert "the whole message, 56,000 characters" in whole


def test_a_message_being_written_shows_what_is_there(
    client: Client, qa: User, told: Recorded
) -> None:
    turn = told.turn(state="RUNNING")
    told.event(turn, "status", "system", phase="writing")
    told.event(turn, "message.part", text="Void words", restart=False)
    told.event(turn, "message.part", text="You have ", restart=True)
    last = told.event(turn, "message.part", text="**412**", restart=False)
    html = page(client, told.session)
    assert '<div class="text" dir="auto">You have **412**</div>' in html
    assert f'data-through="{last.offset}"' in html
    assert "Writing…" in html
    assert 'aria-busy="true"' in html
    assert "Void words" not in html


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"phase": "queued"}, "Waiting for a worker…"),
        ({"phase": "matching", "count": 42}, "Matching 42 guidelines…"),
        ({"phase": "matching", "count": 1}, "Matching 1 guideline…"),
        ({"phase": "inferring", "tools": ["get_balance"]}, "Considering get_balance…"),
        (
            {"phase": "running", "tools": ["get_balance", "list_payees"]},
            "Running get_balance, list_payees…",
        ),
        (
            {"phase": "running", "tools": ["slow"], "text": "Asking the archive"},
            "Asking the archive",
        ),
        ({"phase": "writing"}, "Writing…"),
    ],
)
def test_the_status_line_speaks(
    client: Client, qa: User, told: Recorded, data: dict[str, Any], words: str
) -> None:
    turn = told.turn(state="RUNNING")
    told.event(turn, "status", "system", **data)
    html = page(client, told.session)
    assert words in html
    assert reverse("turn-stop", args=[told.session.pk, turn.number]) in html


def test_a_page_without_scripts_looks_again_while_a_turn_runs(
    client: Client, qa: User, told: Recorded
) -> None:
    turn = told.turn(state="RUNNING")
    assert '<noscript><meta http-equiv="refresh"' in page(client, told.session)
    Turn.objects.filter(pk=turn.pk).update(state="FINISHED", finished_at=told.now)
    assert 'http-equiv="refresh"' not in page(client, told.session)


def test_a_failed_turn_has_its_reference_and_can_be_tried_again(
    client: Client, qa: User, told: Recorded
) -> None:
    turn = told.turn(state="FAILED", reference="a3f9c2", error="connection refused")
    html = page(client, told.session)
    assert "The agent could not answer." in html
    assert "a3f9c2" in html
    assert reverse("turn-retry", args=[told.session.pk, turn.number]) in html


def test_only_the_last_turn_can_be_tried_again(client: Client, qa: User, told: Recorded) -> None:
    turn = told.turn(state="FAILED", reference="a3f9c2")
    told.turn()
    assert reverse("turn-retry", args=[told.session.pk, turn.number]) not in page(
        client, told.session
    )


def test_messages_outside_of_turns_stand_where_they_were_said(
    client: Client, qa: User, told: Recorded
) -> None:
    told.turn("first words")
    told.event(None, "message", "customer", text="spoken in manual mode")
    told.turn("last words")
    html = page(client, told.session)
    places = [html.index(words) for words in ("first words", "spoken in manual mode", "last words")]
    assert places == sorted(places)


# --- choosing a turn


def test_the_address_names_the_turn_whose_ledger_is_shown(
    client: Client, qa: User, told: Recorded
) -> None:
    first = told.turn()
    told.match(first, 0, "matched", "In the first turn.")
    second = told.turn()
    told.match(second, 0, "matched", "In the second turn.")
    assert "In the second turn." in page(client, told.session)
    chosen = page(client, told.session, "?turn=1")
    assert "In the first turn." in chosen
    assert "In the second turn." not in chosen


def test_the_ledger_comes_alone_for_htmx(client: Client, qa: User, told: Recorded) -> None:
    told.match(told.turn(), 0, "matched", "Because of it.")
    address = reverse("session", args=[told.session.pk]) + "?turn=1"
    response = client.get(address, headers={**HTMX, "HX-Target": "ledger"})
    html = response.content.decode()
    assert html.strip().startswith('<div id="ledger"')
    assert "Because of it." in html
    assert "<html" not in html
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("turn", ["7", "0", "x", "-1", "9" * 30])
def test_a_turn_that_is_not_there_is_not_found_or_ignored(
    client: Client, qa: User, told: Recorded, turn: str
) -> None:
    told.turn()
    response = client.get(reverse("session", args=[told.session.pk]), {"turn": turn})
    assert response.status_code == (404 if turn in {"7", "0"} else 200)


def test_the_audit_of_a_turn_is_a_page_of_its_own(client: Client, qa: User, told: Recorded) -> None:
    turn = told.turn("What is left?")
    told.match(turn, 0, "matched", "Because of it.")
    arguments = [
        {
            "name": "a",
            "value": 1,
            "source": "customer",
            "evidence": "left",
            "verified": True,
            "offset": 1,
        }
    ]
    told.decide(turn, "AWAITING_CONFIRMATION", arguments=arguments)
    response = client.get(reverse("session-turn", args=[told.session.pk, 1]))
    html = response.content.decode()
    assert response.status_code == 200
    assert "What is left?" in html
    assert f'id="guideline-{told.uid()}"' in html
    assert 'href="#event-1"' in html
    assert 'id="event-1"' in html


def test_the_audit_page_says_what_the_writer_was_told(
    client: Client, qa: User, told: Recorded
) -> None:
    turn = told.turn()
    told.event(turn, "briefing", "system", guidelines=[], content={"ask_for": [SCRIPT]})
    html = client.get(reverse("session-turn", args=[told.session.pk, 1])).content.decode()
    assert "What the writer of the reply was told" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert SCRIPT not in html
    assert "What the writer" not in page(client, told.session)


def test_the_exact_prompt_of_a_model_call_shows_as_text(
    client: Client, qa: User, told: Recorded
) -> None:
    told.ask_model(told.turn(), "m1", 0, 100)
    address = reverse("turn-prompt", args=[told.session.pk, 1, "m1"])
    for headers, whole in ((HTMX, False), ({}, True)):
        html = client.get(address, headers=headers).content.decode()
        assert "Judge &lt;b&gt;these&lt;/b&gt;." in html
        assert "{&quot;judgements&quot;: []}" in html
        assert ("<html" in html) is whole
    absent = reverse("turn-prompt", args=[told.session.pk, 1, "m2"])
    assert client.get(absent).status_code == 404


# --- long sessions


def test_a_long_session_shows_its_last_turns_and_leads_to_earlier_ones(
    client: Client, qa: User, told: Recorded
) -> None:
    for number in range(1, 81):
        told.turn(f"message number {number}.")
    html = page(client, told.session)
    shown = [int(n) for n in re.findall(r"message number (\d+)\.", html)]
    assert shown == list(range(51, 81))
    assert "?before=51" in html
    address = reverse("session", args=[told.session.pk]) + "?before=51"
    earlier = client.get(address, headers={**HTMX, "HX-Target": "earlier"}).content.decode()
    assert [int(n) for n in re.findall(r"message number (\d+)\.", earlier)] == list(range(21, 51))
    assert "?before=21" in earlier
    first = client.get(reverse("session", args=[told.session.pk]) + "?before=21").content.decode()
    assert [int(n) for n in re.findall(r"message number (\d+)\.", first)] == list(range(1, 21))
    assert 'id="earlier"' not in first


def test_loose_messages_of_earlier_turns_come_with_them_and_only_once(
    client: Client, qa: User, told: Recorded
) -> None:
    for number in range(1, 61):
        told.turn()
        told.event(None, "message", "operator", text=f"aside number {number}.")
    late = page(client, told.session)
    early = page(client, told.session, "?before=31")
    seen = [int(n) for n in re.findall(r"aside number (\d+)\.", early + late)]
    assert seen == list(range(1, 61))


def test_the_number_of_queries_does_not_grow_with_the_session(
    client: Client, qa: User, told: Recorded
) -> None:
    def speak(turns: int) -> None:
        for _ in range(turns):
            turn = told.turn()
            told.match(turn, 0)
            told.call(turn, f"c{turn.number}")
            told.decide(turn, "NEEDS_TO_RUN", call=f"c{turn.number}")
            told.answer(turn, "Hello.")

    speak(3)
    page(client, told.session)
    few = queries(client, told.session)
    speak(70)
    assert queries(client, told.session) <= few
    assert queries(client, told.session, "?turn=2&before=60") <= few + 1
    assert few <= 30


# --- sending


def send(client: Client, session: Session, text: str, **headers: str) -> Any:
    return client.post(
        reverse("session-messages", args=[session.pk]), {"text": text}, headers=headers
    )


def test_sending_answers_at_once_with_the_bubble(client: Client, qa: User, told: Recorded) -> None:
    response = send(client, told.session, "What is my balance?", **HTMX)
    html = response.content.decode()
    assert response.status_code == 200
    assert "What is my balance?" in html
    assert 'id="turn-1"' in html
    assert "Waiting for a worker…" in html
    assert "<html" not in html
    assert Turn.objects.get(session=told.session).state == Turn.State.QUEUED


def test_sending_without_scripts_leads_back_to_the_page(
    client: Client, qa: User, told: Recorded
) -> None:
    response = send(client, told.session, "What is my balance?")
    assert response.status_code == 302
    assert response["Location"] == reverse("session", args=[told.session.pk]) + "#end"
    assert "What is my balance?" in page(client, told.session)


@pytest.mark.parametrize("text", ["", "  \n ", "x" * (MAX_MESSAGE_CHARACTERS + 1)])
def test_a_message_that_cannot_be_sent_is_kept_in_the_form(
    client: Client, qa: User, told: Recorded, text: str
) -> None:
    response = send(client, told.session, text, **HTMX)
    assert response.status_code == 422
    assert 'id="refused"' in response.content.decode()
    assert "<textarea" not in response.content.decode()  # the words stay where they are
    response = send(client, told.session, text)
    assert response.status_code == 422
    html = response.content.decode()
    assert text in html
    assert "<textarea" in html
    assert not Event.objects.exists()


def test_in_manual_mode_a_message_is_stored_and_nobody_answers(
    client: Client, qa: User, told: Recorded
) -> None:
    Session.objects.filter(pk=told.session.pk).update(mode=Session.Mode.MANUAL)
    assert send(client, told.session, "Is anybody there?", **HTMX).status_code == 200
    assert "Is anybody there?" in page(client, told.session)
    assert "Manual mode" in page(client, told.session)
    assert not Turn.objects.exists()


# --- stopping and trying again


def test_a_running_turn_is_asked_to_stop_once(client: Client, qa: User, told: Recorded) -> None:
    turn = told.turn(state="RUNNING")
    address = reverse("turn-stop", args=[told.session.pk, turn.number])
    for _ in range(2):
        response = client.post(address, headers=HTMX)
        assert response.status_code == 200
        assert "Stopping…" in response.content.decode()
    turn.refresh_from_db()
    assert turn.stop_reason == Turn.StopReason.PERSON


def test_stopping_what_is_over_changes_nothing(client: Client, qa: User, told: Recorded) -> None:
    turn = told.turn()
    address = reverse("turn-stop", args=[told.session.pk, turn.number])
    assert client.post(address).status_code == 302
    turn.refresh_from_db()
    assert (turn.state, turn.stop_reason) == ("FINISHED", "")


def test_a_failed_turn_is_tried_again_once(client: Client, qa: User, told: Recorded) -> None:
    turn = told.turn(state="FAILED", reference="a3f9c2")
    address = reverse("turn-retry", args=[told.session.pk, turn.number])
    for _ in range(2):
        response = client.post(address, headers=HTMX)
        assert response.status_code == 200
        assert "The agent could not answer." not in response.content.decode()
    turn.refresh_from_db()
    assert turn.state == Turn.State.QUEUED


def test_a_finished_turn_cannot_be_tried_again(client: Client, qa: User, told: Recorded) -> None:
    told.turn()
    address = reverse("turn-retry", args=[told.session.pk, 1])
    assert client.post(address, headers=HTMX).status_code == 422
    assert "Only the last turn" in client.post(address).content.decode()


# --- what the next turns run on


def test_version_customer_and_model_change_for_the_next_turns(
    client: Client, qa: User, told: Recorded
) -> None:
    version = publish(told.agent, note="first", by=None)
    maya = Customer.objects.create(name="Maya Okafor")
    model = ModelConnection.objects.create(name="large", model="large-1")
    chosen = {"version": str(version.number), "customer": maya.pk, "connection": model.pk}
    address = reverse("session-settings", args=[told.session.pk])
    response = client.post(address, chosen, headers=HTMX)
    assert response.status_code == 200
    assert "Saved" in response.content.decode()
    told.session.refresh_from_db()
    assert (told.session.version, told.session.customer, told.session.connection) == (
        version,
        maya,
        model,
    )
    assert client.post(address, {"version": "draft"}).status_code == 302
    told.session.refresh_from_db()
    assert (told.session.follows, told.session.version, told.session.customer) == (
        "draft",
        None,
        None,
    )


@pytest.mark.parametrize(
    "bad", [{"version": "published"}, {"version": "9"}, {"version": "draft", "customer": "x"}, {}]
)
@pytest.mark.parametrize("headers", [HTMX, {}])
def test_what_cannot_be_chosen_is_refused_and_nothing_changes(
    client: Client, qa: User, told: Recorded, bad: dict[str, str], headers: dict[str, str]
) -> None:
    response = client.post(
        reverse("session-settings", args=[told.session.pk]), bad, headers=headers
    )
    assert response.status_code == 422
    assert 'class="refused"' in response.content.decode()
    told.session.refresh_from_db()
    assert told.session.follows == Session.Follows.DRAFT


def test_a_session_of_an_older_version_still_offers_it(
    client: Client, qa: User, told: Recorded
) -> None:
    version = publish(told.agent, note="first", by=None)
    client.post(reverse("session-settings", args=[told.session.pk]), {"version": version.number})
    assert '<option value="1" selected>' in page(client, told.session)


# --- who may

PAGES = ["session", "session-stream"]
TURN_PAGES = ["session-turn"]
ACTS = ["session-messages", "session-settings"]
TURN_ACTS = ["turn-stop", "turn-retry"]


def addresses(told: Recorded, names: list[str]) -> list[str]:
    return [
        reverse(name, args=[told.session.pk, 1] if "turn" in name else [told.session.pk])
        for name in names
    ]


def test_pages_are_read_and_acts_are_posted(client: Client, qa: User, told: Recorded) -> None:
    told.turn()
    for address in addresses(told, PAGES + TURN_PAGES):
        assert client.post(address).status_code == 405
    for address in addresses(told, ACTS + TURN_ACTS):
        assert client.get(address).status_code == 405


def test_a_stranger_finds_nothing(client: Client, told: Recorded) -> None:
    told.turn()
    client.force_login(make_person())
    for address in addresses(told, PAGES + TURN_PAGES):
        assert client.get(address).status_code == 404
    for address in addresses(told, ACTS + TURN_ACTS):
        assert client.post(address, {"text": "hello"}).status_code == 404
    assert Event.objects.count() == 1


def test_whoever_is_not_signed_in_is_asked_to(client: Client, told: Recorded) -> None:
    told.turn()
    for address in addresses(told, PAGES + TURN_PAGES):
        assert client.get(address)["Location"].startswith("/sign-in/")
    for address in addresses(told, ACTS + TURN_ACTS):
        assert client.post(address, {"text": "hello"})["Location"].startswith("/sign-in/")
    assert Event.objects.count() == 1


@pytest.mark.parametrize("role", ["author", "developer", "qa", "publisher", "admin"])
def test_every_role_may_converse(client: Client, told: Recorded, role: str) -> None:
    client.force_login(make_person(role))
    assert send(client, told.session, "Hello", **HTMX).status_code == 200


def test_what_is_absent_is_not_found(client: Client, qa: User) -> None:
    session = Recorded(make_bank()).session
    assert client.get(reverse("session", args=[session.pk + 1])).status_code == 404
    assert client.get(reverse("session-turn", args=[session.pk, 1])).status_code == 404
    assert client.post(reverse("turn-stop", args=[session.pk, 1])).status_code == 404
