"""What the log may show."""

import logging
from collections.abc import Sequence

MASK = "•••"


class MaskingFormatter(logging.Formatter):
    """One concise line, traceback included where there is one, without the value of any secret."""

    def __init__(self, *, secrets: Sequence[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        # The longest first: a secret that contains another is masked as a whole.
        self._secrets = sorted(secrets, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        for secret in self._secrets:
            line = line.replace(secret, MASK)
        return line
