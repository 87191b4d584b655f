"""Pydantic's warnings of classes that are made anew: their author is told in other ways."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_ONE_AT_A_TIME = RLock()  # the warning filters are the process's


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return (str(error).strip() or type(error).__name__).partition("\n")[0][:200]
