"""Tool results as flat facts: each leaf of the data with its path and the words that name it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.events import ToolFinishedEvent
from engine.wording import FUNCTION_WEIGHT, stem, weight, words

MAX_LEAVES = 2_000
FETCHING = frozenset(
    "get fetch find list lookup look search show read check query load retrieve compute view describe resolve provide "
    "select "
    "count tell give see make use".split()
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ID_KEY = re.compile(r"(?:^|_)(?:id|ids|uid|uuid|guid|key|ref|reference|code|number|no|nr)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A scalar in a result. `path` is written as evidence is: `find_rooms.rooms[2].id`."""

    tool: str
    path: str
    keys: tuple[str, ...]
    value: Any
    offset: int

    @property
    def key(self) -> str:
        return self.keys[-1] if self.keys else ""


def spaced(key: str) -> str:
    """A key as words: `dueDate`, `due_date` and `due-date` are "due date"."""
    return re.sub(r"[\s_\-.]+", " ", _CAMEL.sub(" ", key)).strip().lower()


def key_stems(*keys: str) -> set[str]:
    """Stems of the words that keys or tool names are made of, without grammar and verbs of fetching."""
    return {
        stem(word)
        for key in keys
        for word in words(spaced(key))
        if weight(word) > FUNCTION_WEIGHT and word not in FETCHING
    }


def is_identifier(key: str) -> bool:
    """Whether a key names a technical identifier rather than something to read."""
    return bool(_ID_KEY.search(spaced(key).replace(" ", "_")))


def is_internal_id(key: str) -> bool:
    """Narrower: a key that people need not see (`id`, `customer_id`, `uuid`)."""
    return bool(re.search(r"(?:^|_)(?:id|ids|uid|uuid|guid|pk)$", spaced(key).replace(" ", "_")))


def leaves(offset: int, event: ToolFinishedEvent) -> list[Leaf]:
    """The scalars of a result, in order, at most `MAX_LEAVES`."""
    found: list[Leaf] = []
    for path, keys, value in _walk(event.data, event.tool, (), 0):
        found.append(Leaf(tool=event.tool, path=path, keys=keys, value=value, offset=offset))
        if len(found) >= MAX_LEAVES:
            break
    return found


def _walk(
    data: Any, path: str, keys: tuple[str, ...], depth: int
) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    if depth > 12:
        return
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _walk(value, f"{path}.{key}", (*keys, str(key)), depth + 1)
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _walk(value, f"{path}[{number}]", keys, depth + 1)
    else:
        yield path, keys, data


def records(event: ToolFinishedEvent) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """The objects that stand in lists of a result: path, keys above, object; in order, at most `MAX_LEAVES`."""
    count = 0
    stack: list[tuple[str, tuple[str, ...], Any]] = [(event.tool, (), event.data)]
    while stack and count < MAX_LEAVES:
        path, keys, data = stack.pop(0)
        if isinstance(data, dict):
            stack.extend((f"{path}.{key}", (*keys, str(key)), value) for key, value in data.items())
        elif isinstance(data, list):
            for number, value in enumerate(data[:MAX_LEAVES]):
                if isinstance(value, dict):
                    count += 1
                    yield f"{path}[{number}]", keys, value


def empty(data: Any) -> bool:
    """Nothing, or only empty lists and nulls (zero and false are something)."""
    if isinstance(data, dict):
        held = [value for value in data.values() if isinstance(value, list | dict) or value is None]
        return len(held) == len(data) and all(empty(value) for value in held)
    return data is None or data in ("", [])
