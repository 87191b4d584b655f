"""A session as a file: what stands in it, what is left out, and the page that reads by itself."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import models
from django.test import Client
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.models import (
    ChoicesOffered,
    Customer,
    Event,
    ModelConnection,
    PromptPart,
    Session,
    Turn,
)
from studio.operations.branches import branch_from
from studio.operations.redaction import EVERYTHING, Redactor, Rules
from studio.operations.session_document import TRAIL, columns
from studio.operations.session_export import ExportRefusedError, export_session
from studio.operations.session_reading import read_document
from studio.operations.session_redaction import redacted_document
from tests.studio.conversations import Recorded, make_bank, make_person

pytestmark = pytest.mark.django_db

MAIL, PHONE, CARD = "ada@example.org", "+49 30 1234567", "4111 1111 1111 1111"


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(make_person("qa"))
    return client


@pytest.fixture
def recorded() -> Recorded:
    """One turn in which values stand wherever people, models and tools write."""
    recorded = Recorded(make_bank(f"the customer writes to {MAIL}", "always <b>bold</b>"))
    customer = Customer.objects.create(
        uid="c-1", name="Ada Lovelace", variables={"city": "Turin", "limit": 98765}
    )
    recorded.session.customer = customer
    recorded.session.title = "Ada asks"
    recorded.session.save()
    turn = recorded.turn(f"I am Ada from Turin, {MAIL}, call {PHONE}. <script>alert(1)</script>")
    recorded.match(turn, 0, because=f"They named {MAIL}.")
    recorded.match(turn, 1, "not_matched", because="Nothing to do with it.")
    argument = {
        "name": "account",
        "value": CARD,
        "source": "customer",
        "evidence": f"card {CARD}",
        "verified": True,
        "offset": 1,
    }
    recorded.decide(turn, "NEEDS_TO_RUN", call="c1", arguments=[argument], because="Asked.")
    recorded.call(
        turn,
        "c1",
        arguments={"account": CARD},
        result={"data": {MAIL: 12.5, "limit": 98765}, "metadata": {"trace": "internal-7"}},
        log=f"looked up {CARD}",
    )
    PromptPart.objects.create(key="p2", text=json.dumps({"said": f'from "Turin" {MAIL}'}))
    recorded.ask_model(turn, "m1", 0, 5, messages=[["system", ["p2"]], ["user", ["p2"]]])
    recorded.answer(turn, f"Dear Ada, it went to {MAIL.upper()}.")
    return recorded


def test_the_document_holds_the_conversation_the_trail_and_the_agent(recorded: Recorded) -> None:
    document = json.loads(export_session(recorded.session, by="grace").text)

    assert (document["format"], document["version"]) == ("guideline-studio-session", 2)
    assert document["exported_by"] == "grace"
    assert document["customer"]["variables"] == {"city": "Turin", "limit": 98765}
    (turn,) = document["sessions"][0]["turns"]
    assert turn["calls"][0]["result"]["data"] == {MAIL: 12.5, "limit": 98765}
    assert document["versions"][0]["spec"]["guidelines"][1]["condition"] == "always <b>bold</b>"
    assert list(document["parts"].values()) == [json.dumps({"said": f'from "Turin" {MAIL}'})]
    assert read_document(json.dumps(document)).session == recorded.session.pk


def test_keys_of_connections_are_in_no_export(recorded: Recorded) -> None:
    connection = ModelConnection.objects.create(name="Big", model="gpt-x", api_key="sk-very-secret")
    recorded.session.connection = connection
    recorded.session.save()

    assert "sk-very-secret" not in export_session(recorded.session, by="x").text
    assert "Big" not in export_session(recorded.session, by="x").text


def test_a_branch_brings_what_it_goes_on_from_and_a_tree_every_branch(recorded: Recorded) -> None:
    branch = branch_from(recorded.session, 1)
    recorded.session = branch
    recorded.answer(recorded.turn("And now?"), "Now this.")

    along = json.loads(export_session(branch, by="x").text)
    whole = json.loads(export_session(branch, by="x", tree=True).text)

    assert [turn["number"] for turn in along["sessions"][0]["turns"]] == [1, 2]
    assert along["sessions"][0]["ancestry"] == []
    assert [len(session["turns"]) for session in whole["sessions"]] == [1, 1]
    assert whole["sessions"][1]["ancestry"][0][:2] == [branch.root_id, 1]


def test_a_running_turn_is_waited_for(recorded: Recorded) -> None:
    recorded.turn(state="RUNNING")

    with pytest.raises(ExportRefusedError, match="Turn 2 is still running"):
        export_session(recorded.session, by="x")


def test_the_number_of_queries_does_not_grow_with_the_turns(
    recorded: Recorded, django_assert_num_queries: Any
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as few:
        export_session(recorded.session, by="x")
    for number in range(5):
        turn = recorded.turn(f"More {number}")
        recorded.match(turn, 0)
        recorded.call(turn, "c")
    with django_assert_num_queries(len(few)):
        export_session(recorded.session, by="x")


# --- Leaving out


def test_everything_left_out_is_replaced_everywhere_by_the_same_label(recorded: Recorded) -> None:
    exported = export_session(recorded.session, by="grace", rules=EVERYTHING)
    text, document = exported.text, exported.document

    for value in (MAIL, MAIL.upper(), PHONE, CARD, "Ada", "Lovelace", "Turin", "98765", "c-1"):
        assert value not in text, value
    assert "internal-7" not in text
    (turn,) = document["sessions"][0]["turns"]
    said = document["sessions"][0]["events"][0]["data"]["text"]
    assert said.startswith("I am «customer 2» from «customer variable 1», «e-mail 1», call «phone")
    assert turn["matches"][0]["because"] == "They named «e-mail 1»."
    assert turn["decisions"][0]["arguments"][0]["value"] == "«account number 1»"
    assert turn["calls"][0]["arguments"] == {"account": "«account number 1»"}
    assert turn["calls"][0]["result"]["data"]["«e-mail 1»"] == 12.5
    assert turn["model_calls"][0]["messages"] == []
    assert document["parts"] == {}
    assert document["redacted"]["email"] == 1
    read_document(text)


def test_what_was_known_of_the_customer_then_is_left_out_too(recorded: Recorded) -> None:
    knew = {"city": "Genoa", "mail": "grace@example.org"}
    ran_with = {"format": 1, "variables": knew, "customer": "c-1", "judging": "m", "writing": "m"}
    ran_with |= {"batch_size": 20, "judging_style": "reasoned"}
    turn = recorded.turn("I moved from Genoa.", ran_with=ran_with)
    offered = {"choices": {"to": [f"to {MAIL}", "Genoa"]}, "because": f"as {MAIL} is"}
    ChoicesOffered.objects.create(turn=turn, tool="send", started_at=recorded.now, **offered)

    everything = export_session(recorded.session, by="x", rules=EVERYTHING)
    told = everything.document["sessions"][0]["turns"][1]
    assert (told["ran_with"]["variables"], told["ran_with"]["customer"]) == ({}, "")
    for value in ("Genoa", "grace@example.org", MAIL, "c-1"):
        assert value not in everything.text, value
    read_document(everything.text)

    mails = export_session(recorded.session, by="x", rules=Rules(emails=True))
    told = mails.document["sessions"][0]["turns"][1]
    assert told["ran_with"]["variables"] == {"city": "Genoa", "mail": "«e-mail 2»"}
    assert told["choices_offered"][0]["choices"] == {"to": ["to «e-mail 1»", "Genoa"]}
    assert MAIL not in mails.text


def test_values_are_found_in_prompts_as_json_writes_them(recorded: Recorded) -> None:
    rules = Rules(words=('from "Turin"',))

    parts = export_session(recorded.session, by="x", rules=rules).document["parts"]

    assert list(parts.values()) == [json.dumps({"said": f"«word 1» {MAIL}"}, ensure_ascii=False)]


def test_a_value_across_two_pieces_of_a_prompt_is_found(recorded: Recorded) -> None:
    PromptPart.objects.create(key="a", text="write to ada@exa")
    PromptPart.objects.create(key="b", text="mple.org now")
    recorded.ask_model(recorded.turn(), "m2", 0, 5, messages=[["user", ["a", "b"]]])

    parts = export_session(recorded.session, by="x", rules=Rules(emails=True)).document["parts"]

    assert "write to «e-mail 1» now" in parts.values()


@pytest.mark.parametrize(
    "text",
    [
        "on 2026-11-22 at 12:30:05.123456",
        "on 22.11.2026 or 11/22/2026",
        "12.50 EUR, 1,234,567.89 and 0.30000000000000004",
        "order 4711, room 12, version 1.2.3",
    ],
)
def test_dates_amounts_and_short_numbers_stay(text: str) -> None:
    assert Redactor(EVERYTHING).text(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("IBAN DE89 3704 0044 0532 0130 00.", "IBAN «account number 1»."),
        (
            "DE89370400440532013000 and DE89 3704 0044 0532 0130 00",
            "«account number 1» and «account number 1»",
        ),
        ("4111-1111-1111-1111", "«account number 1»"),
        ("(030) 123 45 67", "«phone number 1»"),
        ("call 555-123-4567", "call «phone number 1»"),
        ("reference 123456789", "reference «number 1»"),
        ("o'neil@mail.example.co.uk!", "«e-mail 1»!"),
    ],
)
def test_numbers_and_addresses_are_known_by_their_form(text: str, left: str) -> None:
    assert Redactor(EVERYTHING).text(text) == left


def test_every_text_of_every_row_is_looked_through(recorded: Recorded) -> None:
    """Whatever column is added: what people, models and tools write into it is left out, too."""
    names = {  # that refer to something, or come from a fixed list
        *("guideline", "dropped_by", "added_by", "relation", "model_call", "call", "uid", "tool"),
        *("parameter", "state", "kind", "question", "model", "prompt_version", "request_key"),
        *("stop_reason", "reference", "missing", "invalid", "guidelines", "schema", "messages"),
        *("source", "reply_source", "served", "served_from", "mode", "follows", "tool_mode"),
    }
    models_of: dict[str, type[models.Model]] = {
        **TRAIL,
        "turn": Turn,
        "event": Event,
        "session": Session,
    }
    document = export_session(recorded.session, by="x").document
    session = document["sessions"][0]
    for row, model in _rows_of(session, models_of):
        for field in columns(model):
            if field.name in names or not isinstance(field, models.CharField | models.TextField):
                continue
            row[field.name] = f"see {MAIL}"
    for turn in session["turns"]:
        for call in turn["model_calls"]:
            call["messages"], call["schema"] = [], None

    left = redacted_document(document, Redactor(Rules(emails=True)))

    told = json.dumps(left["sessions"], default=str, indent=1)
    assert [line for line in told.splitlines() if MAIL in line] == []


def _rows_of(
    session: dict[str, Any], models_of: dict[str, Any]
) -> list[tuple[dict[str, Any], Any]]:
    rows = [(session, models_of["session"])]
    for turn in session["turns"]:
        rows.append((turn, models_of["turn"]))
        rows += [(row, model) for name, model in TRAIL.items() for row in turn[name]]
    return rows


_around = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "L", "N", "M"]), max_size=8
).map(lambda text: text.replace("+", "").replace("_", "").replace("@", ""))
_letters = st.text("abcdefgh", min_size=3, max_size=10)
_values = st.one_of(
    st.builds("{}.{}@{}.org".format, _letters, _letters, _letters),
    st.from_regex(r"\+[1-9][0-9]{1,2} [0-9]{3,4} [0-9]{4,6}", fullmatch=True),
    st.from_regex(r"[0-9]{8,19}", fullmatch=True),
    st.from_regex(r"[A-Z]{2}[0-9]{2}( [0-9]{4}){4}", fullmatch=True),
)


@given(value=_values, before=_around, after=_around, data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_value_that_is_left_out_occurs_nowhere(
    value: str, before: str, after: str, data: st.DataObject
) -> None:
    text = f"{before} {value} {after}"
    inside = data.draw(
        st.sampled_from([text, {"a": [text]}, {value: 1}, [json.dumps({"q": text})]])
    )

    left = Redactor(EVERYTHING).value(inside)

    assert value not in json.dumps(left, ensure_ascii=False)


@given(
    word=st.text(min_size=2, max_size=12).map(str.strip).filter(lambda word: len(word) > 1),
    before=st.text(max_size=12),
    after=st.text(max_size=12),
)
@settings(max_examples=300, deadline=None)
def test_a_chosen_word_occurs_nowhere_in_no_case(word: str, before: str, after: str) -> None:
    redactor = Redactor(Rules(words=(word,)))

    left = redactor.text(f"{before}{word}{after} {word.upper()}")

    # The labels are the studio's own words.
    assert word.casefold() not in re.sub("«word [0-9]+»", "\x00", left).casefold() or not _plain(
        word
    )


def _plain(word: str) -> bool:
    """Does it stay one value in upper and lower case? “ß” is “SS”, and there are more."""
    return word.upper().lower() == word.lower() and len(word.casefold()) == len(word)


# --- The page to read


class Addresses(HTMLParser):
    """What a page would load or run, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in {"href", "src", "action", "data", "srcset", "poster", "background"}:
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            assert not name.startswith("on"), name


