"""What differs between two versions of an agent, in words."""

import pytest
from django.test import Client
from django.urls import reverse

from studio.bridge import agent_spec, compile_agent
from studio.models import Agent
from studio.operations.agents import publish, restore, save_agent, save_guideline
from studio.operations.changes import compare
from studio.operations.relating import delete_overlap, delete_relationship, save_relationship
from studio.operations.wording import delete_term, save_response
from tests.studio.factories import (
    make_agent,
    make_guideline,
    make_overlap,
    make_relationship,
    make_response,
    make_term,
    make_tool,
    make_user,
)

pytestmark = pytest.mark.django_db


def test_relationships_words_and_overlaps_are_compared_in_words() -> None:
    agent = make_agent()
    refund = make_guideline(agent, condition="a refund is asked for")
    angry = make_guideline(agent, uid="angry", condition="the customer is angry")
    late = make_guideline(agent, uid="late", condition="the parcel is late")
    kept = make_relationship(refund, angry)
    gone = make_relationship(angry, late, kind="entails")
    term = make_term(agent, name="IBAN", description="a number", synonyms=["giro"])
    response = make_response(agent, text="Hello.")
    overlap = make_overlap(agent, make_tool(agent, name="a"), make_tool(agent, name="b"))
    before = compile_agent(agent)

    save_relationship(kept, targets=[angry, late])
    delete_relationship(gone)
    delete_term(term)
    response.text = "Good day."
    save_response(response)
    make_response(agent, text="Bye.")
    delete_overlap(overlap)
    changes = compare(before, compile_agent(agent))

    said = {(part.how.value, part.what, part.words, part.before) for part in changes.parts}
    priority = "“a refund is asked for” has priority over"
    assert said == {
        ("removed", "Term", "IBAN: a number (also: giro)", ""),
        ("changed", "Response", "Good day.", "Hello."),
        ("added", "Response", "Bye.", ""),
        (
            "changed",
            "Relationship",
            f"{priority} “the customer is angry”, “the parcel is late”",
            f"{priority} “the customer is angry”",
        ),
        (
            "removed",
            "Relationship",
            "“the customer is angry” brings along “the parcel is late”",
            "",
        ),
        ("removed", "Overlapping tools", "a, b", ""),
    }
    assert changes.count == len(said)
    assert compare(before, before).count == 0


def test_the_settings_of_the_agent_are_compared_in_words() -> None:
    agent = make_agent()
    before = compile_agent(agent)
    agent.tone, agent.composition = "warm", Agent.Composition.STRICT
    agent.no_match, agent.verified_replies = "Ask me later.", True
    save_agent(agent)
    said = " ".join(compare(before, compile_agent(agent)).others)
    for words in ("tone is now: warm", "only canned responses", "Ask me later.", "now verified"):
        assert words in said


def test_a_guideline_that_is_written_otherwise_is_changed() -> None:
    agent = make_agent()
    guideline = make_guideline(agent)
    before = compile_agent(agent)
    guideline.composition = Agent.Composition.STRICT
    save_guideline(guideline, canned_responses=[make_response(agent)])
    (changed,) = compare(before, compile_agent(agent)).changed
    assert changed.parts == ("composition", "canned_responses")


def test_the_pages_show_the_changes_and_restoring_takes_them_back() -> None:
    agent = make_agent(slug="shop")
    refund = make_guideline(agent, condition="a refund is asked for")
    make_relationship(refund, make_guideline(agent, condition="the customer is angry"))
    version = publish(agent, note="", by=None)
    delete_relationship(agent.relationships.get())
    make_term(agent, name="IBAN", description="a number")
    client = Client()
    client.force_login(make_user("author"))
    for name, key in (("agent", {}), ("agent-version", {"number": 1}), ("agent-versions", {})):
        page = client.get(reverse(name, kwargs={"slug": "shop", **key})).content.decode()
        assert "IBAN: a number" in page
        assert "has priority over" in page
    restore(Agent.objects.get(), version)
    assert compile_agent(Agent.objects.get()) == agent_spec(version)
