"""The demo's first sessions, and that the record of each plays again as it was."""

import socket
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.conf import settings
from django.core.management import call_command

from engine.model.offline import OfflineModel
from engine.trail import Served
from studio.demo import data
from studio.demo.sessions import CONVERSATIONS
from studio.models import Agent, ModelCall, Replay, Session, ToolCall, Turn
from studio.operations import lanes
from studio.operations.agents import save_guideline
from studio.operations.replays import CREW, start_replay, verdicts_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setattr(settings, "STUDIO_VAR", tmp_path)
    monkeypatch.setattr(lanes.lane, "delay", lambda *_arguments: None)
    monkeypatch.setattr(lanes, "start", lambda *_arguments: None)
    call_command("load_demo", stdout=StringIO())
    return Agent.objects.get(slug="harbor-bank")


def played(**asked: Any) -> Replay:
    """A replay of all sessions, worked through here."""
    replay = start_replay(list(Session.objects.filter(purpose="chat")), **asked)
    while not Replay.objects.get(pk=replay.pk).is_over:
        lanes.lane(CREW.kind, replay.pk)
    replay.refresh_from_db()
    assert replay.state == Replay.State.FINISHED, replay.error
    return replay


def test_the_demo_comes_with_sessions_that_were_really_had() -> None:
    assert list(Session.objects.order_by("pk").values_list("title", flat=True)) == [
        conversation.title for conversation in CONVERSATIONS
    ]
    assert set(Turn.objects.values_list("state", flat=True)) == {Turn.State.FINISHED}
    assert set(ToolCall.objects.values_list("served", flat=True)) == {Served.LIVE.value}
    ran = set(ToolCall.objects.filter(state="done").values_list("tool", flat=True))
    assert {"get_balance", "transfer_money", "block_card", "hand_over_to_person"} <= ran
    assert ModelCall.objects.filter(turn__prompt_tokens=0).exists()


def test_what_the_sessions_changed_in_the_books_is_put_back() -> None:
    assert data.accounts("ines-duarte")["checking"].cents == 248_137
    assert not data.cards("mira-okafor")["debit card"].blocked_on


def test_loading_it_again_has_no_session_twice() -> None:
    call_command("load_demo", "--reset", stdout=StringIO())
    assert Session.objects.count() == len(CONVERSATIONS)


def test_every_session_plays_from_its_record_without_a_difference_a_model_or_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> NoReturn:
        raise AssertionError("nothing may be asked of anybody")

    before = data.accounts("ines-duarte")
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(OfflineModel, "stream", refuse)
    monkeypatch.setattr(OfflineModel, "answer", refuse)
    monkeypatch.setattr("studio.demo.bank.data", None)  # no tool runs either
    for free_running in (False, True):
        replay = played(against="published", free_running=free_running)
        assert verdicts_of(replay) == {"same": Turn.objects.filter(session__purpose="chat").count()}
    monkeypatch.undo()
    assert data.accounts("ines-duarte") == before


def test_a_new_wording_of_one_guideline_changes_the_turns_that_rested_on_it_and_no_other(
    demo: Agent,
) -> None:
    fees = demo.guidelines.get(condition__contains="about fees")
    fees.condition = "The customer asks for a loan"
    fees.action = "Say that loans are not granted online."
    fees.examples.all().delete()
    save_guideline(fees)

    replay = played(against="draft", until_it_differs=True)

    changed = replay.turns.exclude(verdict="same").select_related("session")
    assert [(t.session.title, t.number, t.verdict) for t in changed] == [
        ("Rates, fees and a branch", 2, "changed")
    ]
    vanished, *_others, reply = changed[0].differences
    assert (vanished["kind"], vanished["guideline"]) == ("guideline", fees.uid)
    assert (vanished["before"]["state"], vanished["after"]["state"]) == ("matched", "not_matched")
    assert reply["kind"] == "reply"
    assert "12 EUR" in reply["before"]
    assert "12 EUR" not in reply["after"]
