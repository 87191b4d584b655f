"""Web and worker as child processes: started together, started again when they die, stopped together.

It is a program of its own, `python -m studio.supervisor`, that imports nothing but the standard library, so that
watching over the studio costs little memory. `manage.py serve` becomes it.
"""

import argparse
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

STOPPING_MAY_TAKE = 3.0  # seconds, for both together
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a process is started again
STEADY = 20.0  # seconds after which a process counts as having started well
TICK = 0.1


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


@dataclass(slots=True, kw_only=True)
class Child:
    """One process that should be running, in a group of its own: Ctrl-C reaches the supervisor only."""

    name: str
    arguments: Sequence[str]
    descriptors: Sequence[int]
    process: subprocess.Popen[bytes] = field(init=False)
    started: float = 0.0
    start_again_at: float | None = None
    pause: float = FIRST_PAUSE

    def start(self) -> None:
        self.start_again_at = None
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "studio.processes", *self.arguments],
            stdin=subprocess.DEVNULL,
            pass_fds=self.descriptors,
            start_new_session=True,
        )

    def look_after(self) -> None:
        """Start it again if it died, after a pause that doubles as long as it dies soon."""
        now = time.monotonic()
        if self.start_again_at is None and self.process.poll() is not None:
            steady = now - self.started > STEADY
            self.pause = FIRST_PAUSE if steady else min(self.pause * 2, LONGEST_PAUSE)
            self.start_again_at = now + self.pause
            say(f"The {self.name} ended ({_how(self.process.returncode)}); starting it again.")
        if self.start_again_at is not None and now >= self.start_again_at:
            self.start()

    def ask_to_stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        """The process, if it still runs, and whatever it started and left."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


class Supervisor:
    def __init__(self, *, listener: socket.socket | None, worker: bool) -> None:
        # The write end stays here alone: it closes when this process ends, whatever ends it.
        read_end, self._write_end = os.pipe()
        self._stops_asked = 0
        self.children = []
        if listener is not None:
            descriptors = (read_end, listener.fileno())
            arguments = ("web", *map(str, descriptors))
            self.children.append(Child(name="web", arguments=arguments, descriptors=descriptors))
        if worker:
            arguments = ("worker", str(read_end))
            self.children.append(Child(name="worker", arguments=arguments, descriptors=(read_end,)))

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        for child in self.children:
            child.start()
        while not self._stops_asked:
            for child in self.children:
                child.look_after()
            time.sleep(TICK)
        self._stop_children()

    def _stop(self, _number: int, _frame: object) -> None:
        self._stops_asked += 1

    def _stop_children(self) -> None:
        for child in self.children:
            child.ask_to_stop()
        deadline = time.monotonic() + STOPPING_MAY_TAKE
        while (
            self._stops_asked == 1  # a second Ctrl-C means now
            and time.monotonic() < deadline
            and any(child.process.poll() is None for child in self.children)
        ):
            time.sleep(TICK)
        for child in self.children:
            child.kill()


def listen(host: str, port: int) -> socket.socket:
    """The one socket of the studio, held here so that a web process that is started again loses no request.

    Raises OSError where the address is taken, unknown or not ours.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(2048)
    return listener


def announce(listener: socket.socket) -> None:
    """Say the address as soon as the web answers there."""
    host, port = listener.getsockname()[:2]
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (compared with, not bound to)
    host = everywhere.get(host, host)
    while True:
        connection = http.client.HTTPConnection(host, port, timeout=60)
        try:
            connection.request("GET", "/healthz", headers={"Host": "localhost"})
            if connection.getresponse().status == http.HTTPStatus.OK:
                break
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.2)
    name = f"[{host}]" if ":" in host else host
    say(f"Guideline Studio is at http://{name}:{port}/ (Ctrl-C stops it)")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="studio.supervisor")
    parser.add_argument("--listener", type=int, help="inherited descriptor of the web's socket")
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args(argv)
    listener = None
    if options.listener is not None:
        listener = socket.socket(fileno=options.listener)
        listener.set_inheritable(False)
        threading.Thread(target=announce, args=[listener], daemon=True).start()
    Supervisor(listener=listener, worker=options.worker).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
