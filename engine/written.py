"""How people write words, numbers and dates: read for comparison with a value, never to compute with.

A text can have several readings ("1,500" is 1500 or 1.5, "3/4" a day in March or in April); a value is said where one
of them is the value.
"""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

# A month and a day, with the year where it was written.
Day = tuple[int | None, int, int]

_QUOTES = re.compile(r"[\"'“”‘’`´«»„]")
# Scripts that put no space between words, or append to a word what others write apart.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)

_NUMBER = re.compile(r"((?:(?<!\w)[-+\u2212])?)(\d[\d.,' ]*)(?:(%)|([^\W\d_]+))?")
_DECIMAL_AND_GROUP = ((".", ","), (",", "."), (".", "'"), (".", " "), (",", " "))
_WRITTEN = [
    re.compile(
        rf"(?P<whole>\d{{1,3}}(?:{re.escape(group)}\d{{3}})+|\d+)(?:{re.escape(decimal)}(?P<part>\d+))?"
    )
    for decimal, group in _DECIMAL_AND_GROUP
]
_LAKHS = re.compile(r"(?P<whole>\d{1,2}(?:,\d{2})+,\d{3})(?:\.(?P<part>\d+))?")
_MAGNITUDES = {
    word: Decimal(factor)
    for factor, written in {
        100: "hundred hundreds",
        1_000: "k tsd thousand thousands tausend mille mil",
        100_000: "lakh lakhs",
        1_000_000: "m mn mio million millions millionen millones milioni",
        10_000_000: "crore crores",
        1_000_000_000: "bn mrd billion billions milliarden milliards",
    }.items()
    for word in written.split()
}
# What a number in these units is in smaller or larger ones: "2 hours" may be asked for as 120 minutes.
_UNITS = {
    word: tuple(Decimal(factor) for factor in factors.split())
    for written, factors in {
        "% percent pct cent cents": "0.01",
        "dozen": "12",
        "min mins minute minutes": "60",
        "h hr hrs hour hours": "60 3600",
        "d day days": "24 1440 86400",
        "week weeks": "7 168",
        "year years yr yrs": "12",
    }.items()
    for word in written.split()
}
_NUMBER_WORD = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|billion|dozen|half)",
    re.IGNORECASE,
)

_MONTHS_A_YEAR = 12
_LONGEST_MONTH = 31
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:,?\s*(?P<year>\d{4}))?"
_BY_NAME = (
    re.compile(rf"\b{_DAY}\s*(?:of\s+)?{_MONTH}{_YEAR}(?!\w)"),
    re.compile(rf"\b{_MONTH}\s*(?:the\s+)?{_DAY}{_YEAR}(?!\w)"),
)
_BY_NUMBER = (
    re.compile(r"(?<![\w./-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)"),
    re.compile(r"(?<![\w./-])(\d{1,2})([-/.])(\d{1,2})(?:\2(\d{4}|\d{2})(?!\d))?"),
)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


@lru_cache(maxsize=512)
def normal(text: str, quote: str = "") -> str:
    """The text for comparison: no case, no difference in white space or width, each quote sign as `quote`."""
    plain = _QUOTES.sub(quote, unicodedata.normalize("NFKC", text).casefold())
    return " ".join(plain.split()).strip(" .,;:!?")


def stands_in(words: str, text: str) -> bool:
    """Do these words stand in the text as whole words? "1" does not stand in "2100" nor in "1.5"."""
    # "Ann's" holds the word Ann, and "O'Brien" may be copied as OBrien.
    return any(_whole_words(normal(words, quote), normal(text, quote)) for quote in ("", " "))


def _whole_words(words: str, text: str) -> bool:
    start = text.find(words) if words else -1
    while start >= 0:
        end = start + len(words)
        before, after = text[max(0, start - 2) : start][::-1], text[end : end + 2]
        if not _goes_on(words[0], before) and not _goes_on(words[-1], after):
            return True
        start = text.find(words, start + 1)
    return False


