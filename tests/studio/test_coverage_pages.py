"""The coverage page, the turns behind a cell, the way to a missing test; and what other pages say of tests."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.expecting import GuidelineExpectation, ToolExpectation, Verdict
from studio.models import Agent, Session, Suite
from studio.operations.agents import publish
from tests.studio.conversations import Recorded
from tests.studio.factories import make_agent, make_guideline, make_tool, make_user
from tests.studio.played_suites import make_run, make_scenario, make_suite, play

pytestmark = pytest.mark.django_db

Look = Callable[..., str]


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(slug="shop")
    tool = make_tool(agent, name="check_order")
    make_guideline(agent, uid="refund", condition="they want a refund", tools=[tool])
    make_guideline(agent, uid="late", condition="the parcel is late", matching=["Where is it?"])
    return agent


@pytest.fixture
def suite(agent: Agent) -> Suite:
    return make_suite(agent, name="Regression")


@pytest.fixture
def look(client: Client) -> Look:
    """The page as somebody of the role sees it: the HTML on one line."""

    def see(path: str, role: str = "qa", **headers: str) -> str:
        client.force_login(make_user(role))
        response = client.get(path, headers=headers)
        assert response.status_code == 200, response.status_code
        return " ".join(response.content.decode().split())

    return see


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).strip()


def row_of(html: str, uid: str) -> str:
    return next(row for row in html.split("<tr")[2:] if f"/guidelines/{uid}/" in row)


def must(uid: str) -> GuidelineExpectation:
    return GuidelineExpectation(guideline=uid)


def must_not(uid: str) -> GuidelineExpectation:
    return GuidelineExpectation(guideline=uid, matches=False)


# --- The heat map


def test_cells_say_with_a_mark_and_words_what_guidelines_came_to(look: Look, suite: Suite) -> None:
    first = make_scenario(suite, must("refund"), title="A <b>refund</b>")
    second = make_scenario(suite, title="Late")
    run = make_run(suite)
    play(run, first, {"refund": "matched", "late": "not_matched"}, {"refund": "matched"})
    play(run, second, {"refund": "dropped"})
    html = look("/agents/shop/coverage/")
    refund = row_of(html, "refund")
    assert "✓ 2" in refund
    assert "fired in 2 turns: A &lt;b&gt;refund&lt;/b&gt;" in words(refund).replace("  ", " ")
    assert "↓ 1 dropped in 1 turn: Late" in words(refund)
    assert "fired in 1 of 2 · dropped in 1" in words(refund)
    late = row_of(html, "late")
    assert "– 1 silent in 1 turn" in words(late)
    assert '<td class="heat never">·</td>' in late
    assert f"/suites/{suite.pk}/scenarios/{first.uid}/" in html
    assert "<b>refund</b>" not in html


def test_the_runs_that_are_read_are_named_with_their_verdict(look: Look, suite: Suite) -> None:
    run = make_run(suite, verdict=Verdict.FAILED)
    make_scenario(suite)
    html = look("/agents/shop/coverage/")
    assert f'href="/runs/{run.pk}/"' in html
    assert f"Failed Regression, run {run.pk}" in words(html)


def test_the_percentage_is_said_with_its_definition_and_drawn_with_a_title(
    look: Look, suite: Suite
) -> None:
    make_scenario(suite, must("refund"), must_not("refund"))
    html = look("/agents/shop/coverage/")
    assert "50 % covered" in words(html)
    assert (
        "1 of 2 guidelines that are switched on have both tests: a scenario that expects it to "
        "match, and one that expects it not to match." in words(html)
    )
    chart = html.split('class="share"')[1].split("</svg>")[0]
    assert "<title>50 % covered: 1 of 2 guidelines that are switched on</title>" in chart
    assert '<rect class="covered" width="50"' in chart


def test_those_that_need_a_test_most_stand_first(look: Look, suite: Suite) -> None:
    scenario = make_scenario(suite, must("refund"), must_not("refund"))
    play(make_run(suite), scenario, {"refund": "matched"})
    html = look("/agents/shop/coverage/")
    assert html.index("the parcel is late") < html.index("they want a refund")
    assert "Write the missing test" in row_of(html, "late")
    assert "Write the missing test" not in row_of(html, "refund")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=parcel", {"late"}),
        ("q=PARCEL+refund", set()),
        ("state=missing", {"late", "greet"}),
        ("state=fired", {"late", "greet"}),
        ("state=positive", {"late"}),
        ("state=negative", {"late"}),
        ("state=covered", {"refund", "greet"}),
        ("state=off", {"off"}),
        ("state=observation", set()),
        ("state=nonsense", {"late", "refund", "greet", "off"}),
        ("state=fired&q=parcel", {"late"}),
    ],
)
def test_guidelines_are_filtered_by_words_and_by_what_they_lack(
    look: Look, agent: Agent, suite: Suite, query: str, shown: set[str]
) -> None:
    make_guideline(agent, uid="greet", condition="", action="be kind")
    make_guideline(agent, uid="off", enabled=False)
    scenario = make_scenario(suite, must("refund"), must_not("refund"), must("greet"))
    play(make_run(suite), scenario, {"refund": "matched"})
    html = look(f"/agents/shop/coverage/?{query}")
    found = {uid for uid in ("late", "refund", "greet", "off") if f"guidelines/{uid}/" in html}
    assert found == shown
    if not shown:
        assert "No guideline fits this." in html


def test_htmx_gets_the_map_alone(look: Look, suite: Suite) -> None:
    make_scenario(suite)
    part = look("/agents/shop/coverage/?q=late", **{"HX-Request": "true", "HX-Target": "map"})
    assert part.startswith('<section id="map"')
    assert "they want a refund" not in part


def test_guidelines_and_columns_stand_on_pages(
    look: Look, agent: Agent, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.views.coverage._PER_PAGE", 1)
    monkeypatch.setattr("studio.views.coverage._COLUMNS", 1)
    for title in ("One", "Two"):
        make_scenario(suite, title=title)
    html = look("/agents/shop/coverage/?state=missing")
    assert "columns 1 to 1 of 2" in html
    assert "?state=missing&amp;page=2" in html
    assert "?state=missing&amp;columns=2#map" in html
    assert ">Two<" not in html
    assert ">Two<" in look("/agents/shop/coverage/?columns=2")
    assert "they want a refund" not in look("/agents/shop/coverage/?page=2")


def test_chats_of_the_last_30_days_are_looked_at_instead(look: Look, agent: Agent) -> None:
    recorded = Recorded(agent=agent)
    Session.objects.filter(pk=recorded.session.pk).update(title="Tuesday")
    recorded.match(recorded.turn(), 0)
    html = look("/agents/shop/coverage/?of=chats")
    assert f"#{recorded.session.pk} Tuesday" in html
    assert f'href="/sessions/{recorded.session.pk}/"' in html
    assert "?of=chats&amp;in=" in row_of(html, "refund")
    assert "✓ 1" in row_of(html, "refund")
    assert "✓ 1" not in look("/agents/shop/coverage/")


def test_tools_that_were_never_called_are_listed(look: Look, agent: Agent, suite: Suite) -> None:
    html = look("/agents/shop/coverage/")
    assert "1 tool was never called" in html
    assert "/coverage/tests/new/?tool=check_order" in html
    play(make_run(suite), make_scenario(suite), {"refund": "matched"}, calls=["check_order"])
    assert "never called</h2>" not in look("/agents/shop/coverage/")


def test_an_agent_without_guidelines_scenarios_or_runs_is_told_what_to_do_next(
    look: Look, agent: Agent
) -> None:
    make_agent(slug="empty")
    assert "Write one first." in look("/agents/empty/coverage/")
    assert "There is no scenario yet." in look("/agents/shop/coverage/")
    make_scenario(make_suite(agent))
    assert "No run has finished yet" in look("/agents/shop/coverage/")


# --- The turns behind a cell


def test_a_cell_opens_its_turns(look: Look, suite: Suite) -> None:
    scenario, other = make_scenario(suite, title="Refund"), make_scenario(suite)
    run = make_run(suite)
    cell = play(run, scenario, {"refund": "not_matched"}, {"refund": "matched"})
    play(run, other, {"refund": "dropped"})
    html = look("/agents/shop/coverage/")
    (address,) = re.findall(r'href="([^"]+in=[^"]+)"><b>✓', row_of(html, "refund"))
    page = look(address.replace("&amp;", "&"))
    assert page.index("turn 2 of session") < page.index("turn 1 of session")
    assert f"/sessions/{cell.session_id}/turns/2/#guideline-refund" in page
    assert "“Message 2”" in page
    assert "Dropped" not in page
    part = look(address.replace("&amp;", "&"), **{"HX-Request": "true", "HX-Target": "turns"})
    assert part.startswith('<aside id="turns"')
    every = look("/agents/shop/coverage/guidelines/refund/")
    assert every.count("turn 1 of session") == 2


def test_a_cell_that_is_not_there_is_not_found(client: Client, suite: Suite) -> None:
    make_scenario(suite)
    client.force_login(make_user("qa"))
    for address in ("refund/?in=9.nothing", "refund/?of=chats&in=7", "nothing/"):
        response = client.get(f"/agents/shop/coverage/guidelines/{address}")
        assert response.status_code == 404, address


def test_a_guideline_that_no_turn_judged_says_so(look: Look, agent: Agent) -> None:
    assert "No turn judged it here." in look("/agents/shop/coverage/guidelines/refund/")


# --- The missing test


def form_of(response: Any) -> dict[str, list[str]]:
    assert response.status_code == 302
    return parse_qs(urlsplit(response.headers["Location"]).query)


def test_a_missing_test_opens_the_form_filled_in(
    client: Client, agent: Agent, suite: Suite
) -> None:
    client.force_login(make_user("qa"))
    response = client.get("/agents/shop/coverage/tests/new/?guideline=late&expect=match")
    assert response.headers["Location"].startswith(f"/suites/{suite.pk}/scenarios/new/?")
    assert form_of(response)["say"] == ["Where is it?"]
    assert client.get(response.headers["Location"]).status_code == 200
    silent = client.get("/agents/shop/coverage/tests/new/?guideline=late&expect=silent")
    assert '"matches":false' in form_of(silent)["expect"][0].replace(" ", "")
    tool = client.get("/agents/shop/coverage/tests/new/?tool=check_order")
    assert "check_order" in form_of(tool)["expect"][0]


def test_the_first_test_asks_before_a_suite_is_made(client: Client, agent: Agent) -> None:
    client.force_login(make_user("qa"))
    address = "/agents/shop/coverage/tests/new/?guideline=late"
    html = client.get(address).content.decode()
    assert "“the parcel is late” must match in some turn" in html
    assert not Suite.objects.exists()
    response = client.post(address)
    suite = Suite.objects.get()
    assert response.headers["Location"].startswith(f"/suites/{suite.pk}/scenarios/new/?")
    client.post(address)
    assert Suite.objects.count() == 1


@pytest.mark.parametrize("query", ["guideline=nothing", "tool=nothing", "tool=other_tool"])
def test_a_test_of_what_is_not_there_is_not_found(client: Client, agent: Agent, query: str) -> None:
    make_tool(name="other_tool")
    client.force_login(make_user("qa"))
    assert client.get(f"/agents/shop/coverage/tests/new/?{query}").status_code == 404


# --- What other pages say


def test_the_page_of_a_guideline_names_the_scenarios_that_guard_it(
    look: Look, agent: Agent, suite: Suite
) -> None:
    scenario = make_scenario(suite, must("refund"), title="Refund")
    by_tool = make_scenario(suite, ToolExpectation(tool="check_order"), title="Order")
    make_scenario(suite, must("late"), title="Elsewhere")
    run = make_run(suite, verdict=Verdict.FAILED)
    play(run, scenario, {"refund": "matched"}, failed=[scenario.expectations.get().uid])
    html = look("/agents/shop/guidelines/refund/").split("Scenarios guarding it")[1]
    text = words(html)
    assert "Refund Failed G1 “they want a refund” must match in some turn" in text
    assert "Order" in text
    assert "check_order must run in some turn" in text
    assert "Elsewhere" not in text
    assert f"/suites/{suite.pk}/scenarios/{by_tool.uid}/" in html
    assert "/coverage/tests/new/?guideline=refund&amp;expect=silent" in html


def test_a_guideline_that_nothing_guards_says_so(look: Look, agent: Agent) -> None:
    assert "None: no test would notice" in look("/agents/shop/guidelines/refund/")


def test_the_table_counts_the_scenarios_that_guard_each_guideline(
    look: Look, agent: Agent, suite: Suite
) -> None:
    make_scenario(suite, must("refund"))
    make_scenario(suite, ToolExpectation(tool="check_order"))
    html = look("/agents/shop/guidelines/")
    refund = next(row for row in html.split("<tr") if 'data-uid="refund"' in row)
    late = next(row for row in html.split("<tr") if 'data-uid="late"' in row)
    assert '<td class="figure wide">2</td>' in refund
    assert '<td class="figure wide"><span class="meta">–</span></td>' in late


def test_the_overview_tells_of_suites_failing_scenarios_and_coverage(
    look: Look, agent: Agent, suite: Suite
) -> None:
    scenario = make_scenario(suite, must("refund"), title="Refund")
    run = make_run(suite, verdict=Verdict.FAILED)
    play(run, scenario, {"refund": "matched"}, failed=[scenario.expectations.get().uid])
    html = look("/agents/shop/")
    card = words(html.split('aria-labelledby="tests"')[1])
    assert f"Failed Regression run {run.pk}, just now" in card
    assert "Failed Refund" in card
    assert "Coverage: 0 % 0 of 2 guidelines have both tests" in card
    assert 'href="/agents/shop/coverage/"' in html


def test_an_overview_without_tests_says_how_to_get_some(look: Look, agent: Agent) -> None:
    assert "Keep a session as a test" in look("/agents/shop/")


def test_home_counts_the_tests_that_do_not_pass(look: Look, agent: Agent, suite: Suite) -> None:
    assert "Tests pass" not in look("/")
    scenario = make_scenario(suite, must("refund"))
    play(make_run(suite), scenario, {"refund": "matched"})
    assert "Tests pass" in look("/")
    run = make_run(suite, verdict=Verdict.FAILED)
    play(run, scenario, {}, failed=[scenario.expectations.get().uid])
    html = look("/")
    assert "1 test does not pass" in html
    assert "Tests pass" not in html


def test_home_takes_as_many_queries_for_many_failing_agents_as_for_one(
    client: Client, agent: Agent, suite: Suite
) -> None:
    client.force_login(make_user("qa"))
    counts = []
    for more in (1, 4):
        for _ in range(more):
            other = make_suite(make_agent())
            scenario = make_scenario(other, must("x"))
            run = make_run(other, verdict=Verdict.FAILED)
            play(run, scenario, {"x": "not_matched"}, failed=[scenario.expectations.get().uid])
        with CaptureQueriesContext(connection) as seen:
            client.get("/")
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_before_publishing_the_newest_chats_can_be_replayed_against_the_draft(
    look: Look, agent: Agent
) -> None:
    publish(agent, note="First.", by=None)
    recorded = Recorded(agent=agent)
    recorded.turn()
    Recorded(agent=agent)  # nothing was said in it
    test = Recorded(agent=agent)
    test.turn()
    Session.objects.filter(pk=test.session.pk).update(purpose=Session.Purpose.TEST)
    assert "/replays/new/" not in look("/agents/shop/versions/")
    make_guideline(agent)
    html = look("/agents/shop/versions/")
    (address,) = re.findall(r'href="(/replays/new/[^"]+)"', html)
    assert address == f"/replays/new/?session={recorded.session.pk}&amp;against=draft&amp;way=until"


def test_what_a_run_of_long_ago_made_fire_counts_until_a_newer_run(
    look: Look, suite: Suite
) -> None:
    cell = play(make_run(suite), make_scenario(suite), {"refund": "matched"})
    long_ago = timezone.now() - timedelta(days=400)
    Session.objects.update(created_at=long_ago, last_event_at=long_ago)
    assert cell.session is not None
    cell.session.turns.get().matches.update(started_at=long_ago)
    assert "✓ 1" in row_of(look("/agents/shop/coverage/"), "refund")
    assert "never fired" not in row_of(look("/agents/shop/coverage/"), "refund")
