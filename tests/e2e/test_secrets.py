"""A secret of a tool's configuration is nowhere but in the tool: looked for everywhere, during a run and after it."""

import json
import re
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.api_client import client_of
from tests.e2e import parcels
from tests.e2e.conftest import Studio
from tests.e2e.sandbox import open_sandbox, say

SECRET = "sk-nobody-may-see-7b3e91d2f4"
FORMS = (SECRET, b64encode(SECRET.encode()).decode().rstrip("="))
BUILT = 90.0  # seconds that an environment may take on a busy machine
SLOW = 3  # seconds of the run that is looked into


@pytest.fixture(scope="session")
def api(studio: Studio) -> Iterator[httpx2.Client]:
    with client_of(studio.served) as client:
        yield client


@pytest.fixture(scope="session")
def tool(api: httpx2.Client) -> str:
    """The name of a ready tool that has the secret."""
    files = {"file": ("secret_parcels.zip", parcels.archive(), "application/zip")}
    template = api.post("/tool-templates", files=files).raise_for_status().json()
    body = {"name": "secret_parcels", "config": {"api_key": SECRET}}
    made = api.post(f"/tool-templates/{template['id']}/instances", json=body)
    assert made.status_code == 202, made.text
    instance = made.json()
    assert_hidden("the answer that made it", made.text)
    until = time.monotonic() + BUILT
    while instance["state"] != "READY":
        assert time.monotonic() < until, instance
        assert instance["state"] != "FAILED", instance
        time.sleep(0.2)
        instance = api.get(f"/tool-instances/{instance['id']}").raise_for_status().json()
    assert "fingerprint" in json.dumps(instance)
    return str(instance["tool"])


def assert_hidden(where: str, *texts: str) -> None:
    for text in texts:
        for form in FORMS:
            assert form not in text, f"the secret is in {where}"


def processes() -> Iterator[tuple[str, str]]:
    """What any process list of this machine shows of each process: arguments and, to the same user, environment."""
    for process in psutil.process_iter():
        try:
            said = " ".join(process.cmdline())
            said += " ".join(f"{name}={value}" for name, value in process.environ().items())
            yield f"process {process.pid} ({process.name()})", said
        except psutil.Error:
            continue


def stored(var: Path) -> Iterator[tuple[str, str]]:
    """Everything that the studio keeps: database, its write-ahead log, queue, workspaces, environments."""
    for path in sorted(var.rglob("*")):
        if path.is_file() and not path.is_symlink() and "site-packages" not in path.parts:
            yield str(path.relative_to(var)), path.read_bytes().decode("latin-1")


def assert_nothing_is_left(studio: Studio) -> None:
    for where, text in stored(studio.served.var):
        assert_hidden(where, text)
    assert_hidden("the studio's log", studio.served.said)
    for where, said in processes():
        assert_hidden(where, said)


def test_a_secret_is_seen_nowhere_during_a_run_and_after_it(
    studio: Studio, api: httpx2.Client, tool: str
) -> None:
    answers: list[str] = []

    def run(**arguments: Any) -> None:
        body = {"arguments": {"parcel": "PX-1234", **arguments}}
        answers.append(api.post(f"/tools/{tool}/run", json=body).text)

    during = threading.Thread(target=run, kwargs={"seconds": SLOW, "trouble": "talk"})
    during.start()
    seen = 0
    while during.is_alive():
        for where, said in processes():
            assert_hidden(where, said)
            seen += 1
        for where, text in stored(studio.served.var):
            assert_hidden(where, text)
    during.join()
    run(trouble="raise")

    assert seen > 100, "nobody looked while it ran"
    assert "•••" in answers[0], answers[0]
    assert "refused •••" in answers[1], answers[1]
    assert_hidden("the answer of a run", *answers)
    assert_nothing_is_left(studio)


def test_a_secret_stays_out_of_a_conversation_and_all_that_tells_of_it(
    page: Page, studio: Studio, api: httpx2.Client, tool: str
) -> None:
    api.put(f"/agents/harbor-bank/tools/{tool}").raise_for_status()
    for trouble in ("talk", "raise"):
        guideline = {
            "condition": f"the customer wants the {trouble} test of the secret parcels",
            "action": "say what came of it",
            "tools": [tool],
        }
        api.post("/agents/harbor-bank/guidelines", json=guideline).raise_for_status()
    open_sandbox(page)
    say(page, "I want the talk test of the secret parcels for PX-1234, please talk", 1)
    say(page, "Now the raise test of the secret parcels for PX-1234, please raise", 2)
    session = int(re.findall(r"/sessions/(\d+)/", page.url)[0])
    for place in (f"/sessions/{session}/turns/{number}?prompts=true" for number in (1, 2)):
        audit = api.get(place)
        assert_hidden(place, audit.text)
        assert [call["tool"] for call in audit.json()["calls"]] == [tool], audit.text
    for place in (
        f"/sessions/{session}/events",
        "/tools",
        f"/tools/{tool}",
        "/tool-templates",
        "/agents/harbor-bank/export",
    ):
        assert_hidden(place, api.get(place).raise_for_status().text)
    instance = page.request.get(f"/tools/{tool}/").text()
    pages = re.findall(r'href="(/tools/(?:instances|templates)/\d+/)"', instance)
    assert pages
    for place in (*pages, f"/tools/{tool}/", f"/tools/{tool}/run/", f"/sessions/{session}/"):
        assert_hidden(place, page.request.get(place).text())
    expect(page.locator("#ledger")).to_contain_text("Failed")

    assert_nothing_is_left(studio)
