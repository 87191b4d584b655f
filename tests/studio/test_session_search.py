"""Finding sessions by what was said in them. Runs on SQLite and, by other settings, on PostgreSQL."""

import importlib

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from studio.models import Event, Session
from studio.session_search import Asked, saying
from tests.studio.conversations import Recorded

pytestmark = pytest.mark.django_db

SQLITE = connection.vendor == "sqlite"


def found(text: str) -> set[str]:
    return {event.data["text"] for event in saying(Asked.read(text))}


def said(*texts: str) -> Recorded:
    told = Recorded()
    for text in texts:
        told.turn(text)
    return told


def test_words_are_found_by_how_they_begin_whatever_their_capitals_and_order() -> None:
    said("What is the balance of my savings account?", "Where is my parcel?")
    balance = {"What is the balance of my savings account?"}
    for text in ("balance", "BALANCE", "bal", "account savings", "sav acc bal", "account?", " b  "):
        assert found(text) == balance, text
    assert found("is my") == balance | {"Where is my parcel?"}
    assert found("balance parcel") == set()
    assert found("alance") == set()


def test_accents_are_folded_both_ways() -> None:
    said("Le café est fermé", "The resume is ready")
    for text in ("cafe", "CAFÉ", "cafe\u0301", "ferme"):
        assert found(text) == {"Le café est fermé"}, text
    assert found("résumé") == {"The resume is ready"}


def test_other_scripts_are_found_too() -> None:
    said("Где мой заказ?", "我的订单 在哪里", "주문은 어디에 있나요", "ΠΟΥ είναι")
    assert found("заказ") == {"Где мой заказ?"}
    assert found("我的订单") == {"我的订单 在哪里"}
    assert found("주문") == {"주문은 어디에 있나요"}
    assert found("που") == {"ΠΟΥ είναι"}


def test_words_in_quotes_stand_together() -> None:
    said("transfer money now", "money to transfer")
    assert found('"transfer money"') == {"transfer money now"}
    assert found('"transfer mon"') == set()
    assert found('"transfer mon') == {"transfer money now"}  # still being typed
    assert found('now "transfer money"') == {"transfer money now"}
    assert found("transfer money") == {"transfer money now", "money to transfer"}


def test_what_punctuation_parts_is_found_by_each_part() -> None:
    text = "Write to ann.smith@acme.com about order A-1007_b, 12.50 € (see https://acme.com/x?y=1)"
    said(text)
    for asked in (
        "acme",
        "smith",
        "1007",
        "ann.smith@acme.com",
        "A-1007",
        "12.5",
        "acme.com/x",
        "y=1",
    ):
        assert found(asked) == {text}, asked


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "*", '"', '""', '" "', "'", "\\", "a'b", "a\\", "AND", "OR NOT", "NEAR(a b)", "a:*", "text:a",
        "(", ")", "a & | !", "-a", "^a", "a <-> b", "{a}", "%s %d", "\u0000", ";--", "a" * 5000, "ß", "ﬁ",
        "\u0301", "हिन्दी", "👍", "½", "Ⅷ", "\ud800",
    ],
)  # fmt: skip
def test_nothing_that_people_type_is_an_error(text: str) -> None:
    said("a b text")
    list(saying(Asked.read(text))) if Asked.read(text) else None


class AnyText(TestCase):
    @given(st.text(max_size=40))
    @settings(max_examples=60, deadline=None)
    def test_nothing_at_all_is_an_error(self, text: str) -> None:
        asked = Asked.read(text)
        if asked:
            saying(asked).exists()
        assert "".join(piece for piece, _ in asked.marked(text)) == " ".join(text.split())


def test_messages_of_everybody_are_searched_and_nothing_else() -> None:
    told = Recorded()
    turn = told.turn("of the customer")
    told.answer(turn, "of the agent")
    told.event(None, "message", "operator", text="of the operator")
    told.event(turn, "message.part", "agent", text="of a piece")
    told.event(turn, "status", "agent", text="of the status")
    assert found("of") == {"of the customer", "of the agent", "of the operator"}


def test_however_a_message_is_written_changed_or_deleted_the_search_knows() -> None:
    told = said("first words")
    event = Event.objects.get()
    Event.objects.bulk_create(
        Event(
            session=told.session,
            offset=50 + n,
            kind="message",
            source="agent",
            data={"text": f"bulk {n}"},
        )
        for n in range(3)
    )
    assert found("bulk") == {"bulk 0", "bulk 1", "bulk 2"}
    Event.objects.filter(pk=event.pk).update(data={"text": "second words"})
    assert found("first") == set()
    assert found("second") == {"second words"}
    event.data = {"text": "third words"}
    event.save()
    assert found("second") == set()
    assert found("third") == {"third words"}
    Event.objects.filter(pk=event.pk).update(kind="status")
    assert found("third") == set()
    Event.objects.filter(pk=event.pk).update(kind="message")
    assert found("third") == {"third words"}
    Session.objects.all().delete()
    assert found("bulk") == set()
    assert found("third") == set()


def test_a_message_without_words_and_a_monstrous_one_are_stored() -> None:
    told = Recorded()
    told.event(None, "message", "agent")
    told.event(None, "message", "agent", text="")
    told.event(None, "message", "agent", text=" ".join(f"{n}x{n * 7919:x}" for n in range(200_000)))
    told.event(None, "message", "agent", text="y" * 3_000_000)
    assert len(found("0x0")) == 1


@pytest.mark.skipif(not SQLITE, reason="PostgreSQL keeps its index itself")
def test_the_search_table_holds_the_same_as_the_messages() -> None:
    said("one", "two").answer(Recorded().turn("three"), "four")
    with connection.cursor() as cursor:
        cursor.execute("SELECT rowid, text FROM studio_message_search ORDER BY rowid")
        held = cursor.fetchall()
    messages = Event.objects.filter(kind="message").order_by("pk")
    assert held == [(event.pk, event.data["text"]) for event in messages]


@pytest.mark.django_db(transaction=True)
def test_messages_from_before_the_search_are_found_and_it_can_be_taken_back() -> None:
    migration = importlib.import_module("studio.migrations.0009_message_search")
    with connection.schema_editor() as editor:
        migration.remove_search(None, editor)
    said("told before")
    with connection.schema_editor() as editor:
        migration.add_search(None, editor)
    assert found("told") == {"told before"}
    said("told after")
    assert found("told") == {"told before", "told after"}


# --- where the words stand


def marked(text: str, asked: str) -> str:
    return "".join(f"[{piece}]" if hit else piece for piece, hit in Asked.read(asked).marked(text))


def test_the_hits_are_marked_as_they_were_written() -> None:
    assert marked("The café is\nclosed", "CAFE clo") == "The [café] is [closed]"
    assert marked("a transfer of money, transfer money", '"transfer money"') == (
        "a transfer of money, [transfer money]"
    )
    assert marked("nothing here", "else") == "nothing here"


def test_of_a_long_message_the_part_around_the_first_hit_is_shown() -> None:
    shown = marked("before " * 100 + "the parcel " + "after " * 100, "parcel")
    assert "[parcel]" in shown
    assert shown.startswith("… before")
    assert shown.endswith("after …")
    assert len(shown) < 260
    assert marked("x" * 500, "xx").endswith(" …")
