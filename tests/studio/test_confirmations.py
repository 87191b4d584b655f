"""Calls that await the customer's word: the card in the chat, its buttons, the ledger, and that a call runs once."""

import re
import threading
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from engine.errors import ModelError, ModelErrorKind
from engine.events import Answer
from engine.kit import Models
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    infers,
    matches,
    reads,
    replies,
    said,
)
from studio.audit import audit
from studio.ledger_text import ledger_text
from studio.models import Event, Guideline, Session, Tool, ToolCall, Turn
from studio.operations import running, turns
from studio.operations.agents import save_guideline
from studio.operations.confirmations import (
    ConfirmationRefusedError,
    ConfirmationUnknownError,
    answer_confirmation,
    pending_confirmations,
)
from studio.operations.sessions import change_mode, open_session
from studio.operations.turns import send_message, sweep
from tests.studio.factories import ask_to_confirm, make_agent, make_session, make_turn, make_user

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
ASKED = "Shall I send 50 to Ann?"
SENT = [("send_money", {"amount": 50, "payee": "Ann", "channel": "web-7"})]


@pytest.fixture
def session() -> Session:
    """An agent with one guideline, which owns a tool that changes something; one of its parameters is hidden."""
    agent = make_agent(slug="bank", name="Bank")
    tool = Tool.objects.create(
        name="send_money",
        description="Sends money to somebody.\nAnd more.",
        consequential=True,
        parameters=[
            {"name": "amount", "schema": {"type": "integer"}},
            {"name": "payee", "schema": {"type": "string"}, "display_name": "receiver"},
            {
                "name": "channel",
                "schema": {"type": "string"},
                "required": False,
                "default": "web-7",
                "hidden": True,
            },
        ],
    )
    agent.tools.add(tool)
    save_guideline(
        Guideline(agent=agent, condition="the customer wants to send money", action="send it"),
        tools=[tool],
    )
    return open_session(agent=agent)


