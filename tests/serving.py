"""`manage.py serve` as a process of its own, for tests of the whole product."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

CHECKOUT = Path(__file__).resolve().parent.parent
START_MAY_TAKE = 40.0  # seconds, on a busy machine


class Served:
    """A supervisor with what it serves; `var` is where it keeps its data, `log` what it said."""

    def __init__(
        self, *arguments: str, var: Path, log: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.var = var
        self.log = log
        self._settings = settings or {}
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", *arguments],
                cwd=CHECKOUT,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def environment(self) -> dict[str, str]:
        """For `manage.py` commands against the same data; the queue is the product's own."""
        own = {"STUDIO_VAR": str(self.var), "CELERY_BROKER_URL": "", "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **own, **self._settings}

    def manage(self, *arguments: str) -> str:
        """What a command prints."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command,
            cwd=CHECKOUT,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    def children(self) -> dict[str, psutil.Process]:
        """Web and worker, as they run now."""
        found = {}
        for process in psutil.Process(self.process.pid).children():
            command = process.cmdline()
            if "studio.processes" in command:
                found[command[command.index("studio.processes") + 1]] = process
        return found

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def says(self, pattern: str) -> tuple[str, ...]:
        """The groups of the pattern, once it is said."""
        deadline = time.monotonic() + START_MAY_TAKE
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if found := re.search(pattern, self.said):
                return found.groups()
            if ended:
                break
            time.sleep(0.03)
        raise AssertionError(f"{pattern!r} was not said, but:\n{self.said}")

    def url(self) -> str:
        return self.says(r"is at (http://[^/]+)/")[0]

    def stop(self, by: signal.Signals = signal.SIGINT) -> int:
        """The exit code."""
        self.process.send_signal(by)
        return self.process.wait(timeout=10)


@contextmanager
def serving(
    *arguments: str, var: Path, log: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """`settings` are environment variables beside STUDIO_VAR."""
    served = Served(*arguments, var=var, log=log, settings=settings)
    try:
        yield served
    finally:
        # The supervisor's children end with it, however it ends.
        served.process.kill()
        served.process.wait()
