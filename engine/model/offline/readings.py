"""Typed values in text: money, numbers, e-mail addresses, identifiers, quoted words, durations, yes and no."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.model.offline.currencies import CURRENCY_WORDS, currency_of


class Kind(StrEnum):
    EMAIL = "e-mail"
    UUID = "UUID"
    URL = "address"
    QUOTED = "quoted"
    DATE = "date"
    TIME = "time"
    MOMENT = "date and time"
    DURATION = "duration"
    IDENTIFIER = "identifier"
    PHONE = "phone number"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A value read at `text[start:end]`; `unit` is a currency code, "%", or the noun that is counted."""

    kind: Kind
    value: Any
    start: int
    end: int
    unit: str = ""

    def overlaps(self, other: "Reading") -> bool:
        return self.start < other.end and other.start < self.end


_EMAIL = re.compile(r"[^\s@<>(),:;\"\[\]]+@[\w-]+(?:\.[\w-]+)+")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_URL = re.compile(r"\bhttps?://[^\s<>\"]+")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{1,300})[\"”“»]|(?<!\w)['‘]([^'‘’\n]{1,300})['’](?!\w)")
_IDENTIFIER = re.compile(
    r"#\s?([A-Za-z0-9][\w-]*)|\b((?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_/][A-Za-z0-9]+)*)\b"
    r"|\b(\d+(?:-\d+)+)\b|(?<![A-Za-z])([A-Z]{1,3}\s\d{2,6})\b"
)
_PHONE = re.compile(r"(?<![\w.])\+?\d[\d ()/-]{6,18}\d(?![\w])")
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-−–]\s?)?(?P<before>[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|CAD|AUD)\b)?\s?"
    r"(?P<minus>[-−])?"
    r"(?P<digits>\d{1,3}(?:[,.' \u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d+)?)"
    r"(?P<scale>\s?(?:k|m|mn|mio|bn|thousand|million|billion|hundred)\b)?"
    r"\s?(?P<after>[$€£¥₹%]|[A-Za-z]+\b)?",
    re.IGNORECASE,
)
_ORDINAL_END = re.compile(r"^(?:st|nd|rd|th)$", re.IGNORECASE)
_SCALES = {
    "k": 1_000,
    "thousand": 1_000,
    "m": 1_000_000,
    "mn": 1_000_000,
    "mio": 1_000_000,
    "million": 1_000_000,
    "bn": 1_000_000_000,
    "billion": 1_000_000_000,
    "hundred": 100,
}
_UNITS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), 2
    )
}
_NUMBER_WORD = "|".join([*_UNITS, *_TENS, "hundred", "thousand", "million"])
_SPELLED = re.compile(
    rf"\b(?:(?:a|an|half a)\s+(?=hundred|thousand|million|dozen|couple))?"
    rf"(?:{_NUMBER_WORD}|dozen|couple)(?:(?:\s+and\s+|[\s-]+)(?:{_NUMBER_WORD}))*\b(?:\s+(?P<after>[A-Za-z]+))?",
    re.IGNORECASE,
)
_NOT_COUNTED = frozenset(
    "of is was are that who which please and or in at on for from to with".split()
)
_POINTED_AT = re.compile(
    r"\b(?:no|any|this|that|the|which|each|every|another|last|next|first)\s+(?:\w+\s+)?$",
    re.IGNORECASE,
)
_DURATION_UNITS = {
    "second": ("T", "S"),
    "sec": ("T", "S"),
    "minute": ("T", "M"),
    "min": ("T", "M"),
    "hour": ("T", "H"),
    "hr": ("T", "H"),
    "h": ("T", "H"),
    "day": ("", "D"),
    "night": ("", "D"),
    "week": ("", "W"),
    "month": ("", "M"),
    "year": ("", "Y"),
}
_DURATION_UNIT = "seconds?|secs?|minutes?|mins?|hours?|hrs?|h|days?|nights?|weeks?|months?|years?"
_DURATION = re.compile(
    rf"\b(?P<count>\d+(?:[.,]\d+)?|an?|half an?|{_NUMBER_WORD})[\s-]?(?P<unit>{_DURATION_UNIT})\b"
    r"(?P<half>\s+and\s+a\s+half)?"
    rf"(?:\s*(?:and|,)?\s*(?P<count2>\d+)\s?(?P<unit2>minutes?|mins?|m|hours?|h)\b)?",
    re.IGNORECASE,
)


