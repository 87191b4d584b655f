"""Choice providers: functions that name what a parameter of a tool may be, for whom the tool runs now."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from engine.errors import SpecError, ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext
from engine.tools.beside import Beside
from engine.tools.jsonable import as_json
from engine.tools.results import failure_of

ChoiceProvider: TypeAlias = Callable[[ToolContext], Any]
"""A sync or async function of the ToolContext that returns a list: JSON values, or enums, dates and the like."""


def check_provider(name: str, provider: Any) -> None:
    """Raises SpecError where `provider` cannot name the choices of parameter `name`."""
    remedy = "write def provider(context: ToolContext) -> list[...]"
    if not callable(provider):
        raise SpecError(
            f"parameter {name!r} has the choice_provider {provider!r}, which cannot be called; {remedy}",
            field=name,
        )
    try:
        inspect.signature(provider).bind(None)
    except TypeError as error:
        raise SpecError(
            f"parameter {name!r} has a choice_provider that does not take the context alone ({error}); {remedy}",
            field=name,
        ) from error
    except ValueError:  # a built-in function without a signature
        return
    if inspect.isgeneratorfunction(provider) or inspect.isasyncgenfunction(provider):
        raise SpecError(
            f"parameter {name!r} has a choice_provider that yields; return a list instead",
            field=name,
        )


async def provided(
    tool: str, providers: Mapping[str, ChoiceProvider], context: ToolContext, beside: Beside
) -> dict[str, tuple[Any, ...]]:
    """What each provider names, as JSON values; they run side by side. Raises ToolFailure for the first that fails."""
    outcomes = await asyncio.gather(
        *(_run(tool, name, provider, context, beside) for name, provider in providers.items())
    )
    return dict(zip(providers, outcomes, strict=True))


async def _run(
    tool: str, name: str, provider: ChoiceProvider, context: ToolContext, beside: Beside
) -> tuple[Any, ...]:
    async def ask_async() -> Any:
        try:
            value = provider(context)
            return await value if inspect.isawaitable(value) else value
        except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop of all tools
            return failure_of(tool, error)

    def ask_sync() -> Any:
        try:
            return provider(context)
        except BaseException as error:  # noqa: BLE001 - the thread's end would leave the caller waiting
            return failure_of(tool, error)

    if any(inspect.iscoroutinefunction(f) for f in (provider, inspect.unwrap(provider))):
        outcome = await beside.run_async(ask_async)
    else:
        outcome = await beside.run_sync(ask_sync)
    if isinstance(outcome, ToolFailure):
        raise outcome
    return _as_choices(name, outcome)


def _as_choices(name: str, outcome: Any) -> tuple[Any, ...]:
    if not isinstance(outcome, list | tuple | set | frozenset):
        raise _unusable(f"the choice_provider of {name!r} returned {outcome!r:.200}; return a list")
    try:
        return tuple(as_json(name, value) for value in outcome)
    except SpecError as error:
        raise _unusable(str(error)) from error


def _unusable(detail: str) -> ToolFailure:
    return ToolFailure(
        ToolError(
            kind=ToolErrorKind.BAD_OUTPUT, public="the answer could not be read", detail=detail
        )
    )
