"""Whole conversations with the offline model, through the engine, in several trades."""

from typing import Any

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.events import MessageEvent
from engine.spec import Agent
from engine.testing import entries
from engine.trail import DecisionState, ModelCall
from tests.engine.model.offline_talk import Talk, one_of, rule, tool, wants

AIRLINE = Agent(
    slug="airline",
    name="Nimbus Air",
    guidelines=(
        rule(
            "hello",
            "the passenger says hello",
            "welcome them to Nimbus Air and ask how you can help",
        ),
        rule(
            "book",
            "the passenger wants to book a flight",
            "search for flights and list them with prices, and ask which one they want",
            "search_flights",
        ),
        rule("choose", "the passenger chooses one of the flights", "book it", "book_flight"),
        rule(
            "status",
            "the passenger asks whether a flight is on time",
            "look up its status",
            "flight_status",
        ),
        rule(
            "late",
            "the flight is delayed",
            "apologise for the delay and mention that they can rebook for free",
            reevaluate_after=("flight_status",),
        ),
        rule(
            "very_late",
            "the flight is delayed by more than 180 minutes",
            "tell them that they may be entitled to compensation",
            reevaluate_after=("flight_status",),
        ),
        rule(
            "bags",
            "the passenger asks about luggage",
            "explain that every checked bag costs 35 euros",
        ),
        rule("human", "the passenger wants to talk to a human", "ask for their phone number"),
        rule(
            "off",
            "the message is not about flights or travel",
            "tell them that you can only help with flights",
        ),
    ),
    tools=(
        tool(
            "search_flights",
            "Find flights between two cities",
            wants("origin", "string", "City of departure"),
            wants("destination", "string", "City of arrival"),
            wants("date", "date"),
        ),
        tool("book_flight", "Book a flight", wants("flight_id", "string"), consequential=True),
        tool(
            "flight_status",
            "Status of a flight",
            wants("flight_number", "string", examples=("LH123",)),
        ),
    ),
)


def flights(origin: str, destination: str, date: str) -> dict[str, Any]:
    return {
        "flights": [
            {
                "id": "F1",
                "flight_number": "NB 101",
                "departure": f"{date}T08:15",
                "price": 129.0,
                "currency": "EUR",
            },
            {
                "id": "F2",
                "flight_number": "NB 207",
                "departure": f"{date}T17:40",
                "price": 89.5,
                "currency": "EUR",
            },
        ]
    }


def airline() -> Talk:
    return Talk(
        agent=AIRLINE,
        functions={
            "search_flights": flights,
            "book_flight": lambda flight_id: {
                "booking_reference": f"REF-{flight_id}",
                "status": "confirmed",
            },
            "flight_status": lambda flight_number: {
                "flight_number": flight_number,
                "status": "delayed",
                "delay_minutes": 200 if "9" in flight_number else 25,
            },
        },
    )


async def test_a_flight_is_found_piece_by_piece_and_booked_by_pointing_at_it() -> None:
    talk = airline()

    assert (await talk.say("hello!")).reply == "Hello, and welcome to Nimbus Air! How can I help?"
    asked = await talk.say("I need a flight to Madrid")
    assert asked.matched == {"book"}
    assert [insight.parameter for insight in asked.insights] == ["origin", "date"]
    found = await talk.say("from Berlin, next Friday")
    assert found.called == [
        ("search_flights", {"origin": "Berlin", "destination": "Madrid", "date": "2026-11-27"})
    ]
    assert "**NB 207** – departure 27 November 2026 at 17:40, €89.50" in found.reply
    assert found.reply.endswith("Could you tell me which one you want?")
    chosen = await talk.say("the cheaper one please")
    assert chosen.called == []
    assert chosen.reply == "Shall I go ahead: book flight (flight id: F2)?"
    booked = await talk.say("yes, do that")
    assert booked.called == [("book_flight", {"flight_id": "F2"})]
    assert booked.reply == (
        "Done: book flight (flight id: F2).\n\n"
        "The booking reference is REF-F2. The status is confirmed."
    )
    assert (await talk.say("thanks")).called == []


async def test_what_a_tool_finds_brings_further_guidelines() -> None:
    talk = airline()

    late = await talk.say("is flight LH123 on time?")
    very_late = await talk.say("and NB 999?")

    assert late.matched == {"status", "late"}
    assert very_late.matched == {"status", "late", "very_late"}
    assert very_late.because["very_late"] == (
        "flight_status.delay_minutes is 200, which is more than 180."
    )
    assert "You may be entitled to compensation." in very_late.reply
    assert very_late.follows == {"status": True, "late": True, "very_late": True}