def money_text(text: str) -> float | None:
    """The number that digits with separators stand for: "1,500.50", "1.500,50", "1 500" and "1,5"."""
    text = re.sub(r"[ '\u00a0\u202f]", "", text)
    separators = [char for char in text if char in ",."]
    if not separators:
        return float(text)
    last = text.rfind(separators[-1])
    tail = len(text) - last - 1
    if len(set(separators)) == 2:
        other = "," if separators[-1] == "." else "."
        return float(text.replace(other, "").replace(separators[-1], "."))
    if len(separators) > 1 or (tail == 3 and separators[0] == ","):
        return float(text.replace(separators[0], ""))
    if tail == 3 and last <= 3 and text[0] != "0":
        return float(text.replace(".", ""))  # "1.500": as a thousand in most of Europe
    return float(text.replace(",", "."))


def whole(number: float) -> int | float:
    """5.0 as 5."""
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def numbers(text: str) -> Iterator[Reading]:
    """Numbers and amounts of money, in digits or words, with their currency or the noun that follows."""
    for match in _NUMBER.finditer(text):
        value = money_text(match["digits"])
        if value is None or len(match["digits"]) > 24:
            continue
        end = match.end("digits")
        scale = (match["scale"] or "").strip().lower()
        after = match["after"] or ""
        if scale and not (scale == "m" and not match["before"]):
            value *= _SCALES[scale]
            end = match.end("scale")
        if _ORDINAL_END.match(after):
            continue
        unit = currency_of(match["before"] or "") or currency_of(after) or ""
        start = match.start("digits")
        if match["minus"] or (match["sign"] and match["sign"].strip() in "-−"):
            value, start = -value, match.start()
        unit = unit or ("%" if after in ("%", "percent") else after.lower())
        yield Reading(kind=Kind.NUMBER, value=whole(value), start=start, end=end, unit=unit)
    yield from _spelled_numbers(text)


def _spelled_numbers(text: str) -> Iterator[Reading]:
    for match in _SPELLED.finditer(text):
        after = match["after"] or ""
        end = match.start("after") if after else match.end()
        words = text[match.start() : end].strip()
        if words.lower() == "one" and not _counts_one(text, match.start(), after):
            continue
        value = _spelled_value(words)
        if value is None:
            continue
        unit = currency_of(after) or after.lower()
        stop = match.start() + len(words)
        yield Reading(kind=Kind.NUMBER, value=value, start=match.start(), end=stop, unit=unit)


def _counts_one(text: str, start: int, after: str) -> bool:
    """ "one pizza" counts, "the blue one" and "one of them" do not; a bare answer "one" does."""
    if text.strip(" .!").lower() == "one":
        return True
    return (
        bool(after) and after.lower() not in _NOT_COUNTED and not _POINTED_AT.search(text[:start])
    )


def _spelled_value(words: str) -> int | None:
    total = current = 0
    seen = False
    for word in re.split(r"[\s-]+", words.lower()):
        if word in _UNITS or word in _TENS:
            current += _UNITS.get(word, 0) + _TENS.get(word, 0)
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in ("thousand", "million"):
            total += max(current, 1) * _SCALES[word]
            current = 0
        elif word in ("dozen", "couple"):
            current = max(current, 1) * {"dozen": 12, "couple": 2}[word]
        else:
            continue
        seen = True
    half = 2 if words.lower().startswith("half") else 1
    return (total + current) // half if seen else None


