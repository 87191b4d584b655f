"""The audit of a turn in its four views: all of them drawn from one record, which the API answers with."""

import json
import re
from collections import Counter
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from studio.audit import audit
from studio.models import Adherence, ApiToken, ModelCall, PromptPart, Turn
from studio.operations.agents import publish
from studio.record import moment, record_json
from studio.views.audit_views import drawn
from studio.views.ledger import ledger
from studio.waterfall import waterfall
from tests.studio.api.calling import Caller
from tests.studio.conversations import Recorded, make_bank, make_person

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"
SHOWN = ("ledger", "waterfall", "prompts", "record")
PANE = {"HX-Request": "true", "HX-Target": "ledger"}


@pytest.fixture
def qa(client: Client) -> User:
    person = make_person("qa")
    client.force_login(person)
    return person


@pytest.fixture
def told() -> Recorded:
    """A turn with something of everything that a record can hold."""
    told = Recorded(make_bank("asks for the balance", "sends money", "lost a card", "says hello"))
    turn = told.turn(
        "Send € 250 to <b>Leo</b>, please.",
        started_at=told.now,
        prompt_tokens=2_400,
        completion_tokens=180,
        limit_reached="rounds: 3",
        reply_source={"composition": "composited", "responses": ["r1"], "because": "It fits."},
    )
    told.event(turn, "briefing", "system", guidelines=[], content={"ask for": [SCRIPT]})
    told.event(turn, "mode", "agent", mode="manual", tool="get_balance")
    told.match(turn, 0, "matched", "The balance is asked for.", model_call="m1", score=0.93)
    told.match(turn, 1, "dropped", "", dropped_by=told.uid(0), relation="priority")
    told.match(turn, 2, "not_matched", f"No card {SCRIPT}")
    told.match(turn, 3, "not_evaluated", "It was not near.")
    arguments = [
        {
            "name": "account",
            "value": "checking",
            "source": "customer",
            "evidence": "Leo",
            "verified": True,
            "offset": 1,
        },
        {"name": "limit", "value": 5, "source": "inferred", "evidence": "", "verified": False},
    ]
    told.decide(turn, "NEEDS_TO_RUN", call="c1", arguments=arguments, because="It is asked for.")
    told.decide(turn, "NEEDS_TO_RUN", call="c1", place=1)
    told.decide(turn, "CANNOT_RUN", missing=["date"], invalid=["iban"])
    told.insight(turn, "date", label="the date", reason="only the customer knows it")
    told.insight(turn, "iban", "invalid", label="the account", value="NL0")
    told.call(turn, "c1", result={"data": {"balance": 412.6}, "metadata": {"raw": 1}}, log="looked")
    error = {"kind": "timeout", "public": "It took too long.", "detail": "deadline"}
    told.call(turn, "c2", "failed", error=error)
    for guideline, checked in ((told.uid(0), False), (told.uid(1), True)):
        Adherence.objects.create(
            turn=turn,
            guideline=guideline,
            follows=checked,
            note="as told",
            checked=checked,
            attempt=2 if checked else 1,
            started_at=told.now,
        )
    told.ask_model(turn, "m1", 10, 220, prompt_tokens=2_000, completion_tokens=60, subject="G1–G4")
    told.ask_model(turn, "m2", 10, 700, question="InferToolCalls", subject="get", used=False)
    told.ask_model(turn, "m3", 220, 300, used=False, error=f"no JSON {SCRIPT}", attempt=1)
    told.ask_model(turn, "m4", 300, 420, attempt=2)
    told.ask_model(turn, "m5", 730, 920, question="ComposeReply")
    told.answer(turn, f"It is **€ 412.60** {SCRIPT}")
    return told


@pytest.fixture
def api(db: None) -> Caller:
    return Caller(ApiToken.make(make_person("qa").pk)[1])


def turn_address(told: Recorded, show: str = "") -> str:
    page = reverse("session-turn", args=[told.session.pk, 1])
    return f"{page}?show={show}" if show else page


def page(client: Client, address: str, **more: Any) -> str:
    response = client.get(address, **more)
    assert response.status_code == 200
    return response.content.decode()


def tags(html: str, pattern: str) -> list[str]:
    return re.findall(pattern, html)


# --- nothing on the screen that is not in the record


