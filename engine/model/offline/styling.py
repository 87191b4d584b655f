"""Sentences in the words of canned responses that say the same (composition "composited")."""

from collections.abc import Sequence

from engine.closeness import closeness

_SAME = 0.45
_ABOUT = 0.3


def in_style(sentences: Sequence[str], style: Sequence[str]) -> list[str]:
    """The sentences; one that a canned response says too is said in its words, each of them once."""
    found: list[str] = []
    for sentence in sentences:
        scores = closeness(style, sentence)
        best = max(range(len(style)), key=scores.__getitem__, default=None)
        said = style[best] if best is not None and scores[best] >= _SAME else sentence
        if said not in found:
            found.append(said)
    return found


def said_of(message: str, style: Sequence[str]) -> str:
    """The canned response that speaks of what a message is about, or nothing."""
    scores = closeness(style, message)
    best = max(range(len(style)), key=scores.__getitem__, default=None)
    return style[best] if best is not None and scores[best] >= _ABOUT else ""
