"""Where an argument's value really came from (ENGINE.md §3): the model's claim is checked against the record.

Comparison ignores case, white space, quotes and the way numbers and dates are written (`engine.written`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.arguments import choices_of
from engine.canonical import JsonObject
from engine.events import RecordedEvent, ToolFinishedEvent
from engine.spec import Guideline, ParameterSource, ToolParameter
from engine.state import customer_messages
from engine.trail import Argument, ArgumentSource
from engine.written import (
    as_number,
    days_in,
    digits_of,
    has_number,
    iso_day,
    names_day,
    normal,
    numbers_in,
    spells_number,
    stands_in,
)

_PATH_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")
_SHORTEST_WORD = 2
_EVIDENCE_SHOWN = 300
_MOMENT_FORMATS = frozenset({"date", "date-time", "time", "duration"})
# Years, times and durations, which people put into words.
_MOMENT = re.compile(r"(?:19|20)\d\d(?!\d).*|\d{1,2}:\d.*|P[\dT].*")
_IDENTIFIER_DIGITS = 3
_DIGITS_COMPARED = 4
_LONGEST_DATE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What arguments may rest on in this turn."""

    history: tuple[RecordedEvent, ...]
    variables: JsonObject
    guidelines: tuple[Guideline, ...]

    def trace(self, parameter: ToolParameter, value: Any, claim: JsonObject) -> Argument:
        """The argument with its verified source: the claimed one where it holds, else one where the value stands.

        `claim` is {"source", "evidence"}. What stands nowhere is INFERRED and not verified.
        """
        claimed = ArgumentSource(claim["source"])
        evidence = str(claim["evidence"]).strip()
        # A yes or no stands in many results; it counts only where the model says.
        elsewhere = () if isinstance(value, bool) else _SOUGHT
        order = [claimed, *(source for source in elsewhere if source is not claimed)]
        if parameter.source is ParameterSource.CUSTOMER:
            order.sort(key=lambda source: source is not ArgumentSource.CUSTOMER)
        for source in order:
            found = self._find(source, parameter, value, evidence if source is claimed else "")
            if found is not None:
                words, offset = found
                return Argument(
                    name=parameter.name,
                    value=value,
                    source=source,
                    evidence=words[:_EVIDENCE_SHOWN],
                    verified=True,
                    offset=offset,
                )
        return Argument(
            name=parameter.name,
            value=value,
            source=ArgumentSource.INFERRED,
            evidence=evidence[:_EVIDENCE_SHOWN],
        )

    def _find(
        self, source: ArgumentSource, parameter: ToolParameter, value: Any, evidence: str
    ) -> tuple[str, int | None] | None:
        """(words or path, offset of the event) where the value stands in this source, or None."""
        match source:
            case ArgumentSource.CUSTOMER:
                return self._in_messages(parameter, value, evidence)
            case ArgumentSource.RESULT:
                return self._in_results(value, evidence)
            case ArgumentSource.VARIABLE:
                return self._in_variables(value)
            case ArgumentSource.DEFAULT:
                return _in_default(parameter, value)
            case ArgumentSource.GUIDELINE:
                return self._in_guidelines(value)
            case ArgumentSource.INFERRED:
                return None

    def _in_messages(
        self, parameter: ToolParameter, value: Any, evidence: str
    ) -> tuple[str, int] | None:
        for offset, text in customer_messages(self.history):
            copied = bool(evidence) and stands_in(evidence, text)
            if copied and _supports(parameter, evidence, value):
                return evidence, offset
            if _says(text, value):
                return (evidence if copied else _shown(value)), offset
        return None

    def _in_results(self, value: Any, evidence: str) -> tuple[str, int] | None:
        for entry in reversed(self.history):
            event = entry.event
            if not isinstance(event, ToolFinishedEvent) or event.error is not None:
                continue
            for path, leaf in _leaves(event.data):
                if _same(leaf, value):
                    full = event.tool + path
                    exact = evidence if _same(_walk(event, evidence), value) else full
                    return exact, entry.offset
        return None

    def _in_variables(self, value: Any) -> tuple[str, None] | None:
        for path, leaf in _leaves(self.variables):
            if _same(leaf, value):
                return path.lstrip("."), None
        return None

    def _in_guidelines(self, value: Any) -> tuple[str, None] | None:
        for guideline in self.guidelines:
            for text in (guideline.action, guideline.condition):
                if _says(text, value):
                    return _shown(value), None
        return None


