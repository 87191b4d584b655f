"""What is certain of a simulated customer without a model, and what follows from the facts that a judge found."""

from typing import Any

import pytest

from engine.brief_faults import SAID_NOTHING, Does, Ended
from engine.canonical import JsonObject
from engine.customer_brief import CustomerBrief
from engine.events import Source
from engine.model.base import Situation
from engine.simulating import REPEATED, Kept, Said, judge_customer
from engine.testing import Expected, ScriptedModel
from tests.engine.agents import agent, history, said_by

BRIEF = CustomerBrief(
    persona="Ivo Brandt, account number 4471-02; four people",
    goal="ask about order 88123 on Friday",
)


def talk(*texts: str, **variables: Any) -> Situation:
    """A conversation in which customer and agent take turns."""
    sources = (Source.CUSTOMER, Source.AGENT)
    past = history(*(said_by(sources[n % 2], text) for n, text in enumerate(texts)))
    turn = past[-1].turn if past else 1
    return Situation(agent=agent(), history=past, turn=turn, variables=variables)


def facts(
    *does: Does, details: list[JsonObject] | None = None, ended: Ended = Ended.OTHERS
) -> Expected:
    judged = [{"says": "", "does": one.value} for one in does]
    answer: JsonObject = {"messages": judged, "details": details or [], "ended": ended.value}
    return Expected(question="JudgeCustomer", answer=answer)


def detail(customer: str, part: str, *, fits: bool = False) -> JsonObject:
    return {"what": "", "customer": customer, "part": part, "fits": fits}


async def certain(now: Situation, *said: Said) -> Kept | None:
    """The verdict, or None where a model had to be asked."""
    model = ScriptedModel(facts())
    kept = await judge_customer(model, now, BRIEF, said)
    return None if model.requests else kept


async def judged(now: Situation, found: Expected, *said: Said) -> str:
    """Why the customer did not keep to the brief, or nothing."""
    kept = await judge_customer(ScriptedModel(found), now, BRIEF, said)
    return "" if kept.kept else kept.because


class TestWhatIsCertain:
    @pytest.mark.parametrize(
        "text",
        ["Where is order 55555?", "My order number is 55555.", "Account no. 9999-99, please."],
    )
    async def test_another_number_of_the_same_kind_spoils_it(self, text: str) -> None:
        kept = await certain(talk(text, "One moment."))
        assert kept is not None
        assert not kept.kept
        assert "the brief says" in kept.because

    @pytest.mark.parametrize(
        "texts",
        [
            ("Where is order 88123?",),
            ("Where is order 88 123?",),
            ("My account is 447102.",),
            ("My invoice 55555 is wrong.",),  # the brief names no invoice
            ("Order 55555? No, order 88123.",),
            ("Hi", "Do you mean order 55555?", "No order 55555 is mine."),
            ("Order 12, please.",),
        ],
    )
    async def test_the_same_number_and_numbers_that_may_be_right_do_not(
        self, texts: tuple[str, ...]
    ) -> None:
        assert await certain(talk(*texts)) is None

    async def test_what_is_known_of_the_customer_is_not_another_number(self) -> None:
        assert await certain(talk("Where is order 55555?", orders=["55555"])) is None

    async def test_the_same_for_the_third_time_spoils_it_though_the_agent_asked_otherwise(
        self,
    ) -> None:
        same = "I want a table."
        kept = await certain(talk(same, "When?", same.upper(), "Which day?", same))
        assert kept is not None
        assert "third time" in kept.because
        ended = Said(text="", done=True, because=REPEATED)
        assert await certain(talk(same, "When?", same, "Which day?"), ended) is not None

    async def test_an_agent_that_says_the_same_is_told_the_same(self) -> None:
        same = "I want a table."
        assert await certain(talk(same, "Pardon?", same, "Pardon?", same)) is None
        assert await certain(talk("Yes.", "Sure?", "Yes.", "Really?", "Yes.")) is None
        assert await certain(talk(same, "When?", same, "Which day?", "Friday", "?", same)) is None

    async def test_who_said_nothing_did_not_keep_to_it(self) -> None:
        kept = await certain(talk())
        assert kept is not None
        assert (kept.kept, kept.because) == (False, SAID_NOTHING)


class TestWhatAJudgeFound:
    async def test_who_strays_more_than_once_or_from_the_first_is_quoted(self) -> None:
        now = talk("Where is my order?", "Sent.", "Sell me a bike!", "Which?", "A red bike!")
        twice = facts(Does.ASKS, Does.STRAYS, Does.STRAYS)
        assert "“Sell me a bike!”" in await judged(now, twice)
        never_asked = facts(Does.ANSWERS, Does.STRAYS, Does.ANSWERS)
        assert "“Sell me a bike!”" in await judged(now, never_asked)

    async def test_one_message_that_strays_among_others_may_be_a_side_question(self) -> None:
        now = talk("Where is my order?", "Sent.", "Sell me a bike!")
        assert not await judged(now, facts(Does.ASKS, Does.STRAYS))

    async def test_one_message_as_the_agent_is_enough(self) -> None:
        now = talk("Where is my order?", "Sent.", "How can I help?")
        assert "“How can I help?”" in await judged(now, facts(Does.ASKS, Does.PLAYS_AGENT))

    async def test_a_judge_that_tells_of_more_messages_than_there_are_is_not_believed(self) -> None:
        assert not await judged(talk("Hi"), facts(Does.ASKS, Does.PLAYS_AGENT))

    @pytest.mark.parametrize(
        ("customer", "part", "fits", "spoiled"),
        [
            ("nine", "four", False, True),
            ("nine", "four", True, False),
            ("Order 7", "88123", True, False),  # not what the customer said
            ("9", "88123", True, True),  # numbers differ whatever the model says
            ("nine", "two", False, False),  # the brief does not say two
            ("nine", "nothing", False, False),
            ("Friday", "four", False, False),  # the brief says Friday too
            ("nine", "", False, False),
        ],
    )
    async def test_a_detail_spoils_it_where_both_said_it_and_it_differs(
        self, customer: str, part: str, fits: bool, spoiled: bool
    ) -> None:
        now = talk("We are nine, or 9, on Friday.", "Noted.")
        found = facts(Does.ASKS, details=[detail(customer, part, fits=fits)])
        assert bool(await judged(now, found)) is spoiled

    async def test_who_says_the_right_one_too_is_not_blamed_for_the_other(self) -> None:
        now = talk("Not Monday: Friday, please.")
        assert not await judged(now, facts(Does.ASKS, details=[detail("Monday", "Friday")]))

    async def test_an_end_without_reason_spoils_it_only_where_the_customer_ended_it(self) -> None:
        now = talk("Where is my order?", "Your account?")
        found = facts(Does.ASKS, ended=Ended.NO_REASON)
        bored = Said(text="", done=True, because="I am bored.")
        assert "“I am bored.”" in await judged(now, found, bored)
        assert not await judged(now, found)
