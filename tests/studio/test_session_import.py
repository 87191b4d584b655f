"""A session that was exported is taken in again: it tells the same as before, and nothing of it runs."""

import copy
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from engine.events import Answer
from studio.audit import audit
from studio.models import (
    Agent,
    AgentVersion,
    ChoicesOffered,
    Customer,
    Event,
    PromptPart,
    Session,
    Tool,
    Turn,
)
from studio.operations.agents import publish, snapshot
from studio.operations.branches import branch_from, regenerate
from studio.operations.confirmations import (
    ConfirmationRefusedError,
    answer_confirmation,
    pending_confirmations,
)
from studio.operations.recordings import recordings_of, turns_to_replay
from studio.operations.session_document import DocumentRefusedError
from studio.operations.session_export import export_session
from studio.operations.session_import import import_session
from studio.operations.sessions import SessionError, change_mode
from studio.operations.turns import (
    MessageRefusedError,
    TurnNotRetriableError,
    retry_turn,
    send_message,
)
from studio.uploads import LARGEST_DOCUMENT
from tests.studio.conversations import Recorded, make_bank, make_person
from tests.studio.factories import ask_to_confirm

pytestmark = pytest.mark.django_db


RAN_WITH: dict[str, Any] = {
    "format": 1,
    "variables": {"n": 1},
    "customer": "c-1",
    "judging": "small",
    "writing": "large",
    "batch_size": 20,
    "judging_style": "reasoned",
}


@pytest.fixture
def recorded() -> Recorded:
    """Two turns with an entry of every kind, and a word outside of turns."""
    recorded = Recorded(make_bank("asks for the balance", "is angry"))
    recorded.session.customer = Customer.objects.create(uid="c-1", name="Ada", variables={"n": 1})
    recorded.session.title = "Balances"
    recorded.session.save()
    first = recorded.turn(
        reply_source={"composition": "strict", "responses": ["c1:1"], "because": "It fits."},
        limit_reached="iterations: 3",
        prompt_tokens=12,
        completion_tokens=3,
        ran_with=RAN_WITH,
    )
    recorded.match(first, 0, because="They asked.", score=0.9, explained_afterwards=True)
    recorded.match(first, 1, "dropped", dropped_by=recorded.uid(0), relation="has_priority_over")
    value = {"name": "of", "value": 7, "source": "inferred", "evidence": "", "verified": False}
    recorded.decide(first, "NEEDS_TO_RUN", call="c1", arguments=[{**value, "offset": None}])
    recorded.decide(first, "CANNOT_RUN", missing=["of"], invalid=["to"])
    recorded.insight(first, "of", label="account", examples=[1, 2])
    result = {"data": {"x": [1, None]}, "metadata": {"m": 1}, "canned_responses": ["You have 7."]}
    recorded.call(first, "c1", arguments={"of": 7}, result=result, guidelines=[recorded.uid()])
    error = {"kind": "timeout", "public": "it took too long", "detail": "15 s"}
    recorded.call(first, "c2", "failed", arguments={}, error=error)
    schema = PromptPart.objects.create(key="s1", text='{"type": "object"}')
    asked = {"schema": schema, "settings": {"t": 0}, "cached_tokens": 2, "probability": 0.75}
    recorded.ask_model(first, "m1", 0, 200, **asked)
    offered = {"tool": "get_balance", "choices": {"of": [7, "giro"]}, "because": ""}
    ChoicesOffered.objects.create(turn=first, started_at=recorded.now, **offered)
    recorded.answer(first, "You have 7.")
    recorded.event(None, "message", "operator", text="May I help?")
    recorded.turn("And now?", state="FAILED", error="It broke.", reference="abc")
    return recorded


@pytest.fixture
def document(recorded: Recorded) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(export_session(recorded.session, by="grace").text)
    return value


def told(session: Session) -> list[dict[str, Any]]:
    turns = session.line.turns.select_related("version", "session").order_by("number")
    return [audit(turn, prompts=True) for turn in turns]


def test_every_turn_tells_the_same_after_the_round_trip(recorded: Recorded) -> None:
    text = export_session(recorded.session, by="grace").text

    imported = import_session(text)

    assert told(imported.session) == told(recorded.session)
    assert not imported.made_agent
    session = imported.session
    assert (session.title, session.customer) == ("Balances", recorded.session.customer)
    assert session.created_at == recorded.session.created_at
    events = zip(session.events.all(), recorded.session.events.all(), strict=True)
    for copied, event in events:
        assert (copied.offset, copied.kind, copied.source) == (
            event.offset,
            event.kind,
            event.source,
        )
        assert copied.created_at == event.created_at
        assert copied.data.items() >= event.data.items()
    assert session.imported_from.startswith(f"#{recorded.session.pk}, Guideline Studio")
    assert "grace" in session.imported_from
    again = json.loads(export_session(session, by="grace").text)
    assert again["versions"] == json.loads(text)["versions"]
    assert again["parts"] == json.loads(text)["parts"]


