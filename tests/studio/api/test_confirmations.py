"""`/sessions/{id}/confirmations`: what awaits the customer's word, and the word itself."""

from datetime import timedelta

import pytest
from django.utils import timezone

from studio.models import Event, Session, Turn
from studio.operations.agents import snapshot
from studio.operations.sessions import change_mode
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import ask_to_confirm, make_turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asking(session: Session) -> Turn:
    """A turn whose call awaits the customer's word."""
    turn = make_turn(session, version=snapshot(session.agent))
    ask_to_confirm(turn, "c1", tool="find_parcel", guidelines=["parcel"])
    return turn


def answered() -> list[str]:
    events = Event.objects.filter(kind="confirmation.answered").order_by("offset")
    return [event.data["answer"] for event in events]


def test_what_waits_is_listed_with_all_that_a_front_end_shows(
    admin: Caller, session: Session, asking: Turn
) -> None:
    listed = admin.get(f"/sessions/{session.pk}/confirmations").json()
    assert listed["count"] == 1
    (found,) = listed["items"]
    assert (found["call"], found["tool"], found["turn"]) == ("c1", "find_parcel", 1)
    assert found["tool_description"] == "Where a parcel is."
    assert found["arguments"] == {"amount": 250, "payee": "Leo"}
    assert found["labels"] == {"amount": "amount", "payee": "payee"}
    assert found["guidelines"] == ["parcel"]
    assert (found["answer"], found["answered_in"]) == ("", None)
    assert found["expires_at"] > found["asked_at"]


@pytest.mark.parametrize("answer", ["confirmed", "declined"])
def test_the_word_is_stored_and_the_turn_that_acts_on_it_told(
    admin: Caller, session: Session, asking: Turn, answer: str
) -> None:
    response = admin.post(f"/sessions/{session.pk}/confirmations/c1", {"answer": answer})
    assert response.status_code == 202
    turn = response.json()
    assert (turn["number"], turn["state"]) == (2, "QUEUED")
    (told,) = turn["confirmations"]
    assert (told["call"], told["turn"], told["answer"], told["answered_in"]) == ("c1", 1, answer, 2)
    assert (told["by"], told["because"]) == ("customer", "")
    assert answered() == [answer]
    assert admin.get(f"/sessions/{session.pk}/confirmations").json()["count"] == 0


def test_the_asking_turn_tells_what_came_of_it(
    admin: Caller, session: Session, asking: Turn
) -> None:
    path = f"/sessions/{session.pk}/turns/1"
    assert admin.get(path).json()["confirmations"][0]["answer"] == ""
    admin.post(f"/sessions/{session.pk}/confirmations/c1", {"answer": "declined"})
    (told,) = admin.get(path).json()["confirmations"]
    assert (told["answer"], told["answered_in"]) == ("declined", 2)


def test_the_same_word_again_gives_the_same_turn_and_another_is_a_conflict(
    admin: Caller, session: Session, asking: Turn
) -> None:
    path = f"/sessions/{session.pk}/confirmations/c1"
    first = admin.post(path, {"answer": "confirmed"}).json()
    again = admin.post(path, {"answer": "confirmed"})
    assert (again.status_code, again.json()["number"]) == (202, first["number"])
    problem = is_problem(admin.post(path, {"answer": "declined"}), 409)
    assert problem["detail"] == "It was answered already: confirmed."
    assert answered() == ["confirmed"]


def test_what_expired_is_a_conflict_and_waits_no_more(
    admin: Caller, session: Session, asking: Turn
) -> None:
    event = Event.objects.get(kind="confirmation.asked")
    event.data["asked_at"] = (timezone.now() - timedelta(hours=2)).isoformat()
    event.save()
    assert admin.get(f"/sessions/{session.pk}/confirmations").json()["items"] == []
    answer = admin.post(f"/sessions/{session.pk}/confirmations/c1", {"answer": "confirmed"})
    assert "Nobody answered in time" in is_problem(answer, 409)["detail"]
    assert answered() == []


def test_nothing_is_confirmed_in_manual_mode(admin: Caller, session: Session, asking: Turn) -> None:
    change_mode(session, "manual")
    answer = admin.post(f"/sessions/{session.pk}/confirmations/c1", {"answer": "confirmed"})
    assert "manual mode" in is_problem(answer, 409)["detail"]
    assert answered() == []


@pytest.mark.parametrize("body", [{}, {"answer": "changed"}, {"answer": ""}, {"word": "confirmed"}])
def test_what_is_no_word_is_refused(
    admin: Caller, session: Session, asking: Turn, body: dict[str, str]
) -> None:
    is_problem(admin.post(f"/sessions/{session.pk}/confirmations/c1", body), 422)
    assert answered() == []


def test_what_never_waited_is_not_found(admin: Caller, session: Session, asking: Turn) -> None:
    body = {"answer": "confirmed"}
    is_problem(admin.post(f"/sessions/{session.pk}/confirmations/c2", body), 404)
    is_problem(admin.post(f"/sessions/{session.pk + 9}/confirmations/c1", body), 404)


def test_a_changed_mode_is_an_event(admin: Caller, session: Session) -> None:
    path = f"/sessions/{session.pk}"
    assert admin.patch(path, {"mode": "manual"}).json()["mode"] == "manual"
    assert admin.patch(path, {"mode": "manual"}).json()["mode"] == "manual"
    assert admin.patch(path, {"mode": "auto", "title": "Back"}).json()["mode"] == "auto"
    found = admin.get(f"{path}/events").json()["items"]
    assert [(e["kind"], e["source"], e["data"]["mode"]) for e in found] == [
        ("mode", "operator", "manual"),
        ("mode", "operator", "auto"),
    ]
    is_problem(admin.patch(path, {"mode": "robot"}), 422)
