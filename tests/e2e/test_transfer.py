"""What changes something waits for the customer's word: the demo's transfer, in a browser, with the offline model."""

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import PHONE
from tests.e2e.sandbox import Screenshot, ledger_row, open_sandbox, say

INES = "Inês Duarte"


def card(page: Page, turn: int) -> Locator:
    """What awaits the customer's word, as it stands in the chat under a turn."""
    return page.locator(f"#turn-{turn} .confirm")


def test_a_transfer_is_corrected_then_confirmed_in_words(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page, INES)
    reply = say(page, "Send 50 euros to Ana Costa", 1)
    expect(reply).to_contain_text("50")
    expect(card(page, 1)).to_contain_text("Ana Costa")
    expect(card(page, 1)).to_contain_text("checking")
    row = ledger_row(page, "transfer")
    expect(row).to_contain_text("Awaiting confirmation")
    expect(row).to_contain_text("default")
    screenshot(page, "transfer-asked-light")
    axe(page)

    say(page, "No wait, take it from savings", 2)
    expect(card(page, 1)).to_have_count(0)
    expect(page.locator("#turn-1")).to_contain_text("was changed")
    expect(card(page, 2)).to_contain_text("savings")

    reply = say(page, "yes please", 3)
    expect(reply).to_contain_text("12,350")
    row = ledger_row(page, "transfer")
    expect(row).to_contain_text("Ran")
    expect(row).to_contain_text("The customer confirmed it.")
    expect(page.locator(".confirm")).to_have_count(0)
    screenshot(page, "transfer-done-light")
    axe(page)


def test_a_button_confirms_once_whatever_a_second_tab_presses(
    dark_page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = dark_page
    open_sandbox(page, INES)
    say(page, "Send 20 euros to Luz Energia", 1)
    second = page.context.new_page()
    second.goto(page.url)
    expect(card(second, 1)).to_be_visible()
    second.evaluate("document.querySelector('#sandbox').dataset.stream = ''")
    axe(page)
    screenshot(page, "transfer-button-dark")

    page.get_by_role("button", name="Confirm").click()
    expect(page.locator("#turn-2 .msg.agent:not(.writing)")).to_be_visible(timeout=20_000)
    expect(page.locator("#turn-2")).to_contain_text("transfer_money")
    second.get_by_role("button", name="Confirm").or_(
        second.locator("#turn-1 .event", has_text="was confirmed")
    ).first.wait_for()
    if second.get_by_role("button", name="Confirm").is_visible():
        second.get_by_role("button", name="Confirm").click()

    expect(page.locator("#status")).to_contain_text("Ready")
    page.reload()
    expect(page.locator(".event[id$='-calls']")).to_have_count(1)
    expect(page.locator("#turn-3")).to_have_count(0)


def test_declining_on_a_phone_sends_nothing(phone_page: Page, screenshot: Screenshot) -> None:
    page = phone_page
    open_sandbox(page, INES)
    say(page, "Send 30 euros to Tagus Homes", 1)
    screenshot(page, "transfer-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]

    page.get_by_role("button", name="Decline").click()

    expect(page.locator("#turn-2 .msg.agent:not(.writing)")).to_be_visible(timeout=20_000)
    expect(page.locator("#turn-1")).to_contain_text("was declined")
    expect(page.locator(".event[id$='-calls']")).to_have_count(0)


def test_a_person_takes_over_and_hands_back(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    open_sandbox(page, INES)
    say(page, "Can I talk to a human?", 1, status="Manual mode")
    expect(page.get_by_role("log")).to_contain_text("handed over")
    expect(page.get_by_role("button", name="Hand back")).to_be_visible()

    page.get_by_label("Message", exact=True).fill("Good afternoon, this is Rosa.")
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.get_by_role("log")).to_contain_text("this is Rosa")
    expect(page.locator("#turn-2")).to_have_count(0)
    screenshot(page, "handed-over-light")
    axe(page)

    page.get_by_role("button", name="Hand back").click()
    expect(page.get_by_role("log")).to_contain_text("handed back")
    reply = say(page, "Is my money safe with you?", 2)
    expect(reply).to_contain_text("deposit guarantee scheme")
    expect(page.locator("#ledger")).to_contain_text("canned")
