"""The pages of canned responses and of the glossary."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from studio.bridge import agent_spec
from studio.models import Agent, CannedResponse, Term
from studio.operations.agents import snapshot
from studio.operations.sampling import preview
from tests.studio.factories import make_agent, make_guideline, make_response, make_term, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make_agent(slug="shop", name="Shop")


@pytest.fixture
def author() -> Client:
    client = Client()
    client.force_login(make_user("author"))
    return client


def url(name: str, **key: str) -> str:
    return reverse(name, kwargs={"slug": "shop", **key})


def text_of(response: Any) -> str:
    words: str = response.content.decode()
    return words


# --- Canned responses


def test_a_response_is_written_and_stands_in_the_list(author: Client, agent: Agent) -> None:
    author.post(url("response-new"), {"text": "Good day, {{ customer.name }}."})
    row = CannedResponse.objects.get()
    assert agent_spec(snapshot(agent)).canned_responses[0].text == "Good day, {{ customer.name }}."
    make_guideline(agent, condition="the customer says hello", canned_responses=[row])
    page = text_of(author.get(url("responses")))
    assert "<code>customer.name</code>" in page
    assert "the customer says hello" in page


def test_a_response_is_changed_and_its_page_says_who_uses_it(author: Client, agent: Agent) -> None:
    row = make_response(agent, text="Hello.")
    make_guideline(agent, condition="somebody greets", canned_responses=[row])
    address = url("response", uid=row.uid)
    assert "somebody greets" in text_of(author.get(address))
    response = author.post(address, {"text": "Good day."})
    assert response.headers["Location"] == address
    row.refresh_from_db()
    assert row.text == "Good day."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "Write what the agent says"),
        ("fine\nHello {{ name", "Line 2"),
        ("x" * 4_001, "at most 4000"),
        ("Taken.", "this response already"),
    ],
)
def test_what_cannot_be_said_is_refused_and_kept_in_the_field(
    author: Client, agent: Agent, text: str, said: str
) -> None:
    make_response(agent, text="Taken.")
    response = author.post(url("response-new"), {"text": text})
    assert response.status_code == 422
    assert said in text_of(response)
    assert f">{text.strip()}</textarea>" in text_of(response)
    assert CannedResponse.objects.count() == 1


def test_a_preview_fills_in_samples_and_saves_nothing(author: Client, agent: Agent) -> None:
    sent = {"text": "Good day, {{ customer.name }}.", "preview": "1"}
    page = text_of(author.post(url("response-new"), sent))
    assert "Good day, ‹customer name›." in page
    assert ">Good day, {{ customer.name }}.</textarea>" in page
    part = author.post(url("response-new"), sent, headers={"HX-Request": "true"})
    assert text_of(part).strip().startswith('<section class="card" id="preview"')
    wrong = author.post(url("response-new"), sent | {"text": "{{ name"})
    assert wrong.status_code == 200
    assert "Line 1" in text_of(wrong)
    assert not CannedResponse.objects.exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("No field.", "No field."),
        ("{{ balance | number(2) }} left", "1,204.50 left"),
        ("{{ a + 1 }}", "1205.5"),
        ("{% if due > 3 %}late{% endif %}", "late"),
        ("{{ names | join(', ') }}", "‹names 1›, ‹names 2›"),
        ("{% for c in cards %}{{ c.name }};{% endfor %}", "‹name 1›;‹name 2›;"),
        ("{{ cards | each('name') | join(' & ') }}", "‹name 1› &amp; ‹name 2›"),
        ("{{ order.items | length }}", "2"),
        ("{{ name", None),
    ],
)
def test_samples_are_of_the_kind_that_the_template_uses(text: str, shown: str | None) -> None:
    said = preview(text)
    assert said == (shown.replace("&amp;", "&") if shown else None)


def test_deleting_says_who_loses_it(author: Client, agent: Agent) -> None:
    row = make_response(agent)
    guideline = make_guideline(agent, condition="somebody greets", canned_responses=[row])
    address = url("response-delete", uid=row.uid)
    assert "somebody greets" in text_of(author.get(address))
    assert CannedResponse.objects.exists()
    author.post(address)
    assert not CannedResponse.objects.exists()
    assert not guideline.canned_responses.exists()
    assert author.post(address).status_code == 404


def test_responses_are_searched(author: Client, agent: Agent) -> None:
    make_response(agent, text="A legal notice.")
    make_response(agent, text="A greeting.")
    page = text_of(author.get(f"{url('responses')}?q=LEGAL"))
    assert "A legal notice." in page
    assert "A greeting." not in page
    assert "No response says" in text_of(author.get(f"{url('responses')}?q=zebra"))


# --- The glossary


TERM = {"name": "IBAN", "description": "an account's number", "synonyms": "account number, BBAN"}


def test_a_term_is_explained_and_stands_in_the_list(author: Client, agent: Agent) -> None:
    author.post(url("term-new"), TERM)
    (term,) = agent_spec(snapshot(agent)).terms
    assert (term.name, term.description) == ("IBAN", "an account's number")
    assert term.synonyms == ("account number", "BBAN")
    assert "account number, BBAN" in text_of(author.get(url("glossary")))


def test_a_term_is_changed_and_deleted(author: Client, agent: Agent) -> None:
    row = make_term(agent, synonyms=["a", "b"])
    assert 'value="a, b"' in text_of(author.get(url("term", uid=row.uid)))
    author.post(url("term", uid=row.uid), TERM)
    assert agent.terms.get().name == "IBAN"
    assert "IBAN" in text_of(author.get(url("term-delete", uid=row.uid)))
    author.post(url("term-delete", uid=row.uid))
    assert not Term.objects.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "required"),
        ({"name": "x" * 121}, "at most 120"),
        ({"description": ""}, "required"),
        ({"description": "x" * 2_001}, "at most 2000"),
        ({"synonyms": "x" * 121}, "at most 120"),
        ({"name": "taken"}, "explains this term already"),
    ],
)
def test_a_bad_term_is_refused_and_what_was_written_kept(
    author: Client, agent: Agent, change: dict[str, str], said: str
) -> None:
    make_term(agent, name="Taken")
    response = author.post(url("term-new"), TERM | change)
    assert response.status_code == 422
    assert said in text_of(response)
    if "synonyms" not in change:
        assert "account number, BBAN" in text_of(response)
    assert Term.objects.count() == 1


def test_terms_are_searched_by_name_meaning_and_other_names(author: Client, agent: Agent) -> None:
    make_term(agent, name="IBAN", description="a number", synonyms=["giro"])
    make_term(agent, name="Rate", description="a price")
    for word in ("iban", "number", "giro"):
        page = text_of(author.get(f"{url('glossary')}?q={word}"))
        assert "IBAN" in page
        assert "Rate" not in page


def test_empty_pages_say_what_they_are_for(author: Client, agent: Agent) -> None:
    assert "Write the first response" in text_of(author.get(url("responses")))
    assert "Explain the first term" in text_of(author.get(url("glossary")))


def test_who_only_reads_sees_no_way_to_change(agent: Agent) -> None:
    row = make_response(agent, text="Hello.")
    make_term(agent)
    client = Client()
    client.force_login(make_user("qa"))
    page = text_of(client.get(url("response", uid=row.uid)))
    assert "Hello." in page
    assert "<textarea" not in page
    assert "New response" not in text_of(client.get(url("responses")))
    assert "New term" not in text_of(client.get(url("glossary")))


def test_a_longer_list_takes_no_more_queries(
    author: Client, agent: Agent, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(3):
        for _ in range(10):
            make_guideline(agent, canned_responses=[make_response(agent)])
            make_term(agent)
        with django_assert_max_num_queries(10):
            author.get(url("responses"))
        with django_assert_max_num_queries(10):
            author.get(url("glossary"))
