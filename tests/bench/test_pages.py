"""What people wait for: pages of a studio after years of use, and the first words of a reply."""

import json
import re
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import httpx2

from tests.api_client import client_of
from tests.bench import scenario
from tests.bench.many_rows import AGENT, SESSIONS
from tests.bench.many_tests import AGENT as TESTED
from tests.bench.test_served import model_process, new_agent, new_session, product
from tests.serving import Served

ASKED = 40  # times that each page is asked for


def signed_in(served: Served) -> httpx2.Client:
    user, password = served.says(r"user (\S+), password (\S+)")
    client = httpx2.Client(base_url=served.url(), follow_redirects=True, timeout=60)
    form = client.get("/sign-in/").text
    (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[:1]
    sent = {"username": user, "password": password, "csrfmiddlewaretoken": token}
    client.post("/sign-in/", data=sent, headers={"Referer": served.url()}).raise_for_status()
    assert client.get("/sessions/").url.path == "/sessions/"
    return client


def measured(client: httpx2.Client, path: str) -> str:
    """The whole answer over loopback."""
    times = []
    client.get(path).raise_for_status()
    for _ in range(ASKED):
        began = time.perf_counter()
        client.get(path).raise_for_status()
        times.append((time.perf_counter() - began) * 1000)
    p95 = statistics.quantiles(times, n=20)[-1]
    return f"{p95:.0f} ms (median {statistics.median(times):.0f})"


def test_pages_with_1000_guidelines_10000_sessions_and_100000_events(
    figure: Callable[..., None], tmp_path: Path
) -> None:
    with product(tmp_path) as served:
        served.url()  # it answers, so its database is there
        served.manage("shell", "-c", "from tests.bench.many_rows import fill; fill()")
        with closing(signed_in(served)) as client, client_of(served) as api:
            (newest,) = api.get(f"/sessions?agent={AGENT}&limit=1").json()["items"]
            session = newest["id"]
            for name, path in (
                ("agents", "/"),
                ("guidelines", f"/agents/{AGENT}/guidelines/"),
                ("one guideline beside the table", f"/agents/{AGENT}/guidelines/g1/"),
                ("tools", "/tools/"),
                ("sessions", "/sessions/"),
                ("sessions, searched", "/sessions/?q=balance+refund"),
                ("sessions where a guideline fired", f"/sessions/?agent={AGENT}&guideline=g1"),
                ("sandbox", f"/sessions/{session}/"),
                ("audit of a turn", f"/sessions/{session}/turns/2/"),
            ):
                figure(
                    f"page, {SESSIONS:,} sessions: {name}, p95",
                    measured(client, path),
                    budget="≤ 100 ms",
                )


def test_pages_with_50_scenarios_run_against_1000_guidelines(
    figure: Callable[..., None], tmp_path: Path
) -> None:
    with product(tmp_path) as served:
        served.url()
        served.manage("shell", "-c", "from tests.bench.many_tests import fill; fill()")
        with closing(signed_in(served)) as client:
            for name, path in (
                ("coverage", f"/agents/{TESTED}/coverage/"),
                ("coverage, filtered", f"/agents/{TESTED}/coverage/?state=fired&q=matter+7"),
                ("turns behind a row of it", f"/agents/{TESTED}/coverage/guidelines/g1/"),
                ("guidelines with their tests", f"/agents/{TESTED}/guidelines/"),
                ("overview with its tests", f"/agents/{TESTED}/"),
            ):
                figure(
                    f"page, 1,000 guidelines x 50 scenarios: {name}, p95",
                    measured(client, path),
                    budget="≤ 100 ms",
                )


def test_the_first_words_of_a_reply(figure: Callable[..., None], tmp_path: Path) -> None:
    waits = []
    with (
        model_process(0.2) as model,
        product(tmp_path, model) as served,
        client_of(served) as api,
    ):
        slug = new_agent(api, 10)
        for _ in range(5):
            session = new_session(api, slug)
            seen: list[float] = []
            reader = threading.Thread(target=first_piece, args=(api, session, seen))
            reader.start()
            time.sleep(0.3)
            sent = {"text": scenario.MESSAGE}
            audit = api.post(f"/sessions/{session}/messages?wait=60", json=sent).json()
            reader.join()
            writing = audit["model_calls"][-1]
            had = datetime.fromisoformat(writing["first_token_at"]).timestamp()
            waits.append((seen[0] - had) * 1000)
    figure(
        "first words: from the worker to whoever watches, of 5 the longest",
        f"{max(waits):.0f} ms",
        budget="≤ 200 ms",
    )


def first_piece(api: httpx2.Client, session: int, seen: list[float]) -> None:
    with api.stream("GET", f"/sessions/{session}/stream") as lines:
        for line in lines.iter_lines():
            kind, _colon, data = line.partition(": ")
            if kind != "data":
                continue
            event = json.loads(data)
            words = event["kind"] in {"message.part", "message"} and event["source"] == "agent"
            if words:
                seen.append(time.time())
                return
