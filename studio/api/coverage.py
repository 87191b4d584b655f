"""What of an agent is tested."""

from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import load_agent
from studio.api.auth import caller
from studio.api.reading import Paging
from studio.coverage import NEVER, Column, Coverage, Heat, Source, Standing, coverage_of, heats_of

router = Router(tags=["coverage"])


class CoveredPlace(BaseModel):
    suite: int | None = Field(description="None of a chat")
    scenario: str = Field(description="Its uid; empty of a chat")
    title: str
    sessions: list[int] = Field(description="The conversations that are read")
    fired: int = Field(description="Turns at whose end it was in force")
    evaluated: int = Field(description="Turns that judged it")
    dropped: int


class CoveredGuideline(BaseModel):
    guideline: str
    condition: str
    enabled: bool
    fired: bool = Field(description="In some turn of what is read")
    evaluated: bool = Field(
        description="Judged in some turn, or in force without being asked about"
    )
    positive: int = Field(description="Scenarios that expect it to match")
    negative: int = Field(description="Scenarios that expect it not to match")
    covered: bool
    missing: list[Literal["fired", "positive", "negative"]]
    scenarios: list[CoveredPlace] = Field(
        description="Where it was judged: scenarios, or the newest chats"
    )


class CoveredTool(BaseModel):
    tool: str
    called: bool
    guidelines: list[str] = Field(description="Those switched on that have it attached")
    scenarios: int = Field(description="That expect something of its calls")


class CoverageOut(BaseModel):
    of: Literal["runs", "chats"]
    runs: list[int] = Field(description="The newest finished run of each suite, which are read")
    coverage: int = Field(
        description="Percent of the guidelines that are switched on that have both a scenario that expects them to "
        "match and one that expects them not to; those that always apply need the first only"
    )
    covered: int
    enabled: int
    guidelines: list[CoveredGuideline] = Field(description="In the author's order")
    count: int = Field(description="Guidelines in all")
    tools: list[CoveredTool]


@router.get("/agents/{slug}/coverage", response=CoverageOut)
def read_coverage(
    request: HttpRequest,
    slug: str,
    paging: Query[Paging],
    of: Literal["runs", "chats"] = "runs",
) -> JsonObject:
    """By the newest finished run of each suite, or by the chats of the last 30 days; a page of the guidelines."""
    found = coverage_of(load_agent(caller(request), slug), Source(of))
    shown = found.standings[paging.offset : paging.offset + paging.limit]
    heats = heats_of(found.record.columns, [standing.uid for standing in shown])
    return {
        "of": of,
        "runs": [run.pk for run in found.record.runs],
        "coverage": found.share.percent,
        "covered": found.share.covered,
        "enabled": found.share.enabled,
        "guidelines": [_guideline(standing, found, heats) for standing in shown],
        "count": len(found.standings),
        "tools": [
            {
                "tool": tool.name,
                "called": tool.called,
                "guidelines": tool.guidelines,
                "scenarios": len(tool.scenarios),
            }
            for tool in found.tools
        ],
    }


def _guideline(
    standing: Standing, found: Coverage, heats: dict[tuple[str, str], Heat]
) -> JsonObject:
    places = [
        (column, heats.get((standing.uid, column.key), NEVER)) for column in found.record.columns
    ]
    return {
        "guideline": standing.uid,
        "condition": standing.condition,
        "enabled": standing.enabled,
        "fired": standing.fired,
        "evaluated": standing.fired or standing.silent,
        "positive": len(standing.positive),
        "negative": len(standing.negative),
        "covered": standing.covered,
        "missing": [missing.value for missing in standing.missing],
        "scenarios": [_place(column, heat) for column, heat in places if heat != NEVER],
    }


def _place(column: Column, heat: Heat) -> JsonObject:
    return {
        "suite": column.scenario.suite if column.scenario else None,
        "scenario": column.scenario.uid if column.scenario else "",
        "title": column.title,
        "sessions": column.sessions,
        "fired": heat.fired,
        "evaluated": heat.fired + heat.silent + heat.dropped,
        "dropped": heat.dropped,
    }
