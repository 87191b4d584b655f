"""The editor of a guideline: how its reply is written, what its tools say, and what relates it to others."""

import pytest
from django.test import Client
from django.urls import reverse

from studio.bridge import compile_agent
from studio.forms.guidelines import GuidelineForm
from studio.models import Agent, Relationship
from studio.operations.removal import delete_guideline, undelete_guideline
from tests.studio.factories import (
    make_agent,
    make_guideline,
    make_relationship,
    make_response,
    make_tool,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make_agent(slug="shop", name="Shop")


@pytest.fixture
def author() -> Client:
    client = Client()
    client.force_login(make_user("author"))
    return client


def test_the_editor_offers_the_canned_responses_and_keeps_the_chosen_ones(
    author: Client, agent: Agent
) -> None:
    chosen, other = make_response(agent, text="Chosen."), make_response(agent, text="Other.")
    guideline = make_guideline(agent, canned_responses=[chosen], composition="strict")
    page = author.get(reverse("guideline", args=[agent.slug, guideline.uid])).content.decode()
    assert f'value="{chosen.uid}" checked' in page
    assert f'value="{other.uid}">' in page
    assert '<option value="strict" selected>' in page


def test_without_an_action_the_tool_says_what_is_done(author: Client, agent: Agent) -> None:
    tool = make_tool(agent, description="Looks the parcel up.\nMore of it.")
    guideline = make_guideline(agent, action="", tools=[tool])
    page = author.get(reverse("guideline", args=[agent.slug, guideline.uid])).content.decode()
    assert 'placeholder="from the tool: Looks the parcel up."' in page
    assert "take note of it" not in page


def test_deleting_names_the_relationships_that_go_with_it_and_they_come_back(
    author: Client, agent: Agent
) -> None:
    first, second = (make_guideline(agent, uid=uid, condition=uid) for uid in ("one", "two"))
    make_relationship(first, second, uid="rule")
    make_relationship(make_guideline(agent), first, kind="entails", uid="back")
    before = compile_agent(agent)
    page = author.get(reverse("guideline-delete", args=[agent.slug, "one"])).content.decode()
    assert "Its 2 relationships go with it" in page
    author.post(reverse("guideline-delete", args=[agent.slug, "one"]))
    assert not Relationship.objects.exists()
    author.post(reverse("guideline-undelete", args=[agent.slug, "one"]))
    assert compile_agent(Agent.objects.get(pk=agent.pk)).relationships == before.relationships


def test_of_two_to_choose_between_one_alone_is_no_choice(agent: Agent) -> None:
    asks, one, other = (make_guideline(agent) for _ in range(3))
    make_relationship(asks, one, other, kind="disambiguates")
    deleted = delete_guideline(other)
    assert not Relationship.objects.exists()
    undelete_guideline(agent, deleted)
    assert Relationship.objects.get().targets.count() == 2


def test_a_relationship_that_would_contradict_a_newer_one_does_not_come_back(agent: Agent) -> None:
    first, second = make_guideline(agent), make_guideline(agent)
    make_relationship(first, second)
    (was,) = delete_guideline(first).relationships
    again = make_guideline(agent, uid=first.uid)
    make_relationship(second, again)
    deleted = delete_guideline(make_guideline(agent))
    undelete_guideline(agent, deleted.model_copy(update={"relationships": [was]}))
    assert Relationship.objects.get().source == second


def test_a_priority_that_contradicts_a_relationship_is_refused(agent: Agent) -> None:
    low = make_guideline(agent, uid="low", priority=1)
    high = make_guideline(agent, uid="high", priority=1)
    make_relationship(low, high, kind="alternative_to")
    make_relationship(low, high, kind="depends_on_all")
    form = GuidelineForm.from_json(
        agent, {"priority": 2}, instance=agent.guidelines.get(uid="high")
    )
    assert not form.is_valid()
    assert list(form.errors) == ["priority"]
