"""Which guidelines and tools were put to the proof: by the newest finished run of each suite of an agent, or in chats.

A turn counts as it stood at its end. A constant number of queries, however many guidelines and scenarios; what is read
of single turns is read for the guidelines and columns that are shown.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property

from django.db.models import Exists, F, Max, Min, OuterRef, Q
from django.utils import timezone

from engine.trail import CallState, MatchState
from studio.guards import Guards, ScenarioKey, Scenarios, Share, guards_of, is_covered
from studio.models import (
    Agent,
    Guideline,
    GuidelineMatch,
    RunCell,
    Scenario,
    Session,
    SuiteRun,
    Tool,
    ToolCall,
    Turn,
)
from studio.suite_status import newest_runs

DAYS = 30
CHATS = 30  # newest chats that have a column of their own
TURNS = 50  # newest ones of a conversation that cells count
SESSIONS = 200  # of runs that are read: of each scenario its first repeats
_AROUND = timedelta(minutes=1)  # a worker's clock may be another than the web process's


class Source(StrEnum):
    RUNS = "runs"
    CHATS = "chats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A scenario, with the conversations of its newest run, or a chat. `key` names it in an address."""

    key: str
    title: str
    scenario: ScenarioKey | None = None
    sessions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is read: `trail` is the filter of trail rows that count. `repeats` is how many a scenario had at most."""

    source: Source
    columns: tuple[Column, ...]
    trail: Q
    runs: tuple[SuiteRun, ...] = ()  # one a suite, the newest finished one
    repeats: int = 0
    repeats_read: int = 0


class Missing(StrEnum):
    """What a guideline lacks, by how much it is needed."""

    FIRED = "fired"  # it was in force in no turn
    POSITIVE = "positive"  # no scenario expects it to match
    NEGATIVE = "negative"  # no scenario expects it not to match


_WEIGHT = {Missing.FIRED: 4, Missing.POSITIVE: 2, Missing.NEGATIVE: 1}


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One guideline of the draft, and which scenarios guard it.

    `fired` and `silent`: it was in force at the end of some turn; it was judged in some turn and was not.
    """

    uid: str
    condition: str
    action: str
    enabled: bool
    tools: tuple[str, ...]
    fired: bool
    silent: bool
    positive: Scenarios
    negative: Scenarios
    covered: bool

    @property
    def always(self) -> bool:
        return not self.condition.strip()

    @property
    def is_observation(self) -> bool:
        return not self.action.strip() and not self.tools

    @cached_property
    def missing(self) -> tuple[Missing, ...]:
        """Nothing where it is switched off."""
        if not self.enabled:
            return ()
        lacks = (
            (not self.fired, Missing.FIRED),
            (not self.positive, Missing.POSITIVE),
            (not self.negative and not self.always, Missing.NEGATIVE),
        )
        return tuple([missing for is_so, missing in lacks if is_so])

    @property
    def needs_positive(self) -> bool:
        """It never fired, or nothing would be noticed if it never did."""
        return Missing.FIRED in self.missing or Missing.POSITIVE in self.missing

    @property
    def needs_negative(self) -> bool:
        return Missing.NEGATIVE in self.missing

    @property
    def need(self) -> int:
        return sum([_WEIGHT[missing] for missing in self.missing])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStanding:
    """A tool that is attached to a guideline that is switched on: was it ever called."""

    name: str
    called: bool
    guidelines: tuple[str, ...]  # uids
    scenarios: Scenarios  # that expect something of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    record: Record
    standings: tuple[Standing, ...]  # in the author's order
    tools: tuple[ToolStanding, ...]
    share: Share

    def lacking(self, missing: Missing) -> list[Standing]:
        return [standing for standing in self.standings if missing in standing.missing]

    @property
    def unseen_observations(self) -> list[Standing]:
        return [one for one in self.lacking(Missing.FIRED) if one.is_observation]

    @property
    def uncalled(self) -> list[ToolStanding]:
        return [tool for tool in self.tools if not tool.called]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """In how many turns of a column the guideline ended in force, judged and silent, or dropped."""

    fired: int = 0
    silent: int = 0
    dropped: int = 0

    @property
    def state(self) -> str:
        """The strongest that it came to: fired, dropped, silent, or never (evaluated)."""
        if self.fired:
            return "fired"
        if self.dropped:
            return "dropped"
        return "silent" if self.silent else "never"

    @property
    def turns(self) -> int:
        """Those of its state."""
        return self.fired or self.dropped or self.silent


