"""Arguments that the offline model reads out of messages, results and variables, through the engine's own checks."""

from typing import Any

import pytest

from engine.arguments import check_arguments
from engine.canonical import JsonObject
from engine.events import BriefingEvent, Event, MessageEvent, Source, ToolFinishedEvent
from engine.model.base import InferToolCalls, Situation
from engine.provenance import Grounds
from engine.spec import Agent, ParameterSource, Tool
from engine.trail import ArgumentSource
from tests.engine.agents import history
from tests.engine.model.offline_talk import model, one_of, rule, tool, wants


def inferred(
    asked: Tool, *events: Event | str, variables: JsonObject | None = None, action: str = "do it"
) -> JsonObject:
    """The model's answer about the tool; the last event is what the customer says now."""
    guideline = rule("g", f"the customer wants to {asked.description.lower()}", action, asked.name)
    agent = Agent(slug="a", name="A", guidelines=(guideline,), tools=(asked,))
    past = history(*events)
    situation = Situation(agent=agent, history=past, turn=past[-1].turn, variables=variables or {})
    question = InferToolCalls(situation=situation, tool=asked, guidelines=(guideline,))
    answer = model().answer(question)
    grounds = Grounds(history=past, variables=variables or {}, guidelines=(guideline,))
    for call in answer["calls"]:
        for parameter in asked.parameters:
            claim = call[parameter.name]
            if claim is not None and claim["source"] != "inferred":
                traced = grounds.trace(parameter, claim["value"], claim)
                assert traced.source == claim["source"], f"{claim} is not what the engine finds"
                assert traced.verified
    return answer


def calls(asked: Tool, *events: Event | str, **more: Any) -> list[JsonObject]:
    found = [
        {name: claim["value"] for name, claim in call.items() if claim is not None}
        for call in inferred(asked, *events, **more)["calls"]
    ]
    for arguments in found:
        assert not check_arguments(asked, arguments).invalid
    return found


TABLE = tool(
    "book_table",
    "Book a table",
    wants("guests", "integer"),
    wants("date", "date"),
    wants("time", "time"),
)
FLIGHT = tool(
    "search_flights",
    "Search flights",
    wants("origin", "string", "City of departure"),
    wants("destination", "string", "City of arrival"),
    wants("departure_date", "date"),
    wants("passengers", "integer", required=False, default=1),
)
CONVERT = tool(
    "convert",
    "Convert money",
    wants("amount", "number"),
    wants("from_currency", "string"),
    wants("to_currency", "string"),
)
PIZZA = tool(
    "order_pizza",
    "Order a pizza",
    wants("size", one_of("small", "medium", "large")),
    wants("toppings", {"type": "array", "items": {"type": "string"}}, required=False),
    wants("quantity", "integer", required=False, default=1),
)
ORDER = tool(
    "get_order",
    "Show an order",
    wants("order_id", "string", "The order number", examples=("ORD-1234",)),
)
PARCEL = tool("track", "Track a parcel", wants("order_id", "integer"))
LEAVE = tool(
    "request_leave",
    "Request vacation",
    wants("start_date", "date"),
    wants("end_date", "date"),
    wants("reason", "string", required=False),
)
WEATHER = tool(
    "weather",
    "Forecast the weather",
    wants("city", "string"),
    wants("unit", one_of("celsius", "fahrenheit"), required=False),
)
BOOK = tool("find_book", "Find a book", wants("title", "string"))
INVOICE = tool(
    "send_invoice", "Send an invoice", wants("email", "email"), wants("invoice_number", "string")
)
TRANSFER = tool(
    "transfer_money",
    "Transfer money",
    wants("amount", "number"),
    wants("recipient", "string"),
    wants("from_account", one_of("checking", "savings"), required=False),
    consequential=True,
)
HOTEL = tool(
    "book_hotel",
    "Book a hotel room",
    wants("city", "string"),
    wants("check_in", "date"),
    wants("nights", "integer"),
    wants("guests", "integer"),
)
LOAN = tool(
    "loan_quote",
    "Quote a loan",
    wants("amount", "number", "Amount to borrow"),
    wants("months", "integer", "Duration in months"),
    wants("income", "number", "Monthly income"),
)
NEWSLETTER = tool(
    "subscribe",
    "Subscribe to the newsletter",
    wants("email", "string"),
    wants("weekly", "boolean", required=False),
)
ADDRESS = tool(
    "move",
    "Update the address",
    wants(
        "address",
        {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "required": ["city"],
        },
    ),
)
BOOKS = tool(
    "list_books",
    "List books",
    wants("limit", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, required=False),
    wants("genre", one_of("crime", "fantasy", "science_fiction"), required=False),
)


