"""Among several tools of one guideline, the message may plainly ask for another one."""

from engine.model.base import InferToolCalls
from engine.model.offline.results import key_stems
from engine.spec import Tool
from engine.wording import is_content, related_stems, stem, words

_PLAINLY = 0.34


def another_tool_fits(question: InferToolCalls, text: str) -> str:
    """Why the message asks for what another tool of these guidelines does; empty where it does not."""
    siblings = _siblings(question)
    if not siblings:
        return ""
    said = _expanded(text)
    rival = max(siblings, key=lambda tool: (_fit(tool, said), tool.name))
    if _fit(question.tool, said) > 0 or _fit(rival, said) < _PLAINLY:
        return ""
    if any(_provides_for(question.tool, tool) for tool in siblings):
        return ""
    return f"The message asks for what {rival.name} does, not for this."


def _siblings(question: InferToolCalls) -> list[Tool]:
    by_name = question.situation.agent.tool_by_name
    names = {name for guideline in question.guidelines for name in guideline.tools}
    return [
        by_name[name] for name in sorted(names) if name in by_name and name != question.tool.name
    ]


def _provides_for(tool: Tool, other: Tool) -> bool:
    """Whether the tool finds what the other one needs ("find_rooms" for a room's id)."""
    own = key_stems(tool.name)
    return any(own & key_stems(p.name) for p in other.parameters if p.required)


def _expanded(text: str) -> dict[str, float]:
    said: dict[str, float] = {}
    for word in words(text):
        if is_content(word):
            one = stem(word)
            said[one] = 1.0
            for other, strength in related_stems(one):
                said[other] = max(said.get(other, 0.0), 0.8 * strength)
    return said


def _fit(tool: Tool, said: dict[str, float]) -> float:
    """How much of a tool's name the message says."""
    named = key_stems(tool.name)
    by_name = sum(said.get(one, 0.0) for one in named) / len(named) if named else 0.0
    described = {stem(word) for word in words(tool.description) if is_content(word)}
    return max(by_name, 0.3 * max((said.get(one, 0.0) for one in described), default=0.0))
