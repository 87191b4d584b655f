"""The page "Why not?": what the record says of one guideline, another wording, and what was tried."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from studio.models import Guideline, GuidelineExample, Rematch, Turn
from studio.operations.agents import save_guideline
from tests.studio.conversations import Recorded, make_bank, make_person

pytestmark = pytest.mark.django_db

RESULT = {
    "state": "matched",
    "because": "They ask what is left.",
    "score": None,
    "explained_afterwards": False,
    "model": "gpt-x",
    "prompt_tokens": 400,
    "completion_tokens": 25,
    "duration_ms": 310,
}
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def author(client: Client) -> User:
    person = make_person("author")
    client.force_login(person)
    return person


@pytest.fixture
def told() -> Recorded:
    """A turn in which the second guideline stayed silent."""
    told = Recorded(make_bank("the customer asks for the balance", "the customer says thanks"))
    turn = told.turn("What is left on it?")
    told.ask_model(turn, "m1", 0, 210, subject="G1–G2", prompt_tokens=900, completion_tokens=60)
    told.match(turn, 0, "matched", "They ask.", model_call="m1")
    told.match(turn, 1, "not_matched", "They say no thanks.", model_call="m1")
    return told


def turn_of(told: Recorded) -> Turn:
    return Turn.objects.select_related("session", "version").get(session=told.session, number=1)


def address(told: Recorded, place: int = 1, *rest: object) -> str:
    base = reverse("turn-guideline", args=[told.session.pk, 1, told.uid(place)])
    return base + "".join(f"{part}/" for part in rest)


def read(client: Client, told: Recorded, place: int = 1, query: str = "", **headers: str) -> str:
    response = client.get(address(told, place) + query, headers=headers)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def tried(told: Recorded, place: int = 1, **values: Any) -> Rematch:
    usual = {"condition": "the customer asks what is left", "started_by": "ada"}
    finished = {
        "state": Rematch.State.FINISHED,
        "result": RESULT,
        "started_at": timezone.now(),
        "finished_at": timezone.now(),
    }
    if "state" in values:
        finished = {}
    return Rematch.objects.create(
        turn=turn_of(told), guideline=told.uid(place), **(usual | finished | values)
    )


# --- works


def test_the_page_says_what_the_record_says(client: Client, author: User, told: Recorded) -> None:
    html = read(client, told)
    assert "<h1>Why not?</h1>" in html
    assert "What is left on it?" in html
    assert "When the customer says thanks" in html
    assert "They say no thanks." in html
    assert 'data-mark="–">Not matched' in html
    assert "960 tokens" in html
    assert "for the whole question, about G1–G2" in html
    assert reverse("turn-prompt", args=[told.session.pk, 1, "m1"]) in html
    assert "> the customer says thanks</textarea>" in html
    assert "No other wording was tried on this turn yet." in html
    assert "<h1>Why?</h1>" in read(client, told, place=0)


def test_the_ledger_leads_to_it(client: Client, author: User, told: Recorded) -> None:
    html = client.get(reverse("session", args=[told.session.pk])).content.decode()
    assert f'href="{address(told, 1)}">Why not?</a>' in html
    assert f'href="{address(told, 0)}">Why?</a>' in html


def test_examples_are_those_of_the_version_and_a_changed_draft_is_told(
    client: Client, author: User
) -> None:
    agent = make_bank("the customer says thanks")
    guideline = agent.guidelines.get()
    examples = [
        GuidelineExample(text="Ta!", matches=True),
        GuidelineExample(text="No", matches=False),
    ]
    save_guideline(guideline, tools=[], examples=examples)
    told = Recorded(agent)
    told.match(told.turn("Ta!"), 0, "not_matched", "No thanks there.")
    guideline.condition = "the customer is happy"
    save_guideline(guideline, tools=[], examples=[])
    html = read(client, told, place=0)
    assert "When the customer says thanks" in html
    assert re.search(r"applies to:</span> Ta!</li>", html)
    assert re.search(r"does not apply to:</span> No</li>", html)
    assert "The draft says by now:" in html
    assert "the customer is happy" in html


def test_what_relationships_did_and_each_entry_of_the_record_are_told(
    client: Client, author: User, told: Recorded
) -> None:
    turn = turn_of(told)
    told.match(
        turn,
        0,
        "dropped",
        "G2 has priority.",
        model_call="m1",
        dropped_by=told.uid(1),
        relation="has_priority_over",
    )
    html = read(client, told, place=0)
    assert f"#guideline-{told.uid(1)}" in html
    assert "All 2 entries of the record" in html
    assert "They ask." in html


def test_a_reason_asked_for_afterwards_is_an_explanation_and_no_record(
    client: Client, author: User, told: Recorded
) -> None:
    turn_of(told).matches.filter(guideline=told.uid(1)).update(
        explained_afterwards=True, score=0.31
    )
    html = read(client, told)
    assert "score 0.31" in html
    assert "explained afterwards" in html
    assert "is no record of how it came about" in html


def test_a_guideline_of_which_nothing_was_decided_can_be_tried_too(
    client: Client, author: User
) -> None:
    told = Recorded()
    told.turn("Hello", state="FAILED")
    html = read(client, told, place=0)
    assert "The turn ended before anything was decided of it." in html
    assert "Judge this wording" in html


def test_another_wording_is_queued_and_the_page_watches_it(
    client: Client, author: User, told: Recorded, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as queued:
        response = client.post(
            address(told, 1, "rematches"), {"condition": " the customer asks\r\nwhat is left "}
        )
    row = Rematch.objects.get()
    assert response.headers["Location"] == f"{address(told)}?tried={row.pk}#tried"
    assert len(queued) == 1
    assert row.condition == "the customer asks\nwhat is left"
    assert (row.state, row.started_by, row.guideline) == (
        "queued",
        author.username,
        told.uid(1),
    )
    html = read(client, told, query=f"?tried={row.pk}")
    assert "the customer asks what is left</textarea>" in html
    assert "Waiting for a worker" in html
    assert f'hx-get="{address(told)}" hx-trigger="every 700ms"' in html
    assert f'action="{address(told, 1, "rematches", row.pk, "stop")}"' in html


def test_the_recorded_wording_is_judged_again_whatever_the_field_holds(
    client: Client, author: User, told: Recorded
) -> None:
    client.post(address(told, 1, "rematches"), {"condition": "something else", "again": "1"})
    assert Rematch.objects.get().condition == "the customer says thanks"


def test_before_and_after_stand_beside_each_other(
    client: Client, author: User, told: Recorded
) -> None:
    tried(told, condition="first try", result=RESULT | {"state": "not_matched"})
    row = tried(told)
    html = read(client, told)
    part = html.partition('id="tried"')[2]
    assert "tried afterwards, not part of the record" in part
    newest, _, older = part.partition("first try")
    assert "Recorded" in newest
    assert "They say no thanks." in newest
    assert "This wording" in newest
    assert "They ask what is left." in newest
    assert "another verdict" in newest
    assert "425 tokens" in newest
    assert "310 ms" in newest
    assert "the same verdict" in older
    assert f'id="tried-{row.pk}"' in newest
    assert "hx-trigger" not in part.partition(">")[0]


def test_htmx_gets_what_was_tried_alone(client: Client, author: User, told: Recorded) -> None:
    tried(told)
    html = read(client, told, **{"HX-Request": "true"})
    assert html.startswith('<section id="tried"')
    assert "<textarea" not in html


def test_the_author_takes_the_wording_to_the_editor_and_nothing_is_saved(
    client: Client, author: User, told: Recorded
) -> None:
    row = tried(told)
    link = f"{reverse('guideline', args=[told.agent.slug, told.uid(1)])}?wording={row.pk}"
    assert f'href="{link}"' in read(client, told)
    html = client.get(link).content.decode()
    assert ">\nthe customer asks what is left</textarea>" in html
    assert "Nothing is saved yet." in html
    assert "data-dirty" in html
    assert address(told) in html
    assert Guideline.objects.get(uid=told.uid(1)).condition == "the customer says thanks"


def test_a_wording_of_another_guideline_or_agent_is_not_put_into_the_editor(
    client: Client, author: User, told: Recorded
) -> None:
    foreign = tried(told, place=0, condition="foreign words")
    for chosen in (foreign.pk, 10**15, "x", ""):
        editor = reverse("guideline", args=[told.agent.slug, told.uid(1)])
        html = client.get(f"{editor}?wording={chosen}").content.decode()
        assert "the customer says thanks</textarea>" in html
        assert "Nothing is saved yet." not in html


def test_a_guideline_that_left_the_draft_can_be_tried_but_not_taken_over(
    client: Client, author: User, told: Recorded
) -> None:
    tried(told)
    url = address(told)
    Guideline.objects.filter(uid=told.uid(1)).delete()
    html = client.get(url).content.decode()
    assert "Judge this wording" in html
    assert "Use this wording" not in html


def test_it_takes_as_many_queries_with_many_tries(
    client: Client, author: User, told: Recorded
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            read(client, told)
        return len(seen)

    tried(told)
    few = queries()
    for number in range(20):
        tried(told, condition=f"wording {number}")
    assert queries() == few


# --- stopping, and what goes wrong


def test_a_try_is_stopped(client: Client, author: User, told: Recorded) -> None:
    row = tried(told, state=Rematch.State.QUEUED)
    response = client.post(address(told, 1, "rematches", row.pk, "stop"))
    assert response.headers["Location"].startswith(address(told))
    row.refresh_from_db()
    assert row.state == "stopped"
    assert "It was stopped before the model had answered." in read(client, told)
    again = client.post(address(told, 1, "rematches", row.pk, "stop"), follow=True)
    assert "It is over already." in again.content.decode()


def test_a_failure_is_told_in_words(client: Client, author: User, told: Recorded) -> None:
    tried(told, state=Rematch.State.FAILED, error="Cannot reach the model.")
    html = read(client, told)
    assert "It could not be judged." in html
    assert "Cannot reach the model." in html


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("  ", "there is nothing to judge: write one."),
        ("x" * 10_001, "10001"),
        ("a\x00b", "cannot be stored"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_with_its_words_kept(
    client: Client, author: User, told: Recorded, condition: str, said: str
) -> None:
    response = client.post(address(told, 1, "rematches"), {"condition": condition})
    assert response.status_code == 422
    html = response.content.decode()
    assert said in html
    assert condition[:50].replace("\x00", "") in html.replace("\x00", "")
    assert not Rematch.objects.exists()


def test_a_turn_that_is_running_offers_no_form_and_refuses(
    client: Client, author: User, told: Recorded
) -> None:
    Turn.objects.update(state=Turn.State.RUNNING)
    assert "The turn is still running" in read(client, told)
    response = client.post(address(told, 1, "rematches"), {"condition": "x"})
    assert response.status_code == 422
    assert not Rematch.objects.exists()


def test_what_is_not_there_is_a_404(client: Client, author: User, told: Recorded) -> None:
    row = tried(told, place=0)
    for gone in (
        reverse("turn-guideline", args=[told.session.pk, 1, "nothing"]),
        reverse("turn-guideline", args=[told.session.pk, 9, told.uid(1)]),
    ):
        assert client.get(gone).status_code == 404
        assert client.post(f"{gone}rematches/", {"condition": "x"}).status_code == 404
    assert client.post(address(told, 1, "rematches", row.pk, "stop")).status_code == 404
    told.turn("Waiting", state="QUEUED")
    waiting = reverse("turn-guideline", args=[told.session.pk, 2, told.uid(1)])
    assert client.get(waiting).status_code == 404


def test_what_people_and_models_write_stands_as_text(client: Client, author: User) -> None:
    told = Recorded(make_bank(SCRIPT))
    told.match(told.turn(SCRIPT), 0, "not_matched", SCRIPT)
    tried(told, place=0, condition=SCRIPT, result=RESULT | {"because": SCRIPT})
    assert SCRIPT not in read(client, told, place=0)


# --- who may


def test_a_developer_tries_wordings_and_does_not_write_guidelines(
    client: Client, told: Recorded
) -> None:
    client.force_login(make_person("developer"))
    row = tried(told)
    html = read(client, told)
    assert "Judge this wording" in html
    assert "Use this wording" not in html
    editor = reverse("guideline", args=[told.agent.slug, told.uid(1)])
    assert "Nothing is saved yet." not in client.get(f"{editor}?wording={row.pk}").content.decode()


def test_other_methods_are_refused(client: Client, author: User, told: Recorded) -> None:
    row = tried(told)
    assert client.post(address(told)).status_code == 405
    assert client.get(address(told, 1, "rematches")).status_code == 405
    assert client.get(address(told, 1, "rematches", row.pk, "stop")).status_code == 405


def test_a_stranger_finds_nothing(client: Client, told: Recorded) -> None:
    client.force_login(make_person())
    assert client.get(address(told)).status_code == 404
    assert client.post(address(told, 1, "rematches"), {"condition": "x"}).status_code == 404
    assert not Rematch.objects.exists()
