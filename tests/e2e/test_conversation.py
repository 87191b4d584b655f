"""The conversation that the product must show, in a browser, with the offline model and no network."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PHONE, OpenPage
from tests.e2e.sandbox import Screenshot, ledger_row, open_sandbox, say


def converse(page: Page, screenshot: Screenshot, name: str) -> None:
    open_sandbox(page)
    reply = say(page, "What is my balance?", 1)
    expect(reply).to_contain_text("18,240.90")
    row = ledger_row(page, "balance")
    expect(row).to_contain_text("Matched")
    expect(row).to_contain_text("get_balance")
    expect(row).to_contain_text("Ran")

    reply = say(page, "And how much is that in US dollars?", 2)
    expect(reply).to_contain_text("19,776.78")
    row = ledger_row(page, "conversion")
    expect(row).to_contain_text("convert_money")
    expect(row).to_contain_text("get_balance.balance")
    expect(row).to_contain_text("US dollars")
    screenshot(page, f"sandbox-{name}")

    reply = say(page, "Do you sell pizza?", 3)
    expect(reply).not_to_contain_text("pizza is")
    expect(page.locator("#ledger .chip.matched")).to_have_count(1)  # the one that always applies
    expect(page.locator("#ledger .tool")).to_have_count(0)
    screenshot(page, f"sandbox-{name}-uncovered")


def test_balance_then_conversion_then_something_uncovered(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    converse(page, screenshot, "light")
    axe(page)


def test_the_same_in_the_dark(
    dark_page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    converse(dark_page, screenshot, "dark")
    axe(dark_page)


def test_on_a_phone_chat_and_ledger_are_two_tabs(
    phone_page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = phone_page
    open_sandbox(page)
    reply = say(page, "What is my balance?", 1)
    expect(reply).to_contain_text("18,240.90")
    screenshot(page, "sandbox-phone-chat")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    axe(page)

    page.get_by_role("link", name="show what happened").first.click()

    expect(ledger_row(page, "balance")).to_be_visible()
    expect(page.get_by_role("log")).to_be_hidden()
    screenshot(page, "sandbox-phone-ledger")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


def test_a_second_viewer_and_a_reload_see_the_same(page: Page, open_page: OpenPage) -> None:
    open_sandbox(page)
    other = open_page()
    other.goto(page.url)

    reply = say(page, "What is my balance?", 1).text_content() or ""

    expect(other.locator("#turn-1 .msg.agent:not(.writing)")).to_have_text(reply)
    page.reload()
    expect(page.locator("#turn-1 .msg.agent:not(.writing)")).to_have_count(1)
    expect(page.locator("#turn-1 .msg.agent:not(.writing)")).to_have_text(reply)


def test_markup_and_scripts_are_text(page: Page) -> None:
    open_sandbox(page)
    told = "<img src=x onerror=alert(1)> <b>bold</b> {{ 7 }} {% now %}"

    say(page, told, 1)

    expect(page.locator(".msg.customer").first).to_contain_text("<b>bold</b> {{ 7 }}")
    assert page.locator(".msg.customer b").count() == 0


def test_an_empty_message_is_refused_in_words(page: Page) -> None:
    open_sandbox(page)

    page.get_by_role("button", name="Send").click()

    expect(page.locator("#refused")).to_contain_text("empty")
    expect(page.locator(".msg")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_is_accessible(
    open_page: OpenPage, axe: Callable[[Page], None], screenshot: Screenshot, scheme: str
) -> None:
    page = open_page(color_scheme=scheme)
    for name, url in SCREENS.items():
        page.goto(url)
        axe(page)
        screenshot(page, f"{name}-{scheme}")


def test_every_screen_fits_a_phone(phone_page: Page, screenshot: Screenshot) -> None:
    too_wide = []
    for name, url in SCREENS.items():
        phone_page.goto(url)
        screenshot(phone_page, f"{name}-phone")
        if phone_page.evaluate("document.documentElement.scrollWidth") > 390:
            too_wide.append(url)
    assert too_wide == []


SCREENS = {
    "agents": "/",
    "agent-new": "/agents/new/",
    "overview": "/agents/harbor-bank/",
    "guidelines": "/agents/harbor-bank/guidelines/",
    "guideline": "/agents/harbor-bank/guidelines/balance/",
    "guideline-new": "/agents/harbor-bank/guidelines/new/",
    "relationships": "/agents/harbor-bank/relationships/",
    "relationship-new": "/agents/harbor-bank/relationships/new/",
    "overlap-new": "/agents/harbor-bank/overlaps/new/",
    "responses": "/agents/harbor-bank/responses/",
    "response-new": "/agents/harbor-bank/responses/new/",
    "glossary": "/agents/harbor-bank/glossary/",
    "term-new": "/agents/harbor-bank/glossary/new/",
    "agent-tools": "/agents/harbor-bank/tools/",
    "versions": "/agents/harbor-bank/versions/",
    "agent-settings": "/agents/harbor-bank/settings/",
    "sandbox-start": "/agents/harbor-bank/sandbox/",
    "tools": "/tools/",
    "tool": "/tools/transfer_money/",
    "sessions": "/sessions/",
    "settings": "/settings/",
    "connections": "/settings/connections/",
    "tokens": "/settings/tokens/",
    "people": "/settings/people/",
}
