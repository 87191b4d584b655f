"""What a guideline did in the last 30 days: how it is counted, and how its page says it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from studio.guideline_figures import DAYS, Added, GuidelineFigures, figures_of, fires_of
from studio.models import Agent, Flag, Guideline, GuidelineMatch, Turn
from tests.studio.conversations import Recorded, make_bank, make_person
from tests.studio.factories import make_guideline, make_price

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded() -> Recorded:
    return Recorded(agent=make_bank("the customer asks for the balance", "it is late"))


def guideline(recorded: Recorded, place: int = 0) -> Guideline:
    return recorded.agent.guidelines.select_related("agent").order_by("position")[place]


def did(recorded: Recorded, place: int = 0) -> GuidelineFigures:
    return figures_of(guideline(recorded, place))


def added(recorded: Recorded, place: int = 0) -> Added:
    found = did(recorded, place).added
    assert found is not None
    return found


def fired(recorded: Recorded, **match: Any) -> Turn:
    turn = recorded.turn()
    recorded.match(turn, 0, **match)
    return turn


def move(days: int, *turns: Turn) -> None:
    moment = timezone.now() - timedelta(days=days)
    GuidelineMatch.objects.filter(turn__in=turns).update(started_at=moment)


# --- how often


def test_what_was_judged_and_what_fired_are_counted_by_turns(recorded: Recorded) -> None:
    fired(recorded)
    fired(recorded)
    fired(recorded, state="not_matched")
    fired(recorded, state="not_evaluated")
    figures = did(recorded)
    assert (figures.evaluated, figures.fired) == (3, 2)


@pytest.mark.parametrize("after", ["dropped", "not_matched"])
def test_a_match_that_did_not_last_is_no_firing(recorded: Recorded, after: str) -> None:
    turn = fired(recorded)
    recorded.match(turn, 0, after, iteration=2)
    figures = did(recorded)
    assert (figures.evaluated, figures.fired, figures.last_fired) == (1, 0, None)
    assert fires_of(recorded.agent, [recorded.uid()]) == {}


def test_one_that_matches_again_in_the_same_turn_fired_once(recorded: Recorded) -> None:
    turn = fired(recorded)
    recorded.match(turn, 0, iteration=2)
    assert did(recorded).fired == 1
    assert fires_of(recorded.agent, [recorded.uid()]) == {recorded.uid(): 1}


def test_another_agent_with_the_same_guideline_counts_for_itself(recorded: Recorded) -> None:
    fired(recorded)
    other = make_bank()
    copy = make_guideline(other, uid=recorded.uid())
    assert figures_of(copy).fired == 0
    assert figures_of(copy).last_fired is None
    assert fires_of(other, [copy.uid]) == {}


def test_days_are_thirty_with_today_as_the_last(recorded: Recorded) -> None:
    fired(recorded)
    move(3, fired(recorded), fired(recorded))
    move(40, fired(recorded))
    days = did(recorded).days
    assert len(days) == DAYS
    assert [(place, day.fired) for place, day in enumerate(days) if day.fired] == [
        (DAYS - 4, 2),
        (DAYS - 1, 1),
    ]


def test_the_last_firing_is_known_however_long_ago(recorded: Recorded) -> None:
    turn = fired(recorded)
    move(400, turn)
    figures = did(recorded)
    assert figures.fired == 0
    assert figures.last_fired is not None
    assert figures.last_fired.turn == turn


# --- tools


def test_tools_are_counted_by_what_came_of_each_decision(recorded: Recorded) -> None:
    turn = fired(recorded)
    for uid, state in (("c1", "done"), ("c2", "done"), ("c3", "failed"), ("c4", "unknown")):
        recorded.call(turn, uid, state)
        recorded.decide(turn, "NEEDS_TO_RUN", call=uid)
    recorded.decide(turn, "NEEDS_TO_RUN")
    recorded.decide(turn, "DATA_ALREADY_IN_CONTEXT", call="c1")
    recorded.decide(turn, "AWAITING_CONFIRMATION", call="c9")
    recorded.decide(turn, "NOT_NEEDED")
    recorded.decide(turn, "NEEDS_TO_RUN", place=1, call="c1")
    [tool] = did(recorded).tools
    assert tool.tool == "get_balance"
    assert (tool.ran, tool.failed, tool.known, tool.asked) == (2, 2, 1, 1)
    assert (tool.not_needed, tool.other, tool.cannot_run) == (1, 1, 0)


def test_the_most_frequent_reason_why_a_tool_could_not_run_is_named(recorded: Recorded) -> None:
    turn = fired(recorded)
    recorded.decide(turn, "CANNOT_RUN", because="The tool is switched off.")
    for _ in range(2):
        recorded.decide(turn, "CANNOT_RUN", missing=["account", "day"], because="x")
    recorded.decide(turn, "CANNOT_RUN", invalid=["day"])
    [tool] = did(recorded).tools
    assert (tool.cannot_run, tool.mostly) == (4, "account, day missing")


# --- what it added


def test_a_question_is_shared_by_the_guidelines_that_it_judged(recorded: Recorded) -> None:
    turn = fired(recorded, model_call="m1")
    recorded.match(turn, 1, "not_matched", model_call="m1")
    recorded.ask_model(turn, "m1", 0, 400, prompt_tokens=900, completion_tokens=100)
    recorded.ask_model(turn, "reply", 400, 900, prompt_tokens=5_000, completion_tokens=300)
    found = added(recorded)
    assert (found.turns, found.tokens, found.milliseconds) == (1, 500, 200)


def test_reading_arguments_and_the_calls_it_asked_for_are_added(recorded: Recorded) -> None:
    turn = fired(recorded)
    recorded.ask_model(turn, "i1", 0, 100, prompt_tokens=600, completion_tokens=0)
    uids = [recorded.uid(0), recorded.uid(1)]
    recorded.call(turn, "c1", guidelines=uids)  # 300 ms
    for place in (0, 1):
        recorded.decide(turn, "NEEDS_TO_RUN", place=place, call="c1", model_call="i1")
    found = added(recorded)
    assert (found.tokens, found.milliseconds) == (300, 200)


def test_it_is_the_mean_of_the_turns_in_which_it_fired(recorded: Recorded) -> None:
    make_price(model="gpt-x")
    for number, tokens in enumerate((1_000, 3_000)):
        turn = fired(recorded, model_call="m")
        recorded.ask_model(turn, "m", 0, 100 + 100 * number, prompt_tokens=tokens)
    silent = fired(recorded, state="not_matched", model_call="m")
    recorded.ask_model(silent, "m", 0, 900, prompt_tokens=90_000)
    found = added(recorded)
    assert (found.turns, found.tokens, found.milliseconds) == (2, 2_000, 150)
    assert found.cost["amounts"] == [{"currency": "USD", "amount": "0.005"}]


def test_one_that_never_fired_added_nothing(recorded: Recorded) -> None:
    fired(recorded, state="not_matched")
    assert did(recorded).added is None


# --- flags


def test_flags_of_turns_where_it_fired_are_counted_the_newest_first(recorded: Recorded) -> None:
    turn, silent = fired(recorded), fired(recorded, state="not_matched")
    for number in range(4):
        said = recorded.answer(turn, "Your balance.")
        Flag.objects.create(event=said, comment=f"wrong {number}")
    Flag.objects.create(event=recorded.answer(silent, "Hm."), comment="elsewhere")
    figures = did(recorded)
    assert figures.flags == 4
    assert [flag.comment for flag in figures.newest_flags] == ["wrong 3", "wrong 2", "wrong 1"]


# --- the page


def page(client: Client, agent: Agent, uid: str, **headers: str) -> str:
    response = client.get(f"/agents/{agent.slug}/guidelines/{uid}/", headers=headers)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true", "HX-Target": "editor"}])
def test_the_editor_says_what_it_did(
    client: Client, recorded: Recorded, headers: dict[str, str]
) -> None:
    turn = fired(recorded, model_call="m1")
    fired(recorded, state="not_matched")
    recorded.ask_model(turn, "m1", 0, 400, prompt_tokens=900, completion_tokens=100)
    recorded.call(turn, "c1")
    recorded.decide(turn, "NEEDS_TO_RUN", call="c1")
    recorded.decide(turn, "CANNOT_RUN", missing=["account"])
    Flag.objects.create(event=recorded.answer(turn, "Hm."), comment="<b>wrong</b>")
    client.force_login(make_person("qa"))
    html = page(client, recorded.agent, recorded.uid(), **headers)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "What it did in the last 30 days" in text
    assert "in 1 of 2 turns that judged it" in text
    assert f"turn 1 of session #{recorded.session.pk}" in text
    assert f"/sessions/{recorded.session.pk}/turns/1/#guideline-{recorded.uid()}" in html
    assert "ran 1 · could not run 1 (mostly: account missing)" in text
    assert "0.40 s · 1,000 tokens" in text
    assert "divided evenly among the guidelines concerned" in text
    assert "&lt;b&gt;wrong&lt;/b&gt;" in html


def test_the_chart_has_a_title_and_a_table_of_the_same_figures(
    client: Client, recorded: Recorded
) -> None:
    fired(recorded)
    move(2, fired(recorded), fired(recorded))
    client.force_login(make_person("qa"))
    html = page(client, recorded.agent, recorded.uid())
    chart = html.split('class="days"')[1].split("</svg>")[0]
    assert "Fired in 3 turns of the last 30 days, day by day" in chart
    assert chart.count("<rect") == DAYS
    assert re.findall(r' height="(\d+)"/>', chart)[-3:] == ["36", "0", "18"]
    table = html.split("<caption")[1].split("</table>")[0]
    assert re.findall(r'<td class="figure">(\d+)</td>', table) == ["1", "2"]


def test_one_that_no_turn_judged_says_so(client: Client, recorded: Recorded) -> None:
    client.force_login(make_person("qa"))
    html = page(client, recorded.agent, recorded.uid())
    assert "Nothing: it was judged in no turn of these days." in html
    assert "<svg" not in html.split('class="did"')[1]


def test_much_of_it_takes_as_many_queries_as_little(recorded: Recorded) -> None:
    make_price(model="gpt-x")
    counts = []
    for turns in (1, 20):
        for _ in range(turns):
            turn = fired(recorded, model_call="m1")
            recorded.ask_model(turn, "m1", 0, 9, prompt_tokens=9)
            recorded.decide(turn, "CANNOT_RUN", missing=["account"])
            Flag.objects.create(event=recorded.answer(turn, "Hm."), comment="wrong")
        row = guideline(recorded)
        with CaptureQueriesContext(connection) as seen:
            figures_of(row)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 15
