"""Branches of sessions, over the API."""

from collections.abc import Callable

import pytest

from studio.models import Session, Turn
from tests.studio.api.calling import Caller, is_problem
from tests.studio.conversations import Recorded

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    for text in ("one", "two", "three"):
        turn = recorded.turn(text)
        recorded.event(turn, "message", text=f"re {text}")
    return recorded


def address(recorded: Recorded, rest: str) -> str:
    return f"/sessions/{recorded.session.pk}/{rest}"


def test_a_branch_goes_on_after_a_turn(admin: Caller, recorded: Recorded) -> None:
    answer = admin.post(address(recorded, "branches"), {"from_turn": 2})

    assert answer.status_code == 201
    made = answer.json()["session"]
    assert made["branched_after"] == 2
    assert made["root"] == recorded.session.pk
    assert answer.json()["turn"] is None
    turns = admin.get(f"/sessions/{made['id']}/turns").json()
    assert [turn["number"] for turn in turns["items"]] == [1, 2]
    events = admin.get(f"/sessions/{made['id']}/events").json()["items"]
    texts = [event["data"]["text"] for event in events if event["kind"] == "message"]
    assert texts == ["one", "re one", "two", "re two"]
    tree = admin.get(address(recorded, "branches")).json()
    assert [row["id"] for row in tree["items"]] == [recorded.session.pk, made["id"]]


def test_other_words_are_sent_at_once(admin: Caller, recorded: Recorded) -> None:
    answer = admin.post(address(recorded, "branches"), {"from_turn": 1, "text": "deux"})

    assert answer.status_code == 202
    assert answer.json()["turn"]["number"] == 2
    assert answer.json()["turn"]["messages"][0]["text"] == "deux"


def test_a_turn_is_regenerated_in_a_sibling(admin: Caller, recorded: Recorded) -> None:
    answer = admin.post(address(recorded, "turns/3/regenerate"))

    assert answer.status_code == 202
    assert answer.json()["turn"]["state"] == "QUEUED"
    assert answer.json()["turn"]["messages"][0]["text"] == "three"
    assert answer.json()["session"]["branched_after"] == 2
    assert Turn.objects.filter(session=recorded.session).count() == 3


def test_who_may_not_converse_may_not_branch(
    caller_as: Callable[..., Caller], recorded: Recorded
) -> None:
    stranger = caller_as()
    assert stranger.post(address(recorded, "branches"), {"from_turn": 1}).status_code == 404
    assert stranger.post(address(recorded, "turns/1/regenerate")).status_code == 404
    assert Session.objects.count() == 1


def test_what_is_not_there_is_refused_in_words(admin: Caller, recorded: Recorded) -> None:
    gone = admin.post(address(recorded, "branches"), {"from_turn": 9})
    assert is_problem(gone, 409)
    assert "no turn 9" in gone.json()["detail"]
    assert is_problem(admin.post(address(recorded, "branches"), {"from_turn": -1}), 422)
    assert is_problem(admin.post(address(recorded, "branches"), {"from_turn": 1, "text": " "}), 422)
    assert is_problem(admin.post(address(recorded, "turns/9/regenerate")), 404)
    assert Session.objects.count() == 1
