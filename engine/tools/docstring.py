"""What a tool's docstring says: the description for the model, and its parameters where it lists them."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SECTION = re.compile(
    r"^(?:(?P<google>Args|Arguments|Parameters|Params|Returns?|Yields|Raises):\s*$"
    r"|(?P<numpy>Parameters|Returns|Yields|Raises)\s*\n-{3,}\s*$"
    r"|:(?:param|parameter|arg|argument|type|returns?|rtype|raises?)\b)",
    re.MULTILINE,
)
_SPHINX_ENTRY = re.compile(
    r"^:(?:param|parameter|arg|argument)\s+(?:[^:\n]*?\s)?(\w+):\s*(.*(?:\n[ \t]+.*)*)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Docstring:
    """`description` is the prose before the first section; `parameters` maps names to one line each."""

    description: str
    parameters: dict[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Docstring":
        """Reads the Google and Sphinx styles; without a docstring everything is empty."""
        text = (inspect.getdoc(function) or "").strip()
        section = _SECTION.search(text)
        end = section.start() if section else len(text)
        return cls(description=text[:end].strip(), parameters=_entries(text[end:]))


def _entries(sections: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for name, text in _SPHINX_ENTRY.findall(sections):
        entries[name] = " ".join(text.split())
    listing = re.search(
        r"^(?:Args|Arguments|Parameters|Params):[ \t]*\n((?:[ \t]+.*\n?|[ \t]*\n)+)",
        sections,
        re.MULTILINE,
    )
    if listing:
        body = inspect.cleandoc("\n" + listing[1])
        for entry in re.findall(r"^\S.*(?:\n(?:[ \t]+.*|[ \t]*$))*", body, re.MULTILINE):
            named = re.match(r"\**(\w+)[ \t]*(?:\([^)\n]*\))?:[ \t]*(.*)", entry, re.DOTALL)
            if named:
                entries[named[1]] = " ".join(named[2].split())
    return entries
