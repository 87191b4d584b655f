"""What a guideline did in the last 30 days, read from the trail: how often it fired, what ran under it, what it added.

Turns count for the agent whose session they belong to; what was decided in a turn counts as it stood at its end. A
constant number of queries, and those that read whole rows read a bounded number of them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from django.db.models import CharField, Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Substr
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from studio.costs import Usage, cost_of
from studio.models import (
    Agent,
    Flag,
    Guideline,
    GuidelineMatch,
    ModelCall,
    Session,
    ToolCall,
    ToolDecision,
)
from studio.models.trail import GuidelineMatchQuerySet, TrailRow

DAYS = 30
# Means are taken of the newest turns alone: enough for a mean, and as quick after years of use.
MEASURED_TURNS = 50
DAY_WIDTH = 10
CHART_HEIGHT = 36
_FLAGS = 1_000
_REASONS = 200  # newest decisions that are looked through for why a tool could not run
_SHOWN_FLAGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day in UTC, and in how many turns the guideline fired."""

    day: date
    fired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A day of the chart, in its units: DAY_WIDTH for a day, CHART_HEIGHT for the day with the most."""

    x: int
    y: int
    height: int


@dataclass(slots=True, kw_only=True)
class ToolFigures:
    """What came of the decisions on one tool under the guideline; what is not counted apart stands in `other`."""

    tool: str
    ran: int = 0
    failed: int = 0  # or nobody knows how it ended
    cannot_run: int = 0
    known: int = 0
    not_needed: int = 0
    asked: int = 0  # awaited the customer's word
    other: int = 0  # stopped, or the turn ended before
    mostly: str = ""  # why it could not run, most often


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What it added to a turn in which it fired, in the mean of so many turns."""

    turns: int
    milliseconds: float
    tokens: int
    cost: JsonObject  # of one such turn, of studio.costs


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineFigures:
    evaluated: int  # turns in which it was judged, or applied without being asked about
    days: tuple[Day, ...]  # the oldest first, all of them
    last_fired: GuidelineMatch | None  # whenever that was, with its turn
    tools: tuple[ToolFigures, ...]
    added: Added | None
    flags: int
    newest_flags: tuple[Flag, ...]

    @property
    def fired(self) -> int:
        return sum(day.fired for day in self.days)

    @property
    def bars(self) -> tuple[Bar, ...]:
        most = max(1, *(day.fired for day in self.days))
        heights = [-(-day.fired * CHART_HEIGHT // most) for day in self.days]
        return tuple(
            Bar(x=place * DAY_WIDTH, y=CHART_HEIGHT - height, height=height)
            for place, height in enumerate(heights)
        )


def fires_of(agent: Agent, uids: Iterable[str]) -> dict[str, int]:
    """Uid → number of turns of the last 30 days in which the guideline fired; one query."""
    rows = _lately(agent).filter(guideline__in=list(uids)).that_fired()
    return dict(rows.values_list("guideline").annotate(turns=Count("pk")).order_by())


def figures_of(guideline: Guideline) -> GuidelineFigures:
    agent, uid = guideline.agent, guideline.uid
    lately = _lately(agent).filter(guideline=uid)
    evaluated = lately.exclude(state="not_evaluated").aggregate(n=Count("turn", distinct=True))
    flags = _flags(guideline)
    return GuidelineFigures(
        evaluated=evaluated["n"],
        days=_days(lately.that_fired()),
        last_fired=_last_fired(guideline),
        tools=_tools(guideline),
        added=_added(uid, lately.that_fired()),
        flags=len(flags),
        newest_flags=tuple(flags[:_SHOWN_FLAGS]),
    )


def _since() -> datetime:
    """The beginning of the first of the days that are shown."""
    today = timezone.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=DAYS - 1)


def _lately(agent: Agent) -> GuidelineMatchQuerySet:
    return GuidelineMatch.objects.filter(started_at__gte=_since(), **_in_chats(agent))


def _in_chats(agent: Agent) -> dict[str, object]:
    """Of these turns alone: what the studio played by itself says nothing of how the agent is used."""
    return {"turn__session__agent": agent, "turn__session__purpose": Session.Purpose.CHAT}


def _days(fired: QuerySet[GuidelineMatch]) -> tuple[Day, ...]:
    # Both databases write a moment with its day first, in UTC; to take it apart as text is much quicker.
    rows = fired.annotate(day=Substr(Cast("started_at", CharField()), 1, 10)).values_list("day")
    counted = dict(rows.annotate(turns=Count("pk")).order_by())
    first = _since().date()
    days = (first + timedelta(days=place) for place in range(DAYS))
    return tuple(Day(day=day, fired=counted.get(day.isoformat(), 0)) for day in days)


def _last_fired(guideline: Guideline) -> GuidelineMatch | None:
    rows = GuidelineMatch.objects.filter(guideline=guideline.uid, **_in_chats(guideline.agent))
    rows = rows.that_fired().select_related("turn").defer("turn__checkpoint")
    return rows.order_by("-started_at").first()


# --- Tools


def _tools(guideline: Guideline) -> tuple[ToolFigures, ...]:
    decisions = ToolDecision.objects.filter(
        guideline=guideline.uid, started_at__gte=_since(), **_in_chats(guideline.agent)
    )
    call = ToolCall.objects.filter(turn=OuterRef("turn"), uid=OuterRef("call"))
    rows = decisions.annotate(became=Subquery(call.values("state")[:1])).order_by()
    found: dict[str, ToolFigures] = {}
    for tool, state, became, count in rows.values_list("tool", "state", "became").annotate(
        n=Count("pk")
    ):
        figures = found.setdefault(tool, ToolFigures(tool=tool))
        name = _outcome(state, became)
        setattr(figures, name, getattr(figures, name) + count)
    if any(figures.cannot_run for figures in found.values()):
        _say_why(found, decisions)
    return tuple(found[tool] for tool in sorted(found))


def _outcome(state: str, became: str | None) -> str:
    """The field of ToolFigures in which this decision counts."""
    match state, became:
        case "NEEDS_TO_RUN", "done":
            return "ran"
        case "NEEDS_TO_RUN", "failed" | "unknown":
            return "failed"
        case "CANNOT_RUN", _:
            return "cannot_run"
        case "DATA_ALREADY_IN_CONTEXT", _:
            return "known"
        case "NOT_NEEDED", _:
            return "not_needed"
        case "AWAITING_CONFIRMATION", _:
            return "asked"
        case _:
            return "other"


def _say_why(found: dict[str, ToolFigures], decisions: QuerySet[ToolDecision]) -> None:
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    newest = decisions.filter(state="CANNOT_RUN").order_by("-pk")[:_REASONS]
    for tool, missing, invalid, because in newest.values_list(
        "tool", "missing", "invalid", "because"
    ):
        reasons[tool][_reason(missing, invalid, because)] += 1
    for tool, counted in reasons.items():
        [(found[tool].mostly, _times)] = counted.most_common(1)


def _reason(missing: Sequence[str], invalid: Sequence[str], because: str) -> str:
    if missing:
        return _("%(names)s missing") % {"names": ", ".join(missing)}
    if invalid:
        return _("%(names)s not valid") % {"names": ", ".join(invalid)}
    return because


# --- What it added


@dataclass(slots=True)
class _Share:
    """Gathers what one guideline owns of questions and calls that several guidelines asked for together."""

    milliseconds: float = 0.0
    usages: list[Usage] = field(default_factory=list)

    def take(self, call: ModelCall, among: int) -> None:
        self.milliseconds += _took(call) / among
        self.usages.append(
            Usage(
                model=call.model,
                prompt_tokens=call.prompt_tokens / among,
                cached_tokens=call.cached_tokens / among,
                completion_tokens=call.completion_tokens / among,
            )
        )


def _took(row: TrailRow) -> float:
    return float(row.duration_ms or 0)


def _added(uid: str, fired: QuerySet[GuidelineMatch]) -> Added | None:
    """Each question is shared evenly by the guidelines that it judged or that wanted the tool, and so is each call."""
    newest = fired.order_by("-started_at").values_list("turn", flat=True)
    turns = list(dict.fromkeys(newest[:MEASURED_TURNS]))
    if not turns:
        return None
    among = _sharers(GuidelineMatch.objects.filter(turn__in=turns), uid)
    among |= _sharers(ToolDecision.objects.filter(turn__in=turns), uid)
    share = _Share()
    asked = ModelCall.objects.filter(turn__in=turns).defer(
        "messages", "schema", "settings", "answer_text", "error"
    )
    for call in asked:
        if (call.turn_id, call.uid) in among:
            share.take(call, among[call.turn_id, call.uid])
    _add_calls(share, uid, turns)
    return _mean(share, len(turns))


def _sharers(
    rows: "QuerySet[GuidelineMatch] | QuerySet[ToolDecision]", uid: str
) -> dict[tuple[int, str], int]:
    """(turn, model call) → how many guidelines it was asked for, of those that were asked for this one."""
    asked = rows.exclude(model_call="").values("turn", "model_call").order_by()
    counted = asked.annotate(
        guidelines=Count("guideline", distinct=True), own=Count("pk", filter=Q(guideline=uid))
    )
    return {
        (row["turn"], row["model_call"]): row["guidelines"] for row in counted.filter(own__gt=0)
    }


def _add_calls(share: _Share, uid: str, turns: Sequence[int]) -> None:
    calls = ToolCall.objects.filter(turn__in=turns).only("guidelines", "started_at", "ended_at")
    for call in calls:
        if uid in call.guidelines:
            share.milliseconds += _took(call) / len(call.guidelines)


def _mean(share: _Share, turns: int) -> Added:
    tokens = sum(usage.prompt_tokens + usage.completion_tokens for usage in share.usages)
    one = [
        replace(
            usage,
            prompt_tokens=usage.prompt_tokens / turns,
            cached_tokens=usage.cached_tokens / turns,
            completion_tokens=usage.completion_tokens / turns,
        )
        for usage in share.usages
    ]
    return Added(
        turns=turns,
        milliseconds=share.milliseconds / turns,
        tokens=round(tokens / turns),
        cost=cost_of(one),
    )


# --- Flags


def _flags(guideline: Guideline) -> list[Flag]:
    """On messages of turns in which it fired, the newest first; of the newest flags of the studio."""
    in_chats = Flag.objects.filter(event__session__purpose=Session.Purpose.CHAT)
    newest = in_chats.order_by("-pk").values_list(
        "pk", "created_at", "event__turn", "event__session__agent"
    )
    since = _since()
    turn_of = {
        pk: turn
        for pk, made, turn, agent in newest[:_FLAGS]
        if made >= since and agent == guideline.agent_id
    }
    matches = GuidelineMatch.objects.filter(
        guideline=guideline.uid, turn__in=set(turn_of.values()) - {None}
    )
    fired = set(matches.that_fired().values_list("turn", flat=True)) if turn_of else set()
    found = Flag.objects.filter(pk__in=[pk for pk, turn in turn_of.items() if turn in fired])
    return list(found.select_related("event__turn").defer("event__turn__checkpoint"))[::-1]
