"""Python functions as tools: `@tool`, and the ToolService that runs them (TOOLS.md §1)."""

import importlib
import inspect
import math
import re
import traceback
from collections.abc import Callable, Iterable
from functools import lru_cache, update_wrapper
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from pydantic import ValidationError

from engine.canonical import JsonObject, digest
from engine.errors import SpecError, ToolError, ToolErrorKind, ToolFailure
from engine.spec import Confirm, Latency, Tool
from engine.tools.base import ToolContext, ToolResult
from engine.tools.beside import Beside, TooManyHangingError
from engine.tools.docstring import Docstring
from engine.tools.emitting import Emissions
from engine.tools.parameters import FunctionParameter, read_signature
from engine.tools.providing import ChoiceProvider, provided
from engine.tools.results import failure_of, result_of

P = ParamSpec("P")
R = TypeVar("R")

ENTRY_POINT_GROUP = "guideline_studio.tools"
# What every model API accepts as the name of a function.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class ToolFunction(Generic[P, R]):
    """A function with its `spec`; called like the plain function, it runs as one."""

    def __init__(
        self, function: Callable[P, R], spec: Tool, parameters: tuple[FunctionParameter, ...]
    ):
        self.function = function
        self.spec = spec
        self.is_async = any(
            inspect.iscoroutinefunction(f) for f in (function, inspect.unwrap(function))
        )
        self._parameters = {parameter.spec.name: parameter for parameter in parameters}
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.spec.name!r} from {self.function.__module__}>"

    @property
    def providers(self) -> dict[str, ChoiceProvider]:
        """By the name of the parameter whose choices they name."""
        return {name: p.provider for name, p in self._parameters.items() if p.provider is not None}

    def read_arguments(self, arguments: JsonObject) -> dict[str, Any]:
        """JSON arguments as what the function receives; raises ToolFailure where its types refuse one.

        Absent optional ones take the function's default, or None. A null for a parameter that knows none is
        absent.
        """
        self._refuse_names(arguments)
        values: dict[str, Any] = {}
        for name, parameter in self._parameters.items():
            absent = name not in arguments or (
                arguments[name] is None and not parameter.accepts_null
            )
            if not absent:
                values[name] = _read(parameter, arguments[name])
            elif not parameter.has_default:
                values[name] = None
        return values

    def _refuse_names(self, arguments: JsonObject) -> None:
        required = {name for name, known in self._parameters.items() if known.spec.required}
        given = {name for name, value in arguments.items() if value is not None}
        if missing := sorted(required - given):
            raise _refused(f"{missing[0]!r} is missing")
        if unknown := sorted(arguments.keys() - self._parameters.keys()):
            raise _refused(f"there is no parameter {unknown[0]!r}")


@overload
def tool(function: Callable[P, R], /) -> ToolFunction[P, R]: ...


