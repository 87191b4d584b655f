"""Leaving out what must not leave the studio: each value is replaced by the same label wherever it stands.

What is looked for are values of the customer, words that a person chose, and patterns: addresses, numbers. Labels such
as «e-mail 1» number the values of a kind in the order in which they are found.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

SHORTEST = 3
"""Characters of a customer's value that is looked for everywhere; a shorter one is in too many words."""


class Kind(StrEnum):
    WORD = "word"
    CUSTOMER = "customer"
    VARIABLE = "variable"
    EMAIL = "email"
    PHONE = "phone"
    ACCOUNT = "account"
    NUMBER = "number"


LABELS: dict[Kind, Promise] = {
    Kind.WORD: gettext_lazy("word"),
    Kind.CUSTOMER: gettext_lazy("customer"),
    Kind.VARIABLE: gettext_lazy("customer variable"),
    Kind.EMAIL: gettext_lazy("e-mail"),
    Kind.PHONE: gettext_lazy("phone number"),
    Kind.ACCOUNT: gettext_lazy("account number"),
    Kind.NUMBER: gettext_lazy("number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What to leave out. `prompts` and `metadata` are left out whole; the others value by value."""

    customer: bool = False
    emails: bool = False
    phones: bool = False
    accounts: bool = False
    numbers: bool = False
    metadata: bool = False
    prompts: bool = False
    words: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))


EVERYTHING = Rules(
    customer=True,
    emails=True,
    phones=True,
    accounts=True,
    numbers=True,
    metadata=True,
    prompts=True,
)


@dataclass(slots=True, kw_only=True)
class Found:
    """A value that is replaced: `label` stands for it, `count` times so far. `sample` is as it was found first."""

    kind: Kind
    label: str
    sample: str
    count: int = 0