@pytest.mark.parametrize(
    ("asked", "message", "expected"),
    [
        (
            TABLE,
            "a table for 4 people tomorrow at 7pm please",
            [{"guests": 4, "date": "2026-11-22", "time": "19:00"}],
        ),
        (
            TABLE,
            "can I book a table for two on Friday evening at 8?",
            [{"guests": 2, "date": "2026-11-27", "time": "20:00"}],
        ),
        (
            TABLE,
            "reserve for 6 persons on 3 December at 19:30",
            [{"guests": 6, "date": "2026-12-03", "time": "19:30"}],
        ),
        (TABLE, "I would like a table tomorrow", [{"date": "2026-11-22"}]),
        (
            FLIGHT,
            "I want to fly from Berlin to Madrid next Friday",
            [{"origin": "Berlin", "destination": "Madrid", "departure_date": "2026-11-27"}],
        ),
        (
            FLIGHT,
            "flights to new york from london on 2026-12-24 for 2 passengers",
            [
                {
                    "origin": "london",
                    "destination": "new york",
                    "departure_date": "2026-12-24",
                    "passengers": 2,
                }
            ],
        ),
        (FLIGHT, "fly to Rome", [{"destination": "Rome"}]),
        (
            CONVERT,
            "convert 250 pounds to euros",
            [{"amount": 250, "from_currency": "GBP", "to_currency": "EUR"}],
        ),
        (
            CONVERT,
            "how much is $1,500.50 in yen?",
            [{"amount": 1500.5, "from_currency": "USD", "to_currency": "JPY"}],
        ),
        (
            CONVERT,
            "what are 2k swiss francs in dollars",
            [{"amount": 2000, "from_currency": "CHF", "to_currency": "USD"}],
        ),
        (
            PIZZA,
            "two large pizzas with ham, olives and mushrooms",
            [{"size": "large", "toppings": ["ham", "olives", "mushrooms"], "quantity": 2}],
        ),
        (PIZZA, "a small one please", [{"size": "small"}]),
        (ORDER, "where is my order ORD-4711?", [{"order_id": "ORD-4711"}]),
        (ORDER, "where is order 12345", [{"order_id": "12345"}]),
        (ORDER, "where is my order?", [{}]),
        (PARCEL, "status of order #88123 please", [{"order_id": 88123}]),
        (
            LEAVE,
            "I want vacation from 1 December to 5 December",
            [{"start_date": "2026-12-01", "end_date": "2026-12-05"}],
        ),
        (
            LEAVE,
            "vacation from 7 to 11 December please",
            [{"start_date": "2026-12-07", "end_date": "2026-12-11"}],
        ),
        (
            LEAVE,
            "can I take off from monday until wednesday because my sister gets married",
            [
                {
                    "start_date": "2026-11-23",
                    "end_date": "2026-11-25",
                    "reason": "my sister gets married",
                }
            ],
        ),
        (WEATHER, "weather in Paris and in London", [{"city": "Paris"}, {"city": "London"}]),
        (
            WEATHER,
            "what is the weather like in san francisco tomorrow in fahrenheit",
            [{"city": "san francisco", "unit": "fahrenheit"}],
        ),
        (WEATHER, "will it rain today?", [{}]),
        (BOOK, "do you have The Hobbit?", [{"title": "The Hobbit"}]),
        (BOOK, "is there a copy of dune available", [{"title": "dune"}]),
        (BOOK, 'I am looking for "Pride and Prejudice"', [{"title": "Pride and Prejudice"}]),
        (
            INVOICE,
            "please send invoice INV-2026-11 to ann@example.org",
            [{"email": "ann@example.org", "invoice_number": "INV-2026-11"}],
        ),
        (
            TRANSFER,
            "send 50 to Ann and 30 to Bob",
            [{"amount": 50, "recipient": "Ann"}, {"amount": 30, "recipient": "Bob"}],
        ),
        (
            TRANSFER,
            "transfer € 1.200,50 to Maria Lopez from my savings",
            [{"amount": 1200.5, "recipient": "Maria Lopez", "from_account": "savings"}],
        ),
        (
            TRANSFER,
            "i want to send two hundred dollars to leo",
            [{"amount": 200, "recipient": "leo"}],
        ),
        (TRANSFER, "I want to send money", [{}]),
        (
            HOTEL,
            "a room in Lisbon from 10 December for 3 nights for 2 guests",
            [{"city": "Lisbon", "check_in": "2026-12-10", "nights": 3, "guests": 2}],
        ),
        (
            LOAN,
            "I want to borrow 20,000 euros for 36 months, I earn 3500 a month",
            [{"amount": 20000, "months": 36, "income": 3500}],
        ),
        (
            NEWSLETTER,
            "sign me up: joe@mail.com, weekly please",
            [{"email": "joe@mail.com", "weekly": True}],
        ),
        (NEWSLETTER, "joe@mail.com but not weekly", [{"email": "joe@mail.com", "weekly": False}]),
        (
            ADDRESS,
            "my new address is 12 Main Street, city: Springfield",
            [{"address": {"street": "12 Main Street", "city": "Springfield"}}],
        ),
        (BOOKS, "show me 5 science fiction books", [{"limit": 5, "genre": "science_fiction"}]),
        (
            tool("find_article", "Search the help", wants("query", "string")),
            "how do I reset it?",
            [{"query": "how do I reset it?"}],
        ),
        (
            tool(
                "meet", "Make an appointment", wants("doctor", "string"), wants("when", "date-time")
            ),
            "with Dr. Chen on Tuesday at 10am",
            [{"doctor": "Dr. Chen", "when": "2026-11-24T10:00"}],
        ),
        (
            tool("set_timer", "Set a timer", wants("duration", "duration")),
            "set a timer for an hour and a half",
            [{"duration": "PT1H30M"}],
        ),
        (
            tool("block", "Block a card", wants("card_type", one_of("debit", "credit"))),
            "my credti card was stolen",
            [{"card_type": "credit"}],
        ),
        (
            tool("rate", "Rate the visit", wants("stars", "integer", "1 to 5")),
            "I give it five stars",
            [{"stars": 5}],
        ),
    ],
)
def test_typed_arguments_are_read_from_what_the_customer_writes(
    asked: Tool, message: str, expected: list[JsonObject]
) -> None:
    assert calls(asked, message) == expected


