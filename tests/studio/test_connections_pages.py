"""Model connections: written with their keys, never read back, and tested against a server on loopback."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.models import ModelConnection
from studio.operations import connections
from studio.secrets import fingerprint
from tests.openai_server import Hang, OpenAIServer, Say, Status
from tests.studio.factories import make_connection, make_session, make_user

pytestmark = pytest.mark.django_db

LIST = "/settings/connections/"
NEW = "/settings/connections/new/"
KEY = "sk-very-secret-123"


@pytest.fixture
def developer(client: Client) -> User:
    person = make_user("developer", username="dana")
    client.force_login(person)
    return person


def form(**values: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"name": "Main", "base_url": "", "model": "small", "batch_size": 12}
    return usual | {"judging_style": "reasoned", "timeout": 60} | values


def read(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


# --- works


def test_a_connection_is_stored_and_its_key_is_never_shown_again(
    client: Client, developer: User
) -> None:
    response = client.post(NEW, form(new_key=KEY, base_url="http://127.0.0.1:9/v1/"), follow=True)
    stored = ModelConnection.objects.get()
    assert (stored.api_key, stored.base_url) == (KEY, "http://127.0.0.1:9/v1")
    for html in (response.content.decode(), read(client, LIST)):
        assert KEY not in html
        assert f"fingerprint <code>{fingerprint(KEY)}</code>" in " ".join(html.split())
        assert 'set by <b dir="auto">dana</b>' in html


def test_the_key_is_encrypted_in_the_database(client: Client, developer: User) -> None:
    client.post(NEW, form(new_key=KEY))
    with connection.cursor() as cursor:
        cursor.execute("SELECT api_key FROM studio_modelconnection")
        (kept,) = cursor.fetchone()
    assert kept
    assert KEY not in kept


def test_an_empty_key_keeps_the_stored_one_and_a_new_one_says_who_set_it(
    client: Client, developer: User
) -> None:
    client.post(NEW, form(new_key=KEY))
    row = ModelConnection.objects.get()
    other = make_user("developer", username="omar")
    client.force_login(other)
    client.post(f"{LIST}{row.pk}/", form(name="Renamed", new_key=""))
    row.refresh_from_db()
    assert (row.name, row.api_key, row.api_key_set_by) == ("Renamed", KEY, "dana")
    client.post(f"{LIST}{row.pk}/", form(new_key="sk-other"))
    row.refresh_from_db()
    assert (row.api_key, row.api_key_set_by) == ("sk-other", "omar")


def test_a_key_is_removed_on_demand(client: Client, developer: User) -> None:
    client.post(NEW, form(new_key=KEY))
    row = ModelConnection.objects.get()
    client.post(f"{LIST}{row.pk}/", form(drop_key="on"))
    row.refresh_from_db()
    assert (row.api_key, row.api_key_set_by, row.api_key_set_at) == ("", "", None)


def test_the_first_connection_is_offered_as_the_default_and_another_can_take_its_place(
    client: Client, developer: User
) -> None:
    assert "built-in offline model answers" in read(client, LIST)
    checked = 'name="make_default" id="id_make_default" checked'
    assert checked in read(client, NEW)
    client.post(NEW, form(make_default="on"))
    assert checked not in read(client, NEW)
    client.post(NEW, form(name="Second"))
    first, second = ModelConnection.objects.order_by("pk")
    assert (first.is_default, second.is_default) == (True, False)
    response = client.post(f"{LIST}{second.pk}/default/", follow=True)
    assert "now use “Second”" in response.content.decode()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.is_default, second.is_default) == (False, True)
    client.post(f"{LIST}{first.pk}/", form(make_default="on"))
    assert ModelConnection.objects.get(is_default=True) == first


def test_without_a_default_the_page_says_what_answers(
    client: Client, developer: User, settings: Any
) -> None:
    settings.STUDIO_MODEL, settings.OPENAI_BASE_URL = "small-7b", "http://models.example/v1"
    make_connection()
    html = read(client, LIST)
    assert "use small-7b at http://models.example/v1, as the environment says" in html


def test_a_connection_is_deleted_and_its_sessions_go_on(client: Client, developer: User) -> None:
    row = make_connection(name="Old")
    session = make_session(connection=row)
    assert "1 session uses it" in read(client, f"{LIST}{row.pk}/delete/")
    client.post(f"{LIST}{row.pk}/delete/")
    session.refresh_from_db()
    assert session.connection is None
    assert client.post(f"{LIST}{row.pk}/delete/").status_code == 404


def test_the_list_takes_the_same_queries_for_many_connections(
    client: Client, developer: User
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            read(client, LIST)
        return len(seen)

    make_connection()
    few = queries()
    for _ in range(10):
        make_connection(api_key=KEY)
    assert queries() == few


# --- bad input


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "Taken"}, "Another connection has this name already."),
        ({"model": ""}, "This field is required."),
        ({"base_url": "not a url"}, "Enter a valid URL."),
        ({"base_url": "ftp://example.com/v1"}, "https://HOST/v1"),
        ({"batch_size": 0}, "greater than or equal to 1"),
        ({"timeout": 601}, "less than or equal to 600"),
        ({"judging_style": "guessed"}, "Select a valid choice"),
        ({"new_key": "sk-schlüssel"}, "characters that no key has"),
    ],
)
def test_what_a_connection_cannot_be_is_refused_where_it_stands(
    client: Client, developer: User, wrong: dict[str, Any], said: str
) -> None:
    make_connection(name="Taken")
    response = client.post(NEW, form(**wrong))
    assert response.status_code == 422
    html = response.content.decode()
    assert said in html
    assert 'aria-invalid="true"' in html
    assert ModelConnection.objects.count() == 1


def test_a_refused_form_does_not_send_the_key_back(client: Client, developer: User) -> None:
    response = client.post(NEW, form(name="", new_key=KEY))
    assert response.status_code == 422
    assert KEY not in response.content.decode()


# --- the test of a connection

Tested = Callable[..., str]


def answered(*judgements: dict[str, Any]) -> dict[str, Any]:
    """An answer that fits the question, with these judgements."""
    required = connections._question().schema["required"]
    return dict.fromkeys(required, "About opening hours.") | {"judgements": list(judgements)}


def judged(applies: bool) -> dict[str, Any]:
    return answered({"guideline": "G1", "because": "It is asked.", "applies": applies})


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer=judged(True), api_key=KEY) as server:
        yield server


@pytest.fixture
def tested(client: Client, developer: User, server: OpenAIServer) -> Tested:
    """What the page says of a connection to the server."""

    def test(*, fragment: bool = True, **overrides: Any) -> str:
        values = {"base_url": server.base_url, "api_key": KEY} | overrides
        row = make_connection(**values)
        headers = {"HX-Request": "true"} if fragment else {}
        response = client.post(f"{LIST}{row.pk}/test/", headers=headers)
        assert response.status_code == 200
        return " ".join(response.content.decode().split())

    return test


def test_a_good_server_is_reported_with_its_model_time_and_form(
    tested: Tested, server: OpenAIServer
) -> None:
    html = tested()
    assert "Answers</span> <code>small</code> in " in html
    assert "takes the form of the answer as a JSON Schema" in html
    assert 'class="notice good"' in html
    assert "<html" not in html
    (request,) = server.completions
    assert request.form == "json_schema"
    assert "When are you open on Saturdays?" in request.prompt


def test_without_a_script_the_report_is_a_page(tested: Tested) -> None:
    html = tested(fragment=False)
    assert html.startswith("<!doctype html>")
    assert "takes the form of the answer as a JSON Schema" in html


def test_two_models_are_asked_both_and_one_that_fails_is_told_from_one_that_answers(
    tested: Tested, server: OpenAIServer
) -> None:
    html = tested(model="small", writing_model="large")
    assert "<code>small</code>" in html
    assert "<code>large</code>" in html
    assert sorted(request.body["model"] for request in server.completions) == ["large", "small"]


@pytest.mark.parametrize(
    ("refuses", "said"),
    [
        (["json_schema"], "promises JSON (json_object)"),
        (["json_schema", "json_object"], "takes no form of answer at all"),
    ],
)
def test_a_server_without_schemas_answers_and_the_page_says_how(
    tested: Tested, server: OpenAIServer, refuses: list[str], said: str
) -> None:
    server.refuses = refuses
    html = tested()
    assert "Answers</span>" in html
    assert said in html
    assert 'class="notice warn"' in html


def test_a_model_that_judges_wrongly_is_warned_of(tested: Tested, server: OpenAIServer) -> None:
    server.answer = judged(False)
    assert "judged an easy example wrongly" in tested()


def test_a_model_that_judges_nothing_is_warned_of(tested: Tested, server: OpenAIServer) -> None:
    server.answer = answered()
    assert "judged an easy example wrongly" in tested()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Status(500), "answered 500: it went wrong."),
        (Status(404), "Check the model&#x27;s name"),
        (Say("no JSON at all"), "Failed"),
        (Say(""), "answered with nothing"),
        (Say('{"judgements": 7}'), "Failed"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_never_an_error_page(
    tested: Tested, server: OpenAIServer, step: Any, said: str
) -> None:
    server.plan(step)
    html = tested()
    assert 'class="notice bad"' in html
    assert said in html
    assert len(server.completions) == 1


def test_a_wrong_key_is_named_and_not_shown(tested: Tested) -> None:
    html = tested(api_key="sk-wrong-key-777")
    assert "Check the API key of this model connection." in html
    assert "sk-wrong-key-777" not in html


def test_a_server_that_never_answers_ends_the_test_in_time(
    tested: Tested, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LONGEST_TEST", 0.3)
    server.plan(Hang())
    assert "did not answer in time" in tested()


def test_a_server_that_is_not_there_is_named(tested: Tested, server: OpenAIServer) -> None:
    server.down()
    html = tested()
    assert f"Cannot reach http://127.0.0.1:{server.port}/v1" in html


def test_a_stored_address_that_cannot_work_is_a_sentence(tested: Tested) -> None:
    assert "is no base URL" in tested(base_url="nonsense")
