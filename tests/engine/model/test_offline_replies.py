"""What the offline model writes: results in words, actions as direct speech, exact requests, honest limits."""

import json

import pytest

from engine.errors import ToolError, ToolErrorKind
from engine.events import Event, ToolFinishedEvent
from engine.model.base import ComposeReply, Situation
from engine.model.offline.phrasing import clauses
from engine.model.offline.rendering import money, noun_of, rendered, scalar
from engine.model.offline.turning import ability
from engine.spec import Agent, Guideline
from engine.trail import InsightKind, ToolInsight
from tests.engine.agents import history
from tests.engine.model.offline_talk import model, rule, tool, wants


def said(action: str) -> str:
    """What the agent says for an action."""
    return " ".join(clause.text for clause in clauses(action) if clause.text)


@pytest.mark.parametrize(
    ("action", "speech"),
    [
        ("tell them that their card is blocked", "Your card is blocked."),
        (
            "Tell the customer that they can return it within 30 days.",
            "You can return it within 30 days.",
        ),
        ("explain that the customer's order has been delayed", "Your order has been delayed."),
        ("say that you cannot give legal advice", "I cannot give legal advice."),
        ("inform the guest that we close at 9", "We close at 9."),
        ("tell them that their shoes are on their way", "Your shoes are on their way."),
        ('say "Welcome to Bella Vista!"', "Welcome to Bella Vista!"),
        ("greet them", "Hello!"),
        (
            "welcome them to Nimbus Air and ask how you can help",
            "Hello, and welcome to Nimbus Air! How can I help?",
        ),
        ("ask for their order number", "Could you tell me your order number?"),
        ("ask what went wrong", "Could you tell me what went wrong?"),
        ("ask whether they want a receipt", "Could you tell me whether you want a receipt?"),
        ("ask them to send a sick note", "Please send a sick note."),
        ("tell them to call 112 immediately", "Please call 112 immediately."),
        ("offer to book a table", "Would you like me to book a table?"),
        ("offer a discount of 10 %", "I can offer you a discount of 10 %."),
        ("apologise for the delay", "I am sorry about the delay."),
        (
            "apologize and thank them for their patience",
            "I am sorry about that. Thank you for your patience.",
        ),
        ("recommend the house wine", "I suggest the house wine."),
        ("wish them a quick recovery", "I wish you a quick recovery."),
        (
            "refuse to share salaries of other people",
            "I am sorry, I cannot share salaries of other people.",
        ),
        (
            "warn them that fees may apply and that their balance is low",
            "Fees may apply and your balance is low.",
        ),
        ("hand over to a human agent", "A human colleague should take this over from here."),
        ("never mention competitors", ""),
        ("be brief and friendly", ""),
        ("look up the balance", ""),
        ("if they are angry, offer a voucher", ""),
        ("block the card, then apologise for the trouble", "I am sorry about the trouble."),
        ("say hello; ask for their name", "Hello! Could you tell me your name?"),
        ("", ""),
    ],
)
def test_an_action_becomes_direct_speech(action: str, speech: str) -> None:
    assert said(action) == speech


@pytest.mark.parametrize(
    ("condition", "phrase"),
    [
        ("the customer asks about their balance", "ask about your balance"),
        ("the patient wants to make an appointment", "want to make an appointment"),
        ("When the user has lost their card", "have lost your card"),
        ("the balance is below 200", ""),
        ("", ""),
    ],
)
def test_a_condition_becomes_what_the_customer_may_do(condition: str, phrase: str) -> None:
    assert ability(condition) == phrase


