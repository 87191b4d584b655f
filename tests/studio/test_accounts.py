"""Signing in and out, one's password, and how the studio looks to this viewer."""

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from studio.access import Role
from tests.studio.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

SIGN_IN = "/sign-in/"


def sign_in(client: Client, username: str, password: str = PASSWORD, **more: str) -> object:
    return client.post(SIGN_IN, {"username": username, "password": password, **more})


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


# --- works


def test_a_page_leads_through_sign_in_and_back_to_itself(client: Client) -> None:
    make_user("qa", username="quinn")
    asked = client.get("/sessions/?state=failed")
    assert asked["Location"] == "/sign-in/?next=/sessions/%3Fstate%3Dfailed"
    html = client.get(asked["Location"]).content.decode()
    assert '<input type="hidden" name="next" value="/sessions/?state=failed">' in html
    response = client.post(
        SIGN_IN, {"username": "quinn", "password": PASSWORD, "next": "/sessions/?state=failed"}
    )
    assert (response.status_code, response["Location"]) == (302, "/sessions/?state=failed")
    assert signed_in(client)


def test_whoever_is_signed_in_already_is_sent_on(client: Client) -> None:
    client.force_login(make_user("qa"))
    response = client.get(SIGN_IN, {"next": "/sessions/"})
    assert (response.status_code, response["Location"]) == (302, "/sessions/")


def test_signing_out_ends_the_session(client: Client) -> None:
    client.force_login(make_user("qa"))
    response = client.post("/sign-out/")
    assert (response.status_code, response["Location"]) == (302, SIGN_IN)
    assert not signed_in(client)
    assert client.get("/").status_code == 302


def test_a_password_is_changed_and_the_browser_stays_signed_in(client: Client) -> None:
    person = make_user("qa", username="quinn")
    client.force_login(person)
    fresh = {"new_password1": "another long one 7", "new_password2": "another long one 7"}
    response = client.post("/settings/password/", {"old_password": PASSWORD, **fresh}, follow=True)
    assert "Your password is changed" in response.content.decode()
    assert signed_in(client)
    person.refresh_from_db()
    assert person.check_password("another long one 7")


def test_the_choice_of_colours_is_kept_in_the_browser_and_shown_by_the_next_page(
    client: Client,
) -> None:
    client.force_login(make_user("qa"))
    assert 'data-theme="system"' in client.get("/").content.decode()
    response = client.post("/settings/appearance/", {"theme": "dark", "next": "/sessions/"})
    assert (response.status_code, response["Location"]) == (302, "/sessions/")
    html = client.get("/").content.decode()
    assert 'data-theme="dark"' in html
    assert 'value="dark" data-theme-choice aria-pressed="true"' in html


def test_single_keys_are_switched_off_by_a_script_without_leaving_the_page(client: Client) -> None:
    client.force_login(make_user("qa"))
    # The unticked box sends only the hidden value before it; ticked, both.
    response = client.post("/settings/appearance/", {"keys": "off"}, headers={"HX-Request": "true"})
    assert (response.status_code, response.content) == (204, b"")
    assert 'data-keys="off"' in client.get("/").content.decode()
    client.post("/settings/appearance/", {"keys": ["off", "on"]})
    assert 'data-keys="on"' in client.get("/").content.decode()


def test_the_roles_are_there_as_groups_from_the_first_migration_on() -> None:
    assert {role.value for role in Role} <= set(Group.objects.values_list("name", flat=True))


# --- wrong method


def test_signing_out_takes_a_form_so_that_no_link_does_it(client: Client) -> None:
    client.force_login(make_user("qa"))
    assert client.get("/sign-out/").status_code == 405
    assert signed_in(client)


# --- stranger


def test_somebody_without_a_role_signs_in_and_reads_what_to_do(client: Client) -> None:
    make_user(username="new")
    sign_in(client, "new")
    assert client.get("/").status_code == 404
    html = client.get("/settings/").content.decode()
    assert "None yet: an admin gives you one" in html
    assert reverse("people") not in html
    assert reverse("connections") not in html


def test_nobody_is_sent_to_a_foreign_address_after_signing_in(client: Client) -> None:
    make_user("qa", username="quinn")
    for foreign in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        client.logout()
        response = client.post(
            SIGN_IN, {"username": "quinn", "password": PASSWORD, "next": foreign}
        )
        assert response["Location"] == "/"


# --- bad input


