"""What model calls cost: which price counts, how it is reckoned, and where it is shown."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from studio.audit import audit
from studio.costs import PriceList, Usage, costs_of_sessions, unpriced_lately
from studio.models import ModelPrice, Turn
from studio.operations.branches import branch_from
from studio.templatetags.studio_costs import money, unpriced
from studio.views.conversation import spend_of
from tests.studio.conversations import Recorded, make_person
from tests.studio.factories import make_price

pytestmark = pytest.mark.django_db


def priced(model: str, given: str = "2.5", written: str = "10", **fields: Any) -> ModelPrice:
    return make_price(
        model=model, input_price=Decimal(given), output_price=Decimal(written), **fields
    )


def cost(*usages: Usage) -> dict[str, Any]:
    return PriceList.today().cost(usages)


def asked(turn: Turn, recorded: Recorded, uid: str, model: str = "gpt-x", **fields: Any) -> None:
    told = {"prompt_tokens": 1_000, "cached_tokens": 0, "completion_tokens": 100}
    recorded.ask_model(turn, uid, 0, 200, model=model, **(told | fields))


# --- which price, and how much


@pytest.mark.parametrize(
    ("model", "fitting"),
    [
        ("gpt-x", "gpt-x"),
        ("gpt-x-mini", "gpt-x-*"),
        ("gpt-xl", "gpt-*"),
        ("llama", "*"),
    ],
)
def test_a_name_wins_over_a_beginning_and_a_longer_beginning_over_a_shorter(
    model: str, fitting: str
) -> None:
    for name in ("*", "gpt-*", "gpt-x-*", "gpt-x"):
        priced(name)
    found = PriceList.today().price_of(model)
    assert found is not None
    assert found.model == fitting


def test_a_model_that_nothing_fits_has_no_price() -> None:
    priced("gpt-*")
    assert PriceList.today().price_of("llama") is None
    assert PriceList.today().price_of("gpt") is None


def test_cached_input_is_paid_at_its_own_price() -> None:
    priced("gpt-x", "2.5", "10", cached_price=Decimal("1.25"))
    usage = Usage(model="gpt-x", prompt_tokens=1_000, cached_tokens=400, completion_tokens=100)
    # 600 × 2.5 + 400 × 1.25 + 100 × 10 = 3,000 per million
    assert cost(usage)["amounts"] == [{"currency": "USD", "amount": "0.003"}]


def test_cached_input_without_a_price_of_its_own_is_paid_as_other_input() -> None:
    priced("gpt-x", "2.5", "10")
    usage = Usage(model="gpt-x", prompt_tokens=1_000, cached_tokens=400, completion_tokens=100)
    assert cost(usage)["amounts"] == [{"currency": "USD", "amount": "0.0035"}]


def test_amounts_are_exact_however_many_calls_are_added_up() -> None:
    priced("gpt-x", "0.1", "0.2")
    usages = [Usage(model="gpt-x", prompt_tokens=1, completion_tokens=1)] * 1_000_000
    assert cost(*usages)["amounts"] == [{"currency": "USD", "amount": "0.3"}]


def test_currencies_are_never_added_up() -> None:
    priced("gpt-x")
    priced("mistral", "2", "6", currency="EUR")
    both = [Usage(model=name, prompt_tokens=1_000_000) for name in ("gpt-x", "mistral")]
    found = cost(*both)
    assert found["amounts"] == [
        {"currency": "EUR", "amount": "2"},
        {"currency": "USD", "amount": "2.5"},
    ]
    assert money(found) == "2.00 EUR + 2.50 USD"


def test_a_model_without_a_price_is_named_with_its_calls() -> None:
    priced("gpt-x")
    found = cost(
        Usage(model="gpt-x", prompt_tokens=1_000_000),
        Usage(model="llama", prompt_tokens=10),
        Usage(model="llama", completion_tokens=10),
    )
    assert found["amounts"] == [{"currency": "USD", "amount": "2.5"}]
    assert found["unpriced"] == [{"model": "llama", "calls": 2}]
    assert unpriced(found) == "2 calls of llama have no price."


def test_the_offline_model_and_calls_without_tokens_cost_nothing() -> None:
    found = cost(Usage(model="offline", prompt_tokens=10), Usage(model="llama"))
    assert found == {"amounts": [], "unpriced": []}


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0", "0 USD"),
        ("0.0000004", "less than 0.000001 USD"),
        ("0.001234", "0.0012 USD"),
        ("0.0149", "0.015 USD"),
        ("0.5", "0.50 USD"),
        ("12.345", "12.35 USD"),
    ],
)
def test_small_amounts_keep_two_digits_that_say_something(amount: str, words: str) -> None:
    shown = money({"amounts": [{"currency": "USD", "amount": amount}], "unpriced": []})
    assert shown == words


# --- a turn, a session, a list of sessions


def test_a_turns_audit_holds_its_cost_with_failed_attempts_and_unused_answers() -> None:
    priced("gpt-x")
    recorded = Recorded()
    turn = recorded.turn()
    asked(turn, recorded, "m1")
    asked(turn, recorded, "m2", error="cut off")
    asked(turn, recorded, "m3", used=False)
    asked(turn, recorded, "m4", model="llama")
    assert audit(turn)["cost"] == {
        "amounts": [{"currency": "USD", "amount": "0.0105"}],
        "unpriced": [{"model": "llama", "calls": 1}],
    }


def test_the_cost_follows_the_price_list_of_today() -> None:
    recorded = Recorded()
    turn = recorded.turn()
    asked(turn, recorded, "m1")
    assert audit(turn)["cost"]["amounts"] == []
    price = priced("gpt-x")
    assert audit(turn)["cost"]["amounts"] == [{"currency": "USD", "amount": "0.0035"}]
    price.delete()
    assert audit(turn)["cost"]["unpriced"] == [{"model": "gpt-x", "calls": 1}]


def test_a_session_costs_what_its_whole_line_cost_and_a_list_counts_nothing_twice() -> None:
    priced("gpt-x")
    recorded = Recorded()
    first = recorded.turn()
    asked(first, recorded, "m1")
    second = recorded.turn()
    asked(second, recorded, "m2")
    branch = branch_from(recorded.session, 1)
    assert spend_of(recorded.session).cost["amounts"][0]["amount"] == "0.007"
    assert spend_of(branch).cost["amounts"][0]["amount"] == "0.0035"
    listed = costs_of_sessions([recorded.session.pk, branch.pk])
    assert listed[recorded.session.pk]["amounts"][0]["amount"] == "0.007"
    assert listed[branch.pk] == {"amounts": [], "unpriced": []}


def test_a_list_of_sessions_takes_two_queries(django_assert_num_queries: Any) -> None:
    sessions = [Recorded() for _ in range(3)]
    for recorded in sessions:
        asked(recorded.turn(), recorded, "m1")
    with django_assert_num_queries(2):
        costs_of_sessions([recorded.session.pk for recorded in sessions])


def test_models_without_a_price_are_found_those_with_the_most_calls_first() -> None:
    priced("gpt-x")
    recorded = Recorded()
    turn = recorded.turn()
    for number, model in enumerate(["gpt-x", "one", "two", "two", "offline"]):
        asked(turn, recorded, f"m{number}", model)
    assert unpriced_lately() == [{"model": "two", "calls": 2}, {"model": "one", "calls": 1}]


# --- on the page


def read(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_the_sandbox_shows_the_cost_of_the_session_and_of_the_turn(client: Client) -> None:
    priced("gpt-x")
    recorded = Recorded()
    asked(recorded.turn(), recorded, "m1")
    turn = recorded.turn(prompt_tokens=2_000, completion_tokens=200)
    asked(turn, recorded, "m2")
    client.force_login(make_person("qa"))
    html = read(client, f"/sessions/{recorded.session.pk}/")
    assert "0.0070 USD" in html
    assert "0.0035 USD at today’s prices" in html


def test_the_sandbox_says_which_calls_have_no_price(client: Client) -> None:
    recorded = Recorded()
    asked(recorded.turn(), recorded, "m1", model="llama")
    client.force_login(make_person("qa"))
    html = read(client, f"/sessions/{recorded.session.pk}/")
    assert "1 call of llama has no price." in html
    assert "without a price: <bdi>llama</bdi>" in html


def test_the_list_of_sessions_shows_what_each_cost(client: Client) -> None:
    priced("gpt-x")
    recorded = Recorded()
    turn = recorded.turn(prompt_tokens=2_000, completion_tokens=200)
    asked(turn, recorded, "m1")
    asked(turn, recorded, "m2", model="llama")
    client.force_login(make_person("qa"))
    html = read(client, "/sessions/")
    assert "0.0035 USD" in html
    assert 'title="1 call of llama has no price."' in html


def test_where_nothing_costs_nothing_is_said_of_cost(client: Client) -> None:
    recorded = Recorded()
    asked(recorded.turn(), recorded, "m1", model="offline")
    client.force_login(make_person("qa"))
    html = read(client, f"/sessions/{recorded.session.pk}/")
    assert "price" not in html.split('id="spend"')[1].split("</main>")[0]
