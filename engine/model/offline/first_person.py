"""A tester's words about a customer as the customer's own: "find out whether their refund has arrived" → "I want to
find out whether my refund has arrived." (English; other languages are said as they stand).
"""

import re

from engine.model.offline.turning import base_form, finished
from engine.wording import SPEAKERS, words

_SOMEBODY = rf"(?:they|you|he|she|the\s+(?:{SPEAKERS}))"
_PREPOSITIONS = "to|for|with|from|by|at|of|about|without|after|behind"
_TAKERS = "tell|give|send|help|show|call|let|pay|refund|ask|offer|bring|inform|assure|connect|pass"
_TURNS = (
    (re.compile(rf"\b{_SOMEBODY}\s+(?:is|are)\b", re.IGNORECASE), "I am"),
    (re.compile(rf"\b{_SOMEBODY}\s+(?:was|were)\b", re.IGNORECASE), "I was"),
    (re.compile(rf"\b{_SOMEBODY}\s+(?:has|have)\b", re.IGNORECASE), "I have"),
    (re.compile(rf"\b{_SOMEBODY}\s+(?:does|do)\b", re.IGNORECASE), "I do"),
    (re.compile(rf"\bthe\s+(?:{SPEAKERS})(?:'s|’s|s'|s’)", re.IGNORECASE), "my"),
    (re.compile(rf"\b({_PREPOSITIONS}|{_TAKERS})\s+(?:you|them|him|her)\b(?!\s+own)", re.IGNORECASE), "\\1 me"),
    (re.compile(r"\b(?:your|their|his|her)\b(?=\s+\w)", re.IGNORECASE), "my"),
    (re.compile(r"\b(?:yours|theirs|hers)\b", re.IGNORECASE), "mine"),
    (re.compile(r"\b(?:yourself|themselves|themself|himself|herself)\b", re.IGNORECASE), "myself"),
    (re.compile(rf"\b{_SOMEBODY}\s+(wants|needs|likes|knows|lives|wishes|gets|pays)\b", re.IGNORECASE), "I \u0001\\1"),
    (re.compile(rf"\b{_SOMEBODY}\b", re.IGNORECASE), "I"),
)  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+")
_SUBJECT = re.compile(
    rf"^(?:(?:the|an?)\s+)?(?:{SPEAKERS}|you)\s+(?=(?:wants?|needs?|wish|wishes|would|hopes?|tries|"
    r"asks?|is|are|has|have|intends?|plans?)\b)",
    re.IGNORECASE,
)
_WANTING = re.compile(
    r"^(?:(?P<verb>wants?|needs?|wish(?:es)?|hopes?|tries|intends?|plans?)|would like)\b\s*",
    re.IGNORECASE,
)
_STATE = re.compile(r"^(?P<verb>is|are|has|have)\b\s*", re.IGNORECASE)
_QUESTION = re.compile(r"^(?:whether|if|what|when|where|which|who|why|how)\b", re.IGNORECASE)
_NOUN = re.compile(
    r"^(?:an?|the|my|your|their|his|her|some|more|another|any|help|information|advice|no|\d+)\b",
    re.IGNORECASE,
)
_GERUND = re.compile(
    r"^(?!(?:bring|sing|string|ring|king|spring|thing)\b)\w{3,}ing\b", re.IGNORECASE
)
_FEW = 4  # words, of which none need belong to grammar


def wish(goal: str) -> str:
    """The first sentence of a goal as what its customer says; empty where the goal says nothing."""
    said = next((part.strip() for part in _SENTENCE.split(goal.strip()) if part.strip()), "")
    if not said or re.match(r"^I\b|^I'", said) or said.endswith("?") or not _is_english(said):
        return finished(said)
    whole = said.rstrip(" .!")
    said = _SUBJECT.sub("", whole)
    if said != whole and (state := _STATE.match(said)):
        verb = "am" if state["verb"].lower() in ("is", "are") else "have"
        return finished(f"I {verb} {oneself(said[state.end() :])}")
    wanting = _WANTING.match(said)
    if wanting:
        verb = base_form((wanting["verb"] or "would like").lower())
        return finished(f"I {verb} {oneself(said[wanting.end() :])}")
    said = re.sub(r"^asks\b", "ask", oneself(said))
    if said.lower().startswith("to "):
        return finished(f"I want {_lowered(said)}")
    if _QUESTION.match(said):
        return finished(f"I want to know {_lowered(said)}")
    if _NOUN.match(said):
        return finished(f"I want {_lowered(said)}")
    if _GERUND.match(said):
        return finished(f"It is about {_lowered(said)}")
    return finished(f"I want to {_lowered(said)}")


def oneself(text: str) -> str:
    """Text about the customer, or to them, as their own: "their card" and "your card" → "my card"."""
    for pattern, replacement in _TURNS:
        text = pattern.sub(replacement, text)
    return re.sub("\u0001(\\w+)", lambda found: base_form(found[1]), text).strip()


def _lowered(text: str) -> str:
    """Without the capital of its first word, unless the word has others or is a name."""
    first = text.split(" ", 1)[0]
    if first == "I" or not first[1:].islower():
        return text
    return text[:1].lower() + text[1:]


def _is_english(text: str) -> bool:
    """Whether one of its words, if there are more than a few, is of English grammar."""
    said = words(text)
    return (len(said) <= _FEW and text.isascii()) or not _ENGLISH.isdisjoint(said)


_ENGLISH = frozenset(
    "the to for with my your their whether if when how what why where which and or from about that this have it".split()
)
