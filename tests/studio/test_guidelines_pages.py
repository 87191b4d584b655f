"""The pages of an agent's guidelines: table and editor, as whole pages and as the parts that htmx asks for."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from studio.models import Agent, Guideline, GuidelineMatch, Session
from studio.operations.agents import save_guideline
from tests.studio.factories import (
    make_agent,
    make_guideline,
    make_session,
    make_tool,
    make_turn,
    make_user,
)

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
EDITOR = {**HTMX, "HX-Target": "editor"}
TABLE = {**HTMX, "HX-Target": "guidelines"}


@pytest.fixture
def author() -> User:
    return make_user("author")


@pytest.fixture
def client(author: User) -> Client:
    client = Client()
    client.force_login(author)
    return client


@pytest.fixture
def agent() -> Agent:
    return make_agent(slug="shop", name="Shop")


def url(name: str = "guidelines", **key: str) -> str:
    return reverse(name, kwargs={"slug": "shop", **key})


def rows_of(html: str) -> list[str]:
    return re.findall(r'<tr data-row data-uid="([^"]+)"', html)


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def fields(guideline: Guideline, **changes: str) -> dict[str, str]:
    values = {
        "condition": guideline.condition,
        "action": guideline.action,
        "criticality": guideline.criticality,
        "priority": str(guideline.priority),
        "enabled": "on" if guideline.enabled else "",
        "initial-enabled": str(guideline.enabled),
        "updated_at": guideline.updated_at.isoformat(),
    }
    return {name: value for name, value in (values | changes).items() if value}


def match(session: Session, uid: str, state: str = "matched", days: int = 0) -> None:
    moment = timezone.now() - timedelta(days=days)
    GuidelineMatch.objects.create(
        turn=make_turn(session), guideline=uid, state=state, started_at=moment, ended_at=moment
    )


# --- The table


def test_the_table_shows_each_guideline_as_a_sentence_in_the_authors_order(
    client: Client, agent: Agent
) -> None:
    tool = make_tool(agent, name="find_order")
    make_guideline(agent, uid="b", condition="The customer asks for a refund", tools=[tool])
    make_guideline(agent, uid="a", condition="", action="be brief", enabled=False)
    make_guideline(agent, uid="c", condition="it is late", action="", reevaluate_after=[tool])
    html = client.get(url()).content.decode()
    assert rows_of(html) == ["b", "a", "c"]
    text = words(html)
    assert "When the customer asks for a refund" in text
    assert "Always be brief" in text
    assert "When it is late take note of it" in text
    assert "judged again after find_order" in text
    assert "3 guidelines" in text


def test_an_agent_without_guidelines_says_what_to_do(client: Client, agent: Agent) -> None:
    text = words(client.get(url()).content.decode())
    assert "No guidelines yet" in text
    assert "Write the first guideline" in text


def test_it_counts_the_turns_of_this_agent_in_the_last_thirty_days(
    client: Client, agent: Agent
) -> None:
    make_guideline(agent, uid="g")
    other = make_agent()
    make_guideline(other, uid="g")
    session = make_session(agent)
    match(session, "g")
    match(session, "g")
    match(session, "g", days=31)
    match(session, "g", state="not_matched")
    match(make_session(other), "g")
    last = GuidelineMatch.objects.filter(turn__session=session, state="matched").first()
    assert last is not None
    last.pk, last.iteration = None, 2  # matched again in the same turn: still one turn
    last.save()
    html = client.get(url()).content.decode()
    assert re.findall(r'<td class="figure">(\d+)</td>', html) == ["2"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b", "c", "d"]),
        ("q=REFUND", ["a"]),
        ("q=card+lost", ["b"]),
        ("q=lost+card", ["b"]),
        ("q=100%25", ["d"]),
        ("q=b", ["b"]),
        ("tag=money", ["a", "b"]),
        ("tag=mone", []),
        ("tool=find_order", ["a", "c"]),
        ("enabled=no", ["c"]),
        ("enabled=yes&tag=money&q=lost", ["b"]),
        ("q=%00", ["a", "b", "c", "d"]),
        ("page=99", ["a", "b", "c", "d"]),
        ("page=x", ["a", "b", "c", "d"]),
    ],
)
def test_the_address_filters_and_searches(
    client: Client, agent: Agent, query: str, found: list[str]
) -> None:
    tool = make_tool(agent, name="find_order")
    make_guideline(agent, uid="a", condition="a refund", action="x", tags=["money"], tools=[tool])
    make_guideline(agent, uid="b", condition="the card is lost", action="y", tags=["money", "z"])
    make_guideline(
        agent, uid="c", condition="c", action="y", enabled=False, reevaluate_after=[tool]
    )
    make_guideline(agent, uid="d", condition="d", action="100% sure")
    html = client.get(f"{url()}?{query}").content.decode()
    assert rows_of(html) == found
    if not found:
        assert "No guideline fits this search" in html


def test_the_filters_stay_in_every_link_and_button_of_the_table(
    client: Client, agent: Agent
) -> None:
    make_guideline(agent, uid="a", tags=["x y"])
    html = client.get(f"{url()}?tag=x+y&enabled=yes").content.decode()
    assert f'href="{url("guideline", uid="a")}?tag=x+y&amp;enabled=yes"' in html
    assert f'formaction="{url("guideline-enabled", uid="a")}?tag=x+y&amp;enabled=yes"' in html


def test_long_lists_come_in_pages_and_neighbours_reach_over_their_edges(
    client: Client, agent: Agent
) -> None:
    for number in range(101):
        make_guideline(agent, uid=f"g{number:03}")
    html = client.get(f"{url()}?page=2").content.decode()
    assert rows_of(html) == [f"g{number:03}" for number in range(50, 100)]
    assert 'name="before" value="g049"' in html
    assert 'name="after" value="g100"' in html
    assert "Page 2 of 3" in words(html)
    first = client.get(url()).content.decode()
    assert rows_of(first)[0] == "g000"
    assert 'name="after" value="g050"' in first


def test_htmx_gets_the_table_alone_and_a_page_from_history_whole(
    client: Client, agent: Agent
) -> None:
    make_guideline(agent)
    part = client.get(url(), headers=TABLE)
    assert part.content.decode().lstrip().startswith("<section")
    assert "HX-Request" in part.headers["Vary"]
    restored = client.get(url(), headers={**TABLE, "HX-History-Restore-Request": "true"})
    assert "<html" in restored.content.decode()


def test_a_search_leaves_an_address_without_empty_filters(client: Client, agent: Agent) -> None:
    response = client.get(
        f"{url()}?q=a+b&tag=&tool=&enabled=", headers={**TABLE, "HX-Trigger": "search"}
    )
    assert response.headers["HX-Push-Url"] == f"{url()}?q=a+b"
    assert "HX-Push-Url" not in client.get(url(), headers=TABLE).headers


def test_whoever_may_not_write_sees_the_table_without_buttons(agent: Agent) -> None:
    make_guideline(agent, uid="a")
    client = Client()
    client.force_login(make_user("qa"))
    html = client.get(url("guideline", uid="a")).content.decode()
    assert rows_of(html) == ["a"]
    assert "New guideline" not in html
    assert "formaction" not in html
    assert '<fieldset class="form" disabled>' in html
    assert "Authors can change it; you can read it." in html


def test_a_list_takes_as_many_queries_for_many_guidelines_as_for_two(
    client: Client, agent: Agent
) -> None:
    counts = []
    tools = [make_tool(agent) for _ in range(3)]
    for number in (2, 48):
        for _ in range(number):
            make_guideline(agent, tools=tools, tags=["t"], matching=["m"])
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(url()).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 15


def test_a_thousand_guidelines_are_no_more_queries_and_bearable_html(
    client: Client, agent: Agent
) -> None:
    Guideline.objects.bulk_create(
        Guideline(agent=agent, uid=f"g{n}", condition=f"c {n}", position=n, tags=[f"t{n % 7}"])
        for n in range(1000)
    )
    with CaptureQueriesContext(connection) as queries:
        html = client.get(url()).content.decode()
    assert len(queries) <= 15
    assert len(rows_of(html)) == 50
    assert len(html) < 400_000


# --- The editor


def test_a_guideline_opens_beside_the_table(client: Client, agent: Agent) -> None:
    make_guideline(agent, uid="a", condition="c & <d>", matching=["yes"], not_matching=["no"])
    make_guideline(agent, uid="b")
    html = client.get(url("guideline", uid="a")).content.decode()
    assert rows_of(html) == ["a", "b"]
    assert '<tr data-row data-uid="a" class="" aria-current="true">' in html
    assert "Edit guideline" in html
    assert "c &amp; &lt;d&gt;</textarea>" in html
    part = client.get(url("guideline", uid="a"), headers=EDITOR).content.decode()
    assert part.lstrip().startswith('<aside id="editor"')
    assert rows_of(part) == []


def test_the_picker_says_what_each_tool_needs_and_does(client: Client, agent: Agent) -> None:
    attached = make_tool(
        agent,
        name="send_money",
        consequential=True,
        parameters=[
            {"name": "amount", "schema": {"type": "number", "minimum": 1}, "required": True},
            {
                "name": "account",
                "schema": {"enum": ["checking", "savings"]},
                "required": False,
                "default": "checking",
            },
        ],
    )
    make_tool(agent, name="get_time", parameters=[], enabled=False)
    make_tool(name="not_chosen")
    make_guideline(agent, uid="a", tools=[attached])
    html = client.get(url("guideline", uid="a"), headers=EDITOR).content.decode()
    text = words(html)
    assert "send_money changes something" in text
    assert "amount a number of at least 1" in text
    assert "account one of checking, savings, checking if left out" in text
    assert "Attach… (1 tool)" in text
    assert "get_time switched off" in text
    assert "not_chosen" not in text
    assert 'name="tools" value="send_money" checked' in html
    assert 'name="tools" value="get_time" aria' in html


def test_a_new_guideline_is_written_without_javascript(client: Client, agent: Agent) -> None:
    page = client.get(url("guideline-new"))
    assert "New guideline" in page.content.decode()
    response = client.post(
        url("guideline-new") + "?q=x",
        {"condition": "c", "action": "a", "criticality": "medium", "enabled": "on"},
    )
    stored = agent.guidelines.get()
    assert response.status_code == 302
    assert response.headers["Location"] == url("guideline", uid=stored.uid) + "?q=x"
    assert (stored.condition, stored.action, stored.enabled) == ("c", "a", True)
    assert (
        "Saved. The next turn runs on it."
        in client.get(response.headers["Location"]).content.decode()
    )


def test_saving_by_htmx_answers_the_editor_tells_the_table_and_moves_the_address(
    client: Client, agent: Agent
) -> None:
    response = client.post(
        url("guideline-new"), {"action": "a", "criticality": "medium"}, headers=EDITOR
    )
    stored = agent.guidelines.get()
    assert response.status_code == 200
    assert json.loads(response.headers["HX-Trigger"]) == {"guideline:saved": {"uid": stored.uid}}
    assert response.headers["HX-Push-Url"] == url("guideline", uid=stored.uid)
    html = response.content.decode()
    assert html.lstrip().startswith('<aside id="editor"')
    assert "Saved. The next turn runs on it." in html
    assert f'action="{url("guideline", uid=stored.uid)}"' in html


def test_editing_changes_what_is_stored_and_the_next_turn_sees_it(
    client: Client, agent: Agent
) -> None:
    from studio.bridge import agent_spec
    from studio.operations.agents import snapshot

    guideline = make_guideline(agent, uid="a", action="old")
    snapshot(agent)
    response = client.post(url("guideline", uid="a"), fields(guideline, action="new"))
    assert response.status_code == 302
    assert agent_spec(snapshot(agent)).guidelines[0].action == "new"


@pytest.mark.parametrize("headers", [{}, EDITOR])
def test_what_cannot_be_saved_comes_back_with_its_words_and_the_reason(
    client: Client, agent: Agent, headers: dict[str, str]
) -> None:
    guideline = make_guideline(agent, uid="a", condition="stored", action="stored")
    sent = fields(guideline, condition="my words", priority="1000", tags="x", matching="hey")
    response = client.post(url("guideline", uid="a"), sent, headers=headers)
    html = response.content.decode()
    assert response.status_code == 422
    assert "my words</textarea>" in html
    assert "hey</textarea>" in html
    assert "from −100 to 100" in html
    assert 'aria-invalid="true"' in html
    assert ("<html" in html) == (not headers)
    assert "HX-Trigger" not in response.headers
    assert agent.guidelines.get().condition == "stored"
    if not headers:
        assert "When stored" in words(html)  # the table shows what is stored


def test_two_who_edit_the_same_guideline_lose_nothing(client: Client, agent: Agent) -> None:
    guideline = make_guideline(agent, uid="a", condition="c", action="first")
    mine = fields(guideline, action="my words")
    guideline.action = "their words"
    save_guideline(guideline)
    response = client.post(url("guideline", uid="a"), mine, headers=EDITOR)
    html = response.content.decode()
    assert response.status_code == 422
    text = words(html)
    assert "Somebody else saved this guideline while you were writing." in text
    assert "then their words" in text
    assert "my words</textarea>" in html
    assert html.count("<dt>") == 1  # what does not differ is not shown
    assert agent.guidelines.get().action == "their words"
    # Saved again, having read it, mine is meant.
    now = re.search(r'name="updated_at" value="([^"]+)"', html)
    assert now is not None
    client.post(url("guideline", uid="a"), mine | {"updated_at": unescape(now[1])})
    assert agent.guidelines.get().action == "my words"


def test_who_edits_what_somebody_deleted_can_save_it_as_new(client: Client, agent: Agent) -> None:
    guideline = make_guideline(agent, uid="a")
    mine = fields(guideline, action="my words")
    guideline.delete()
    assert client.get(url("guideline", uid="a")).status_code == 404
    response = client.post(url("guideline", uid="a"), mine)
    html = response.content.decode()
    assert response.status_code == 422
    assert "Somebody deleted this guideline meanwhile." in html
    assert "my words</textarea>" in html
    assert f'action="{url("guideline-new")}"' in html
    client.post(url("guideline-new"), mine | {"updated_at": ""})
    assert agent.guidelines.get().action == "my words"


# --- Deleting, and bringing back


def test_deleting_asks_first_and_can_be_undone(client: Client, agent: Agent) -> None:
    tool = make_tool(agent)
    for uid in ("a", "b", "c"):
        make_guideline(agent, uid=uid, tools=[tool], matching=["m"])
    question = client.get(url("guideline-delete", uid="b")).content.decode()
    assert "Delete this guideline?" in question
    assert agent.guidelines.count() == 3
    response = client.post(url("guideline-delete", uid="b"))
    assert response.headers["Location"] == url() + "?deleted=b"
    page = client.get(response.headers["Location"]).content.decode()
    assert rows_of(page) == ["a", "c"]
    assert f'action="{url("guideline-undelete", uid="b")}"' in page
    back = client.post(url("guideline-undelete", uid="b"))
    assert back.headers["Location"] == url("guideline", uid="b")
    assert list(agent.guidelines.values_list("uid", flat=True)) == ["a", "b", "c"]
    assert agent.guidelines.get(uid="b").examples.get().text == "m"
    # What is back is no longer offered, and a second click does no harm.
    assert "Bring it back" not in client.get(url() + "?deleted=b").content.decode()
    assert client.post(url("guideline-undelete", uid="b")).status_code == 302
    assert agent.guidelines.count() == 3


def test_deleting_by_htmx_offers_to_bring_it_back_and_tells_the_table(
    client: Client, agent: Agent
) -> None:
    make_guideline(agent, uid="b")
    response = client.post(url("guideline-delete", uid="b") + "?q=x", headers=EDITOR)
    assert json.loads(response.headers["HX-Trigger"]) == {"guideline:deleted": {"uid": "b"}}
    assert response.headers["HX-Push-Url"] == url() + "?q=x&deleted=b"
    assert "Bring it back" in response.content.decode()
    back = client.post(url("guideline-undelete", uid="b"), headers=EDITOR)
    assert "It is back." in back.content.decode()
    assert "guideline:saved" in back.headers["HX-Trigger"]


def test_only_who_deleted_it_can_bring_it_back_and_only_to_its_agent(
    client: Client, agent: Agent
) -> None:
    make_guideline(agent, uid="b")
    client.post(url("guideline-delete", uid="b"))
    colleague = Client()
    colleague.force_login(make_user("author"))
    assert colleague.post(url("guideline-undelete", uid="b")).status_code == 404
    make_agent(slug="other")
    other = reverse("guideline-undelete", kwargs={"slug": "other", "uid": "b"})
    assert client.post(other).status_code == 404
    assert not Guideline.objects.exists()


# --- Switching and moving


@pytest.mark.parametrize("headers", [{}, TABLE])
def test_one_is_switched_where_it_stands(
    client: Client, agent: Agent, headers: dict[str, str]
) -> None:
    make_guideline(agent, uid="a")
    for wanted in ("no", "no", "yes"):
        response = client.post(
            url("guideline-enabled", uid="a") + "?q=x", {"enabled": wanted}, headers=headers
        )
        assert response.status_code == (200 if headers else 302)
        assert agent.guidelines.get().enabled == (wanted == "yes")
    if not headers:
        assert response.headers["Location"] == url() + "?q=x"


def test_several_are_switched_at_once(client: Client, agent: Agent) -> None:
    for uid in "abc":
        make_guideline(agent, uid=uid)
    response = client.post(
        url("guidelines-enabled"), {"uid": ["a", "c", "zzz"], "enabled": "no"}, headers=TABLE
    )
    assert "2 guidelines switched off." in words(response.content.decode())
    assert list(agent.guidelines.enabled().values_list("uid", flat=True)) == ["b"]
    response = client.post(url("guidelines-enabled"), {"enabled": "no"}, headers=TABLE)
    assert "Tick the guidelines first." in words(response.content.decode())


def test_a_guideline_goes_beside_the_one_named_also_when_clicked_twice(
    client: Client, agent: Agent
) -> None:
    for uid in "abcd":
        make_guideline(agent, uid=uid)
    for _ in range(2):
        client.post(url("guideline-position", uid="c"), {"before": "b"})
    assert list(agent.guidelines.values_list("uid", flat=True)) == list("acbd")
    response = client.post(url("guideline-position", uid="a"), {"after": "d"}, headers=TABLE)
    assert rows_of(response.content.decode()) == list("cbda")


@pytest.mark.parametrize("sent", [{}, {"before": "zzz"}, {"after": "a"}, {"before": ""}])
def test_a_neighbour_that_is_gone_changes_nothing_and_says_so(
    client: Client, agent: Agent, sent: dict[str, str]
) -> None:
    for uid in "ab":
        make_guideline(agent, uid=uid)
    response = client.post(url("guideline-position", uid="a"), sent, headers=TABLE)
    assert "The guideline beside it is gone" in words(response.content.decode())
    assert list(agent.guidelines.values_list("uid", flat=True)) == list("ab")


def test_without_javascript_the_editor_stays_open_while_the_table_changes(
    client: Client, agent: Agent
) -> None:
    for uid in "ab":
        make_guideline(agent, uid=uid)
    response = client.post(
        url("guideline-enabled", uid="a") + "?enabled=yes", {"enabled": "no", "open": "b"}
    )
    assert response.headers["Location"] == url("guideline", uid="b") + "?enabled=yes"


def test_a_guideline_of_another_agent_is_not_found(client: Client, agent: Agent) -> None:
    make_guideline(make_agent(slug="other"), uid="a")
    for name in ("guideline", "guideline-delete"):
        assert client.get(url(name, uid="a")).status_code == 404
    assert client.post(url("guideline-enabled", uid="a")).status_code == 404
    assert client.get(reverse("guidelines", kwargs={"slug": "nobody"})).status_code == 404


def test_words_of_people_are_never_markup(client: Client, agent: Agent) -> None:
    nasty = "<script>alert(1)</script>\"'{{ x }}"
    make_tool(
        agent,
        name="t",
        description=nasty,
        parameters=[
            {"name": "p", "schema": {"enum": [nasty]}, "display_name": nasty, "required": True}
        ],
    )
    make_guideline(agent, uid="a", condition=nasty, action=nasty, tags=[nasty], matching=[nasty])
    html = client.get(url("guideline", uid="a")).content.decode()
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(1)") >= 6
