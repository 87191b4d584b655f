"""For tests in a browser: the real product, started as `make run` starts it, and Debian's Chromium in front of it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.serving import CHECKOUT, Served, serving

RESULTS = CHECKOUT / "test-results"
CHROMIUM = shutil.which("chromium")
CI = os.environ.get("CI") == "true"

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="no chromium on this machine"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if CI and exitstatus == 0 and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("In CI a skipped browser test is a failure.", red=True)
        session.exitstatus = 1


class Studio(NamedTuple):
    """A running studio: where it is, whom it lets in, and its processes (`served.var` is where it keeps its data)."""

    url: str
    user: str
    password: str
    served: Served


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    RESULTS.mkdir(exist_ok=True)
    log = RESULTS / "studio.log"
    var = tmp_path_factory.mktemp("var")
    with serving("--bootstrap", "--port", "0", var=var, log=log) as served:
        user, password = served.says(r"user (\S+), password (\S+)")
        yield Studio(url=served.url(), user=user, password=password, served=served)
        assert served.stop() == 0, f"the studio did not stop well: see {log}"
        assert "Traceback" not in served.said, f"something broke: see {log}"


@pytest.fixture(scope="session")
def base_url(studio: Studio) -> str:
    return studio.url


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    quiet = [
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "args": sandbox + quiet}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any], base_url: str) -> dict[str, Any]:
    return {
        **browser_context_args,
        "base_url": base_url,
        "reduced_motion": "reduce",
        "locale": "en-GB",
        "timezone_id": "Europe/London",
    }


@pytest.fixture(scope="session")
def signed_in_state(browser: Browser, studio: Studio) -> dict[str, Any]:
    """What the browser keeps after signing in, as a person does it, on the page."""
    context = browser.new_context(base_url=studio.url)
    page = context.new_page()
    page.goto("/sign-in/")
    page.get_by_label("User").fill(studio.user)
    page.get_by_label("Password").fill(studio.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    state = dict(context.storage_state())
    context.close()
    return state


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(
    new_context: Callable[..., BrowserContext], signed_in_state: dict[str, Any]
) -> Iterator[OpenPage]:
    """`open_page(signed_in=True, **context_arguments)`: a page in a browser of its own.

    The test fails where a script of one of its pages failed or the content security policy was broken.
    """
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        # An answer of 404 or 422 is told here too, but tests ask for such answers.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            complaints.append(message.text)

    def open_one(*, signed_in: bool = True, **arguments: Any) -> Page:
        state = {"storage_state": signed_in_state} if signed_in else {}
        page = new_context(**(DESKTOP | state | arguments)).new_page()
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_one
    assert complaints == []


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """Signed in, on a desktop, light."""
    return open_page()


@pytest.fixture
def dark_page(open_page: OpenPage) -> Page:
    return open_page(color_scheme="dark")


@pytest.fixture
def phone_page(open_page: OpenPage) -> Page:
    return open_page(**PHONE)


@pytest.fixture
def stranger_page(open_page: OpenPage) -> Page:
    """Nobody signed in."""
    return open_page(signed_in=False)


@pytest.fixture(scope="session")
def screenshot() -> Callable[[Page, str], Path]:
    """`screenshot(page, "name")` keeps the whole page as `test-results/screens/name.png`, for people to look at."""
    folder = RESULTS / "screens"
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Page, name: str) -> Path:
        path = folder / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        return path

    return take


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], None]:
    """`axe(page)` asserts that the accessibility checker finds nothing to complain about."""
    checker = Axe()

    def check(page: Page) -> None:
        results = checker.run(page)
        assert results.violations_count == 0, results.generate_report()

    return check
