"""Which guidelines the offline model finds to apply, and what it says about why."""

import pytest

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind
from engine.events import BriefingEvent, Event, MessageEvent, Source, ToolFinishedEvent
from engine.model.base import MatchGuidelines, Situation
from engine.spec import Agent, Example
from tests.engine.agents import history
from tests.engine.model.offline_domains import DOMAINS, Domain
from tests.engine.model.offline_talk import model, rule


def judged(agent: Agent, *events: Event | str) -> dict[str, JsonObject]:
    """Guideline uid → its judgement; the last event is what happened last."""
    past = history(*events)
    situation = Situation(agent=agent, history=past, turn=past[-1].turn if past else 1)
    answer = model().answer(MatchGuidelines(situation=situation, guidelines=agent.guidelines))
    uid_of = {label: uid for uid, label in agent.label_of.items()}
    return {uid_of[entry["guideline"]]: entry for entry in answer["judgements"]}


def applying(agent: Agent, *events: Event | str) -> set[str]:
    return {uid for uid, entry in judged(agent, *events).items() if entry["applies"]}


def holds(condition: str, *events: Event | str) -> bool:
    """Whether a guideline of this condition applies, alone in its agent."""
    agent = Agent(slug="a", name="A", guidelines=(rule("g", condition, "act"),))
    return bool(applying(agent, *events))


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.agent.slug)
def test_most_messages_find_their_guideline_and_little_else(domain: Domain) -> None:
    wanted = [(text, expected) for text, expected in domain.messages if expected]
    found = [(text, expected, applying(domain.agent, text)) for text, expected in wanted]

    missed = [(text, got) for text, expected, got in found if not expected <= got]
    extra = sum(len(got - expected) for _, expected, got in found)
    assert len(missed) <= 1, missed
    assert extra <= 3, found


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.agent.slug)
def test_messages_about_something_else_match_almost_nothing(domain: Domain) -> None:
    strangers = [text for text, expected in domain.messages if not expected]

    heard = [(text, got) for text in strangers if (got := applying(domain.agent, text))]

    assert len(heard) <= 1, heard


def test_a_message_may_match_several_guidelines() -> None:
    agent = Agent(
        slug="a",
        name="A",
        guidelines=(
            rule("hours", "the guest asks about opening hours", "tell them"),
            rule("parking", "the guest asks about parking", "tell them"),
            rule("tickets", "the guest wants to buy tickets", "sell them"),
        ),
    )

    assert applying(agent, "What are your opening hours, and is there parking?") == {
        "hours",
        "parking",
    }


def test_all_messages_since_the_last_reply_count() -> None:
    agent = Agent(slug="a", name="A", guidelines=(rule("parking", "the guest asks about parking"),))

    assert applying(
        agent, "where is the parking?", MessageEvent(source=Source.CUSTOMER, text="hello?")
    )


def test_the_reason_names_the_words_that_matched() -> None:
    agent = Agent(
        slug="a", name="A", guidelines=(rule("loan", "the reader wants to renew a loan"),)
    )

    entry = judged(agent, "Can you renew my loan?")["loan"]

    assert entry["applies"]
    assert "“renew”" in entry["because"]
    assert "“loan”" in entry["because"]


def test_the_reason_says_when_no_word_matched() -> None:
    agent = Agent(
        slug="a", name="A", guidelines=(rule("loan", "the reader wants to renew a loan"),)
    )

    entry = judged(agent, "what is for lunch")["loan"]

    assert entry == {
        "guideline": "G1",
        "because": "None of the customer's words fits the condition.",
        "applies": False,
    }


def test_examples_teach_other_wordings() -> None:
    plain = rule("churn", "the member wants to end the membership")
    taught = rule("churn", plain.condition, examples=(Example(text="I'm done with this gym"),))

    assert not applying(
        Agent(slug="a", name="A", guidelines=(plain,)), "I am so done with your gym"
    )
    assert applying(Agent(slug="a", name="A", guidelines=(taught,)), "I am so done with your gym")


def test_counter_examples_keep_a_guideline_quiet() -> None:
    condition = "the member asks about the price of a course"
    counter = Example(text="what is the price of the parking garage", matches=False)
    open_to_all = Agent(slug="a", name="A", guidelines=(rule("price", condition),))
    narrowed = Agent(
        slug="a", name="A", guidelines=(rule("price", condition, examples=(counter,)),)
    )

    assert applying(open_to_all, "what is the price of the parking garage?")
    assert not applying(narrowed, "what is the price of the parking garage?")
    assert applying(narrowed, "what is the price of a yoga course?")


