"""Dates and times in text, also relative ones ("next Friday at 7"), as ISO 8601 text."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from engine.model.offline.readings import Kind, Reading

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY_SHORT = {
    "mon": 0,
    "tue": 1,
    "tues": 1,
    "wed": 2,
    "thu": 3,
    "thur": 3,
    "thurs": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
}
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join([*_MONTHS, *(f"{name[:3]}\\.?" for name in _MONTHS), "sept\\.?"])
_DAY_OF_MONTH = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_COUNT = r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten"
_SMALL = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
}

_DATE = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}})(?=\b|T)"
    rf"|\b(?P<near>today|tonight|tomorrow|yesterday|day after tomorrow|day before yesterday|"
    rf"this (?:morning|afternoon|evening))\b"
    rf"|\b(?:(?P<which>next|this|coming|last|on)\s+)?(?P<weekday>{'|'.join(_WEEKDAYS)}|(?:{'|'.join(_WEEKDAY_SHORT)})\b\.?)"
    r"(?:\s+(?P<week>next week|week))?"
    rf"|\b(?P<in>in)\s+(?P<count>{_COUNT})\s+(?P<unit>days?|weeks?|months?|years?)\b"
    rf"|\b(?P<count2>{_COUNT})\s+(?P<unit2>days?|weeks?|months?|years?)\s+(?P<way>ago|from now|later|from today)\b"
    r"|\b(?P<span>next|last|this)\s+(?P<spanunit>week|weekend|month|year)\b"
    rf"|\b(?P<day>{_DAY_OF_MONTH})\s+(?:of\s+)?(?P<month>{_MONTH})(?:,?\s+(?P<year>\d{{4}}))?\b"
    rf"|\b(?P<month2>{_MONTH})\s+(?:the\s+)?(?P<day2>{_DAY_OF_MONTH})(?:,?\s+(?P<year2>\d{{4}}))?\b"
    r"|\b(?P<numeric>\d{1,2}[./]\d{1,2}[./]\d{2,4})\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?P<hour>[01]?\d|2[0-4])(?:[:.h](?P<minute>[0-5]\d))?\s?(?P<half>am|pm|a\.m\.|p\.m\.)(?!\w)"
    r"|\b(?P<hour24>[01]?\d|2[0-3]):(?P<minute24>[0-5]\d)(?::[0-5]\d)?\b"
    r"|\b(?P<houro>1[0-2]|[1-9])\s?o['’]?\s?clock\b"
    r"|\bhalf\s+past\s+(?P<halfpast>1[0-2]|[1-9]|one|two|three|four|five|six|seven|eight|nine|ten)\b"
    r"|\b(?P<noon>noon|midday|midnight)\b"
    r"|\b(?:at|around|by|from|until|till)\s+(?P<bare>1[0-2]|[1-9]|one|two|three|four|five|six|seven|eight|nine|ten)\b"
    r"(?!\s*(?:[.,:/-]?\d|%|€|\$|£|[a-z]*(?:people|persons?|guests|euros?|dollars?|pounds|days?|weeks?|months?|hours?|minutes?)\b))",
    re.IGNORECASE,
)
_EVENING = re.compile(r"\b(evening|tonight|afternoon|dinner|pm|night)\b", re.IGNORECASE)
_MAYBE = re.compile(
    rf"\d|today|tonight|tomorrow|yesterday|noon|midnight|midday|clock|half past|next|last|this|ago|"
    rf"from now|later|in an?\b|"
    rf"{'|'.join(_WEEKDAYS)}|{'|'.join(_MONTHS)}|\b(?:mon|tue|wed|thu|fri|sat|sun)|one|two|three|four|five|six|seven|eight|nine|ten",
    re.IGNORECASE,
)


def moments(text: str, now: datetime) -> Iterator[Reading]:
    """Dates (`2026-11-21`), times (`19:30`) and both together (`2026-11-21T19:30`), relative to `now`.

    A day without a year is the next one to come; a bare hour in an evening is after noon.
    """
    if not _MAYBE.search(text):
        return
    dates = [reading for match in _DATE.finditer(text) if (reading := _date(match, now.date()))]
    dates.extend(_range_starts(text, now.date()))
    times = [
        reading
        for match in _TIME.finditer(text)
        if (reading := _time(match, text)) and not any(reading.overlaps(d) for d in dates)
    ]
    yield from dates
    yield from times
    for day in dates:
        near = [clock for clock in times if _adjoining(day, clock, text)]
        if near:
            clock = near[0]
            yield Reading(
                kind=Kind.MOMENT,
                value=f"{day.value}T{clock.value}",
                start=min(day.start, clock.start),
                end=max(day.end, clock.end),
            )


_OTHER_LANGUAGES = ["de", "fr", "es", "it", "nl", "pt"]
_OTHER_DATE = re.compile(
    r"\b(?:\d{1,2}[.º°]?\s+(?:de\s+|di\s+)?(?:jan|gen|ene|f[eé]v|feb|m[aä]r|ma[ai]|avr|abr|apr|mag|juin|juni|juil|juli|jul|jun|giu|lug|"
    r"ao[uû]|ago|aug|sep|set|okt|oct|ott|out|nov|d[eé]c|dez|dic)\w*(?:\s+(?:de\s+)?\d{4})?"
    r"|heute|morgen|übermorgen|demain|aujourd'hui|mañana|hoy|domani|oggi|amanhã|hoje|vandaag|overmorgen"
    r"|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|lunes|martes|miércoles|jueves|viernes|sábado|domingo|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica"
    r"|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag)\b",
    re.IGNORECASE,
)


def dates_in_other_languages(text: str, now: datetime) -> Iterator[Reading]:
    """Dates in some languages other than English ("am 3. Dezember", "mañana"), by the dateparser library."""
    for match in _OTHER_DATE.finditer(text):
        # Takes most of a second, and is rarely needed.
        import dateparser  # type: ignore[import-untyped]

        found = dateparser.parse(
            match.group(),
            languages=_OTHER_LANGUAGES,
            settings={"RELATIVE_BASE": now.replace(tzinfo=None), "PREFER_DATES_FROM": "future"},
        )
        if found is not None:
            yield Reading(
                kind=Kind.DATE,
                value=found.date().isoformat(),
                start=match.start(),
                end=match.end(),
            )


_RANGE = re.compile(
    rf"\b(?P<first>{_DAY_OF_MONTH})\s*(?:to|until|till|and|-|–|through)\s*(?P<rest>(?:the\s+)?{_DAY_OF_MONTH}\s+(?:of\s+)?"
    rf"(?P<month>{_MONTH})(?:,?\s+(?P<year>\d{{4}}))?)\b",
    re.IGNORECASE,
)


def _range_starts(text: str, today: date) -> Iterator[Reading]:
    """The first day of "7 to 11 December": the day alone stands before its month."""
    for match in _RANGE.finditer(text):
        whole = _DATE.match(f"{match['first']} {match['month']} {match['year'] or ''}".strip())
        found = _date(whole, today) if whole else None
        if found:
            start, end = match.span("first")
            yield Reading(kind=Kind.DATE, value=found.value, start=start, end=end)


def _adjoining(day: Reading, clock: Reading, text: str) -> bool:
    between = text[min(day.end, clock.end) : max(day.start, clock.start)]
    return len(between) <= 16 and not re.search(r"[.?!;\n]", between)


def _date(match: re.Match[str], today: date) -> Reading | None:
    try:
        found = _day(match, today)
    except (ValueError, OverflowError):
        return None
    if found is None:
        return None
    return Reading(kind=Kind.DATE, value=found.isoformat(), start=match.start(), end=match.end())


def _day(match: re.Match[str], today: date) -> date | None:
    if match["iso"]:
        year, month, day = (int(part) for part in match["iso"].split("-"))
        return date(year, month, day)
    if match["near"]:
        return today + timedelta(days=_near(match["near"].lower()))
    if match["weekday"]:
        return _weekday(match, today)
    if match["in"] or match["way"]:
        return _counted(match, today)
    if match["span"]:
        return _span(match["span"].lower(), match["spanunit"].lower(), today)
    if match["numeric"]:
        return _numeric(match["numeric"])
    return _named_day(match, today)


def _near(word: str) -> int:
    return {
        "tomorrow": 1,
        "yesterday": -1,
        "day after tomorrow": 2,
        "day before yesterday": -2,
    }.get(word, 0)


def _weekday(match: re.Match[str], today: date) -> date:
    name = match["weekday"].lower().rstrip(".")
    number = _WEEKDAYS.index(name) if name in _WEEKDAYS else _WEEKDAY_SHORT[name]
    which = (match["which"] or "").lower()
    ahead = (number - today.weekday()) % 7
    if which == "last":
        return today - timedelta(days=(today.weekday() - number) % 7 or 7)
    if match["week"] == "next week":
        return today - timedelta(days=today.weekday()) + timedelta(days=7 + number)
    return today + timedelta(days=ahead or (0 if which == "this" else 7))


def _counted(match: re.Match[str], today: date) -> date | None:
    text = (match["count"] or match["count2"]).lower()
    count = int(text) if text.isdigit() else _SMALL.get(text, 1)
    unit = (match["unit"] or match["unit2"]).lower().removesuffix("s")
    sign = -1 if (match["way"] or "").lower() == "ago" else 1
    return _shifted(today, sign * count, unit)


def _shifted(day: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = count * (12 if unit == "year" else 1)
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    for last in (day.day, 30, 29, 28):
        try:
            return date(year, month + 1, last)
        except ValueError:
            continue
    raise ValueError(day)


def _span(which: str, unit: str, today: date) -> date:
    step = {"next": 1, "last": -1, "this": 0}[which]
    if unit == "weekend":
        return today + timedelta(
            days=(5 - today.weekday()) % 7 + 7 * (step == 1) - 7 * (step == -1)
        )
    if unit == "week":
        return today - timedelta(days=today.weekday()) + timedelta(days=7 * step)
    first = today.replace(day=1) if unit == "month" else today.replace(month=1, day=1)
    return _shifted(first, step, unit)


def _numeric(text: str) -> date | None:
    first, second, year = (int(part) for part in re.split(r"[./]", text))
    year += 2000 if year < 100 else 0
    if year < 1000 or year > 2999:
        return None
    # Day first, unless that is no date or slashes and the numbers say otherwise.
    return date(year, second, first) if second <= 12 else date(year, first, second)


def _named_day(match: re.Match[str], today: date) -> date:
    name = (match["month"] or match["month2"]).lower()[:3]
    month = next(n for n, full in enumerate(_MONTHS, 1) if full.startswith(name))
    day = int(re.sub(r"\D", "", match["day"] or match["day2"]))
    year = match["year"] or match["year2"]
    if year:
        return date(int(year), month, day)
    found = date(today.year, month, day)
    return found if found >= today else date(today.year + 1, month, day)


def _time(match: re.Match[str], text: str) -> Reading | None:
    hour, minute, start = _clock(match, bool(_EVENING.search(text)))
    if hour > 23:
        return None
    return Reading(kind=Kind.TIME, value=f"{hour:02d}:{minute:02d}", start=start, end=match.end())


def _clock(match: re.Match[str], evening: bool) -> tuple[int, int, int]:
    if match["half"]:
        hour = int(match["hour"]) % 12 + (12 if match["half"].lower().startswith("p") else 0)
        return hour, int(match["minute"] or 0), match.start()
    if match["hour24"]:
        return int(match["hour24"]), int(match["minute24"]), match.start()
    if match["noon"]:
        return (0 if match["noon"].lower() == "midnight" else 12), 0, match.start()
    group = next(name for name in ("houro", "halfpast", "bare") if match[name])
    text = match[group].lower()
    hour = int(text) if text.isdigit() else _SMALL[text]
    afternoon = evening or hour <= 7  # people who say "at 7" without more mean after noon
    hour += 12 if afternoon and hour < 12 else 0
    return (
        hour,
        30 if group == "halfpast" else 0,
        match.start(group) if group == "bare" else match.start(),
    )
