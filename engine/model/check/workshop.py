"""A bicycle workshop. Its scene: a condition acted on that is over, one that arises anew, and one about a result."""

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
from engine.spec import Agent, Example
from engine.trail import DecisionState

AGENT = Agent(
    slug="workshop",
    name="Spoke Workshop",
    description="Repairs bicycles of all kinds and books appointments for repairs.",
    guidelines=(
        when("e-bikes", "the customer asks whether e-bikes are repaired"),
        when("brakes", "the customer reports a problem with the brakes"),
        when("gears", "the customer reports a problem with the gears or the chain"),
        when("flat", "the customer has a flat tyre"),
        when("price", "the customer asks what a repair costs"),
        when("day", "the customer wants to bring a bicycle in on a certain day"),
        when("collect", "the customer asks to have the bicycle collected from their home"),
        when("last", "only one appointment is left on the day that the customer wants"),
        when("full", "no appointment is left on the day that the customer wants"),
        when("stolen", "the customer's bicycle was stolen"),
        when(
            "ready",
            "the customer asks whether their bicycle is ready",
            examples=(Example(text="Can I pick my bike up already?"),),
        ),
        when("buy", "the customer wants to buy a bicycle"),
    ),
)

SCENE = Scene(
    agent=AGENT,
    talk=talk(
        customer("Hi, do you repair e-bikes too? And what does a service cost?"),
        acted_on("e-bikes", "price"),
        agent_says("Yes, we do, except for the battery itself. A service is 60 euros."),
        customer(
            "Good. My back brake squeals and the gears jump. What would it cost to have both done, "
            "and could I bring it in on Saturday?"
        ),
        result("get_appointments", {"day": "Saturday", "left": 1, "times": ["09:30"]}),
    ),
    applies=frozenset({"brakes", "gears", "price", "day", "last"}),
)

_BOOK = tool(
    "book_appointment",
    "Books an appointment for a repair.",
    needs("day", "The day of the appointment", "string", format="date"),
    needs("bicycles", "How many bicycles are brought", "integer"),
)
_ORDER = tool(
    "order_part",
    "Orders a spare part for a customer.",
    needs("part", "Which part", "string", enum=["brake pad", "chain", "inner tube", "saddle"]),
    needs("quantity", "How many", "integer"),
)
_QUOTE = tool(
    "find_offers",
    "Finds used bicycles up to a price.",
    needs("most", "The most that the customer pays, in euros", "number"),
)

TOOL_CASES = (
    ToolCase(
        tool=_BOOK,
        guideline=when("book", "the customer wants to bring a bicycle in", "book it"),
        talk=talk(customer("I'd like to bring three bikes in on 14 March 2031, please.")),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"day": "2031-03-14", "bicycles": 3},),
    ),
    ToolCase(
        tool=_ORDER,
        guideline=when("order", "the customer needs a spare part", "order it"),
        talk=talk(customer("Could you order two inner tubes for me?")),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"part": "inner tube", "quantity": 2},),
    ),
    ToolCase(
        tool=_QUOTE,
        guideline=when("used", "the customer looks for a used bicycle", "find offers"),
        talk=talk(customer("I'm after a used city bike. I can pay €1,250.50 at most.")),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"most": 1250.5},),
    ),
)

_ASKED = agent_says("Shall I book it like this?")


def _about_the_booking(text: str, *answers: str, also: bool = False) -> ConfirmationCase:
    return ConfirmationCase(
        agent=AGENT,
        talk=talk(
            customer("I'd like to bring two bikes in on 17 March 2031."),
            awaits("book_appointment", day="2031-03-17", bicycles=2),
            _ASKED,
            customer(text),
        ),
        answers=answers,
        also=also,
    )


CONFIRMATION_CASES = (
    _about_the_booking("Yes, please.", "confirmed"),
    _about_the_booking("Make it the 18th instead.", "changed"),
    _about_the_booking("How long does a repair take?", "unanswered", also=True),
    _about_the_booking("Forget it, I'll fix them myself.", "declined"),
)