def finished(name: str, data: object, **arguments: object) -> ToolFinishedEvent:
    return ToolFinishedEvent(call="1", tool=name, arguments=arguments, data=data)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("get_balance", {"balance": 1204.5, "currency": "EUR"}, "The balance is €1,204.50."),
        ("get_balance", 120, "The balance is 120."),
        (
            "get_balance",
            {"balance": 5, "currency": "EUR", "as_of": "2026-11-21"},
            "The balance is €5.00 (as of 21 November 2026).",
        ),
        ("find_books", [], "I found no books."),
        ("find_books", {"books": []}, "I found no books."),
        ("search_docs", "You can reset it in the settings.", "You can reset it in the settings."),
        ("is_open", True, "Is open: yes."),
        (
            "cancel_booking",
            {"message": "Your booking was cancelled.", "id": 7},
            "Your booking was cancelled.",
        ),
        ("list_shops", ["Lisbon", "Porto"], "Shops:\n- Lisbon\n- Porto"),
        (
            "list_payees",
            [{"id": "P1", "name": "Leo Park", "last_paid": "2026-10-01"}],
            "Payees:\n- **Leo Park** – last paid 1 October 2026",
        ),
    ],
)
def test_results_are_told_in_words(name: str, data: object, text: str) -> None:
    assert rendered(finished(name, data)) == text


def test_long_lists_are_cut_and_counted() -> None:
    text = rendered(finished("list_books", [{"title": f"Book {n}"} for n in range(25)]))

    assert text.count("\n- **Book") == 10
    assert text.endswith("- … and 15 more")


def test_technical_ids_are_left_out_where_there_is_more_to_say() -> None:
    text = rendered(
        finished("get_user", {"id": "7f3", "user_id": 9, "name": "Ann", "city": "Porto"})
    )

    assert "7f3" not in text
    assert "Ann" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (None, "unknown"),
        (0.5, "0.50"),
        (1234567, "1,234,567"),
        (2026, "2026"),
        ("2026-11-21", "21 November 2026"),
        ("2026-11-21T19:30:00Z", "21 November 2026 at 19:30 UTC"),
        ("in_progress", "in progress"),
        ("2026-99-99", "2026-99-99"),
    ],
)
def test_single_values_are_written_for_people(value: object, text: str) -> None:
    assert scalar(value) == text


def test_money_is_written_with_its_currency() -> None:
    assert [money(-3, "EUR"), money(1500, "CHF"), money(900.4, "JPY")] == [
        "-€3.00",
        "1,500.00 CHF",
        "900 JPY",
    ]


def test_a_tool_is_named_by_what_it_gives() -> None:
    names = ["get_account_balance", "lookupOrder", "search-flights", "transfer_money"]

    assert [noun_of(name) for name in names] == ["account balance", "order", "flights", "outcome"]


BALANCE = tool("get_balance", "Read the balance")
SEND = tool("send_money", "Send money", wants("amount", "number"), consequential=True)
BANKLIKE = (
    rule(
        "balance", "the customer asks about their balance", "tell them the balance", "get_balance"
    ),
    rule("send", "the customer wants to send money", "send it and confirm it", "send_money"),
    rule("fees", "the customer asks about fees", "explain the fees"),
    rule("style", "", "be friendly"),
)


def answer(
    *events: Event | str, matched: tuple[str, ...] = (), insights: tuple[ToolInsight, ...] = ()
) -> tuple[str, dict[str, bool]]:
    """(the reply, label → follows) when these guidelines are in force."""
    agent = Agent(slug="a", name="A", guidelines=BANKLIKE, tools=(BALANCE, SEND))
    in_force: tuple[Guideline, ...] = tuple(g for g in BANKLIKE if g.uid in matched)
    past = history(*events)
    situation = Situation(agent=agent, history=past, turn=past[-1].turn)
    found = model().answer(
        ComposeReply(situation=situation, guidelines=in_force, insights=insights)
    )
    return found["reply"], {entry["guideline"]: entry["follows"] for entry in found["follows"]}


def test_the_reply_rests_on_this_turns_results() -> None:
    reply, follows = answer(
        "balance?",
        finished("get_balance", {"balance": 12, "currency": "EUR"}),
        matched=("balance",),
    )

    assert reply == "The balance is €12.00."
    assert follows == {"G1": True}


