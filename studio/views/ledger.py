"""The ledger of a turn: the audit's rows in the order in which people ask about them.

Built from `studio.audit.audit` alone, so that nothing stands on the screen that is not in the record.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

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
    because: str
    iteration: int
    duration_ms: int | None
    dropped_by: str
    tools: tuple[ToolRow, ...]
    follows: Json | None  # the writing model's own report


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
    model_calls: tuple[Json, ...]

    tokens: int

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
    return Ledger(
        matched=tuple(sorted((r for r in rows if r.state == "matched"), key=_weight)),
        stopped=tuple(r for r in rows if r.state == "dropped" or (_unmatched(r) and r.tools)),
        silent=tuple(
            sorted((r for r in rows if _unmatched(r) and not r.tools), key=_was_not_judged)
        ),
        guidelines=len(rows),
        tools_ran=len({call["tool"] for call in audit["calls"] if call["state"] == "done"}),
        tools_considered=len({tool.tool for tool in tools}),
        round_trips=round_trips(audit["model_calls"]),
        other_calls=tuple(call for call in audit["calls"] if call["uid"] not in named),
        model_calls=tuple(audit["model_calls"]),
        tokens=audit["prompt_tokens"] + audit["completion_tokens"],
    )


def round_trips(model_calls: Iterable[Json]) -> int:
    """The longest chain of model calls one after another; calls that ran side by side count once."""
    count, free = 0, None
    over = [call for call in model_calls if call["ended_at"] is not None]
    for call in sorted(over, key=itemgetter("ended_at")):
        if free is None or call["started_at"] >= free:
            count, free = count + 1, call["ended_at"]
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
    tools = _tool_rows(audit)
    reports = {report["guideline"]: report for report in audit["adherence"]}
    return [
        GuidelineRow(
            uid=uid,
            condition=match["condition"],
            action=match["action"],
            state=match["state"],
            because=match["because"],
            iteration=match["iteration"],
            duration_ms=match["duration_ms"],
            dropped_by=match["dropped_by"],
            tools=tuple(sorted(tools[uid], key=lambda row: _ORDER.get(row.state, 9))),
            follows=reports.get(uid),
        )
        for uid, match in last.items()
    ]


def _tool_rows(audit: Json) -> dict[str, list[ToolRow]]:
    calls = {call["uid"]: call for call in audit["calls"]}
    over = audit["state"] not in {"QUEUED", "RUNNING"}
    rows: dict[str, list[ToolRow]] = defaultdict(list)
    for decision in audit["decisions"]:
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
            )
        )
    return rows


def _outcome(decision: str, call: Json | None, *, over: bool) -> str:
    if decision != "NEEDS_TO_RUN":
        return decision
    if call is not None:
        return str(call["state"])
    return "NOT_RUN" if over else decision


def _insights(insights: Sequence[Json], decision: Json, kind: str) -> tuple[Json, ...]:
    """What is known of each missing or invalid parameter: at least its name."""
    known = {
        i["parameter"]: i for i in insights if i["tool"] == decision["tool"] and i["kind"] == kind
    }
    return tuple(known.get(name, {"parameter": name, "label": name}) for name in decision[kind])