def test_what_a_turn_is_played_again_with_comes_along(recorded: Recorded) -> None:
    imported = import_session(export_session(recorded.session, by="grace").text)

    turn = imported.session.turns.get(number=1)
    assert turn.ran_with == RAN_WITH
    assert [(row.choices, row.because) for row in turn.choices_offered.all()] == [
        ({"of": [7, "giro"]}, "")
    ]
    assert [call.probability for call in turn.model_calls.all()] == [0.75]


def test_which_connection_a_turn_asked_stays_in_its_studio(recorded: Recorded) -> None:
    Turn.objects.filter(number=1).update(ran_with={**RAN_WITH, "connection": "Secret lab"})

    text = export_session(recorded.session, by="grace").text

    assert "Secret lab" not in text
    assert import_session(text).session.turns.get(number=1).ran_with == RAN_WITH


def test_a_document_of_the_first_version_is_read(document: dict[str, Any]) -> None:
    document["version"] = 1
    for turn in document["sessions"][0]["turns"]:
        del turn["ran_with"], turn["choices_offered"]
        for call in turn["model_calls"]:
            del call["probability"]

    session = import_session(json.dumps(document)).session

    recordings = recordings_of(session, turns_to_replay(session))
    assert "older format" in recordings[0].obstacle()


def test_twice_the_same_document_gives_two_sessions(document: dict[str, Any]) -> None:
    first, second = (import_session(json.dumps(document)).session for _ in range(2))

    assert first.pk != second.pk
    assert told(first) == told(second)
    assert Customer.objects.count() == 1


def test_a_published_version_is_found_again_by_what_it_says(recorded: Recorded) -> None:
    published = publish(recorded.agent, note="", by=None)
    Turn.objects.update(version=published)

    imported = import_session(export_session(recorded.session, by="x").text)

    assert [turn["version"] for turn in told(imported.session)] == [1, 1]
    assert AgentVersion.objects.filter(fingerprint=published.fingerprint).count() == 2


def test_in_another_studio_the_agent_is_made_as_a_draft_without_the_tools_it_lacks(
    recorded: Recorded,
) -> None:
    text = export_session(recorded.session, by="x").text
    before = told(recorded.session)
    slug = recorded.agent.slug
    Session.objects.all().delete()
    Agent.objects.all().delete()
    Tool.objects.all().delete()
    Customer.objects.all().delete()
    PromptPart.objects.all().delete()

    imported = import_session(text)

    assert imported.made_agent
    assert imported.missing_tools == ("get_balance",)
    agent = imported.session.agent
    assert (agent.slug, agent.published) == (slug, None)
    assert agent.guidelines.count() == 2
    assert agent.versions.filter(number__isnull=False).count() == 0
    assert told(imported.session) == before
    assert imported.session.customer is not None
    assert imported.session.customer.variables == {"n": 1}


def test_a_customer_of_the_same_uid_and_another_name_is_somebody_else(
    recorded: Recorded, document: dict[str, Any]
) -> None:
    document["customer"]["name"] = "Bob"

    customer = import_session(json.dumps(document)).session.customer

    assert customer is not None
    assert customer.name == "Bob"
    assert customer.uid != "c-1"


def test_a_tree_comes_with_its_branches(recorded: Recorded) -> None:
    branch = branch_from(recorded.session, 1)
    recorded.session = branch
    recorded.answer(recorded.turn("Another way"), "Well.")
    text = export_session(branch, by="x", tree=True).text

    imported = import_session(text)

    root, copied = imported.sessions
    assert imported.session == copied
    assert copied.root == root
    assert copied.ancestry == [[root.pk, *branch.ancestry[0][1:]]]
    assert told(copied) == told(branch)
    assert len(told(copied)) == 2


def test_what_is_redacted_can_be_imported(recorded: Recorded) -> None:
    from studio.operations.redaction import EVERYTHING

    text = export_session(recorded.session, by="x", rules=EVERYTHING).text

    session = import_session(text).session

    assert session.customer is not None
    assert session.customer.name == "«customer 1»"
    assert session.customer.uid != "c-1"
    assert [turn["state"] for turn in told(session)] == ["FINISHED", "FAILED"]


# --- Nothing of it runs


