"""The price list under the settings: added to, changed, taken from; and over the API."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.models import ApiToken, ModelPrice
from tests.studio.api.calling import Caller, is_problem
from tests.studio.conversations import Recorded
from tests.studio.factories import make_price, make_user

pytestmark = pytest.mark.django_db

LIST = "/settings/prices/"
API = "/model-prices"


@pytest.fixture
def developer(client: Client) -> User:
    person = make_user("developer", username="dana")
    client.force_login(person)
    return person


@pytest.fixture
def caller() -> Caller:
    _row, token = ApiToken.make(make_user("developer").pk)
    return Caller(token)


def form(**values: str) -> dict[str, str]:
    usual = {"model": "gpt-x", "input_price": "2.5", "cached_price": "", "output_price": "10"}
    return usual | {"currency": "USD"} | values


def read(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


# --- works


def test_an_empty_list_says_what_is_without_it_and_what_costs_nothing(
    client: Client, developer: User
) -> None:
    html = read(client, LIST)
    assert "No price yet" in html
    assert "The built-in offline model costs nothing." in html


def test_a_price_is_added_and_says_who_did_it(client: Client, developer: User) -> None:
    response = client.post(LIST, form(cached_price="1.25", currency="eur"), follow=True)
    stored = ModelPrice.objects.get()
    assert (stored.input_price, stored.cached_price, stored.output_price) == (
        Decimal("2.5"),
        Decimal("1.25"),
        Decimal(10),
    )
    assert (stored.currency, stored.updated_by) == ("EUR", "dana")
    html = response.content.decode()
    assert "“gpt-x” has its price." in html
    for shown in ('<td class="figure">2.5</td>', '<td class="figure">10</td>', "dana"):
        assert shown in html


def test_a_price_is_changed_in_the_form_below_the_list(client: Client, developer: User) -> None:
    row = make_price(model="gpt-x")
    html = read(client, f"{LIST}{row.pk}/")
    assert "Change the price of gpt-x" in html
    assert 'value="2.5"' in html
    client.post(f"{LIST}{row.pk}/", form(model="gpt-x*", output_price="0"))
    row.refresh_from_db()
    assert (row.model, row.output_price) == ("gpt-x*", Decimal(0))


def test_a_price_is_removed(client: Client, developer: User) -> None:
    row = make_price(model="gpt-x")
    html = client.post(f"{LIST}{row.pk}/delete/", follow=True).content.decode()
    assert "“gpt-x” is off the list." in html
    assert not ModelPrice.objects.exists()


def test_models_that_were_used_without_a_price_stand_above_with_the_way_to_one(
    client: Client, developer: User
) -> None:
    recorded = Recorded()
    turn = recorded.turn()
    for number in range(2):
        recorded.ask_model(turn, f"m{number}", 0, 9, model="llama 3/b", prompt_tokens=5)
    html = read(client, LIST)
    assert "Used lately, and without a price" in html
    assert "2 calls" in html
    address = "/settings/prices/?model=llama%203/b"
    assert f'href="{address}#price"' in html
    assert 'value="llama 3/b"' in read(client, address)


def test_the_currency_of_the_last_price_is_proposed(client: Client, developer: User) -> None:
    assert 'name="currency" value="USD"' in read(client, LIST)
    make_price(currency="CHF")
    assert 'name="currency" value="CHF"' in read(client, LIST)


def test_the_tab_stands_in_the_settings_of_those_who_may(client: Client, developer: User) -> None:
    assert f'href="{LIST}"' in read(client, "/settings/")
    client.force_login(make_user("author"))
    assert f'href="{LIST}"' not in read(client, "/settings/")


# --- bad input


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("model", "", "This field is required."),
        ("model", "gpt-*-mini", "stands only at the end"),
        ("model", "gpt x", "has no spaces"),
        ("model", "m" * 121, "at most 120"),
        ("input_price", "cheap", "Enter a number."),
        ("input_price", "-1", "A price is 0 or more."),
        ("input_price", "NaN", "Enter a number."),
        ("cached_price", "0.0000001", "no more than 6 decimal places"),
        ("output_price", "", "Give the price of a million tokens"),
        ("output_price", "12345678", "no more than"),
        ("currency", "dollars", "at most 3"),
        ("currency", "U$", "three letters"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    client: Client, developer: User, field: str, value: str, said: str
) -> None:
    response = client.post(LIST, form(**{field: value}))
    assert response.status_code == 422
    assert any(said in error for error in response.context["form"].errors[field])
    assert "Nothing was saved yet." in response.content.decode()
    assert not ModelPrice.objects.exists()


def test_a_model_has_one_price(client: Client, developer: User) -> None:
    make_price(model="gpt-x")
    response = client.post(LIST, form())
    assert response.status_code == 422
    assert response.context["form"].errors["model"] == ["This model has a price already."]


def test_a_refused_change_leaves_the_stored_price_in_the_list(
    client: Client, developer: User
) -> None:
    row = make_price(model="gpt-x")
    response = client.post(f"{LIST}{row.pk}/", form(model="other", input_price="x"))
    assert response.status_code == 422
    assert "Change the price of gpt-x" in response.content.decode()


def test_a_price_that_is_gone_is_not_found(client: Client, developer: User) -> None:
    assert client.get(f"{LIST}77/").status_code == 404
    assert client.post(f"{LIST}77/delete/").status_code == 404


def test_many_prices_take_as_many_queries_as_one(client: Client, developer: User) -> None:
    counts = []
    for number in range(2):
        for place in range(1 + 20 * number):
            make_price(model=f"m{number}-{place}")
        with CaptureQueriesContext(connection) as seen:
            client.get(LIST)
        counts.append(len(seen))
    assert counts[0] == counts[1]


# --- the API


def test_a_price_is_created_read_changed_and_deleted_over_the_api(caller: Caller) -> None:
    body = {"model": "gpt-x", "input_price": "2.5", "output_price": 10}
    made = caller.post(API, body)
    assert made.status_code == 201
    stored = made.json()
    assert (stored["input_price"], stored["cached_price"]) == ("2.5", None)
    path = f"{API}/{stored['id']}"
    assert caller.get(path).json()["model"] == "gpt-x"
    assert caller.get(API).json()["count"] == 1
    changed = caller.patch(path, {"cached_price": "1.25"}).json()
    assert (changed["cached_price"], changed["input_price"]) == ("1.25", "2.5")
    assert caller.delete(path).status_code == 204
    is_problem(caller.get(path), 404)


def test_a_price_that_is_none_is_refused_over_the_api(caller: Caller) -> None:
    body = {"model": "a*b", "input_price": "x", "output_price": 10, "currency": "$"}
    problem = is_problem(caller.post(API, body), 422)
    assert {error["field"] for error in problem["errors"]} == {"model", "input_price", "currency"}
