"""The two kinds of process that serve the studio, as the supervisor starts them: `python -m studio.processes web 3 4`.

Both end with the supervisor, however it ends: they watch a pipe that only it holds open.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, NoReturn

import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

REQUESTS_MAY_FINISH = 0.5  # seconds, before streams are ended
UVICORN_GIVES_UP = 2  # seconds


def end_with(pipe: int) -> None:
    """Kill this process and whatever it started once nobody holds the other end of the pipe."""

    def watch() -> NoReturn:
        while os.read(pipe, 1):
            pass
        os.killpg(os.getpgrp(), signal.SIGKILL)
        raise AssertionError  # the line above does not return

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


class WebServer(uvicorn.Server):
    """A uvicorn that ends open streams when it stops, as if the browser had left; browsers reconnect."""

    def __init__(self, application: Application, *, trusted_proxies: Sequence[str] = ()) -> None:
        self._application = application
        self._closing = asyncio.Event()
        super().__init__(
            uvicorn.Config(
                self._until_closing,
                interface="asgi3",
                lifespan="off",
                ws="none",
                access_log=False,
                log_config=None,
                server_header=False,
                forwarded_allow_ips=list(trusted_proxies),
                timeout_graceful_shutdown=UVICORN_GIVES_UP,
            )
        )

    async def _until_closing(self, scope: Message, receive: Receive, send: Send) -> None:
        started = ended = False

        async def receive_or_close() -> Message:
            received = asyncio.ensure_future(receive())
            closing = asyncio.ensure_future(self._closing.wait())
            try:
                await asyncio.wait({received, closing}, return_when=asyncio.FIRST_COMPLETED)
                return received.result() if received.done() else {"type": "http.disconnect"}
            finally:
                received.cancel()
                closing.cancel()

        async def send_and_remember(message: Message) -> None:
            nonlocal started, ended
            started = True
            ended = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        await self._application(scope, receive_or_close, send_and_remember)
        if self._closing.is_set() and not ended:
            if not started:
                await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(REQUESTS_MAY_FINISH, self._closing.set)
        await super().shutdown(sockets)


def collect_garbage_seldom() -> None:
    """What was imported stays, so that looking through it makes no request wait; the rest is looked at less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def run_web(listener: socket.socket) -> None:
    from django.conf import settings

    from studio.asgi import application

    collect_garbage_seldom()
    server = WebServer(application, trusted_proxies=settings.STUDIO_TRUSTED_PROXIES)
    server.run(sockets=[listener])


def run_worker() -> int:
    import django

    django.setup()
    from celery.exceptions import SecurityWarning

    from studio.celery import app

    # Celery warns of running as root, where a message could bring code; ours are JSON.
    warnings.simplefilter("ignore", SecurityWarning)
    worker = app.Worker(
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    collect_garbage_seldom()
    worker.start()
    return int(worker.exitcode or 0)


def main(kind: str, pipe: str, listener: str = "") -> int:
    """`pipe` and `listener` are numbers of inherited file descriptors."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
    end_with(int(pipe))
    if kind == "worker":
        return run_worker()
    run_web(socket.socket(fileno=int(listener)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