# What looks like a number that somebody can be found by, and is none: kept whole, so that no pattern cuts into it.
_KEPT = "date"
_DATE = (
    r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}(?!\d))?)?)?"
    r"|(?<![\d.])\d{1,2}\.\d{1,2}\.\d{4}(?!\d)|(?<![\d/])\d{1,2}/\d{1,2}/\d{4}(?!\d)"
)
_IBAN = r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b"
_CARD = r"(?<!\d)(?<!\d\.)\d(?:[ -]?\d){12,18}(?!\d)"
_DIALLED = r"(?<![\w+])(?<!\d[:.,])(?:\+\d|00\d|\(\+?\d|0\d)[\d ()/.-]{5,20}\d(?!\w)"
_LOCAL = r"(?<!\d)\d{3}[-. ]\d{3}[-. ]\d{4}(?!\d)"
_PATTERNS: tuple[tuple[str, str, str], ...] = (  # (kind, option of Rules, how it is written)
    (Kind.EMAIL, "emails", r"[\w.+%'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
    (_KEPT, "any", _DATE),
    (Kind.ACCOUNT, "accounts", f"{_IBAN}|{_CARD}"),
    (Kind.PHONE, "phones", f"{_DIALLED}|{_LOCAL}"),
    (Kind.NUMBER, "numbers", r"(?<!\d)(?<!\d\.)\d{8,}"),
)


class Redactor:
    """Replaces values by labels, the same value by the same label; `found` says which there were."""

    def __init__(
        self, rules: Rules, *, name: str = "", variables: Mapping[str, Any] | None = None
    ) -> None:
        self.rules = rules
        self.found: dict[tuple[Kind, str], Found] = {}
        self._literals: dict[str, tuple[Kind, str]] = {}
        words = sorted({word.strip() for word in rules.words if word.strip()})
        whole: list[str] = []
        if rules.customer:
            whole += self._know(Kind.CUSTOMER, _names(name))
            whole += self._know(Kind.VARIABLE, _values(variables or {}))
        self._known = _one_of(self._know(Kind.WORD, words), whole)
        self._patterns = _patterns(rules)

    def text(self, text: str) -> str:
        """The text with labels in place of what is left out."""
        if self._patterns is None:
            return self._without_known(text)
        pieces, end = [], 0
        for match in self._patterns.finditer(text):
            name = match.lastgroup or _KEPT
            if name == _KEPT:
                continue
            pieces += [
                self._without_known(text[end : match.start()]),
                self._form(Kind(name), match[0]),
            ]
            end = match.end()
        return "".join([*pieces, self._without_known(text[end:])])

    def value(self, value: Any) -> Any:
        """JSON, keys of objects included; a number that is left out becomes its label."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(key)): self.value(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.value(inner) for inner in value]
            case bool() | None:
                return value
            case int() | float():
                text = self.text(str(value))
                return value if text == str(value) else text
            case _:
                return value

    @property
    def counted(self) -> dict[str, int]:
        """How many different values of each kind were replaced."""
        kinds = [found.kind.value for found in self.found.values()]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}

    def _know(self, kind: Kind, texts: Iterable[str]) -> list[str]:
        """Remember these values, also as JSON writes them inside of a text."""
        written = []
        for text in texts:
            for form in _as_written(text):
                self._literals.setdefault(_key(form), (kind, _key(text)))
                written.append(form)
        return written

    def _without_known(self, text: str) -> str:
        if self._known is None or not text:
            return text
        return self._known.sub(self._literal, text)

    def _literal(self, match: re.Match[str]) -> str:
        # A letter may match without being the same when folded: “ı” does “i”.
        key = _key(match[0])
        kind, same = self._literals.get(key, (Kind.WORD, key))
        return self._label(kind, same, match[0])

    def _form(self, kind: Kind, text: str) -> str:
        # A number is the same however its digits are set apart.
        key = text if kind is Kind.EMAIL else re.sub(r"\W", "", text)
        return self._label(kind, key.casefold(), text)

    def _label(self, kind: Kind, key: str, sample: str) -> str:
        found = self.found.get((kind, key))
        if found is None:
            number = 1 + sum(each.kind is kind for each in self.found.values())
            label = f"«{LABELS[kind]} {number}»"
            found = self.found[kind, key] = Found(kind=kind, label=label, sample=sample)
        found.count += 1
        return found.label


def _patterns(rules: Rules) -> re.Pattern[str] | None:
    """One group for each kind, in the order of _PATTERNS."""
    asked = [f"(?P<{kind}>{text})" for kind, option, text in _PATTERNS if getattr(rules, option)]
    return re.compile("|".join(asked)) if asked else None


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


def _names(name: str) -> list[str]:
    """A name and its parts: somebody is also called by one of them."""
    parts = [part for part in re.split(r"\s+", name) if len(part.strip(".,")) >= SHORTEST]
    return [each for each in (name.strip(), *parts) if len(each) >= SHORTEST]


def _values(value: Any) -> list[str]:
    """The texts and numbers in a customer's variables."""
    match value:
        case dict():
            return [text for inner in value.values() for text in _values(inner)]
        case list():
            return [text for inner in value for text in _values(inner)]
        case bool() | None:
            return []
        case _:
            text = str(value).strip()
            return [text] if len(text) >= SHORTEST else []


def _as_written(text: str) -> list[str]:
    """As it is, and as it stands in JSON: prompts and answers are full of that."""
    escaped = {text}
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        escaped |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    return sorted(escaped)


def _one_of(anywhere: Iterable[str], whole: Iterable[str]) -> re.Pattern[str] | None:
    """`anywhere` also within words, `whole` as words by themselves; the longest first."""
    forms = [(text, _pattern(text)) for text in set(anywhere)]
    forms += [(text, rf"(?<!\w){_pattern(text)}(?!\w)") for text in set(whole)]
    forms.sort(key=lambda form: (-len(form[0]), form))
    return re.compile("|".join(each for _text, each in forms), re.IGNORECASE) if forms else None


def _pattern(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())
