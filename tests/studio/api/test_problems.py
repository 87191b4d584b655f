"""What goes wrong in general is a problem document that says what to do."""

from typing import Any

import pytest
from django.test import Client

from studio.api import sessions
from studio.models import ApiToken, Session
from tests.studio.api.calling import Caller, is_problem


def test_an_unknown_address_is_a_problem_with_any_method_and_without_a_token(
    nobody: Caller,
) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        is_problem(nobody(method, "/nothing/here"), 404)
    is_problem(nobody.get("/"), 404)


def test_a_wrong_method_is_a_problem_that_names_the_right_ones(admin: Caller) -> None:
    response = admin.delete("/sessions")
    assert "POST" in is_problem(response, 405)["detail"]
    assert set(response.headers["allow"].split(", ")) == {"GET", "POST"}
    is_problem(admin.get("/sessions/1/messages"), 405)


def test_a_missing_a_wrong_and_an_inactive_token_are_refused(nobody: Caller, admin: Caller) -> None:
    response = nobody.get("/sessions")
    assert "create_token" in is_problem(response, 401)["detail"]
    assert response.headers["www-authenticate"] == "Bearer"
    is_problem(Caller("gs_wrong").get("/sessions"), 401)
    is_problem(nobody.get("/sessions", headers={"authorization": "Basic YTpi"}), 401)
    is_problem(nobody.post("/sessions/1/messages", {"text": "hi"}), 401)
    assert admin.get("/sessions").status_code == 200
    user = ApiToken.objects.get().user
    user.is_active = False
    user.save()
    is_problem(admin.get("/sessions"), 401)


def test_being_signed_in_on_the_pages_is_no_token(admin: Caller) -> None:
    browser = Client()
    browser.force_login(ApiToken.objects.get().user)
    is_problem(browser.get("/api/v1/sessions"), 401)


def test_the_last_use_of_a_token_is_noted_at_most_once_a_minute(
    admin: Caller, django_assert_num_queries: Any
) -> None:
    assert ApiToken.objects.get().last_used_at is None
    admin.get("/sessions")
    noted = ApiToken.objects.get().last_used_at
    assert noted is not None
    admin.get("/sessions")
    assert ApiToken.objects.get().last_used_at == noted


def test_a_user_without_a_role_finds_nothing(caller_as: Any) -> None:
    is_problem(caller_as().get("/sessions"), 404)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b'{"agent": NaN}', "NaN"),
        (b'{"agent": "\xff"}', "not JSON"),
        (b'{"agent": "\\ud800"}', "not JSON"),
        (b'{"agent": "a\\u0000b"}', "U+0000"),
        (b"[" * 100_000, "not JSON"),
        (b"9" * 5_000, "not JSON"),
    ],
)
def test_what_is_no_json_is_a_problem(admin: Caller, body: bytes, said: str) -> None:
    response = admin.client.generic(
        "POST", "/api/v1/sessions", body, "application/json", headers=admin.headers
    )
    assert said in is_problem(response, 400)["detail"]
    assert not Session.objects.exists()


def test_a_backslash_before_u0000_is_text_like_any_other(admin: Caller) -> None:
    is_problem(admin.post("/sessions", {"agent": "\\u0000"}), 404)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "text/xml"])
def test_a_body_that_does_not_say_it_is_json_is_refused(admin: Caller, kind: str) -> None:
    response = admin.client.generic(
        "POST", "/api/v1/sessions", b'{"agent": "depot"}', kind, headers=admin.headers
    )
    assert "Content-Type: application/json" in is_problem(response, 415)["detail"]


def test_no_body_a_list_and_a_text_are_refused(admin: Caller) -> None:
    assert "JSON object" in is_problem(admin.post("/sessions"), 422)["detail"]
    is_problem(admin.post("/sessions", []), 422)
    is_problem(admin.post("/sessions", "agent"), 422)


def test_a_misspelt_and_a_missing_field_are_named(admin: Caller) -> None:
    problem = is_problem(admin.post("/sessions", {"agnet": "depot"}), 422)
    assert {error["field"] for error in problem["errors"]} == {"agent", "agnet"}


def test_a_body_beyond_the_limit_is_refused(admin: Caller) -> None:
    response = admin.post("/sessions", {"agent": "a" * 3_000_000})
    is_problem(response, 413)


def test_wrong_paging_is_named(admin: Caller) -> None:
    for query in ("limit=0", "limit=201", "offset=-1", "limit=x", f"offset={10**30}"):
        problem = is_problem(admin.get(f"/sessions?{query}"), 422)
        assert problem["errors"][0]["field"] == query.split("=")[0]


def test_characters_that_no_database_holds_are_refused_in_addresses(admin: Caller) -> None:
    is_problem(admin.get("/tools/a%00b"), 400)
    is_problem(admin.get("/sessions?agent=a%00"), 400)


def test_numbers_beyond_all_rows_find_nothing(admin: Caller) -> None:
    is_problem(admin.get(f"/sessions/{10**30}"), 404)


def test_a_failure_of_the_studio_tells_a_reference_and_no_more(
    admin: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(sessions, "load_session", fail)
    problem = is_problem(admin.get("/sessions/1"), 500)
    assert "secret" not in str(problem)
    assert problem["reference"] in problem["detail"]
    assert problem["reference"] in caplog.text
    assert "secret detail" in caplog.text
