"""The string formats of JSON Schema that arguments may have, and what a value must look like.

Each check asks two things: the written form, so that a number or a word is never read as a moment, and
that Python can read it, so that what passes here is what a tool receives. Dates and times may leave the
offset out: people do.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from jsonschema import FormatChecker
from pydantic import TypeAdapter

# format → (the written form, the type that must be able to read it)
_FORMS: dict[str, tuple[str, type]] = {
    "date": (r"\d{4}-\d{2}-\d{2}", date),
    "date-time": (r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}.*", datetime),
    "time": (r"\d{2}:\d{2}.*", time),
    "duration": (r"[+-]?P(?=[\dT]).*", timedelta),
    "uuid": (r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", str),
    "email": (
        (
            r"(?=.{3,254}$)[^\s@<>(),:;\"\[\]\\.]+(?:\.[^\s@<>(),:;\"\[\]\\.]+)*"
            r"@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_](?:[\w-]*[^\W_])"
        ),
        str,
    ),
}

FORMAT_WORDS = {
    "date": "must be a date such as 2026-11-21",
    "date-time": "must be a date and time such as 2026-11-21T14:30",
    "time": "must be a time such as 14:30",
    "duration": "must be a duration such as PT1H30M",
    "uuid": "must be an identifier such as 123e4567-e89b-12d3-a456-426614174000",
    "email": "must be an e-mail address such as name@example.com",
}

UNREADABLE_FORMATS = frozenset({"binary", "byte", "base64", "base64url"})

FORMAT_CHECKER = FormatChecker(formats=())


def _check(form: str, readable_as: type) -> Callable[[object], bool]:
    pattern = re.compile(form, re.ASCII if readable_as is not str else 0)
    adapter: TypeAdapter[Any] = TypeAdapter(readable_as)

    def check(value: object) -> bool:
        if not isinstance(value, str):
            return True  # the schema's `type` is what refuses it
        if not pattern.fullmatch(value):
            return False
        adapter.validate_python(value)
        return True

    return check


for _name, (_form, _type) in _FORMS.items():
    # pydantic's ValidationError is a ValueError
    FORMAT_CHECKER.checks(_name, raises=ValueError)(_check(_form, _type))
