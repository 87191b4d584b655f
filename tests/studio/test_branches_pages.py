"""The sandbox with branches: the rail, and the buttons and forms that begin one."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from studio.models import Session, Turn
from studio.operations.branches import branch_from
from studio.operations.tools import save_tool
from studio.views.branch_rail import branch_rail, letter_of
from tests.studio.conversations import Recorded
from tests.studio.factories import make_user

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def qa(client: Client) -> User:
    person = make_user("qa")
    client.force_login(person)
    return person


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    for text in ("one", "two"):
        turn = recorded.turn(text)
        recorded.event(turn, "message", text=f"re {text}")
    return recorded


def page(client: Client, session: Session, query: str = "") -> str:
    response = client.get(reverse("session", args=[session.pk]) + query)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", unescape(response.content.decode()))


def press(client: Client, name: str, session: Session, *args: Any, **data: str) -> Any:
    return client.post(reverse(name, args=[session.pk, *args]), data)


def newest() -> Session:
    return Session.objects.order_by("-pk")[0]


def test_a_button_begins_a_branch_after_a_turn_and_goes_there(
    client: Client, recorded: Recorded
) -> None:
    response = press(client, "session-branches", recorded.session, from_turn="1")

    branch = newest()
    assert response.headers["location"] == reverse("session", args=[branch.pk]) + "#end"
    shown = page(client, branch)
    assert "re one" in shown
    assert "re two" not in shown


def test_a_script_is_told_where_to_go(client: Client, recorded: Recorded) -> None:
    address = reverse("turn-regenerate", args=[recorded.session.pk, 2])

    response = client.post(address, headers=HTMX)

    assert response.headers["HX-Redirect"] == reverse("session", args=[newest().pk]) + "#end"
    assert Turn.objects.get(session=newest()).number == 2


def test_the_message_to_edit_stands_in_the_field_and_goes_to_a_branch(
    client: Client, recorded: Recorded
) -> None:
    shown = page(client, recorded.session, "?edit=2")
    assert "autofocus>two</textarea>" in shown
    assert reverse("turn-resend", args=[recorded.session.pk, 2]) in shown

    press(client, "turn-resend", recorded.session, 2, text="deux")

    branch = newest()
    said = branch.events.filter(kind="message").values_list("data", flat=True)
    assert [data["text"] for data in said] == ["deux"]
    assert "deux" in page(client, branch)


def test_words_that_cannot_be_sent_are_kept_with_the_reason(
    client: Client, recorded: Recorded
) -> None:
    response = press(client, "turn-resend", recorded.session, 2, text="x" * 40_000)

    assert response.status_code == 422
    shown = response.content.decode()
    assert "at most" in shown
    assert "x" * 40_000 in shown
    assert reverse("turn-resend", args=[recorded.session.pk, 2]) in shown


@pytest.mark.parametrize("turn", ["", "two", "-1", "9", "99999999999"])
def test_a_turn_that_is_not_there_is_refused(client: Client, recorded: Recorded, turn: str) -> None:
    response = press(client, "session-branches", recorded.session, from_turn=turn)

    assert response.status_code == 422
    assert Session.objects.count() == 1


def test_the_rail_names_every_branch_under_the_one_it_goes_on_from(
    client: Client, recorded: Recorded
) -> None:
    assert 'id="branches"' not in page(client, recorded.session)
    first = branch_from(recorded.session, 1)
    press(client, "turn-resend", recorded.session, 1, text="<b>uno</b>")
    anew = newest()
    recorded.session.refresh_from_db()

    rail = branch_rail(first)

    assert [(line.letter, line.after, line.current) for line in rail] == [
        ("A", None, False),
        ("B", 1, True),
        ("C", 0, False),
    ]
    assert [line.said for line in rail] == ["one", "", "<b>uno</b>"]
    shown = client.get(reverse("session", args=[anew.pk])).content.decode()
    assert "&lt;b&gt;uno&lt;/b&gt;" in shown
    assert shown.count('aria-current="page"') == 1


def test_the_rail_takes_the_same_queries_however_many_branches_there_are(
    client: Client, recorded: Recorded
) -> None:
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            branch_rail(recorded.session)
        return len(queries)

    branch_from(recorded.session, 1)
    few = cost()
    for _ in range(5):
        branch_from(recorded.session, 2)
    assert cost() == few


def test_branches_after_the_last_letter_have_two() -> None:
    assert [letter_of(place) for place in (0, 25, 26, 27, 52)] == ["A", "Z", "AA", "AB", "BA"]


def test_who_only_looks_on_has_no_buttons(client: Client, recorded: Recorded) -> None:
    client.force_login(make_user("author"))
    assert "branch from here" in page(client, recorded.session)
    other = make_user("admin")
    other.groups.clear()
    client.force_login(other)
    assert client.get(reverse("session", args=[recorded.session.pk])).status_code == 404


def test_a_turn_that_changed_something_warns_before_it_is_answered_again(
    client: Client, recorded: Recorded
) -> None:
    tool = recorded.agent.tools.get()
    tool.consequential = True
    save_tool(tool)
    turn = recorded.turn("three")
    turn.calls.create(uid="c1", tool=tool.name, state="done", iteration=1, started_at=recorded.now)

    shown = page(client, recorded.session)

    assert shown.count("changes something. Answered again") == 1
