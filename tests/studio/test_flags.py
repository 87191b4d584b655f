"""Flags: remarks on messages, beside the conversation and no part of it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.models import Event, Flag
from studio.operations.branches import branch_from
from studio.operations.flags import FlagRefusedError, close_flag, reopen_flag, set_flag
from studio.operations.sessions import open_session
from studio.operations.turns import send_message
from studio.views.sandbox import fragments
from tests.studio.conversations import Recorded, make_bank, make_person

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def qa(client: Client) -> User:
    person = make_person("qa")
    client.force_login(person)
    return person


@pytest.fixture
def told() -> Recorded:
    """Two messages: the customer's at offset 1, the agent's at offset 2."""
    told = Recorded()
    told.answer(told.turn("What is my balance?"), "It is £120.")
    return told


def address(told: Recorded, offset: int = 2) -> str:
    return f"/sessions/{told.session.pk}/events/{offset}/flags/"


def flagged(told: Recorded, comment: str = "Wrong sum.", offset: int = 2) -> Flag:
    return set_flag(told.session.events.get(offset=offset), comment, by=make_person("qa"))


def page(client: Client, told: Recorded, **query: Any) -> str:
    return client.get(f"/sessions/{told.session.pk}/", query).content.decode()


# --- operations


def test_a_flag_says_who_said_what_of_which_message(told: Recorded) -> None:
    ann, ben = make_person("qa"), make_person("author")
    event = told.session.events.get(offset=2)
    one = set_flag(event, "  Wrong sum. ", by=ann)
    assert (one.comment, one.created_by, one.closed_at) == ("Wrong sum.", ann.username, None)
    two = set_flag(event, "And impolite.", by=ben)  # two people at once do not disturb each other
    assert list(event.flags.all()) == [one, two]
    assert close_flag(one, by=ben)
    assert (one.closed_by, one.closed_at is not None) == (ben.username, True)
    assert not close_flag(Flag.objects.get(pk=one.pk), by=ann)  # the first to close it stays named
    assert Flag.objects.get(pk=one.pk).closed_by == ben.username
    assert reopen_flag(one)
    assert (one.closed_by, one.closed_at) == ("", None)
    assert not reopen_flag(one)


@pytest.mark.parametrize("comment", ["", " \n ", "x" * 2001, "a\x00b"])
def test_a_comment_that_cannot_be_kept_is_refused(told: Recorded, comment: str) -> None:
    with pytest.raises(FlagRefusedError):
        set_flag(told.session.events.get(offset=2), comment, by=make_person("qa"))
    assert not Flag.objects.exists()


# --- in the chat


def test_open_flags_are_seen_in_the_chat_and_closed_ones_are_not(
    client: Client, qa: User, told: Recorded
) -> None:
    assert 'data-mark="⚑"' not in page(client, told)
    flag = flagged(told, "Wrong <sum>.")
    html = page(client, told)
    assert "Wrong &lt;sum&gt;." in html
    assert f"<bdi>{flag.created_by}</bdi>" in html
    assert html.index('id="event-2"') < html.index("Wrong &lt;sum&gt;.")
    assert 'href="' + address(told, 1) in html
    assert (
        "Wrong &lt;sum&gt;." in client.get(f"/sessions/{told.session.pk}/turns/1/").content.decode()
    )
    close_flag(flag, by=qa)
    assert "Wrong &lt;sum&gt;." not in page(client, told)


def test_a_flag_set_by_one_is_seen_by_others_with_the_next_change(told: Recorded) -> None:
    flagged(told, "Look at this.")
    html = fragments(told.session.pk, [1], [], may_converse=True)
    assert "Look at this." in html


def test_a_branch_shows_the_flags_of_what_it_took_over(
    client: Client, qa: User, told: Recorded
) -> None:
    flag = flagged(told, "Look at this.")
    branch = branch_from(told.session, 1)
    html = client.get(f"/sessions/{branch.pk}/").content.decode()
    assert "Look at this." in html
    client.post(f"/sessions/{branch.pk}/flags/{flag.pk}/", {"state": "closed"})
    assert "Look at this." not in page(client, told)


def test_a_message_outside_of_turns_is_flagged_too(client: Client, qa: User) -> None:
    session = open_session(agent=make_bank(), mode="manual")
    send_message(session, text="May I help?", source="operator")
    event = Event.objects.get(kind="message")
    path = f"/sessions/{session.pk}/events/{event.offset}/flags/"
    response = client.post(path, {"comment": "Too short."})
    assert response["Location"] == f"/sessions/{session.pk}/#event-{event.offset}"
    assert "Too short." in client.get(f"/sessions/{session.pk}/").content.decode()


def test_a_message_is_flagged_only_once_its_turn_is_over(client: Client, qa: User) -> None:
    told = Recorded()
    told.turn(state="RUNNING")
    # What arrives meanwhile would take the place of the form with the comment in it.
    assert address(told, 1) not in page(client, told)


def test_whoever_only_looks_sees_flags_without_buttons(client: Client, told: Recorded) -> None:
    flag = flagged(told)
    html = fragments(told.session.pk, [1], [], may_converse=False)
    assert "Wrong sum." in html
    assert f"/flags/{flag.pk}/" not in html
    assert address(told) not in html


def test_flags_cost_the_chat_one_query(client: Client, qa: User, told: Recorded) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            page(client, told)
        return len(seen)

    page(client, told)
    few = queries()
    for _ in range(10):
        flagged(told)
        flagged(told, offset=1)
    assert queries() == few


# --- the form


def test_a_message_is_flagged_without_scripts(client: Client, qa: User, told: Recorded) -> None:
    html = client.get(address(told)).content.decode()
    assert "It is £120." in html
    assert 'name="comment"' in html
    response = client.post(address(told), {"comment": "Wrong sum."})
    assert response["Location"] == f"/sessions/{told.session.pk}/?turn=1#event-2"
    flag = Flag.objects.get()
    assert (flag.comment, flag.created_by, flag.event.offset) == ("Wrong sum.", qa.username, 2)
    response = client.post(f"/sessions/{told.session.pk}/flags/{flag.pk}/", {"state": "closed"})
    assert response["Location"] == f"/sessions/{told.session.pk}/?turn=1#event-2"
    flag.refresh_from_db()
    assert flag.closed_by == qa.username
    html = client.get(address(told)).content.decode()
    assert "closed by" in html
    client.post(f"/sessions/{told.session.pk}/flags/{flag.pk}/", {"state": "open"})
    flag.refresh_from_db()
    assert flag.closed_at is None


def test_in_the_chat_the_form_and_the_flag_take_their_place_below_the_message(
    client: Client, qa: User, told: Recorded
) -> None:
    html = client.get(address(told), headers=HTMX).content.decode()
    assert html.startswith('<div class="flags" id="flags-2"')
    assert 'name="comment"' in html
    assert (
        'name="comment"'
        not in client.get(address(told) + "?form=no", headers=HTMX).content.decode()
    )
    html = client.post(address(told), {"comment": "Wrong sum."}, headers=HTMX).content.decode()
    assert html.startswith('<div class="flags" id="flags-2"')
    assert "Wrong sum." in html
    assert 'name="comment"' not in html
    flag = Flag.objects.get()
    path = f"/sessions/{told.session.pk}/flags/{flag.pk}/"
    html = client.post(path, {"state": "closed"}, headers=HTMX).content.decode()
    assert html == '<div class="flags" id="flags-2"></div>'
    assert client.post(path, {"state": "closed"}, headers=HTMX).status_code == 200  # twice is once


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_an_empty_comment_is_asked_for_again(
    client: Client, qa: User, told: Recorded, headers: dict[str, str]
) -> None:
    response = client.post(address(told), {"comment": " "}, headers=headers)
    assert response.status_code == 422
    assert "Say in a few words what is to be looked at." in response.content.decode()
    response = client.post(address(told), {"comment": "long " * 500}, headers=headers)
    assert response.status_code == 422
    assert "long long" in response.content.decode()  # nothing that was written is lost
    assert not Flag.objects.exists()


def test_what_is_no_message_cannot_be_flagged(client: Client, qa: User, told: Recorded) -> None:
    told.event(None, "mode", "operator", mode="manual")
    for offset in (3, 99, 99999999999999999999):
        assert client.get(address(told, offset)).status_code == 404
        assert client.post(address(told, offset), {"comment": "x"}).status_code == 404


def test_a_flag_of_another_conversation_is_not_there(
    client: Client, qa: User, told: Recorded
) -> None:
    flag = flagged(told)
    other = Recorded()
    assert client.post(f"/sessions/{other.session.pk}/flags/{flag.pk}/").status_code == 404
    assert client.post(f"/sessions/{told.session.pk}/flags/{10**20}/").status_code == 404
    assert client.put(f"/sessions/{told.session.pk}/flags/{flag.pk}/").status_code == 405


def test_a_stranger_finds_no_flags(client: Client, told: Recorded) -> None:
    flag = flagged(told)
    client.force_login(make_person())
    assert client.get(address(told)).status_code == 404
    assert client.post(address(told), {"comment": "x"}).status_code == 404
    assert client.post(f"/sessions/{told.session.pk}/flags/{flag.pk}/").status_code == 404
