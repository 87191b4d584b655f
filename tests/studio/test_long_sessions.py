"""A conversation of thousands of turns stays as quick as a short one, and what people paste into it stays text."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.models import Event, Session, Turn
from studio.operations.agents import snapshot
from studio.operations.branches import branch_from
from studio.operations.confirmations import pending_confirmations
from studio.operations.situations import beginning
from studio.views.conversation import TURNS_AT_ONCE, lines_of, page_of, status_of
from studio.views.sandbox import fragments
from tests.studio.conversations import Recorded, make_bank, make_person
from tests.studio.factories import ask_to_confirm

pytestmark = pytest.mark.django_db

_LONG = 2_000
_KINDS = ("message", "tool.started", "tool.finished", "message")


def talk(session: Session, turns: int) -> Session:
    """Finished turns at the end of the session, as a worker leaves them."""
    session.refresh_from_db()
    version = snapshot(session.agent)
    first, per = session.next_turn, len(_KINDS)
    made = Turn.objects.bulk_create(
        Turn(
            session=session,
            number=first + place,
            first_offset=session.next_offset + place * per,
            state="FINISHED",
            version=version,
        )
        for place in range(turns)
    )
    Event.objects.bulk_create(
        (
            Event(
                session=session,
                turn=turn,
                offset=turn.first_offset + place,
                kind=kind,
                source=("customer", "system", "system", "agent")[place],
                data={"text": f"{turn.number}", "call": f"c{turn.number}", "tool": "t"}
                | {"arguments": {}, "data": 1, "metadata": {}, "error": None},
            )
            for turn in made
            for place, kind in enumerate(_KINDS)
        ),
        batch_size=1_000,
    )
    session.next_turn += turns
    session.next_offset += turns * per
    session.save(update_fields=["next_turn", "next_offset"])
    return session


@pytest.fixture
def session() -> Session:
    return talk(Recorded(make_bank()).session, _LONG)


def whole_searches(function: Callable[[], object]) -> int:
    """How many queries of a function look through all events of a session, as SQLite plans them."""
    if connection.vendor != "sqlite":
        pytest.skip("it asks SQLite how it would search")
    with CaptureQueriesContext(connection) as queries:
        function()
    searched = 0
    for query in queries.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + query["sql"])
            plan = " ".join(str(row[3]) for row in cursor.fetchall())
        # Found by nothing but its session, an event is looked for among all of them.
        whole = (
            "studio_event" in plan and "(session_id=?)" in plan.partition("studio_event")[2][:90]
        )
        searched += whole or "SCAN studio_event" in plan
    return searched


def a_turn(session: Session) -> Turn:
    turns = session.line.turns.select_related("session", "version", "session__customer")
    return turns.order_by("-number")[0]


def test_no_step_of_a_turn_searches_the_whole_conversation(session: Session) -> None:
    assert whole_searches(lambda: list(session.events.filter(kind="mode"))) == 1

    for each in (session, talk(branch_from(session, _LONG - 10), 2)):
        last = each.next_turn - 1

        assert whole_searches(lambda each=each: beginning(a_turn(each))) == 0  # type: ignore[misc]
        assert whole_searches(lambda each=each: pending_confirmations(each)) == 0  # type: ignore[misc]
        assert whole_searches(lambda each=each: status_of(each)) == 0  # type: ignore[misc]
        assert whole_searches(lambda e=each, n=last: lines_of(e, [n])) == 0  # type: ignore[misc]
        assert whole_searches(lambda each=each: page_of(each)) == 0  # type: ignore[misc]


def test_a_long_session_shows_its_end_first_and_leads_back_to_its_beginning(
    session: Session,
) -> None:
    seen: list[int] = []
    before = None
    while True:
        page = page_of(session, before=before)
        seen = [line.turn.number for line in page.lines if line.turn is not None] + seen
        assert len(page.lines) <= TURNS_AT_ONCE
        before = page.before
        if before is None:
            break

    assert seen == list(range(1, _LONG + 1))


def test_a_question_of_a_long_session_still_waits_in_it_and_is_answered_by_its_own_turn(
    session: Session,
) -> None:
    ask_to_confirm(a_turn(session), "c-late")
    session.refresh_from_db()

    assert [found.call for found in pending_confirmations(session)] == ["c-late"]
    assert pending_confirmations(branch_from(session, _LONG - 1)) == []


def test_a_branch_shows_nothing_that_was_said_after_it_began() -> None:
    told = Recorded(make_bank())
    first = told.turn("one")
    told.answer(first, "in time")
    told.turn("two")
    branch = branch_from(told.session, 1)
    told.event(first, "message", text="too late for the branch")

    def said(session: Session) -> str:
        return " ".join(bubble.text for line in page_of(session).lines for bubble in line.answered)

    assert "too late" in said(told.session)
    assert "in time" in said(branch)
    assert "too late" not in said(branch)


def test_the_older_turns_come_as_one_scrolls_and_by_a_link(session: Session) -> None:
    client = Client()
    client.force_login(make_person("qa"))

    html = client.get(f"/sessions/{session.pk}/").content.decode()

    link = html.split('id="earlier"')[1].split("</p>")[0]
    first = _LONG - TURNS_AT_ONCE + 1
    assert f'href="/sessions/{session.pk}/?before={first}"' in link
    assert 'hx-trigger="click, intersect once root:#log"' in link


def test_the_sums_of_a_conversation_come_with_the_end_of_a_turn_only(session: Session) -> None:
    session.refresh_from_db()
    last = session.next_turn - 1

    assert 'id="spend"' in fragments(session.pk, [last])
    Turn.objects.filter(session=session, number=last).update(state="RUNNING")
    assert 'id="spend"' not in fragments(session.pk, [last])


PASTED = {
    "markup": "<img src=x onerror=alert(1)><b>bold</b>",
    "a script": "<script>alert('x')</script>",
    "a template": "{{ settings.SECRET_KEY }} {% debug %}",
    "a closing tag": "</div></section></main><h1>mine</h1>",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202e<b>abc</b>",
    "a long word": "W" * 5_000,
}


@pytest.mark.parametrize("what", PASTED)
def test_what_is_pasted_stays_text_for_whoever_said_it(what: str) -> None:
    told = Recorded(make_bank())
    turn = told.turn(PASTED[what])
    told.answer(turn, PASTED[what])
    client = Client()
    client.force_login(make_person("qa"))

    html = client.get(f"/sessions/{told.session.pk}/").content.decode()

    chat = html.split('id="turn-1"')[1].split('id="turn-1-end"')[0]
    for never in ("<b>", "<img", "<script", "<h1", "</main"):
        assert never not in chat
    assert chat.count('dir="auto"') >= 2
    assert "SECRET_KEY }}" in chat or what != "a template"


def test_a_very_long_message_is_folded_with_all_of_it_inside() -> None:
    told = Recorded(make_bank())
    turn = told.turn("first words " + "word " * 10_000 + "last words")
    told.answer(turn, "**first** " + "word " * 10_000 + "end")
    client = Client()
    client.force_login(make_person("qa"))

    chat = client.get(f"/sessions/{told.session.pk}/").content.decode().split('id="turn-1"')[1]

    assert chat.count('<details class="fold whole"') == 2
    beginning, folded = chat.split('<details class="fold whole"')[:2]
    assert "first words" in beginning
    assert "last words" not in beginning
    assert "last words" in folded
    assert "50,0" in folded


def test_an_ordinary_message_is_not_folded() -> None:
    told = Recorded(make_bank())
    told.answer(told.turn("word " * 1_000), "word " * 1_000)
    client = Client()
    client.force_login(make_person("qa"))

    assert b"fold whole" not in client.get(f"/sessions/{told.session.pk}/").content
