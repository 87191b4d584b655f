"""Messages, the turns that answer them, and their audit."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from engine.kit import Models
from engine.testing import ScriptedModel, ScriptedTools, infers, matches, replies, said
from studio.audit import audit
from studio.models import Event, Session, Turn
from studio.operations import running
from studio.operations.turns import run_turn, send_message
from tests.studio.api.calling import Caller, InThread, is_problem

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, unwatched: None) -> None:
    """The next turn finds the parcel; its second guideline always applies."""
    model = ScriptedModel(
        matches("G1"),
        infers("find_parcel", {"number": said("P-7")}),
        replies("It is in Lyon.", "G1", "G2"),
    )
    tools = ScriptedTools({"find_parcel": lambda _a, _c: {"place": "Lyon"}})
    monkeypatch.setattr(running, "models_for", lambda _session: Models.same(model))
    monkeypatch.setattr(running, "tools_for", lambda _tools: tools)


def say(session: Session, text: str = "Where is P-7?") -> Turn:
    turn = send_message(session, text=text)
    assert turn is not None
    return turn


def test_a_message_is_stored_and_its_turn_told(admin: Caller, session: Session) -> None:
    response = admin.post(f"/sessions/{session.pk}/messages", {"text": " Where is P-7? "})
    assert response.status_code == 202
    turn = response.json()
    assert (turn["number"], turn["state"], turn["version"], turn["reply"]) == (
        1,
        "QUEUED",
        None,
        "",
    )
    assert Event.objects.get().data["text"] == "Where is P-7?"


def test_who_waits_gets_the_finished_turn(admin: Caller, session: Session, answering: None) -> None:
    asking = InThread(
        lambda: admin.post(f"/sessions/{session.pk}/messages?wait=20", {"text": "Where is P-7?"})
    )
    while (turn := session.turns.first()) is None:
        time.sleep(0.01)
    run_turn(turn.pk)
    asking.join(5)
    assert asking.answer.status_code == 200
    finished = asking.answer.json()
    assert (finished["state"], finished["reply"]) == ("FINISHED", "It is in Lyon.")
    assert finished == admin.get(f"/sessions/{session.pk}/turns/1").json()


def test_who_waits_in_vain_gets_the_turn_as_it_is(admin: Caller, session: Session) -> None:
    started = time.monotonic()
    response = admin.post(f"/sessions/{session.pk}/messages?wait=0.2", {"text": "hello"})
    assert (response.status_code, response.json()["state"]) == (202, "QUEUED")
    assert 0.2 <= time.monotonic() - started < 2


def test_the_audit_tells_everything_that_was_decided(
    admin: Caller, session: Session, answering: None
) -> None:
    run_turn(say(session).pk)
    told = admin.get(f"/sessions/{session.pk}/turns/1").json()
    assert (told["number"], told["state"], told["version"]) == (1, "FINISHED", "draft")
    assert len(told["fingerprint"]) == 64
    assert told["duration_ms"] > 0
    assert told["prompt_tokens"] == sum(c["prompt_tokens"] for c in told["model_calls"])
    assert [(m["source"], m["text"]) for m in told["messages"]] == [
        ("customer", "Where is P-7?"),
        ("agent", "It is in Lyon."),
    ]
    by_uid = {match["guideline"]: match for match in told["matches"]}
    assert by_uid["parcel"]["state"] == by_uid["brief"]["state"] == "matched"
    assert (by_uid["parcel"]["condition"], by_uid["parcel"]["action"]) == (
        "asks for a parcel",
        "find it",
    )
    (decision,) = told["decisions"]
    assert (decision["guideline"], decision["tool"], decision["state"]) == (
        "parcel",
        "find_parcel",
        "NEEDS_TO_RUN",
    )
    assert decision["tool_description"] == "Where a parcel is."
    (argument,) = decision["arguments"]
    assert (argument["name"], argument["value"]) == ("number", "P-7")
    assert (argument["source"], argument["verified"]) == ("customer", True)
    (call,) = told["calls"]
    assert call["uid"] == decision["call"]
    assert (call["arguments"], call["state"], call["error"]) == ({"number": "P-7"}, "done", None)
    assert call["result"] == {"data": {"place": "Lyon"}, "metadata": {}}
    assert call["duration_ms"] >= 0
    assert {a["guideline"] for a in told["adherence"]} == {"parcel", "brief"}
    for asked in told["model_calls"]:
        assert asked["request_key"]
        assert asked["attempt"] == 1
        assert asked["duration_ms"] >= 0
        assert "messages" not in asked
    assert told["insights"] == []


def test_the_audit_tells_the_prompts_word_for_word_on_demand(
    admin: Caller, session: Session, answering: None
) -> None:
    run_turn(say(session).pk)
    told = admin.get(f"/sessions/{session.pk}/turns/1?prompts=true").json()
    first = told["model_calls"][0]
    assert any("asks for a parcel" in message["content"] for message in first["messages"])
    assert first["messages"][0]["role"] == "system"
    assert first["schema"]["type"] == "object"
    assert first["answer_text"]


def test_an_audit_takes_the_same_queries_however_much_was_decided(
    session: Session, answering: None, django_assert_num_queries: Any
) -> None:
    run_turn(say(session).pk)
    turn = Turn.objects.select_related("session", "version").get()
    audit(turn)
    with django_assert_num_queries(
        8
    ):  # messages, matches, decisions, calls, insights, choices, adherence, model calls
        audit(turn)
    with django_assert_num_queries(9):  # and the parts of the prompts
        audit(turn, prompts=True)


def test_the_audit_shows_the_text_that_was_in_force(
    admin: Caller, session: Session, answering: None
) -> None:
    run_turn(say(session).pk)
    session.agent.guidelines.filter(uid="parcel").update(condition="something else")
    told = admin.get(f"/sessions/{session.pk}/turns/1").json()
    assert "asks for a parcel" in {match["condition"] for match in told["matches"]}


def test_turns_are_listed_with_their_replies(
    admin: Caller, session: Session, answering: None, django_assert_num_queries: Any
) -> None:
    run_turn(say(session).pk)
    path = f"/sessions/{session.pk}/turns"
    admin.get(path)
    with django_assert_num_queries(6):  # token, roles, session, turns, replies, count
        listed = admin.get(path).json()
    assert listed["count"] == 1
    assert (listed["items"][0]["reply"], listed["items"][0]["state"]) == (
        "It is in Lyon.",
        "FINISHED",
    )
    for number in range(2, 6):
        turn = Turn.objects.create(session=session, number=number, first_offset=0)
        Turn.objects.filter(pk=turn.pk).update(state="FAILED", reference="abc")
    with django_assert_num_queries(6):
        page = admin.get(f"{path}?limit=2&offset=3").json()
    assert page["count"] == 5
    assert [item["number"] for item in page["items"]] == [4, 5]
    assert page["items"][0]["reference"] == "abc"


@pytest.mark.parametrize("source", ["operator", "agent"])
def test_what_the_studio_says_itself_is_answered_by_nobody(
    admin: Caller, session: Session, source: str
) -> None:
    response = admin.post(
        f"/sessions/{session.pk}/messages?wait=5", {"text": "One moment", "source": source}
    )
    assert (response.status_code, response.json()) == (201, {"turn": None})
    assert Event.objects.get().source == source


def test_in_manual_mode_nobody_answers(admin: Caller, session: Session) -> None:
    admin.patch(f"/sessions/{session.pk}", {"mode": "manual"})
    response = admin.post(f"/sessions/{session.pk}/messages", {"text": "hello"})
    assert (response.status_code, response.json()) == (201, {"turn": None})
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n\t "}, "text"),
        ({"text": "x" * 100_000}, "text"),
        ({"text": 5}, "text"),
        ({"text": None}, "text"),
        ({}, "text"),
        ({"text": "hi", "source": "system"}, "source"),
        ({"text": "hi", "turn": 3}, "turn"),
    ],
)
def test_a_bad_message_is_named_and_not_stored(
    admin: Caller, session: Session, body: dict[str, Any], field: str
) -> None:
    problem = is_problem(admin.post(f"/sessions/{session.pk}/messages", body), 422)
    assert field in {error["field"] for error in problem["errors"]}
    assert not Event.objects.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "inf", "soon"])
def test_a_wait_outside_0_to_60_is_refused_and_nothing_stored(
    admin: Caller, session: Session, wait: str
) -> None:
    path = f"/sessions/{session.pk}/messages?wait={wait}"
    problem = is_problem(admin.post(path, {"text": "hello"}), 422)
    assert problem["errors"][0]["field"] == "wait"
    assert not Event.objects.exists()


def test_a_waiting_turn_is_stopped_and_stopping_again_changes_nothing(
    admin: Caller, session: Session
) -> None:
    say(session)
    path = f"/sessions/{session.pk}/turns/1/stop"
    first = admin.post(path)
    assert (first.status_code, first.json()["state"]) == (200, "STOPPED")
    events = Event.objects.count()
    assert admin.post(path).json()["state"] == "STOPPED"
    assert Event.objects.count() == events


def test_a_running_turn_is_asked_to_stop(admin: Caller, session: Session) -> None:
    turn = say(session)
    Turn.objects.claim(turn.pk)
    turn.refresh_from_db()
    response = admin.post(f"/sessions/{session.pk}/turns/1/stop")
    assert (response.status_code, response.json()["state"]) == (202, "RUNNING")
    turn.refresh_from_db()
    assert turn.stop_reason == Turn.StopReason.PERSON


def test_a_stopped_turn_is_retried_and_one_that_waits_is_not(
    admin: Caller, session: Session
) -> None:
    say(session)
    admin.post(f"/sessions/{session.pk}/turns/1/stop")
    path = f"/sessions/{session.pk}/turns/1/retry"
    again = admin.post(path)
    assert (again.status_code, again.json()["state"]) == (202, "QUEUED")
    is_problem(admin.post(path), 409)


def test_a_finished_turn_is_not_retried(admin: Caller, session: Session, answering: None) -> None:
    run_turn(say(session).pk)
    is_problem(admin.post(f"/sessions/{session.pk}/turns/1/retry"), 409)


def test_what_is_not_there_is_not_found(admin: Caller, session: Session) -> None:
    is_problem(admin.post("/sessions/999/messages", {"text": "hi"}), 404)
    is_problem(admin.get("/sessions/999/turns"), 404)
    for method, path in (("GET", "9"), ("POST", "9/stop"), ("POST", "9/retry")):
        is_problem(admin(method, f"/sessions/{session.pk}/turns/{path}"), 404)


def test_strangers_neither_talk_nor_read(
    caller_as: Callable[..., Caller], nobody: Caller, session: Session
) -> None:
    say(session)
    for method, path in (
        ("POST", "messages"),
        ("GET", "turns"),
        ("GET", "turns/1"),
        ("POST", "turns/1/stop"),
        ("POST", "turns/1/retry"),
    ):
        body = {"text": "hi"} if path == "messages" else None
        is_problem(nobody(method, f"/sessions/{session.pk}/{path}", body), 401)
        is_problem(caller_as()(method, f"/sessions/{session.pk}/{path}", body), 404)
    assert Event.objects.count() == 1
