"""The tools that this process can run, and what the deployment gives them."""

from functools import lru_cache
from typing import Any

from django.conf import settings

from engine.tools.builtin import MODULES
from engine.tools.function import ENTRY_POINT_GROUP, FunctionToolService
from engine.tools.plugins import gather_plugin_data


@lru_cache(maxsize=1)
def tool_service() -> FunctionToolService:
    """Built-in tools, those of STUDIO_TOOL_MODULES, and installed ones; raises SpecError naming what is wrong."""
    return FunctionToolService.from_modules(_modules())


def plugin_data() -> dict[str, Any]:
    """What tool modules give to `ToolContext.plugin_data`, a dict of the caller's own; raises SpecError."""
    return dict(_gathered())


@lru_cache(maxsize=1)
def _gathered() -> dict[str, Any]:
    return gather_plugin_data(_modules(), group=ENTRY_POINT_GROUP)


def _modules() -> tuple[str, ...]:
    return (*MODULES, *settings.STUDIO_TOOL_MODULES)
