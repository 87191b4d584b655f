"""What the tool shed knows of its tools beyond their rows: who uses them, how their calls went lately, and whether that
is what their latency tier says.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.spec import Latency
from engine.trail import CallState
from studio.models import Session, Tool, ToolCall

LATELY = timedelta(days=30)
# Times are measured over the newest calls: enough for a percentile, and as quick after years of use.
_MEASURED_CALLS = 3_000
# Fewer calls than this say nothing about a tier.
ENOUGH_CALLS = 5
# A tool is declared too slow when it would keep to a faster tier with this share of its time alone.
_COMFORTABLE = 0.5
_FAILED = (CallState.FAILED.value, CallState.UNKNOWN.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An agent that chose the tool, and how many of its guidelines have it attached."""

    slug: str
    name: str
    guidelines: int


@dataclass(slots=True, kw_only=True)
class Figures:
    """Of the last 30 days; times in milliseconds, None where nothing was measured."""

    calls: int = 0
    errors: int = 0
    measured: int = 0  # calls that were seen to their end by themselves
    median_ms: float | None = None
    p95_ms: float | None = None
    users: list[User] = field(default_factory=list)


def figures_of(tools: Iterable[Tool]) -> dict[str, Figures]:
    """Name → figures, in a constant number of queries."""
    rows = list(tools)
    figures = {tool.name: Figures() for tool in rows}
    since = timezone.now() - LATELY
    _count_calls(figures, since)
    _measure(figures, since)
    _find_users(figures, rows)
    return figures


def _in_chats() -> QuerySet[ToolCall]:
    """Without calls of turns that the studio played by itself."""
    return ToolCall.objects.filter(turn__session__purpose=Session.Purpose.CHAT)


def _count_calls(figures: dict[str, Figures], since: datetime) -> None:
    counted = (
        _in_chats()
        .filter(tool__in=figures.keys(), started_at__gte=since)
        .values_list("tool")
        .annotate(calls=Count("pk"), errors=Count("pk", filter=Q(state__in=_FAILED)))
        .order_by()
    )
    for name, calls, errors in counted:
        figures[name].calls, figures[name].errors = calls, errors


def _measure(figures: dict[str, Figures], since: datetime) -> None:
    newest = _in_chats().order_by("-pk").values_list("tool", "state", "started_at", "ended_at")
    times: dict[str, list[float]] = {}
    for name, state, started, ended in newest[:_MEASURED_CALLS]:
        if (
            state == CallState.CANCELLED
        ):  # how long it took until somebody stopped it is not its time
            continue
        if ended is not None and started >= since and name in figures:
            times.setdefault(name, []).append((ended - started).total_seconds() * 1000)
    for name, measured in times.items():
        measured.sort()
        figures[name].measured = len(measured)
        figures[name].median_ms = _percentile(measured, 0.5)
        figures[name].p95_ms = _percentile(measured, 0.95)


def _percentile(ordered: list[float], share: float) -> float:
    """The value that this share of all does not exceed (nearest rank)."""
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(rank, 1) - 1]


def tier_warning(tool: Tool, figures: Figures) -> str:
    """A sentence for people where the measured times are not those of the declared tier; empty where they are.

    Too slow: the 95th percentile is at the tier's bound, where a call is stopped unless the tool has a time limit of
    its own. Too cautious: it is within half of a faster tier's bound, so that people are told to wait for nothing.
    """
    if figures.p95_ms is None or figures.measured < ENOUGH_CALLS:
        return ""
    seconds = figures.p95_ms / 1000
    declared = Latency(tool.latency)
    told = {
        "declared": Tool.Latency(declared).label,
        "seconds": f"{seconds:.1f}" if seconds >= 0.1 else f"{seconds:.2f}",
    }
    if seconds >= declared.deadline:
        fitting = next((tier for tier in Latency if seconds < tier.deadline), None)
        if fitting is None:
            return (
                _(
                    "Declared “%(declared)s”, but 5 %% of its calls take %(seconds)s s or more: "
                    "that is too long to be waited for. Make it do less at a time."
                )
                % told
            )
        return _(
            "Declared “%(declared)s”, but 5 %% of its calls take %(seconds)s s or more: declare it “%(fitting)s”."
        ) % (told | {"fitting": Tool.Latency(fitting).label})
    fitting = next(
        tier for tier in Latency if seconds < tier.deadline * _COMFORTABLE or tier is declared
    )
    if fitting is declared:
        return ""
    return _(
        "Declared “%(declared)s”, but 95 %% of its calls take %(seconds)s s at most: declare it “%(fitting)s”."
    ) % (told | {"fitting": Tool.Latency(fitting).label})


def _find_users(figures: dict[str, Figures], tools: list[Tool]) -> None:
    names = {tool.pk: tool.name for tool in tools}
    rows = Tool.objects.filter(pk__in=names)
    counted = rows.values_list("pk", "guidelines__agent").annotate(count=Count("guidelines"))
    attached = {(tool, agent): count for tool, agent, count in counted.order_by()}
    chosen = rows.filter(agents__isnull=False).order_by("agents__name", "agents")
    for tool, agent, slug, name in chosen.values_list(
        "pk", "agents", "agents__slug", "agents__name"
    ):
        user = User(slug=slug, name=name, guidelines=attached.get((tool, agent), 0))
        figures[names[tool]].users.append(user)