@overload
def tool(
    *,
    name: str = "",
    consequential: bool = False,
    confirm: Confirm | Literal["always", "inferred"] | None = None,
    latency: Latency | str = Latency.FAST,
    timeout: float | None = None,
    uid: str = "",
) -> Callable[[Callable[P, R]], ToolFunction[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    consequential: bool = False,
    confirm: Confirm | Literal["always", "inferred"] | None = None,
    latency: Latency | str = Latency.FAST,
    timeout: float | None = None,
    uid: str = "",
) -> Any:
    """Makes a sync or async function a tool; usable as `@tool` and as `@tool(...)`.

    The first parameter is the ToolContext. Each further one becomes a ToolParameter by its annotation (str,
    int, float, bool, Decimal, dates and times, UUID, Email, enums, Literal, lists, pydantic models, unions
    with None, and `Annotated[..., ToolParameterOptions(...)]`); a default, or a union with None, makes it
    optional. The docstring is what the model reads about the tool. It returns JSON data, what pydantic can
    write as JSON, or a ToolResult; it may raise ToolFailure to say in its own words why it could not do its
    work.

    `consequential` marks a tool that changes something; the customer confirms each of its calls, with `confirm`
    "inferred" only those with an argument that is the model's own conclusion. `latency` is "fast", "medium" or
    "slow"; `timeout` in seconds replaces the tier's deadline. `name` is the function's unless given, `uid` derives
    from its module and name unless given. Raises SpecError, whose `field` is the parameter, for a signature that
    cannot be a tool's.
    """

    def decorate(function: Callable[..., Any]) -> ToolFunction[..., Any]:
        _refuse_non_function(function)
        parameters = read_signature(function)
        spec = Tool(
            uid=uid or digest(f"{function.__module__}:{function.__qualname__}")[:32],
            name=_tool_name(name or function.__name__),
            description=Docstring.of(function).description,
            parameters=tuple(parameter.spec for parameter in parameters),
            consequential=consequential,
            confirm=_confirm(confirm, consequential=consequential),
            latency=_latency(latency),
            timeout=_timeout(timeout),
        )
        return ToolFunction(function, spec, parameters)

    return decorate if function is None else decorate(function)


def _refuse_non_function(function: object) -> None:
    if not inspect.isfunction(function):
        raise SpecError(
            f"@tool is for functions, not for {function!r}; write def name(context, ...)"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SpecError(f"tool {function.__qualname__!r} yields; return one value, such as a list")


def _tool_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{name!r} cannot be the name of a tool; "
            "use @tool(name=...) with 1 to 64 letters a-z, digits, _ and -",
            field="name",
        )
    return name


def _confirm(confirm: str | None, *, consequential: bool) -> Confirm:
    if confirm is None:
        return Confirm.ALWAYS
    if not consequential:
        raise SpecError(
            f"confirm={confirm!r} counts only for a tool that changes something; "
            "add consequential=True, or leave it out",
            field="confirm",
        )
    try:
        return Confirm(confirm)
    except ValueError as error:
        raise SpecError(
            f"{confirm!r} is no way to confirm; use one of {', '.join(Confirm)}", field="confirm"
        ) from error


def _latency(latency: str) -> Latency:
    try:
        return Latency(latency)
    except ValueError as error:
        raise SpecError(
            f"{latency!r} is no latency; use one of {', '.join(Latency)}", field="latency"
        ) from error


def _timeout(timeout: float | None) -> float | None:
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise SpecError(f"the timeout {timeout!r} must be more than 0 seconds", field="timeout")
    return timeout


def _read(parameter: FunctionParameter, value: Any) -> Any:
    try:
        found = parameter.read(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f" → {step}" for step in problem["loc"])
        raise _refused(
            f"{parameter.spec.label}{place}: {problem['msg']}", detail=str(error)
        ) from error
    try:
        return parameter.adapt(found)
    except Exception as error:
        detail = "".join(traceback.format_exception(error))
        raise _refused(f"{parameter.spec.label} was not accepted", detail=detail) from error


def _refused(problem: str, *, detail: str = "") -> ToolFailure:
    return ToolFailure(
        ToolError(
            kind=ToolErrorKind.EXCEPTION,
            public=f"it did not accept its arguments ({problem})",
            detail=detail or problem,
        )
    )


class FunctionToolService:
    """The ToolService of tool functions; see `Beside` for where they run.

    A call that is cancelled returns at once: an async tool is cancelled too, a sync one runs to its end
    unheard.
    """

    def __init__(self, tools: Iterable[ToolFunction[..., Any]], *, beside: Beside | None = None):
        """Raises SpecError where two different tools have one name; `beside` is shared by all services unless given."""
        self._by_name: dict[str, ToolFunction[..., Any]] = {}
        for function in tools:
            known = self._by_name.setdefault(function.spec.name, function)
            if known is not function:
                raise SpecError(
                    f"two tools are named {function.spec.name!r}: in {known.function.__module__} "
                    f"and in {function.function.__module__}; rename one with @tool(name=...)",
                    field="name",
                )
        self._by_uid = {function.spec.uid: function for function in self._by_name.values()}
        self._beside = beside or _shared_beside()

    @classmethod
    def from_modules(
        cls, names: Iterable[str], *, group: str = ENTRY_POINT_GROUP
    ) -> "FunctionToolService":
        """The tools that stand at the top level of the named modules and of the entry points of `group`.

        An entry point names a module or one tool. Raises SpecError for what cannot be imported or holds no
        tool.
        """
        found = [function for name in names for function in _tools_in_module(name)]
        for entry_point in entry_points(group=group):
            found += _tools_in_entry_point(entry_point)
        return cls(found)

    @property
    def functions(self) -> tuple[ToolFunction[..., Any], ...]:
        """Where the tools come from, in the order in which they were given."""
        return tuple(self._by_name.values())

    async def describe(self) -> tuple[Tool, ...]:
        """The tools, in the order in which they were given."""
        return tuple(function.spec for function in self._by_name.values())

    async def choices(self, tool: Tool, context: ToolContext) -> dict[str, tuple[Any, ...]]:
        """What the choice providers of the function name now, as JSON; raises ToolFailure."""
        function = self._function_of(tool)
        try:
            return await provided(tool.name, function.providers, context, self._beside)
        except TooManyHangingError as error:
            raise _unavailable(f"tool {tool.name!r} was not asked: {error}") from error

    def _function_of(self, tool: Tool) -> ToolFunction[..., Any]:
        function = self._by_uid.get(tool.uid) or self._by_name.get(tool.name)
        if function is None:
            raise _unavailable(f"no function is registered for tool {tool.name!r} ({tool.uid})")
        return function

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Runs the function of `tool` (found by uid, else by name); raises ToolFailure for every failure."""
        function = self._function_of(tool)
        emissions = Emissions(context, waits=not function.is_async)
        try:
            outcome = await self._run(function, emissions.context, arguments)
            await emissions.drain()
        except TooManyHangingError as error:
            raise _unavailable(f"tool {tool.name!r} was not started: {error}") from error
        finally:
            emissions.close()
        if isinstance(outcome, ToolFailure):
            raise outcome
        return outcome

    async def _run(
        self, function: ToolFunction[..., Any], context: ToolContext, arguments: JsonObject
    ) -> ToolResult | ToolFailure:
        if function.is_async:
            return await self._beside.run_async(lambda: _outcome(function, context, arguments))
        return await self._beside.run_sync(lambda: _sync_outcome(function, context, arguments))


async def _outcome(
    function: ToolFunction[..., Any], context: ToolContext, arguments: JsonObject
) -> ToolResult | ToolFailure:
    try:
        # Here and not on the engine's loop: validators and adapters are code of the tool's.
        value = function.function(context, **function.read_arguments(arguments))
        if inspect.isawaitable(
            value
        ):  # also what a sync decorator around an async function returns
            value = await value
        return result_of(function.spec.name, value)
    except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop of all tools
        return failure_of(function.spec.name, error)


def _sync_outcome(
    function: ToolFunction[..., Any], context: ToolContext, arguments: JsonObject
) -> ToolResult | ToolFailure:
    try:
        value = function.function(context, **function.read_arguments(arguments))
        return result_of(function.spec.name, value)
    except BaseException as error:  # noqa: BLE001 - the thread's end would leave the caller waiting
        return failure_of(function.spec.name, error)


@lru_cache(maxsize=1)
def _shared_beside() -> Beside:
    return Beside()


def _unavailable(detail: str) -> ToolFailure:
    return ToolFailure(
        ToolError(kind=ToolErrorKind.UNAVAILABLE, public="it is not available", detail=detail)
    )


def _tools_in_module(name: str) -> list[ToolFunction[..., Any]]:
    try:
        module = importlib.import_module(name)
    except SpecError as error:
        raise SpecError(f"in tool module {name!r}: {error}", field=error.field) from error
    except Exception as error:
        raise SpecError(
            f"tool module {name!r} cannot be imported ({type(error).__name__}: {error}); "
            "correct it or take it out of STUDIO_TOOL_MODULES",
            field="STUDIO_TOOL_MODULES",
        ) from error
    found = [value for value in vars(module).values() if isinstance(value, ToolFunction)]
    if not found:
        raise SpecError(
            f"tool module {name!r} has no @tool function at its top level",
            field="STUDIO_TOOL_MODULES",
        )
    return found


def _tools_in_entry_point(entry_point: EntryPoint) -> list[ToolFunction[..., Any]]:
    found = _tools_in_module(entry_point.module)
    if not entry_point.attr:
        return found
    value = entry_point.load()
    if not isinstance(value, ToolFunction):
        raise SpecError(
            f"entry point {entry_point.value!r} names {value!r}, which is no tool; decorate it with @tool",
            field=entry_point.name,
        )
    return [value]