def context_of(
    record: dict[str, Any], told: Recorded, show: str, call: str, *, viewer: User
) -> dict[str, Any]:
    """The page's context from a record alone; the rest are addresses, which page it is and for whom."""
    base = turn_address(told)
    return {
        **drawn(record, show, call=call),
        "session": told.session,
        "alone": True,
        "user": viewer,
        "prompts": f"{base}?show=prompts",
        "tabs": [
            {
                "name": name,
                "title": name.capitalize(),
                "address": base if name == "ledger" else f"{base}?show={name}",
                "current": name == show,
            }
            for name in SHOWN
        ],
    }


@pytest.mark.parametrize(
    ("show", "call"), [("ledger", ""), ("waterfall", ""), ("prompts", ""), ("prompts", "m1")]
)
def test_every_view_is_rebuilt_from_the_apis_json_alone(
    client: Client, qa: User, told: Recorded, api: Caller, show: str, call: str
) -> None:
    query = "?prompts=true" if call else ""
    answer = api.get(f"/sessions/{told.session.pk}/turns/1{query}")
    assert answer.status_code == 200
    record = json.loads(answer.content)
    rebuilt = render_to_string(
        "sandbox/_ledger.html", context_of(record, told, show, call, viewer=qa)
    )
    query = f"?show={show}&call={call}"
    shown = page(client, turn_address(told) + query, headers=PANE)
    assert shown.split() == rebuilt.split()


def test_the_ledger_of_the_apis_json_is_the_ledger_of_the_database(
    told: Recorded, api: Caller
) -> None:
    answer = api.get(f"/sessions/{told.session.pk}/turns/1").json()
    stored = audit(Turn.objects.get())
    assert ledger(answer) == ledger(json.loads(record_json(stored)))
    assert ledger(answer).round_trips == ledger(stored).round_trips == 4
    assert waterfall(answer) == waterfall(stored)


def test_the_record_on_the_page_is_what_the_api_answers(
    client: Client, qa: User, told: Recorded, api: Caller
) -> None:
    html = page(client, turn_address(told, "record"))
    shown = html[html.index('<pre class="json" tabindex') :].split(">", 1)[1].split("</pre>")[0]
    answer = api.get(f"/sessions/{told.session.pk}/turns/1").json()
    assert json.loads(unescape(strip_tags(shown))) == answer


def test_the_download_is_exactly_what_the_api_answers(
    client: Client, qa: User, told: Recorded, api: Caller
) -> None:
    address = reverse("turn-record", args=[told.session.pk, 1])
    response = client.get(address)
    assert response.headers["content-type"] == "application/json"
    name = f'attachment; filename="session-{told.session.pk}-turn-1.json"'
    assert response.headers["content-disposition"] == name
    answer = api.get(f"/sessions/{told.session.pk}/turns/1?prompts=true")
    assert json.loads(response.content) == json.loads(answer.content)


def test_times_are_read_back_from_json_as_they_were(told: Recorded) -> None:
    record = audit(Turn.objects.get())
    again = json.loads(record_json(record))
    assert moment(again["created_at"]) == record["created_at"] == moment(record["created_at"])
    assert isinstance(again["created_at"], str)


# --- tabs


def test_the_four_views_are_links_and_the_one_shown_says_so(
    client: Client, qa: User, told: Recorded
) -> None:
    for show in SHOWN:
        html = page(client, turn_address(told, show))
        current = tags(html, r'<a id="tab-(\w+)"[^>]* aria-current="true"')
        assert current == [show]
        links = tags(html, r'<a id="tab-\w+" href="([^"]+)"')
        base = turn_address(told)
        assert links == [base, *(f"{base}?show={name}" for name in SHOWN[1:])]


def test_beside_the_chat_the_views_keep_to_their_turn(
    client: Client, qa: User, told: Recorded
) -> None:
    session = reverse("session", args=[told.session.pk])
    html = page(client, f"{session}?turn=1&show=waterfall")
    assert f'href="{session}?turn=1&amp;show=prompts"' in html
    assert 'data-tab="waterfall"' in html
    assert 'class="waterfall"' in html
    fragment = page(client, f"{session}?turn=1&show=waterfall", headers=PANE)
    assert fragment.strip().startswith('<div id="ledger"')
    assert "<html" not in fragment


