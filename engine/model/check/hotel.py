"""A hotel. Its scene: several wishes in one message, among conditions on much the same subjects."""

from engine.model.check.cases import (
    ConfirmationCase,
    Scene,
    ToolCase,
    acted_on,
    agent_says,
    awaits,
    customer,
    needs,
    result,
    talk,
    tool,
    when,
)
from engine.spec import Agent, ParameterSource
from engine.trail import DecisionState

AGENT = Agent(
    slug="hotel",
    name="Hotel Linde",
    description="A small hotel. Answers guests before and during their stay.",
    guidelines=(
        when("booking", "the customer says under which name they have booked"),
        when("late", "the customer will arrive after 8 in the evening"),
        when("early", "the customer wants to arrive before noon"),
        when("breakfast", "the customer wants breakfast"),
        when("diet", "the customer mentions an allergy or a diet"),
        when("animal", "the customer brings an animal"),
        when("parking", "the customer asks where to park a car"),
        when("cancel", "the customer wants to cancel the booking"),
        when("longer", "the customer wants to stay longer than booked"),
        when("paying", "the customer asks how they can pay"),
        when("child", "a child comes along"),
        when("complaint", "the customer complains about the room or the service"),
    ),
)

SCENE = Scene(
    agent=AGENT,
    talk=talk(
        customer("Hello, we have a room for two nights from 12 May, under the name of Marchetti."),
        result("find_booking", {"room": "double", "nights": 2, "breakfast": False, "paid": True}),
        acted_on("booking"),
        agent_says("Welcome! I found your double room from 12 to 14 May, without breakfast."),
        customer(
            "We'll be there around 11 at night, is that all right? Please add breakfast for both of us. "
            "Oh, and we are bringing our dog."
        ),
    ),
    applies=frozenset({"late", "breakfast", "animal"}),
)

_FIND = tool(
    "find_booking",
    "Finds a booking.",
    needs("name", "The guest's family name", "string", source=ParameterSource.CUSTOMER),
    needs("arrival", "The day of arrival", "string", format="date", required=False),
)
_CHANGE = tool(
    "change_nights",
    "Changes how long a booking is.",
    needs("booking", "The booking's number", "string"),
    needs("nights", "How many nights", "integer"),
)
_EXTRAS = tool(
    "add_extras",
    "Adds extras to a stay.",
    needs(
        "extras",
        "Which ones",
        "array",
        items={"type": "string", "enum": ["breakfast", "parking", "late check-out", "cot"]},
    ),
)

TOOL_CASES = (
    ToolCase(
        tool=_FIND,
        guideline=when("find", "the customer speaks of a booking of theirs", "find it"),
        talk=talk(customer("I've booked a room with you, my name is Marchetti.")),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"name": "Marchetti"},),
    ),
    ToolCase(
        tool=_CHANGE,
        guideline=when("nights", "the customer wants to stay for longer or shorter", "change it"),
        talk=talk(
            customer("Which bookings do you have for me?"),
            result(
                "find_bookings",
                {
                    "bookings": [
                        {"number": "H-20817", "arrival": "2031-05-12", "nights": 2},
                        {"number": "H-20911", "arrival": "2031-08-01", "nights": 1},
                    ]
                },
            ),
            agent_says("Two: from 12 May 2031 for two nights, and on 1 August 2031 for one."),
            customer("Please make the second one four nights."),
        ),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"booking": "H-20911", "nights": 4},),
    ),
    ToolCase(
        tool=_EXTRAS,
        guideline=when("extras", "the customer wants an extra", "add it"),
        talk=talk(customer("We'd like breakfast, and a cot for the baby.")),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"extras": ["breakfast", "cot"]},),
    ),
)

_TWO = (
    customer("Please move my August stay to 5 September 2031, and cancel the one in May."),
    awaits("move_booking", booking="H-20911", arrival="2031-09-05"),
    awaits("cancel_booking", booking="H-20817"),
    agent_says("Shall I move the one of August to 5 September 2031, and cancel the one of May?"),
)

CONFIRMATION_CASES = (
    ConfirmationCase(
        agent=AGENT,
        talk=talk(*_TWO, customer("Yes, both please.")),
        answers=("confirmed", "confirmed"),
    ),
    ConfirmationCase(
        agent=AGENT,
        talk=talk(*_TWO, customer("Move it, yes. But don't cancel the other one.")),
        answers=("confirmed", "declined"),
    ),
    ConfirmationCase(
        agent=AGENT,
        talk=talk(
            customer("Can you add breakfast to my booking H-20817?"),
            awaits("add_extras", booking="H-20817", extras=["breakfast"], price=24),
            agent_says("Breakfast for the stay is 24 euros. Shall I add it?"),
            customer("Sure, go ahead. Is there a sauna, by the way?"),
        ),
        answers=("confirmed",),
        also=True,
    ),
)
