"""Where an argument's value really came from (ENGINE.md §3): the model's claim is checked against the record.

Comparison ignores case, white space, quotes and the way numbers are written.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.canonical import JsonObject
from engine.events import RecordedEvent, ToolFinishedEvent
from engine.spec import Guideline, ToolParameter
from engine.state import customer_messages
from engine.trail import Argument, ArgumentSource

_NUMBER = re.compile(r"[-+]?\d[\d.,\u00a0\u202f' ]*")
_PATH_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")
_SHORTEST_WORD = 2


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
        order = [claimed, *(source for source in _SOUGHT if source is not claimed)]
        for source in order:
            found = self._find(source, parameter, value, evidence if source is claimed else "")
            if found is not None:
                words, offset = found
                return Argument(
                    name=parameter.name,
                    value=value,
                    source=source,
                    evidence=words,
                    verified=True,
                    offset=offset,
                )
        return Argument(
            name=parameter.name, value=value, source=ArgumentSource.INFERRED, evidence=evidence
        )

    def _find(
        self, source: ArgumentSource, parameter: ToolParameter, value: Any, evidence: str
    ) -> tuple[str, int | None] | None:
        """(words or path, offset of the event) where the value stands in this source, or None."""
        match source:
            case ArgumentSource.CUSTOMER:
                return self._in_messages(value, evidence)
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

    def _in_messages(self, value: Any, evidence: str) -> tuple[str, int] | None:
        words = _normal(evidence)
        for offset, text in customer_messages(self.history):
            said = _normal(text)
            if words and _stands_in(words, said) and _supports(evidence, value):
                return evidence, offset
            if _says(text, value):
                return (evidence if words and _stands_in(words, said) else _shown(value)), offset
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


def _normal(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = re.sub(r"[\"'“”‘’`«»„]", "", plain)
    return re.sub(r"\s+", " ", plain).strip(" .,;:!?")


def _stands_in(words: str, text: str) -> bool:
    """Whole words only: "1" does not stand in "2100"."""
    pattern = rf"(?<!\w){re.escape(words)}(?!\w)"
    return re.search(pattern, text) is not None


def _supports(evidence: str, value: Any) -> bool:
    """Whether words can be what the value rests on: for a number they must say that number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    readings = {reading for number in _NUMBER.findall(evidence) for reading in _readings(number)}
    # Words such as "two hundred" or "2k" hold no plain number to compare with; they may be right.
    spelled = re.search(r"\d+\s?[km]\b", evidence.casefold()) is not None
    return not readings or spelled or float(value) in readings


def _readings(number: str) -> set[float]:
    """What a written number can mean: 1,500 may be 1500 or 1.5, for the locale is not known."""
    compact = re.sub(r"[\s\u00a0\u202f']", "", number).rstrip(".,")
    found = set()
    for decimal, group in ((".", ","), (",", ".")):
        plain = compact.replace(group, "").replace(decimal, ".")
        try:
            found.add(float(plain))
        except ValueError:
            continue
    return found


def _says(text: str, value: Any) -> bool:
    """Whether a text says the value in so many words."""
    match value:
        case bool() | None:
            return False
        case int() | float():
            return any(float(value) in _readings(number) for number in _NUMBER.findall(text))
        case str():
            words = _normal(value)
            return len(words) >= _SHORTEST_WORD and _stands_in(words, _normal(text))
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
        return float(left) == float(right)
    if isinstance(left, str) and isinstance(right, str):
        return bool(right.strip()) and _normal(left) == _normal(right)
    return left is not None and bool(left == right)


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a result with its path: `.items[2].id`."""
    if path:
        yield path, data
    match data:
        case dict():
            for key, item in data.items():
                yield from _leaves(item, f"{path}.{key}")
        case list() | tuple():
            for place, item in enumerate(data):
                yield from _leaves(item, f"{path}[{place}]")
        case _ if not path:
            yield "", data


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
