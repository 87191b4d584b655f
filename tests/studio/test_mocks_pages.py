"""The page on which people write what mocked tools answer."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from studio.models import Session, ToolCall, ToolMock
from studio.operations.agents import publish
from studio.operations.branches import branch_from
from studio.operations.sessions import change_session
from studio.operations.tool_modes import save_mock
from tests.studio.factories import make_agent, make_session, make_tool, make_turn, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> Session:
    agent = make_agent()
    make_tool(agent, name="find_parcel", description="Where a parcel <b>is</b>.")
    make_tool(agent, name="send_money", consequential=True)
    return make_session(agent=agent)


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(make_user("qa", username="kim"))
    return client


def address(session: Session) -> str:
    return f"/sessions/{session.pk}/mocks/"


def page(client: Client, session: Session, query: str = "", status: int = 200) -> str:
    response = client.get(address(session) + query)
    assert response.status_code == status
    return str(response.content.decode())


def card(html: str, tool: str) -> str:
    return html.split(f'id="tool-{tool}"')[1].split("</section>", maxsplit=1)[0]


def test_every_tool_of_the_agent_has_its_place_and_says_whether_it_is_mocked(
    client: Client, session: Session
) -> None:
    save_mock(session, "find_parcel", data={"in": "Oslo"}, by="ada")

    html = page(client, session)

    assert "&quot;in&quot;: &quot;Oslo&quot;" in card(html, "find_parcel")
    assert "ada" in card(html, "find_parcel")
    assert "Where a parcel &lt;b&gt;is&lt;/b&gt;." in html
    assert "no mock" in card(html, "send_money")
    assert "changes something" in card(html, "send_money")
    assert "now they are not" in html


def test_a_result_is_kept_for_the_tree_with_who_wrote_it(client: Client, session: Session) -> None:
    make_turn(session)
    branch = branch_from(session, 1)

    response = client.post(
        address(branch), {"tool": "find_parcel", "answer": "result", "data": '{"in": "Lyon"}'}
    )

    assert response["Location"] == f"{address(branch)}#tool-find_parcel"
    row = ToolMock.objects.get()
    assert (row.session, row.data, row.updated_by) == (session, {"in": "Lyon"}, "kim")
    assert "answers this from the next turn on" in page(client, branch)


def test_a_failure_is_kept_whatever_stands_in_the_field(client: Client, session: Session) -> None:
    client.post(address(session), {"tool": "find_parcel", "answer": "not_allowed", "data": "{half"})

    assert ToolMock.objects.get().failure == "not_allowed"
    assert '<option value="not_allowed" selected>' in card(page(client, session), "find_parcel")


def test_a_mock_is_removed(client: Client, session: Session) -> None:
    save_mock(session, "find_parcel", data=1)

    client.post(address(session), {"tool": "find_parcel", "remove": "1"})

    assert not ToolMock.objects.exists()
    assert "no mock" in card(page(client, session), "find_parcel")


def test_the_last_real_result_is_offered_and_kept_only_when_asked(
    client: Client, session: Session
) -> None:
    for served, place in (("live", "Lyon"), ("mock", "Nowhere")):
        ToolCall.objects.create(
            turn=make_turn(session),
            uid=served,
            tool="find_parcel",
            state="done",
            served=served,
            result={"data": {"in": place}, "metadata": {}},
            started_at=timezone.now(),
        )

    html = card(page(client, session, "?take=find_parcel"), "find_parcel")

    assert "&quot;in&quot;: &quot;Lyon&quot;" in html
    assert f"session #{session.pk}, turn 1" in html
    assert not ToolMock.objects.exists()


def test_a_tool_that_never_ran_has_no_result_to_take(client: Client, session: Session) -> None:
    html = card(page(client, session, "?take=find_parcel"), "find_parcel")

    assert "run it live once" in html


def test_the_tools_are_those_of_what_the_next_turn_runs_on(
    client: Client, session: Session
) -> None:
    publish(session.agent, note="", by=None)
    make_tool(session.agent, name="brand_new")
    assert "tool-brand_new" in page(client, session)

    change_session(session, version="published")

    assert "tool-brand_new" not in page(client, session)


def test_a_mock_of_a_tool_that_is_gone_can_be_removed(client: Client, session: Session) -> None:
    save_mock(session, "old_tool", data=1)

    assert "no longer has this tool" in card(page(client, session), "old_tool")
    client.post(address(session), {"tool": "old_tool", "remove": "1"})

    assert not ToolMock.objects.exists()


def test_who_may_only_look_sees_no_form_and_may_not_write(session: Session) -> None:
    save_mock(session, "find_parcel", data={"in": "Oslo"})
    stranger = Client()
    stranger.force_login(make_user())

    assert stranger.get(address(session)).status_code == 404
    assert stranger.post(address(session), {"tool": "find_parcel"}).status_code == 404


def test_other_methods_are_refused(client: Client, session: Session) -> None:
    assert client.put(address(session)).status_code == 405


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "Write what the tool answers, as JSON"),
        ("{half", "is no JSON"),
        ("Lyon", "is no JSON"),
        ("NaN", "is no JSON"),
        ("[" * 500 + "]" * 500, "nested deeper"),
    ],
)
def test_what_is_no_result_is_refused_in_words_and_stays_in_the_field(
    client: Client, session: Session, written: str, words: str
) -> None:
    response = client.post(
        address(session), {"tool": "find_parcel", "answer": "result", "data": written}
    )

    assert response.status_code == 422
    html = card(response.content.decode(), "find_parcel")
    assert words in html
    assert f">{written}</textarea>" in html
    assert not ToolMock.objects.exists()


@pytest.mark.parametrize("tool", ["", "nobody", "\x00"])
def test_a_tool_that_the_agent_does_not_have_is_refused(
    client: Client, session: Session, tool: str
) -> None:
    response = client.post(address(session), {"tool": tool, "answer": "result", "data": "1"})

    assert response.status_code == 422
    assert "has no tool" in response.content.decode()


def test_an_unknown_failure_is_refused(client: Client, session: Session) -> None:
    response = client.post(address(session), {"tool": "find_parcel", "answer": "sulks"})

    assert response.status_code == 422
    assert "no failure of the kind" in response.content.decode()


def test_more_tools_take_no_more_queries(client: Client, session: Session) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            page(client, session)
        return len(queries)

    count()
    before = count()
    for number in range(5):
        name = make_tool(session.agent).name
        save_mock(session, name, data=number)

    assert count() == before


def test_the_header_of_the_sandbox_chooses_where_results_come_from(
    client: Client, session: Session
) -> None:
    url = f"/sessions/{session.pk}/settings/"
    settings = {"version": "draft", "tool_mode": "mock"}

    html = client.post(url, settings, headers={"HX-Request": "true"}).content.decode()

    session.refresh_from_db()
    assert session.tool_mode == "mock"
    assert '<option value="mock" selected>Mocked</option>' in html
    assert f'href="{address(session)}"' in html
    client.post(url, {"version": "draft"})
    session.refresh_from_db()
    assert session.tool_mode == "mock"
    refused = client.post(url, settings | {"tool_mode": "sometimes"})
    assert refused.status_code == 422


def test_a_new_session_begins_as_chosen(client: Client, session: Session) -> None:
    slug = session.agent.slug

    client.post(f"/agents/{slug}/sandbox/", {"version": "draft", "tool_mode": "recorded"})

    assert Session.objects.latest("pk").tool_mode == "recorded"
