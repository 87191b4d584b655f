"""Where the time of a turn went: bars on one time line, drawn from the audit's dictionary alone.

Milliseconds are whole and count from the turn's creation, so that JSON and database give the same drawing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Any, TypeAlias

from studio.record import moment

Json: TypeAlias = Mapping[str, Any]

SIDE_BY_SIDE = 8
"""More bars than this of one question in one round share a row."""

_MOST_TICKS = 6
_SECOND, _MINUTE = 1_000, 60_000
_STEPS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(number * _SECOND for number in (1, 2, 5, 10, 15, 30)),
    *(number * _MINUTE for number in (1, 2, 5, 10, 15, 30, 60)),
)


class Phase(StrEnum):
    """What was being done, in the order in which a turn does it."""

    QUEUE = "queue"
    CONFIRMING = "confirming"
    MATCHING = "matching"
    INFERRING = "inferring"
    RUNNING = "running"
    WRITING = "writing"
    CHECKING = "checking"
    OTHER = "other"


_PHASES = {
    "ReadConfirmation": Phase.CONFIRMING,
    "MatchGuidelines": Phase.MATCHING,
    "ScoreGuideline": Phase.MATCHING,
    "ExplainMatch": Phase.MATCHING,
    "ChooseTool": Phase.INFERRING,
    "InferToolCalls": Phase.INFERRING,
    "ComposeReply": Phase.WRITING,
    "ChooseResponse": Phase.WRITING,
    "JudgeReply": Phase.CHECKING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Something that took time. `start` and `length` are milliseconds of the turn.

    `model_call` or `call` is the uid of what it stands for; neither for the queue. `open` is what had not ended when
    the record was read, `asked_ahead` an answer that nobody waited for, `first_token` where its first word came.
    """

    phase: Phase
    question: str  # of a model call
    subject: str  # what it was about; a tool's name
    start: int
    length: int
    iteration: int = 1
    attempt: int = 1
    model_call: str = ""
    call: str = ""
    first_token: int | None = None
    asked_ahead: bool = False
    failed: bool = False
    open: bool = False
    critical: bool = False

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Bars that share a line: one, or the many of a question that was asked of each guideline by itself."""

    bars: tuple[Bar, ...]

    @property
    def first(self) -> Bar:
        return self.bars[0]

    @property
    def start(self) -> int:
        return min(bar.start for bar in self.bars)

    @property
    def length(self) -> int:
        return max(bar.end for bar in self.bars) - self.start

    @property
    def critical(self) -> bool:
        return any(bar.critical for bar in self.bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """`total` is the length of the time line, `ticks` the milliseconds that are marked on it."""

    rows: tuple[Row, ...]
    total: int
    ticks: tuple[int, ...]

    @property
    def bars(self) -> tuple[Bar, ...]:
        return tuple(bar for row in self.rows for bar in row.bars)

    @property
    def critical_ms(self) -> int:
        """How much of the time the bars of the critical path took; the rest is our own."""
        return sum(bar.length for bar in self.bars if bar.critical)


def waterfall(audit: Json) -> Waterfall:
    bars = sorted(_bars(audit), key=lambda bar: (bar.start, *_order(bar)))
    chain = critical_path(bars)
    marked = [replace(bar, critical=place in chain) for place, bar in enumerate(bars)]
    over = audit["finished_at"]
    total = max([1, *(bar.end for bar in bars), *([_since(audit, over)] if over else [])])
    return Waterfall(rows=tuple(_rows(marked)), total=total, ticks=ticks(total))


def critical_path(bars: Sequence[Bar]) -> frozenset[int]:
    """The places of those bars that determine the end: each is what the next one had to wait for.

    Of what ran side by side that is the one that ended last. What nobody waited for is no part of it.
    """
    left = {place for place, bar in enumerate(bars) if not bar.asked_ahead}
    chain: list[int] = []
    until: float = float("inf")
    while waited := [place for place in left if bars[place].end <= until]:
        last = max(waited, key=lambda place: _held_up(bars[place]))
        left.discard(last)
        chain.append(last)
        until = bars[last].start
    return frozenset(chain)


def _held_up(bar: Bar) -> tuple[int, bool, int]:
    """Who ended last; of several the longest, but first what took less than a millisecond: it hides nothing."""
    return (bar.end, bar.length == 0, bar.length)


def ticks(total: int) -> tuple[int, ...]:
    """Round places on a line of `total` milliseconds, from 0: a handful, whether it is 50 ms or an hour."""
    step = next((step for step in _STEPS if total / step <= _MOST_TICKS), 0)
    if not step:
        hours = -(-total // (_MOST_TICKS * 60 * _MINUTE))
        step = hours * 60 * _MINUTE
    return tuple(range(0, total + 1, step))


def _bars(audit: Json) -> Iterator[Bar]:
    if audit["started_at"] is not None:
        yield Bar(
            phase=Phase.QUEUE,
            question="",
            subject="",
            start=0,
            length=_since(audit, audit["started_at"]),
            iteration=0,
        )
    now = _last_known(audit)
    for asked in audit["model_calls"]:
        yield _model_call(audit, asked, now)
    for call in audit["calls"]:
        yield _tool_call(audit, call, now)


def _model_call(audit: Json, asked: Json, now: int) -> Bar:
    first = asked["first_token_at"]
    return Bar(
        phase=_PHASES.get(asked["question"], Phase.OTHER),
        question=asked["question"],
        subject=asked["subject"],
        iteration=asked["iteration"],
        attempt=asked["attempt"],
        model_call=asked["uid"],
        first_token=_since(audit, first) if first is not None else None,
        # A failed attempt was waited for, although nothing rests on it.
        asked_ahead=not asked["used"] and not asked["error"],
        failed=bool(asked["error"]),
        **_span(audit, asked, now),
    )


def _tool_call(audit: Json, call: Json, now: int) -> Bar:
    return Bar(
        phase=Phase.RUNNING,
        question="",
        subject=call["tool"],
        iteration=call["iteration"],
        call=call["uid"],
        failed=call["state"] in {"failed", "unknown"},
        **_span(audit, call, now),
    )


def _span(audit: Json, timed: Json, now: int) -> dict[str, Any]:
    start = _since(audit, timed["started_at"])
    ended = timed["ended_at"]
    end = now if ended is None else _since(audit, ended)
    return {"start": start, "length": max(0, end - start), "open": ended is None}


def _since(audit: Json, at: datetime | str) -> int:
    """Milliseconds of the turn; never before its creation, which another machine's clock may have stamped."""
    return max(0, round((moment(at) - moment(audit["created_at"])) / timedelta(milliseconds=1)))


def _last_known(audit: Json) -> int:
    """The last moment of which the record knows: where what is still open is drawn to."""
    if audit["finished_at"] is not None:
        return _since(audit, audit["finished_at"])
    timed = [*audit["model_calls"], *audit["calls"]]
    known = [each[name] for each in timed for name in ("started_at", "ended_at") if each[name]]
    return max((_since(audit, at) for at in known), default=0)


def _order(bar: Bar) -> tuple[int, int, str, int]:
    return (list(Phase).index(bar.phase), bar.iteration, bar.subject, bar.attempt)


def _rows(bars: Iterable[Bar]) -> Iterator[Row]:
    """In the order in which they began; the many of one question in one round as one row, where its first began."""
    alike = sorted(bars, key=_kind)
    rows: list[Row] = []
    for _name, group in groupby(alike, key=_kind):
        found = tuple(group)
        if len(found) > SIDE_BY_SIDE:
            rows.append(Row(bars=found))
        else:
            rows += [Row(bars=(bar,)) for bar in found]
    yield from sorted(rows, key=lambda row: (row.start, *_order(row.first)))


def _kind(bar: Bar) -> tuple[str, str, int]:
    return (bar.phase, bar.question, bar.iteration)
