"""Replaying many sessions: how fast from the record, and what it leaves for those who use the studio meanwhile."""

import re
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from tests.api_client import client_of
from tests.bench.test_pages import signed_in
from tests.bench.test_served import product

AGENT = "harbor-bank"
SESSIONS = 500


def test_frozen_replay_of_500_sessions(figure: Callable[..., None], tmp_path: Path) -> None:
    with product(tmp_path) as served:
        served.url()
        served.manage(
            "shell",
            "-c",
            "from tests.bench.many_sessions import copy_sessions; "
            f"copy_sessions({AGENT!r}, {SESSIONS})",
        )
        with closing(signed_in(served)) as browser, client_of(served) as api:
            replay = start(api)
            pages, taken = watched(api, browser, served, replay)
            ended = api.get(f"/replays/{replay}").json()
            assert ended["state"] == "finished", ended
            assert ended["verdicts"] == {"same": ended["total"]}, ended["verdicts"]
            took = seconds_of(served, replay)
            figure(
                "frozen replay, turns per second", f"{ended['total'] / took:.0f}", budget="≥ 100"
            )
            figure(
                "pages while 500 sessions are replayed, median · p95",
                f"{statistics.median(pages):.0f} · {statistics.quantiles(pages, n=20)[-1]:.0f} ms",
            )
            figure("turns taken at one moment by 32 threads, 20 each", str(taken), budget="> 320")
            figure("cancelled after", f"{cancelled_after(api) * 1000:.0f} ms", budget="≤ 1,000 ms")


def start(api: httpx2.Client) -> int:
    sessions: list[int] = []
    while page := api.get(f"/sessions?agent={AGENT}&limit=100&offset={len(sessions)}").json()[
        "items"
    ]:
        sessions += [session["id"] for session in page]
    assert len(sessions) == SESSIONS
    body = {"sessions": sessions, "against": "published"}
    return int(api.post("/replays", json=body).raise_for_status().json()["id"])


def watched(
    api: httpx2.Client, browser: httpx2.Client, served: Any, replay: int
) -> tuple[list[float], int]:
    """Milliseconds of pages that somebody opens until the replay is over, and the most turns at once."""
    times, most = [], 0
    while api.get(f"/replays/{replay}?limit=1").json()["state"] in {"queued", "running"}:
        for path in (f"/replays/{replay}/", "/sessions/", f"/agents/{AGENT}/guidelines/"):
            began = time.perf_counter()
            browser.get(path).raise_for_status()
            times.append((time.perf_counter() - began) * 1000)
        if len(times) % 15 == 0:
            most = max(most, at_once(served, replay))
    return times, most


def at_once(served: Any, replay: int) -> int:
    counted = (
        "from studio.models import ReplayedTurn; print('at once', ReplayedTurn.objects.filter("
        f"replay={replay}, state='running').count())"
    )
    return int(re.findall(r"at once (\d+)", served.manage("shell", "-c", counted))[0])


def seconds_of(served: Any, replay: int) -> float:
    told = (
        f"from studio.models import Replay; r = Replay.objects.get(pk={replay}); "
        "print('took', (r.finished_at - r.started_at).total_seconds())"
    )
    return float(re.findall(r"took ([\d.]+)", served.manage("shell", "-c", told))[0])


def cancelled_after(api: httpx2.Client) -> float:
    """Seconds until no turn of a replay is at work any more."""
    replay = start(api)
    while not api.get(f"/replays/{replay}?limit=1").json()["done"]:
        time.sleep(0.05)
    began = time.perf_counter()
    api.post(f"/replays/{replay}/cancel").raise_for_status()
    done = -1
    while (now := api.get(f"/replays/{replay}?limit=1").json())["done"] != done:
        done = now["done"]
        time.sleep(0.2)
    assert now["state"] == "stopped", now
    assert now["done"] < now["total"]
    return time.perf_counter() - began - 0.2
