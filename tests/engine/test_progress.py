"""What the customer reads while a tool works: nothing, one line, or reports, and the tool's own words instead."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from engine.events import MessageEvent, Phase, StatusEvent, ToolFinishedEvent
from engine.kit import Pace
from engine.outbox import Emission
from engine.progress import doing_of
from engine.spec import Latency
from engine.testing import (
    ScriptedModel,
    ScriptedTools,
    entries,
    matches,
    play,
    replies,
    scripted_kit,
)
from engine.tools.base import ToolContext
from tests.engine.agents import agent, guideline, tool, turn_of

QUICK = Pace(opening=0.05, reports=(0.1, 0.4), quiet=0.15)


async def run(
    function: Any, latency: Latency, *, pace: Pace = QUICK
) -> tuple[list[Emission], ScriptedModel]:
    spec = agent(
        guideline("a", "asks", "look", tools=("look",)),
        tools=[tool("look", description="Searches the archive. Slowly.", latency=latency)],
    )
    model = ScriptedModel(matches("G1"), replies("Well."))
    kit = replace(scripted_kit(model, ScriptedTools({"look": function})), pace=pace)
    return await play(turn_of(spec, "Look!"), kit), model


def texts(emitted: list[Emission]) -> list[str]:
    return [s.text for s in entries(emitted, StatusEvent) if s.text]


def working(seconds: float) -> Any:
    async def work(_arguments: Any, _context: ToolContext) -> int:
        await asyncio.sleep(seconds)
        return 1

    return work


def test_the_times_are_those_that_the_design_names() -> None:
    assert Pace() == Pace(opening=1.0, reports=(2.0, 8.0), quiet=2.0)


async def test_a_fast_tool_says_nothing_however_long_it_takes() -> None:
    emitted, _model = await run(working(0.15), Latency.FAST)
    assert texts(emitted) == []


async def test_a_medium_tool_says_one_line_that_names_what_it_does() -> None:
    emitted, _model = await run(working(0.3), Latency.MEDIUM)
    assert texts(emitted) == ["One moment, please: searches the archive"]


async def test_a_slow_tool_reports_twice_while_it_works() -> None:
    emitted, _model = await run(working(0.6), Latency.SLOW)
    assert texts(emitted) == [
        "Working on it: searches the archive",
        "This takes a little longer: searches the archive",
    ]
    (report, _second) = [s for s in entries(emitted, StatusEvent) if s.text]
    assert (report.phase, report.tools) == (Phase.RUNNING, ("look",))
    (finished,) = entries(emitted, ToolFinishedEvent)
    assert emitted.index(report) < emitted.index(finished)


@pytest.mark.parametrize("latency", [Latency.MEDIUM, Latency.SLOW])
async def test_one_that_is_done_in_time_says_nothing_then_or_later(latency: Latency) -> None:
    async def look(_arguments: Any, _context: ToolContext) -> int:
        return 1

    emitted, _model = await run(look, latency)
    await asyncio.sleep(0.2)
    assert texts(emitted) == []


async def test_reports_end_with_the_call_though_it_failed() -> None:
    async def look(_arguments: Any, _context: ToolContext) -> int:
        await asyncio.sleep(0.2)
        raise RuntimeError

    emitted, _model = await run(look, Latency.SLOW)
    assert texts(emitted) == ["Working on it: searches the archive"]


async def test_what_a_tool_says_itself_replaces_the_template() -> None:
    async def look(_arguments: Any, context: ToolContext) -> int:
        await asyncio.sleep(0.05)
        await context.emit_status("Reading shelf 1 …")
        await asyncio.sleep(0.55)
        return 1

    emitted, _model = await run(look, Latency.SLOW)
    # Quiet at 0.1 s, so soon after its own; not any more at 0.4 s.
    assert texts(emitted) == [
        "Reading shelf 1 …",
        "This takes a little longer: searches the archive",
    ]


async def test_a_message_of_the_tools_own_replaces_the_template_too() -> None:
    async def look(_arguments: Any, context: ToolContext) -> int:
        await context.emit_message("I am going down to the cellar.")
        await asyncio.sleep(0.2)
        return 1

    emitted, _model = await run(look, Latency.SLOW)
    assert texts(emitted) == []
    assert entries(emitted, MessageEvent)[0].text == "I am going down to the cellar."


async def test_no_report_ever_reaches_the_model() -> None:
    emitted, model = await run(working(0.6), Latency.SLOW)
    assert texts(emitted)
    asked = "".join(m.content for r in model.requests for m in r.messages)
    assert "Working on it" not in asked


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ("Finds a book. By its title.", "finds a book"),
        ("Finds a book\nby its title", "finds a book"),
        ("IBAN check for a transfer", "IBAN check for a transfer"),
        ("Uses {braces} and %s", "uses {braces} and %s"),
        ("", "find book"),
        ("A " + "very " * 60 + "long tale", "a " + "very " * 23 + "…"),
    ],
)
def test_a_report_names_the_tool_by_its_first_sentence_or_its_name(
    description: str, words: str
) -> None:
    assert doing_of(tool("find_book", description=description)) == words
