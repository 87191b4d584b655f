"""Choices that a tool's service names anew in each turn, such as the customer's own accounts (ENGINE.md §3).

They narrow the parameter's schema for this turn only: what prompts show, what arguments are checked against and what
the customer is offered is all the one narrowed tool. The answer lives in the turn's Kit, so that no other turn or
session ever sees it.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from engine.arguments import with_choices
from engine.canonical import canonical_json
from engine.errors import ToolFailure
from engine.kit import Kit
from engine.spec import Tool, ToolParameter
from engine.state import TurnState
from engine.trail import ChoicesOffered

logger = logging.getLogger(__name__)

MOST_CHOICES = 500  # more would not be a choice, and each stands in the prompt


async def offered(state: TurnState, kit: Kit, tool: Tool) -> Tool | str:
    """The tool with each parameter that `provides_choices` narrowed for this turn; or why it cannot run, a sentence.

    The service is asked once per turn and tool, however many ask here. An optional parameter without anything to choose
    is left out of the tool, which may run without it; a required one keeps the tool from running. So does any failure
    of the service, and choices that the parameter's own type refuses: what may be chosen is then not known.
    """
    if not _chooses(tool):
        return tool
    asked = kit.offers.get(tool.name)
    if asked is None:
        known = kit.choices_on_record.get(tool.name)
        named = _ask_and_record(state, kit, tool) if known is None else _repeat(kit, tool, known)
        asked = kit.offers[tool.name] = asyncio.ensure_future(named)
    # One who gives up waiting does not take the answer away from the others.
    return await asyncio.shield(asked)


def _chooses(tool: Tool) -> list[ToolParameter]:
    return [parameter for parameter in tool.parameters if parameter.provides_choices]


async def _ask_and_record(state: TurnState, kit: Kit, tool: Tool) -> Tool | str:
    started = datetime.now(UTC)
    named = await _ask(kit, tool, seconds=state.limits.choice_seconds)
    offer = ChoicesOffered(
        tool=tool.name,
        iteration=state.checkpoint.iteration,
        started_at=started,
        ended_at=datetime.now(UTC),
    )
    if isinstance(named, str):
        await kit.outbox.put(replace(offer, because=named))
        return named
    if too_many := _too_many(tool, named):
        await kit.outbox.put(replace(offer, because=too_many))
        return too_many
    await kit.outbox.put(replace(offer, choices=named))
    return _narrowed(tool, named)


async def _repeat(kit: Kit, tool: Tool, known: ChoicesOffered) -> Tool | str:
    now = datetime.now(UTC)
    await kit.outbox.put(replace(known, started_at=now, ended_at=now))
    return known.because or _narrowed(tool, known.choices)


async def _ask(kit: Kit, tool: Tool, *, seconds: float) -> dict[str, list[Any]] | str:
    labels = ", ".join(parameter.label for parameter in _chooses(tool))
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            named = await kit.tools.choices(tool, kit.context)
        return {name: _each_once(values) for name, values in named.items()}
    except ToolFailure as failure:
        logger.warning("No choices for tool %r: %s", tool.name, failure.error.detail)
        return f"The choices for {labels} could not be looked up: {failure.error.public}."
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return f"The choices for {labels} could not be looked up."  # the service's own doing
    except Exception:
        if deadline.expired():
            return f"The choices for {labels} did not come in time."
        logger.warning("No choices for tool %r.", tool.name, exc_info=True)
        return f"The choices for {labels} could not be looked up."


def _too_many(tool: Tool, choices: Mapping[str, Sequence[Any]]) -> str:
    """Why they cannot be offered; empty where they can."""
    for parameter in _chooses(tool):
        count = len(choices.get(parameter.name, ()))
        if count > MOST_CHOICES:
            return f"There are {count} choices for {parameter.label}; {MOST_CHOICES} at most can be offered."
    return ""


def _narrowed(tool: Tool, named: Mapping[str, Sequence[Any]]) -> Tool | str:
    parameters = []
    for parameter in tool.parameters:
        if not parameter.provides_choices:
            parameters.append(parameter)
            continue
        choices = list(named.get(parameter.name, ()))
        if choices:
            try:
                schema = with_choices(parameter.schema, choices)
            except (TypeError, ValueError) as error:
                logger.warning("Tool %r: parameter %r %s", tool.name, parameter.name, error)
                return f"The choices for {parameter.label} are not what it can be."
            parameters.append(replace(parameter, schema=schema))
        elif parameter.required:
            return f"There is nothing to choose from for {parameter.label}."
    return replace(tool, parameters=tuple(parameters))


def _each_once(values: Sequence[Any]) -> list[Any]:
    """Without null, which is no choice but the absence of one."""
    return list({canonical_json(value): value for value in values if value is not None}.values())