def test_nothing_can_be_added_to_it_but_it_can_be_branched(document: dict[str, Any]) -> None:
    session = import_session(json.dumps(document)).session

    with pytest.raises(MessageRefusedError, match="Branch from it"):
        send_message(session, text="Hello")
    with pytest.raises(TurnNotRetriableError, match="Branch from it"):
        retry_turn(session.turns.get(number=2))
    with pytest.raises(SessionError, match="Branch from it"):
        change_mode(session, "manual")
    assert session.turns.unfinished().count() == 0
    branch = branch_from(session, 1)
    assert send_message(branch, text="Going on", enqueue=False) is not None
    again = regenerate(session, 2, enqueue=False)
    assert again.session.imported_from == ""
    assert again.session.tool_mode == "live"


def test_a_call_that_waited_for_a_word_waits_no_longer(recorded: Recorded) -> None:
    ask_to_confirm(recorded.turn("Send it"), "w1")
    text = export_session(recorded.session, by="x").text
    assert pending_confirmations(recorded.session) != []

    session = import_session(text).session

    assert pending_confirmations(session) == []
    with pytest.raises(ConfirmationRefusedError):
        answer_confirmation(session, "w1", Answer.CONFIRMED)


def test_no_call_waits_for_ever(recorded: Recorded) -> None:
    later = timezone.now() + timedelta(days=9)
    event = ask_to_confirm(recorded.turn("Send it"), "w1")
    event.data["asked_at"] = later.isoformat()
    event.save()

    with pytest.raises(DocumentRefusedError, match="asked for before now"):
        import_session(export_session(recorded.session, by="x").text)


def test_a_document_says_nothing_about_prompts_and_versions_that_are_here(
    recorded: Recorded, document: dict[str, Any]
) -> None:
    forged = copy.deepcopy(document)
    (key,) = [key for key, text in document["parts"].items() if "Judge" in text]
    forged["parts"][key] = "Something else."
    name = document["versions"][0]["fingerprint"]
    forged["versions"][0]["spec"]["guidelines"][0]["condition"] = "asks for nothing"

    session = import_session(json.dumps(forged)).session

    assert not PromptPart.objects.filter(key=key, text="Something else.").exists()
    assert told(session)[0]["model_calls"][0]["messages"][0]["content"] == "Something else."
    assert snapshot(recorded.agent).fingerprint == name
    assert told(recorded.session)[0]["matches"][0]["condition"] == "asks for the balance"
    assert told(session)[0]["matches"][0]["condition"] == "asks for nothing"
    assert told(session)[0]["fingerprint"] != name


# --- What is refused


def _turn(document: dict[str, Any], **changes: Any) -> None:
    document["sessions"][0]["turns"][0] |= changes


def _call(document: dict[str, Any], **changes: Any) -> None:
    document["sessions"][0]["turns"][0]["calls"][0] |= changes


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda d: d.update(version=3), "version"),
        (lambda d: d.pop("agent"), "agent"),
        (lambda d: d.update(surprise=1), "surprise"),
        (lambda d: d["agent"].update(slug="a b"), "agent.slug"),
        (lambda d: d["versions"][0]["spec"].pop("name"), "versions[0].spec.name"),
        (lambda d: _turn(d, state="QUEUED"), "sessions[0].turns[0].state"),
        (lambda d: _turn(d, version="nowhere"), "sessions[0].turns[0].version"),
        (lambda d: _turn(d, number=2), "sessions[0].turns"),
        (lambda d: _turn(d, created_at="2026-01-01"), "sessions[0].turns[0].created_at"),
        (lambda d: _turn(d, ran_with={"format": 1}), "sessions[0].turns[0].ran_with.variables"),
        (lambda d: _turn(d, ran_with={"format": 9}), "sessions[0].turns[0].ran_with.format"),
        (
            lambda d: _turn(d, ran_with=RAN_WITH | {"batch_size": 0}),
            "sessions[0].turns[0].ran_with.batch_size",
        ),
        (
            lambda d: _turn(d, ran_with=RAN_WITH | {"judging_style": "?"}),
            "sessions[0].turns[0].ran_with.judging_style",
        ),
        (lambda d: _turn(d, prompt_tokens=2**40), "sessions[0].turns[0].prompt_tokens"),
        (lambda d: _call(d, state="running"), "sessions[0].turns[0].calls[0].state"),
        (lambda d: _call(d, uid="c" * 40), "sessions[0].turns[0].calls[0].uid"),
        (lambda d: _call(d, result={"data": 1}), "sessions[0].turns[0].calls[0].result.metadata"),
        (
            lambda d: d["sessions"][0]["events"][0]["data"].pop("text"),
            "sessions[0].events[0].data.message.text",
        ),
        (lambda d: d["sessions"][0]["events"][0].update(turn=9), "sessions[0].events[0].turn"),
        (lambda d: d["sessions"][0].update(ancestry=[[77, 1, 1]]), "sessions[0].ancestry"),
        (lambda d: d.update(parts={}), "sessions[0].turns[0].model_calls[0].messages[0]"),
        (lambda d: d.update(session=77), "session"),
        (lambda d: d.update(sessions=[]), "sessions"),
    ],
)
def test_what_is_wrong_is_named_by_its_place_and_nothing_is_stored(
    document: dict[str, Any], spoil: Callable[[dict[str, Any]], Any], place: str
) -> None:
    spoil(document)
    before = (Session.objects.count(), Event.objects.count(), AgentVersion.objects.count())

    with pytest.raises(DocumentRefusedError) as refused:
        import_session(json.dumps(document))

    assert place in [problem.place for problem in refused.value.problems]
    after = (Session.objects.count(), Event.objects.count(), AgentVersion.objects.count())
    assert after == before


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        (b"[1, 2]", "no exported session"),
        (b'{"format": "something else"}', "no exported session"),
        (b"[" * 100_000, "not JSON"),
        (b" " * (LARGEST_DOCUMENT + 1), "more than 20 MB"),
    ],
)
def test_what_is_no_document_is_refused_in_words(data: bytes, why: str) -> None:
    with pytest.raises(DocumentRefusedError, match=why):
        import_session(data)