@pytest.mark.parametrize(
    ("message", "day"),
    [
        ("ein Termin am 3. Dezember bitte", "2026-12-03"),
        ("une table pour le 5 décembre", "2026-12-05"),
        ("para mañana, por favor", "2026-11-22"),
        ("morgen", "2026-11-22"),
    ],
)
def test_dates_are_read_in_other_languages_too(message: str, day: str) -> None:
    visit = tool("plan_visit", "Plan a visit", wants("day", "date"))

    assert calls(visit, message) == [{"day": day}]


SEND = tool(
    "send", "Send money", wants("payee_id", "string"), wants("amount", "number"), consequential=True
)
PAYEES = ToolFinishedEvent(
    call="1",
    tool="list_payees",
    arguments={},
    data={
        "payees": [
            {"id": "P1", "name": "Leo Park"},
            {"id": "P2", "name": "Ann Wu"},
            {"id": "P3", "name": "Bob Ray"},
        ]
    },
)


def asked_for(*labels: str, needed_for: str) -> tuple[Event, Event]:
    told = [{"what": label, "needed for": needed_for} for label in labels]
    said = f"Could you tell me the {' and the '.join(labels)}?"
    return (
        BriefingEvent(guidelines=("g",), content={"ask for": told}),
        MessageEvent(source=Source.AGENT, text=said),
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("50 to Leo", [{"payee_id": "P1", "amount": 50}]),
        (
            "send 50 to Ann and 30 to Bob",
            [{"payee_id": "P2", "amount": 50}, {"payee_id": "P3", "amount": 30}],
        ),
        ("40 to the second one", [{"payee_id": "P2", "amount": 40}]),
        ("40 to Mia", [{"amount": 40}]),
    ],
)
def test_a_listed_record_is_found_by_the_name_or_place_the_customer_gives(
    message: str, expected: list[JsonObject]
) -> None:
    asking = asked_for("payee id", "amount", needed_for="send")

    assert calls(SEND, "I want to send money", PAYEES, *asking, message) == expected