def exported(client: Client, session: Session, **choices: Any) -> Any:
    address = reverse("session-export", args=[session.pk])
    return client.post(f"{address}?format=html", {"action": "download", **choices})


def test_the_page_stands_by_itself(client: Client, recorded: Recorded) -> None:
    response = exported(client, recorded.session)
    page = response.content.decode()
    found = Addresses()
    found.feed(page)

    assert response.headers["Content-Disposition"] == (
        f'attachment; filename="session-{recorded.session.pk}.html"'
    )
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(found.tags)
    assert all(address.startswith("#") for address in found.addresses)
    assert {address[1:] for address in found.addresses} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_what_people_wrote_is_text_on_the_page(client: Client, recorded: Recorded) -> None:
    page = exported(client, recorded.session).content.decode()

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "always &lt;b&gt;bold&lt;/b&gt;" in page


def test_the_page_tells_why(client: Client, recorded: Recorded) -> None:
    page = exported(client, recorded.session).content.decode()

    for words in ("They named", "Ran", "get_balance", "12.5", "card 4111", "Turn 1"):
        assert words in page
    assert "0.30 s" in page
    assert "Ada Lovelace" in page


def test_the_page_leaves_out_what_is_ticked(client: Client, recorded: Recorded) -> None:
    ticked = dict.fromkeys(
        ("customer", "emails", "phones", "accounts", "numbers", "metadata", "prompts"), "on"
    )
    page = exported(client, recorded.session, **ticked, words="balance").content.decode()

    for value in (MAIL, PHONE, CARD, "Ada", "Lovelace", "Turin", "98765", "internal-7"):
        assert value not in page, value
    assert "«e-mail 1»" in page


