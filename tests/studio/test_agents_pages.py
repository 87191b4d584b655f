"""The list of agents, and one agent: overview, versions, settings, deletion."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.bridge import compile_agent
from studio.models import Agent, AgentVersion, Guideline, Session, Tool, Turn
from studio.operations.agents import publish, save_agent, save_guideline
from studio.operations.removal import delete_guideline
from tests.studio.factories import (
    make_agent,
    make_guideline,
    make_published,
    make_session,
    make_tool,
    make_turn,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def author(client: Client) -> User:
    person = make_user("author", "publisher")
    client.force_login(person)
    return person


def read(client: Client, address: str, **query: str) -> str:
    response = client.get(address, query)
    assert response.status_code == 200, (address, response.status_code)
    return " ".join(response.content.decode().split())


def form(**values: Any) -> dict[str, Any]:
    """The form of an agent as the page sends it."""
    return {
        "name": "Depot",
        "description": "",
        "composition": "fluid",
        "max_iterations": 3,
    } | values


# --- the list


def test_agents_are_listed_with_state_counts_and_last_session(client: Client, author: User) -> None:
    published = make_published(name="Harbour", description="Ferries and tickets.")
    make_guideline(published, enabled=False)
    make_turn(make_session(published))
    make_agent(name="Draft desk")
    make_published(name="Steady")
    html = read(client, "/")
    harbour, _, rest = html.partition("Steady")
    draft, harbour = harbour.split("Harbour", 1)
    assert "Draft, never published" in draft
    assert "Draft differs from version 1" in harbour
    assert "Ferries and tickets." in harbour
    assert "2 guidelines (1 switched on)" in harbour
    assert "1 session</span>" in harbour
    assert "just now" in harbour
    assert "Version 1" in rest
    assert "differs" not in rest


def test_the_demo_agent_is_offered_to_be_tried(client: Client, author: User) -> None:
    assert "Try the demo agent" not in read(client, "/")
    make_agent(slug="harbor-bank", name="Harbor Bank")
    html = read(client, "/")
    assert 'href="/agents/harbor-bank/sandbox/">Try the demo agent</a>' in html


def test_without_agents_an_author_is_led_to_the_first_one_and_others_read_who_writes_it(
    client: Client, author: User
) -> None:
    assert "Write the first one" in read(client, "/")
    client.force_login(make_user("qa"))
    html = read(client, "/")
    assert "An author writes the first one" in html
    assert "/agents/new/" not in html


def test_the_list_is_searched_by_name_and_description(client: Client, author: User) -> None:
    make_agent(name="Parcels", description="")
    make_agent(name="Bank", description="Money and parcels")
    make_agent(name="Ferry", description="")
    html = read(client, "/", q="parcel")
    assert "Parcels" in html
    assert "Bank" in html
    assert "Ferry" not in html
    assert "No agent says “nothing”" in read(client, "/", q="nothing")


def test_the_list_takes_the_same_queries_for_many_agents(client: Client, author: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            read(client, "/")
        return len(seen)

    make_published()
    few = queries()
    for _ in range(12):
        make_turn(make_session(make_published()))
    assert queries() == few


def test_long_lists_have_pages_that_keep_the_search(client: Client, author: User) -> None:
    for number in range(51):
        make_agent(name=f"Desk {number:02}")
    html = read(client, "/", q="Desk")
    assert html.count("data-row-link") == 50
    assert 'rel="next" href="?q=Desk&amp;page=2"' in html
    assert read(client, "/", q="Desk", page="2").count("data-row-link") == 1


# --- a new agent


def test_a_new_agent_gets_its_address_from_its_name(client: Client, author: User) -> None:
    response = client.post("/agents/new/", form(name="Parcel desk", slug="", description="Kind."))
    assert (response.status_code, response["Location"]) == (302, "/agents/parcel-desk/")
    agent = Agent.objects.get()
    assert (agent.name, agent.description, agent.max_iterations) == ("Parcel desk", "Kind.", 3)
    assert "Write its first guideline next" in read(client, "/agents/parcel-desk/")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "x" * 121}, "at most 120 characters"),
        ({"slug": "Bank!"}, "valid “slug”"),
        ({"slug": "taken"}, "Another agent has this address already."),
        ({"slug": "new"}, "is an address of the studio itself"),
        ({"max_iterations": 11}, "less than or equal to 10"),
        ({"description": "x" * 10_001}, "10000"),
    ],
)
def test_what_an_agent_cannot_be_is_refused_where_it_stands(
    client: Client, author: User, wrong: dict[str, Any], said: str
) -> None:
    make_agent(slug="taken")
    response = client.post("/agents/new/", form(slug="depot") | wrong)
    assert response.status_code == 422
    html = response.content.decode()
    assert said in html
    assert 'aria-invalid="true"' in html
    assert "Nothing was saved yet." in html
    assert Agent.objects.count() == 1


# --- the overview


def test_the_overview_tells_what_publishing_would_change(client: Client, author: User) -> None:
    agent = make_agent(slug="depot", name="Depot")
    kept = make_guideline(agent, condition="The customer asks why", action="explain")
    gone = make_guideline(agent, condition="it is late", action="apologise")
    publish(agent, note="The first.", by=author)
    kept.action = "explain in one sentence"
    save_guideline(kept)
    delete_guideline(gone)
    make_guideline(agent, condition="somebody is angry", action="stay calm")
    agent.refresh_from_db()
    agent.max_iterations = 5
    save_agent(agent)
    html = read(client, "/agents/depot/")
    assert "4 changes since version 1" in html
    assert "A turn may take 5 iterations instead of 3." in html
    changes = html.partition("4 changes since version 1")[2]
    new, changed, removed = (changes.index(words) for words in (">New<", ">Changed<", ">Gone<"))
    assert "stay calm" in changes[new:changed]
    assert "explain in one sentence" in changes[changed:removed]
    assert '<b>before:</b> <span dir="auto">explain</span>' in changes[changed:removed]
    assert "it is late" in changes[removed:]
    assert "The first." in html


def test_an_edit_that_is_taken_back_is_no_change(client: Client, author: User) -> None:
    agent = make_published(slug="depot")
    guideline = agent.guidelines.get()
    before = guideline.action
    for action in ("something else", before):
        guideline.action = action
        save_guideline(guideline)
    html = read(client, "/agents/depot/")
    assert "The draft is version 1" in html
    assert "Publish the draft" not in html


def test_the_overview_shows_numbers_and_recent_sessions(client: Client, author: User) -> None:
    agent = make_agent(slug="depot")
    make_guideline(agent, tools=[make_tool(agent)])
    make_turn(make_session(agent), text="Where is my parcel?")
    html = read(client, "/agents/depot/")
    assert "Where is my parcel?" in html
    assert "<dd>1</dd>" in html
    assert "Never published" in html


def test_the_overview_takes_the_same_queries_for_many_guidelines(
    client: Client, author: User
) -> None:
    agent = make_published(slug="depot")

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            read(client, "/agents/depot/")
        return len(seen)

    make_guideline(agent)
    read(
        client, "/agents/depot/"
    )  # what is published never changes, and is kept in memory from here on
    make_guideline(agent)
    make_session(agent)
    few = queries()
    for _ in range(20):
        make_guideline(agent, tools=[make_tool(agent)], matching=["one", "two"])
        make_turn(make_session(agent))
    assert queries() == few


def test_whoever_may_not_publish_reads_who_may(client: Client) -> None:
    make_agent(slug="depot")
    client.force_login(make_user("qa"))
    html = read(client, "/agents/depot/")
    assert "Publishing takes the role publisher or admin." in html
    assert "<textarea" not in html
    assert "/agents/depot/settings/" not in html


def test_words_of_authors_are_never_markup(client: Client, author: User) -> None:
    agent = make_agent(slug="depot", name="<b>Depot</b>", description="<script>alert(1)</script>")
    make_guideline(agent, condition="<i>x</i>", action="<u>y</u>")
    publish(agent, note="<em>z</em>", by=author)
    for page in ("/", "/agents/depot/", "/agents/depot/versions/", "/agents/depot/versions/1/"):
        html = read(client, page)
        for markup in ("<b>Depot", "<script>alert", "<i>x", "<u>y", "<em>z"):
            assert markup not in html, page


# --- versions


def test_publishing_gives_the_draft_a_number_a_note_and_an_author(
    client: Client, author: User
) -> None:
    agent = make_agent(slug="depot")
    make_guideline(agent)
    response = client.post("/agents/depot/versions/", {"note": "Ready for spring."}, follow=True)
    html = response.content.decode()
    assert "Version 1 is published." in html
    assert "Ready for spring." in html
    version = AgentVersion.objects.get(number=1)
    assert version.published_by == author
    agent.refresh_from_db()
    assert agent.published == version


def test_publishing_the_same_again_is_refused_and_makes_no_version(
    client: Client, author: User
) -> None:
    make_published(slug="depot")
    response = client.post("/agents/depot/versions/", {"note": "Again."})
    assert response.status_code == 422
    assert "is what is published already" in response.content.decode()
    assert AgentVersion.objects.published().count() == 1


def test_a_note_that_is_too_long_is_refused(client: Client, author: User) -> None:
    make_agent(slug="depot")
    response = client.post("/agents/depot/versions/", {"note": "x" * 2_001})
    assert response.status_code == 422
    assert "at most 2000 characters" in response.content.decode()
    assert not AgentVersion.objects.exists()


def test_a_version_is_read_word_for_word_after_the_draft_changed(
    client: Client, author: User
) -> None:
    agent = make_agent(slug="depot")
    guideline = make_guideline(agent, condition="it rains", action="offer an umbrella")
    publish(agent, note="", by=author)
    guideline.action = "offer a coat"
    save_guideline(guideline)
    html = read(client, "/agents/depot/versions/1/")
    table = html.partition("<table")[2].partition("</table>")[0]
    assert "offer an umbrella" in table
    assert "offer a coat" not in table
    assert "1 change from here to the draft" in html
    assert "offer a coat" in html


def test_an_unknown_version_is_not_here(client: Client, author: User) -> None:
    make_published(slug="depot")
    assert (
        "This agent has no version 2." in client.get("/agents/depot/versions/2/").content.decode()
    )
    for number in (2, 99999999999999999999):
        assert client.get(f"/agents/depot/versions/{number}/").status_code == 404
        assert client.post(f"/agents/depot/versions/{number}/restore/").status_code == 404


def test_a_version_is_restored_after_a_page_that_says_what_changes(
    client: Client, author: User
) -> None:
    agent = make_agent(slug="depot")
    guideline = make_guideline(agent, action="offer an umbrella")
    publish(agent, note="", by=author)
    guideline.action = "offer a coat"
    save_guideline(guideline)
    html = read(client, "/agents/depot/versions/1/restore/")
    assert "This changes the draft in 1 place." in html
    guideline.refresh_from_db()
    assert guideline.action == "offer a coat"
    for _twice in range(2):
        response = client.post("/agents/depot/versions/1/restore/")
        assert (response.status_code, response["Location"]) == (302, "/agents/depot/")
        assert Guideline.objects.get(uid=guideline.uid).action == "offer an umbrella"
    assert "The draft is version 1" in read(client, "/agents/depot/")


def test_restoring_says_which_tools_are_no_longer_there(client: Client, author: User) -> None:
    agent = make_agent(slug="depot")
    tool = make_tool(agent, name="find_parcel")
    make_guideline(agent, tools=[tool])
    publish(agent, note="", by=author)
    tool.delete()
    response = client.post("/agents/depot/versions/1/restore/", follow=True)
    assert "left out: find_parcel." in response.content.decode()


# --- settings


def test_settings_are_saved_into_the_draft(client: Client, author: User) -> None:
    agent = make_published(slug="depot", name="Depot")
    values = form(name="Parcel depot", description="Kind.", max_iterations=4)
    response = client.post("/agents/depot/settings/", values, follow=True)
    assert "Saved." in response.content.decode()
    agent.refresh_from_db()
    assert (agent.name, agent.description, agent.max_iterations) == ("Parcel depot", "Kind.", 4)
    assert agent.slug == "depot"
    assert agent.published is not None
    assert agent.published.spec["name"] == "Depot"


def test_how_the_agent_speaks_is_saved_too(client: Client, author: User) -> None:
    agent = make_agent(slug="depot", name="Depot")
    values = form(
        name="Depot", tone="Warm.", composition="strict", no_match="Ask me.", verified_replies="on"
    )
    assert client.post("/agents/depot/settings/", values).status_code == 302
    value = compile_agent(Agent.objects.get(pk=agent.pk))
    assert (value.tone, value.composition.value) == ("Warm.", "strict")
    assert (value.no_match, value.verified_replies) == ("Ask me.", True)


def test_refused_settings_keep_what_was_written_and_the_stored_name(
    client: Client, author: User
) -> None:
    make_agent(slug="depot", name="Depot")
    values = form(name="", description="Half a novel.")
    response = client.post("/agents/depot/settings/", values)
    assert response.status_code == 422
    html = response.content.decode()
    assert "Half a novel." in html
    assert "<title>Settings · Depot · Guideline Studio</title>" in " ".join(html.split())
    assert Agent.objects.get().name == "Depot"


# --- deletion


def test_an_agent_is_deleted_with_all_that_hangs_on_it_when_its_name_is_written(
    client: Client, author: User
) -> None:
    agent = make_published(slug="depot", name="Depot")
    make_tool(agent)
    make_turn(make_session(agent), version=agent.published)
    other = make_published(slug="other")
    make_turn(make_session(other))
    html = read(client, "/agents/depot/settings/delete/")
    assert "1 guideline of the draft" in html
    assert "1 session with everything" in html
    response = client.post("/agents/depot/settings/delete/", {"name": "Depot"}, follow=True)
    assert "“Depot” is deleted." in response.content.decode()
    assert list(Agent.objects.all()) == [other]
    assert Session.objects.count() == 1
    assert Turn.objects.count() == 1
    assert Tool.objects.count() == 1
    assert client.post("/agents/depot/settings/delete/", {"name": "Depot"}).status_code == 404


def test_another_name_deletes_nothing(client: Client, author: User) -> None:
    make_agent(slug="depot", name="Depot")
    for name in ("", "depo"):
        response = client.post("/agents/depot/settings/delete/", {"name": name})
        assert response.status_code == 422
    assert Agent.objects.exists()


def test_an_agent_that_answers_right_now_is_not_deleted(client: Client, author: User) -> None:
    agent = make_agent(slug="depot", name="Depot")
    make_turn(make_session(agent), state=Turn.State.RUNNING)
    response = client.post("/agents/depot/settings/delete/", {"name": "Depot"})
    assert response.status_code == 422
    assert "A turn of it is running." in response.content.decode()
    assert Agent.objects.exists()
