"""The conversation as prompt text: one JSON object a line, so that nobody's words can forge a line or close the block.

The text only grows from turn to turn (DESIGN.md §6): earlier turns are repeated unchanged, one part each.
"""

import json
import re
from collections.abc import Callable
from itertools import groupby
from typing import Any, assert_never

from engine.canonical import JsonObject
from engine.events import (
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    MessagePartEvent,
    Mode,
    ModeEvent,
    RecordedEvent,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.model.base import Situation

# The window moves in steps, so that two turns in a row nearly always start at the same turn.
WINDOW_TURNS = 40
WINDOW_STEP = 20

MAX_RESULT_CHARACTERS = 6_000

HEAD = "The conversation, oldest first, one JSON object a line:\n"

_FIRST = {name: place for place, name in enumerate(("guidelines", "id", "when", "then"))}


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (_FIRST.get(key, len(_FIRST)), str(key)))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value


Briefed = Callable[[BriefingEvent], JsonObject | None]


# What some reader takes for the end of a line, and halves of characters, which nothing can encode.
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def line(value: JsonObject) -> str:
    """One line of JSON; whatever could end a line inside it is escaped.

    Its own keys stand as they are given. Those further in are put in one order: a database may give them back in
    another than they had, and the same conversation must read the same.
    """
    text = json.dumps({key: _ordered(inner) for key, inner in value.items()}, ensure_ascii=False)
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def transcript(situation: Situation, briefed: Briefed) -> tuple[str, ...]:
    """The conversation up to now, one part per turn; `briefed` says how a briefing is told, if at all."""
    first = max(0, (situation.turn - WINDOW_TURNS + WINDOW_STEP - 1) // WINDOW_STEP * WINDOW_STEP)
    parts = [HEAD]
    if situation.variables:
        parts.append(line({"known of the customer": situation.variables}))
    if first:
        parts.append(line({"left out": f"the turns before turn {first}"}))
    # By turn: a message that came while an earlier turn was being answered belongs after that answer.
    recent = sorted(
        (entry for entry in situation.history if entry.turn >= first), key=lambda entry: entry.turn
    )
    for _number, entries in groupby(recent, key=lambda entry: entry.turn):
        parts.append("".join(_lines(entry, briefed, situation.rendered) for entry in entries))
    return tuple(part for part in parts if part)


def _lines(entry: RecordedEvent, briefed: Briefed, rendered: dict[int, str]) -> str:
    if isinstance(entry.event, BriefingEvent):
        told = briefed(entry.event)
        return line(told) if told else ""
    # Everything else reads the same in every question; the history keeps the entries, and so their identities, alive.
    text = rendered.get(id(entry))
    if text is None:
        text = rendered[id(entry)] = _told(entry.event)
    return text


def _told(event: Event) -> str:
    match event:
        case MessageEvent():
            said = {_SPEAKERS[event.source]: event.text}
            return line(said | ({"cut off": True} if event.partial else {}))
        case ToolFinishedEvent():
            return line(_outcome(event))
        case ConfirmationAskedEvent():
            return line({"awaits the customer's word": event.tool, "arguments": event.arguments})
        case ConfirmationAnsweredEvent():
            return line({"the customer's word": event.answer.value, "tool": event.tool})
        case ModeEvent():
            return line({"answered from here on by": _ANSWERERS[event.mode]})
        case BriefingEvent() | MessagePartEvent() | ToolStartedEvent() | StatusEvent():
            return ""
        case _:
            assert_never(event)


_SPEAKERS = {
    Source.CUSTOMER: "customer",
    Source.AGENT: "agent",
    Source.OPERATOR: "human operator",
    Source.SYSTEM: "system",
}

_ANSWERERS = {Mode.AUTO: "the agent", Mode.MANUAL: "a human operator"}


def _outcome(event: ToolFinishedEvent) -> JsonObject:
    told: JsonObject = {"tool": event.tool, "arguments": event.arguments}
    if event.error is not None:
        return told | {"failed": event.error.public}
    if event.withheld:
        return told | {"result": "not kept"}
    return told | {"result": _shortened(event.data)}


def _shortened(data: Any) -> Any:
    text = json.dumps(_ordered(data), ensure_ascii=False)
    if len(text) <= MAX_RESULT_CHARACTERS:
        return data
    return text[:MAX_RESULT_CHARACTERS] + f"… ({len(text)} characters in all)"
