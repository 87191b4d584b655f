"""People: who may sign in, and with which roles."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.access import roles_of
from tests.studio.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

PEOPLE = "/settings/people/"


@pytest.fixture
def admin(client: Client) -> User:
    person = make_user("admin", username="ada")
    client.force_login(person)
    return person


def read(client: Client, address: str = PEOPLE, **query: str) -> str:
    response = client.get(address, query)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def shown_password(html: str) -> str:
    return html.partition('<code id="password">')[2].partition("<")[0]


def form(*roles: str, **values: Any) -> dict[str, Any]:
    return {"first_name": "", "last_name": "", "roles": list(roles)} | values


def may_sign_in(username: str, password: str) -> bool:
    response = Client().post("/sign-in/", {"username": username, "password": password})
    return response.status_code == 302


# --- works


def test_people_are_listed_with_roles_and_last_sign_in(client: Client, admin: User) -> None:
    make_user("author", "publisher", username="maya", first_name="Maya", last_name="Okafor")
    make_user(username="newcomer")
    make_user("qa", username="gone", is_active=False)
    html = read(client)
    maya = html.partition(">maya<")[2].partition("</tr>")[0]
    assert "Maya Okafor" in maya
    assert '<span class="tag">author</span> <span class="tag">publisher</span>' in maya
    assert "never" in maya
    assert "none: sees no agents" in html.partition(">newcomer<")[2].partition("</tr>")[0]
    assert "May not sign in" in html.partition(">gone<")[2].partition("</tr>")[0]
    assert "you" in html.partition(">ada<")[2].partition("</tr>")[0]


def test_a_new_person_signs_in_with_the_password_that_is_shown_once(
    client: Client, admin: User
) -> None:
    response = client.post(f"{PEOPLE}new/", form("author", "qa", username="maya"))
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    password = shown_password(response.content.decode())
    assert len(password) >= 16
    assert password not in read(client)
    assert may_sign_in("maya", password)
    assert roles_of(User.objects.get(username="maya")) == {"author", "qa"}


def test_roles_are_changed_and_hold_from_the_next_click_on(client: Client, admin: User) -> None:
    person = make_user("author", username="maya")
    theirs = Client()
    theirs.force_login(person)
    assert theirs.get("/agents/new/").status_code == 200
    response = client.post(f"{PEOPLE}{person.pk}/", form("qa", is_active="on"), follow=True)
    assert "Saved." in response.content.decode()
    assert theirs.get("/agents/new/").status_code == 403


def test_other_groups_of_a_person_stay(client: Client, admin: User) -> None:
    person = make_user("author")
    person.groups.add(Group.objects.create(name="choir"))
    client.post(f"{PEOPLE}{person.pk}/", form("qa", is_active="on"))
    assert sorted(person.groups.values_list("name", flat=True)) == ["choir", "qa"]


def test_somebody_who_is_switched_off_is_out_at_once(client: Client, admin: User) -> None:
    person = make_user("qa", username="quinn")
    theirs = Client()
    theirs.force_login(person)
    client.post(f"{PEOPLE}{person.pk}/", form("qa"))
    assert theirs.get("/").status_code == 302
    assert not may_sign_in("quinn", PASSWORD)


def test_a_lost_password_is_replaced_and_ends_what_the_old_one_opened(
    client: Client, admin: User
) -> None:
    person = make_user("qa", username="quinn")
    theirs = Client()
    theirs.force_login(person)
    response = client.post(f"{PEOPLE}{person.pk}/password/")
    password = shown_password(response.content.decode())
    assert theirs.get("/").status_code == 302
    assert not may_sign_in("quinn", PASSWORD)
    assert may_sign_in("quinn", password)


def test_a_superuser_shown_as_admin_can_be_made_an_ordinary_person(
    client: Client, admin: User
) -> None:
    root = User.objects.create_superuser("root")
    assert 'value="admin" id="id_roles_4" checked' in read(client, f"{PEOPLE}{root.pk}/")
    client.post(f"{PEOPLE}{root.pk}/", form("author", is_active="on"))
    root.refresh_from_db()
    assert not root.is_superuser
    assert roles_of(root) == {"author"}


def test_people_are_searched(client: Client, admin: User) -> None:
    make_user(username="maya", last_name="Okafor")
    make_user(username="leo")
    html = read(client, q="okaf")
    assert ">maya<" in html
    assert ">leo<" not in html
    assert "Nobody is called “zz”" in read(client, q="zz")


def test_the_list_takes_the_same_queries_for_many_people(client: Client, admin: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            read(client)
        return len(seen)

    make_user("qa")
    few = queries()
    for _ in range(10):
        make_user("qa", "author")
    assert queries() == few


# --- wrong method


def test_a_link_makes_no_password(client: Client, admin: User) -> None:
    assert client.get(f"{PEOPLE}{admin.pk}/password/").status_code == 405


# --- stranger


def test_an_unknown_person_is_not_here(client: Client, admin: User) -> None:
    assert client.get(f"{PEOPLE}999999/").status_code == 404
    assert client.post(f"{PEOPLE}999999/password/").status_code == 404


# --- bad input


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (form("qa", username=""), "This field is required."),
        (form("qa", username="ADA"), "“ADA” is somebody else already."),
        (form("qa", username="two words"), "Enter a valid username."),
        (form(username="maya"), "Choose at least one role."),
        (form("king", username="maya"), "is not one of the available choices"),
    ],
)
def test_what_a_person_cannot_be_is_refused(
    client: Client, admin: User, values: dict[str, Any], said: str
) -> None:
    response = client.post(f"{PEOPLE}new/", values)
    assert response.status_code == 422
    assert said in response.content.decode()
    assert User.objects.count() == 1


@pytest.mark.parametrize("values", [form("author", is_active="on"), form("admin")])
def test_the_last_admin_stays_one(client: Client, admin: User, values: dict[str, Any]) -> None:
    make_user("admin", is_active=False)
    response = client.post(f"{PEOPLE}{admin.pk}/", values)
    assert response.status_code == 422
    assert "make somebody else an admin first" in response.content.decode()
    admin = User.objects.get(pk=admin.pk)
    assert admin.is_active
    assert roles_of(admin) == {"admin"}


# --- idempotent


def test_saving_a_person_twice_changes_nothing_more(client: Client, admin: User) -> None:
    person = make_user("author")
    for _ in range(2):
        values = form("qa", first_name="Quinn", is_active="on")
        assert client.post(f"{PEOPLE}{person.pk}/", values).status_code == 302
    person = User.objects.get(pk=person.pk)
    assert (person.first_name, roles_of(person)) == ("Quinn", {"qa"})
    assert person.check_password(PASSWORD)
