"""The ledger of a turn: the audit's rows in the order in which people ask about them.

Built from `studio.audit.audit` alone, so that nothing stands on the screen that is not in the record.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from engine.spec import Composition
from studio.effects import reply_words
from studio.record import moment

Json: TypeAlias = Mapping[str, Any]

_ORDER = {
    "failed": 0,
    "unknown": 0,
    "started": 1,
    "AWAITING_CONFIRMATION": 1,
    "NEEDS_TO_RUN": 1,
    "done": 2,
    "CANNOT_RUN": 3,
    "NOT_RUN": 4,
    "cancelled": 4,
    "DATA_ALREADY_IN_CONTEXT": 5,
    "NOT_NEEDED": 6,
}
SHOWN_SILENT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One decision, with the call that it led to. `state` is the call's own where it ran."""

    tool: str
    state: str
    because: str
    iteration: int
    arguments: tuple[Json, ...]
    missing: tuple[Json, ...]
    invalid: tuple[Json, ...]
    call: Json | None
    guideline: str
    anchor: str  # its address on the page; a call that several guidelines wanted has its own at the first
    confirmation: Json | None = None  # where the call awaits the customer's word, or did
    offered: Json | None = None  # what its service named as choices, where the tool stands first

    @property
    def duration_ms(self) -> int | None:
        return None if self.call is None else self.call["duration_ms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineRow:
    """What became of one guideline in this turn."""

    uid: str
    condition: str
    action: str
    state: str
    because: str  # why it was judged so, even where a relationship changed what came of it
    iteration: int
    duration_ms: int | None
    effect: str  # what a relationship did to it, in words
    counterpart: str  # the guideline on the other side of that
    score: float | None
    explained_afterwards: bool
    given_by: str  # the tool whose result brought it
    tools: tuple[ToolRow, ...]
    follows: Json | None  # the writing model's own report
    checked: Json | None  # by a question of its own; of the last version of the reply
    revisions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """`matched` first, then what was kept from happening, then the silent ones."""

    matched: tuple[GuidelineRow, ...]
    stopped: tuple[GuidelineRow, ...]  # dropped; or unmatched, although tools were considered
    silent: tuple[GuidelineRow, ...]
    guidelines: int
    tools_ran: int
    tools_considered: int
    round_trips: int
    other_calls: tuple[Json, ...]  # calls that no decision here names
    other_confirmations: tuple[Json, ...]  # answered here without a decision: declined, changed …
    model_calls: tuple[Json, ...]
    tokens: int
    reply: str  # how the reply came about, in words; empty where the model just wrote it
    unknown: bool  # is there a call of which nobody knows how it ended
    over: bool  # nothing more will be decided

    @property
    def quietly_stopped(self) -> tuple[GuidelineRow, ...]:
        return tuple(row for row in self.stopped if not row.tools)

    @property
    def first_silent(self) -> tuple[GuidelineRow, ...]:
        return self.silent[:SHOWN_SILENT]

    @property
    def more_silent(self) -> tuple[GuidelineRow, ...]:
        return self.silent[SHOWN_SILENT:]

    @property
    def failed_attempts(self) -> int:
        return sum(bool(call["error"]) for call in self.model_calls)

    @property
    def judged(self) -> bool:
        return bool(self.matched or self.stopped or self.silent)


def ledger(audit: Json) -> Ledger:
    rows = _guideline_rows(audit)
    tools = [tool for row in rows for tool in row.tools]
    named = {tool.call["uid"] for tool in tools if tool.call is not None}
    told = {tool.confirmation["call"] for tool in tools if tool.confirmation is not None}
    return Ledger(
        matched=tuple(sorted((r for r in rows if r.state == "matched"), key=_weight)),
        stopped=tuple(r for r in rows if r.state == "dropped" or (_unmatched(r) and r.tools)),
        silent=tuple(
            sorted((r for r in rows if _unmatched(r) and not r.tools), key=_was_not_judged)
        ),
        guidelines=len(rows),
        tools_ran=len({call["tool"] for call in audit["calls"] if _ran(call)}),
        tools_considered=len({tool.tool for tool in tools}),
        # A question asked ahead whose answer nobody took kept nobody waiting.
        round_trips=round_trips(c for c in audit["model_calls"] if c["used"] or c["error"]),
        other_calls=tuple(call for call in audit["calls"] if call["uid"] not in named),
        other_confirmations=tuple(c for c in audit["confirmations"] if c["call"] not in told),
        model_calls=tuple(audit["model_calls"]),
        tokens=audit["prompt_tokens"] + audit["completion_tokens"],
        reply=_reply(audit["reply_source"]),
        unknown=bool(audit["lost"]) or any(map(_is_unknown, audit["calls"])),
        over=_is_over(audit),
    )


def _ran(call: Json) -> bool:
    # Calls of records from before other ways were live.
    return bool(call["state"] == "done" and call.get("served", "live") == "live")


def _is_unknown(call: Json) -> bool:
    error = call["error"]
    return call["state"] == "unknown" or (bool(error) and error["kind"] == "unknown_outcome")


def _reply(source: Json | None) -> str:
    if source is None or source["composition"] == Composition.FLUID:
        return ""
    return reply_words(source)


def round_trips(model_calls: Iterable[Json]) -> int:
    """The longest chain of model calls one after another; calls that ran side by side count once."""
    count, free = 0, None
    over = [
        (moment(call["ended_at"]), moment(call["started_at"]))
        for call in model_calls
        if call["ended_at"] is not None
    ]
    for ended, started in sorted(over):
        if free is None or started >= free:
            count, free = count + 1, ended
    return count


def _unmatched(row: GuidelineRow) -> bool:
    return row.state not in {"matched", "dropped"}


def _weight(row: GuidelineRow) -> tuple[bool, bool]:
    """Those whose tools were considered come before the others, and what always applies comes last."""
    return (not row.tools, not row.condition.strip())


def _was_not_judged(row: GuidelineRow) -> bool:
    return row.state == "not_evaluated"


def _guideline_rows(audit: Json) -> list[GuidelineRow]:
    # Judged again after a tool ran, a guideline has several matches: the last one counts.
    last = {match["guideline"]: match for match in audit["matches"]}
    # Relationships say in their own words what they did; the judgement before it has the reason.
    judged = {match["guideline"]: match for match in audit["matches"] if not _is_effect(match)}
    tools = _tool_rows(audit)
    reports = {r["guideline"]: r for r in audit["adherence"] if not r["checked"]}
    checks = {r["guideline"]: r for r in audit["adherence"] if r["checked"]}
    return [
        GuidelineRow(
            uid=uid,
            condition=match["condition"],
            action=match["action"],
            state=match["state"],
            because=_reason(match, judged.get(uid)),
            iteration=match["iteration"],
            duration_ms=match["duration_ms"],
            effect=match["effect"],
            counterpart=match["dropped_by"] or match["added_by"],
            score=match["score"],
            explained_afterwards=(judged.get(uid) or match)["explained_afterwards"],
            given_by=match["given_by"],
            tools=tuple(sorted(tools[uid], key=lambda row: _ORDER.get(row.state, 9))),
            follows=reports.get(uid),
            checked=checks.get(uid),
            revisions=checks[uid]["attempt"] - 1 if uid in checks else 0,
        )
        for uid, match in last.items()
    ]


def _is_effect(match: Json) -> bool:
    return bool(match["dropped_by"] or match["added_by"])


def _reason(match: Json, judged: Json | None) -> str:
    if not _is_effect(match):
        return str(match["because"])
    return str(judged["because"]) if judged is not None else ""


def _tool_rows(audit: Json) -> dict[str, list[ToolRow]]:
    calls = {call["uid"]: call for call in audit["calls"]}
    confirmations = {c["call"]: c for c in audit["confirmations"]}
    # Records from before choices were kept have none.
    offered = {choices["tool"]: choices for choices in audit.get("choices", ())}
    over = _is_over(audit)
    rows: dict[str, list[ToolRow]] = defaultdict(list)
    anchored: set[str] = set()
    for place, decision in enumerate(audit["decisions"], start=1):
        call = calls.get(decision["call"]) if decision["state"] == "NEEDS_TO_RUN" else None
        rows[decision["guideline"]].append(
            ToolRow(
                tool=decision["tool"],
                state=_outcome(decision["state"], call, over=over),
                because=decision["because"],
                iteration=decision["iteration"],
                arguments=tuple(decision["arguments"]),
                missing=_insights(audit["insights"], decision, "missing"),
                invalid=_insights(audit["insights"], decision, "invalid"),
                call=call,
                guideline=decision["guideline"],
                anchor=_anchor(call, place, anchored),
                confirmation=confirmations.get(decision["call"]),
                offered=offered.pop(decision["tool"], None),
            )
        )
    return rows


def _anchor(call: Json | None, place: int, anchored: set[str]) -> str:
    if call is None or call["uid"] in anchored:
        return f"decision-{place}"
    anchored.add(call["uid"])
    return f"call-{call['uid']}"


def _is_over(audit: Json) -> bool:
    return audit["state"] not in {"QUEUED", "RUNNING"}


def _outcome(decision: str, call: Json | None, *, over: bool) -> str:
    if decision != "NEEDS_TO_RUN":
        return decision
    if call is not None:
        # Of one that a turn left behind, nobody knows whether it ended.
        return "unknown" if over and call["state"] == "started" else str(call["state"])
    return "NOT_RUN" if over else decision


def _insights(insights: Sequence[Json], decision: Json, kind: str) -> tuple[Json, ...]:
    """What is known of each missing or invalid parameter: at least its name."""
    known = {
        i["parameter"]: i for i in insights if i["tool"] == decision["tool"] and i["kind"] == kind
    }
    return tuple(known.get(name, {"parameter": name, "label": name}) for name in decision[kind])