@pytest.mark.parametrize(
    ("condition", "message", "expected"),
    [
        ("the customer greets you", "Good morning!", True),
        ("the customer says hello", "hi, where is my parcel?", True),
        ("the customer says hello", "how do you say hello in Japanese?", False),
        ("the user expresses thanks", "great, thank you very much", True),
        ("the customer says goodbye", "ok bye", True),
        ("the customer says goodbye", "I bought a goodbye present", False),
        ("the customer confirms", "yes please", True),
        ("the customer declines", "no thanks", True),
        ("the customer is angry", "This is outrageous, I am fed up!", True),
        ("the customer is frustrated or upset", "lovely, that works", False),
        ("the customer asks to speak to a human", "can I talk to a real person", True),
        ("the customer wants a human operator", "operator please", True),
        ("the customer asks to speak to a manager", "what do you manage here?", False),
        ("the customer wants to send a gift to someone", "let me speak to someone", False),
    ],
)
def test_speech_acts_are_recognised_for_what_they_are(
    condition: str, message: str, expected: bool
) -> None:
    assert holds(condition, message) is expected


@pytest.mark.parametrize(
    "condition", ["", "always", "in every reply", "the customer says anything", "For every message"]
)
def test_what_holds_always_holds_always(condition: str) -> None:
    assert holds(condition, "xyz")


def test_the_beginning_of_a_conversation_is_known() -> None:
    reply = MessageEvent(source=Source.AGENT, text="Hello!")

    assert holds("the conversation starts", "do you sell tea?")
    assert not holds("the conversation starts", "hi", reply, "do you sell tea?")


def test_off_topic_means_that_nothing_else_fits() -> None:
    agent = Agent(
        slug="a",
        name="A",
        guidelines=(
            rule("tea", "the customer asks about tea"),
            rule("off", "the message is unrelated to tea or the shop", "say so"),
        ),
    )

    assert applying(agent, "which green tea do you have?") == {"tea"}
    assert applying(agent, "who won the chess world cup?") == {"off"}
    assert applying(agent, "thanks") == set()


def test_what_was_not_said_can_be_a_condition() -> None:
    condition = "the customer asks about an order without mentioning an order number"

    assert holds(condition, "where is my order?")
    assert not holds(condition, "where is my order 4711?")
    assert not holds(condition, "do you sell tea?")


def result(tool: str, data: object) -> ToolFinishedEvent:
    return ToolFinishedEvent(call="1", tool=tool, arguments={}, data=data)


@pytest.mark.parametrize(
    ("condition", "tool", "data", "expected"),
    [
        ("the balance is below 200", "get_balance", {"balance": 182.4, "currency": "EUR"}, True),
        ("the balance is below 200", "get_balance", {"balance": 1820, "currency": "EUR"}, False),
        ("the balance is less than € 1,500", "get_balance", {"balance": 1400}, True),
        ("the account balance is under 2k", "account", {"id": 5000, "balance": 1999}, True),
        ("the balance is negative", "get_balance", {"amount": -3, "limit": 100}, True),
        ("the balance is not more than 50", "get_balance", {"balance": 50}, True),
        ("stock is at most 3", "check_stock", {"item": "lamp", "stock": 3}, True),
        ("at least 10 points are left", "points", {"points_left": 9}, False),
        ("the price is between 10 and 20 euros", "price_of", {"price": 15.5}, True),
        ("the party has ten or more guests", "booking", {"guests": 12, "table": 4}, True),
        (
            "the flight is delayed by more than 180 minutes",
            "flight",
            {"flight_number": "NB 999", "delay_minutes": 25},
            False,
        ),
        ("any order costs more than 100", "orders", [{"cost": 20}, {"cost": 120}], True),
        ("the order is older than 30 days", "get_order", {"order_date": "2026-09-01"}, True),
        ("the order is older than 30 days", "get_order", {"order_date": "2026-11-10"}, False),
        ("the order is late", "get_order", {"id": 7, "status": "delayed"}, True),
        ("the order is late", "get_order", {"id": 7, "status": "delivered"}, False),
        (
            "all copies are on loan",
            "find",
            [{"title": "Emma", "copies": 0, "status": "on loan"}],
            True,
        ),
        ("the card is blocked", "get_card", {"blocked": True}, True),
        ("the card is blocked", "get_card", {"blocked": False}, False),
        ("the card is not blocked", "get_card", {"blocked": False}, True),
        ("the result is empty", "find_books", [], True),
        ("the result is empty", "find_books", [{"title": "Emma"}], False),
        ("no rooms are available", "search", {"rooms": []}, True),
        ("no rooms are available", "search", {"rooms": [{"number": 4}]}, False),
        ("nothing was found by the search", "search", [], True),
    ],
)
def test_conditions_on_results_are_checked_against_them(
    condition: str, tool: str, data: object, expected: bool
) -> None:
    assert holds(condition, "please look", result(tool, data)) is expected


