"""What a tool gave back, made into a ToolResult of plain JSON, or a ToolFailure that says why it cannot be."""

import json
import traceback
from collections.abc import Iterator
from typing import Any

from pydantic_core import to_jsonable_python

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolResult

MAX_RESULT_BYTES = 1024 * 1024
_MAX_DETAIL = 20_000  # characters of a traceback; its end tells the most


def result_of(tool: str, value: Any) -> ToolResult:
    """A copy of `value` (a ToolResult, or the data of one) in plain JSON types.

    Models, dataclasses, dates, decimals and sets are written as pydantic writes them. Raises ToolFailure with
    the kind BAD_OUTPUT for what JSON cannot hold and TOO_LARGE above MAX_RESULT_BYTES of UTF-8.
    """
    result = value if isinstance(value, ToolResult) else ToolResult(data=value)
    if isinstance(result.data, Iterator):
        raise _bad_output(tool, f"an iterator ({type(result.data).__name__}); return a list")
    if not isinstance(result.metadata, dict):
        raise _bad_output(tool, f"metadata that is not a dict: {type(result.metadata).__name__}")
    try:
        plain = to_jsonable_python({"data": result.data, "metadata": result.metadata})
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode("utf-8"))
    except Exception as error:  # a model's own serializer may raise anything
        raise _bad_output(tool, f"what JSON cannot hold: {error}") from error
    if size > MAX_RESULT_BYTES:
        raise ToolFailure(
            ToolError(
                kind=ToolErrorKind.TOO_LARGE,
                public="the answer was too large to use",
                detail=f"tool {tool!r} returned {size:,} bytes of JSON; "
                f"at most {MAX_RESULT_BYTES:,} are kept: return less, or a page of it",
            )
        )
    return ToolResult(**json.loads(text))


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


def _bad_output(tool: str, what: str) -> ToolFailure:
    return ToolFailure(
        ToolError(
            kind=ToolErrorKind.BAD_OUTPUT,
            public="it gave no usable answer",
            detail=f"tool {tool!r} returned {what}",
        )
    )
