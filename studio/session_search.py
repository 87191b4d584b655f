"""Searching what was said: a person's words as a question to the database, and the hits with the words marked.

Words are found by how they begin, whatever their accents and capitals; all of them have to stand in one message. Words
in double quotes stand together. Everything else that people type is punctuation, and never an error.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, F, Func, QuerySet

from studio.models import Event

MAX_CHARACTERS = 200
_MAX_WORDS = 12
_BEFORE = 60  # characters of a message that are shown before the first hit
_SHOWN = 220  # and in all
_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"[^\W_]+")


def _plain(text: str) -> str:
    """As the databases index it: without accents; in small letters."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).lower()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for: phrases of words, each of which has to be there; of the open ones the last word may go on."""

    phrases: tuple[tuple[tuple[str, ...], bool], ...]  # (words, open)

    @classmethod
    def read(cls, text: str) -> "Asked":
        phrases: list[tuple[tuple[str, ...], bool]] = []
        # What stands after an odd number of quotes is in quotes; the last of them may still be open.
        parts = text[:MAX_CHARACTERS].split('"')
        for place, part in enumerate(parts):
            words = _WORD.findall(_plain(part))
            if place % 2 == 0:
                phrases += [((word,), True) for word in words]
            elif words:
                phrases.append((tuple(words), place == len(parts) - 1))
        return cls(tuple(phrases[:_MAX_WORDS]))

    def __bool__(self) -> bool:
        return bool(self.phrases)

    @property
    def fts5(self) -> str:
        """In SQLite's language; words are letters and digits only, so that nothing in them means anything to it."""
        return " ".join(f'"{" ".join(words)}"{"*" * goes_on}' for words, goes_on in self.phrases)

    @property
    def tsquery(self) -> str:
        """In PostgreSQL's language."""
        each = []
        for words, goes_on in self.phrases:
            quoted = [f"'{word}'" for word in words]
            each.append(" <-> ".join(quoted) + (":*" if goes_on else ""))
        return " & ".join(f"({phrase})" for phrase in each)

    def marked(self, text: str) -> list[tuple[str, bool]]:
        """The part of the text around the first hit as (piece, is it a hit); all of it where it is short."""
        text = " ".join(text.split())
        hits = list(self._hits(text))
        begin = hits[0][0] - _BEFORE if hits else 0
        # Words stay whole.
        begin = text.rfind(" ", 0, begin) + 1 if begin > 0 else 0
        end = len(text) if len(text) - begin <= _SHOWN else text.rfind(" ", 0, begin + _SHOWN)
        end = begin + _SHOWN if end <= begin else end
        pieces = [("… ", False)] if begin else []
        at = begin
        for start, stop in hits:
            if start < at or stop > end:
                continue
            pieces += [(text[at:start], False), (text[start:stop], True)]
            at = stop
        pieces.append((text[at:end] + (" …" if end < len(text) else ""), False))
        return [(piece, hit) for piece, hit in pieces if piece]

    def _hits(self, text: str) -> Iterator[tuple[int, int]]:
        """Where what is asked for begins and ends in the text."""
        words = [(found.start(), found.end(), _plain(found[0])) for found in _WORD.finditer(text)]
        for place, (start, _stop, _word) in enumerate(words):
            for phrase, goes_on in self.phrases:
                there = [word for _, _, word in words[place : place + len(phrase)]]
                if len(there) < len(phrase):
                    continue
                if goes_on and there[-1].startswith(phrase[-1]):
                    there[-1] = phrase[-1]
                if tuple(there) == phrase:
                    yield start, words[place + len(phrase) - 1][1]


class _Says(Func):
    """Does the message say what is asked for? By the index of migration 0009, in the words of either database."""

    output_field = BooleanField()

    def __init__(self, asked: Asked) -> None:
        super().__init__(F("pk"))
        self._asked = asked

    def as_sqlite(self, compiler: Any, connection: Any, **_more: Any) -> tuple[str, Any]:  # noqa: ARG002
        key, params = compiler.compile(self.source_expressions[0])
        found = "SELECT rowid FROM studio_message_search WHERE studio_message_search MATCH %s"
        return f"{key} IN ({found})", [*params, self._asked.fts5]

    def as_postgresql(self, compiler: Any, connection: Any, **_more: Any) -> tuple[str, Any]:  # noqa: ARG002
        key, params = compiler.compile(self.source_expressions[0])
        table, _dot, _name = key.rpartition(".")
        return f"{table}.searched @@ to_tsquery('simple', %s)", [*params, self._asked.tsquery]


def saying(asked: Asked) -> QuerySet[Event]:
    """The messages that say what is asked for."""
    return Event.objects.filter(_Says(asked), kind="message")
