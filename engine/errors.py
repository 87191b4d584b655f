"""Errors, named by who must act: the author (SpecError), the model's side (ModelError), a tool (ToolError)."""

from dataclasses import dataclass
from enum import StrEnum


class SpecError(Exception):
    """What an author or developer wrote cannot be used; `field` names the place, the message the remedy."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ModelErrorKind(StrEnum):
    UNREACHABLE = "unreachable"  # connection refused, reset, DNS
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"  # HTTP 429
    SERVER = "server"  # HTTP 5xx
    REFUSED = "refused"  # HTTP 4xx: key, model name, parameters
    EMPTY = "empty"  # an answer without content
    MALFORMED = "malformed"  # not JSON
    WRONG_SCHEMA = "wrong_schema"  # JSON that does not fit the answer's schema
    TRUNCATED = "truncated"  # stopped by the token limit, or the stream broke off
    NOT_RECORDED = "not_recorded"  # a replay asked what the record does not hold


class ModelError(Exception):
    """A language model gave no usable answer.

    `retryable` says whether the same request may succeed later; `retry_after` is the server's wish in seconds;
    `answer_text` is what it did say, for the trail.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        retryable: bool,
        retry_after: float | None = None,
        answer_text: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after
        self.answer_text = answer_text


class ToolErrorKind(StrEnum):
    """The closed set of ways in which a tool call fails (ENGINE.md §4)."""

    TIMEOUT = "timeout"
    EXCEPTION = "exception"
    BAD_OUTPUT = "bad_output"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    NOT_ALLOWED = "not_allowed"
    UNKNOWN_OUTCOME = "unknown_outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolError:
    """A failed tool call as data: `public` may be told to a customer, `detail` is for the trail only."""

    kind: ToolErrorKind
    public: str
    detail: str = ""


class ToolFailure(Exception):  # noqa: N818 - it carries a ToolError, it is not one
    """Raised by a ToolService to report a ToolError."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(f"{error.kind}: {error.public}")
        self.error = error