async def test_what_no_guideline_covers_calls_no_tool() -> None:
    turn = await airline().say("what is the capital of Australia?")

    assert turn.matched == {"off"}
    assert turn.called == []
    assert turn.reply == "I can only help with flights."


PHARMACY = Agent(
    slug="pharmacy",
    name="Pharmacy",
    guidelines=(
        rule(
            "stock",
            "the customer asks whether a medicine is available",
            "check the stock",
            "check_stock",
        ),
        rule(
            "none",
            "the stock is zero",
            "apologise and offer to order it",
            reevaluate_after=("check_stock",),
        ),
        rule("order", "the customer wants to order a medicine", "order it", "order_medicine"),
        rule(
            "hours",
            "the customer asks about opening hours",
            "tell them that you are open from 8 to 20",
        ),
    ),
    tools=(
        tool("check_stock", "How many packs of a medicine there are", wants("medicine", "string")),
        tool(
            "order_medicine",
            "Order packs of a medicine",
            wants("medicine", "string"),
            wants("packs", {"type": "integer", "minimum": 1, "maximum": 5}),
            wants("delivery", one_of("pick_up", "courier"), display_name="way of delivery"),
            consequential=True,
        ),
    ),
)


def pharmacy() -> Talk:
    def stock(medicine: str) -> dict[str, Any]:
        return {"medicine": medicine, "stock": 0 if medicine == "Ibuprofen" else 12}

    def order(medicine: str, packs: int, delivery: str) -> dict[str, Any]:
        return {"message": f"{packs} packs of {medicine} are ordered ({delivery})."}

    return Talk(agent=PHARMACY, functions={"check_stock": stock, "order_medicine": order})


async def test_an_invalid_amount_is_corrected_in_the_next_turn() -> None:
    talk = pharmacy()

    wrong = await talk.say("I'd like to order 9 packs of Aspirin by courier")
    right = await talk.say("ok, 3 packs then")
    ordered = await talk.say("yes please")

    assert wrong.called == []
    assert wrong.reply.startswith("I cannot use “9” as the packs: it must be at most 5.")
    assert right.called == []
    assert right.reply == (
        "Shall I go ahead: order medicine (medicine: Aspirin, packs: 3, way of delivery: courier)?"
    )
    assert ordered.called == [
        ("order_medicine", {"medicine": "Aspirin", "packs": 3, "delivery": "courier"})
    ]
    assert ordered.reply.endswith("3 packs of Aspirin are ordered (courier).")


async def test_a_choice_is_asked_for_with_its_options() -> None:
    talk = pharmacy()

    asked = await talk.say("please order 2 packs of Aspirin")
    ready = await talk.say("I will pick it up")
    done = await talk.say("go ahead")

    assert asked.reply == "Could you tell me the way of delivery (pick up or courier)?"
    assert "way of delivery: pick up" in ready.reply
    assert done.called == [
        ("order_medicine", {"medicine": "Aspirin", "packs": 2, "delivery": "pick_up"})
    ]


async def test_an_empty_shelf_is_told_and_something_offered() -> None:
    turn = await pharmacy().say("is Ibuprofen available?")

    assert turn.matched == {"stock", "none"}
    assert "I am sorry about that." in turn.reply
    assert "Would you like me to order it?" in turn.reply


async def test_a_failing_tool_is_admitted() -> None:
    def broken(**_arguments: Any) -> Any:
        raise ToolFailure(
            ToolError(kind=ToolErrorKind.UNAVAILABLE, public="the shelf is unreachable")
        )

    talk = Talk(agent=PHARMACY, functions={"check_stock": broken})

    turn = await talk.say("is Aspirin available?")

    assert turn.reply == "I am sorry, I could not check the stock (the shelf is unreachable)."
    assert turn.follows == {"stock": False}


async def test_several_messages_are_answered_together() -> None:
    turn = await pharmacy().say("is Aspirin available?", "and what are your opening hours?")

    assert turn.matched == {"stock", "hours"}
    assert turn.called == [("check_stock", {"medicine": "Aspirin"})]
    assert "I am open from 8 to 20." in turn.reply


async def test_the_trail_says_that_the_offline_model_answered() -> None:
    turn = await pharmacy().say("is Aspirin available?")

    assert {call.model for call in entries(turn.emitted, ModelCall)} == {"offline"}
    assert entries(turn.emitted, MessageEvent)[-1].model == "offline"
    assert [decision.state for decision in turn.decisions] == [DecisionState.NEEDS_TO_RUN]