@pytest.mark.parametrize("text", ["nul \x00", "half \ud800"])
def test_characters_that_cannot_be_stored_are_refused(document: dict[str, Any], text: str) -> None:
    document["sessions"][0]["title"] = text

    with pytest.raises(DocumentRefusedError):
        import_session(json.dumps(document))


# --- The page and the command


def upload(client: Client, document: Any) -> Any:
    file = SimpleUploadedFile("s.json", json.dumps(document).encode(), "application/json")
    return client.post(reverse("session-import"), {"file": file})


def signed_in(*roles: str) -> Client:
    client = Client()
    client.force_login(make_person(*roles))
    return client


def test_the_page_takes_a_file_and_leads_to_the_session(document: dict[str, Any]) -> None:
    client = signed_in("qa")
    assert "Import" in client.get(reverse("sessions")).content.decode()

    response = upload(client, document)

    session = Session.objects.latest("pk")
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    page = client.get(response.headers["Location"]).content.decode()
    assert "The session is here." in page
    assert "Imported: it stays as it was recorded" in page
    assert 'name="text"' not in page
    assert reverse("turn-regenerate", args=[session.pk, 2]) in page
    shown = client.get(reverse("session-turn", args=[session.pk, 1]))
    assert "They asked." in shown.content.decode()


def test_the_page_says_what_is_wrong_where(document: dict[str, Any]) -> None:
    _turn(document, state="RUNNING")

    response = upload(signed_in("qa"), document)

    assert response.status_code == 422
    assert "sessions[0].turns[0].state" in response.content.decode()


def test_the_page_asks_for_a_file_and_refuses_one_that_is_too_large() -> None:
    client = signed_in("qa")
    large = SimpleUploadedFile("s.json", b" " * (LARGEST_DOCUMENT + 5_000_000))

    nothing = client.post(reverse("session-import"))
    too_large = client.post(reverse("session-import"), {"file": large})

    assert nothing.status_code == 422
    assert "Choose the JSON file" in nothing.content.decode()
    assert too_large.status_code == 422
    assert "has more than" in too_large.content.decode()


def test_making_an_agent_takes_the_role_to_write_guidelines(document: dict[str, Any]) -> None:
    document["agent"]["slug"] = "new-one"

    refused = upload(signed_in("qa"), document)
    taken = upload(signed_in("author"), document)

    assert refused.status_code == 422
    assert "There is no agent “new-one” here" in refused.content.decode()
    assert taken.status_code == 302
    assert Agent.objects.get(slug="new-one").sessions.count() == 1


def test_the_page_is_for_whoever_converses() -> None:
    assert signed_in().get(reverse("session-import")).status_code == 404
    assert signed_in("qa").put(reverse("session-import")).status_code == 405


def test_the_command_takes_what_the_other_one_wrote(recorded: Recorded, tmp_path: Any) -> None:
    file = tmp_path / "session.json"
    call_command("export_session", str(recorded.session.pk), f"--output={file}", "--tree")

    call_command("import_session", str(file))

    assert told(Session.objects.latest("pk")) == told(recorded.session)
    file.write_text("{}")
    with pytest.raises(CommandError, match="Nothing was imported"):
        call_command("import_session", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_session", str(tmp_path / "none.json"))
