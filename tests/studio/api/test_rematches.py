"""Trying another wording on a turn, over the API."""

from collections.abc import Callable
from typing import Any

import pytest

from studio.models import Rematch, Turn
from studio.operations.rematches import rematch
from tests.studio.api.calling import Caller, InThread, is_problem
from tests.studio.conversations import Recorded, make_bank

pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> Recorded:
    told = Recorded(make_bank("the customer asks for the balance", "the customer says thanks"))
    told.match(told.turn("Thank you!"), 1, "not_matched", "No.")
    return told


def path(told: Recorded, *rest: object, turn: int = 1) -> str:
    parts = [f"/sessions/{told.session.pk}/turns/{turn}/rematches", *map(str, rest)]
    return "/".join(parts)


def test_a_try_is_queued_read_and_listed(admin: Caller, told: Recorded) -> None:
    body = {"guideline": told.uid(1), "condition": "the customer thanks us"}
    answer = admin.post(path(told), body)

    assert answer.status_code == 202
    made = answer.json()
    assert (made["state"], made["turn"], made["result"]) == ("queued", 1, None)
    assert made["condition"] == "the customer thanks us"
    assert made["started_by"] == "admin"
    assert admin.post(path(told), body).json()["id"] == made["id"]  # on its way already

    rematch(made["id"])  # the offline model

    read = admin.get(path(told, made["id"])).json()
    assert read["state"] == "finished"
    assert read["result"]["state"] == "matched"
    assert read["result"]["because"]
    assert read["result"]["model"] == "offline"
    assert admin.get(path(told)).json() == {"items": [read], "count": 1}
    assert admin.get(f"{path(told)}?guideline={told.uid(0)}").json()["count"] == 0


def test_without_a_condition_the_recorded_one_is_judged_again(
    admin: Caller, told: Recorded
) -> None:
    made = admin.post(path(told), {"guideline": told.uid(1)}).json()
    assert made["condition"] == "the customer says thanks"


@pytest.mark.django_db(transaction=True)
def test_who_waits_gets_the_result(admin: Caller, told: Recorded) -> None:
    asking = InThread(
        lambda: admin.post(f"{path(told)}?wait=20", {"guideline": told.uid(1), "condition": "x"})
    )
    while not Rematch.objects.exists():
        asking.join(0.02)
    rematch(Rematch.objects.get().pk)
    asking.join(20)
    assert asking.answer.status_code == 200
    assert asking.answer.json()["result"]["state"] == "not_matched"


def test_a_try_is_stopped(admin: Caller, told: Recorded) -> None:
    made = admin.post(path(told), {"guideline": told.uid(1)}).json()
    stopped = admin.post(path(told, made["id"], "stop"))
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")
    row = Rematch.objects.create(
        turn=Turn.objects.get(), guideline=told.uid(1), condition="x", state="running"
    )
    assert admin.post(path(told, row.pk, "stop")).status_code == 202


def test_the_list_has_pages_and_as_many_queries_with_many(
    admin: Caller, told: Recorded, django_assert_num_queries: Any
) -> None:
    turn = Turn.objects.get()
    for number in range(30):
        Rematch.objects.create(turn=turn, guideline=told.uid(1), condition=f"c{number}")
    page = admin.get(f"{path(told)}?limit=2&offset=1").json()
    assert [item["condition"] for item in page["items"]] == ["c28", "c27"]
    assert page["count"] == 30


def test_who_may_not_converse_may_not_try(
    caller_as: Callable[..., Caller], told: Recorded, nobody: Caller
) -> None:
    body = {"guideline": told.uid(1)}
    assert is_problem(nobody.post(path(told), body), 401)
    assert is_problem(caller_as().post(path(told), body), 404)
    assert not Rematch.objects.exists()


def test_what_cannot_be_is_refused_in_words(admin: Caller, told: Recorded) -> None:
    uid = told.uid(1)
    unknown = is_problem(admin.post(path(told), {"guideline": "nothing"}), 422)
    assert unknown["errors"][0]["field"] == "guideline"
    empty = is_problem(admin.post(path(told), {"guideline": uid, "condition": " "}), 422)
    assert empty["errors"][0]["field"] == "condition"
    long = is_problem(admin.post(path(told), {"guideline": uid, "condition": "x" * 10_001}), 422)
    assert "10001" in long["detail"]
    assert is_problem(admin.post(path(told), {"guideline": uid, "wording": "x"}), 422)
    assert is_problem(admin.post(path(told, turn=9), {"guideline": uid}), 404)
    assert is_problem(admin.get(path(told, 99)), 404)
    assert is_problem(admin.post(path(told, 99, "stop")), 404)
    Turn.objects.update(state=Turn.State.RUNNING)
    running = is_problem(admin.post(path(told), {"guideline": uid}), 409)
    assert "still running" in running["detail"]
    assert not Rematch.objects.exists()