def test_the_evidence_of_a_listed_record_is_its_path() -> None:
    answer = inferred(
        SEND, "send money", PAYEES, *asked_for("payee id", needed_for="send"), "Ann, 20 euros"
    )

    assert answer["calls"][0]["payee_id"] == {
        "value": "P2",
        "source": ArgumentSource.RESULT,
        "evidence": "list_payees.payees[1].id",
    }


@pytest.mark.parametrize(
    ("message", "slot"),
    [("the one with Okafor", 12), ("the earliest please", 11), ("the last one", 12)],
)
def test_a_choice_among_results_is_understood(message: str, slot: int) -> None:
    book = tool("book_slot", "Book a slot", wants("slot_id", "integer"), consequential=True)
    slots = ToolFinishedEvent(
        call="1",
        tool="find_slots",
        arguments={},
        data=[
            {"slot_id": 11, "doctor": "Dr. Chen", "start": "2026-11-24T10:00"},
            {"slot_id": 12, "doctor": "Dr. Okafor", "start": "2026-11-25T09:00"},
        ],
    )
    reply = MessageEvent(source=Source.AGENT, text="Which slot would you like?")

    assert calls(book, "I need a doctor", slots, reply, message) == [{"slot_id": slot}]


def test_what_was_asked_for_piece_by_piece_is_put_together() -> None:
    first = asked_for("date", "time", needed_for="book_table")
    second = asked_for("time", needed_for="book_table")

    assert calls(TABLE, "a table for 4 people", *first, "on 3 December", *second, "at 7pm") == [
        {"guests": 4, "date": "2026-12-03", "time": "19:00"}
    ]


def test_the_newest_word_of_the_customer_counts() -> None:
    asking = asked_for("time", needed_for="book_table")

    found = calls(TABLE, "a table for 4 people tomorrow", *asking, "at 6pm, and we are 5 people")

    assert found == [{"guests": 5, "date": "2026-11-22", "time": "18:00"}]


def test_a_variable_fills_what_the_customer_need_not_say() -> None:
    profile = tool("get_profile", "See the profile", wants("customer_id", "string"))

    assert calls(profile, "show my profile", variables={"customer_id": "C9"}) == [
        {"customer_id": "C9"}
    ]


def test_what_only_the_customer_may_give_is_taken_from_nowhere_else() -> None:
    verify = tool(
        "verify",
        "Verify the customer",
        wants("birth_date", "date", source=ParameterSource.CUSTOMER),
    )

    assert calls(verify, "verify me", variables={"birth_date": "1985-03-12"}) == [{}]
    assert calls(verify, "I was born on 12 March 1985") == [{"birth_date": "1985-03-12"}]


def test_what_comes_from_the_context_is_not_read_from_the_customer() -> None:
    lookup = tool(
        "lookup", "Look up a place", wants("city", "string", source=ParameterSource.CONTEXT)
    )

    assert calls(lookup, "look up Paris", variables={"city": "Rome"}) == [{"city": "Rome"}]


def test_an_amount_follows_from_the_result_that_the_customer_points_at() -> None:
    balance = ToolFinishedEvent(
        call="1", tool="get_balance", arguments={}, data={"balance": 182.4, "currency": "EUR"}
    )
    reply = MessageEvent(source=Source.AGENT, text="Your balance is 182.40 EUR.")

    assert calls(CONVERT, "what is my balance", balance, reply, "and in dollars?") == [
        {"amount": 182.4, "from_currency": "EUR", "to_currency": "USD"}
    ]


