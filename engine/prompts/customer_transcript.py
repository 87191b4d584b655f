"""The conversation as its customer sees it: what was said and that something awaits their word, no results of tools."""

from dataclasses import replace
from typing import assert_never

from engine.events import (
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    MessagePartEvent,
    ModeEvent,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.model.base import Situation
from engine.prompts.transcript import transcript


def customer_transcript(situation: Situation) -> tuple[str, ...]:
    """One part per turn, as in `transcript`, without what is known of the customer: that belongs to their part."""
    seen = tuple(
        replace(entry, event=event)
        for entry in situation.history
        if (event := _seen(entry.event)) is not None
    )
    # What other questions have rendered is by the identity of entries, of which these are copies.
    return transcript(replace(situation, history=seen, variables={}, rendered={}), _untold)


def _seen(event: Event) -> Event | None:
    match event:
        case MessageEvent() | ModeEvent():
            return event
        case ConfirmationAskedEvent():
            # Arguments without a label are kept from customers.
            told = {event.labels[n]: v for n, v in event.arguments.items() if n in event.labels}
            return replace(event, tool=event.tool.replace("_", " "), arguments=told)
        case (
            BriefingEvent()
            | ConfirmationAnsweredEvent()
            | MessagePartEvent()
            | StatusEvent()
            | ToolFinishedEvent()
            | ToolStartedEvent()
        ):
            return None
        case _:
            assert_never(event)


def _untold(_event: BriefingEvent) -> None:
    """Nobody shows a customer what the agent was told to say."""
