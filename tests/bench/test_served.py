"""What the running product costs: time to the reply, turns per second, CPU with every row written, start and memory."""

import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.api_client import client_of
from tests.bench import scenario
from tests.serving import CHECKOUT, Served, serving

LATENCY = 0.2
# Guidelines, budget, peer: the reply's time; for 200 and more with the shortlist.
TIMES = ((10, "≤ 0.68 s", "0.83 s"), (200, "≤ 0.70 s", "1.0 s"), (1000, "≤ 0.80 s", "4.8 s"))


@contextmanager
def model_process(latency: float) -> Iterator[str]:
    """The address of the scenario's model in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.model_server", str(latency)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def product(folder: Path, model: str = "") -> Iterator[Served]:
    settings = {"STUDIO_TOOL_MODULES": "studio.demo.bank,tests.bench.tools"}
    if model:
        settings |= {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none", "STUDIO_MODEL": "small"}
    with serving(
        "--bootstrap", "--port", "0", var=folder, log=folder / "log", settings=settings
    ) as served:
        yield served


def new_agent(api: httpx2.Client, guidelines: int) -> str:
    slug = f"bench-{guidelines}"
    api.post("/agents/import", json=scenario.document(slug, guidelines)).raise_for_status()
    return slug


def new_session(api: httpx2.Client, slug: str) -> int:
    return int(api.post("/sessions", json={"agent": slug}).raise_for_status().json()["id"])


def one_turn(api: httpx2.Client, session: int) -> float:
    """Seconds from the message to the finished turn with every row written."""
    began = time.perf_counter()
    answer = api.post(f"/sessions/{session}/messages?wait=60", json={"text": scenario.MESSAGE})
    took = time.perf_counter() - began
    assert answer.json()["state"] == "FINISHED", answer.text
    return took


def test_time_to_the_reply_and_turns_per_second(
    figure: Callable[..., None], tmp_path: Path
) -> None:
    with (
        model_process(LATENCY) as model,
        product(tmp_path, model) as served,
        client_of(served) as api,
    ):
        for guidelines, budget, peer in TIMES:
            session = new_session(api, new_agent(api, guidelines))
            one_turn(api, session)
            times = [one_turn(api, session) for _ in range(5)]
            figure(
                f"time to the reply, N = {guidelines}, model 200 ms",
                f"{statistics.median(times):.2f} s",
                budget=budget,
                peer=peer,
            )
        for guidelines, budget, peer in ((10, "≥ 40", "13.2"), (200, "≥ 35", "4.1")):
            rate = _rate(api, f"bench-{guidelines}")
            figure(
                f"turns per second, 32 sessions at once, N = {guidelines}",
                f"{rate:.1f}",
                budget=budget,
                peer=peer,
            )


def _rate(api: httpx2.Client, slug: str) -> float:
    sessions = [new_session(api, slug) for _ in range(32)]
    rounds = 3
    with ThreadPoolExecutor(32) as clients:
        list(clients.map(lambda session: one_turn(api, session), sessions))
        began = time.perf_counter()
        for _ in range(rounds):
            list(clients.map(lambda session: one_turn(api, session), sessions))
    return rounds * len(sessions) / (time.perf_counter() - began)


def _judge_in_one_question(served: Served, model: str) -> None:
    """Give the model a connection of a size that large models have, so that 50 guidelines are one batch."""
    served.manage(
        "shell",
        "--verbosity=0",
        "-c",
        "from studio.models import ModelConnection; ModelConnection.objects.create("
        f"name='bench', base_url={model!r}, model='small', batch_size=50, is_default=True)",
    )


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


@pytest.mark.parametrize("turns_before", [0, 200])
def test_cpu_of_a_turn_with_every_row_written(
    figure: Callable[..., None], tmp_path: Path, turns_before: int
) -> None:
    with (
        model_process(0.0) as model,
        product(tmp_path, model) as served,
        client_of(served) as api,
    ):
        _judge_in_one_question(served, model)
        session = new_session(api, new_agent(api, 50))
        for _ in range(10 + turns_before):
            one_turn(api, session)
        worker = served.children()["worker"]
        before, turns = _cpu(worker), 40
        for _ in range(turns):
            one_turn(api, session)
        figure(
            f"worker CPU per turn, 4 calls to an instant model, 50 guidelines, after {turns_before} turns",
            f"{1000 * (_cpu(worker) - before) / turns:.1f} ms",
            budget="≤ 20 ms",
        )


def test_saved_guideline_to_live_turn(figure: Callable[..., None], tmp_path: Path) -> None:
    with (
        model_process(0.0) as model,
        product(tmp_path, model) as served,
        client_of(served) as api,
    ):
        slug = new_agent(api, 200)
        session = new_session(api, slug)
        one_turn(api, session)
        plain = statistics.median(one_turn(api, session) for _ in range(5))
        after = []
        for number in range(5):
            changed = api.patch(
                f"/agents/{slug}/guidelines/g1", json={"action": f"explain it, case {number}"}
            )
            assert changed.status_code == 200
            after.append(one_turn(api, session))
        figure(
            "guideline saved → in force: what the next turn takes longer, N = 200",
            f"{1000 * (statistics.median(after) - plain):.0f} ms",
            budget="≤ 50 ms",
            peer="restart",
        )


def test_start_and_idle_memory(figure: Callable[..., None], tmp_path: Path) -> None:
    with product(tmp_path) as served:  # migrates and loads the demo
        served.url()
        served.stop()
    began = time.perf_counter()
    with serving("--port", "0", var=tmp_path, log=tmp_path / "log2") as served:
        urllib.request.urlopen(f"{served.url()}/sign-in/").read()
        figure("start to first page", f"{time.perf_counter() - began:.1f} s", budget="≤ 3 s", peer="3.3 s")  # fmt: skip
        time.sleep(3)
        family = [psutil.Process(served.process.pid), *served.children().values()]
        memory = sum(process.memory_info().rss for process in family) / 2**20
        figure(
            "idle memory of web, worker and supervisor",
            f"{memory:.0f} MB",
            budget="≤ 300 MB",
            peer="156 MB",
        )
    assert os.path.exists(tmp_path / "studio.sqlite3")  # noqa: PTH110
