"""What a parameter looks for: the sort of value, the words that announce it, and its part in the sentence."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from engine.arguments import plain_schema
from engine.canonical import JsonObject
from engine.model.offline.results import key_stems, spaced
from engine.spec import ToolParameter
from engine.wording import is_content, related_stems, stem, words


class Sort(StrEnum):
    CHOICE = "choice"
    BOOLEAN = "yes or no"
    NUMBER = "number"
    EMAIL = "e-mail"
    DATE = "date"
    MOMENT = "date and time"
    TIME = "time"
    DURATION = "duration"
    UUID = "UUID"
    URL = "address"
    CURRENCY = "currency"
    IDENTIFIER = "identifier"
    PHONE = "phone number"
    FREE_TEXT = "text"
    NAME = "name"
    LIST = "list"
    OBJECT = "object"


class Role(StrEnum):
    """Which end of an action a parameter stands at."""

    SOURCE = "from"
    TARGET = "to"
    NEITHER = ""


_FORMATS = {
    "email": Sort.EMAIL,
    "date": Sort.DATE,
    "date-time": Sort.MOMENT,
    "time": Sort.TIME,
    "duration": Sort.DURATION,
    "uuid": Sort.UUID,
    "uri": Sort.URL,
}
_BY_LAST_WORD = {
    Sort.EMAIL: "email mail",
    Sort.DATE: "date day birthday deadline checkin checkout arrival departure",
    Sort.MOMENT: "datetime timestamp moment when",
    Sort.TIME: "time hour",
    Sort.DURATION: "duration",
    Sort.URL: "url link website uri",
    Sort.CURRENCY: "currency currencies ccy",
    Sort.PHONE: "phone telephone mobile cellphone fax",
    Sort.IDENTIFIER: "id ids uuid number no nr code reference ref identifier key sku isbn iban plate pin",
    Sort.FREE_TEXT: (
        "query question message text topic reason comment comments note notes description feedback details detail "
        "complaint body content summary subject symptom symptoms issue problem request search utterance input prompt "
        "remarks remark instructions explanation wish wishes inquiry"
    ),
}
_SORT_OF_WORD = {word: sort for sort, text in _BY_LAST_WORD.items() for word in text.split()}
_SOURCE_WORDS = frozenset("from source origin sender departure depart start base payer".split())
_TARGET_WORDS = frozenset(
    "to destination target recipient payee receiver arrival beneficiary arrive into dest quote".split()
)
_PLACE_WORDS = frozenset(
    "city location place branch country town region address store shop venue office station airport site district area "
    "destination origin hotel clinic department".split()
)
_PERSON_WORDS = frozenset(
    "name person guest employee doctor passenger recipient payee contact patient author owner who "
    "customer member colleague "
    "receiver beneficiary attendee manager friend artist teacher dentist".split()
)
_MONEY_WORDS = frozenset(
    "amount price budget total sum payment cost deposit fee money salary income value balance "
    "donation tip spend".split()
)
_COUNT_WORDS = frozenset(
    "quantity count number people persons guests party size seats tickets qty copies items".split()
)
_ANSWERED_BY_REASON = frozenset(
    "reason complaint symptom symptoms issue problem cause explanation".split()
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A parameter (or a field of an object parameter) as the offline model looks for it."""

    parameter: ToolParameter

    @property
    def name(self) -> str:
        return self.parameter.name

    @cached_property
    def schema(self) -> JsonObject:
        """The schema of the value itself: of several alternatives the first that has a type."""
        schema = plain_schema(self.parameter.schema)
        for keyword in ("anyOf", "oneOf"):
            branches = [b for b in schema.get(keyword, ()) if b.get("type") != "null"]
            if branches and not all("const" in branch for branch in branches):
                return {**schema, **branches[0]}
        types = schema.get("type")
        return {**schema, "type": types[0]} if isinstance(types, list) and types else schema

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The closed list of values, if the schema has one."""
        if "enum" in self.schema:
            return tuple(value for value in self.schema["enum"] if value is not None)
        if "const" in self.schema:
            return (self.schema["const"],)
        for keyword in ("anyOf", "oneOf"):
            consts = [b["const"] for b in self.schema.get(keyword, ()) if "const" in b]
            if consts:
                return tuple(consts)
        return ()

    @cached_property
    def choice_titles(self) -> dict[str, str]:
        """Titles or descriptions that the schema gives to single choices, by the choice as text."""
        return {
            str(branch["const"]): str(branch.get("title") or branch.get("description") or "")
            for keyword in ("anyOf", "oneOf")
            for branch in self.schema.get(keyword, ())
            if "const" in branch
        }

    @cached_property
    def name_words(self) -> list[str]:
        return words(spaced(self.name))

    @cached_property
    def stems(self) -> set[str]:
        """Stems by which a customer may name the parameter."""
        return key_stems(self.name, self.parameter.display_name)

    @cached_property
    def described(self) -> set[str]:
        """Stems of the description: weaker cues."""
        text = self.parameter.description
        return {stem(word) for word in words(text) if is_content(word)} - self.stems

    @cached_property
    def related(self) -> set[str]:
        return {other for one in self.stems for other, _ in related_stems(one)}

    @cached_property
    def role(self) -> Role:
        named = set(self.name_words)
        if named & _SOURCE_WORDS:
            return Role.SOURCE
        if named & _TARGET_WORDS:
            return Role.TARGET
        described = self.parameter.description.lower()
        if re.search(
            r"\b(convert|send|transfer|go|travel|fly|move)\w* (?:\w+ )?(?:in)?to\b", described
        ):
            return Role.TARGET
        if re.search(
            r"\b(convert|send|transfer|travel|fly|move|taken?)\w* (?:\w+ )?from\b", described
        ):
            return Role.SOURCE
        return Role.NEITHER

    @property
    def names_place(self) -> bool:
        return bool(_PLACE_WORDS & set(self.name_words))

    @property
    def names_person(self) -> bool:
        return bool(_PERSON_WORDS & set(self.name_words))

    @property
    def is_money(self) -> bool:
        return bool(_MONEY_WORDS & set(self.name_words))

    @property
    def is_count(self) -> bool:
        return bool(_COUNT_WORDS & set(self.name_words)) and not self.is_money

    @property
    def wants_reason(self) -> bool:
        """Free text that a bare request does not give: why, or what is wrong."""
        return bool(_ANSWERED_BY_REASON & set(self.name_words))

    @cached_property
    def sort(self) -> Sort:
        kind = self.schema.get("type")
        if self.choices:
            return Sort.CHOICE
        structural = {
            "boolean": Sort.BOOLEAN,
            "array": Sort.LIST,
            "object": Sort.OBJECT,
        }.get(str(kind))
        if structural:
            return structural
        if kind in ("number", "integer"):
            last = self.name_words[-1:] or [""]
            identifying = kind == "integer" and _SORT_OF_WORD.get(last[0]) is Sort.IDENTIFIER
            counted = last[0] in ("number", "no", "nr") and not self._numbers_a_thing
            return Sort.IDENTIFIER if identifying and not counted else Sort.NUMBER
        return self._sort_of_text()

    @property
    def _numbers_a_thing(self) -> bool:
        """ "order_number" names a thing, "number" and "number_of_guests" count."""
        return len(self.name_words) > 1 and self.name_words[0] not in (
            "number",
            "total",
            "max",
            "min",
        )

    def _sort_of_text(self) -> Sort:
        formatted = _FORMATS.get(str(self.schema.get("format")))
        if formatted:
            return formatted
        for word in (*reversed(self.name_words), *self._described_sort()):
            sort = _SORT_OF_WORD.get(word)
            if sort is Sort.TIME and {"date", "day"} & set(self.name_words):
                return Sort.MOMENT
            if sort:
                return sort
        return Sort.IDENTIFIER if "pattern" in self.schema else Sort.NAME

    def _described_sort(self) -> list[str]:
        text = self.parameter.description.lower()
        if re.search(r"\biso[ -]?4217\b|\bcurrency code\b", text):
            return ["currency"]
        if re.search(r"\byyyy-mm-dd\b|\biso(?: 8601)? date\b", text):
            return ["date"]
        if re.search(r"\b(?:free text|in (?:their|the customer's) own words)\b", text):
            return ["text"]
        return []

    def field(self, name: str, schema: JsonObject, *, required: bool) -> "Wanted":
        """A field of an object parameter, or the items of a list one, as something to look for."""
        return Wanted(
            parameter=ToolParameter(
                name=name,
                schema=schema,
                required=required,
                description=str(schema.get("description", "")),
                source=self.parameter.source,
            )
        )
