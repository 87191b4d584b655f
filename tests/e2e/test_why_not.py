"""From a silent guideline to another wording that would have applied, and on to the editor."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.sandbox import Screenshot, ledger_row, open_sandbox, say

WORDING = "the balance of the account is above 200 EUR"


def why_not(page: Page) -> None:
    """A turn that leaves most guidelines silent, and the page of one of them."""
    open_sandbox(page)
    say(page, "How much is on my checking account?", 1)
    ledger_row(page, "low-balance").get_by_role("link", name="Why not?").click()
    expect(page.get_by_role("heading", name="Why not?")).to_be_visible()


def test_another_wording_is_judged_compared_and_taken_to_the_editor(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    why_not(page)
    expect(page.get_by_text("No other wording was tried on this turn yet.")).to_be_visible()
    axe(page)
    recorded = page.get_by_label("When").input_value()
    page.get_by_label("When").fill(WORDING)
    page.get_by_role("button", name="Judge this wording").click()
    tried = page.locator("#tried article").first
    # The page finds it out by itself.
    expect(tried.get_by_text("another verdict")).to_be_visible(timeout=20_000)
    expect(tried).to_contain_text("Recorded")
    expect(page.get_by_text("tried afterwards, not part of the record")).to_be_visible()
    axe(page)
    screenshot(page, "why-not-light")

    page.get_by_role("button", name="Judge the recorded wording again").click()
    expect(page.locator("#tried article").first.get_by_text("the same verdict")).to_be_visible(
        timeout=20_000
    )
    page.get_by_role("link", name="Go on from this wording").click()
    expect(page.get_by_label("When")).to_have_value(WORDING)

    page.get_by_role("link", name="Use this wording").click()
    expect(page.get_by_label("When", exact=True)).to_have_value(WORDING)
    expect(page.get_by_text("Nothing is saved yet.")).to_be_visible()
    page.get_by_role("link", name="Back to the turn").click()
    expect(page.get_by_label("When")).to_have_value(recorded)


def test_it_works_without_scripts_and_on_a_phone_in_the_dark(
    page: Page, open_page: OpenPage, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    why_not(page)
    plain = open_page(
        java_script_enabled=False, viewport={"width": 390, "height": 800}, color_scheme="dark"
    )
    plain.goto(page.url)
    plain.get_by_label("When").fill(WORDING)
    plain.get_by_role("button", name="Judge this wording").click()
    tried = plain.locator("#tried article").first
    for _ in range(40):
        if tried.get_by_text("another verdict").is_visible():
            break
        plain.wait_for_timeout(250)
        plain.reload()
    expect(tried.get_by_text("another verdict")).to_be_visible()
    screenshot(plain, "why-not-phone-dark")

    dark = open_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    dark.goto(page.url)
    assert dark.evaluate("document.documentElement.scrollWidth") <= 390
    axe(dark)
