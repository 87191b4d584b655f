"""Killing the worker or the web in mid-turn: what was done is kept, and the turn is finished."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api_client import client_of
from tests.bench import scenario
from tests.openai_server import OpenAIServer
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(180)


class Brake:
    """The scenario's model, and what it was asked."""

    def __init__(self) -> None:
        self.writing = threading.Event()
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        name = body["response_format"]["json_schema"]["name"]
        self.asked.append(name)
        if name == "ComposeReply":
            self.writing.set()
        return scenario.answer(body)


@pytest.fixture
def brake() -> Brake:
    return Brake()


@pytest.fixture
def model(brake: Brake) -> Iterator[OpenAIServer]:
    with OpenAIServer(answer=brake, checks_answers=False) as server:
        yield server


@pytest.fixture
def served(model: OpenAIServer, tmp_path: Path) -> Iterator[Served]:
    settings = {
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "none",
        "STUDIO_MODEL": "small",
        "STUDIO_TOOL_MODULES": "studio.demo.bank,tests.bench.tools",
    }
    with serving(
        "--bootstrap", "--port", "0", var=tmp_path, log=tmp_path / "log", settings=settings
    ) as served:
        yield served


def kill(served: Served, kind: str) -> None:
    served.children()[kind].send_signal(signal.SIGKILL)


def start_turn(api: httpx2.Client) -> int:
    api.post("/agents/import", json=scenario.document("bench", 4)).raise_for_status()
    session = int(api.post("/sessions", json={"agent": "bench"}).json()["id"])
    sent = api.post(f"/sessions/{session}/messages", json={"text": scenario.MESSAGE})
    assert sent.status_code == 202
    return session


def finished(api: httpx2.Client, session: int) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            turn: dict[str, Any] = api.get(f"/sessions/{session}/turns/1").json()
        except httpx2.TransportError:
            time.sleep(0.2)
            continue
        if turn["state"] not in {"QUEUED", "RUNNING"}:
            return turn
        time.sleep(0.1)
    raise AssertionError("the turn was not finished within 60 s")


@pytest.mark.parametrize("kind", ["worker", "web"])
def test_a_turn_is_finished_after_a_kill(
    served: Served, model: OpenAIServer, brake: Brake, kind: str
) -> None:
    with client_of(served) as api:
        model.latency = 0.5
        session = start_turn(api)
        assert brake.writing.wait(30)

        kill(served, kind)
        model.latency = 0.0

        turn = finished(api, session)
        assert turn["state"] == "FINISHED"
        assert "162.60" in turn["reply"]
        assert [call["state"] for call in turn["calls"]] == ["done"]
        # What stood in the trail was not asked again.
        assert brake.asked.count("InferToolCalls") == 1
        events = api.get(f"/sessions/{session}/events").json()
        said = [e for e in events["items"] if e["kind"] == "message"]
        assert [e["source"] for e in said] == ["customer", "agent"]
