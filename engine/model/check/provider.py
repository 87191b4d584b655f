"""An internet provider. Its scene: conditions on results, on what was done, and on the customer's mood."""

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
    slug="provider",
    name="Lumen Net",
    description="The support of an internet provider.",
    guidelines=(
        when("first", "the customer has not restarted the router yet"),
        when("no-help", "the customer has restarted the router and it did not help"),
        when("below-half", "the line brings less than half of the booked speed"),
        when("leave", "the customer wants to end the contract"),
        when("moving", "the customer is moving to another home"),
        when("again", "the customer has had this trouble before"),
        when("invoice", "the customer doubts an invoice"),
        when("annoyed", "the customer is annoyed"),
        when("faster", "the customer wants to book a higher speed"),
        when("router", "the customer asks for a new router"),
        when("full-speed", "the line brings the booked speed"),
        when("mobile", "the customer asks about mobile phones"),
    ),
)

SCENE = Scene(
    agent=AGENT,
    talk=talk(
        customer("My internet has been very slow since yesterday."),
        result("measure_line", {"measured_mbit": 3.1, "booked_mbit": 100}),
        acted_on("first", "below-half"),
        agent_says("Your line brings 3 of 100 Mbit/s. Please restart the router and tell me."),
        customer(
            "I restarted it and it's no better. This is the third time this month, I've had enough! "
            "How do I get out of my contract?"
        ),
        result("measure_line", {"measured_mbit": 2.9, "booked_mbit": 100}),
    ),
    applies=frozenset({"no-help", "below-half", "leave", "again", "annoyed"}),
)

_MEASURE = tool(
    "measure_line",
    "Measures the speed of a line.",
    needs("customer_number", "The customer's number", "string", source=ParameterSource.CONTEXT),
)
_SEND = tool(
    "send_papers",
    "Sends the papers of the contract.",
    needs("address", "Where to send them", "string", format="email"),
)
_TECHNICIAN = tool(
    "send_technician",
    "Sends a technician to an address.",
    needs("address", "Street and number", "string"),
)
_CONTRACT = tool(
    "get_contract",
    "Gets a contract: its end and its price.",
    needs("number", "The contract's number", "string"),
)

TOOL_CASES = (
    ToolCase(
        tool=_MEASURE,
        guideline=when("slow", "the customer's internet is slow", "measure the line"),
        talk=talk(customer("Everything loads so slowly today, can you check?")),
        variables={"customer_number": "K-5521", "name": "Ines"},
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"customer_number": "K-5521"},),
    ),
    ToolCase(
        tool=_SEND,
        guideline=when("papers", "the customer wants the papers of the contract", "send them"),
        talk=talk(
            customer("Please send my contract to ana@example.com."),
            agent_says("To ana@example.com, gladly."),
            customer("Sorry, that was wrong. It's ana.silva@example.org."),
        ),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"address": "ana.silva@example.org"},),
    ),
    ToolCase(
        tool=_TECHNICIAN,
        guideline=when("technician", "a technician is wanted", "send one"),
        talk=talk(
            customer("We need a technician at 4 Mill Lane, and one at 12 Harbour Street as well.")
        ),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"address": "4 Mill Lane"}, {"address": "12 Harbour Street"}),
    ),
    ToolCase(
        tool=_CONTRACT,
        guideline=when("contract", "the customer asks about the contract", "look it up"),
        talk=talk(
            customer("What does my contract C-77 cost?"),
            result("get_contract", {"ends": "2031-09-30", "monthly": 34.9}, number="C-77"),
            agent_says("It is 34.90 euros a month."),
            customer("And when does it end?"),
        ),
        decision=DecisionState.DATA_ALREADY_IN_CONTEXT,
    ),
)

CONFIRMATION_CASES = (
    ConfirmationCase(
        agent=AGENT,
        talk=talk(
            customer("Please book the 250 Mbit/s for me from next month."),
            awaits("change_speed", mbit=250, monthly=39.9),
            agent_says("250 Mbit/s would be 39.90 euros a month. Shall I book it?"),
            customer("Yes, but then the 500 please."),
        ),
        answers=("changed",),
    ),
)
