"""The list of sessions, and the start of a new one."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from studio.models import Customer, Flag, ModelConnection, Session
from studio.operations.agents import publish
from studio.operations.branches import branch_from
from studio.views.conversation import TURNS_AT_ONCE
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


def found(client: Client, **query: str) -> set[str]:
    """Which of the sessions "of one", "of two", "of three" are listed."""
    html = listed(client, **query)
    return {words for words in ("of one", "of two", "of three") if f">{words}</span>" in html}


def test_the_list_is_filtered_by_what_the_session_is(client: Client, qa: User) -> None:
    maya = Customer.objects.create(name="Maya", uid="maya")
    one, two, three = Recorded(), Recorded(), Recorded()
    one.turn("of one", state="RUNNING")
    two.turn("of two")
    three.turn("of three")
    version = publish(three.agent, note="first", by=None)
    Session.objects.filter(pk=three.session.pk).update(
        customer=maya, mode="manual", created_by=qa, follows="version", version=version
    )
    Session.objects.filter(pk=two.session.pk).update(
        last_event_at=datetime(2024, 5, 4, 12, tzinfo=UTC)
    )
    assert found(client) == {"of one", "of two", "of three"}
    assert found(client, agent=one.agent.slug) == {"of one"}
    assert found(client, customer="maya") == {"of three"}
    assert found(client, running="yes") == {"of one"}
    assert found(client, mode="manual") == {"of three"}
    assert found(client, mode="auto") == {"of one", "of two"}
    assert found(client, by=qa.username) == {"of three"}
    assert found(client, version="draft") == {"of one", "of two"}
    assert found(client, since="2024-05-05") == {"of one", "of three"}
    assert found(client, until="2024-05-04") == {"of two"}
    assert found(client, since="2024-05-04", until="2024-05-04") == {"of two"}
    assert found(client, until="2024-05-03") == set()
    assert found(client, agent=one.agent.slug, mode="manual") == set()


def test_the_list_is_filtered_by_what_was_decided_in_one_and_the_same_turn(
    client: Client, qa: User
) -> None:
    bank = make_bank("the customer asks for the balance", "the customer is angry")
    one, two, three = Recorded(bank), Recorded(bank), Recorded(bank)
    turn = one.turn("of one")
    one.match(turn, 0, "matched")
    one.match(turn, 1, "matched")
    one.match(turn, 1, "dropped")  # by a relationship, in the end
    one.decide(turn, "CANNOT_RUN")
    turn = two.turn("of two")
    two.match(turn, 1, "matched")
    two.decide(turn, "NEEDS_TO_RUN")
    two.call(turn, "c1", "done")
    turn = two.turn("and later")
    two.match(turn, 0, "matched")
    two.decide(turn, "DATA_ALREADY_IN_CONTEXT")
    turn = three.turn("of three", state="FAILED")
    three.decide(turn, "NEEDS_TO_RUN", tool="send_money")
    three.call(turn, "c1", "failed", tool="send_money")
    balance, angry = one.uid(0), one.uid(1)

    assert found(client, guideline=balance) == {"of one", "of two"}
    assert found(client, guideline=angry) == {"of two"}
    assert found(client, guideline="nobody") == set()
    assert found(client, tool="get_balance") == {"of one", "of two"}
    assert found(client, tool="get_balance", decision="cannot_run") == {"of one"}
    assert found(client, tool="get_balance", decision="ran") == {"of two"}
    assert found(client, tool="send_money", decision="ran") == set()
    assert found(client, decision="known") == {"of two"}
    assert found(client, decision="awaiting") == found(client, decision="not_needed") == set()
    assert found(client, guideline=angry, decision="known") == set()
    assert found(client, guideline=balance, decision="known") == {"of two"}
    assert found(client, error="any") == found(client, error="turn") == {"of three"}
    assert found(client, error="call", tool="send_money") == {"of three"}
    assert found(client, error="call", tool="get_balance") == set()
    # The list leads to the turn in which it was so.
    html = listed(client, guideline=balance, decision="known")
    assert f'href="/sessions/{two.session.pk}/?turn=2#turn-2">first in turn 2</a>' in html


def test_sessions_are_found_by_the_version_that_a_turn_ran_on(client: Client, qa: User) -> None:
    one = Recorded()
    version = publish(one.agent, note="first", by=None)
    one.turn("of one")
    one.session.turns.update(version=version)
    two = Recorded()
    two.turn("of two")
    assert found(client, version="1") == {"of one"}
    assert found(client, version="2") == found(client, version="99999999999") == set()


def test_flags_are_counted_and_filtered(client: Client, qa: User) -> None:
    one, two, three = Recorded(), Recorded(), Recorded()
    one.turn("of one")
    two.turn("of two")
    three.turn("of three")
    for told, closed_by in ((one, ""), (one, ""), (one, "ann"), (two, "ann")):
        Flag.objects.create(
            event=told.session.events.get(),
            comment="Look.",
            closed_by=closed_by,
            closed_at=timezone.now() if closed_by else None,
        )
    assert found(client, flag="open") == {"of one"}
    assert found(client, flag="any") == {"of one", "of two"}
    assert listed(client).count("open flag") == 1
    assert "2 open flags" in listed(client)


def test_what_no_filter_could_mean_filters_nothing(client: Client, qa: User) -> None:
    Recorded().turn("of one")
    for query in (
        {"mode": "x"}, {"error": "x"}, {"flag": "x"}, {"decision": "x"}, {"running": "x"}, {"colour": "red"},
        {"since": "2024-13-40"}, {"until": "soon"}, {"q": "?!"}, {"agent": "\x00"},
    ):  # fmt: skip
        assert found(client, **query) == {"of one"}, query
    for query in (
        {"agent": "nobody"},
        {"customer": "x"},
        {"by": "x"},
        {"tool": "x"},
        {"version": "x"},
    ):
        assert "No session fits these filters." in listed(client, **query), query
    for query in ({"since": "0001-01-01"}, {"until": "9999-12-31"}):
        assert found(client, **query) == {"of one"}, query


def test_what_was_said_is_found_and_shown_with_the_words_marked(client: Client, qa: User) -> None:
    told = Recorded()
    turn = told.turn("How much <b>is left</b> of it?")
    event = told.answer(turn, "There is £120 left.")
    Recorded().turn("Something else")
    html = listed(client, q="left")
    assert "1 of 2 sessions" in html
    assert "There is £120 <mark>left</mark>." in html
    assert f'href="/sessions/{told.session.pk}/?turn=1#event-{event.offset}"' in html
    assert "and in 1 earlier message" in html
    assert "&lt;b&gt;<mark>is</mark> <mark>left</mark>&lt;/b&gt;" not in html
    html = listed(client, q='"is left"')
    assert "How much &lt;b&gt;<mark>is left</mark>&lt;/b&gt; of it?" in html
    assert "There is" not in html
    assert 'value="&quot;is left&quot;"' in html


def test_a_hit_in_an_old_turn_leads_to_where_the_chat_shows_it(client: Client, qa: User) -> None:
    told = Recorded()
    first = told.turn("the very first")
    for _ in range(60):
        told.turn("later")
    html = listed(client, q="very first")
    offset = first.events.get().offset
    before = 1 + TURNS_AT_ONCE // 2
    address = f"/sessions/{told.session.pk}/?turn=1&amp;before={before}#event-{offset}"
    assert f'href="{address}"' in html
    page = client.get(address.replace("&amp;", "&")).content.decode()
    assert f'id="event-{offset}"' in page


def test_what_a_branch_took_over_is_found_where_it_was_said(client: Client, qa: User) -> None:
    told = Recorded()
    told.turn("said before the branch")
    branch = branch_from(told.session, 1)
    html = listed(client, q="before")
    assert f'href="/sessions/{told.session.pk}/?turn=1#event-1"' in html
    assert f'href="/sessions/{branch.pk}/"' not in html
    assert f"branch of #{told.session.pk}" in listed(client)


def test_each_row_says_what_the_session_used(client: Client, qa: User) -> None:
    told = Recorded()
    for _ in range(2):
        told.turn("Hello", prompt_tokens=1000, completion_tokens=34)
    html = listed(client)
    assert "1.86 s" in html
    assert "2,068 tokens" in html


def test_the_filters_work_live_and_keep_the_address_short(client: Client, qa: User) -> None:
    bank = make_bank("the customer asks for the balance")
    Recorded(bank).turn("of one")
    headers = {"HX-Request": "true", "HX-Trigger": "search", "HX-Target": "found"}
    response = client.get(LIST, {"q": "", "agent": bank.slug, "tool": ""}, headers=headers)
    html = response.content.decode()
    assert "<h1>" not in html
    assert html.lstrip().startswith('<section id="found"')
    assert response["HX-Push-Url"] == f"/sessions/?agent={bank.slug}"
    # What can be chosen of this agent only comes along.
    assert 'id="of-agent" hx-swap-oob="true"' in html
    assert "the customer asks for the balance</option>" in html
    response = client.get(LIST, {"q": "", "agent": ""}, headers=headers)
    assert response["HX-Push-Url"] == "/sessions/"
    assert "choose an agent first" in response.content.decode()
    assert "HX-Request" in response["Vary"]


def test_chosen_filters_stand_in_the_form_and_folded_ones_unfold(client: Client, qa: User) -> None:
    bank = make_bank("the customer asks for the balance")
    told = Recorded(bank)
    uid = told.uid()
    assert "<details>" in listed(client)
    html = listed(client, agent=bank.slug, guideline=uid, tool="get_balance", since="2024-05-04")
    assert "<details open>" in html
    assert f'<option value="{uid}" selected>' in html
    assert "<option selected>get_balance</option>" in html
    assert 'name="since" value="2024-05-04"' in html
    assert '<option value="gone" selected>gone</option>' in listed(client, guideline="gone")


def test_the_list_has_pages_and_keeps_its_filters(client: Client, qa: User) -> None:
    agent = make_bank()
    Session.objects.bulk_create(Session(agent=agent) for _ in range(120))
    html = listed(client, agent=agent.slug)
    assert "Page 1 of 3" in html
    assert f"?agent={agent.slug}&amp;page=2" in html
    assert "Page 3 of 3" in listed(client, page="99")
    assert "Page 1 of 3" in listed(client, page="x")


@pytest.mark.parametrize("query", [{}, {"q": "balance"}, {"tool": "get_balance", "flag": "open"}])
def test_the_number_of_queries_does_not_grow_with_the_sessions(
    client: Client, qa: User, query: dict[str, str]
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            listed(client, **query)
        return len(seen)

    def tell() -> None:
        told = Recorded()
        turn = told.turn("What is my balance?")
        event = told.answer(turn, "Your balance is £5.")
        told.decide(turn, "CANNOT_RUN")
        Flag.objects.create(event=event, comment="Look.")

    tell()
    listed(client)
    few = queries()
    for _ in range(30):
        tell()
    assert queries() == few <= 18


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
