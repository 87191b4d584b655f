"""Secrets taken out of what a tool printed and returned, in every form in which they usually travel."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "•••"
SHORTEST = 4
_SHORTEST_LINE = 8  # of a secret of several lines, each is hidden by itself from this length on


class Mask:
    """Hides these secrets by value: raw, escaped as in JSON, Python and HTML, percent-encoded, hexadecimal and base64
    (also as a part of what was encoded, such as `user:secret`); of several lines also line by line.

    Secrets shorter than SHORTEST characters are **not** hidden: they stand in too much that is none. What a tool
    makes of a secret by its own means (reversed, letter by letter, encrypted) cannot be known here.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        self._forms = sorted(forms, key=len, reverse=True)
        # By their first character, to find where one may have begun.
        self._by_first: dict[str, list[str]] = {}
        for form in self._forms:
            self._by_first.setdefault(form[0], []).append(form)
        self._first = re.compile("|".join(map(re.escape, self._by_first)) or r"\Z")

    def text(self, text: str) -> str:
        """The text with MASK in place of each secret."""
        return "".join(_pieces(text, self.spans(text)))

    def value(self, value: Any) -> Any:
        """A JSON value with its texts, keys, and numbers that hold a secret masked."""
        if not self._forms:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(key)): self.value(item) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case bool() | None:
                return value
            case int() | float():
                written = json.dumps(value)
                return self.text(written) if self.spans(written) else value
            case _:
                return value

    def stream(self) -> "MaskedStream":
        """For text that comes in pieces."""
        return MaskedStream(self)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets stand: (from, to), in order, apart from each other, those that overlap as one."""
        found = sorted(span for form in self._forms for span in _places(form, text))
        apart: list[tuple[int, int]] = []
        for start, end in found:
            if apart and start < apart[-1][1]:
                apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
            else:
                apart.append((start, end))
        return apart

    def unfinished(self, text: str) -> int:
        """The length of the longest end of the text that may be the beginning of a secret."""
        longest = len(self._forms[0]) - 1 if self._forms else 0
        for found in self._first.finditer(text, max(0, len(text) - longest)):
            end = text[found.start() :]
            forms = self._by_first.get(found.group(), ())
            if any(len(form) > len(end) and form.startswith(end) for form in forms):
                return len(end)
        return 0


class MaskedStream:
    """Masks text that comes in pieces: a secret that is split over several never shows.

    What may be the beginning of one is kept back until more comes; `end` gives the rest.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._kept = ""
        self._hidden = 0  # characters at the start of what is kept that a MASK stands for already

    def feed(self, text: str) -> str:
        text = self._kept + text
        return self._told(text, len(text) - self._mask.unfinished(text))

    def end(self) -> str:
        return self._told(self._kept, len(self._kept))

    def _told(self, text: str, upto: int) -> str:
        spans = self._mask.spans(text)
        told = "".join(_pieces(text, spans, start=self._hidden, upto=upto))
        self._hidden = max([end for start, end in spans if start < upto] + [self._hidden, upto])
        self._hidden -= upto
        self._kept = text[upto:]
        return told


def _places(form: str, text: str) -> Iterator[tuple[int, int]]:
    place = text.find(form)
    while place >= 0:
        yield place, place + len(form)
        place = text.find(form, place + len(form))


def _pieces(
    text: str, spans: Iterable[tuple[int, int]], *, start: int = 0, upto: int | None = None
) -> Iterator[str]:
    """The text from `start` to `upto` with one MASK for each span; `start` lies behind one that was told before."""
    upto = len(text) if upto is None else upto
    place = start
    for begin, end in spans:
        if begin >= upto:
            break
        yield text[place:begin]
        if begin >= start:
            yield MASK
        place = max(place, end)
    yield text[place:upto]


def _forms(secret: str) -> Iterator[str]:
    whole = {secret, secret.strip()}
    lines = {line for text in secret.splitlines() if len(line := text.strip()) >= _SHORTEST_LINE}
    for plain in whole | lines:
        if len(plain) >= SHORTEST:
            yield plain
            yield from _escaped(plain)
            yield from _encoded(plain.encode("utf-8", "surrogatepass"))


def _escaped(plain: str) -> Iterator[str]:
    yield json.dumps(plain)[1:-1]
    yield json.dumps(plain, ensure_ascii=False)[1:-1]
    yield repr(plain)[1:-1]
    yield repr("\"'" + plain)[4:-1]  # as a part of a text that holds both kinds of quotes
    yield ascii(plain)[1:-1]
    yield html.escape(plain)
    data = plain.encode("utf-8", "surrogatepass")
    yield repr(data)[2:-1]
    for percent in (quote(data, safe=""), quote(data), quote(data, safe="!'()*"), quote_plus(data)):
        yield percent
        yield re.sub("%..", lambda found: found.group().lower(), percent)


def _encoded(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):  # bytes in front of it, of the three that four characters stand for
        # Characters that hold a bit of what stands before or behind it are not known.
        known = slice(-(-before * 8 // 6), (before + len(data)) * 8 // 6)
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            form = encode(b"\0" * before + data).decode()[known]
            if len(form) >= SHORTEST:
                yield form
