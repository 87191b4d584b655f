"""What a tool gave back, made into a ToolResult of plain JSON, or a ToolFailure that says why it cannot be."""

import json
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from engine.canonical import DEEPEST, JsonObject, is_too_deep
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.events import Mode
from engine.spec import Criticality
from engine.tools.base import Control, Lifespan, ToolResult, TransientGuideline

MAX_RESULT_BYTES = 1024 * 1024
MOST_RESPONSES = 50
MOST_GUIDELINES = 20
LONGEST_TEXT = 10_000  # characters of a canned response, of a guideline's condition or action
MAX_LOG = 20_000  # characters of what a tool printed; its end is kept
_MAX_DETAIL = 20_000  # characters of a traceback; its end tells the most

Choice = TypeVar("Choice", bound=StrEnum)


def result_of(tool: str, value: Any) -> ToolResult:
    """A copy of `value` (a ToolResult, or the data of one) in plain JSON types.

    Models, dataclasses, dates, decimals and sets are written as pydantic writes them. Raises ToolFailure as `checked`.
    """
    result = value if isinstance(value, ToolResult) else ToolResult(data=value)
    if isinstance(result.data, Iterator):
        raise _bad_output(tool, f"an iterator ({type(result.data).__name__}); return a list")
    try:
        plain = replace(
            result,
            data=_written(result.data),
            metadata=_written(result.metadata),
            canned_response_fields=_written(result.canned_response_fields),
        )
    except Exception as error:  # a model's own serializer may raise anything
        raise _bad_output(tool, f"what JSON cannot hold: {error}") from error
    return checked(tool, plain)


def checked(tool: str, result: ToolResult) -> ToolResult:
    """The result with each part what it must be; a copy of its own, of plain JSON types.

    Raises ToolFailure with the kind BAD_OUTPUT, whose detail names the field, for what JSON cannot hold, is nested
    deeper than DEEPEST levels or is no such part, and TOO_LARGE above MAX_RESULT_BYTES of UTF-8.
    """
    try:
        sound = replace(
            result,
            metadata=_object("metadata", result.metadata),
            control=_control(result.control),
            canned_responses=_responses(result.canned_responses),
            canned_response_fields=_object("canned_response_fields", result.canned_response_fields),
            guidelines=_guidelines(result.guidelines),
            log=str(result.log).replace("\x00", "")[-MAX_LOG:],
        )
        plain = sound.to_json()
        size = len(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())
    except Exception as error:  # a service may return anything
        raise _bad_output(tool, f"what cannot be used: {error}") from error
    if size > MAX_RESULT_BYTES:
        raise ToolFailure(
            ToolError(
                kind=ToolErrorKind.TOO_LARGE,
                public="its answer was too large",
                detail=f"tool {tool!r} returned {size:,} bytes of JSON; "
                f"{MAX_RESULT_BYTES:,} are kept at most: return less, or a page of it",
            )
        )
    if is_too_deep(plain):
        raise _bad_output(tool, f"a value nested deeper than {DEEPEST} levels")
    return replace(
        sound,
        data=plain["data"],
        metadata=plain["metadata"],
        canned_response_fields=plain.get("canned_response_fields", {}),
    )


def failure_of(tool: str, error: BaseException) -> ToolFailure:
    """An exception of a tool's code as a ToolFailure; one that is a ToolFailure already stays as it is."""
    if isinstance(error, ToolFailure):
        return error
    frames = error.__traceback__.tb_next if error.__traceback__ else None  # without ours
    lines = traceback.format_exception(type(error), error, frames)
    return ToolFailure(
        ToolError(
            kind=ToolErrorKind.EXCEPTION,
            public="it failed with an internal error",
            detail=f"tool {tool!r} raised:\n{''.join(lines)[-_MAX_DETAIL:]}",
        )
    )


def _written(value: Any) -> Any:
    return json.loads(json.dumps(to_jsonable_python(value), allow_nan=False))


def _object(name: str, value: Any) -> JsonObject:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"its {name} is no dict with text as keys")
    return value


def _control(value: Any) -> Control:
    given = _fields("control", value, Control)
    return Control(
        mode=None if given.get("mode") is None else _one_of("control.mode", given["mode"], Mode),
        lifespan=_one_of("control.lifespan", given.get("lifespan", "session"), Lifespan),
    )


def _responses(value: Any) -> tuple[str, ...]:
    responses = _list("canned_responses", value, MOST_RESPONSES)
    texts = [
        _text(f"canned_responses[{place}]", response) for place, response in enumerate(responses)
    ]
    if not all(text.strip() for text in texts):
        raise ValueError("one of its canned_responses is empty")
    return tuple(texts)


def _guidelines(value: Any) -> tuple[TransientGuideline, ...]:
    found = []
    for place, item in enumerate(_list("guidelines", value, MOST_GUIDELINES)):
        name = f"guidelines[{place}]"
        given = _fields(name, item, TransientGuideline)
        guideline = TransientGuideline(
            condition=_text(f"{name}.condition", given.get("condition", "")),
            action=_text(f"{name}.action", given.get("action", "")),
            criticality=_one_of(
                f"{name}.criticality", given.get("criticality", "medium"), Criticality
            ),
        )
        if not guideline.condition.strip() and not guideline.action.strip():
            raise ValueError(f"its {name} has neither a condition nor an action")
        found.append(guideline)
    return tuple(found)


def _fields(name: str, value: Any, kind: type[Any]) -> Mapping[str, Any]:
    """The fields of a `kind`, given as one or as a dict."""
    given: Any = asdict(value) if isinstance(value, Control | TransientGuideline) else value
    if not isinstance(given, Mapping):
        raise TypeError(f"its {name} is {value!r:.100}; use a {kind.__name__}")
    known = list(kind.__dataclass_fields__)
    if unknown := [key for key in given if key not in known]:
        raise ValueError(f"its {name} has {unknown[0]!r}; it may have {', '.join(known)}")
    return given


def _one_of(name: str, value: Any, kind: type[Choice]) -> Choice:
    try:
        return kind(value)
    except ValueError as error:
        raise ValueError(
            f"its {name} is {value!r:.100}; use {' or '.join(repr(str(one)) for one in kind)}"
        ) from error


def _list(name: str, value: Any, most: int) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"its {name} is {value!r:.100}; use a list")
    if len(value) > most:
        raise ValueError(f"its {name} has {len(value)} items; {most} at most are used")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"its {name} is {value!r:.100}; use text")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"its {name} has {len(value)} characters; use at most {LONGEST_TEXT}")
    return value.replace("\x00", "")


def _bad_output(tool: str, what: str) -> ToolFailure:
    return ToolFailure(
        ToolError(
            kind=ToolErrorKind.BAD_OUTPUT,
            public="its answer could not be read",
            detail=f"tool {tool!r} returned {what}"[:_MAX_DETAIL],
        )
    )
