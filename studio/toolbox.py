"""The tools that this process can run, and what the deployment gives them."""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from engine import spec
from engine.tools.base import ToolService
from engine.tools.builtin import MODULES
from engine.tools.function import ENTRY_POINT_GROUP, FunctionToolService
from engine.tools.gathered import GatheredTools
from engine.tools.plugins import gather_plugin_data

if TYPE_CHECKING:
    from engine.tools.runner import Runner

_LONGEST_CALL = 2 * 3600.0  # seconds; a tool's time limit is an hour at most


@lru_cache(maxsize=1)
def tool_service() -> FunctionToolService:
    """Built-in tools, those of STUDIO_TOOL_MODULES, and installed ones; raises SpecError naming what is wrong."""
    return FunctionToolService.from_modules(_modules())


def tools_for(tools: Iterable[spec.Tool]) -> ToolService:
    """What can call these tools: functions, and uploaded ones as they stand now.

    Reads the database, which the engine never does: to be called before it starts. Not at all where all of them are
    functions; else with one query, and one more where a package is new to this machine. Raises SpecError as
    `tool_service`.
    """
    functions = tool_service()
    known = {function.spec.uid for function in functions.functions}
    others = [tool for tool in tools if tool.uid not in known]
    if not others:
        return functions

    # Imported here, so that who runs no uploaded tool loads nothing of them.
    from engine.tools.installed import TemplateToolService
    from studio.installing import installed_tools

    installed, unavailable = installed_tools(others)
    if not installed and not unavailable:
        return functions
    return GatheredTools([TemplateToolService(installed, unavailable, runner=runner()), functions])


@lru_cache(maxsize=1)
def runner() -> "Runner":
    """The one that runs uploaded tools in this process; what it runs ends with the process."""
    from engine.tools.installed import sweep_calls
    from engine.tools.runner import Runner
    from studio.installing import tools_root

    sessions = tools_root() / "sessions"
    sweep_calls(sessions, older_than=_LONGEST_CALL)
    return Runner(sessions=sessions, data=tools_root() / "data")


def plugin_data() -> dict[str, Any]:
    """What tool modules give to `ToolContext.plugin_data`, a dict of the caller's own; raises SpecError."""
    return dict(_gathered())


@lru_cache(maxsize=1)
def _gathered() -> dict[str, Any]:
    return gather_plugin_data(_modules(), group=ENTRY_POINT_GROUP)


def _modules() -> tuple[str, ...]:
    return (*MODULES, *settings.STUDIO_TOOL_MODULES)
