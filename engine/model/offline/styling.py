"""Sentences in the words of canned responses that say the same (composition "composited")."""

from collections.abc import Sequence

from engine.closeness import closeness
from engine.model.offline.speech_acts import answers_politely, only_polite

_SAME = 0.45
_ABOUT = 0.3


def in_style(sentences: Sequence[str], style: Sequence[str]) -> list[str]:
    """The sentences; one that a canned response says too is said in its words, each of them once."""
    found: list[str] = []
    for sentence in sentences:
        said = _closest(sentence, style, _SAME) or _as_polite(sentence, style) or sentence
        if said not in found:
            found.append(said)
    return found


def said_of(message: str, style: Sequence[str]) -> str:
    """The canned response that speaks of what a message is about, or is as polite, or nothing."""
    return _closest(message, style, _ABOUT) or _as_polite(message, style)


def _closest(text: str, style: Sequence[str], enough: float) -> str:
    scores = closeness(style, text)
    best = max(range(len(style)), key=scores.__getitem__, default=None)
    return style[best] if best is not None and scores[best] >= enough else ""


def _as_polite(text: str, style: Sequence[str]) -> str:
    """For a greeting, thanks or a farewell a canned response that is one too, or answers one."""
    acts = only_polite(text)
    return next((said for said in style if answers_politely(said, acts)), "")
