"""The rest of what one does in the sandbox: branches, stand-ins for tools, flags, finding and taking sessions along."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.sandbox import Screenshot, ledger_row, open_sandbox, say

OTHER_SESSION = re.compile(r"/sessions/\d+/#end$")


def number_of(page: Page) -> int:
    return int(re.findall(r"/sessions/(\d+)/", page.url)[0])


def branch(page: Page, letter: str) -> None:
    """We are in this branch."""
    current = page.locator("#branches [aria-current]")
    expect(current).to_contain_text(f"Branch {letter}")


def test_a_turn_is_regenerated_edited_and_gone_on_from_and_nothing_is_lost(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page)
    first = page.url
    say(page, "What is my balance?", 1)
    say(page, "and how much is that in dollars?", 2)

    page.locator("#turn-2").get_by_role("button", name="regenerate").click()
    page.wait_for_url(OTHER_SESSION)
    branch(page, "B")
    expect(page.locator("#turn-2-end")).to_be_visible(timeout=20_000)
    expect(page.locator("#turn-1")).to_contain_text("18,240.90")

    page.locator("#turn-1").get_by_role("link", name="edit").click()
    text = page.get_by_label("Message", exact=True)
    expect(text).to_have_value("What is my balance?")
    text.fill("How much is on my savings account?")
    text.press("Enter")
    page.wait_for_url(OTHER_SESSION)
    branch(page, "C")
    expect(page.locator("#turn-1")).to_contain_text("52,000", timeout=20_000)
    expect(page.locator("#turn-2")).to_have_count(0)

    page.locator("#turn-1").get_by_role("button", name="branch from here").click()
    page.wait_for_url(OTHER_SESSION)
    branch(page, "D")
    reply = say(page, "Thanks, that's all", 2)
    expect(reply).to_be_visible()
    expect(page.locator("#turn-1")).to_contain_text("52,000")
    screenshot(page, "branches-light")
    axe(page)

    page.get_by_role("link", name="Branch A").click()
    expect(page.locator("#turn-2")).to_contain_text("in dollars")
    assert page.url.startswith(first.partition("#")[0])


def test_the_three_panes_fit_every_width(open_page: OpenPage, screenshot: Screenshot) -> None:
    page = open_page()
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    page.locator("#turn-1").get_by_role("button", name="branch from here").click()
    page.wait_for_url(OTHER_SESSION)
    address = page.url
    for width in (390, 800, 1024, 1280, 1920, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(address)
        expect(page.locator("#branches")).to_be_visible()
        expect(page.get_by_role("log")).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} px at {width}"
        if width > 800:
            expect(page.locator("#ledger")).to_be_visible()
        screenshot(page, f"panes-{width}")


def test_mocked_tools_stand_in_and_recorded_ones_answer_again(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    page.locator("#settings select[name=tool_mode]").select_option(value="recorded")
    expect(page.locator("#settings")).to_contain_text("Saved")
    say(page, "What is my balance?", 2)
    row = ledger_row(page, "balance")
    expect(row).to_contain_text("recorded")
    expect(page.locator("#turn-2")).to_contain_text("18,240.90")

    page.locator("#settings select[name=tool_mode]").select_option(value="mock")
    expect(page.locator("#settings")).to_contain_text("Saved")
    session = page.url
    page.goto(f"/sessions/{number_of(page)}/mocks/")
    tool = page.locator("#tool-get_balance")
    tool.get_by_text("Write a mock").click()
    tool.get_by_label("The result, as JSON").fill('{"balance": not json}')
    tool.get_by_role("button", name="Keep").click()
    expect(tool.get_by_role("alert")).to_be_visible()
    tool.get_by_label("The result, as JSON").fill('{"account": "checking", "balance": 77.5}')
    tool.get_by_role("button", name="Keep").click()
    expect(tool.get_by_role("alert")).to_have_count(0)
    screenshot(page, "mocks-light")
    axe(page)
    page.goto(session)
    say(page, "What is my balance?", 3)
    expect(page.locator("#turn-3")).to_contain_text("77.5")
    expect(ledger_row(page, "balance")).to_contain_text("mocked")


def test_a_flagged_message_is_found_again_by_its_flag_and_its_words(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page, "Tom Lindqvist")
    say(page, "When does the branch in Rotterdam open, you quokka?", 1)
    session = number_of(page)
    page.locator("#turn-1").get_by_role("link", name="flag").last.click()
    page.get_by_label("What is to be looked at here?").fill("Is Saturday right?")
    page.get_by_role("button", name="Flag this message").click()
    expect(page.locator("#turn-1")).to_contain_text("Is Saturday right?")
    screenshot(page, "flag-light")
    axe(page)

    page.goto("/sessions/")
    page.get_by_label("Search what was said").fill("quokka")
    found = page.locator("#found")
    expect(found.locator("tr[data-row]")).to_have_count(1)
    expect(found.locator("mark")).to_contain_text("quokka")
    page.get_by_label("Search what was said").fill("")
    page.locator("#search select[name=flag]").select_option(value="open")
    expect(found.locator("tr[data-row]")).to_have_count(1)
    expect(found).to_contain_text(f"#{session}")
    screenshot(page, "sessions-found-light")
    axe(page)


def test_a_session_is_taken_along_as_a_page_and_comes_back_from_its_json(
    page: Page, tmp_path: Path, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page)
    reply = say(page, "What is my balance?", 1).inner_text()
    session = number_of(page)
    page.goto(f"/sessions/{session}/export/")
    screenshot(page, "export-light")
    axe(page)

    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    kept = tmp_path / "session.html"
    download.value.save_as(kept)
    alone = page.context.new_page()
    alone.route("http*://**", lambda route: route.abort())
    alone.goto(kept.as_uri())
    expect(alone.locator("body")).to_contain_text("What is my balance?")
    expect(alone.locator("body")).to_contain_text("how much money is on an account")
    expect(alone.locator("body")).not_to_contain_text("Mira Okafor")
    alone.close()

    page.get_by_role("link", name="JSON to import").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    recorded = tmp_path / "session.json"
    download.value.save_as(recorded)
    page.goto("/sessions/import/")
    page.locator("input[type=file]").set_input_files(recorded)
    page.get_by_role("button", name="Import").click()
    page.wait_for_url(re.compile(r"/sessions/\d+/"))
    assert number_of(page) != session
    expect(page.get_by_role("log")).to_contain_text(reply.splitlines()[0])
    expect(ledger_row(page, "balance")).to_contain_text("Ran")


def test_a_price_is_added_and_a_guideline_says_what_it_did(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    page.goto("/settings/prices/")
    page.get_by_label("Model").fill("small-*")
    page.get_by_label("Input", exact=True).fill("-1")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert").first).to_contain_text("A price is 0 or more")
    expect(page.get_by_label("Model")).to_have_value("small-*")
    screenshot(page, "prices-refused-light")
    axe(page)
    page.get_by_label("Input", exact=True).fill("0.25")
    page.get_by_label("Output", exact=True).fill("2")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("table")).to_contain_text("small-*")
    screenshot(page, "prices-light")
    axe(page)
    page.goto("/agents/harbor-bank/guidelines/balance/")
    expect(page.locator("main")).to_contain_text("last 30 days")
    expect(page.locator("main")).to_contain_text("get_balance")
    screenshot(page, "guideline-figures-light")
    axe(page)