def test_a_consequential_call_takes_no_amount_that_nobody_asked_for() -> None:
    balance = ToolFinishedEvent(call="1", tool="get_balance", arguments={}, data={"amount": 182.4})
    reply = MessageEvent(source=Source.AGENT, text="It is 182.40.")

    assert calls(TRANSFER, "balance?", balance, reply, "transfer money to Ann") == [
        {"recipient": "Ann"}
    ]


def test_a_choice_can_come_from_the_guideline() -> None:
    accounts = tool(
        "read_account", "Read an account", wants("account", one_of("checking", "savings"))
    )

    answer = inferred(accounts, "how much do I have put aside?", action="read the savings account")

    assert answer["calls"][0]["account"]["value"] == "savings"
    assert answer["calls"][0]["account"]["source"] == ArgumentSource.GUIDELINE


def test_a_value_beyond_the_bounds_is_told_rather_than_kept_back() -> None:
    rate = tool(
        "rate", "Rate the visit", wants("stars", {"type": "integer", "minimum": 1, "maximum": 5})
    )

    answer = inferred(rate, "9 stars!")

    assert answer["calls"][0]["stars"]["value"] == 9


def test_an_answer_that_fits_no_choice_is_told_rather_than_kept_back() -> None:
    paint = tool("paint", "Choose a colour", wants("color", one_of("red", "green")))

    answer = inferred(paint, "choose a colour", *asked_for("color", needed_for="paint"), "purple")

    assert answer["calls"][0]["color"]["value"] == "purple"


def ran(asked: Tool, **arguments: Any) -> tuple[Event, Event, Event]:
    return (
        ToolFinishedEvent(call="1", tool=asked.name, arguments=arguments, data={"ok": 1}),
        BriefingEvent(guidelines=("g",)),
        MessageEvent(source=Source.AGENT, text="Here it is."),
    )


def test_the_same_question_asked_again_runs_the_tool_again() -> None:
    answer = inferred(
        WEATHER, "the weather in Paris", *ran(WEATHER, city="Paris"), "the weather in Paris again?"
    )

    assert answer["decision"] == "NEEDS_TO_RUN"


def test_what_is_known_is_not_fetched_again_for_a_mere_follow_up() -> None:
    answer = inferred(
        WEATHER, "the weather in Paris", *ran(WEATHER, city="Paris"), "and is that good?"
    )

    assert answer["decision"] == "DATA_ALREADY_IN_CONTEXT"
    assert answer["calls"] == []


def test_a_consequential_call_is_not_repeated_by_a_thank_you() -> None:
    past = ran(TRANSFER, amount=50, recipient="Ann")

    answer = inferred(TRANSFER, "transfer 50 to Ann", *past, "great, thanks for the transfer")

    assert answer["decision"] in {"CANNOT_RUN", "DATA_ALREADY_IN_CONTEXT", "NOT_NEEDED"}


def test_a_follow_up_keeps_the_rest_of_the_earlier_request() -> None:
    flights = ran(FLIGHT, origin="Berlin", destination="Madrid", departure_date="2026-11-27")

    assert calls(
        FLIGHT, "flights from Berlin to Madrid next Friday", *flights, "and on Saturday?"
    ) == [{"origin": "Berlin", "destination": "Madrid", "departure_date": "2026-11-28"}]


def test_among_the_tools_of_a_guideline_the_one_asked_for_runs() -> None:
    hours = tool("opening_hours", "When the museum is open")
    tickets = tool("ticket_prices", "What tickets cost", wants("age", "integer", required=False))
    guideline = rule(
        "g", "the visitor asks about a visit", "answer", "opening_hours", "ticket_prices"
    )
    agent = Agent(slug="a", name="A", guidelines=(guideline,), tools=(hours, tickets))
    past = history("what are the opening hours?")
    situation = Situation(agent=agent, history=past, turn=1)

    answer = model().answer(
        InferToolCalls(situation=situation, tool=tickets, guidelines=(guideline,))
    )

    assert answer["decision"] == "NOT_NEEDED"
    assert "opening_hours" in answer["because"]
