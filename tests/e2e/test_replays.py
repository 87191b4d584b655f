"""QA replays what was recorded, reads what an edit changed, accepts it, and keeps decisions as tests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import DESKTOP, PHONE, RESULTS, Studio
from tests.e2e.sandbox import Screenshot
from tests.serving import serving

AGENT = "/agents/harbor-bank"
SOON = 30_000  # milliseconds

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def own_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio with nothing but the demo: what other tests change would be found by a replay."""
    var = tmp_path_factory.mktemp("replays")
    RESULTS.mkdir(exist_ok=True)
    log = RESULTS / "studio-replays.log"
    with serving("--bootstrap", "--port", "0", var=var, log=log) as served:
        user, password = served.says(r"user (\S+), password (\S+)")
        yield Studio(url=served.url(), user=user, password=password, served=served)
        assert "Traceback" not in served.said, f"something broke: see {log}"


@pytest.fixture
def opened(browser: Browser, own_studio: Studio) -> Iterator[OpenPage]:
    """`opened(**context)`: signed in there; fails where a script failed or the content policy was broken."""
    complaints: list[str] = []
    contexts = []

    def open_one(**arguments: Any) -> Page:
        context = browser.new_context(**(DESKTOP | {"base_url": own_studio.url} | arguments))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto("/sign-in/")
        page.get_by_label("User").fill(own_studio.user)
        page.get_by_label("Password").fill(own_studio.password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: "/sign-in/" not in url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def replay_all(page: Page, way: str) -> None:
    """All sessions of the demo against its draft, to the end of the replay."""
    page.goto("/sessions/?agent=harbor-bank")
    page.get_by_role("link", name="Replay these").click()
    page.get_by_role("radio", name=way).check()
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text("Finished", exact=True)).to_be_visible(timeout=SOON)


def changed_turns(page: Page) -> list[str]:
    return [words.strip() for words in page.locator("[data-row] .said").all_inner_texts()]


def test_what_was_not_edited_does_not_change_and_what_was_changes_just_its_turns(
    opened: OpenPage, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = opened()
    replay_all(page, "Frozen")
    expect(page.get_by_text("No difference.")).to_be_visible()
    screenshot(page, "replay-same")

    page.goto(f"{AGENT}/guidelines/fees/")
    page.get_by_label("When", exact=True).fill("The customer asks for a loan")
    page.get_by_label("then").first.fill("Say that loans are not granted online.")
    page.get_by_label("Messages it should match").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("table")).to_contain_text("asks for a loan")

    replay_all(page, "Until it differs")
    assert changed_turns(page) == ["What does a second card cost?"]
    expect(page.locator("[data-row]")).to_contain_text("does not match any more")
    axe(page)
    screenshot(page, "replay-one-changed")

    page.keyboard.press("d")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What does a second card cost?")).to_be_visible()
    expect(page.locator("del").first).to_contain_text("removed:")
    # What the edited guideline says stands beside what it said.
    expect(page.get_by_role("region", name="On record")).to_contain_text("asks about fees")
    expect(page.get_by_role("region", name="Played again")).to_contain_text("asks for a loan")
    axe(page)
    screenshot(page, "replay-turn-light")
    for name, arguments in (("phone", PHONE), ("dark", {"color_scheme": "dark"})):
        other = opened(**arguments)
        other.goto(page.url)
        axe(other)
        screenshot(other, f"replay-turn-{name}")

    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was accepted.")
    page.get_by_label("Because").fill("Fees are told on a page of their own now.")
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Fees are told on a page of their own now.").first).to_be_visible()

    replay_all(page, "Until it differs")
    expect(page.locator("[data-row]")).to_contain_text("Changed as accepted")


def test_a_row_of_the_ledger_is_expected_in_two_clicks_and_fails_where_it_should(
    opened: OpenPage, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = opened()
    page.goto("/sessions/?agent=harbor-bank")
    page.get_by_role("link", name="A stolen card").first.click()
    page.goto(f"{page.url}turns/1/")
    silent = page.get_by_role("article", name="Guidelines that stayed silent")
    silent.get_by_role("link", name="Expect this").first.click()
    axe(page)
    screenshot(page, "expect-this")
    page.get_by_role("button", name="Keep").click()
    kept = page.get_by_role("status").first
    expect(kept).to_contain_text("A stolen card expects it from now on")
    kept.get_by_role("link", name="A stolen card").click()
    sentence = page.get_by_text("“The customer greets the assistant” must not match in turn 1")
    expect(sentence.first).to_be_visible()

    page.goto("/suites/")
    page.get_by_role("link", name="What must go on working").click()
    axe(page)
    screenshot(page, "suite")
    page.get_by_role("link", name="Run…").click()
    axe(page)
    page.get_by_role("button", name="Run the suite").click()
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
    # The demo's fees were edited above or not; every other scenario holds either way.
    expect(page.get_by_role("link", name="JUnit XML")).to_be_visible(timeout=SOON)
    expect(page.locator("tr").filter(has_text="A stolen card")).to_contain_text("passed")
    axe(page)
    screenshot(page, "run-light")
    phone = opened(**PHONE, color_scheme="dark")
    phone.goto(page.url)
    axe(phone)
    screenshot(phone, "run-phone-dark")


def test_the_missing_test_is_written_from_the_coverage(
    opened: OpenPage, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = opened()
    page.goto(f"{AGENT}/coverage/")
    axe(page)
    screenshot(page, "coverage")
    guideline = page.get_by_role("row").filter(has_text="legal or tax advice")
    guideline.get_by_role("link", name="it must not match").click()
    axe(page)
    screenshot(page, "missing-test")
    expected = "“The customer asks for legal or tax advice” must not match in any turn"
    expect(page.get_by_text(expected)).to_be_visible()
    page.get_by_label("Message 1").fill("What is the weather like?")
    page.get_by_role("button", name="Keep the scenario").click()
    expect(page.get_by_text(expected).first).to_be_visible()
