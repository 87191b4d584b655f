"""The offline model reads what customers say to "shall I?" (ENGINE.md §1 step 1): general English, when in doubt no."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.events import BriefingEvent, ConfirmationAskedEvent, Source
from engine.model.base import ChooseTool, ReadConfirmation, Situation
from engine.model.offline import OfflineModel
from engine.spec import Tool, ToolParameter
from engine.testing import ScriptedTools
from tests.engine.agents import agent, guideline, history, parameter, said_by, tool
from tests.engine.sessions import Conversation

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
PAY = tool(
    "transfer_money",
    parameter("recipient", description="Who gets the money"),
    ToolParameter(name="amount", schema={"type": "number"}),
    description="Transfers money to a person.",
    consequential=True,
)
BOOK = tool(
    "book_table",
    ToolParameter(name="day", schema={"type": "string", "format": "date"}),
    ToolParameter(name="guests", schema={"type": "integer"}),
    description="Books a table at the restaurant.",
    consequential=True,
)
DROP = tool(
    "cancel_order", parameter("order_number"), description="Cancels an order.", consequential=True
)


def asked(call: str, the_tool: Tool, **arguments: Any) -> ConfirmationAskedEvent:
    return ConfirmationAskedEvent(
        call=call,
        tool=the_tool.name,
        arguments=arguments,
        guidelines=("g",),
        labels={p.name: p.label for p in the_tool.parameters},
        asked_at=NOW,
    )


ANN = asked("a", PAY, recipient="Ann Smith", amount=50)
BOB = asked("b", PAY, recipient="Bob", amount=30)


def read(text: str, *pending: ConfirmationAskedEvent, reply: str = "Shall I?") -> Any:
    tools = (PAY, BOOK, DROP)
    spec = agent(
        guideline("g", "the customer wants something done", "do it", tools=[t.name for t in tools]),  # type: ignore[arg-type]
        tools=tools,
    )
    past = history("Please do it", *pending, said_by(Source.AGENT, reply), text)
    situation = Situation(agent=spec, history=past, turn=2)
    question = ReadConfirmation(situation=situation, pending=pending)
    return OfflineModel(now=lambda: NOW).answer(question)


def verdicts(text: str, *pending: ConfirmationAskedEvent) -> list[str]:
    return [entry["answer"] for entry in read(text, *pending)["answers"]]


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Yes please!",
        "yep, go ahead",
        "Sure",
        "ok",
        "OK, do it.",
        "Go ahead please",
        "yes do it, thanks",
        "please do",
        "That's right",
        "Correct, proceed",
        "I confirm",
        "yes, transfer 50 to Ann",
        "transfer it",
        "Send it to Ann",
        "sounds good, thank you",
        "no problem, go ahead",
        "Of course. Thanks a lot!",
        "Can you go ahead?",
        "no wait, yes, do it",
        "absolutely 👍",
        "Yes, 50 to Ann Smith is right",
        "don't worry, just do it",
        "why not",
        "y",
        "I said yes",
        "sure, send it",
        "yes, fifty",
        "Yes transfer fifty to Ann",
    ],
)
def test_a_yes_is_read_as_one(text: str) -> None:
    answer = read(text, ANN)
    assert answer["answers"][0]["answer"] == "confirmed"
    assert answer["also"] == ""


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "No thanks",
        "nope, cancel",
        "not now",
        "please don't",
        "Never mind",
        "stop!",
        "I changed my mind",
        "I don't want that anymore",
        "yes... no wait, don't do it",
        "rather not",
        "forget it",
        "That's wrong",
        "Yes, but not now",
        "don't send it",
        "leave it",
        "later",
        "Yes. No.",
    ],
)
def test_a_no_is_read_as_one(text: str) -> None:
    assert verdicts(text, ANN) == ["declined"]


@pytest.mark.parametrize(
    "text",
    [
        "make it 400 instead",
        "yes but 60",
        "Yes, 400 please",
        "no, 400",
        "400, not 50",
        "not 50 but 400",
        "Actually 400",
        "can you make it 400?",
        "yes but to Carla",
        "no, to Carla",
        "send it to Carla instead",
        "change the amount to 75, please",
        "make it 400, yes, go ahead",
        "I meant 500",
        "ok, but only 20",
        "Sorry, I meant Bob",
        "make it sixty",
        "Wait, 40",
    ],
)
def test_another_detail_is_a_change_even_beside_a_yes(text: str) -> None:
    assert verdicts(text, ANN) == ["changed"]


@pytest.mark.parametrize(
    "text",
    [
        "how much is the fee?",
        "What is my balance?",
        "hello",
        "yes, but what does it cost?",
        "ok what does it cost?",
        "I'm not sure",
        "let me think about it",
        "wait",
        "maybe",
        "yes, if there is no fee",
        "only if it is free",
        "yes... hold on",
        "yes, Peter",
        "Is that the 50 for Ann?",
        "When will it arrive?",
        "thanks",
        "The weather is nice",
        "yes, is it safe?",
        "yes but make it tomorrow",
        "half of that",
        "",
    ],
)
def test_what_is_no_clear_answer_is_none(text: str) -> None:
    assert verdicts(text, ANN) == ["unanswered"]


@pytest.mark.parametrize(
    ("text", "also"),
    [
        ("yes, and what is my balance?", "what is my balance?"),
        ("Yes. What is my balance", "What is my balance"),
        ("no, what is my balance?", "what is my balance?"),
        ("yes, and also send 30 to Bob", "send 30 to Bob"),
    ],
)
def test_what_goes_beyond_the_answer_is_told_apart(text: str, also: str) -> None:
    answer = read(text, ANN)
    assert answer["answers"][0]["answer"] in {"confirmed", "declined"}
    assert answer["also"].rstrip("?") == also.rstrip("?")


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("yes", "confirmed", "confirmed"),
        ("both", "confirmed", "confirmed"),
        ("yes, both please", "confirmed", "confirmed"),
        ("neither", "declined", "declined"),
        ("no", "declined", "declined"),
        ("the first one", "confirmed", "unanswered"),
        ("yes to the first, no to the second", "confirmed", "declined"),
        ("only the second", "declined", "confirmed"),
        ("just Bob please", "declined", "confirmed"),
        ("yes to Ann, not to Bob", "confirmed", "declined"),
        ("yes, but make it 40 for Bob", "confirmed", "changed"),
        ("yes but 400", "unanswered", "unanswered"),
        ("the 50 yes, the 30 no", "confirmed", "declined"),
        ("yes, the one to Bob", "unanswered", "confirmed"),
        ("yes, Ann and Bob", "confirmed", "confirmed"),
        ("everything except Bob", "confirmed", "declined"),
        ("not the second", "unanswered", "declined"),
        ("do the first, skip the second", "confirmed", "declined"),
        ("how long does it take?", "unanswered", "unanswered"),
    ],
)
def test_of_two_calls_each_gets_its_own_answer(text: str, first: str, second: str) -> None:
    assert verdicts(text, ANN, BOB) == [first, second]


def test_cancelling_is_a_yes_where_cancelling_awaits_the_word() -> None:
    order = asked("o", DROP, order_number="A-17")
    assert verdicts("cancel it", order) == ["confirmed"]
    assert verdicts("yes, cancel it please", order) == ["confirmed"]
    assert verdicts("no, keep it", order) == ["declined"]


def test_other_days_and_counts_are_changes() -> None:
    table = asked("t", BOOK, day="2026-03-06", guests=2)
    assert verdicts("yes, Friday is fine", table) == ["confirmed"]
    assert verdicts("rather Saturday", table) == ["changed"]
    assert verdicts("yes, for 3 guests", table) == ["changed"]


def test_a_yes_to_another_question_confirms_nothing() -> None:
    spec = agent(guideline("g", "pays", "pay", tools=("transfer_money",)), tools=[PAY])
    past = history(
        "Pay Ann 50", ANN, said_by(Source.AGENT, "Shall I?"),
        "What is the weather?", BriefingEvent(content={"guidelines": []}),
        said_by(Source.AGENT, "Sunny. Do you like our weather reports?"), "yes",
    )  # fmt: skip
    question = ReadConfirmation(
        situation=Situation(agent=spec, history=past, turn=3), pending=(ANN,)
    )
    answer = OfflineModel(now=lambda: NOW).answer(question)
    assert answer["answers"][0]["answer"] == "unanswered"


def chosen(text: str) -> str:
    tools = (
        tool("get_balance", description="Looks up the balance of one account."),
        tool("list_payments", description="Lists the payments of the last months."),
    )
    spec = agent(guideline("g", "asks", "do", tools=tuple(t.name for t in tools)), tools=tools)
    question = ChooseTool(
        situation=Situation(agent=spec, history=history(text), turn=1),
        tools=tools,
        guidelines=spec.guidelines,
    )
    return str(OfflineModel(now=lambda: NOW).answer(question)["tool"])


def test_of_overlapping_tools_the_one_closest_to_the_words_is_chosen() -> None:
    assert chosen("How much is in my account?") == "get_balance"
    assert chosen("What is my balance") == "get_balance"
    assert chosen("Show me the payments of this month") == "list_payments"


class TestWholeConversations:
    """Turn after turn with the offline model alone."""

    def talk(self) -> Conversation:
        spec = agent(
            guideline(
                "pay",
                "the customer wants to transfer money to somebody",
                "transfer the money",
                tools=("transfer_money",),
            ),
            guideline("hours", "the customer asks for the opening hours", "say 9 to 5"),
            tools=[PAY],
        )
        tools = ScriptedTools({"transfer_money": lambda a, _c: {"sent": a["amount"]}})
        return Conversation(agent=spec, model=OfflineModel(now=lambda: NOW), tools=tools)

    async def test_a_yes_runs_what_was_asked_for(self) -> None:
        talk = self.talk()
        await talk.say("Please transfer 50 to Ann")
        assert talk.tools.called == []
        await talk.say("yes please")
        assert talk.tools.called == [("transfer_money", {"recipient": "Ann", "amount": 50})]
        await talk.say("yes")
        assert len(talk.tools.called) == 1

    async def test_another_amount_is_asked_for_again_with_the_rest_as_it_was(self) -> None:
        talk = self.talk()
        await talk.say("Please transfer 50 to Ann")
        await talk.say("make it 400 instead")
        assert talk.tools.called == []
        await talk.say("yes")
        assert talk.tools.called == [("transfer_money", {"recipient": "Ann", "amount": 400})]

    async def test_a_no_ends_it(self) -> None:
        talk = self.talk()
        await talk.say("Please transfer 50 to Ann")
        await talk.say("no, leave it")
        await talk.say("ok")
        assert talk.tools.called == []

    async def test_another_question_in_between_leaves_it_waiting(self) -> None:
        talk = self.talk()
        await talk.say("Please transfer 50 to Ann")
        await talk.say("What are your opening hours?")
        assert talk.tools.called == []
        await talk.say("yes, transfer it")
        assert len(talk.tools.called) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Please also send 30 to Bob",
        "Also send 30 to Bob",
        "And please also book a table for Friday",
        "Thanks, please also send 30 to Tim",
    ],
)
def test_another_wish_is_no_answer_although_it_says_please(text: str) -> None:
    answer = read(text, ANN)
    assert [entry["answer"] for entry in answer["answers"]] == ["unanswered"]
    assert answer["also"]


def test_please_alone_is_a_yes() -> None:
    assert verdicts("Please!", ANN) == ["confirmed"]
    assert verdicts("please do it", ANN) == ["confirmed"]
