"""Replays: the ways to play recorded turns again and what each finds; held, stopped, capped and lost ones."""

import asyncio
import socket
import threading
from datetime import timedelta
from typing import Any, NoReturn
from unittest.mock import patch

import pytest
from django.utils import timezone

from engine import prompts
from engine.testing import infers, matches, replies, said
from studio.models import Cell, JobState, ModelConnection, Replay, ReplayedTurn, Session, Turn
from studio.operations import lanes, replay_player
from studio.operations.branches import branch_from
from studio.operations.replays import (
    CREW,
    ReplayRefusedError,
    replay_rest,
    rest_of,
    start_replay,
    verdicts_of,
)
from studio.operations.variants import Edit, recorded_call, save_edit
from tests.studio.factories import make_agent, make_connection, make_session, make_turn
from tests.studio.replayed_depot import (
    HELLO,
    Depot,
    asks_where,
    play,
    replayed,
    turns_of,
    verdicts,
    wants_back,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unwatched")]

LIVE = {"model": "live"}
TELLS = "the customer swears"


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch, db: None) -> Depot:
    return Depot(monkeypatch)


def kinds(cell: ReplayedTurn) -> list[str]:
    return [each["kind"] for each in cell.differences]


# --- Frozen


def test_a_frozen_replay_against_its_own_version_asks_nobody_and_finds_no_difference(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [depot.parcels(), depot.sent_back()]
    kept = Session.objects.count()

    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise AssertionError("The network was used.")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(replay_player, "models_of", refuse)
    for free in (False, True):
        replay = replayed(*sessions, free_running=free)
        assert (replay.state, replay.total, replay.error) == ("finished", 4, "")
        assert verdicts_of(replay) == {"same": 4}
        assert lanes.spent(CREW, replay) == 0
        if not free:
            assert Session.objects.count() == kept  # turns that are the same are not kept


def test_what_another_version_asks_otherwise_cannot_be_played_frozen(depot: Depot) -> None:
    session = depot.parcels()
    depot.change(depot.where, condition=TELLS)
    replay = replayed(session, against="draft")
    assert verdicts(replay) == ["impossible", "impossible"]
    reason = turns_of(replay)[0].reason
    assert "which guidelines apply" in reason
    assert "until it differs" in reason
    assert rest_of(replay).count() == 2


def test_a_turn_of_an_older_format_cannot_be_played_frozen_and_says_so(depot: Depot) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(ran_with={})
    replay = replayed(session)
    assert verdicts(replay) == ["impossible", "same"]
    assert "older format" in turns_of(replay)[0].reason


def test_a_turn_that_was_asked_in_other_words_cannot_be_played_frozen(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = depot.parcels()
    monkeypatch.setitem(prompts.VERSIONS, "InferToolCalls", "99")
    replay = replayed(session)
    assert verdicts(replay) == ["same", "impossible"]  # the first asked no such question
    assert "InferToolCalls" in turns_of(replay)[1].reason
    assert "99" in turns_of(replay)[1].reason


@pytest.mark.parametrize(
    ("state", "words"),
    [("STOPPED", "stopped before"), ("SUPERSEDED", "took over"), ("RUNNING", "not over yet")],
)
def test_a_turn_that_was_broken_off_is_compared_with_nothing(
    depot: Depot, state: str, words: str
) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(state=state)
    for way in ({}, LIVE):
        depot.script(*asks_where("P-7"))
        replay = replayed(session, **way)
        assert verdicts(replay) == ["impossible", "same"]
        assert words in turns_of(replay)[0].reason
        assert rest_of(replay).count() == 0  # no other way helps


def test_a_recording_is_played_frozen_though_its_connection_is_gone(depot: Depot) -> None:
    connection = make_connection()
    session = depot.parcels(depot.session(connection=connection))
    ModelConnection.objects.all().delete()
    assert verdicts(replayed(session)) == ["same", "same"]


def test_a_recording_is_played_frozen_though_its_tool_is_gone(depot: Depot) -> None:
    session = depot.parcels()
    depot.find.delete()
    assert verdicts(replayed(session)) == ["same", "same"]


# --- A live model


def test_editing_one_guideline_changes_just_the_turns_that_it_is_about(depot: Depot) -> None:
    session = depot.parcels()
    depot.change(depot.where, condition=TELLS)
    depot.script(*HELLO, matches(), replies("I cannot say."))
    replay = replayed(session, against="draft", **LIVE)
    same, changed = turns_of(replay)
    assert (same.verdict, same.played) == ("same", None)
    assert changed.verdict == "changed"
    assert kinds(changed) == ["guideline", "decision", "reply"]
    assert changed.differences[0]["guideline"] == "where"


def test_a_changed_turn_is_kept_with_its_history_and_stands_in_no_list(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(*HELLO, matches(), replies("I cannot say."))
    changed = turns_of(replayed(session, **LIVE))[1]
    kept = changed.played
    assert kept is not None
    assert kept.purpose == Session.Purpose.REPLAY
    assert [turn.number for turn in kept.line.turns.order_by("number")] == [1, 2]
    turn = kept.line.turns.get(number=2)
    assert (turn.state, turn.version, turn.session) == ("FINISHED", changed.replay.version, kept)
    texts = kept.line.events.filter(kind="message").order_by("offset").values_list("data__text")
    assert [text for (text,) in texts] == [
        "Hello", "Hello, Ada.", "Where is P-7?", "I cannot say.",
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_until_it_differs_only_what_is_asked_otherwise_is_asked(depot: Depot) -> None:
    session = depot.parcels()
    depot.change(depot.where, action="tell the place in capitals")
    model = depot.script(*asks_where("P-7", "LYON")[1:])
    replay = replayed(session, against="draft", until_it_differs=True)
    assert verdicts(replay) == ["same", "changed"]
    assert kinds(turns_of(replay)[1]) == ["reply"]
    assert model.questions() == ["InferToolCalls find_parcel", "ComposeReply"]


def test_recorded_tools_answer_and_none_runs(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(*HELLO, *asks_where("P-7"))
    replay = replayed(session, **LIVE)
    assert verdicts(replay) == ["same", "same"]
    assert depot.tools.called == []


def test_live_tools_run_and_their_result_is_compared(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(*HELLO, *asks_where("P-7", "Oslo"), find_parcel=lambda _a, _c: {"place": "Oslo"})
    changed = turns_of(replayed(session, tools="live", **LIVE))[1]
    assert depot.tools.called == [("find_parcel", {"number": "P-7"})]
    assert kinds(changed) == ["result", "reply"]
    assert changed.differences[0]["after"]["data"] == {"place": "Oslo"}


def test_a_tool_that_changes_something_never_runs_in_a_live_replay(depot: Depot) -> None:
    session = depot.sent_back()
    depot.script(*wants_back("P-7"), matches(), replies("It is on its way."))
    replay = replayed(session, tools="live", **LIVE)
    assert depot.tools.called == []
    assert verdicts(replay) == ["same", "same"]


def test_mocks_of_the_session_answer_where_that_is_asked_for(depot: Depot) -> None:
    from studio.operations.tool_modes import save_mock

    session = depot.parcels()
    save_mock(session, "find_parcel", data={"place": "Rome"})
    depot.script(*HELLO, *asks_where("P-7", "Rome"))
    changed = turns_of(replayed(session, tools="mock", **LIVE))[1]
    assert changed.differences[0]["after"]["data"] == {"place": "Rome"}


def test_a_model_that_fails_fails_the_turn_and_no_other(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(*HELLO)  # and nothing for the second turn
    replay = replayed(session, **LIVE)
    assert replay.state == JobState.FINISHED
    assert verdicts(replay) == ["same", "failed"]
    assert "Nobody expected" in turns_of(replay)[1].reason


# --- Free-running


def test_a_free_run_goes_on_from_what_it_said_itself(depot: Depot) -> None:
    session = depot.parcels()
    model = depot.script(matches(), replies("Good day!"), *asks_where("P-7"))
    replay = replayed(session, free_running=True, **LIVE)
    first, second = turns_of(replay)
    assert (first.verdict, second.verdict) == ("changed", "same")
    asked = "\n".join(message.content for message in model.requests[-1].messages)
    assert "Good day!" in asked
    assert "Hello, Ada." not in asked
    assert first.played == second.played
    assert [turn.number for turn in first.played.turns.order_by("number")] == [1, 2]


def test_a_button_is_pressed_for_the_call_that_waits_in_a_free_run(depot: Depot) -> None:
    session = depot.sent_back()
    depot.script(*wants_back("P-7"), matches(), replies("It is on its way."))
    replay = replayed(session, free_running=True, **LIVE)
    assert verdicts(replay) == ["same", "same"]
    played = turns_of(replay)[1].played
    assert played is not None
    call = played.turns.get(number=2).calls.get()
    assert (call.tool, call.state, call.served) == ("send_back", "done", "recorded")


def test_a_button_for_a_call_that_never_asked_cannot_be_pressed(depot: Depot) -> None:
    session = depot.sent_back()
    depot.script(matches(), replies("I cannot do that."))
    replay = replayed(session, free_running=True, **LIVE)
    assert verdicts(replay) == ["changed", "impossible"]
    assert "button" in turns_of(replay)[1].reason


def test_after_a_turn_that_cannot_be_played_a_free_run_ends(depot: Depot) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(ran_with={})
    replay = replayed(session, free_running=True)
    assert verdicts(replay) == ["impossible", "impossible"]
    assert "earlier turn" in turns_of(replay)[1].reason


def test_a_superseded_message_is_known_to_the_turn_that_answers_it(depot: Depot) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(state="SUPERSEDED")
    model = depot.script(*asks_where("P-7"))
    replay = replayed(session, free_running=True, **LIVE)
    assert verdicts(replay) == ["impossible", "same"]
    assert "Hello" in "\n".join(message.content for message in model.requests[0].messages)
    assert turns_of(replay)[1].played.turns.get().number == 2


def test_a_free_run_goes_on_where_a_killed_lane_left_it(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(matches(), replies("Good day!"), *asks_where("P-7"))
    replay = replayed(session, free_running=True, **LIVE)
    first, second = turns_of(replay)
    played = first.played
    played.turns.filter(number=2).delete()
    ReplayedTurn.objects.filter(pk=second.pk).update(
        state=Cell.State.RUNNING, verdict="", heartbeat_at=timezone.now() - timedelta(minutes=1)
    )
    long_ago = timezone.now() - timedelta(minutes=1)
    Replay.objects.filter(pk=replay.pk).update(state="running", heartbeat_at=long_ago)

    model = depot.script(*asks_where("P-7"))
    lanes.sweep_batches()
    play(replay)

    first, second = turns_of(replay)
    assert (first.verdict, second.verdict) == ("changed", "same")
    assert first.claims == 1
    assert second.played == played
    asked = "\n".join(message.content for message in model.requests[0].messages)
    assert "Good day!" in asked


def test_a_session_that_another_lane_plays_free_is_left_to_it(depot: Depot) -> None:
    session = depot.parcels()
    replay = start_replay([session], against="published", free_running=True, enqueue=False)
    first, second = turns_of(replay)
    assert ReplayedTurn.objects.claim([first.pk]) == [first.pk]
    assert CREW.next_keys(replay) == []
    ReplayedTurn.objects.claim([second.pk])
    CREW.play(replay, [second.pk], lanes.Hand(CREW, replay, [second.pk]))
    second.refresh_from_db()
    assert second.verdict == ""


# --- Edited recordings


@pytest.mark.parametrize(
    ("kind", "data", "after"),
    [
        ("result", {"place": "Oslo"}, {"place": "Oslo"}),
        ("empty", None, {}),
        ("timeout", None, "timeout"),
        ("exception", None, "exception"),
    ],
)
def test_a_variant_is_found_in_place_of_the_recorded_result(
    depot: Depot, kind: str, data: Any, after: Any
) -> None:
    session = depot.parcels()
    call = recorded_call(session, session.turns.get(number=2).calls.get().uid)
    assert call is not None
    variant = save_edit(session, Edit(call=call, kind=kind, data=data))
    depot.script(*HELLO, *asks_where("P-7"))
    same, changed = turns_of(replayed(session, variant=variant, **LIVE))
    assert same.verdict == "same"
    outcome = next(each for each in changed.differences if each["kind"] == "result")["after"]
    assert outcome.get("data", outcome.get("error")) == after
    assert session.turns.get(number=2).calls.get().result["data"] == {"place": "Lyon"}


def test_a_variant_fits_a_call_whose_result_came_from_a_record_itself(depot: Depot) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get()
    call.served, call.served_from = "recorded", "99/1/another"
    call.save()
    variant = save_edit(session, Edit(call=call, kind="result", data={"place": "Oslo"}))
    depot.script(*HELLO, *asks_where("P-7"))
    changed = turns_of(replayed(session, variant=variant, **LIVE))[1]
    assert changed.differences[0]["after"]["data"] == {"place": "Oslo"}
    assert changed.played is not None
    served = changed.played.turns.get().calls.get()
    assert (served.served, served.served_from) == ("recorded", "")  # for nobody to repeat


def test_a_variant_of_a_frozen_replay_says_that_the_model_would_be_asked_otherwise(
    depot: Depot,
) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get()
    variant = save_edit(session, Edit(call=call, kind="empty"))
    assert verdicts(replayed(session, variant=variant)) == ["same", "impossible"]


# --- Several sessions, branches, the rest


def test_sessions_are_replayed_together_and_each_once(depot: Depot) -> None:
    first, second = depot.parcels(), depot.parcels()
    replay = replayed(first, second, first)
    assert [(c.session_id, c.number) for c in turns_of(replay)] == [
        (first.pk, 1), (first.pk, 2), (second.pk, 1), (second.pk, 2),
    ]  # fmt: skip
    assert verdicts(replay) == ["same"] * 4


def test_a_branch_is_replayed_along_its_line(depot: Depot) -> None:
    session = depot.parcels()
    branch = branch_from(session, 1)
    depot.say(branch, "Where is P-8?", *asks_where("P-8"), find_parcel=lambda _a, _c: {"at": 1})
    replay = replayed(branch)
    assert [(c.turn.session_id, c.number) for c in turns_of(replay)] == [
        (session.pk, 1), (branch.pk, 2),
    ]  # fmt: skip
    assert verdicts(replay) == ["same", "same"]


def test_the_rest_is_replayed_in_another_way_and_nothing_else(depot: Depot) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(ran_with={})
    replay = replayed(session)
    depot.script(*HELLO)
    rest = play(replay_rest(replay, model="live", tools="recorded", until_it_differs=False))
    assert [(cell.number, cell.verdict) for cell in turns_of(rest)] == [(1, "same")]
    assert rest.against == replay.against


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("against", {"against": "7"}),
        ("against", {"against": "soon"}),
        ("model", {"model": "dreamt"}),
        ("tools", {"tools": "none"}),
    ],
)
def test_what_cannot_be_replayed_like_that_is_refused_by_field(
    depot: Depot, field: str, change: dict[str, Any]
) -> None:
    session = depot.parcels()
    with pytest.raises(ReplayRefusedError) as refusal:
        start_replay([session], **({"against": "draft"} | change))
    assert refusal.value.field == field
    assert not Replay.objects.exists()


def test_sessions_that_do_not_belong_together_are_refused(depot: Depot) -> None:
    session, empty, other = depot.parcels(), depot.session(), make_session(make_agent())
    make_turn(other)
    call = session.turns.get(number=2).calls.get()
    variant = save_edit(session, Edit(call=call, kind="empty"))
    for sessions, more, field in (
        ([], {}, "session"),
        ([empty], {}, "session"),
        ([session, other], {}, "session"),
        ([session, depot.parcels()], {"variant": variant}, "variant"),
        ([session], {"variant": variant, "tools": "live"}, "variant"),
    ):
        with pytest.raises(ReplayRefusedError) as refusal:
            start_replay(sessions, against="draft", **more)
        assert refusal.value.field == field


# --- Held, stopped, capped, lost


def test_a_paused_replay_keeps_what_is_done_and_goes_on_with_the_rest(depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", enqueue=False)
    assert lanes.pause(replay)
    assert not lanes.pause(replay)
    lanes.lane("replay", replay.pk)
    assert verdicts(replay) == ["", ""]
    assert lanes.go_on(CREW, replay)
    assert verdicts(play(replay)) == ["same", "same"]
    assert not lanes.go_on(CREW, replay)


def test_a_cancelled_replay_plays_nothing_more_until_it_is_gone_on_with(depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", enqueue=False)
    assert lanes.cancel(CREW, replay)
    lanes.lane("replay", replay.pk)
    replay.refresh_from_db()
    assert (replay.state, verdicts(replay)) == ("stopped", ["", ""])
    assert lanes.go_on(CREW, replay)
    assert verdicts(play(replay)) == ["same", "same"]


@pytest.mark.django_db(transaction=True)
def test_cancelling_interrupts_a_turn_that_is_being_played(depot: Depot) -> None:
    session = depot.parcels()
    started, interrupted = threading.Event(), threading.Event()

    async def forever(_arguments: Any, _context: Any) -> NoReturn:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            interrupted.set()
        raise AssertionError

    depot.script(*asks_where("P-7"), *HELLO, find_parcel=forever)
    replay = start_replay([session], against="published", model="live", tools="live", enqueue=False)

    def watch() -> None:
        if started.is_set():
            lanes.cancel(CREW, replay)

    lanes.play_here(CREW, replay, threads=1, watch=watch)
    assert interrupted.wait(30)
    replay.refresh_from_db()
    assert replay.state == JobState.STOPPED
    assert not replay.turns.filter(state=Cell.State.RUNNING).exists()


def test_a_crash_loses_only_the_turns_that_were_being_played(depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", enqueue=False)
    first, second = turns_of(replay)
    CREW.cells.claim([first.pk])
    hand = lanes.Hand(CREW, replay, [first.pk])
    assert hand.finish(first.pk, verdict="same")
    CREW.cells.claim([second.pk])
    dead = lanes.Hand(CREW, replay, [second.pk])
    long_ago = timezone.now() - timedelta(minutes=1)
    ReplayedTurn.objects.filter(pk=second.pk).update(heartbeat_at=long_ago)
    Replay.objects.filter(pk=replay.pk).update(state="running", heartbeat_at=long_ago)

    lanes.sweep_batches()
    play(replay)

    first, second = turns_of(replay)
    assert (first.claims, first.verdict) == (1, "same")
    assert (second.verdict, replay.state) == ("same", "finished")
    assert not dead.finish(second.pk, verdict="failed")  # it was taken for dead


def test_a_replay_whose_turns_are_short_is_heard_of_all_the_same(depot: Depot) -> None:
    """Otherwise it would be taken for lost, and given more and more lanes."""
    replay = start_replay([depot.parcels()], against="published", enqueue=False)
    long_ago = timezone.now() - timedelta(minutes=1)
    Replay.objects.filter(pk=replay.pk).update(state="running", heartbeat_at=long_ago)
    heard: list[Any] = []
    beyond = CREW.play

    def played(batch: Replay, keys: Any, hand: lanes.Hand) -> None:
        heard.append(Replay.objects.get(pk=batch.pk).heartbeat_at)
        beyond(batch, keys, hand)

    with patch.object(type(CREW), "play", lambda _self, *given: played(*given)):
        play(replay)
    assert heard
    assert min(heard) > long_ago + timedelta(seconds=30)


def with_tokens(replay: Replay, prompt: int) -> None:
    Turn.objects.filter(pk__in=replay.turns.values("turn")).update(
        prompt_tokens=prompt, completion_tokens=0
    )


def test_no_turn_is_begun_that_would_go_beyond_the_cap(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(*HELLO, *asks_where("P-7"))
    replay = start_replay([session], against="published", cap=100, enqueue=False, **LIVE)
    with_tokens(replay, 60)
    first = turns_of(replay)[0]
    CREW.cells.claim([first.pk])
    lanes.Hand(CREW, replay, [first.pk]).finish(first.pk, verdict="same", prompt_tokens=55)
    play(replay)
    assert (replay.state, replay.capped) == ("stopped", True)
    assert verdicts(replay) == ["same", ""]
    assert lanes.go_on(CREW, replay, cap=1_000)
    assert (play(replay).state, replay.capped) == ("finished", False)


def test_what_lanes_play_side_by_side_counts_against_the_cap(depot: Depot) -> None:
    session = depot.parcels()
    replay = start_replay([session], against="published", cap=100, enqueue=False, **LIVE)
    with_tokens(replay, 60)
    first, second = turns_of(replay)
    CREW.cells.claim([first.pk])  # by another lane, which has not ended
    assert lanes._could_exceed_cap(CREW, replay, [second.pk])
    replay.cap = 130
    assert not lanes._could_exceed_cap(CREW, replay, [second.pk])


def test_what_turns_really_took_is_expected_of_the_next(depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", cap=100, enqueue=False, **LIVE)
    with_tokens(replay, 0)  # the record says nothing of tokens
    first, second = turns_of(replay)
    CREW.cells.claim([first.pk])
    assert lanes._could_exceed_cap(CREW, replay, [second.pk])  # one is tried alone
    lanes.Hand(CREW, replay, [first.pk]).finish(first.pk, prompt_tokens=51)
    assert lanes._could_exceed_cap(CREW, replay, [second.pk])
    replay.cap = 102
    assert not lanes._could_exceed_cap(CREW, replay, [second.pk])


def test_turns_from_the_record_are_taken_many_at_once_and_live_ones_one_by_one(
    depot: Depot,
) -> None:
    session = depot.parcels()
    frozen = start_replay([session], against="published", enqueue=False)
    first, second = turns_of(frozen)
    assert CREW.next_keys(frozen) in ([first.pk, second.pk], [second.pk])
    live = start_replay([session], against="published", enqueue=False, **LIVE)
    assert len(CREW.next_keys(live)) == 1
    assert CREW.waits_long(live)
    assert not CREW.waits_long(frozen)


def test_starting_it_queues_lanes_for_all_threads_but_those_of_chats(
    depot: Depot, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    queued: list[int] = []

    class Group:
        def __init__(self, tasks: Any) -> None:
            self.tasks = list(tasks)

        def apply_async(self) -> None:
            queued.append(len(self.tasks))

    monkeypatch.setattr(lanes, "group", Group)
    sessions = [depot.parcels() for _ in range(3)]
    for way, lanes_of in (({}, 6), (LIVE, 2)):
        monkeypatch.setattr("django.conf.settings.STUDIO_WORKER_THREADS", 6, raising=False)
        with django_capture_on_commit_callbacks(execute=True):
            start_replay(sessions, against="published", **way)
        assert queued.pop() == lanes_of


def test_the_question_of_a_tool_that_was_not_inferred_then_is_no_frozen_answer(
    depot: Depot,
) -> None:
    session = depot.parcels()
    depot.script(
        *HELLO,
        matches("G1"),
        infers("find_parcel", {"number": said("P-8")}),
        replies("It is in Lyon.", "G1"),
    )
    changed = turns_of(replayed(session, **LIVE))[1]
    argument = next(each for each in changed.differences if each["kind"] == "argument")
    assert (argument["parameter"], argument["before"]["value"], argument["after"]["value"]) == (
        "number", "P-7", "P-8",
    )  # fmt: skip
