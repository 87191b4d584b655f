"""`manage.py bootstrap` and `manage.py serve`: web and worker start together, stay up, and stop together."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import psutil
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from studio.processes import Message, Receive, Send, WebServer
from studio.supervisor import listen
from tests.serving import CHECKOUT, START_MAY_TAKE, Served, serving

pytestmark = pytest.mark.timeout(120)  # whole products start here, on whatever machine

STOPS_WITHIN = 4.0  # seconds; the supervisor's own bound is 3


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    var = tmp_path_factory.mktemp("serve")
    environment = {**os.environ, "STUDIO_VAR": str(var)}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=CHECKOUT, env=environment, check=True)
    return var


@pytest.fixture
def served(migrated: Path, tmp_path: Path) -> Iterator[Served]:
    with serving("--port", "0", var=migrated, log=tmp_path / "log") as served:
        served.url()
        yield served


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + START_MAY_TAKE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        return str(response.read().decode())


def test_web_and_worker_start_together_and_the_address_is_told_once_it_answers(
    served: Served,
) -> None:
    assert set(served.children()) == {"web", "worker"}
    assert fetch(f"{served.url()}/healthz") == "ok"


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_both_soon_and_without_complaint(served: Served, by: signal.Signals) -> None:
    both = served.children()
    begun = time.monotonic()
    assert served.stop(by) == 0
    assert time.monotonic() - begun < STOPS_WITHIN
    assert not any(process.is_running() for process in both.values())
    assert "Traceback" not in served.said


@pytest.mark.parametrize("kind", ["web", "worker"])
def test_what_dies_is_started_again_and_said(served: Served, kind: str) -> None:
    first = served.children()[kind]
    first.kill()
    served.says(f"The {kind} ended \\(SIGKILL\\); starting it again")
    assert fetch(f"{served.url()}/healthz") == "ok"
    until(lambda: kind in served.children())
    assert served.children()[kind].pid != first.pid


def test_nothing_lingers_when_the_supervisor_is_killed(served: Served) -> None:
    both = list(served.children().values())
    served.process.kill()
    gone, alive = psutil.wait_procs(both, timeout=5)
    assert len(gone) == 2
    assert alive == []


def test_a_taken_port_is_named_with_the_remedy(migrated: Path, tmp_path: Path) -> None:
    with (
        listen("127.0.0.1", 0) as taken,
        serving(
            "--port", str(taken.getsockname()[1]), var=migrated, log=tmp_path / "log"
        ) as served,
    ):
        port = taken.getsockname()[1]
        assert served.process.wait(timeout=30) == 1
        assert f"Port {port} of 127.0.0.1 cannot be used" in served.said
        assert f"make run PORT={port + 1}" in served.said


def test_web_and_worker_can_run_on_different_machines(migrated: Path, tmp_path: Path) -> None:
    with serving("--port", "0", "--no-worker", var=migrated, log=tmp_path / "web") as served:
        served.url()
        assert set(served.children()) == {"web"}
    with serving("--no-web", var=migrated, log=tmp_path / "worker") as served:
        until(served.children)
        assert set(served.children()) == {"worker"}


def test_a_database_that_is_not_up_to_date_is_refused(tmp_path: Path) -> None:
    with serving("--port", "0", var=tmp_path / "var", log=tmp_path / "log") as served:
        assert served.process.wait(timeout=30) == 1
        assert "manage.py bootstrap" in served.said


def test_a_configuration_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "serve"]
    environment = {**os.environ, "DATABASE_URL": "mysql://root@db/studio"}
    told = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 1
    assert told.stderr.startswith("The configuration cannot be used: DATABASE_URL begins with")
    assert len(told.stderr.splitlines()) == 1


async def test_an_open_stream_does_not_hold_up_the_stop_and_is_told_to_end() -> None:
    told: list[str] = []

    async def endless(_scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
        told.append((await receive())["type"])

    listener = listen("127.0.0.1", 0)
    server = WebServer(endless)
    serving_it = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"first\n")
    server.should_exit = True
    begun = time.monotonic()
    await serving_it
    assert time.monotonic() - begun < 1.5
    assert told == ["http.disconnect"]
    assert await reader.read() == b"\r\n0\r\n\r\n"  # a whole answer, so the browser asks again
    writer.close()


def test_a_port_that_is_free_again_can_be_used_at_once() -> None:
    first = listen("127.0.0.1", 0)
    address = first.getsockname()
    with socket.create_connection(address):
        first.accept()[0].close()
        first.close()
        listen(*address).close()


@pytest.mark.django_db
def test_bootstrap_lets_one_person_in_and_tells_the_password_once() -> None:
    told = StringIO()
    call_command("bootstrap", stdout=told)
    line = next(line for line in told.getvalue().splitlines() if line.startswith("First sign-in"))
    password = line.partition("password ")[2].split()[0]
    assert User.objects.get().check_password(password)
    assert User.objects.get().is_superuser

    again = StringIO()
    call_command("bootstrap", stdout=again)
    assert "password" not in again.getvalue()
    assert User.objects.get().check_password(password)


@pytest.mark.parametrize(
    ("trusted", "scheme", "client"),
    [(["127.0.0.1"], "https", "203.0.113.9"), (["10.1.2.3"], "http", "127.0.0.1")],
)
async def test_only_a_trusted_proxy_is_believed_who_the_client_is(
    trusted: list[str], scheme: str, client: str
) -> None:
    scopes: list[Message] = []

    async def answer(scope: Message, _receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    listener = listen("127.0.0.1", 0)
    server = WebServer(answer, trusted_proxies=trusted)
    serving_it = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n\r\n"
    )
    await reader.read()
    writer.close()
    server.should_exit = True
    await serving_it
    assert (scopes[0]["scheme"], scopes[0]["client"][0]) == (scheme, client)