def test_a_view_that_is_not_there_is_the_ledger(client: Client, qa: User, told: Recorded) -> None:
    assert 'id="tab-ledger"' in page(client, turn_address(told, "nonsense"))
    assert f'id="guideline-{told.uid()}"' in page(client, turn_address(told, "nonsense"))


@pytest.mark.parametrize("show", SHOWN)
def test_every_view_of_a_turn_that_waits_says_that_nothing_is_there(
    client: Client, qa: User, show: str
) -> None:
    told = Recorded()
    told.turn(state="QUEUED")
    html = page(client, turn_address(told, show))
    words = {
        "ledger": "Rows appear as they are decided.",
        "waterfall": "The turn is not over",
        "prompts": "No model was asked in this turn.",
        "record": "QUEUED",
    }
    assert words[show] in html


@pytest.mark.parametrize("show", SHOWN)
def test_no_view_lets_markup_of_others_through(
    client: Client, qa: User, told: Recorded, show: str
) -> None:
    html = page(client, turn_address(told, show))
    assert SCRIPT not in html
    assert "<b>Leo" not in html


@pytest.mark.parametrize("show", SHOWN)
def test_the_number_of_queries_does_not_grow_with_what_was_decided(
    client: Client, qa: User, told: Recorded, show: str
) -> None:
    def counted() -> int:
        with CaptureQueriesContext(connection) as seen:
            page(client, turn_address(told, show) + "&call=m1")
        return len(seen)

    counted()
    before = counted()
    turn = Turn.objects.get()
    for number in range(20):
        told.match(turn, number % 4, "not_matched")
        told.ask_model(turn, f"n{number}", 10, 20)
        told.call(turn, f"k{number}")
    assert counted() == before


# --- waterfall


def test_the_waterfall_draws_a_bar_for_each_call_with_the_same_figures_as_text(
    client: Client, qa: User, told: Recorded
) -> None:
    html = page(client, turn_address(told, "waterfall"))
    table = html[html.index('id="waterfall-table"') :]
    assert len(tags(table, "<tr><td>")) == 5 + 2 + 1  # model calls, tool calls, the queue
    assert "10 ms" in table
    assert "210 ms" in table
    assert "asked ahead: nobody waited for it" in table
    figure = html[html.index('class="waterfall"') : html.index('id="waterfall-table"')]
    assert figure.count("<title") == 8
    assert figure.count('class="legend"') == 1
    assert tags(figure, r'<rect class="matching" x="1\.075%" width="22\.581%"')
    assert "0.93 s from the message to the end" in figure


def test_a_model_calls_bar_leads_to_its_prompt_and_a_tools_to_its_row(
    client: Client, qa: User, told: Recorded
) -> None:
    html = page(client, turn_address(told, "waterfall"))
    base = turn_address(told)
    assert f'href="{base}?show=prompts&amp;call=m1#model-call-m1"' in html
    assert f'href="{base}#call-c1"' in html
    prompts = page(client, f"{base}?show=prompts&call=m1")
    assert 'id="model-call-m1"' in prompts
    rows = page(client, base)
    assert rows.count('id="call-c1"') == 1
    assert rows.count('id="call-c2"') == 1


# --- prompts


def test_the_prompts_list_every_call_and_open_the_one_that_is_wanted(
    client: Client, qa: User, told: Recorded
) -> None:
    for key, text in (("a", '{"agent": "Bank"}\n'), ("g", "The guidelines:\n")):
        PromptPart.objects.create(key=key, text=text)
    ModelCall.objects.filter(uid="m1").update(messages=[["system", ["p1", "a", "g"]]])
    html = page(client, turn_address(told, "prompts"))
    assert html.count("exact prompt and answer") == 5
    assert "2,000 + 60 tokens" in html
    assert "attempt 2" in html
    assert "not used" in html
    assert "Judge &lt;b&gt;these" not in html
    opened = page(client, turn_address(told, "prompts") + "&call=m1")
    assert "Judge &lt;b&gt;these&lt;/b&gt;." in opened
    sections = tags(opened, r'<details class="piece"><summary>([^<]+?) <')
    assert sections == ["Rules", "Agent", "Guidelines"]
    assert "about 717 tokens" in opened
    assert "{&quot;judgements&quot;: []}" in opened
    assert opened.count("exact prompt and answer") == 4


