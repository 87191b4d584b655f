"""The four views of a turn in a browser: by keyboard, turn to turn, in the dark, on a phone, without scripts."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE, OpenPage
from tests.e2e.sandbox import Screenshot, open_sandbox, say


def test_the_views_by_keyboard_and_from_turn_to_turn(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    # At its end the turn is drawn once more; a key that is pressed in just that moment meets a link that goes.
    page.wait_for_timeout(1_000)
    page.get_by_role("link", name="Waterfall").press("Enter")
    waterfall = page.locator(".waterfall")
    expect(waterfall).to_contain_text("Running get_balance")
    expect(page.get_by_role("link", name="Waterfall")).to_be_focused()
    # The view stays when the next turn comes, and when an earlier one is chosen.
    say(page, "And how much is that in US dollars?", 2)
    expect(waterfall).to_contain_text("Running convert_money")
    screenshot(page, "audit-waterfall")
    axe(page)
    page.get_by_role("link", name="turn 1").first.click()
    expect(waterfall).not_to_contain_text("Running convert_money")

    waterfall.get_by_role("link", name="Matching").first.click()
    expect(page.locator(".piece").first).to_contain_text("Rules")
    expect(page.get_by_role("link", name="Prompts")).to_have_attribute("aria-current", "true")
    axe(page)
    page.get_by_role("link", name="Record").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# Turn 1 · finished")
    assert "**Ran** `get_balance`" in copied
    axe(page)


def test_a_row_is_reached_by_its_address_even_where_it_is_folded(page: Page) -> None:
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    folded = page.locator("#silent .silent").last
    expect(folded).to_be_hidden()
    anchor = folded.get_attribute("id")
    page.goto(f"{page.url.partition('?')[0]}turns/1/#{anchor}")
    expect(page.locator(f"#{anchor}")).to_be_in_viewport()


def test_the_waterfall_in_the_dark(
    dark_page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(dark_page)
    say(dark_page, "What is my balance?", 1)
    dark_page.goto(f"{dark_page.url.partition('?')[0]}turns/1/?show=waterfall")
    dark_page.locator("#waterfall-table summary").click()
    screenshot(dark_page, "audit-waterfall-dark")
    axe(dark_page)


def test_the_views_on_a_phone(
    phone_page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = phone_page
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    turn = f"{page.url.partition('?')[0]}turns/1/"
    for show in ("ledger", "waterfall", "prompts", "record"):
        page.goto(f"{turn}?show={show}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
        screenshot(page, f"audit-phone-{show}")
        axe(page)


def test_without_scripts_the_views_are_pages(page: Page, open_page: OpenPage) -> None:
    open_sandbox(page)
    say(page, "What is my balance?", 1)
    plain = open_page(java_script_enabled=False)
    plain.goto(f"{page.url.partition('?')[0]}?turn=1")
    plain.get_by_role("link", name="Waterfall").click()
    plain.locator(".waterfall").get_by_role("link", name="Matching").first.click()
    expect(plain.locator(".piece").first).to_contain_text("Rules")
    expect(plain.get_by_role("button", name="Copy as Markdown")).to_have_count(0)
