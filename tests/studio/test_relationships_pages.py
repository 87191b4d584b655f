"""The pages of relationships and of overlapping tools."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from studio.bridge import agent_spec
from studio.models import Agent, Relationship, ToolOverlap
from studio.operations.agents import snapshot
from tests.studio.factories import (
    make_agent,
    make_guideline,
    make_overlap,
    make_relationship,
    make_tool,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(slug="shop", name="Shop")
    make_guideline(agent, uid="refund", condition="the customer asks for a refund")
    make_guideline(agent, uid="angry", condition="the customer is angry", action="be patient")
    make_guideline(agent, uid="late", condition="the parcel is late")
    return agent


@pytest.fixture
def author() -> Client:
    client = Client()
    client.force_login(make_user("author"))
    return client


def url(name: str, **key: str) -> str:
    return reverse(name, kwargs={"slug": "shop", **key})


def rows() -> list[tuple[str, str, list[str]]]:
    return [
        (row.source.uid, row.kind, sorted(target.uid for target in row.targets.all()))
        for row in Relationship.objects.all()
    ]


GIVEN = {"source": "refund", "kind": "has_priority_over", "targets": ["angry"]}


def test_a_relationship_is_made_and_stands_in_the_list_as_a_sentence(
    author: Client, agent: Agent
) -> None:
    response = author.post(url("relationship-new"), GIVEN, follow=True)
    page = response.content.decode()
    assert response.redirect_chain[0][0] == url("relationships")
    assert rows() == [("refund", "has_priority_over", ["angry"])]
    assert "the customer asks for a refund" in page
    assert "has priority over" in page
    assert "the customer is angry" in page
    assert "the parcel is late" not in page


def test_the_next_turn_of_a_draft_session_runs_on_it(author: Client, agent: Agent) -> None:
    before = snapshot(agent)
    author.post(url("relationship-new"), GIVEN)
    after = agent_spec(snapshot(agent))
    assert after.fingerprint != before.fingerprint
    assert after.relationships[0].targets == ("angry",)


def test_a_relationship_is_changed_and_the_person_goes_back_to_where_they_were(
    author: Client, agent: Agent
) -> None:
    row = make_relationship(agent.guidelines.get(uid="refund"), agent.guidelines.get(uid="angry"))
    here = url("guideline", uid="refund")
    address = url("relationship", uid=row.uid)
    page = author.get(f"{address}?next={here}").content.decode()
    assert f'value="{here}"' in page
    assert 'value="angry" checked' in page
    response = author.post(address, GIVEN | {"targets": ["angry", "late"], "next": here})
    assert response.headers["Location"] == here
    assert rows() == [("refund", "has_priority_over", ["angry", "late"])]


def test_removing_asks_first(author: Client, agent: Agent) -> None:
    row = make_relationship(agent.guidelines.get(uid="refund"), agent.guidelines.get(uid="angry"))
    address = url("relationship-delete", uid=row.uid)
    assert "the customer is angry" in author.get(address).content.decode()
    assert Relationship.objects.exists()
    assert author.post(address).status_code == 302
    assert not Relationship.objects.exists()
    assert agent.guidelines.count() == 3
    assert author.post(address).status_code == 404


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"targets": []}, "Choose at least one guideline."),
        ({"targets": ["refund"]}, "no relationship to itself"),
        ({"kind": ""}, "Choose how they are related."),
        ({"kind": "likes"}, "is no relationship"),
        ({"source": ""}, "Choose the guideline that it is about."),
        ({"targets": ["nobody"]}, "no guideline of the uid “nobody”"),
        ({"targets": ["a\x00b"]}, "no guideline of the uid"),
        ({"kind": "disambiguates"}, "only one to choose"),
    ],
)
def test_what_cannot_be_is_refused_and_the_choice_is_kept(
    author: Client, agent: Agent, change: dict[str, Any], said: str
) -> None:
    response = author.post(url("relationship-new"), GIVEN | change)
    page = response.content.decode()
    assert response.status_code == 422
    assert said in page
    if "kind" not in change:
        assert 'value="has_priority_over" checked' in page
    assert not Relationship.objects.exists()


def test_two_guidelines_that_would_drop_one_another_are_refused_in_words(
    author: Client, agent: Agent
) -> None:
    author.post(url("relationship-new"), GIVEN)
    back = GIVEN | {"source": "angry", "targets": ["refund"]}
    response = author.post(url("relationship-new"), back)
    assert response.status_code == 422
    assert "These contradict one another" in response.content.decode()
    assert len(rows()) == 1


def test_a_second_one_of_the_same_kind_is_refused_with_the_remedy(
    author: Client, agent: Agent
) -> None:
    author.post(url("relationship-new"), GIVEN)
    response = author.post(url("relationship-new"), GIVEN | {"targets": ["late"]})
    assert response.status_code == 422
    assert "add to its targets" in response.content.decode()


def test_searching_for_guidelines_saves_nothing_and_forgets_nothing(
    author: Client, agent: Agent
) -> None:
    sent = GIVEN | {"look": "1", "targets_q": "parcel late"}
    response = author.post(url("relationship-new"), sent)
    page = response.content.decode()
    assert response.status_code == 200
    assert not Relationship.objects.exists()
    assert 'value="angry" checked' in page
    assert 'value="late">' in page
    nothing = author.post(url("relationship-new"), sent | {"targets_q": "zebra"})
    assert "No other guideline says that." in nothing.content.decode()


def test_the_editor_of_a_guideline_relates_it_without_leaving(author: Client, agent: Agent) -> None:
    there = {"HX-Request": "true", "HX-Target": "relations"}
    form = author.get(f"{url('relationship-new')}?source=refund", headers=there)
    page = form.content.decode()
    assert form.status_code == 200
    assert page.lstrip().startswith("{#") is False
    assert "<html" not in page
    assert 'name="targets" value="angry"' in page
    refused = author.post(url("relationship-new"), GIVEN | {"targets": []}, headers=there)
    assert refused.status_code == 422
    assert 'id="relations"' in refused.content.decode()
    saved = author.post(url("relationship-new"), GIVEN, headers=there).content.decode()
    assert "the customer is angry" in saved
    assert "<form" not in saved
    assert rows() == [("refund", "has_priority_over", ["angry"])]
    target = author.get(url("guideline", uid="angry")).content.decode()
    assert "is dropped while this applies:" in target


def test_the_list_is_searched(author: Client, agent: Agent) -> None:
    make_relationship(agent.guidelines.get(uid="refund"), agent.guidelines.get(uid="angry"))
    make_relationship(agent.guidelines.get(uid="late"), agent.guidelines.get(uid="angry"))
    page = author.get(f"{url('relationships')}?q=parcel").content.decode()
    assert "the parcel is late" in page
    assert "asks for a refund" not in page
    assert (
        "no relationship" in author.get(f"{url('relationships')}?q=zebra").content.decode().lower()
    )


def test_without_any_the_page_says_what_they_are_for(author: Client, agent: Agent) -> None:
    page = author.get(url("relationships")).content.decode()
    assert "No relationships yet" in page
    assert "Relate two guidelines" in page


def test_a_group_of_tools_is_made_changed_and_removed(author: Client, agent: Agent) -> None:
    tools = [make_tool(agent, name=name) for name in ("weigh", "measure", "guess")]
    refused = author.post(url("overlap-new"), {"tools": ["weigh"]})
    assert refused.status_code == 422
    assert "at least two tools" in refused.content.decode()
    assert 'value="weigh" checked' in refused.content.decode()
    author.post(url("overlap-new"), {"tools": ["weigh", "measure"]})
    overlap = ToolOverlap.objects.get()
    assert agent_spec(snapshot(agent)).overlaps == (("measure", "weigh"),)
    author.post(url("overlap", uid=overlap.uid), {"tools": ["weigh", "guess"]})
    assert {tool.name for tool in overlap.tools.all()} == {"weigh", "guess"}
    assert "weigh" in author.get(url("relationships")).content.decode()
    assert author.get(url("overlap-delete", uid=overlap.uid)).status_code == 200
    author.post(url("overlap-delete", uid=overlap.uid))
    assert not ToolOverlap.objects.exists()
    assert agent.tools.count() == len(tools)


def test_who_only_reads_sees_no_way_to_change(agent: Agent) -> None:
    make_relationship(agent.guidelines.get(uid="refund"), agent.guidelines.get(uid="angry"))
    make_overlap(agent, make_tool(agent), make_tool(agent))
    client = Client()
    client.force_login(make_user("qa"))
    page = client.get(url("relationships")).content.decode()
    assert "has priority over" in page
    assert "Remove" not in page
    assert "Relate it to another" not in client.get(url("guideline", uid="refund")).content.decode()


def test_a_longer_list_takes_no_more_queries(
    author: Client, agent: Agent, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    target = agent.guidelines.get(uid="angry")
    for _ in range(3):
        for _ in range(10):
            make_relationship(make_guideline(agent), target)
        with django_assert_max_num_queries(14):
            author.get(url("relationships"))
        with django_assert_max_num_queries(32):
            author.get(url("guideline", uid="angry"))