def test_a_prompt_that_is_opened_beside_the_list_takes_the_focus(
    client: Client, qa: User, told: Recorded
) -> None:
    address = reverse("turn-prompt", args=[told.session.pk, 1, "m1"])
    assert "data-focus" in page(client, address, headers={"HX-Request": "true"})
    assert 'id="prompt-m1" data-focus' not in page(client, address)


# --- record


def test_the_record_is_highlighted_and_can_be_taken_along(
    client: Client, qa: User, told: Recorded
) -> None:
    html = page(client, turn_address(told, "record"))
    assert '<span class="named">&quot;fingerprint&quot;</span>' in html
    assert f'href="{reverse("turn-record", args=[told.session.pk, 1])}"' in html
    assert f'href="{reverse("turn-markdown", args=[told.session.pk, 1])}"' in html
    assert 'data-copy="record-markdown"' in html
    assert 'id="record-markdown"' in html


# --- addresses of rows


def test_every_row_has_an_address_and_no_two_the_same(
    client: Client, qa: User, told: Recorded
) -> None:
    for show in SHOWN:
        found = tags(page(client, turn_address(told, show) + "&call=m1"), r'\bid="([^"]+)"')
        assert [each for each, count in Counter(found).items() if count > 1] == [], show
    ids = tags(page(client, turn_address(told)), r'\bid="([^"]+)"')
    for number in range(4):
        assert f"guideline-{told.uid(number)}" in ids
    assert {"call-c1", "call-c2", "decision-2", "decision-3", "model-call-m1"} <= set(ids)


def quoting(offset: int) -> list[dict[str, Any]]:
    found = {"name": "a", "value": 1, "source": "customer", "evidence": "once", "verified": True}
    return [{**found, "offset": offset}]


def test_words_that_were_said_before_lead_to_where_they_were_said(client: Client, qa: User) -> None:
    told = Recorded()
    first = told.turn("once")
    said = first.events.get().offset
    told.answer(first, "yes")
    second = told.turn("now")
    told.match(second, 0)
    told.decide(second, "AWAITING_CONFIRMATION", arguments=quoting(said))
    session = reverse("session", args=[told.session.pk])
    assert f'href="#event-{said}"' in page(client, f"{session}?turn=2")
    alone = page(client, reverse("session-turn", args=[told.session.pk, 2]))
    assert f'href="{session}?turn=2#event-{said}"' in alone
    for number in range(3, 90):
        told.turn(f"message {number}")
    last = told.turn("much later")
    told.match(last, 0)
    told.decide(last, "AWAITING_CONFIRMATION", arguments=quoting(said))
    shown = page(client, session)
    assert f'id="event-{said}"' not in shown
    link = unescape(tags(shown, rf'href="([^"]+#event-{said})"')[0])
    assert f'id="event-{said}"' in page(client, link)
    assert 'id="ledger" class="ledger" data-turn="90"' in page(client, link)


def test_what_is_folded_opens_by_address(client: Client, qa: User, told: Recorded) -> None:
    folded = 'id="model-calls">'
    assert folded in page(client, turn_address(told))
    assert 'id="model-calls" open>' in page(client, turn_address(told) + "?open=model-call-m1")


# --- who may, and what is not there


@pytest.mark.parametrize("name", ["turn-record", "turn-markdown"])
def test_files_are_read_by_whoever_may_see_the_session(
    client: Client, told: Recorded, name: str
) -> None:
    address = reverse(name, args=[told.session.pk, 1])
    assert client.get(address).status_code == 302
    client.force_login(make_person("qa"))
    assert client.get(address).status_code == 200
    assert client.post(address).status_code == 405
    assert client.get(reverse(name, args=[told.session.pk, 9])).status_code == 404
    client.force_login(make_person())
    assert client.get(address).status_code == 404


def test_a_published_version_is_named_with_its_fingerprint(client: Client, qa: User) -> None:
    told = Recorded()
    publish(told.agent, note="", by=make_person("author"))
    turn = told.turn()
    version = told.agent.versions.get(number=1)
    Turn.objects.filter(pk=turn.pk).update(version=version)
    html = page(client, turn_address(told))
    assert "<span>version 1</span>" in html
    assert version.fingerprint[:8] in html
