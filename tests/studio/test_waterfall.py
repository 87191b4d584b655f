"""The waterfall: where a turn's time went, computed from the audit's dictionary alone."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import prompts
from studio.record import record_json
from studio.templatetags.studio_audit import breadth_of, instant, phase_words, share_of
from studio.waterfall import SIDE_BY_SIDE, Bar, Phase, Waterfall, critical_path, ticks, waterfall

T0 = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def at(milliseconds: float | None) -> datetime | None:
    return None if milliseconds is None else T0 + timedelta(milliseconds=milliseconds)


def asked(uid: str, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    first = more.pop("first", None)
    return {
        "uid": uid,
        "question": "MatchGuidelines",
        "subject": uid,
        "iteration": 1,
        "attempt": 1,
        "used": True,
        "error": "",
        "started_at": at(start),
        "ended_at": at(end),
        "first_token_at": at(first),
        **more,
    }


def called(tool: str, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    return {
        "uid": f"{tool}-1",
        "tool": tool,
        "state": "done",
        "iteration": 1,
        "started_at": at(start),
        "ended_at": at(end),
        **more,
    }


def turn(
    *asked: dict[str, Any],
    calls: tuple[dict[str, Any], ...] = (),
    queued: float | None = 10,
    over: float | None = 930,
) -> dict[str, Any]:
    return {
        "created_at": T0,
        "started_at": at(queued),
        "finished_at": at(over),
        "model_calls": list(asked),
        "calls": list(calls),
    }


def critical(drawn: Waterfall) -> list[str]:
    return [bar.subject or bar.phase.value for bar in drawn.bars if bar.critical]


USUAL = turn(
    asked("G1–G8", 12, 200),
    asked("G9–G14", 12, 180),
    asked("ahead", 12, 260, question="InferToolCalls", used=False),
    asked("send", 200, 400, question="InferToolCalls"),
    asked("reply", 702, 920, question="ComposeReply", first=760),
    calls=(called("send", 401, 700), called("look", 401, 500)),
)


def test_bars_begin_and_last_as_recorded_from_the_turns_creation() -> None:
    drawn = {(bar.phase, bar.subject): bar for bar in waterfall(USUAL).bars}
    queue = drawn[Phase.QUEUE, ""]
    assert (queue.start, queue.length) == (0, 10)
    matching = drawn[Phase.MATCHING, "G1–G8"]
    assert (matching.start, matching.length, matching.model_call) == (12, 188, "G1–G8")
    tool = drawn[Phase.RUNNING, "send"]
    assert (tool.start, tool.length, tool.call) == (401, 299, "send-1")
    assert drawn[Phase.WRITING, "reply"].first_token == 760
    assert waterfall(USUAL).total == 930


def test_rows_stand_in_the_order_in_which_things_began() -> None:
    starts = [row.start for row in waterfall(USUAL).rows]
    assert starts == sorted(starts)
    assert waterfall(USUAL).rows[0].first.phase is Phase.QUEUE


def test_the_critical_path_is_what_each_next_step_had_to_wait_for() -> None:
    assert critical(waterfall(USUAL)) == ["queue", "G1–G8", "send", "send", "reply"]
    assert waterfall(USUAL).critical_ms == 10 + 188 + 200 + 299 + 218


def test_what_took_less_than_a_millisecond_is_on_the_path_as_well() -> None:
    quick = turn(
        asked("again", 149, 149),
        asked("reply", 150, 150, question="ComposeReply"),
        calls=(called("look", 20, 149),),
    )
    assert critical(waterfall(quick)) == ["queue", "look", "again", "reply"]


def test_what_nobody_waited_for_is_marked_and_never_on_the_path() -> None:
    late = turn(
        asked("match", 10, 100), asked("ahead", 10, 900, question="InferToolCalls", used=False)
    )
    drawn = waterfall(late)
    assert [bar.subject for bar in drawn.bars if bar.asked_ahead] == ["ahead"]
    assert "ahead" not in critical(drawn)


def test_a_failed_attempt_was_waited_for() -> None:
    failed = asked("first", 10, 300, used=False, error="no JSON")
    drawn = waterfall(turn(failed, asked("second", 300, 500, attempt=2)))
    assert critical(drawn) == ["queue", "first", "second"]
    assert [bar.failed for bar in drawn.bars if bar.subject == "first"] == [True]
    assert not any(bar.asked_ahead for bar in drawn.bars)


def test_what_has_not_ended_reaches_to_what_is_known_last() -> None:
    running = turn(
        asked("match", 10, 100), calls=(called("slow", 110, None, state="started"),), over=None
    )
    drawn = waterfall(running)
    slow = drawn.bars[-1]
    assert (slow.subject, slow.open, slow.start, slow.length) == ("slow", True, 110, 0)
    left_behind = turn(calls=(called("slow", 110, None, state="started"),), over=500)
    assert waterfall(left_behind).bars[-1].length == 390


def test_a_turn_that_still_waits_has_no_bars_and_a_line_to_draw_on() -> None:
    drawn = waterfall(turn(queued=None, over=None))
    assert (drawn.rows, drawn.total) == ((), 1)


def test_many_questions_of_one_kind_share_a_row() -> None:
    many = [
        asked(f"G{n}", 10 + n, 100 + n, question="ScoreGuideline") for n in range(SIDE_BY_SIDE + 1)
    ]
    drawn = waterfall(turn(*many, asked("reply", 200, 300, question="ComposeReply")))
    assert [len(row.bars) for row in drawn.rows] == [1, SIDE_BY_SIDE + 1, 1]
    assert (drawn.rows[1].start, drawn.rows[1].length) == (10, 98)
    assert drawn.rows[1].critical
    few = waterfall(turn(*many[:-1]))
    assert all(len(row.bars) == 1 for row in few.rows)


def test_another_machines_clock_draws_nothing_before_the_turn() -> None:
    early = waterfall(turn(asked("match", -30, 100), queued=-40))
    assert [(bar.start, bar.length) for bar in early.bars] == [(0, 0), (0, 100)]


def test_json_gives_the_same_drawing_as_the_database() -> None:
    assert waterfall(json.loads(record_json(USUAL))) == waterfall(USUAL)


@pytest.mark.parametrize("question", sorted(prompts.VERSIONS))
def test_every_question_that_a_turn_asks_belongs_to_a_phase(question: str) -> None:
    bars = waterfall(turn(asked("x", 10, 20, question=question))).bars
    assert bars[-1].phase is not Phase.OTHER


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_named_in_words(phase: Phase) -> None:
    assert phase_words(phase.value)[0].isupper()


spans = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200), st.booleans()), max_size=14)


@given(spans)
def test_the_critical_path_is_a_chain_without_overlaps_that_reaches_the_end(
    found: list[tuple[int, int, bool]],
) -> None:
    bars = [
        Bar(
            phase=Phase.MATCHING,
            question="",
            subject="",
            start=start,
            length=length,
            asked_ahead=ahead,
        )
        for start, length, ahead in found
    ]
    chain = sorted((bars[place] for place in critical_path(bars)), key=lambda b: (b.start, b.end))
    waited = [bar for bar in bars if not bar.asked_ahead]
    assert bool(chain) == bool(waited)
    assert all(before.end <= after.start for before, after in pairwise(chain))
    if waited:
        assert chain[-1].end == max(bar.end for bar in waited)
        # Nothing that was waited for ended before the chain began.
        assert not any(bar.end < chain[0].start for bar in waited)


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (50, ["0", "10 ms", "20 ms", "30 ms", "40 ms", "50 ms"]),
        (930, ["0", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]),
        (2_650, ["0", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s"]),
        (12_000, ["0", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"]),
        (150_000, ["0", "30 s", "1 min", "1 min 30 s", "2 min", "2 min 30 s"]),
        (600_000, ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]),
    ],
)
def test_the_scale_reads_well_from_milliseconds_to_minutes(total: int, words: list[str]) -> None:
    assert [instant(tick) for tick in ticks(total)] == words


@given(st.integers(1, 90 * 24 * 3_600_000))
def test_there_is_always_a_handful_of_ticks_and_all_are_on_the_line(total: int) -> None:
    found = ticks(total)
    assert found[0] == 0
    assert found[-1] <= total
    assert len(found) <= 7


def test_places_are_percentages_and_what_took_no_time_is_a_sliver() -> None:
    assert share_of(465, 930) == "50.000%"
    assert share_of(2_000, 930) == "100.000%"
    assert breadth_of(0, 930) == "0.400%"
