"""The pages of replays: begun with a price, watched, read turn by turn, accepted; recorded results edited."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from engine.testing import matches, replies
from studio.models import AcceptedChange, ModelCall, Replay, Session, Turn, Variant
from studio.operations.replays import start_replay
from studio.operations.variants import Edit, save_edit
from tests.studio.factories import make_connection, make_price, make_session, make_turn, make_user
from tests.studio.replayed_depot import HELLO, Depot, replayed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unwatched")]

HTMX = {"HX-Request": "true"}


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch, db: None) -> Depot:
    return Depot(monkeypatch)


@pytest.fixture
def person() -> User:
    return make_user("qa", username="ada")


@pytest.fixture
def client(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def silent(depot: Depot, *sessions: Session, **chosen: Any) -> Replay:
    """Each session's second turn differs: no guideline matches any more."""
    depot.script(*(*HELLO, matches(), replies("I cannot <b>say</b>.")) * len(sessions))
    return replayed(*sessions, model="live", **chosen)


def html(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.content.decode()[:2000]
    return str(response.content.decode())


def turn_address(replay: Replay, session: Session, number: int = 2) -> str:
    return reverse("replayed-turn", args=[replay.pk, session.pk, number])


# --- Begun


def test_the_form_says_what_each_way_means_and_costs(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    connection = make_connection(name="Large", model="large")
    make_price(model="large", input_price=Decimal(1_000))
    ModelCall.objects.filter(turn__session=session).update(prompt_tokens=2_000)
    page = html(client.get(reverse("replay-new"), {"session": session.pk}))
    assert "2 of 2 turns can be played frozen." in page
    assert page.count("costs nothing") >= 4  # the offline model is asked where anything is
    asked = {"session": session.pk, "way": "model", "connection": connection.pk}
    part = html(client.get(reverse("replay-new"), asked, headers=HTMX))
    assert part.startswith("<p")
    assert "about" in part
    assert "USD" in part
    asked["way"] = "until"
    assert "up to" in html(client.get(reverse("replay-new"), asked, headers=HTMX))


def test_a_model_without_a_price_is_said_to_have_none(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    connection = make_connection(model="nameless")
    ModelCall.objects.filter(turn__session=session).update(prompt_tokens=2_000)
    asked = {"session": session.pk, "way": "model", "connection": connection.pk}
    part = html(client.get(reverse("replay-new"), asked, headers=HTMX))
    assert "price not known" in part
    assert "nameless" in part


def test_the_form_tells_beforehand_which_turns_cannot_be_frozen_and_why(
    client: Client, depot: Depot
) -> None:
    connection = make_connection(name="Gone")
    session = depot.parcels(depot.session(connection=connection))
    connection.delete()
    depot.say(session, "And now?", *HELLO)
    Turn.objects.filter(session=session, number=1).update(ran_with={})
    Turn.objects.filter(session=session, number=3).update(state="STOPPED")
    page = html(client.get(reverse("replay-new"), {"session": session.pk}))
    assert "1 of 3 turns can be played frozen." in page
    assert "older format" in page
    assert "stopped before its end" in page
    assert "“Gone”, which is gone" in page
    assert f"?session={session.pk}&amp;way=until" in page


def test_what_is_chosen_is_replayed(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    chosen = {"against": "published", "way": "live", "runs": "free", "cap": "5000"}
    response = client.post(reverse("replay-new") + f"?session={session.pk}", chosen)
    replay = Replay.objects.get()
    assert response.headers["Location"] == reverse("replay", args=[replay.pk])
    assert (replay.model, replay.tools, replay.until_it_differs) == ("live", "live", False)
    assert (replay.free_running, replay.cap, replay.started_by) == (True, 5000, "ada")
    assert replay.version == depot.agent.published


@pytest.mark.parametrize(
    ("way", "asked"),
    [
        ("frozen", ("recorded", "recorded", False)),
        ("until", ("recorded", "recorded", True)),
        ("model", ("live", "recorded", False)),
    ],
)
def test_each_way_is_what_it_says(
    client: Client, depot: Depot, way: str, asked: tuple[str, str, bool]
) -> None:
    session = depot.parcels()
    address = reverse("replay-new") + f"?session={session.pk}"
    client.post(address, {"against": "draft", "way": way, "runs": "turn"})
    replay = Replay.objects.get()
    assert (replay.model, replay.tools, replay.until_it_differs) == asked


def test_the_sessions_that_fit_a_filter_are_replayed_together(client: Client, depot: Depot) -> None:
    first, second = depot.parcels(), depot.parcels()
    other = make_session()
    make_turn(other)
    page = html(client.get(reverse("sessions"), {"agent": "depot"}))
    assert f"{reverse('replay-new')}?agent=depot" in page
    chosen = {"against": "draft", "way": "frozen", "runs": "turn"}
    client.post(reverse("replay-new") + "?agent=depot", chosen)
    replay = Replay.objects.get()
    assert set(replay.turns.values_list("session", flat=True)) == {first.pk, second.pk}


@pytest.mark.parametrize("query", ["", "?session=999999", "?session=x", "?agent=nobody"])
def test_without_sessions_one_is_led_to_the_list(client: Client, depot: Depot, query: str) -> None:
    response = client.get(reverse("replay-new") + query, follow=True)
    assert response.redirect_chain == [(reverse("sessions"), 302)]
    assert "in the list" in html(response)


def test_sessions_of_several_agents_are_not_replayed_together(client: Client, depot: Depot) -> None:
    session, other = depot.parcels(), make_session()
    query = f"?session={session.pk}&session={other.pk}"
    page = html(client.get(reverse("replay-new") + query, follow=True))
    assert "choose one agent" in page


def test_a_wrong_choice_is_refused_at_its_field(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    address = reverse("replay-new") + f"?session={session.pk}"
    page = html(client.post(address, {"against": "77", "way": "frozen", "runs": "turn"}), 422)
    assert "77 is not one of the available choices" in page
    empty = depot.session()
    address = reverse("replay-new") + f"?session={empty.pk}"
    page = html(client.post(address, {"against": "draft", "way": "frozen", "runs": "turn"}), 422)
    assert "Nothing was answered in it yet." in page
    assert not Replay.objects.exists()


# --- Watched


def test_a_replay_without_a_difference_says_so(client: Client, depot: Depot) -> None:
    replay = replayed(depot.parcels())
    page = html(client.get(reverse("replay", args=[replay.pk])))
    assert "No difference." in page
    assert "hx-trigger" not in page.split('id="replay"')[1].split(">")[0]


def test_turns_that_differ_stand_with_their_first_difference(client: Client, depot: Depot) -> None:
    replay = silent(depot, depot.parcels(), depot.parcels())
    page = html(client.get(reverse("replay", args=[replay.pk])))
    assert page.count("G1 “the customer asks where a parcel is” does not match any more.") == 2
    assert "Where is P-7?" in page
    assert ">Hello<" not in page
    assert "and 2 more" in page
    same = html(client.get(reverse("replay", args=[replay.pk]), {"verdict": "same"}))
    assert ">Hello<" in same
    assert "Where is P-7?" not in same


def test_while_it_runs_the_page_asks_how_far_it_is(client: Client, depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", enqueue=False)
    part = html(client.get(reverse("replay", args=[replay.pk]), headers=HTMX))
    assert part.startswith("<section")
    assert 'hx-trigger="every' in part
    assert "0 of 2 turns." in part
    for action, state in (("pause", "Paused"), ("resume", "Pause"), ("cancel", "Stopped")):
        client.post(reverse(f"replay-{action}", args=[replay.pk]))
        assert state in html(client.get(reverse("replay", args=[replay.pk])))
    replay.refresh_from_db()
    assert replay.state == "stopped"


def test_turns_that_could_not_be_replayed_are_offered_the_next_way(
    client: Client, depot: Depot
) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(ran_with={})
    replay = replayed(session)
    page = html(client.get(reverse("replay", args=[replay.pk])))
    assert "1 turn could not be replayed in this way." in page
    assert "Replay it: Until it differs" in page
    response = client.post(reverse("replay-rest", args=[replay.pk]))
    rest = Replay.objects.exclude(pk=replay.pk).get()
    assert response.headers["Location"] == reverse("replay", args=[rest.pk])
    assert (rest.until_it_differs, rest.total) == (True, 1)


def test_a_capped_replay_goes_on_with_another_cap(client: Client, depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", cap=10, enqueue=False)
    Replay.objects.filter(pk=replay.pk).update(state="stopped", capped=True)
    assert "New cap" in html(client.get(reverse("replay", args=[replay.pk])))
    client.post(reverse("replay-resume", args=[replay.pk]), {"cap": "99"})
    replay.refresh_from_db()
    assert (replay.state, replay.cap, replay.capped) == ("queued", 99, False)


def test_the_list_counts_verdicts_of_the_agent_asked_for(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    silent(depot, session)
    page = html(client.get(reverse("replays"), {"agent": "depot"}))
    assert "1 changed" in page
    assert "1 same" in page
    assert "Recorded tools, live model" in page
    assert "No session of this agent" in html(client.get(reverse("replays"), {"agent": "other"}))


def test_pages_take_the_same_number_of_queries_for_one_turn_and_for_many(
    client: Client, depot: Depot, django_assert_max_num_queries: Any
) -> None:
    sessions = [depot.parcels() for _ in range(4)]
    small, large = silent(depot, sessions[0]), silent(depot, *sessions)
    html(client.get(reverse("replay", args=[small.pk])))
    for replay in (small, large):
        with django_assert_max_num_queries(24):
            html(client.get(reverse("replay", args=[replay.pk])))
        with django_assert_max_num_queries(14):
            html(client.get(reverse("replays")))


# --- One turn


def test_decisions_stand_side_by_side_by_guideline_and_words_last(
    client: Client, depot: Depot
) -> None:
    session = depot.parcels()
    page = html(client.get(turn_address(silent(depot, session), session)))
    assert page.index("On record") < page.index("Played again") < page.index('<h2 id="words"')
    assert "They ask where it is." in page
    assert "find_parcel(number=“P-7”): not considered; before, needs to run." in page
    assert "Lyon" in page  # the recorded result
    assert "<del>" in page
    assert "<ins>" in page
    assert "I cannot <b>say</b>" not in page
    ids = [piece.split('"')[0] for piece in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


def test_a_turn_leads_to_both_audits_and_to_the_next_difference(
    client: Client, depot: Depot
) -> None:
    first, second = depot.parcels(), depot.parcels()
    replay = silent(depot, first, second)
    page = html(client.get(turn_address(replay, first)))
    played = replay.turns.get(session=first, number=2).played
    assert played is not None
    for address in (
        reverse("session-turn", args=[first.pk, 2]),
        reverse("session-turn", args=[played.pk, 2]),
    ):
        assert f'href="{address}"' in page
        assert client.get(address).status_code == 200
    assert f'data-next-difference href="{turn_address(replay, second)}"' in page
    assert "data-previous-difference" not in page
    page = html(client.get(turn_address(replay, second)))
    assert f'data-previous-difference href="{turn_address(replay, first)}"' in page


def test_a_turn_that_could_not_be_replayed_says_why(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    Turn.objects.filter(session=session, number=1).update(ran_with={})
    page = html(client.get(turn_address(replayed(session), session, 1)))
    assert "older format" in page
    assert 'id="accept"' not in page


def test_changes_are_accepted_with_a_reason_and_taken_back(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    replay = silent(depot, session)
    address = reverse("replayed-turn-accept", args=[replay.pk, session.pk, 2])
    page = html(client.post(address, {"difference": ["0"], "reason": " "}), 422)
    assert "Say why this is right" in page
    page = html(
        client.post(address, {"difference": ["0"], "reason": "By phone <too>."}, follow=True)
    )
    assert "By phone &lt;too&gt;." in page
    assert "ada" in page
    assert "must not match in turn 2" in page
    row = AcceptedChange.objects.get()
    undo = reverse("replayed-turn-undo", args=[replay.pk, session.pk, 2, row.pk])
    assert "Taken back" in html(client.post(undo, follow=True))
    assert client.post(undo).status_code == 404


def test_a_turn_of_another_session_or_replay_is_not_there(client: Client, depot: Depot) -> None:
    session, other = depot.parcels(), depot.parcels()
    replay = replayed(session)
    assert client.get(turn_address(replay, other)).status_code == 404
    assert client.get(turn_address(replay, session, 9)).status_code == 404


# --- Edited recordings


def result_address(session: Session) -> str:
    call = session.turns.get(number=2).calls.get()
    return reverse("recorded-result", args=[session.pk, 2, call.uid])


def test_a_recorded_result_is_changed_in_a_new_variant(client: Client, depot: Depot) -> None:
    session = depot.parcels()
    assert "Lyon" in html(client.get(result_address(session)))
    assert result_address(session) in html(
        client.get(reverse("session-turn", args=[session.pk, 2]))
    )
    assert result_address(session) in html(
        client.get(reverse("replay-new"), {"session": session.pk})
    )
    sent = {"kind": "result", "data": '{"place": "Oslo"}', "title": "In Oslo"}
    page = html(client.post(result_address(session), sent, follow=True))
    assert "In Oslo" in page
    variant = Variant.objects.get()
    assert variant.edits[0]["data"] == {"place": "Oslo"}
    assert variant.created_by == "ada"
    again = html(client.get(result_address(session), {"variant": variant.pk}))
    assert "Oslo" in again
    sent = {"kind": "timeout", "data": "", "variant": variant.pk}
    client.post(result_address(session), sent)
    variant.refresh_from_db()
    assert [edit["kind"] for edit in variant.edits] == ["timeout"]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"kind": "result", "data": '{"place": '}, "is no JSON"),
        ({"kind": "result", "data": " "}, "Write what the tool answers"),
        ({"kind": "odd"}, "An edit is one of"),
        ({"kind": "timeout", "title": "x" * 201}, "At most 200 characters"),
    ],
)
def test_what_cannot_be_a_result_is_refused_beside_the_field(
    client: Client, depot: Depot, sent: dict[str, str], words: str
) -> None:
    session = depot.parcels()
    page = html(client.post(result_address(session), sent), 422)
    assert words in page
    assert sent.get("data", "").strip().replace('"', "&quot;") in page
    assert not Variant.objects.exists()


def test_a_variant_is_renamed_relieved_of_edits_replayed_and_deleted(
    client: Client, depot: Depot
) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get()
    variant = save_edit(session, Edit(call=call, kind="timeout"))
    place = [session.pk, variant.pk]
    page = html(client.get(reverse("variants", args=[session.pk])))
    assert "It did not answer before its deadline." in page
    client.post(reverse("variant", args=place), {"title": "Late"})
    variant.refresh_from_db()
    assert variant.title == "Late"
    page = html(client.post(reverse("variant", args=place), {"title": " "}), 422)
    assert "Give it a name." in page
    query = {"session": session.pk, "variant": variant.pk}
    form = html(client.get(reverse("replay-new"), query))
    assert f'<option value="{variant.pk}" selected>Late</option>' in form
    assert 'value="model" aria-describedby="about-model" checked' in form
    client.post(reverse("variant-edit-delete", args=[*place, call.uid]))
    variant.refresh_from_db()
    assert variant.edits == []
    client.post(reverse("variant-delete", args=place))
    assert not Variant.objects.exists()


def test_a_call_that_is_not_of_this_turn_has_no_result_to_change(
    client: Client, depot: Depot
) -> None:
    session = depot.parcels()
    uid = session.turns.get(number=2).calls.get().uid
    for number, call in ((1, uid), (2, "nothing")):
        address = reverse("recorded-result", args=[session.pk, number, call])
        assert client.get(address).status_code == 404


# --- Deleted


def test_a_replay_is_deleted_with_what_it_played_once_that_is_confirmed(
    client: Client, depot: Depot
) -> None:
    session = depot.parcels()
    replay = silent(depot, session)
    assert Session.objects.filter(purpose="replay").exists()
    address = reverse("replay-delete", args=[replay.pk])
    assert "Delete replay #" in html(client.get(address))
    assert Replay.objects.exists()

    told = html(client.post(address, follow=True))
    assert f"Replay #{replay.pk} is deleted." in told
    assert list(Session.objects.values_list("pk", flat=True)) == [session.pk]


def test_a_replay_that_runs_is_not_deleted(client: Client, depot: Depot) -> None:
    replay = start_replay([depot.parcels()], against="published", enqueue=False)
    told = html(client.post(reverse("replay-delete", args=[replay.pk]), follow=True))
    assert "It is still running: cancel it first." in told
    assert Replay.objects.exists()
