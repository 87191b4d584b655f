"""The tools that this process can run."""

from functools import lru_cache

from django.conf import settings

from engine.tools.function import FunctionToolService

BUILTIN_MODULES = ("engine.tools.builtin.calculator", "engine.tools.builtin.get_datetime")


@lru_cache(maxsize=1)
def tool_service() -> FunctionToolService:
    """Built-in tools, those of STUDIO_TOOL_MODULES, and installed ones; raises SpecError naming what is wrong."""
    return FunctionToolService.from_modules((*BUILTIN_MODULES, *settings.STUDIO_TOOL_MODULES))
