"""What a page asks with for one value of a JSON Schema: text, number, date, tick, choice, lines, JSON.

An input lives for one request. It is loaded with what was sent, or filled with a value, and then says what value that
is. Left empty is not given, whatever it asks for; what it cannot say (an empty text, a list in another order than its
choices) is written as JSON instead, see `studio.forms.schema_inputs.filled`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from engine.arguments import allows_null, canonical_numbers, plain_schema, reason_against
from engine.canonical import JsonObject, canonical_json, is_too_deep, without_nul
from studio.forms.written_values import UnreadableError, example_of, json_of, number_of, types_of


class Absent(Enum):
    ABSENT = auto()


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """One input beside its value. `name` is its place in the form, `key` what the value is called where it goes."""

    name: str
    key: str
    label: str
    help: str = ""
    required: bool = True
    default: Any = None
    examples: tuple[Any, ...] = ()


class Input:
    """One value to be given. `raw` is what stands in the page, `error` why it is no value, as a sentence."""

    kind: ClassVar[str]
    shows_type: bool = False  # says in words what it takes, where the input itself does not show it

    def __init__(self, about: About, schema: JsonObject) -> None:
        self.about = about
        self.schema = schema
        self.plain = plain_schema(schema)
        self.raw: Any = ""
        self.error = ""

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def id(self) -> str:
        return f"id_{self.name}"

    @property
    def has_help(self) -> bool:
        return bool(self.about.help or self.shows_type or self.default_told)

    @property
    def default_told(self) -> bool:
        """Whether there is a value, worth telling, that it has when it is left out."""
        return self.about.default not in (None, "", [], {}) or self.about.default is False

    @property
    def described_by(self) -> str:
        """Of aria-describedby: the ids of its help and its error, as they are there."""
        parts = [f"{self.id}_help"] if self.has_help else []
        if self.error:
            parts.append(f"{self.id}_error")
        return " ".join(parts)

    @property
    def placeholder(self) -> str:
        for value in (self.about.default, *self.about.examples):
            if value is not None and not isinstance(value, dict | list | bool):
                text = value if isinstance(value, str) else json.dumps(value)
                return text if "\n" not in text and len(text) <= 80 else ""
        return ""

    @property
    def is_empty(self) -> bool:
        return not str(self.raw).strip()

    def load(self, data: QueryDict) -> None:
        """Take what was sent."""
        self.raw = data.get(self.name, "")

    def fill(self, value: Any) -> None:
        """Show this value, as far as it can be shown; `value()` tells whether it could."""
        self.raw = "" if value is None else value if isinstance(value, str) else json.dumps(value)

    def read(self) -> Any:
        """The value of what stands there, which is not empty; raises UnreadableError."""
        raise NotImplementedError

    def value(self) -> Any:
        """The value, or ABSENT where it is left empty or is none; `error` then says why, if that is wrong."""
        self.error = ""
        if self.is_empty:
            return self._left_empty()
        try:
            value = canonical_numbers(self.read())
            _refuse_unstorable(value)
        except UnreadableError as error:
            self.refuse(str(error))
            return ABSENT
        if reason := reason_against(self.schema, value):
            self.refuse(reason)
            return ABSENT
        return value

    def typed(self) -> Any:
        """The value, or what was typed where that is none: nothing of it is to be lost."""
        value = self.value()
        return self.raw if self.error and not self.is_empty else value

    def refuse(self, reason: str) -> None:
        """`reason` continues "It …"; what was said of it before stays."""
        self.error = self.error or _("It %(reason)s.") % {"reason": reason}

    def errors(self) -> list[tuple["Input", str]]:
        """Of itself and what is inside it."""
        return [(self, self.error)] if self.error else []

    def _left_empty(self) -> Any:
        if not self.about.required:
            return ABSENT
        if allows_null(self.schema):
            return None
        self.refuse(_("is required"))
        return ABSENT


def _refuse_unstorable(value: Any) -> None:
    if is_too_deep(value):
        raise UnreadableError(_("is nested too deep"))
    text = json.dumps(value)
    try:
        whole = without_nul(text) == text and bool(canonical_json(value).encode())
    except ValueError:  # half of a character; no finite number, which the schema refuses
        whole = "NaN" in text or "Infinity" in text
    if not whole:
        raise UnreadableError(_("contains a character that cannot be stored"))


class TextInput(Input):
    """Text of any number of lines."""

    kind = "text"

    def read(self) -> str:
        return str(self.raw).replace("\r\n", "\n").replace("\r", "\n")


class LineInput(Input):
    """Text in one line: of a format, or short."""

    kind = "line"

    @property
    def shows_type(self) -> bool:  # type: ignore[override]
        return "format" in self.plain

    @property
    def type(self) -> str:
        """Of the HTML element. A date that is none could not be shown as one."""
        is_date = self.plain.get("format") == "date" and not reason_against(self.plain, self.raw)
        empty_date = self.plain.get("format") == "date" and self.is_empty
        return "date" if is_date or empty_date else "text"

    def read(self) -> str:
        return re.sub(r"[\r\n]", "", str(self.raw))


class SecretInput(Input):
    """Text that is hidden while it is typed; the page never shows `raw`."""

    kind = "secret"

    def read(self) -> Any:
        text = str(self.raw)
        return text if "string" in types_of(self.plain) else json_of(text, self.schema)


class NumberInput(Input):
    kind = "number"
    shows_type = True

    @property
    def mode(self) -> str:
        return "numeric" if self.plain.get("type") == "integer" else "decimal"

    def read(self) -> int | float:
        return number_of(str(self.raw).strip(), self.plain)


class CheckInput(Input):
    """A yes or a no that has to be given: ticked or not."""

    kind = "check"

    def load(self, data: QueryDict) -> None:
        self.raw = self.name in data

    def fill(self, value: Any) -> None:
        self.raw = value is True

    @property
    def is_empty(self) -> bool:
        return not self.raw

    def value(self) -> bool:
        return bool(self.raw)


@dataclass(frozen=True, slots=True)
class Option:
    text: str  # what is sent: the value as JSON, so that it means the same in a form that has changed meanwhile
    value: Any
    chosen: bool


class ChoiceInput(Input):
    """One of several values."""

    kind = "choice"

    def __init__(self, about: About, schema: JsonObject, choices: Sequence[Any]) -> None:
        super().__init__(about, schema)
        self._choices = {canonical_json(choice): choice for choice in choices}

    @property
    def options(self) -> list[Option]:
        return [Option(text, value, text == self.raw) for text, value in self._choices.items()]

    def fill(self, value: Any) -> None:
        text = canonical_json(value)
        self.raw = text if text in self._choices or value is not None else ""

    def read(self) -> Any:
        if self.raw not in self._choices:
            raise UnreadableError(_("must be one of these"))
        return self._choices[self.raw]


class ChoicesInput(Input):
    """Any of several values, in their order."""

    kind = "choices"

    def __init__(self, about: About, schema: JsonObject, choices: Sequence[Any]) -> None:
        super().__init__(about, schema)
        self.raw: list[str] = []
        self._choices = {canonical_json(choice): choice for choice in choices}

    @property
    def options(self) -> list[Option]:
        return [Option(text, value, text in self.raw) for text, value in self._choices.items()]

    @property
    def is_empty(self) -> bool:
        return not self.raw

    def load(self, data: QueryDict) -> None:
        self.raw = data.getlist(self.name)

    def fill(self, value: Any) -> None:
        self.raw = [canonical_json(item) for item in value] if isinstance(value, list) else []

    def read(self) -> list[Any]:
        if any(text not in self._choices for text in self.raw):
            raise UnreadableError(_("must be some of these"))
        return [value for text, value in self._choices.items() if text in self.raw]


class LinesInput(Input):
    """A list of texts or numbers, one a line."""

    kind = "lines"
    shows_type = True

    def fill(self, value: Any) -> None:
        items = value if isinstance(value, list) else []
        self.raw = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in items)

    @property
    def lines(self) -> int:
        return min(str(self.raw).count("\n") + 2, 12)

    def read(self) -> list[Any]:
        lines = [line.strip() for line in re.split(r"\r\n|\r|\n", str(self.raw))]
        items = self.plain["items"]
        return [
            self._item(items, line, number) for number, line in enumerate(lines, start=1) if line
        ]

    def _item(self, schema: JsonObject, line: str, number: int) -> Any:
        plain = plain_schema(schema)
        try:
            value = line if plain["type"] == "string" else number_of(line, plain)
        except UnreadableError as error:
            raise self._of_line(number, str(error)) from error
        if reason := reason_against(schema, value):
            raise self._of_line(number, reason)
        return value

    def _of_line(self, number: int, reason: str) -> UnreadableError:
        return UnreadableError(
            _("%(reason)s in line %(number)d") % {"number": number, "reason": reason}
        )


class JsonInput(Input):
    """A value written as JSON; where text will do, without its quotes as well."""

    kind = "json"
    shows_type = True
    SUFFIX: ClassVar = ":json"  # of the names of inputs that ask for JSON in the place of another

    @property
    def example(self) -> str:
        told = (self.about.default, *self.about.examples)
        given = [value for value in told if value not in (None, "", [], {})]
        value = given[0] if given else example_of(self.schema)
        return json.dumps(value, ensure_ascii=False)

    @property
    def lines(self) -> int:
        return min(max(str(self.raw).count("\n") + 1, 2), 16)

    def fill(self, value: Any) -> None:
        self.raw = json.dumps(value, ensure_ascii=False, indent=2)

    def read(self) -> Any:
        return json_of(str(self.raw).strip(), self.schema)