def durations(text: str) -> Iterator[Reading]:
    """Lengths of time as ISO 8601 durations: "an hour and a half" is PT1H30M."""
    for match in _DURATION.finditer(text):
        count = _count(match["count"])
        if count is None:
            continue
        count += 0.5 if match["half"] else 0
        value = _iso_duration(count, _singular(match["unit"]), match["count2"], match["unit2"])
        unit = _singular(match["unit"])
        yield Reading(
            kind=Kind.DURATION, value=value, start=match.start(), end=match.end(), unit=unit
        )


def _count(text: str) -> float | None:
    text = text.lower()
    if text in ("a", "an"):
        return 1
    if text.startswith("half"):
        return 0.5
    return money_text(text) if text[0].isdigit() else _spelled_value(text)


def _singular(unit: str) -> str:
    unit = unit.lower()
    return unit if unit == "h" else unit.removesuffix("s")


def _iso_duration(count: float, unit: str, count2: str | None, unit2: str | None) -> str:
    section, letter = _DURATION_UNITS[unit]
    seconds = {("T", "H"): 3600, ("T", "M"): 60, ("T", "S"): 1}.get((section, letter))
    if seconds is None:
        return f"P{whole(count)}{letter}"
    total = count * seconds
    if count2 and unit2:
        total += int(count2) * (3600 if unit2.lower().startswith("h") else 60)
    hours, rest = divmod(round(total), 3600)
    minutes, rest = divmod(rest, 60)
    parts = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes) + f"{rest}S" * bool(rest)
    return f"PT{parts or '0S'}"


def simple(text: str) -> Iterator[Reading]:
    """E-mail addresses, UUIDs, web addresses, quoted words, identifiers and phone numbers."""
    for kind, pattern in ((Kind.EMAIL, _EMAIL), (Kind.UUID, _UUID), (Kind.URL, _URL)):
        for match in pattern.finditer(text):
            value = match.group().rstrip(".,;:!?")
            yield Reading(
                kind=kind, value=value, start=match.start(), end=match.start() + len(value)
            )
    for match in _QUOTED.finditer(text):
        number = 1 if match[1] is not None else 2
        start, end = match.span(number)
        yield Reading(kind=Kind.QUOTED, value=match[number].strip(), start=start, end=end)
    for match in _IDENTIFIER.finditer(text):
        value = match[1] or match[2] or match[3] or match[4]
        if not _looks_like_identifier(value, hashed=bool(match[1])):
            continue
        start = match.start() if not match[1] else match.end() - len(value)
        yield Reading(kind=Kind.IDENTIFIER, value=value, start=start, end=match.end())
    for match in _PHONE.finditer(text):
        if 7 <= sum(char.isdigit() for char in match.group()) <= 15:
            yield Reading(
                kind=Kind.PHONE, value=match.group(), start=match.start(), end=match.end()
            )


def _looks_like_identifier(value: str, *, hashed: bool) -> bool:
    if hashed:
        return True
    lowered = value.lower()
    if re.fullmatch(
        r"\d+(?:st|nd|rd|th|am|pm|k|m|h|min|mins|kg|g|km|cm|mm|gb|mb|x|d|hrs?|bn|mn|mio)", lowered
    ):
        return False
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}(?:t.*)?|\d{1,2}-\d{1,2}-\d{2,4}", lowered):
        return False
    return not re.fullmatch(rf"\d+-?(?:{_DURATION_UNIT})|\d+[a-z]{{2,}}", lowered) or bool(
        re.fullmatch(r"\d+[a-z]{1,3}", lowered)
    )


def currencies(text: str) -> Iterator[tuple[str, int, int]]:
    """`(ISO 4217 code, start, end)` of each currency named in the text."""
    for match in CURRENCY_WORDS.finditer(text):
        if code := currency_of(match.group()):
            yield code, match.start(), match.end()
