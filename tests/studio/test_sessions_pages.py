"""The list of sessions, and the start of a new one."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from studio.models import Customer, ModelConnection, Session
from studio.operations.agents import publish
from tests.studio.conversations import Recorded, make_bank, make_person

pytestmark = pytest.mark.django_db

LIST = "/sessions/"


@pytest.fixture
def qa(client: Client) -> User:
    person = make_person("qa")
    client.force_login(person)
    return person


def listed(client: Client, **query: str) -> str:
    response = client.get(LIST, query)
    assert response.status_code == 200
    return response.content.decode()


# --- the list


def test_sessions_are_listed_by_how_they_began_the_latest_first(client: Client, qa: User) -> None:
    for place, text in enumerate(("the older one", "the newer one")):
        told = Recorded()
        told.turn(text)
        then = timezone.now() + timedelta(minutes=place)
        Session.objects.filter(pk=told.session.pk).update(last_event_at=then)
    html = listed(client)
    assert html.index("the newer one") < html.index("the older one")
    assert html.count(">Finished</span>") == 2
    assert "2 sessions" in html


def test_without_sessions_the_list_leads_to_the_sandboxes(client: Client, qa: User) -> None:
    agent = make_bank()
    html = listed(client)
    assert "No conversations yet." in html
    assert reverse("sandbox", args=[agent.slug]) in html


def test_the_list_is_filtered_by_agent_customer_and_state(client: Client, qa: User) -> None:
    maya = Customer.objects.create(name="Maya", uid="maya")
    one, two, three = Recorded(), Recorded(), Recorded()
    one.turn("of one", state="RUNNING")
    two.turn("of two", state="FAILED")
    three.turn("of three")
    Session.objects.filter(pk=three.session.pk).update(customer=maya, mode="manual")

    def found(**query: str) -> set[str]:
        html = listed(client, **query)
        return {words for words in ("of one", "of two", "of three") if words in html}

    assert found() == {"of one", "of two", "of three"}
    assert found(agent=one.agent.slug) == {"of one"}
    assert found(customer="maya") == {"of three"}
    assert found(state="running") == {"of one"}
    assert found(state="failed") == {"of two"}
    assert found(state="manual") == {"of three"}
    assert found(agent=one.agent.slug, state="failed") == set()
    assert found(state="nonsense") == {"of one", "of two", "of three"}
    assert "No session fits these filters." in listed(client, agent="nobody")


def test_the_list_has_pages_and_keeps_its_filters(client: Client, qa: User) -> None:
    agent = make_bank()
    Session.objects.bulk_create(Session(agent=agent) for _ in range(120))
    html = listed(client, agent=agent.slug)
    assert "Page 1 of 3" in html
    assert f"?agent={agent.slug}&amp;page=2" in html
    assert "Page 3 of 3" in listed(client, page="99")
    assert "Page 1 of 3" in listed(client, page="x")


def test_the_number_of_queries_does_not_grow_with_the_sessions(client: Client, qa: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            listed(client)
        return len(seen)

    Recorded().turn()
    listed(client)
    few = queries()
    for _ in range(30):
        Recorded().turn()
    assert queries() == few


def test_words_of_customers_show_as_text_in_the_list(client: Client, qa: User) -> None:
    Recorded().turn("<script>alert(1)</script>")
    html = listed(client)
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_the_list_is_only_read(client: Client, qa: User) -> None:
    assert client.post(LIST).status_code == 405


def test_a_stranger_finds_no_list(client: Client) -> None:
    assert client.get(LIST)["Location"].startswith("/sign-in/")
    client.force_login(make_person())
    assert client.get(LIST).status_code == 404


# --- a new session


def test_a_session_begins_with_what_was_chosen(client: Client, qa: User) -> None:
    agent = make_bank()
    version = publish(agent, note="first", by=None)
    maya = Customer.objects.create(name="Maya")
    model = ModelConnection.objects.create(name="large", model="large-1")
    address = reverse("sandbox", args=[agent.slug])
    html = client.get(address).content.decode()
    assert "Draft" in html
    assert "Published (version 1)" in html
    assert "Nobody has talked to this agent yet." in html
    response = client.post(address, {"version": "1", "customer": maya.pk, "connection": model.pk})
    session = Session.objects.get()
    assert response["Location"] == reverse("session", args=[session.pk])
    assert (session.agent, session.version, session.customer) == (agent, version, maya)
    assert (session.connection, session.created_by) == (model, qa)


@pytest.mark.parametrize("version", ["draft", "published"])
def test_a_session_follows_the_draft_or_what_is_published(
    client: Client, qa: User, version: str
) -> None:
    agent = make_bank()
    publish(agent, note="first", by=None)
    client.post(reverse("sandbox", args=[agent.slug]), {"version": version})
    session = Session.objects.get()
    assert (session.follows, session.version) == (version, None)


@pytest.mark.parametrize(
    "chosen",
    [{}, {"version": "published"}, {"version": "7"}, {"version": "draft", "customer": "99"}],
)
def test_what_cannot_be_chosen_begins_nothing(
    client: Client, qa: User, chosen: dict[str, str]
) -> None:
    response = client.post(reverse("sandbox", args=[make_bank().slug]), chosen)
    assert response.status_code == 422
    assert 'class="errorlist"' in response.content.decode()
    assert not Session.objects.exists()


def test_recent_sessions_of_the_agent_are_at_hand(client: Client, qa: User) -> None:
    told, other = Recorded(), Recorded()
    told.turn("of this agent")
    other.turn("of another agent")
    html = client.get(reverse("sandbox", args=[told.agent.slug])).content.decode()
    assert "of this agent" in html
    assert "of another agent" not in html


def test_an_unknown_agent_has_no_sandbox(client: Client, qa: User) -> None:
    assert client.get(reverse("sandbox", args=["nobody"])).status_code == 404
    assert client.post(reverse("sandbox", args=["nobody"])).status_code == 404


def test_a_stranger_begins_no_session(client: Client) -> None:
    address = reverse("sandbox", args=[make_bank().slug])
    assert client.get(address)["Location"].startswith("/sign-in/")
    client.force_login(make_person())
    assert client.get(address).status_code == 404
    assert client.post(address, {"version": "draft"}).status_code == 404
    assert client.put(address).status_code in {404, 405}
    assert not Session.objects.exists()