# Where a value is looked for when it does not stand where the model says.
_SOUGHT = (
    ArgumentSource.CUSTOMER,
    ArgumentSource.RESULT,
    ArgumentSource.VARIABLE,
    ArgumentSource.GUIDELINE,
)


def _in_default(parameter: ToolParameter, value: Any) -> tuple[str, None] | None:
    given = parameter.default is not None and _same(parameter.default, value)
    return (_shown(value), None) if given else None


def _supports(parameter: ToolParameter, evidence: str, value: Any) -> bool:
    """Can these words be what the value rests on?

    Words mean more than they say ("dollars" is USD, "tomorrow" a date), so only what contradicts them is refused:
    another number, another choice, an identifier that they do not hold.
    """
    match value:
        case bool() | None:
            return True
        case int() | float():
            return _number_supported(evidence, value)
        case str():
            return _text_supported(parameter, evidence, value)
        case list() | tuple():
            return all(_supports(parameter, evidence, item) for item in value)
        case dict():
            return all(_supports(parameter, evidence, item) for item in value.values())
        case _:
            return True


def _number_supported(evidence: str, value: float) -> bool:
    # Without a digit the number stands there in words, in whatever language.
    spelled = spells_number(evidence) or not has_number(evidence)
    return spelled or as_number(value) in numbers_in(evidence)


def _text_supported(parameter: ToolParameter, evidence: str, value: str) -> bool:
    choices = [choice for choice in choices_of(parameter.schema) if isinstance(choice, str)]
    if choices:
        others = {normal(choice) for choice in choices if normal(choice) != normal(value)}
        return normal(evidence) not in others
    if parameter.schema.get("format") in _MOMENT_FORMATS or not _is_identifier(value):
        return True
    return spells_number(evidence) or digits_of(value)[-_DIGITS_COMPARED:] in digits_of(evidence)


def _is_identifier(value: str) -> bool:
    """An account, order or card number, which stands for nothing but itself."""
    digits = len(digits_of(value))
    in_one_word = not re.search(r"\s", value)
    mostly_digits = 2 * digits >= len(re.sub(r"[\s./-]", "", value))
    if digits < _IDENTIFIER_DIGITS or not (in_one_word or mostly_digits):
        return False
    return not _MOMENT.fullmatch(value) and not days_in(value)


def _says(text: str, value: Any) -> bool:
    """Whether a text says the value in so many words."""
    match value:
        case bool() | None:
            return False
        case int() | float():
            return has_number(text) and as_number(value) in numbers_in(text)
        case str():
            if len(normal(value)) >= _SHORTEST_WORD and stands_in(value, text):
                return True
            day = iso_day(value)
            return day is not None and names_day(text, day)
        case list() | tuple():
            return bool(value) and all(_says(text, item) for item in value)
        case dict():
            return bool(value) and all(_says(text, item) for item in value.values())
        case _:
            return False


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return as_number(left) == as_number(right)
    if isinstance(left, str) and isinstance(right, str):
        return bool(normal(right)) and (normal(left) == normal(right) or _same_day(left, right))
    return left is not None and bool(left == right)


def _same_day(left: str, right: str) -> bool:
    """Is the left text nothing but another way to write the day on the right?"""
    day = iso_day(right)
    return day is not None and len(left) <= _LONGEST_DATE and names_day(left, day)


def _leaves(data: Any) -> Iterator[tuple[str, Any]]:
    """Every value in a result with its path: `.items[2].id`. A loop, for results may be nested deeply."""
    waiting: list[tuple[str, Any]] = [("", data)]
    while waiting:
        path, here = waiting.pop()
        yield path, here
        match here:
            case dict():
                waiting.extend((f"{path}.{key}", item) for key, item in reversed(here.items()))
            case list() | tuple():
                places = reversed(list(enumerate(here)))
                waiting.extend((f"{path}[{place}]", item) for place, item in places)


def _walk(event: ToolFinishedEvent, path: str) -> Any:
    """What stands at `tool.items[2].id` of this result; None where there is nothing."""
    if not path.startswith(event.tool):
        return None
    here = event.data
    for index, key in _PATH_STEP.findall(path.removeprefix(event.tool)):
        try:
            here = here[int(index)] if index else here[key]
        except (KeyError, IndexError, TypeError):
            return None
    return here


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
