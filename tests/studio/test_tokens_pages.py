"""API tokens: made by whoever they are for, shown once, revoked."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.models import ApiToken
from studio.views import settings as settings_views
from tests.studio.factories import make_user

pytestmark = pytest.mark.django_db

TOKENS = "/settings/tokens/"


@pytest.fixture
def person(client: Client) -> User:
    person = make_user("qa")
    client.force_login(person)
    return person


def make(client: Client, name: str = "CI") -> str:
    """The new token, read off the page."""
    response = client.post(TOKENS, {"name": name})
    assert response.status_code == 200
    return response.content.decode().partition('<code id="token">')[2].partition("<")[0]


def test_a_new_token_is_shown_once_and_opens_the_api(client: Client, person: User) -> None:
    token = make(client)
    assert token.startswith("gs_")
    answer = Client().get("/api/v1/agents", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    html = client.get(TOKENS).content.decode()
    assert token not in html
    assert f"{token[:8]}…" in html
    assert "just now" in html


def test_the_page_with_the_token_is_kept_by_no_cache(client: Client, person: User) -> None:
    response = client.post(TOKENS, {"name": "CI"})
    assert "no-store" in response["Cache-Control"]


def test_only_a_hash_of_the_token_is_stored(client: Client, person: User) -> None:
    token = make(client)
    row = ApiToken.objects.get()
    assert token not in f"{row.hashed} {row.prefix} {row.name}"
    assert row.hashed == ApiToken.hash(token)


def test_a_revoked_token_opens_nothing(client: Client, person: User) -> None:
    token = make(client)
    row = ApiToken.objects.get()
    response = client.post(f"{TOKENS}{row.pk}/revoke/", follow=True)
    assert "The token is revoked" in response.content.decode()
    answer = Client().get("/api/v1/agents", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401


def test_without_tokens_the_page_says_why_to_make_one_for_each_program(
    client: Client, person: User
) -> None:
    assert "No token yet." in client.get(TOKENS).content.decode()


def test_a_link_revokes_nothing(client: Client, person: User) -> None:
    make(client)
    assert client.get(f"{TOKENS}{ApiToken.objects.get().pk}/revoke/").status_code == 405
    assert ApiToken.objects.exists()


def test_tokens_of_others_are_neither_seen_nor_revoked(client: Client, person: User) -> None:
    row, _token = ApiToken.make(make_user("admin").pk, "Theirs")
    assert "Theirs" not in client.get(TOKENS).content.decode()
    assert client.post(f"{TOKENS}{row.pk}/revoke/").status_code == 404
    assert ApiToken.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("name", ["", "   ", "x" * 81])
def test_a_token_needs_a_name_of_some_length(client: Client, person: User, name: str) -> None:
    response = client.post(TOKENS, {"name": name})
    assert response.status_code == 422
    assert not ApiToken.objects.exists()


def test_nobody_hoards_tokens(
    client: Client, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_views, "_MAX_TOKENS", 2)
    ApiToken.make(make_user("qa").pk)
    make(client)
    make(client)
    response = client.post(TOKENS, {"name": "third"})
    assert response.status_code == 422
    assert "revoke those nobody uses" in response.content.decode()


def test_revoking_twice_says_that_it_is_gone(client: Client, person: User) -> None:
    make(client)
    row = ApiToken.objects.get()
    assert client.post(f"{TOKENS}{row.pk}/revoke/").status_code == 302
    assert client.post(f"{TOKENS}{row.pk}/revoke/").status_code == 404


def test_the_list_takes_the_same_queries_for_many_tokens(client: Client, person: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            client.get(TOKENS)
        return len(seen)

    ApiToken.make(person.pk)
    few = queries()
    for _ in range(10):
        ApiToken.make(person.pk)
    assert queries() == few