class Stage:
    """Plays turns with these answers and a tool that keeps what it was called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.tools = ScriptedTools({"send_money": lambda a, _c: {"sent": a["amount"]}})
        self.model = ScriptedModel()
        monkeypatch.setattr(running, "tools_for", lambda _tools: self.tools)

    def play(self, turn: Turn, *expected: Expected) -> Turn:
        self.model = ScriptedModel(*expected)
        self._monkeypatch.setattr(running, "models_for", lambda _s: Models.same(self.model))
        turns.run_turn(turn.pk)
        self.model.assert_used_up()
        turn.refresh_from_db()
        return turn


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def asks(session: Session, stage: Stage) -> str:
    """The customer wants to send 50 to Ann, and is asked; the uid of the call that waits."""
    turn = send_message(session, text="Send 50 to Ann")
    assert turn is not None
    arguments = {"amount": said(50, "50"), "payee": said("Ann", "Ann")}
    stage.play(turn, matches("G1"), infers("send_money", arguments), replies(ASKED, "G1"))
    assert turn.state == Turn.State.FINISHED
    (pending,) = pending_confirmations(fresh(session))
    return pending.call


def fresh(session: Session) -> Session:
    return Session.objects.get(pk=session.pk)


def answered(session: Session) -> list[str]:
    events = session.events.filter(kind="confirmation.answered").order_by("offset")
    return [event.data["answer"] for event in events]


@pytest.fixture
def qa(client: Client) -> User:
    person = make_user("qa")
    client.force_login(person)
    return person


def page(client: Client, session: Session, query: str = "") -> str:
    response = client.get(reverse("session", args=[session.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def chat(client: Client, session: Session) -> str:
    return words(page(client, session).split('id="log"')[1].split('id="end"')[0])


def press(client: Client, session: Session, call: str, answer: str, **headers: str) -> Any:
    address = reverse("session-confirmation", args=[session.pk, call])
    return client.post(address, {"answer": answer}, headers=headers)


# --- the card, its buttons, and what comes of them


def test_what_waits_is_a_card_in_words_with_buttons(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    html = page(client, session)
    card = html.split(f'id="confirm-{call}"')[1].split("</div>\n")[0]
    told = words(card)
    assert "Send money" in told
    assert "Sends money to somebody." in told
    assert "And more." not in told
    assert "receiver Ann" in words(html)
    assert "amount 50" in words(html)
    assert "web-7" not in chat(client, session)  # hidden from customers
    assert html.count('value="confirmed"') == html.count('value="declined"') == 1
    assert "One call waits for confirmation." in html


def test_confirming_runs_exactly_what_was_asked_without_inferring_again(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    response = press(client, session, call, "confirmed", **HTMX)
    assert response.status_code == 200
    fragment = response.content.decode()
    assert 'id="turn-1"' in fragment  # its card has become a line
    assert 'value="confirmed"' not in fragment
    assert not stage.tools.called
    turn = stage.play(Turn.objects.get(number=2), replies("Sent.", "G1"))
    assert stage.tools.called == SENT
    assert turn.state == Turn.State.FINISHED
    assert ToolCall.objects.get().uid == call
    read = chat(client, session)
    assert "send_money was confirmed · turn 2" in read
    assert "Confirmed Send money" in read
    assert "ran send_money" in read


def test_declining_runs_nothing_and_is_answered(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    response = press(client, session, call, "declined")
    assert response.status_code == 302
    turn = stage.play(Turn.objects.get(number=2), replies("All right, nothing was sent."))
    assert turn.state == Turn.State.FINISHED
    assert not stage.tools.called
    assert "send_money was declined · turn 2" in chat(client, session)


def test_the_answer_belongs_to_the_turn_that_acts_on_it(session: Session, stage: Stage) -> None:
    call = asks(session, stage)
    turn = answer_confirmation(session, call, Answer.CONFIRMED)
    event = Event.objects.get(kind="confirmation.answered")
    assert (event.turn, event.source, event.data["because"]) == (turn, "customer", "")
    assert turn.first_offset == event.offset
    assert turn.state == Turn.State.QUEUED


def test_a_message_right_after_the_button_joins_the_same_turn(
    session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    turn = answer_confirmation(session, call, Answer.CONFIRMED)
    assert send_message(session, text="Thanks!") == turn
    assert Turn.objects.count() == 2


def test_the_button_supersedes_a_turn_that_runs(session: Session, stage: Stage) -> None:
    call = asks(session, stage)
    busy = make_turn(session, state="RUNNING")
    turn = answer_confirmation(session, call, Answer.CONFIRMED)
    busy.refresh_from_db()
    assert busy.stop_reason == Turn.StopReason.MESSAGE
    assert turn.number == busy.number + 1


def test_buttons_come_with_the_reply_that_asks(client: Client, qa: User) -> None:
    session = make_session()
    turn = make_turn(session, state="RUNNING")
    ask_to_confirm(turn, "c1")
    assert 'value="confirmed"' not in page(client, session)
    Turn.objects.filter(pk=turn.pk).update(state="FINISHED", finished_at=timezone.now())
    assert 'value="confirmed"' in page(client, session)


def test_words_do_what_the_button_does(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    turn = send_message(session, text="yes, go ahead")
    assert turn is not None
    stage.play(turn, reads("confirmed"), replies("Sent.", "G1"))
    assert stage.tools.called == SENT
    assert "send_money was confirmed · turn 2" in chat(client, session)
    assert press(client, session, call, "declined", **HTMX).status_code == 422


# --- ledger


def test_the_ledger_of_the_asking_turn_says_what_it_waits_for_and_then_what_came_of_it(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    waiting = words(page(client, session, "?turn=1").split('id="ledger"')[1])
    assert "Awaiting confirmation" in waiting
    assert "It is done only once the customer says yes." in waiting
    assert "customer: “50”" in waiting
    stage.play(answer_confirmation(session, call, Answer.CONFIRMED), replies("Sent.", "G1"))
    html = page(client, session, "?turn=1").split('id="ledger"')[1]
    assert "The customer confirmed it, turn 2" in words(html)
    assert reverse("session-turn", args=[session.pk, 2]) in html


def test_the_ledger_of_the_answering_turn_leads_back_to_where_it_was_asked(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    turn = stage.play(answer_confirmation(session, call, Answer.CONFIRMED), replies("Sent.", "G1"))
    html = page(client, session, "?turn=2").split('id="ledger"')[1]
    assert "The customer confirmed it. Asked for in turn 1 . The customer confirmed it." in words(
        html
    )
    assert "by button" in html
    assert reverse("session-turn", args=[session.pk, 1]) in html
    printed = ledger_text(audit(turn))
    assert "Ran send_money" in printed
    assert "Asked for in turn 1. The customer confirmed it." in printed


def test_what_was_declined_stands_in_the_ledger_although_nothing_was_decided(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    turn = stage.play(answer_confirmation(session, call, Answer.DECLINED), replies("All right."))
    html = words(page(client, session, "?turn=2").split('id="ledger"')[1])
    assert "Declined send_money" in html
    assert "The customer declined it." in html
    assert "Declined send_money" in ledger_text(audit(turn))


# --- once


def test_two_tabs_confirm_at_once_and_it_counts_once(session: Session, stage: Stage) -> None:
    call = asks(session, stage)
    person = make_user("qa")
    codes: list[int] = []
    together = threading.Barrier(2)

    def confirm() -> None:
        try:
            client = Client()
            client.force_login(person)
            together.wait()
            codes.append(press(client, session, call, "confirmed", **HTMX).status_code)
        finally:
            connections.close_all()

    tabs = [threading.Thread(target=confirm) for _ in range(2)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert codes == [200, 200]
    assert answered(session) == ["confirmed"]
    assert Turn.objects.count() == 2
    stage.play(Turn.objects.get(number=2), replies("Sent.", "G1"))
    turns.run_turn(Turn.objects.get(number=2).pk)
    assert len(stage.tools.called) == 1


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("confirmed", "declined", "It was answered already: confirmed."),
        ("declined", "confirmed", "It was answered already: declined."),
    ],
)
def test_another_answer_afterwards_is_refused_in_words(
    client: Client, qa: User, session: Session, stage: Stage, first: str, second: str, why: str
) -> None:
    call = asks(session, stage)
    press(client, session, call, first)
    fragment = press(client, session, call, second, **HTMX)
    assert fragment.status_code == 422
    assert why in fragment.content.decode()
    assert "<html" not in fragment.content.decode()
    whole = press(client, session, call, second)
    assert whole.status_code == 422
    assert why in whole.content.decode()
    assert answered(session) == [first]


def test_a_worker_that_dies_after_the_word_runs_the_call_once(
    session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    turn = answer_confirmation(session, call, Answer.CONFIRMED)
    assert Turn.objects.claim(turn.pk)  # by a worker that is never heard of again
    Turn.objects.filter(pk=turn.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert sweep() == 1
    stage.play(turn, replies("Sent.", "G1"))
    assert stage.tools.called == SENT


def test_a_call_found_started_after_a_crash_is_not_run_again_and_a_person_has_to_look(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    turn = answer_confirmation(session, call, Answer.CONFIRMED)
    down = ModelError("Down.", kind=ModelErrorKind.SERVER, retryable=True)
    stage.play(turn, Expected(question="ComposeReply", answer=down))
    # As a worker that was killed in mid-call would have left it.
    turn.calls.update(state="started", result=None, ended_at=None)
    session.events.filter(kind="tool.finished").delete()
    checkpoint = {"step": "confirming", "iteration": 1}
    gone = timezone.now() - timedelta(minutes=1)
    Turn.objects.filter(pk=turn.pk).update(
        state="RUNNING", finished_at=None, checkpoint=checkpoint, heartbeat_at=gone
    )
    assert sweep() == 1
    stage.tools.called.clear()
    stage.play(turn, replies("I do not know whether it was sent."))
    assert not stage.tools.called
    assert ToolCall.objects.get().uid == call
    assert ToolCall.objects.get().state == "unknown"
    assert "a person has to look" in chat(client, session)
    html = words(page(client, session, "?turn=2").split('id="ledger"')[1])
    assert "Outcome unknown send_money" in html
    assert "A person has to look:" in html
    assert "A person has to look: a call was started" in ledger_text(audit(turn))


def test_a_call_that_an_earlier_turn_left_behind_is_named_where_it_is_found(
    client: Client, qa: User
) -> None:
    session = make_session()
    make_turn(session)
    later = make_turn(session)
    lost = {
        "call": "c9",
        "tool": "send_money",
        "arguments": {"amount": 5},
        "error": {"kind": "unknown_outcome", "public": "Unknown.", "detail": ""},
    }
    Event.objects.create(
        session=session, turn=later, offset=90, kind="tool.finished", source="system", data=lost
    )
    assert "send_money ended nobody knows how: a person has to look" in chat(client, session)
    assert "A person has to look:" in words(page(client, session).split('id="ledger"')[1])


# --- too late, or not like that


def late(session: Session, stage: Stage, **changes: Any) -> str:
    call = asks(session, stage)
    event = Event.objects.get(kind="confirmation.asked")
    event.data |= changes
    event.save()
    return call


def test_what_nobody_answered_in_time_expires(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = late(session, stage, asked_at=(timezone.now() - timedelta(hours=1)).isoformat())
    assert 'value="confirmed"' not in page(client, session)
    assert "send_money expired unanswered" in chat(client, session)
    refused = press(client, session, call, "confirmed", **HTMX)
    assert refused.status_code == 422
    assert "Nobody answered in time" in refused.content.decode()
    assert answered(session) == []
    assert Turn.objects.count() == 1


def test_after_five_turns_the_button_is_gone(session: Session) -> None:
    session = make_session()
    ask_to_confirm(make_turn(session), "c1")
    for _ in range(4):
        make_turn(session)
    assert [found.call for found in pending_confirmations(fresh(session))] == ["c1"]
    make_turn(session)
    assert pending_confirmations(fresh(session)) == []
    with pytest.raises(ConfirmationRefusedError, match="Nobody answered in time"):
        answer_confirmation(session, "c1", Answer.CONFIRMED)


def test_in_manual_mode_nothing_can_be_confirmed_until_the_session_is_handed_back(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    change_mode(session, "manual")
    html = page(client, session)
    assert 'value="confirmed"' not in html
    assert "hand back to the agent, then it can be confirmed" in html
    refused = press(client, session, call, "confirmed", **HTMX)
    assert refused.status_code == 422
    assert "manual mode" in refused.content.decode()
    change_mode(session, "auto")
    assert 'value="confirmed"' in page(client, session)
    assert press(client, session, call, "confirmed", **HTMX).status_code == 200


def test_only_yes_or_no_are_answers(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    for answer in ("", "changed", "expired", "maybe"):
        assert press(client, session, call, answer, **HTMX).status_code == 422
    assert answered(session) == []


def test_a_call_that_never_waited_is_not_found(
    client: Client, qa: User, session: Session, stage: Stage
) -> None:
    call = asks(session, stage)
    assert press(client, session, "nothing", "confirmed").status_code == 404
    other = make_session()
    assert press(client, other, call, "confirmed").status_code == 404
    with pytest.raises(ConfirmationUnknownError):
        answer_confirmation(other, call, Answer.CONFIRMED)
    assert answered(session) == []


def test_a_stranger_confirms_nothing(client: Client, session: Session, stage: Stage) -> None:
    call = asks(session, stage)
    client.force_login(make_user())
    assert press(client, session, call, "confirmed").status_code == 404
    assert answered(session) == []


def test_a_confirmation_is_posted(client: Client, qa: User, session: Session, stage: Stage) -> None:
    call = asks(session, stage)
    address = reverse("session-confirmation", args=[session.pk, call])
    assert client.get(address).status_code == 405


# --- several


@pytest.fixture
def two() -> Session:
    session = make_session()
    turn = make_turn(session)
    ask_to_confirm(turn, "c1", arguments={"amount": 1}, labels={"amount": "amount"})
    ask_to_confirm(turn, "c2", arguments={"amount": 2}, labels={"amount": "amount"})
    return fresh(session)


def test_each_of_two_calls_has_its_own_answer(client: Client, qa: User, two: Session) -> None:
    assert "2 calls wait for confirmation." in page(client, two)
    press(client, two, "c2", "declined")
    press(client, two, "c1", "confirmed")
    # Both before a worker came: one turn acts on both.
    assert Turn.objects.filter(session=two).count() == 2
    assert answered(two) == ["declined", "confirmed"]
    assert 'value="confirmed"' not in page(client, two)