NEVER = Heat()
_NOT_IN_FORCE = [MatchState.NOT_MATCHED, MatchState.DROPPED]
_COUNTED = {
    MatchState.MATCHED.value: "fired",
    MatchState.DROPPED.value: "dropped",
    MatchState.NOT_MATCHED.value: "silent",
}


def coverage_of(agent: Agent, source: Source) -> Coverage:
    record = record_of_runs(agent) if source is Source.RUNS else record_of_chats(agent)
    guards = guards_of(agent)
    standings = _standings(agent, record, guards)
    enabled = [standing for standing in standings if standing.enabled]
    return Coverage(
        record=record,
        standings=standings,
        tools=_tools(enabled, record, guards),
        share=Share(covered=sum(one.covered for one in enabled), enabled=len(enabled)),
    )


# --- What is read


def record_of_runs(agent: Agent) -> Record:
    """Each scenario that there is, with the conversations of its newest run that say something of the agent.

    Of the versions that a run compared, the newest counts.
    """
    runs = list(newest_runs([agent]).defer("scenarios"))
    rows = Scenario.objects.filter(suite__agent=agent).order_by("suite__name", "position", "pk")
    titles = {ScenarioKey(suite, uid): title for suite, uid, title in
              rows.values_list("suite", "uid", "title")}  # fmt: skip
    played = _played(runs)
    repeats = max((len(played[key]) for key in titles), default=0)
    read = min(repeats, max(1, SESSIONS // max(1, len(titles))))
    columns = tuple(
        Column(
            key=f"{key.suite}.{key.uid}",
            title=title,
            scenario=key,
            sessions=tuple(played[key][:read]),
        )
        for key, title in titles.items()
    )
    return Record(
        source=Source.RUNS,
        columns=columns,
        trail=_trail_of([pk for column in columns for pk in column.sessions]),
        runs=tuple(runs),
        repeats=repeats,
        repeats_read=read,
    )


def _played(runs: Sequence[SuiteRun]) -> Mapping[ScenarioKey, list[int]]:
    """Scenario → sessions of its repeats."""
    cells = RunCell.objects.over().filter(run__in=runs, session__isnull=False, invalid="", error="")
    rows = list(
        cells.order_by("repeat").values_list("run__suite", "version", "scenario", "session")
    )
    newest: dict[int, int] = {}
    for suite, version, _scenario, _session in rows:
        newest[suite] = max(version, newest.get(suite, 0))
    found: dict[ScenarioKey, list[int]] = defaultdict(list)
    for suite, version, scenario, session in rows:
        if version == newest[suite]:
            found[ScenarioKey(suite, scenario)].append(session)
    return found


def _trail_of(sessions: Sequence[int]) -> Q:
    """The moments are for the indexes: what happened in these turns happened between them."""
    span = Session.objects.filter(pk__in=sessions).aggregate(
        begin=Min("created_at"), end=Max("last_event_at")
    )
    if span["begin"] is None:
        return Q(pk__in=())
    turns = Turn.objects.filter(session__in=sessions).order_by().values("pk")
    return Q(
        started_at__gte=span["begin"] - _AROUND,
        started_at__lte=span["end"] + _AROUND,
        turn__in=turns,
    )


def record_of_chats(agent: Agent) -> Record:
    """The chats of the last 30 days; the newest of them have columns."""
    since = timezone.now() - timedelta(days=DAYS)
    rows = Session.objects.chats().filter(agent=agent, last_event_at__gte=since).order_by()
    newest = rows.order_by("-last_event_at", "-pk").values_list("pk", "title")[:CHATS]
    columns = tuple(
        Column(key=str(pk), title=f"#{pk} {title}".strip(), sessions=(pk,)) for pk, title in newest
    )
    turns = Turn.objects.filter(session__in=rows.values("pk")).order_by().values("pk")
    return Record(
        source=Source.CHATS,
        columns=columns,
        trail=Q(started_at__gte=since, turn__in=turns) if columns else Q(pk__in=()),
    )


# --- What came of it


def _standings(agent: Agent, record: Record, guards: Guards) -> tuple[Standing, ...]:
    own = GuidelineMatch.objects.filter(record.trail, guideline=OuterRef("uid"))
    later = GuidelineMatch.objects.filter(
        turn=OuterRef("turn"), guideline=OuterRef("guideline"), pk__gt=OuterRef("pk")
    )
    rows = (
        Guideline.objects.filter(agent=agent)
        .order_by("position", "pk")
        .annotate(
            fired=Exists(own.that_fired()),
            silent=Exists(own.filter(~Exists(later), state__in=_NOT_IN_FORCE)),
        )
    )
    tools = _tool_names(agent)
    return tuple(
        Standing(
            uid=uid,
            condition=condition,
            action=action,
            enabled=enabled,
            tools=tuple(tools.get(pk, ())),
            fired=fired,
            silent=silent,
            positive=guards.positive.get(uid, frozenset()),
            negative=guards.negative.get(uid, frozenset()),
            covered=is_covered(uid, condition, guards),
        )
        for pk, uid, condition, action, enabled, fired, silent in rows.values_list(
            "pk", "uid", "condition", "action", "enabled", "fired", "silent"
        )
    )


def _tool_names(agent: Agent) -> dict[int, list[str]]:
    """Guideline key → names of the tools that are attached to it."""
    attached = Guideline.objects.filter(agent=agent, tools__isnull=False)
    found: dict[int, list[str]] = defaultdict(list)
    for guideline, name in attached.order_by("tools__name").values_list("pk", "tools__name"):
        found[guideline].append(name)
    return found


def _tools(enabled: Sequence[Standing], record: Record, guards: Guards) -> tuple[ToolStanding, ...]:
    users: dict[str, list[str]] = defaultdict(list)
    for standing in enabled:
        for name in standing.tools:
            users[name].append(standing.uid)
    calls = ToolCall.objects.filter(record.trail, tool=OuterRef("name"))
    made = Exists(calls.exclude(state=CallState.CANCELLED))
    rows = Tool.objects.filter(name__in=users).order_by("name").annotate(called=made)
    return tuple(
        ToolStanding(
            name=name,
            called=called,
            guidelines=tuple(users[name]),
            scenarios=guards.tools.get(name, frozenset()),
        )
        for name, called in rows.values_list("name", "called")
    )


def turns_read(sessions: Iterable[int]) -> dict[int, int]:
    """Turn → session, of the newest turns of each of these sessions."""
    rows = Turn.objects.filter(
        session__in=list(sessions), number__gte=F("session__next_turn") - TURNS
    )
    return dict(rows.order_by().values_list("pk", "session"))


def heats_of(columns: Iterable[Column], uids: Iterable[str]) -> dict[tuple[str, str], Heat]:
    """(guideline, column key) → what it came to there, where it was recorded at all. Two queries."""
    shown = {session: column.key for column in columns for session in column.sessions}
    turns = turns_read(shown)
    matches = GuidelineMatch.objects.filter(turn__in=list(turns), guideline__in=list(uids))
    # The last one of a turn is how it stood at its end.
    ended = {
        (turn, uid): state
        for turn, uid, state in matches.order_by("pk").values_list("turn", "guideline", "state")
    }
    counted: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (turn, uid), state in ended.items():
        if state in _COUNTED:
            counted[uid, shown[turns[turn]]][_COUNTED[state]] += 1
    return {place: Heat(**counts) for place, counts in counted.items()}
