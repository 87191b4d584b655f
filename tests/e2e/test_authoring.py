"""An author changes an agent in the browser, and the next turn runs on it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.sandbox import Screenshot, open_sandbox, say
from tests.openai_server import OpenAIServer


def new_guideline(page: Page, condition: str, action: str) -> None:
    page.goto("/agents/harbor-bank/guidelines/")
    page.get_by_role("link", name="New guideline").click()
    page.get_by_role("textbox", name="When").fill(condition)
    page.get_by_role("textbox", name="then").fill(action)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("table")).to_contain_text(condition)


def test_a_guideline_written_in_the_browser_is_in_force_in_the_next_turn(
    page: Page, screenshot: Callable[[Page, str], Path]
) -> None:
    new_guideline(
        page, "the customer asks about safe deposit boxes", 'say "Boxes cost €90 a year."'
    )
    screenshot(page, "guideline-saved")

    open_sandbox(page)
    reply = say(page, "Do you have safe deposit boxes?", 1)

    expect(reply).to_contain_text("€90 a year")
    expect(page.locator("#ledger")).to_contain_text("the customer asks about safe deposit boxes")


def test_a_guideline_without_any_words_is_refused_and_nothing_is_lost(page: Page) -> None:
    page.goto("/agents/harbor-bank/guidelines/new/")
    page.get_by_label("Messages it should match").fill("Any words")

    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.get_by_label("Messages it should match")).to_have_value("Any words")


def test_switching_a_guideline_off_keeps_it_out_of_the_next_turn(page: Page) -> None:
    new_guideline(page, "the customer asks about umbrellas", 'say "Umbrellas are free."')
    row = page.get_by_role("row").filter(has_text="umbrellas")
    row.get_by_role("switch").click()
    expect(row).to_contain_text("Off")

    open_sandbox(page)
    reply = say(page, "Can I borrow one of the umbrellas?", 1)

    expect(reply).not_to_contain_text("Umbrellas are free")


def test_an_author_relates_two_guidelines_beside_the_editor_and_loses_nothing(
    page: Page, axe: Callable[[Page], None]
) -> None:
    new_guideline(page, "the customer asks about gold coins", 'say "We sell no gold."')
    new_guideline(page, "the customer asks about coins", 'say "We count coins."')
    page.goto("/agents/harbor-bank/guidelines/?q=gold+coins")
    page.get_by_role("link", name="the customer asks about gold coins").click()
    page.get_by_role("textbox", name="then").fill("an action that is not saved yet")

    page.get_by_role("link", name="Relate it to another").click()
    page.get_by_role("radio", name="has priority over").check()
    page.get_by_role("searchbox", name="Search: These guidelines").fill("asks about coins")
    targets = page.locator("#found-targets label")
    expect(targets).to_have_count(1)
    targets.first.get_by_role("checkbox").check()
    axe(page)
    page.locator("#relations").get_by_role("button", name="Save", exact=True).click()

    expect(page.locator("#relations")).to_contain_text("has priority over")
    expect(page.locator("#relations")).to_contain_text("the customer asks about coins")
    expect(page.get_by_role("textbox", name="then")).to_have_value(
        "an action that is not saved yet"
    )


def test_a_canned_response_is_previewed_while_it_is_written(page: Page) -> None:
    page.goto("/agents/harbor-bank/responses/new/")
    page.get_by_role("textbox", name="Text").fill("Good day, {{ customer.name }}.")
    expect(page.locator("#preview")).to_contain_text("Good day, ‹customer name›.")
    page.get_by_role("textbox", name="Text").fill("Good day, {{ customer")
    expect(page.locator("#preview")).to_contain_text("Line 1")

    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("alert").first).to_contain_text("Line 1")
    expect(page.get_by_role("textbox", name="Text")).to_have_value("Good day, {{ customer")


def test_a_model_connection_is_tested_from_its_page_and_its_key_never_shown(page: Page) -> None:
    with OpenAIServer(answer=_agreeing, api_key="right-key") as server:
        page.goto("/settings/connections/new/")
        page.get_by_label("Name", exact=True).fill("Loopback")
        page.get_by_label("Base URL").fill(server.base_url)
        page.get_by_label("API key").fill("wrong-key")
        page.get_by_label("Model", exact=True).fill("small")
        page.get_by_label("Default").uncheck()  # the other tests talk to the offline model
        page.get_by_role("button", name="Store the connection").click()
        page.goto("/settings/connections/")
        page.get_by_role("link", name="Loopback", exact=True).click()
        page.get_by_role("button", name="Test connection").click()
        expect(page.get_by_text("Failed").first).to_be_visible()

        page.get_by_label("API key").fill("right-key")
        page.get_by_role("button", name="Save", exact=True).click()
        page.goto("/settings/connections/")
        page.get_by_role("link", name="Loopback", exact=True).click()
        page.get_by_role("button", name="Test connection").click()

        expect(page.get_by_text("as a JSON Schema").first).to_be_visible()
        assert "right-key" not in page.content()


def test_a_model_is_checked_in_the_background_and_its_proposal_taken_over(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    with OpenAIServer(answer=_obliging) as server:
        page.goto("/settings/connections/new/")
        page.get_by_label("Name", exact=True).fill("Obliging")
        page.get_by_label("Base URL").fill(server.base_url)
        page.get_by_label("Model", exact=True).fill("small")
        page.get_by_label("Batch size").fill("3")
        page.get_by_label("Default").uncheck()
        page.get_by_role("button", name="Store the connection").click()
        page.goto("/settings/connections/")
        page.get_by_role("link", name="Obliging", exact=True).click()
        page.get_by_role("button", name="Check the model").click()

        expect(page.locator("#check")).to_contain_text("Finished", timeout=60_000)
        axe(page)
        screenshot(page, "model-check-light")
        page.get_by_role("button", name="Use batch size").click()

        expect(page.get_by_role("status").first).to_contain_text("now asked with batch size 12")
        expect(page.get_by_label("Batch size")).to_have_value("12")


def _obliging(body: dict[str, Any]) -> dict[str, Any]:
    """Says yes to whatever it is asked; no call is needed."""
    match body["response_format"]["json_schema"]["name"]:
        case "MatchGuidelines":
            return _agreeing(body)
        case "ScoreGuideline":
            return {"applies": True}
        case "ExplainMatch":
            return {"because": "It does."}
        case "ReadConfirmation":
            answers = body["response_format"]["json_schema"]["schema"]["properties"]["answers"]
            calls = answers["items"]["properties"]["call"]["enum"]
            yes = {"quote": "yes", "other": "", "answer": "confirmed"}
            return {"answers": [{"call": call, **yes} for call in calls], "also": ""}
        case "InferToolCalls":
            return {"because": "None.", "decision": "NOT_NEEDED", "calls": []}
        case other:
            raise AssertionError(other)


def _agreeing(body: dict[str, Any]) -> dict[str, Any]:
    """Every guideline that is asked about applies."""
    labels = re.findall(r'^\{"id": "(G\d+)"', body["messages"][0]["content"], re.MULTILINE)
    return {
        "newest": "",
        "judgements": [
            {"guideline": label, "because": "It does.", "applies": True} for label in labels
        ],
    }
