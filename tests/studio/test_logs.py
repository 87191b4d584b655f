"""What the log shows: one line each, without secrets."""

import logging
import sys

from studio.logs import MASK, MaskingFormatter

FORMATTER = MaskingFormatter(secrets=("hunter2", "hunter2-and-more"))


def record(message: str, *arguments: object, error: BaseException | None = None) -> str:
    information = (type(error), error, error.__traceback__) if error else None
    return FORMATTER.format(
        logging.LogRecord("studio.turns", logging.WARNING, "", 0, message, arguments, information)
    )


def test_a_line_says_when_how_bad_where_and_what() -> None:
    assert record("turn %d waits", 7).split(" ", 1)[1] == "WARNING studio.turns: turn 7 waits"


def test_secrets_are_masked_in_arguments_and_the_longer_one_as_a_whole() -> None:
    line = record("asked with %s, then with %s", "hunter2", "hunter2-and-more")
    assert line.endswith(f"asked with {MASK}, then with {MASK}")


def test_secrets_are_masked_in_tracebacks() -> None:
    try:
        raise ConnectionError("postgres://anna:hunter2@db refused")
    except ConnectionError:
        line = record("failed", error=sys.exc_info()[1])
    assert "Traceback" in line
    assert "hunter2" not in line
    assert f"postgres://anna:{MASK}@db refused" in line