def test_what_a_payment_would_leave_is_worked_out() -> None:
    condition = "the payment would leave less than € 200 on the account"
    balance = result("get_balance", {"balance": 500, "currency": "EUR"})

    assert holds(condition, "transfer 350 euros to Ann", balance)
    assert not holds(condition, "transfer 150 euros to Ann", balance)


def test_a_comparison_can_be_about_what_the_customer_says() -> None:
    condition = "the customer wants to transfer more than 1000 euros"

    assert holds(condition, "please transfer 1,500 euros to Ann")
    assert not holds(condition, "please transfer 20 euros to Ann")
    assert not holds(condition, "I drove 1500 miles")


def test_the_reason_of_a_comparison_names_field_and_value() -> None:
    agent = Agent(slug="a", name="A", guidelines=(rule("low", "the balance is below 200"),))

    entry = judged(agent, "my balance?", result("get_balance", {"balance": 182.4}))["low"]

    assert entry["because"] == "get_balance.balance is 182.4, which is below 200."


def test_results_of_earlier_turns_decide_nothing() -> None:
    reply = MessageEvent(source=Source.AGENT, text="It is 100.")

    assert not holds(
        "the balance is below 200", "x", result("get_balance", {"balance": 100}), reply, "thanks"
    )


def test_a_failed_tool_can_be_a_condition() -> None:
    error = ToolError(kind=ToolErrorKind.TIMEOUT, public="it took too long")
    failed = ToolFinishedEvent(call="1", tool="search", arguments={}, error=error)

    assert holds("the search fails", "look for it", failed)
    assert not holds("the search fails", "look for it", result("search", []))


SHOP = Agent(
    slug="a",
    name="A",
    guidelines=(
        rule("stock", "the customer asks whether a product is in stock"),
        rule("price", "the customer asks what a product costs"),
        rule("send", "the customer wants to send money", "do it", "send"),
    ),
)


def test_a_short_follow_up_is_read_with_what_came_before() -> None:
    reply = MessageEvent(source=Source.AGENT, text="Yes, we have three.")

    assert applying(SHOP, "is the blue lamp in stock?", reply, "and the red one?") == {"stock"}
    assert applying(SHOP, "is the blue lamp in stock?", reply, "thanks") == set()
    assert applying(SHOP, "is the blue lamp in stock?", reply, "never mind") == set()


def test_agreeing_means_what_the_agent_asked() -> None:
    reply = MessageEvent(
        source=Source.AGENT, text="It is gone. Shall I tell you what another product costs?"
    )

    assert applying(SHOP, "is the blue lamp in stock?", reply, "yes please") == {"price"}


def test_the_answer_to_a_question_goes_on_with_its_guideline() -> None:
    told = {"ask for": [{"what": "recipient", "needed for": "send"}]}
    briefing = BriefingEvent(guidelines=("send",), content=told)
    reply = MessageEvent(source=Source.AGENT, text="Could you tell me the recipient?")

    assert applying(SHOP, "I want to send money", briefing, reply, "Ann") == {"send"}
    assert applying(SHOP, "I want to send money", briefing, reply, "forget it") == set()
    assert applying(SHOP, "I want to send money", briefing, reply, "is the lamp in stock?") == {
        "stock"
    }


def test_without_any_message_nothing_matches() -> None:
    assert applying(SHOP) == set()
    assert applying(SHOP, "") == set()


def test_only_the_guidelines_asked_about_are_judged() -> None:
    past = history("is the lamp in stock?")
    situation = Situation(agent=SHOP, history=past, turn=1)
    question = MatchGuidelines(situation=situation, guidelines=SHOP.guidelines[1:2])

    assert [entry["guideline"] for entry in model().answer(question)["judgements"]] == ["G2"]
