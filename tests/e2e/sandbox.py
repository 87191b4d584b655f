"""The sandbox as a person uses it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from playwright.sync_api import Locator, Page, expect

Screenshot: TypeAlias = Callable[[Page, str], Path]


def open_sandbox(page: Page, customer: str = "Mira Okafor") -> None:
    """A new session of the demo agent, found as a person finds it."""
    page.goto("/")
    page.get_by_role("link", name="Harbor Bank").first.click()
    page.get_by_role("link", name="Sandbox").first.click()
    page.get_by_label("Customer").select_option(label=customer)
    page.get_by_role("button", name="New session").click()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def say(page: Page, text: str, turn: int, status: str = "Ready") -> Locator:
    """Send it; the reply's text once the turn is over, which the status line says."""
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.get_by_role("log")).to_contain_text(text)
    expect(page.locator("#status")).to_contain_text(status, timeout=20_000)
    section = page.locator(f"#turn-{turn}")
    expect(section.locator(".msg.agent:not(.writing)").last).to_be_visible()
    return section.locator(".msg.agent:not(.writing)").last


def ledger_row(page: Page, uid: str) -> Locator:
    return page.locator(f"#guideline-{uid}")
