"""Text about the customer turned into text to the customer: "their card" → "your card"."""

import re
from collections.abc import Sequence

from engine.wording import begins_with_speaker, fold, without_speaker

# Those of SPEAKERS that are the customer wherever they stand in an action ("the person who called" need not be).
_CUSTOMER = (
    r"the\s+(?:customer|user|client|caller|guest|visitor|patient|passenger|member|"
    r"employee|reader|student|traveller)"
)

# "you" in an action is the agent; the customer is "they". Marks keep the two apart while both are turned round.
_TURNS = (
    (re.compile(r"\byou are\b", re.IGNORECASE), "\u0002I am"),
    (re.compile(r"\byou're\b", re.IGNORECASE), "\u0002I am"),
    (re.compile(r"\byourself\b", re.IGNORECASE), "\u0002myself"),
    (re.compile(r"\byour\b", re.IGNORECASE), "\u0002my"),
    (re.compile(r"\b(to|for|with|from|by|at|of|about)\s+you\b", re.IGNORECASE), "\\1 \u0002me"),
    (re.compile(r"\byou\b", re.IGNORECASE), "\u0002I"),
    (re.compile(rf"\b(?:{_CUSTOMER}|they)\s+(?:is|are)\b", re.IGNORECASE), "you are"),
    (re.compile(rf"\b(?:{_CUSTOMER}|they)\s+(?:has|have)\b", re.IGNORECASE), "you have"),
    (re.compile(rf"\b(?:{_CUSTOMER}|they)\s+(?:was|were)\b", re.IGNORECASE), "you were"),
    (re.compile(rf"\b(?:{_CUSTOMER}|they)\s+(?:does|do)\b", re.IGNORECASE), "you do"),
    (re.compile(r"\bthey(?:'re|’re)", re.IGNORECASE), "you are"),
    (re.compile(r"\bthey(?:'ve|’ve)", re.IGNORECASE), "you have"),
    (re.compile(rf"\b{_CUSTOMER}(?:'s|’s|s'|s’)", re.IGNORECASE), "your"),
    (
        re.compile(
            rf"\b{_CUSTOMER}\s+(wants|needs|likes|asks|wishes|gets|pays|sends|says)\b",
            re.IGNORECASE,
        ),
        "you \u0003\\1",
    ),
    (re.compile(rf"\b{_CUSTOMER}\b", re.IGNORECASE), "you"),
    (re.compile(r"\bthey\b", re.IGNORECASE), "you"),
    (re.compile(r"\b(?:themselves|themself|himself|herself)\b", re.IGNORECASE), "yourself"),
    (re.compile(r"\btheirs\b", re.IGNORECASE), "yours"),
    # What is "on their way" are goods and people sent, hardly the customer.
    (re.compile(r"(?<!\bon )\btheir\b", re.IGNORECASE), "your"),
    (re.compile(r"\b(?:his|her)\b(?=\s+\w)", re.IGNORECASE), "your"),
    (re.compile(r"\bthem\b", re.IGNORECASE), "you"),
)


def to_customer(text: str) -> str:
    """Text about the customer as text to the customer: "their card" → "your card", "you" (the agent) → "I"."""
    for pattern, replacement in _TURNS:
        text = pattern.sub(replacement, text)
    text = re.sub("\u0003(\\w+)", lambda match: base_form(match[1]), text)
    return text.replace("\u0002", "").strip()


def base_form(verb: str) -> str:
    """The base form of a verb in the third person: "wants" → "want", "tries" → "try"."""
    irregular = {"has": "have", "is": "are", "does": "do", "goes": "go", "was": "were"}
    if verb in irregular:
        return irregular[verb]
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    if verb.endswith(("sses", "shes", "ches", "xes", "zes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


def finished(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?…:" else f"{text}."


def ability(condition: str) -> str:
    """A condition as what the customer may do, after "when you": "the customer asks about fees" → "ask about fees"."""
    if not begins_with_speaker(condition):
        return ""
    rest = without_speaker(condition).rstrip(".!?,; ")
    verb, _, tail = rest.partition(" ")
    lowered = fold(verb)
    if lowered in (
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "does",
        "do",
        "did",
        "had",
        "will",
        "would",
    ):
        form = {"is": "are", "was": "were", "has": "have", "does": "do"}.get(lowered, lowered)
    elif lowered.endswith("s") and not lowered.endswith("ss"):
        form = base_form(lowered)
    else:
        return ""
    return f"{form} {to_customer(tail)}".strip() if tail and len(rest) <= 120 else ""


def joined(parts: Sequence[str], word: str) -> str:
    """ "a, b or c"."""
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
