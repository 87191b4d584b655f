"""Two people, two tabs, a reload, a lost connection, a hidden tab, all while a reply is being written.

The model is a server of this test that writes slowly, so that there is a middle to interrupt.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.e2e.conftest import DESKTOP, OpenPage, Studio
from tests.openai_server import OpenAIServer

WORDS = [f"word{number}" for number in range(1, 61)]
REPLY = " ".join(WORDS)
PERSON, PASSWORD = "second-person", "correct horse battery"

# An agent without guidelines asks its model one thing only: to write.
PREPARED = """
from django.contrib.auth.models import Group, User
from studio.models import Agent, ModelConnection
agent, _ = Agent.objects.get_or_create(slug="slow-writer", defaults={{"name": "Slow Writer"}})
ModelConnection.objects.update_or_create(
    name="Slow", defaults={{"base_url": {url!r}, "model": "small"}}
)
if not User.objects.filter(username={person!r}).exists():
    person = User.objects.create_user({person!r}, password={password!r})
    person.groups.set([Group.objects.get_or_create(name="qa")[0]])
"""


@pytest.fixture
def server(studio: Studio) -> Iterator[OpenAIServer]:
    answer = {"reply": REPLY, "follows": []}
    with OpenAIServer(answer=answer, piece_delay=0.08, checks_answers=False) as server:
        code = PREPARED.format(url=server.base_url, person=PERSON, password=PASSWORD)
        studio.served.manage("shell", "-c", code)
        yield server


@pytest.fixture
def session(page: Page, server: OpenAIServer) -> str:
    """The address of a new session with the slow model, open in `page`."""
    assert server.port
    page.goto("/agents/slow-writer/sandbox/")
    page.get_by_label("Model").select_option(label="Slow")
    page.get_by_role("button", name="New session").click()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    return page.url


def send(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def writing(page: Page, turn: int = 1) -> Locator:
    return page.locator(f"#writing-{turn} .text")


def in_the_middle(page: Page, turn: int = 1) -> None:
    expect(writing(page, turn)).to_contain_text("word8 ", timeout=15_000)


def shows_all_once(page: Page, turn: int = 1, *, said: str = "Tell me") -> None:
    """The turn is over, and neither a word of it nor a bubble is missing or doubled."""
    bubbles = page.locator(f"#turn-{turn} .msg.agent")
    expect(page.locator(f"#turn-{turn}-end")).to_be_attached(timeout=20_000)
    expect(bubbles).to_have_count(1)
    assert bubbles.locator(".text").inner_text().split() == WORDS
    expect(page.locator(f"#turn-{turn} .msg.customer")).to_have_text(re.compile(said))
    expect(page.locator(f"[id='turn-{turn}']")).to_have_count(1)
    expect(page.locator("#status")).to_contain_text("Ready")


def sign_in(page: Page) -> Page:
    page.goto("/sign-in/")
    page.get_by_label("User").fill(PERSON)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    return page


def test_two_people_read_the_same_words_within_a_second(
    page: Page, open_page: OpenPage, session: str
) -> None:
    other = sign_in(open_page(signed_in=False))
    other.goto(session)

    send(page, "Tell me")

    expect(other.locator("#turn-1 .msg.customer")).to_contain_text("Tell me", timeout=1_000)
    for _ in range(3):
        read = writing(page).inner_text(timeout=15_000).split()
        last = read[-2] if len(read) > 1 else ""  # the last one may not be whole
        expect(writing(other)).to_contain_text(last, timeout=1_000)
        page.wait_for_timeout(300)
    for each in (page, other):
        shows_all_once(each)


def test_a_second_tab_that_sends_while_a_turn_runs_interrupts_it_for_both(
    page: Page, open_page: OpenPage, session: str
) -> None:
    other = open_page()
    other.goto(session)
    send(page, "Tell me")
    in_the_middle(page)

    send(other, "No, tell me this")

    for each in (page, other):
        expect(each.locator("#turn-1")).to_contain_text(
            "interrupted by the next message", timeout=15_000
        )
        shows_all_once(each, 2, said="No, tell me this")
        expect(each.locator("#turn-1 .msg.customer")).to_have_text(re.compile("Tell me"))
        expect(each.locator(".msg.customer")).to_have_count(2)
        expect(each.locator(".writing")).to_have_count(0)
        assert each.locator("#spend").inner_text().startswith("2 turns")
    assert page.locator("#log").inner_text() == other.locator("#log").inner_text()


def test_a_reload_in_the_middle_loses_and_doubles_nothing(page: Page, session: str) -> None:
    send(page, "Tell me")
    in_the_middle(page)

    page.reload()

    expect(writing(page)).to_contain_text("word8 ")
    shows_all_once(page)
    page.reload()
    shows_all_once(page)


def test_a_lost_connection_is_told_and_what_was_missed_comes_after_it(
    new_context: Callable[..., BrowserContext],
    signed_in_state: dict[str, Any],
    studio: Studio,
    session: str,
) -> None:
    # A browser writes lost requests to its console, which is no fault of the page.
    page = new_context(**DESKTOP, storage_state=signed_in_state).new_page()
    page.goto(session)
    send(page, "Tell me")
    in_the_middle(page)

    studio.served.children()["web"].kill()

    expect(page.locator("#connection")).to_be_visible(timeout=10_000)
    expect(page.locator("#connection")).to_be_hidden(timeout=40_000)
    shows_all_once(page)
    expect(page.locator("#ledger")).to_contain_text("why the agent answered this way")


def test_a_ledger_that_could_not_be_fetched_is_fetched_once_the_network_is_back(
    new_context: Callable[..., BrowserContext], signed_in_state: dict[str, Any], session: str
) -> None:
    page = new_context(**DESKTOP, storage_state=signed_in_state).new_page()
    page.goto(session)
    send(page, "Tell me")
    in_the_middle(page)

    page.context.set_offline(True)  # what is open already stays open
    page.wait_for_timeout(5_000)
    page.context.set_offline(False)

    shows_all_once(page)
    expect(page.locator("#ledger")).to_contain_text(
        "why the agent answered this way", timeout=10_000
    )


HIDE = "Object.defineProperty(document, 'hidden', {configurable: true, value: %s});"
TELL = "document.dispatchEvent(new Event('visibilitychange'));"


def test_a_hidden_tab_gives_its_connection_back_and_catches_up(page: Page, session: str) -> None:
    send(page, "Tell me")
    in_the_middle(page)

    page.evaluate(HIDE % "true" + TELL)
    page.wait_for_timeout(500)
    read = writing(page).inner_text()
    page.wait_for_timeout(1_000)
    assert writing(page).inner_text() == read
    page.evaluate(HIDE % "false" + TELL)

    shows_all_once(page)


def test_a_stopped_turn_is_stopped_in_the_other_tab_too(
    page: Page, open_page: OpenPage, session: str
) -> None:
    other = open_page()
    other.goto(session)
    send(page, "Tell me")
    in_the_middle(other)

    other.get_by_role("button", name="Stop").click()

    for each in (page, other):
        expect(each.locator("#turn-1-end")).to_contain_text("Stopped", timeout=10_000)
        expect(each.locator("#status")).to_contain_text("Stopped")
        expect(each.locator("#turn-1 .msg.agent")).to_have_count(1)
    kept = [each.locator("#turn-1 .msg.agent .text").inner_text() for each in (page, other)]
    assert kept[0] == kept[1]
    assert kept[0].split()[:8] == WORDS[:8]


def test_older_turns_come_as_one_scrolls_and_what_was_read_stays_in_sight(
    page: Page, studio: Studio, session: str
) -> None:
    made = studio.served.manage("shell", "-c", LONG.format(session=session.split("/")[-2]))
    number = json.loads(made.strip().splitlines()[-1])
    page.goto(session)
    turns = page.locator("#log [data-turn]")
    expect(turns).to_have_count(30)
    page.wait_for_timeout(500)
    expect(turns).to_have_count(30)  # nobody has scrolled yet

    page.locator("#log").evaluate("log => { log.scrollTop = 0; }")

    expect(turns).to_have_count(60)
    first = page.locator(f"#turn-{number - 29}")
    expect(first).to_be_in_viewport()
    for count in range(90, 31, -30):
        page.locator("#log").evaluate("log => { log.scrollTop = 0; }")
        if number <= count:
            break
    expect(turns).to_have_count(number)
    expect(page.locator("#earlier")).to_have_count(0)
    shown = turns.evaluate_all("all => all.map(one => Number(one.dataset.turn))")
    assert shown == list(range(1, number + 1))


LONG = """
import json
from studio.models import Event, Session, Turn
from studio.operations.agents import snapshot
session = Session.objects.get(pk={session})
version = snapshot(session.agent)
for number in range(1, 76):
    turn = Turn.objects.create(
        session=session, number=number, first_offset=number * 2, state="FINISHED", version=version
    )
    for place, source in enumerate(("customer", "agent")):
        Event.objects.create(
            session=session, turn=turn, offset=number * 2 + place, kind="message", source=source,
            data={{"text": f"{{source}} says {{number}}", "model": "small"}},
        )
Session.objects.filter(pk=session.pk).update(next_turn=76, next_offset=152)
print(json.dumps(75))
"""
