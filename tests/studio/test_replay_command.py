"""`manage.py replay`: a verdict for each turn, differences as sentences, and what a build reads of the exit code."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engine.testing import matches, replies
from studio.models import Replay
from studio.operations import lanes
from studio.operations.variants import Edit, save_edit
from tests.studio.replayed_depot import HELLO, Depot, asks_where, play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unwatched")]


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch, db: None) -> Depot:
    depot = Depot(monkeypatch)
    # In this thread: a test's rows are seen by no other before they are committed.
    monkeypatch.setattr(lanes, "play_here", lambda _crew, replay, **_how: play(replay))
    return depot


def run(*words: Any) -> tuple[int, str]:
    """The exit code, and all that was said."""
    out = StringIO()
    try:
        call_command("replay", *map(str, words), stdout=out)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def test_without_a_difference_it_ends_with_0(depot: Depot) -> None:
    code, told = run(depot.parcels().pk, "--against", "published")
    assert code == 0
    assert told == "turn 1: same\nturn 2: same\n2 turns: no difference that is not accepted.\n"


def test_differences_are_told_as_sentences_and_end_with_1(depot: Depot) -> None:
    session = depot.parcels()
    depot.change(depot.where, condition="the customer swears")
    depot.script(*HELLO, matches(), replies("I cannot say."))
    code, told = run(session.pk, "--live-model")
    assert code == 1
    assert "turn 1: same\nturn 2: changed\n" in told
    assert "  - G1 “the customer swears” does not match any more.\n" in told
    assert "1 of 2 turns are not the same." in told


def test_what_cannot_be_replayed_ends_with_1_and_says_why(depot: Depot) -> None:
    session = depot.parcels()
    depot.change(depot.where, condition="the customer swears")
    code, told = run(session.pk)
    assert code == 1
    assert "turn 1: could not be replayed\n  Draft" in told


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], ("recorded", "recorded", False, False)),
        (["--live-model"], ("live", "recorded", False, False)),
        (["--live-model", "--live-tools"], ("live", "live", False, False)),
        (["--until-it-differs"], ("recorded", "recorded", True, False)),
        (["--free"], ("recorded", "recorded", False, True)),
    ],
)
def test_each_option_is_what_it_says(
    depot: Depot, words: list[str], asked: tuple[str, str, bool, bool]
) -> None:
    session = depot.parcels()
    depot.script(*HELLO, *asks_where("P-7"), find_parcel=lambda _a, _c: {"place": "Lyon"})
    assert run(session.pk, "--against", "published", *words)[0] == 0
    row = Replay.objects.get()
    assert (row.model, row.tools, row.until_it_differs, row.free_running) == asked


def test_a_variant_is_replayed(depot: Depot) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get()
    variant = save_edit(session, Edit(call=call, kind="timeout"))
    depot.script(*HELLO, *asks_where("P-7"))
    code, told = run(session.pk, "--live-model", "--variant", variant.pk)
    assert code == 1
    assert "find_parcel(number=“P-7”) gives a timeout now" in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--against", "77"], "no version 77"),
        (["--variant", "9"], "no variant 9"),
        (["--live-model", "--until-it-differs"], "Choose one of"),
        (["--cap", "-1"], "number of tokens"),
    ],
)
def test_what_cannot_be_begun_ends_with_2(depot: Depot, words: list[str], why: str) -> None:
    code, told = run(depot.parcels().pk, *words)
    assert code == 2
    assert why in told
    assert not Replay.objects.exists()


def test_a_session_that_is_not_there_ends_with_2(depot: Depot) -> None:
    assert run(99_999)[0] == 2