def test_by_default_the_page_leaves_out_everything_and_the_json_nothing_with_a_warning(
    client: Client, recorded: Recorded
) -> None:
    address = reverse("session-export", args=[recorded.session.pk])

    page = client.get(address).content.decode()
    other = client.get(f"{address}?format=json").content.decode()

    assert page.count(" checked") == 7 + other.count(" checked")
    assert 'id_emails" checked' in page
    assert 'id_emails" checked' not in other
    assert "this holds everything" in other
    assert "this holds everything" not in page


def test_what_would_be_replaced_is_shown_first(client: Client, recorded: Recorded) -> None:
    address = reverse("session-export", args=[recorded.session.pk])

    page = client.post(address, {"action": "preview", "emails": "on"}).content.decode()

    assert "«e-mail 1»" in page
    assert MAIL in page
    assert "1 value" in page


def test_json_is_downloaded_and_can_be_read_again(client: Client, recorded: Recorded) -> None:
    address = reverse("session-export", args=[recorded.session.pk])

    response = client.post(f"{address}?format=json", {"action": "download", "tree": "on"})

    assert response.headers["Content-Type"] == "application/json"
    assert read_document(response.content).session == recorded.session.pk


def test_the_address_refuses_words_that_are_too_short_strangers_and_running_turns(
    client: Client, recorded: Recorded
) -> None:
    address = reverse("session-export", args=[recorded.session.pk])
    stranger = Client()
    stranger.force_login(make_person())

    assert client.put(address).status_code == 405
    assert stranger.get(address).status_code == 404
    assert client.get(reverse("session-export", args=[10**6])).status_code == 404
    refused = client.post(address, {"action": "download", "words": "x"})
    assert refused.status_code == 422
    assert "has to have 2 to 200 characters" in refused.content.decode()
    recorded.turn(state="QUEUED")
    waiting = client.post(address, {"action": "download"})
    assert waiting.status_code == 422
    assert "Turn 2 is still running" in waiting.content.decode()


def test_the_session_leads_to_its_export(client: Client, recorded: Recorded) -> None:
    page = client.get(reverse("session", args=[recorded.session.pk])).content.decode()

    assert reverse("session-export", args=[recorded.session.pk]) in page


def test_the_command_writes_json_and_pages(recorded: Recorded, tmp_path: Any) -> None:
    file = tmp_path / "s.html"

    call_command(
        "export_session",
        str(recorded.session.pk),
        "--format=html",
        "--leave-out",
        "emails",
        f"--output={file}",
    )

    assert MAIL not in file.read_text()
    assert "Ada" in file.read_text()
    with pytest.raises(CommandError, match="There is no session 999999"):
        call_command("export_session", "999999")
