"""The pages of the tool shed, and of what an agent may use of it."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from studio.models import Agent, Tool, ToolCall
from studio.operations.tools import sync_function_tools
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


def signed_in(*roles: str) -> Client:
    client = Client()
    client.force_login(make_user(*roles))
    return client


@pytest.fixture
def client() -> Client:
    return signed_in("developer")


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def page(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def names_in(html: str) -> list[str]:
    return re.findall(r'href="/tools/([^/"]+)/" data-row-link', html)


def call(tool: str, *, ms: float = 10, state: str = "done", days: int = 0) -> None:
    moment = timezone.now() - timedelta(days=days)
    turn = make_turn(make_session())
    ToolCall.objects.create(
        turn=turn,
        uid="c",
        tool=tool,
        state=state,
        started_at=moment,
        ended_at=moment + timedelta(milliseconds=ms),
    )


# --- The shed


def test_the_shed_shows_what_each_tool_does_needs_and_how_it_goes(client: Client) -> None:
    agent = make_agent(name="Shop", slug="shop")
    tool = make_tool(
        agent,
        name="send_money",
        description="Sends money.",
        consequential=True,
        latency="medium",
        parameters=[{"name": "amount", "schema": {"type": "number"}, "required": True}],
    )
    make_guideline(agent, tools=[tool])
    make_guideline(agent, tools=[tool])
    make_tool(name="idle")
    for ms in (*[20] * 18, 500, 700):
        call("send_money", ms=ms)
    call("send_money", state="failed", ms=30)
    call("send_money", state="unknown", ms=30)
    call("send_money", days=31, ms=9000)
    text = words(page(client, reverse("tools")))
    assert "send_money changes something Sends money." in text
    assert "amount a number" in text
    assert "Medium: under 15 s 95 % within 500 ms" in text
    assert "22 2 failed" in text
    assert "Shop 2 guidelines" in text
    assert "idle" in text
    assert "nobody" in text
    assert "2 tools" in text


def test_an_empty_shed_says_where_tools_come_from(client: Client) -> None:
    assert "manage.py sync_tools brings them here" in page(client, reverse("tools"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["gone", "off", "pay", "read"]),
        ("q=PAY", ["pay"]),
        ("q=reads+files", ["read"]),
        ("health=ok", ["pay", "read"]),
        ("health=off", ["off"]),
        ("health=missing", ["gone"]),
        ("changes=yes", ["pay"]),
        ("agent=shop&changes=no", ["read"]),
        ("agent=nobody", []),
        ("q=%00", ["gone", "off", "pay", "read"]),
    ],
)
def test_the_address_filters(client: Client, query: str, found: list[str]) -> None:
    agent = make_agent(slug="shop")
    make_tool(agent, name="pay", consequential=True)
    make_tool(agent, name="read", description="It reads the files.")
    make_tool(name="off", enabled=False)
    make_tool(name="gone", missing_since=timezone.now())
    html = page(client, f"{reverse('tools')}?{query}")
    assert names_in(html) == found


def test_htmx_gets_the_table_alone(client: Client) -> None:
    make_tool(name="pay")
    html = page(client, reverse("tools"), **HTMX)
    assert html.lstrip().startswith('<section id="tools"')
    assert names_in(html) == ["pay"]


def test_the_shed_takes_as_many_queries_for_many_tools_as_for_two(client: Client) -> None:
    agent = make_agent()
    counts = []
    for number in (2, 30):
        for _ in range(number):
            make_guideline(agent, tools=[make_tool(agent)])
        with CaptureQueriesContext(connection) as queries:
            page(client, reverse("tools"))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12


# --- One tool


def test_a_tool_is_read_by_all_and_changed_by_developers() -> None:
    make_tool(name="pay", description="Pays.")
    html = page(signed_in("author"), reverse("tool", args=["pay"]))
    assert "Developers can change it; you can read it." in html
    assert '<fieldset class="form" disabled>' in html
    assert '<button class="primary">' not in html


def test_saving_a_tool_works_with_and_without_javascript(client: Client) -> None:
    sync_function_tools()
    address = reverse("tool", args=["calculator"])
    sent = {
        "description": "Adds up.",
        "latency": "fast",
        "enabled": "on",
        "parameter-expression-source": "any",
        "parameter-expression-display_name": "sum",
    }
    response = client.post(address, sent)
    assert response.headers["Location"] == address
    assert "Saved." in page(client, address)
    row = Tool.objects.get(name="calculator")
    assert (row.description, row.parameters[0]["display_name"]) == ("Adds up.", "sum")
    part = client.post(address, sent | {"latency": "slow"}, headers=HTMX)
    assert "tool:saved" in part.headers["HX-Trigger"]
    assert part.content.decode().count("<form") == 1
    assert Tool.objects.get(name="calculator").latency == "slow"


def test_a_refused_tool_keeps_what_was_written(client: Client) -> None:
    sync_function_tools()
    response = client.post(
        reverse("tool", args=["calculator"]),
        {
            "description": "My words.",
            "latency": "fast",
            "timeout": "0",
            "parameter-expression-source": "any",
        },
    )
    html = response.content.decode()
    assert response.status_code == 422
    assert "My words.</textarea>" in html
    assert "0.1 to 3600 seconds" in html
    assert Tool.objects.get(name="calculator").description != "My words."


def test_a_changed_tool_can_follow_its_code_again(client: Client) -> None:
    sync_function_tools()
    row = Tool.objects.get(name="calculator")
    declared = row.description
    assert "Follow the code again" not in page(client, reverse("tool", args=["calculator"]))
    row.description = "Other."
    row.save()
    html = page(client, reverse("tool", args=["calculator"]))
    assert "1 thing differs from what the code says." in html
    client.post(reverse("tool-code", args=["calculator"]))
    row.refresh_from_db()
    assert row.description == declared


def test_a_tool_whose_code_is_gone_says_so(client: Client) -> None:
    make_tool(name="pay", missing_since=timezone.now(), origin="shop.tools")
    text = words(page(client, reverse("tool", args=["pay"])))
    assert "Its code has not been found since" in text
    assert "it stood in shop.tools" in text


def test_an_unknown_tool_is_not_found(client: Client) -> None:
    assert client.get(reverse("tool", args=["nothing"])).status_code == 404
    assert client.post(reverse("tool", args=["nothing"])).status_code == 404


# --- An agent's choice


@pytest.fixture
def agent() -> Agent:
    return make_agent(slug="shop", name="Shop")


def choose(client: Client, name: str, allowed: str, **headers: str) -> str:
    response = client.post(
        reverse("agent-tool", args=["shop", name]), {"allowed": allowed}, headers=headers
    )
    assert response.status_code == (200 if headers else 302), response.content.decode()
    return response.content.decode()


def test_an_agent_chooses_tools_and_gives_them_up_also_when_asked_twice(
    client: Client, agent: Agent
) -> None:
    make_tool(name="pay")
    for _ in range(2):
        choose(client, "pay", "yes")
        assert [tool.name for tool in agent.tools.all()] == ["pay"]
    assert "In use (1)" in words(page(client, reverse("agent-tools", args=["shop"])))
    for _ in range(2):
        html = choose(client, "pay", "no", **HTMX)
        assert "In use (0)" in words(html)
        assert html.lstrip().startswith('<div id="agent-tools"')
    assert not agent.tools.exists()


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_tool_that_guidelines_attach_is_not_given_up_and_they_are_named(
    client: Client, agent: Agent, headers: dict[str, str]
) -> None:
    tool = make_tool(agent, name="pay")
    make_guideline(agent, uid="g", condition="somebody pays", tools=[tool])
    response = client.post(
        reverse("agent-tool", args=["shop", "pay"]), {"allowed": "no"}, headers=headers
    )
    html = response.content.decode()
    assert response.status_code == 422
    assert "pay is still attached. Take it off these guidelines first: somebody pays" in words(html)
    assert f'href="{reverse("guideline", args=["shop", "g"])}"' in html
    assert agent.tools.get() == tool


def test_a_reader_sees_the_choice_without_buttons(agent: Agent) -> None:
    make_tool(agent, name="pay")
    html = page(signed_in("qa"), reverse("agent-tools", args=["shop"]))
    assert "pay" in html
    assert 'name="allowed"' not in html


def test_the_choice_takes_as_many_queries_for_many_tools_as_for_two(
    client: Client, agent: Agent
) -> None:
    counts = []
    for number in (2, 30):
        for _ in range(number):
            make_guideline(agent, tools=[make_tool(agent)])
            make_tool()
        with CaptureQueriesContext(connection) as queries:
            page(client, reverse("agent-tools", args=["shop"]))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 10


def test_the_page_says_every_option_of_a_parameter_in_words(client: Client) -> None:
    tool = make_tool(
        parameters=[
            {
                "name": "order_id",
                "schema": {"type": "string"},
                "display_name": "order number",
                "source": "customer",
                "precedence": 2,
                "significance": "to find the order",
                "examples": ["A-17", "B-4"],
                "provides_choices": True,
            },
            {"name": "trace", "schema": {"type": "string"}, "hidden": True, "source": "context"},
            {"name": "note", "schema": {"type": "string"}},
        ]
    )
    client.force_login(make_user("qa"))
    html = client.get(reverse("tool", args=[tool.name])).content.decode()
    first, trace, note = html.split('<ul class="options">')[1].split("<p><b")[1:4]
    assert "order number" in first
    assert "Only from what the customer said." in first
    assert "Asked for in group 2; lower groups first." in first
    assert "Why it is needed: to find the order" in first
    assert "For example: A-17, B-4" in first
    assert "Its choices are named anew in each turn." in first
    assert "Never mentioned to the customer." in trace
    assert "the customer is never asked for it" in trace
    assert "<ul>" not in note.split("</section>")[0]


def test_when_the_customer_is_asked_is_chosen_where_the_tool_changes_something(
    client: Client,
) -> None:
    tool = make_tool(consequential=True)
    client.force_login(make_user("developer"))
    address = reverse("tool", args=[tool.name])
    assert "The customer is asked before it runs" in client.get(address).content.decode()
    given = {"description": "d", "latency": "fast", "consequential": "on", "enabled": "on"}
    parameter = {"parameter-number-source": "any"}
    assert client.post(address, given | parameter | {"confirm": "inferred"}).status_code == 302
    tool.refresh_from_db()
    assert tool.confirm == "inferred"
    # A form that does not ask leaves it as it is.
    assert client.post(address, given | parameter).status_code == 302
    tool.refresh_from_db()
    assert tool.confirm == "inferred"
    refused = client.post(address, given | parameter | {"confirm": "never"})
    assert refused.status_code == 422
    tool.refresh_from_db()
    assert tool.confirm == "inferred"
