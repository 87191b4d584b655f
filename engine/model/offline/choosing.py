"""ChooseTool: which of several overlapping tools is closest to what the customer needs."""

from engine.canonical import JsonObject
from engine.model.base import ChooseTool
from engine.model.offline.conversation import Conversation
from engine.model.offline.results import key_stems
from engine.spec import Tool
from engine.wording import is_content, related_stems, stem, weight, words

_BY_NAME = 1.5  # a word of the tool's name says more than one of its description
_RELATED = 0.6
_COMMON = 0.25  # of a word that several of the tools have: it tells them apart hardly at all


def choose(question: ChooseTool) -> JsonObject:
    """The answer to ChooseTool. Where no words are in common with any tool, the first one serves as well."""
    talk = Conversation(situation=question.situation)
    said = _stems(talk.new_text) or _stems(" ".join(one.text for one in talk.earlier[-1:]))
    described = {tool.name: _described(tool) for tool in question.tools}
    scores = {tool.name: _score(tool.name, said, described) for tool in question.tools}
    best = max(question.tools, key=lambda tool: scores[tool.name])  # of equals the first
    if scores[best.name] == 0:
        because = "The newest message has no words in common with any of them."
    else:
        shared = sorted(said & described[best.name].keys())
        because = f"It is closest to the newest message, by words such as {', '.join(shared[:4])}."
    return {"because": because, "tool": best.name}


def _stems(text: str) -> set[str]:
    found = {stem(word) for word in words(text) if is_content(word)}
    return found | {
        other for one in found for other, strength in related_stems(one) if strength >= _RELATED
    }


def _described(tool: Tool) -> dict[str, float]:
    """Stem → how much it says about the tool."""
    told: dict[str, float] = {}
    for parameter in tool.parameters:
        for word in words(f"{parameter.label} {parameter.description}"):
            if is_content(word):
                told[stem(word)] = 0.5 * weight(word)
    for word in words(tool.description):
        if is_content(word):
            told[stem(word)] = weight(word)
    for one in key_stems(tool.name):
        told[one] = _BY_NAME
    return told


def _score(name: str, said: set[str], described: dict[str, dict[str, float]]) -> float:
    """The words that the message shares with this tool, those that others have too counting little."""
    own = described[name]
    total = 0.0
    for one in said & own.keys():
        shared = any(one in told for other, told in described.items() if other != name)
        total += own[one] * (_COMMON if shared else 1.0)
    return total / (1.0 + 0.02 * len(own))
