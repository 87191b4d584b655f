"""Sessions that the studio played by itself stand in no list, count or figure; opened, they say what they are."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from engine.canonical import canonical_json
from engine.events import Answer
from studio.bridge import part_key
from studio.costs import unpriced_lately
from studio.guideline_figures import figures_of as guideline_figures
from studio.guideline_figures import fires_of
from studio.models import (
    Agent,
    ApiToken,
    Event,
    Guideline,
    Replay,
    ReplayedTurn,
    RunCell,
    Session,
    Suite,
    SuiteRun,
    Tool,
    Turn,
)
from studio.operations.agents import publish, snapshot
from studio.operations.branches import (
    branch_from,
    branches_of,
    rehearsal_branch,
    tree_of,
)
from studio.operations.confirmations import ConfirmationRefusedError, answer_confirmation
from studio.operations.flags import set_flag
from studio.operations.played_sessions import forget
from studio.operations.removal import delete_agent
from studio.operations.session_export import export_session
from studio.operations.session_import import import_session
from studio.operations.sessions import SessionError, change_mode
from studio.operations.tool_modes import last_real_result, recorded_outcome
from studio.operations.turns import (
    MessageRefusedError,
    TurnNotRetriableError,
    retry_turn,
    send_message,
)
from studio.session_filters import Filters
from studio.tool_figures import figures_of as tool_figures
from studio.views.branch_rail import branch_rail
from tests.studio.api.calling import Caller
from tests.studio.conversations import Recorded, make_bank
from tests.studio.factories import ask_to_confirm, make_connection, make_session, make_user

pytestmark = pytest.mark.django_db

PLAYED = [Session.Purpose.REPLAY, Session.Purpose.TEST]
GIVEN = {"account": "giro"}


@pytest.fixture(params=PLAYED)
def purpose(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def qa(client: Client) -> User:
    person = make_user("qa", username="quinn")
    client.force_login(person)
    return person


@dataclass
class Both:
    """A chat, and a session that the studio played after it: the same happened in both."""

    agent: Agent
    chat: Session
    played: Session

    @property
    def guideline(self) -> Guideline:
        return self.agent.guidelines.get()


def happened(recorded: Recorded, by: User, word: str) -> None:
    """What lists and figures count, once of each; `word` tells the sessions apart."""
    turn = recorded.turn(f"What is my balance? {word}")
    recorded.match(turn, 0)
    recorded.decide(turn, "NEEDS_TO_RUN", call="c1")
    given = {"arguments": GIVEN, "arguments_key": part_key(canonical_json(GIVEN))}
    recorded.call(turn, "c1", result={"data": word, "metadata": {}}, **given)
    recorded.ask_model(turn, f"m-{word}", 0, 100, model=f"model-{word}", prompt_tokens=10)
    said = recorded.answer(turn, f"It is 12. {word}")
    set_flag(said, f"Look at {word}.", by=by)


@pytest.fixture
def both(purpose: str, qa: User) -> Both:
    agent = make_bank()
    chat, played = Recorded(agent=agent), Recorded(agent=agent)
    connection = make_connection()
    happened(chat, qa, "talked")
    happened(played, qa, "played")
    Session.objects.filter(pk__in=[chat.session.pk, played.session.pk]).update(
        created_by=qa, connection=connection
    )
    Session.objects.filter(pk=played.session.pk).update(
        purpose=purpose, created_by=make_user("author", username="robot")
    )
    for recorded in (chat, played):
        recorded.session.refresh_from_db()
    return Both(agent=agent, chat=chat.session, played=played.session)


def html_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    html = re.sub(r'"[A-Za-z0-9]{64}"', '"token"', response.content.decode())
    return " ".join(html.split())


# --- lists, searches, counts


def test_the_filters_find_chats_alone_unless_another_purpose_is_asked_for(both: Both) -> None:
    assert [row.pk for row in Filters().sessions()] == [both.chat.pk]
    assert [row.pk for row in Filters().sessions(both.played.purpose)] == [both.played.pk]


@pytest.mark.parametrize(
    "query",
    [
        {"q": "balance"},
        {"flag": "open"},
        {"decision": "ran"},
        {"tool": "get_balance"},
        {"since": "2020-01-01"},
    ],
)
def test_every_filter_finds_chats_alone(both: Both, query: dict[str, str]) -> None:
    assert [row.pk for row in Filters.read(query).sessions()] == [both.chat.pk]


def test_the_list_and_its_search_show_chats_alone(client: Client, both: Both) -> None:
    for address in ("/sessions/", "/sessions/?q=balance", "/sessions/?flag=open"):
        html = html_of(client, address)
        assert f'href="/sessions/{both.chat.pk}/' in html
        assert f'href="/sessions/{both.played.pk}/' not in html
    assert "robot" not in html_of(client, "/sessions/")  # nobody who only played is to choose from


def test_without_a_chat_the_list_says_that_there_is_none_yet(client: Client, both: Both) -> None:
    Session.objects.filter(pk=both.chat.pk).update(purpose=both.played.purpose)
    with_played = html_of(client, "/sessions/")
    Session.objects.all().delete()
    assert with_played == html_of(client, "/sessions/")


@pytest.mark.parametrize("place", ["", "sandbox/"])
def test_the_recent_sessions_of_an_agent_are_chats(client: Client, both: Both, place: str) -> None:
    html = html_of(client, f"/agents/{both.agent.slug}/{place}")
    assert f'href="/sessions/{both.chat.pk}/' in html
    assert f'href="/sessions/{both.played.pk}/' not in html


def test_the_home_page_counts_chats_and_says_when_somebody_last_talked(
    client: Client, both: Both
) -> None:
    long_ago = timezone.now() - timedelta(days=400)
    Session.objects.filter(pk=both.chat.pk).update(last_event_at=long_ago)
    before = html_of(client, "/")
    Session.objects.filter(pk=both.played.pk).delete()
    assert before == html_of(client, "/")
    assert "1 session" in before


def test_a_connection_is_used_by_chats(client: Client, both: Both) -> None:
    client.force_login(make_user("developer"))
    address = f"/settings/connections/{both.chat.connection_id}/delete/"
    before = html_of(client, address)
    Session.objects.filter(pk=both.played.pk).delete()
    assert before == html_of(client, address)


def test_the_api_lists_one_purpose_and_says_which(both: Both) -> None:
    api = Caller(ApiToken.make(make_user("qa").pk)[1])

    def listed(query: str = "") -> list[tuple[int, str]]:
        items = api.get(f"/sessions{query}").json()["items"]
        return [(item["id"], item["purpose"]) for item in items]

    assert listed() == [(both.chat.pk, "chat")]
    purpose = both.played.purpose
    assert listed(f"?purpose={purpose}") == [(both.played.pk, purpose)]
    assert api.get(f"/sessions/{both.played.pk}").json()["purpose"] == purpose
    assert api.get("/sessions?purpose=other").status_code == 422


def test_an_agent_that_was_only_tested_is_deleted_without_being_asked_about_sessions(
    both: Both,
) -> None:
    api = Caller(ApiToken.make(make_user("author").pk)[1])
    refused = api.delete(f"/agents/{both.agent.slug}")
    assert (refused.status_code, "1 sessions" in refused.json()["detail"]) == (409, True)
    Session.objects.filter(pk=both.chat.pk).delete()
    assert api.delete(f"/agents/{both.agent.slug}").status_code == 204


# --- figures


def test_tool_figures_count_and_measure_chats(both: Both) -> None:
    figures = tool_figures(Tool.objects.all())["get_balance"]
    assert (figures.calls, figures.measured) == (1, 1)


def test_guideline_figures_are_of_chats(both: Both) -> None:
    figures = guideline_figures(both.guideline)
    assert (figures.evaluated, figures.fired, figures.flags) == (1, 1, 1)
    assert [tool.ran for tool in figures.tools] == [1]
    assert figures.last_fired is not None
    assert figures.last_fired.turn.session_id == both.chat.pk
    assert figures.added is not None
    assert figures.added.turns == 1
    assert fires_of(both.agent, [both.guideline.uid]) == {both.guideline.uid: 1}


def test_models_without_a_price_are_those_of_chats(both: Both) -> None:
    assert [seen["model"] for seen in unpriced_lately()] == ["model-talked"]


# --- the record


def test_what_was_played_is_no_record_for_tools_to_repeat(both: Both) -> None:
    found = recorded_outcome(make_session(both.agent), "get_balance", GIVEN)
    assert found is not None
    assert found.result is not None
    assert found.result["data"] == "talked"
    last = last_real_result(make_session(both.agent), "get_balance")
    assert last is not None
    assert last.turn.session_id == both.chat.pk
    Session.objects.filter(pk=both.chat.pk).delete()
    assert recorded_outcome(both.played, "get_balance", GIVEN) is None
    assert last_real_result(both.played, "get_balance") is None


# --- branches


def test_the_rail_of_a_chat_names_no_branch_that_the_studio_played() -> None:
    recorded = Recorded()
    recorded.turn()
    recorded.turn("And now?")
    chat = recorded.session
    chat.refresh_from_db()
    rehearsal = rehearsal_branch(chat, 1)
    other = branch_from(chat, 1)
    assert [row.pk for row in branches_of(chat)] == [chat.pk, other.pk]
    assert [(row.session.pk, row.letter) for row in branch_rail(chat)] == [
        (chat.pk, "A"),
        (other.pk, "B"),
    ]
    assert [row.current for row in branch_rail(rehearsal)] == [False, False]


def test_a_chat_that_goes_on_from_what_was_played_stands_in_the_rail() -> None:
    recorded = Recorded()
    recorded.turn()
    chat = recorded.session
    chat.refresh_from_db()
    rehearsal = rehearsal_branch(chat, 0)
    alone = Recorded(agent=recorded.agent)
    alone.session = rehearsal
    alone.turn("The same, played.")
    rehearsal.refresh_from_db()
    going_on = branch_from(rehearsal, 1)
    assert going_on.purpose == Session.Purpose.CHAT
    assert [row.session.pk for row in branch_rail(going_on)] == [chat.pk, going_on.pk]


def test_a_chat_that_goes_on_from_what_was_played_is_exported_whole(qa: User) -> None:
    recorded = Recorded()
    recorded.turn()
    Session.objects.filter(pk=recorded.session.pk).update(purpose=Session.Purpose.TEST)
    recorded.session.refresh_from_db()
    going_on = branch_from(recorded.session, 1)
    assert [row.pk for row in tree_of(going_on)] == [recorded.session.pk, going_on.pk]
    for asked in (going_on, recorded.session):
        document = export_session(asked, by="x", tree=True)
        imported = import_session(document.text, by=qa)
        assert [turn.number for turn in imported.session.line.turns] == [1]
        assert {row.purpose for row in imported.sessions} == {Session.Purpose.CHAT}


# --- opened


def replay_of(turn: Turn, played: Session, **options: bool) -> Replay:
    agent = turn.session.agent
    version = agent.published or publish(agent, note="", by=None)
    replay = Replay.objects.create(agent=agent, against="published", version=version, **options)
    ReplayedTurn.objects.create(
        replay=replay, session=turn.session, turn=turn, number=turn.number, played=played
    )
    return replay


def run_of(agent: Agent, session: Session) -> SuiteRun:
    suite = Suite.objects.create(agent=agent, name="Every day")
    run = SuiteRun.objects.create(suite=suite, scenarios=[{"uid": "s1", "title": "Asks twice"}])
    RunCell.objects.create(
        run=run, scenario="s1", version=snapshot(agent), repeat=1, session=session
    )
    return run


def test_a_replay_says_what_it_replays_and_leads_back(client: Client, qa: User) -> None:
    recorded = Recorded()
    turn = recorded.turn()
    played = rehearsal_branch(recorded.session, 0)
    replay_of(turn, played)
    html = html_of(client, f"/sessions/{played.pk}/")
    assert f'A replay of <a href="/sessions/{recorded.session.pk}/?turn=1#turn-1">turn 1' in html
    assert "against version 1; what stands before it is as it was recorded." in html
    replay = Replay.objects.get()
    assert f'href="/replays/{replay.pk}/{recorded.session.pk}/1/">See what changed</a>.' in html
    assert 'name="text"' not in html  # there is nothing to write with


def test_a_free_running_replay_says_so(client: Client, qa: User) -> None:
    recorded = Recorded()
    played = Recorded(agent=recorded.agent)
    played.turn()
    Session.objects.filter(pk=played.session.pk).update(purpose=Session.Purpose.REPLAY)
    replay_of(recorded.turn(), played.session, free_running=True)
    html = html_of(client, f"/sessions/{played.session.pk}/")
    assert f'A replay of <a href="/sessions/{recorded.session.pk}/">' in html
    assert "every turn went on from what the replay itself had said" in html
    assert f'href="/replays/{Replay.objects.get().pk}/">See what changed</a>.' in html


def test_a_test_run_says_of_which_scenario(client: Client, qa: User) -> None:
    recorded = Recorded()
    recorded.turn()
    Session.objects.filter(pk=recorded.session.pk).update(purpose=Session.Purpose.TEST)
    run = run_of(recorded.agent, recorded.session)
    html = html_of(client, f"/sessions/{recorded.session.pk}/")
    assert "A test run of the scenario “<bdi>Asks twice</bdi>” of <bdi>Every day</bdi>" in html
    assert f'in <a href="/runs/{run.pk}/">run {run.pk}</a>' in html


def test_without_its_replay_it_still_says_who_played_it(client: Client, both: Both) -> None:
    html = html_of(client, f"/sessions/{both.played.pk}/")
    assert "This was played by the studio. Branch from a turn to go on." in html


# --- only read


def test_nothing_is_added_to_it(both: Both) -> None:
    turn = both.played.turns.get()
    Turn.objects.filter(pk=turn.pk).update(state=Turn.State.FAILED)
    turn.refresh_from_db()
    ask_to_confirm(turn, "c9")
    before = Event.objects.count()
    attempts: list[tuple[type[Exception], Callable[[], object]]] = [
        (MessageRefusedError, lambda: send_message(both.played, text="Hello")),
        (MessageRefusedError, lambda: send_message(both.played, text="Hello", source="operator")),
        (TurnNotRetriableError, lambda: retry_turn(turn)),
        (SessionError, lambda: change_mode(both.played, "manual")),
        (
            ConfirmationRefusedError,
            lambda: answer_confirmation(both.played, "c9", Answer.CONFIRMED),
        ),
    ]
    for refusal, attempt in attempts:
        with pytest.raises(refusal, match=r"played by the studio\. Branch from it to go on"):
            attempt()
    assert Event.objects.count() == before


def test_what_waits_in_it_has_no_buttons(client: Client, both: Both) -> None:
    ask_to_confirm(both.played.turns.get(), "c9")
    html = html_of(client, f"/sessions/{both.played.pk}/")
    assert 'id="confirm-c9"' in html
    assert 'value="confirmed"' not in html


def test_a_branch_from_it_is_a_chat_that_can_be_written_to(client: Client, both: Both) -> None:
    response = client.post(f"/sessions/{both.played.pk}/branches/", {"from_turn": "1"})
    branch = Session.objects.latest("pk")
    assert (response.status_code, branch.purpose) == (302, "chat")
    assert send_message(branch, text="And my card?", enqueue=False) is not None


# --- removed


def test_a_replay_takes_the_sessions_that_it_kept_with_it(qa: User) -> None:
    recorded = Recorded()
    turn = recorded.turn()
    gone, needed, of_another = (rehearsal_branch(recorded.session, 0) for _ in range(3))
    replay, other = replay_of(turn, gone), replay_of(turn, of_another)
    ReplayedTurn.objects.create(
        replay=replay, session=recorded.session, turn=turn, number=2, played=needed
    )
    alone = Recorded(agent=recorded.agent)
    alone.session = needed
    alone.turn()
    needed.refresh_from_db()
    branch_from(needed, 1)
    forget(replay)
    left = set(Session.objects.filter(purpose="replay").values_list("pk", flat=True))
    assert left == {needed.pk, of_another.pk}
    assert list(Replay.objects.all()) == [other]
    assert Session.objects.filter(pk=recorded.session.pk).exists()


def test_a_session_that_a_chat_began_with_outlives_its_run(qa: User) -> None:
    recorded = Recorded()
    recorded.turn()
    Session.objects.filter(pk=recorded.session.pk).update(purpose=Session.Purpose.TEST)
    recorded.session.refresh_from_db()
    going_on = branch_from(recorded.session, 1)
    forget(run_of(recorded.agent, recorded.session))
    assert not SuiteRun.objects.exists()
    assert [turn.number for turn in going_on.line.turns] == [1]


def test_a_run_takes_its_conversations_with_it(qa: User) -> None:
    recorded = Recorded()
    recorded.turn()
    Session.objects.filter(pk=recorded.session.pk).update(purpose=Session.Purpose.TEST)
    forget(run_of(recorded.agent, recorded.session))
    assert not Session.objects.exists()
    assert Suite.objects.count() == 1


def test_an_agent_goes_with_its_replays_and_suites(qa: User) -> None:
    recorded = Recorded()
    turn = recorded.turn()
    replay_of(turn, rehearsal_branch(recorded.session, 0))
    run_of(recorded.agent, recorded.session)
    delete_agent(recorded.agent)
    assert not Replay.objects.exists()
    assert not Suite.objects.exists()
    assert not Agent.objects.exists()
