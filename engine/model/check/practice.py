"""A dental practice. Its scene: a wish that is withdrawn, and things said by the way."""

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
    slug="practice",
    name="Dental practice Amari",
    description="The reception of a dental practice.",
    guidelines=(
        when("check-up", "the customer wants an appointment for a check-up"),
        when("pain", "the customer has a toothache"),
        when("new", "the customer is not a patient of the practice yet"),
        when("fear", "the customer is afraid of dentists"),
        when("unable", "the customer cannot come to an appointment that was made"),
        when("insurance", "the customer asks what the insurance pays"),
        when("bleeding", "the customer bleeds from the mouth"),
        when("pregnant", "the customer is pregnant"),
        when("white", "the customer wants whiter teeth"),
        when("child", "the appointment is for a child"),
        when("pictures", "the customer asks for their X-ray pictures"),
        when("goodbye", "the customer says thank you or goodbye"),
    ),
)

SCENE = Scene(
    agent=AGENT,
    talk=talk(
        customer("Hello, I need a check-up sometime next month."),
        acted_on("check-up"),
        agent_says("Gladly. Have you been with us before?"),
        customer(
            "No, I've just moved here. But the check-up can wait: my tooth has been hurting so badly "
            "since last night that I can't sleep. And I'm rather scared of dentists, I must say."
        ),
    ),
    applies=frozenset({"pain", "new", "fear"}),
)

_BOOK = tool(
    "book_visit",
    "Books a visit.",
    needs("birthday", "The patient's date of birth", "string", format="date"),
)
_REMIND = tool(
    "set_reminders",
    "Switches reminders on or off.",
    needs("channel", "How they are sent", "string", enum=["e-mail", "sms", "letter"]),
    needs("enabled", "Whether they are sent", "boolean"),
)
_BILL = tool(
    "bill_insurance",
    "Sends a bill to the patient's insurance.",
    needs(
        "number",
        "The number of the insurance card",
        "string",
        source=ParameterSource.CUSTOMER,
    ),
)

TOOL_CASES = (
    ToolCase(
        tool=_BOOK,
        guideline=when("visit", "the customer wants an appointment", "book it"),
        talk=talk(customer("I'd like an appointment as soon as possible.")),
        decision=DecisionState.CANNOT_RUN,
        missing=frozenset({"birthday"}),
    ),
    ToolCase(
        tool=_REMIND,
        guideline=when("remind", "the customer speaks about reminders", "set them"),
        talk=talk(customer("Please don't send me reminders by SMS any more.")),
        decision=DecisionState.NEEDS_TO_RUN,
        calls=({"channel": "sms", "enabled": False},),
    ),
    ToolCase(
        tool=_BILL,
        guideline=when("bill", "the customer wants the insurance to pay", "send the bill"),
        talk=talk(
            customer("Is my address still right?"),
            result("find_patient", {"address": "4 Mill Lane", "insurance_number": "X112233"}),
            agent_says("We have 4 Mill Lane."),
            customer("Right. Then send the last bill to my insurance, please."),
        ),
        decision=DecisionState.CANNOT_RUN,
        missing=frozenset({"number"}),
    ),
)

_OFFERED = (
    customer("I have a toothache, can I come tomorrow?"),
    awaits("book_visit", day="2031-06-03", time="08:15"),
    agent_says("I could give you 3 June 2031 at 8:15. Shall I book it?"),
)

CONFIRMATION_CASES = (
    ConfirmationCase(
        agent=AGENT,
        talk=talk(*_OFFERED, customer("Hm, let me think about it for a moment.")),
        answers=("unanswered",),
    ),
    ConfirmationCase(
        agent=AGENT,
        talk=talk(*_OFFERED, customer("Exactly, the 3rd at a quarter past eight.")),
        answers=("confirmed",),
    ),
    ConfirmationCase(
        agent=AGENT,
        talk=talk(*_OFFERED, customer("No, not that early. Leave it.")),
        answers=("declined",),
    ),
)
