"""A developer uploads a tool, and an author's agent calls it: from the ZIP to the ledger, in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e import parcels
from tests.e2e.sandbox import Screenshot, ledger_row, open_sandbox, say

SECRET = "sk-parcels-5d1f0c9e77aa"
BUILT = 90_000  # milliseconds that an environment may take on a busy machine


def upload(page: Page, data: bytes, name: str) -> None:
    page.get_by_label("The ZIP").set_input_files(
        {"name": f"{name}.zip", "mimeType": "application/zip", "buffer": data}
    )
    page.get_by_role("button", name="Upload", exact=True).click()


def test_a_tool_goes_from_a_zip_to_a_conversation(
    page: Page, screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page.goto("/tools/")
    page.get_by_role("link", name="Upload a tool").click()
    axe(page)
    faulty = parcels.TOOL.replace(
        "class ToolParameters(BaseModel)", "class ToolArguments(BaseModel)"
    )
    upload(page, parcels.archive({"tool.py": faulty}), "parcel_tracker")
    expect(page.get_by_role("alert").first).to_contain_text("was not taken")
    expect(page.locator("#upload")).to_contain_text("T-006")
    screenshot(page, "upload-refused-light")
    axe(page)

    upload(page, parcels.archive(), "parcel_tracker")
    page.wait_for_url(re.compile(r"/tools/templates/\d+/"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("parcel tracker")
    expect(page.locator("main")).to_contain_text("Finds out where a parcel is")
    screenshot(page, "template-light")
    axe(page)

    page.get_by_role("link", name="New instance").click()
    page.get_by_label("Name").fill("find_parcel")
    page.get_by_label("api_key").fill(SECRET)
    page.get_by_role("button", name="Make it").click()
    page.wait_for_url(re.compile(r"/tools/instances/\d+/"))
    expect(page.locator("#state")).to_contain_text("Ready", timeout=BUILT)
    expect(page.locator("#configuration")).to_contain_text("fingerprint")
    expect(page.locator("body")).not_to_contain_text(SECRET)
    screenshot(page, "instance-light")
    axe(page)

    page.get_by_role("link", name="Try it").click()
    page.get_by_label("parcel", exact=True).fill("PX-1234")
    axe(page)
    page.get_by_role("button", name="Run", exact=True).last.click()
    page.wait_for_url(re.compile(r"/tools/find_parcel/runs/\d+/"))
    expect(page.locator("main")).to_contain_text("Finished", timeout=20_000)
    expect(page.locator("main")).to_contain_text("Tilburg")
    expect(page.locator("main")).to_contain_text("looking for PX-1234")
    screenshot(page, "run-light")
    axe(page)

    page.goto("/agents/harbor-bank/tools/")
    page.get_by_role("button", name="Use find_parcel").click()
    expect(page.get_by_role("button", name="Remove find_parcel")).to_be_visible()
    page.goto("/agents/harbor-bank/guidelines/new/")
    page.get_by_role("textbox", name="When").fill("the customer asks where their parcel is")
    page.get_by_role("textbox", name="then").fill("tell them the depot and when it arrives")
    page.get_by_text("Attach…").click()
    page.get_by_role("checkbox", name="find_parcel").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("table")).to_contain_text("where their parcel is")

    open_sandbox(page)
    reply = say(page, "Where is my parcel PX-77201?", 1)
    expect(reply).to_contain_text("Utrecht")
    row = page.locator(".g", has_text="where their parcel is")
    expect(row).to_contain_text("find_parcel")
    expect(row).to_contain_text("Ran")
    expect(row).to_contain_text("PX-77201")
    expect(row.locator(".chip", has_text="customer")).to_be_visible()
    screenshot(page, "uploaded-tool-in-ledger")
    axe(page)


def test_the_demos_uploaded_tool_plans_savings(page: Page, screenshot: Screenshot) -> None:
    page.goto("/tools/")
    page.get_by_role("link", name="plan_savings").first.click()
    expect(page.locator("main")).to_contain_text("Tool template")

    open_sandbox(page)
    reply = say(
        page, "How long do I have to save for a boat of 9000 euros if I put aside 300 a month?", 1
    )

    expect(reply).to_contain_text("2 years and 6 months")
    row = ledger_row(page, "savings-plan")
    expect(row).to_contain_text("9000")
    expect(row).to_contain_text("plan_savings")


def test_the_upload_page_fits_a_phone_in_the_dark(
    open_page: Callable[..., Page], screenshot: Screenshot, axe: Callable[[Page], None]
) -> None:
    page = open_page(
        viewport={"width": 390, "height": 844},
        device_scale_factor=2,
        is_mobile=True,
        color_scheme="dark",
    )
    for address, name in (
        ("/tools/upload/", "upload"),
        ("/tools/templates/", "templates"),
        ("/tools/plan_savings/run/", "run-form"),
    ):
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{address} is {width} px wide"
        axe(page)
        screenshot(page, f"{name}-phone-dark")
