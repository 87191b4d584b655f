"""Tool results in words for customers: sentences for one or two facts, short lists for more."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from engine.events import ToolFinishedEvent
from engine.model.offline.currencies import currency_of
from engine.model.offline.results import FETCHING, empty, is_internal_id, spaced

_MOST_ITEMS = 10
_MOST_FIELDS = 12
_LONGEST_TEXT = 600
_TITLE_KEYS = (
    "name",
    "title",
    "label",
    "full_name",
    "display_name",
    "subject",
    "description",
    "question",
    "summary",
)
_SAYING_KEYS = ("message", "answer", "text", "summary", "confirmation", "content", "reply")
AMOUNT_KEY = re.compile(
    r"\b(?:amount|balance|price|cost|total|fee|fees|sum|value|salary|payment|paid|due|limit|budget|subtotal|tax|deposit|refund|available|"
    r"converted|result|spent|rent|fare|premium|credit|debit)\b"
)
ACTION_VERBS = frozenset(
    "send pay book order buy cancel change transfer reserve return open close move convert block "
    "unblock report create update "
    "delete add remove set start stop apply request renew borrow register submit make reset activate "
    "deactivate freeze unfreeze "
    "schedule reschedule calculate translate extend issue assign notify escalate confirm approve "
    "reject refund charge".split()
)
_NOUNS_TOO = frozenset(
    "open order book charge request report set start stop change close schedule issue".split()
)
_DATE_FORM = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_MOMENT_FORM = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?"
)
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}


def rendered(event: ToolFinishedEvent, heading: str = "", *, consequential: bool = False) -> str:
    """A result as text; `heading` tells apart several calls of one tool. Never empty."""
    data = event.data
    noun = noun_of(event.tool, consequential=consequential)
    body = _nothing(noun) if empty(data) else _body(data, noun)
    if not heading:
        return body
    return f"**{heading}**\n{body}" if "\n" in body else f"**{heading}**: {body}"


def noun_of(tool: str, *, consequential: bool = False) -> str:
    """What a tool gives: `get_account_balance` gives the "account balance", `send_parcel` an outcome."""
    parts = spaced(tool).split()
    if parts and parts[0] in ACTION_VERBS and (consequential or parts[0] not in _NOUNS_TOO):
        return "outcome"
    while len(parts) > 1 and parts[0] in FETCHING:
        parts = parts[1:]
    if len(parts) > 1 and parts[0] in ("up", "for", "all", "my", "the"):
        parts = parts[1:]
    return " ".join(parts) or "result"


def doing_of(tool: str) -> str:
    """What a tool does, as a verb phrase: "get account balance"."""
    return spaced(tool) or "do this"


def _nothing(noun: str) -> str:
    return f"I found no {noun}." if noun not in ("result", "outcome") else "I found nothing."


def _body(data: Any, noun: str) -> str:
    match data:
        case dict():
            return _object(data, noun)
        case list():
            return _list(data, noun)
        case bool():
            return f"{_capital(noun)}: {'yes' if data else 'no'}."
        case str() if len(data.split()) > 3:
            return shortened(data.strip())
        case _:
            return f"The {noun} is {scalar(data)}."


def _object(data: dict[str, Any], noun: str) -> str:
    said = next(
        (data[key] for key in _SAYING_KEYS if isinstance(data.get(key), str) and " " in data[key]),
        None,
    )
    rest = {key: value for key, value in data.items() if value is not said or not said}
    fields = facts({k: v for k, v in rest.items() if not (said and is_internal_id(str(k)))})
    lists = [(str(k), v) for k, v in rest.items() if isinstance(v, list) and _holds_objects(v)]
    parts: list[str] = [shortened(str(said))] if said else []
    if lists:
        fields = [
            (label, text) for label, text in fields if label not in {spaced(k) for k, _ in lists}
        ]
    if fields:
        parts.append(_fields(fields, noun, alone=not said))
    currency = _currency_beside(data)
    for key, rows in lists:
        parts.append(_list(rows, spaced(key), currency[1] if currency else ""))
    return "\n".join(part for part in parts if part) or _nothing(noun)


def _holds_objects(rows: list[Any]) -> bool:
    return any(isinstance(row, dict) for row in rows)


def _fields(fields: list[tuple[str, str]], noun: str, *, alone: bool) -> str:
    if alone and len(fields) == 2 and _prepositional(fields[1][0]) and len(fields[0][1]) < 60:
        main = _sentence(*fields[0], noun).rstrip(".")
        return f"{main} ({fields[1][0]} {fields[1][1]})."
    if (
        len(fields) <= 2
        and alone
        and all(len(text) < 60 and "\n" not in text for _, text in fields)
    ):
        return " ".join(_sentence(label, text, noun) for label, text in fields)
    intro = f"{_here(noun)}\n" if alone and noun != "result" else ""
    return intro + "\n".join(
        f"- {_capital(label)}: {text}" for label, text in fields[:_MOST_FIELDS]
    )


_PREPOSITION = re.compile(
    r"\b(?:of|at|on|by|until|from|to|in|since|for|after|before)$|^(?:is|has|can|are|valid|due)\b"
)


def _prepositional(label: str) -> bool:
    """Labels such as "as of" and "valid until", which are no nouns."""
    return _PREPOSITION.search(label) is not None


def _is_plural(noun: str) -> bool:
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is"))


def _here(noun: str) -> str:
    plural = _is_plural(noun)
    return f"Here are the {noun}:" if plural else f"Here is the {noun}:"


def _sentence(label: str, text: str, noun: str) -> str:
    if text in ("yes", "no") or text.startswith("http") or _prepositional(label):
        return f"{_capital(label)}: {text}."
    if label in ("amount", "value", "result", "total") and noun != "result" and label not in noun:
        return f"The {noun} {'are' if _is_plural(noun) else 'is'} {text}."
    plural = _is_plural(label)
    return f"The {label} {'are' if plural else 'is'} {text}{'' if text.endswith('.') else '.'}"


def _list(rows: Sequence[Any], noun: str, currency: str = "") -> str:
    if not rows:
        return _nothing(noun)
    shown = [f"- {_row(row, currency)}" for row in rows[:_MOST_ITEMS]]
    if len(rows) > _MOST_ITEMS:
        shown.append(f"- … and {len(rows) - _MOST_ITEMS} more")
    intro = "Here is what I found:" if noun == "result" else f"{_capital(noun)}:"
    return "\n".join([intro, *shown])


def _row(row: Any, currency: str = "") -> str:
    if not isinstance(row, dict):
        return scalar(row) if not isinstance(row, list) else ", ".join(scalar(v) for v in row)
    title_key = next((key for key in _TITLE_KEYS if isinstance(row.get(key), str) and row[key]), "")
    told = {
        k: v
        for k, v in row.items()
        if k != title_key and not (title_key and is_internal_id(str(k)))
    }
    rest = facts(told, currency)
    if not rest and not title_key:
        return "(no details)"
    if title_key:
        title = f"**{shortened(row[title_key], 120)}**"
    else:
        title, rest = f"**{rest[0][1]}**", rest[1:]
    return f"{title} – {', '.join(_short_fact(*fact) for fact in rest)}" if rest else title


def _short_fact(label: str, text: str) -> str:
    obvious = label in (
        "amount",
        "date",
        "price",
        "status",
        "type",
        "city",
        "time",
        "category",
        "currency",
    )
    return text if obvious else f"{label} {text}"


def facts(data: Mapping[str, Any], currency_around: str = "") -> list[tuple[str, str]]:
    """`(label, text)` of what people can read in an object: money with currency, dates in words, no technical ids."""
    currency = _currency_beside(data)
    found: list[tuple[str, str]] = []
    for key, value in data.items():
        if value is None or str(key).startswith("_") or (value == [] or value == {}):
            continue
        label = spaced(str(key))
        if is_internal_id(str(key)) and _has_more(data, str(key)):
            continue
        if currency and value == data[currency[0]] and key == currency[0] and currency[2]:
            continue
        found.extend(_fact(label, value, currency[1] if currency else currency_around))
    return found


def _fact(label: str, value: Any, currency: str) -> list[tuple[str, str]]:
    match value:
        case bool():
            return [(label, "yes" if value else "no")]
        case int() | float():
            if currency and AMOUNT_KEY.search(label) and not _counts(label):
                return [(label, money(value, currency))]
            return [(label, scalar(value))]
        case dict():
            return [
                (inner if inner.startswith(label) else f"{label} {inner}", text)
                for inner, text in facts(value)
            ]
        case list() if _holds_objects(value):
            return [(label, "; ".join(_row(row) for row in value[:5]))]
        case list():
            return [(label, ", ".join(scalar(item) for item in value[:_MOST_ITEMS]))]
        case _:
            return [(label, scalar(value))]


def _counts(label: str) -> bool:
    return bool(re.search(r"\b(?:count|number|days|nights|percent|rate)\b", label))


def _has_more(data: Mapping[str, Any], key: str) -> bool:
    """Whether an object says something besides its ids."""
    return any(
        not is_internal_id(str(other)) and value is not None
        for other, value in data.items()
        if other != key
    )


def _currency_beside(data: Mapping[str, Any]) -> tuple[str, str, bool] | None:
    """`(key, code, whether an amount uses it)` of the one currency field of an object."""
    keys = [
        str(key)
        for key, value in data.items()
        if "currency" in spaced(str(key)).split() and isinstance(value, str) and currency_of(value)
    ]
    if len(keys) != 1:
        return None
    used = any(
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and AMOUNT_KEY.search(spaced(str(key)))
        for key, value in data.items()
    )
    return keys[0], currency_of(str(data[keys[0]])), used


def money(value: float, currency: str) -> str:
    """An amount with its currency: "€1,204.50", "1,204.50 CHF"."""
    sign = "-" if value < 0 else ""
    digits = f"{abs(value):,.0f}" if currency == "JPY" else f"{abs(value):,.2f}"
    symbol = _SYMBOLS.get(currency)
    return f"{sign}{symbol}{digits}" if symbol else f"{sign}{digits} {currency}"


def scalar(value: Any) -> str:
    """A single value for people: dates in words, numbers with separators, yes and no."""
    match value:
        case None:
            return "unknown"
        case bool():
            return "yes" if value else "no"
        case float():
            text = f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) < 1e12 else f"{value:g}"
            return _two_places(text)
        case int():
            return f"{value:,}" if abs(value) >= 10_000 else str(value)
        case str():
            return _text(value)
        case _:
            return shortened(str(value), 200)


def _two_places(text: str) -> str:
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction}0" if len(fraction) == 1 else text


def _text(value: str) -> str:
    text = value.strip()
    if match := _MOMENT_FORM.fullmatch(text):
        zone = " UTC" if match[3] in ("Z", "+00:00") else (f" ({match[3]})" if match[3] else "")
        return f"{_date(match[1])} at {match[2]}{zone}"
    if _DATE_FORM.fullmatch(text):
        return _date(text)
    if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", text):
        return text.replace("_", " ")
    return shortened(text)


def _date(text: str) -> str:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def shortened(text: str, limit: int = _LONGEST_TEXT) -> str:
    """A text of at most `limit` characters, cut at a word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    return text[:limit].rsplit(" ", 1)[0] + " …"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
