"""The tools that this process can run."""

from functools import lru_cache

from django.conf import settings

from engine.tools.builtin import MODULES
from engine.tools.function import FunctionToolService


@lru_cache(maxsize=1)
def tool_service() -> FunctionToolService:
    """Built-in tools, those of STUDIO_TOOL_MODULES, and installed ones; raises SpecError naming what is wrong."""
    return FunctionToolService.from_modules((*MODULES, *settings.STUDIO_TOOL_MODULES))