def test_a_failed_tool_is_admitted_and_never_called_a_success() -> None:
    error = ToolError(
        kind=ToolErrorKind.TIMEOUT,
        public="The bank took too long to answer.",
        detail="Traceback: x",
    )
    failed = ToolFinishedEvent(call="1", tool="send_money", arguments={"amount": 5}, error=error)

    reply, follows = answer("send 5", failed, matched=("send",))

    assert reply == "I am sorry, I could not send the money (The bank took too long to answer)."
    assert follows == {"G2": False}


def insight(label: str, **more: object) -> ToolInsight:
    given: dict[str, object] = {"kind": InsightKind.MISSING, "iteration": 1, **more}
    return ToolInsight(tool="send_money", parameter=label, label=label, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("missing", "question"),
    [
        (insight("amount"), "Could you tell me the amount?"),
        (
            insight("amount", examples=(50, 100)),
            "Could you tell me the amount (for example 50 or 100)?",
        ),
        (
            insight("card", choices=("debit", "credit")),
            "Could you tell me the card (debit or credit)?",
        ),
        (
            insight("city", description="Which city you live in"),
            "Could you tell me which city you live in?",
        ),
        (
            insight("birth date", significance="this protects your account"),
            "Could you tell me the birth date? This protects your account.",
        ),
    ],
)
def test_exactly_what_is_missing_is_asked_for(missing: ToolInsight, question: str) -> None:
    reply, _ = answer("send money", matched=("send",), insights=(missing,))

    assert reply == question


def test_several_missing_things_are_asked_for_as_a_list() -> None:
    reply, _ = answer(
        "send money", matched=("send",), insights=(insight("amount"), insight("recipient"))
    )

    assert reply == "To send money, could you give me the following?\n- Amount\n- Recipient"


def test_an_invalid_value_is_named_with_its_reason() -> None:
    wrong = insight("amount", kind=InsightKind.INVALID, value=-5, reason="must be at least 1")

    reply, _ = answer("send -5", matched=("send",), insights=(wrong,))

    assert reply == "I cannot use “-5” as the amount: it must be at least 1. Could you correct it?"


def test_hidden_insights_stay_hidden() -> None:
    reply, _ = answer("send", matched=("send",), insights=(insight("route", hidden=True),))

    assert "route" not in reply


def test_without_a_guideline_the_reply_says_so_and_what_the_agent_is_for() -> None:
    reply, follows = answer("tell me a joke", matched=("style",))

    assert reply == (
        "I have no guidance for that here, so I cannot help with it. "
        "I can help when you ask about your balance, want to send money or ask about fees."
    )
    assert follows == {"G4": True}


def test_courtesies_are_answered_without_a_guideline() -> None:
    assert answer("thank you!")[0] == "You are welcome."
    assert answer("hello")[0].startswith("Hello! I can help when you")


def test_facts_that_nothing_backs_are_not_made_up() -> None:
    reply, follows = answer("what are the fees?", matched=("fees",))

    assert reply == "I understand, but I have nothing to add on this here."
    assert follows == {"G3": False}


def test_several_calls_of_one_tool_are_told_apart() -> None:
    reply, _ = answer(
        "send 5 and 6",
        finished("send_money", {"status": "sent"}, amount=5),
        finished("send_money", {"status": "sent"}, amount=6),
        matched=("send",),
    )

    assert reply == "**5**: The status is sent.\n\n**6**: The status is sent."


def test_what_was_found_before_is_told_again() -> None:
    reply, follows = answer(
        "balance?",
        finished("get_balance", {"balance": 12}),
        "and is that all?",
        matched=("balance",),
    )

    assert reply == "The balance is 12."
    assert follows == {"G1": True}


def test_the_reply_keeps_to_a_length() -> None:
    reply, _ = answer(
        "balance?", finished("get_balance", {"note": "x " * 50_000}), matched=("balance",)
    )

    assert len(json.dumps(reply)) < 8_000