@pytest.mark.parametrize(("username", "password"), [("quinn", "wrong"), ("nobody", PASSWORD)])
def test_a_wrong_name_or_password_is_refused_in_the_same_words(
    client: Client, username: str, password: str
) -> None:
    make_user("qa", username="quinn")
    response = client.post(SIGN_IN, {"username": username, "password": password})
    assert response.status_code == 422
    assert "do not belong together" in response.content.decode()
    assert not signed_in(client)


def test_somebody_who_was_switched_off_is_refused(client: Client) -> None:
    make_user("qa", username="quinn", is_active=False)
    response = client.post(SIGN_IN, {"username": "quinn", "password": PASSWORD})
    assert response.status_code == 422
    assert not signed_in(client)


def test_too_many_wrong_passwords_lock_the_name_and_say_for_how_long(client: Client) -> None:
    make_user("qa", username="quinn")
    make_user("qa", username="other")
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = client.post(SIGN_IN, {"username": "quinn", "password": "wrong"})
    right = client.post(SIGN_IN, {"username": "quinn", "password": PASSWORD})
    for locked in (response, right):
        assert locked.status_code == 429
        assert locked["Retry-After"] == "900"
        assert "for 15 minutes" in locked.content.decode()
    assert not signed_in(client)
    sign_in(client, "other")
    assert signed_in(client)


def test_a_password_that_is_too_weak_is_refused_and_the_old_one_stays(client: Client) -> None:
    person = make_user("qa")
    client.force_login(person)
    response = client.post(
        "/settings/password/",
        {"old_password": PASSWORD, "new_password1": "12345", "new_password2": "12345"},
    )
    assert response.status_code == 422
    assert "too short" in response.content.decode()
    person.refresh_from_db()
    assert person.check_password(PASSWORD)


def test_colours_nobody_knows_are_not_kept(client: Client) -> None:
    client.force_login(make_user("qa"))
    client.post("/settings/appearance/", {"theme": '"><script>', "keys": "maybe"})
    assert "studio_theme" not in client.cookies
    client.cookies["studio_theme"] = '"><script>'
    assert '"><script>"' not in client.get("/").content.decode()


def test_a_stale_form_is_refused_with_a_token_that_works() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("qa"))
    refused = client.post("/settings/appearance/", {"theme": "dark"})
    assert refused.status_code == 403
    html = refused.content.decode()
    assert "This page was open for too long" in html
    token = html.partition('data-renewed-token="')[2].partition('"')[0]
    again = client.post("/settings/appearance/", {"theme": "dark"}, headers={"X-CSRFToken": token})
    assert again.status_code == 302


# --- pages for what went wrong


def test_an_unknown_address_says_what_to_do(client: Client) -> None:
    client.force_login(make_user("qa"))
    response = client.get("/nowhere/")
    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


def test_a_page_of_another_role_names_the_roles_that_may(client: Client) -> None:
    client.force_login(make_user("qa"))
    response = client.get("/agents/new/")
    assert response.status_code == 403
    assert "takes one of these roles: admin, author" in response.content.decode()


def test_what_broke_is_told_as_a_reference_that_stands_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(make_user("qa"))
    monkeypatch.setattr("studio.views.settings.roles_of", lambda _person: 1 / 0)
    response = client.get("/settings/")
    assert response.status_code == 500
    html = response.content.decode()
    reference = html.partition('id="reference">')[2].partition("<")[0]
    assert len(reference) == 8
    assert f"Reference {reference}: GET /settings/" in caplog.text
    assert "ZeroDivisionError" not in html


def test_pages_carry_a_policy_without_inline_scripts_and_styles(client: Client) -> None:
    client.force_login(make_user("admin"))
    for page in ("/", "/settings/", "/settings/people/", "/settings/connections/"):
        response = client.get(page)
        policy = response["Content-Security-Policy"]
        assert "unsafe" not in policy
        html = response.content.decode()
        assert "<style" not in html
        assert " style=" not in html
        assert html.count("<script") == html.count("<script src=") + html.count(
            '<script type="module" src='
        )


def test_a_signed_in_person_is_shown_by_name(client: Client) -> None:
    client.force_login(
        User.objects.create_user("maya", first_name="Maya", last_name="Okafor", is_superuser=True)
    )
    html = client.get("/settings/").content.decode()
    assert "Maya Okafor" in html
    assert "Admin: everything, and people" in html