def _goes_on(edge: str, outside: str) -> bool:
    """Does a word or number that ends with `edge` go on in the (at most two) characters next to it?"""
    if edge.isdigit() and outside[:1] in {".", ","}:
        return outside[1:].isdigit()
    return _in_word(edge) and _in_word(outside[:1])


def _in_word(character: str) -> bool:
    return (character.isalnum() or character == "_") and not _UNSPACED.match(character)


@lru_cache(maxsize=256)
def numbers_in(text: str) -> frozenset[Decimal]:
    """Every number that the text may mean, whatever its locale: "€ 1.500,50", "2k", "5 %" (5 and 0.05)."""
    plain = _plain_digits(text)
    return frozenset(reading for found in _NUMBER.finditer(plain) for reading in _readings(found))


def has_number(text: str) -> bool:
    return re.search(r"\d", text) is not None


def spells_number(text: str) -> bool:
    """Does the text write a number in (English) words? Other languages are not known here."""
    return _NUMBER_WORD.search(text) is not None


def digits_of(text: str) -> str:
    """All digits of the text in a row, as 0–9."""
    return "".join(str(unicodedata.digit(c)) for c in text if c.isdecimal())


def _plain_digits(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\u2019\u02bc]", "'", plain.replace("٫", ".").replace("٬", ","))


def _readings(found: re.Match[str]) -> Iterator[Decimal]:
    sign, body, percent, word = found.groups()
    unit = percent or word or ""
    for plain in _plain_readings(body.strip(" .,'")):
        number = -plain if sign in {"-", "\u2212"} else plain
        if unit in _MAGNITUDES:
            yield number * _MAGNITUDES[unit]
            continue
        yield number
        for factor in _UNITS.get(unit, ()):
            yield number * factor
        if unit in {"min", "mins", "minute", "minutes"}:
            yield number / 60


def _plain_readings(body: str) -> set[Decimal]:
    whole = set(_as_one_number(body))
    if whole:
        return whole
    pieces = re.split(r"[ .,']+", body)
    return {reading for piece in pieces for reading in _as_one_number(piece)}


def _as_one_number(text: str) -> Iterator[Decimal]:
    for written in (*_WRITTEN, _LAKHS):
        if found := written.fullmatch(text):
            whole = re.sub(r"\D", "", found["whole"])
            yield Decimal(f"{whole}.{found['part'] or 0}")


def as_number(value: float) -> Decimal:
    """A JSON number as it is written: 0.1 is 0.1."""
    return Decimal(value) if isinstance(value, int) else Decimal(str(value))


def iso_day(value: str) -> Day | None:
    """The day of an ISO date; None for any other text."""
    found = _ISO.fullmatch(value)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def days_in(text: str) -> set[Day]:
    """Every day that the text names by number or by English month; "3/4" is a day in April or in March."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found: set[Day] = set()
    for pattern in _BY_NAME:
        for named in pattern.finditer(plain):
            year = int(named["year"]) if named["year"] else None
            found.add((year, _MONTHS.index(named["month"]) + 1, int(named["day"])))
    for year_first in _BY_NUMBER[0].finditer(plain):
        found.add((int(year_first[1]), int(year_first[3]), int(year_first[4])))
    for numbers in _BY_NUMBER[1].finditer(plain):
        one, other = int(numbers[1]), int(numbers[3])
        found |= {(_full_year(numbers[4]), one, other), (_full_year(numbers[4]), other, one)}
    return {day for day in found if 1 <= day[1] <= _MONTHS_A_YEAR and 1 <= day[2] <= _LONGEST_MONTH}


def names_day(text: str, day: Day) -> bool:
    """Does the text name this day, with its year or without one?"""
    return any((year, *day[1:]) in days_in(text) for year in (day[0], None))


def _full_year(written: str | None) -> int | None:
    if not written:
        return None
    return int(written) if len(written) == 4 else 2000 + int(written)
