"""The offline model as a customer: it says what its brief says, to agents of subjects that have nothing in common."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.canonical import JsonObject
from engine.customer_brief import CustomerBrief
from engine.events import ConfirmationAskedEvent, Event, MessageEvent, Mode, ModeEvent, Source
from engine.model.base import Situation
from engine.model.offline.asked import Asks, asked_in
from engine.model.offline.first_person import wish
from engine.model.offline.recalling import Memory
from engine.simulating import (
    Budget,
    Ending,
    Kept,
    Said,
    ended_by,
    judge_customer,
    next_message,
)
from engine.spec import Agent
from engine.turn_record import TurnRecord
from tests.engine.agents import agent, history, said_by
from tests.engine.model.offline_talk import NOW, Talk, model, rule, tool, wants
from tests.engine.sessions import HOSTILE

ANY_TEXT = st.text(max_size=80) | st.sampled_from(HOSTILE)


def brief(goal: str, persona: str = "", stop: str = "") -> CustomerBrief:
    return CustomerBrief(persona=persona, goal=goal, stop=stop)


def situation(*events: Event | str, variables: JsonObject | None = None) -> Situation:
    past = history(*events)
    turn = past[-1].turn if past else 1
    return Situation(agent=agent(), history=past, turn=turn, variables=variables or {})


def by_agent(text: str) -> MessageEvent:
    return said_by(Source.AGENT, text)


async def says(
    to: str, played: CustomerBrief, *before: Event | str, variables: JsonObject | None = None
) -> Said:
    """What the customer says to this, after their opening and whatever else came before."""
    now = situation(*(before or (wish(played.goal),)), by_agent(to), variables=variables)
    return await next_message(model(), now, played)


@dataclass
class Simulated:
    """A conversation of the offline customer with the offline agent, played to its end as a studio plays it."""

    talk: Talk
    played: CustomerBrief
    budget: Budget = field(default_factory=Budget)
    said: list[Said] = field(default_factory=list)

    async def run(self) -> tuple[Ending, Kept]:
        turns: list[TurnRecord] = []
        while (ending := ended_by(self.said, turns, self.budget)) is None:
            self.said.append(await next_message(model(), self.situation, self.played))
            if not self.said[-1].done:
                turn = await self.talk.say(self.said[-1].text)
                events = tuple(e for e in turn.emitted if isinstance(e, MessageEvent | ModeEvent))
                turns.append(
                    TurnRecord(number=len(turns), agent=self.talk.agent, events=events, trail=())
                )
        return ending, await judge_customer(model(), self.situation, self.played, self.said)

    @property
    def situation(self) -> Situation:
        return Situation(
            agent=self.talk.agent,
            history=tuple(self.talk.history),
            turn=self.talk.turn + 1,
            variables=self.talk.variables,
        )

    @property
    def spoken(self) -> list[str]:
        return [one.text for one in self.said if not one.done]


LIBRARY = Agent(
    slug="library",
    name="Library",
    guidelines=(
        rule("renew", "the reader wants to renew a loan", "renew the loan", "renew_loan"),
        rule("hours", "the reader asks about opening hours", "say that we open at nine"),
    ),
    tools=(
        tool(
            "renew_loan",
            "Renew a loan",
            wants("card_number", "string", "The number of the library card"),
            consequential=True,
        ),
    ),
)
ENERGY = Agent(
    slug="energy",
    name="Energy",
    guidelines=(
        rule("bill", "the customer asks about a bill", "tell them the amount", "get_bill"),
        rule("move", "the customer moves house", "explain how to register the new flat"),
    ),
    tools=(
        tool("get_bill", "The latest bill", wants("customer_number", "string", "On every letter")),
    ),
)
RESTAURANT = Agent(
    slug="restaurant",
    name="Restaurant",
    guidelines=(
        rule("book", "the guest wants to book a table", "book it", "book_table"),
        rule("menu", "the guest asks about the menu", "say that it changes every day"),
    ),
    tools=(
        tool(
            "book_table",
            "Book a table",
            wants("day", "date"),
            wants("number_of_people", "integer"),
            consequential=True,
        ),
    ),
)


class TestAgainstTheOfflineAgent:
    async def test_a_loan_is_renewed_with_the_card_of_the_brief_and_the_customers_word(
        self,
    ) -> None:
        called: list[str] = []

        def renew_loan(card_number: str) -> JsonObject:
            called.append(card_number)
            return {"status": "The loan is renewed until 5 May."}

        talk = Talk(agent=LIBRARY, functions={"renew_loan": renew_loan})
        run = Simulated(
            talk, brief("have their loan renewed", "forgetful, library card number RL-2093")
        )
        ending, kept = await run.run()
        assert called == ["RL-2093"]
        assert run.spoken[0] == "I want to have my loan renewed."
        assert "Yes, please." in run.spoken
        assert (ending, kept.kept) == (Ending.DONE, True)

    async def test_a_bill_is_asked_for_and_told(self) -> None:
        talk = Talk(agent=ENERGY, functions={"get_bill": lambda customer_number: {"bill": 81.5}})
        played = brief("find out how high the latest bill is", "Jo Park; customer number 55-120")
        run = Simulated(talk, played)
        ending, kept = await run.run()
        assert any("55-120" in text for text in run.spoken)
        assert "81.5" in talk.history[-1].event.text  # type: ignore[union-attr]
        assert (ending, kept.kept) == (Ending.DONE, True)

    async def test_who_does_not_know_says_so_and_gives_up(self) -> None:
        talk = Talk(agent=ENERGY, functions={"get_bill": lambda customer_number: {"bill": 81.5}})
        run = Simulated(talk, brief("find out how high the latest bill is", "has lost all papers"))
        ending, kept = await run.run()
        assert sum("I do not know" in text for text in run.spoken) in (1, 2)
        assert (ending, kept.kept) == (Ending.DONE, True)

    async def test_a_table_is_booked_for_the_day_and_the_people_of_the_brief(self) -> None:
        called: list[tuple[str, int]] = []

        def book_table(day: str, number_of_people: int) -> JsonObject:
            called.append((day, number_of_people))
            return {"status": "The table is booked."}

        talk = Talk(agent=RESTAURANT, functions={"book_table": book_table})
        run = Simulated(talk, brief("book a table", "four people, on 4 December 2026"))
        ending, _kept = await run.run()
        assert called == [("2026-12-04", 4)]
        assert ending is Ending.DONE

    async def test_who_never_agrees_books_nothing(self) -> None:
        called: list[str] = []
        talk = Talk(
            agent=RESTAURANT, functions={"book_table": lambda **given: called.append(str(given))}
        )
        played = brief("book a table", "four people, on 4 December 2026; never agrees to anything")
        await Simulated(talk, played).run()
        assert called == []

    async def test_the_budget_ends_a_conversation_that_goes_nowhere(self) -> None:
        run = Simulated(
            Talk(agent=RESTAURANT), brief("find out who won the chess match"), Budget(turns=2)
        )
        ending, _kept = await run.run()
        assert (ending, len(run.spoken)) == (Ending.TURNS, 2)


class TestOpening:
    @pytest.mark.parametrize(
        ("goal", "said"),
        [
            (
                "find out whether the refund has arrived",
                "I want to find out whether the refund has arrived.",
            ),
            ("to change your delivery address", "I want to change my delivery address."),
            ("The patient wants to move her visit", "I want to move my visit."),
            ("a refund for the broken kettle", "I want a refund for the broken kettle."),
            ("whether they may bring a dog", "I want to know whether I may bring a dog."),
            ("cancelling the gym membership", "It is about cancelling the gym membership."),
            ("asks for a quieter room", "I want to ask for a quieter room."),
            ("they have been charged twice", "I have been charged twice."),
            ("where is my parcel?", "Where is my parcel?"),
            ("I need a plumber", "I need a plumber."),
            ("erfahren, wann der Techniker kommt", "Erfahren, wann der Techniker kommt."),
            ("book a table. They are vegetarian.", "I want to book a table."),
            ("", ""),
        ],
    )
    def test_the_goal_is_the_customers_own_wish(self, goal: str, said: str) -> None:
        assert wish(goal) == said

    async def test_it_opens_the_conversation_even_without_a_goal(self) -> None:
        said = await next_message(model(), situation(), brief(""))
        assert said.text
        assert not said.done


class TestWhatTheAgentAsks:
    @pytest.mark.parametrize(
        ("text", "labels"),
        [
            ("Could you tell me your account number?", ("account number",)),
            ("Thank you. And your order number, please?", ("order number",)),
            ("For which day and time?", ("day", "time")),
            ("Then I need your name and your date of birth.", ("name", "date of birth")),
            ("How many guests will come?", ("number of guests",)),
            ("When did you buy it?", ("date",)),
            ("To pay, could you give me the following?\n- Amount\n- To (who gets it)", ("amount", "to")),
            ("What date would you like to travel on?", ("date",)),
            ("Please give me your customer number or e-mail.", ("customer number", "e-mail")),
        ],
    )  # fmt: skip
    def test_data_by_name(self, text: str, labels: tuple[str, ...]) -> None:
        (asked,) = asked_in(text)
        assert (asked.kind, asked.labels) == (Asks.DATA, labels)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("Shall I go ahead: book table (day: Friday)?", Asks.YES),
            ("Would you like me to block it?", Asks.YES),
            ("Please confirm.", Asks.YES),
            ("May I have your name?", Asks.DATA),
            ("Hello! How can I help you?", Asks.WISH),
            ("Is there anything else?", Asks.MORE),
            ("Let me know if you need anything else.", Asks.MORE),
            ("Do you still have the receipt?", Asks.DETAIL),
            ("Which one suits you?", Asks.WHICH),
        ],
    )
    def test_and_other_things(self, text: str, kind: Asks) -> None:
        assert [one.kind for one in asked_in(text)] == [kind]

    def test_a_statement_asks_nothing(self) -> None:
        assert asked_in("Your parcel was delivered on 3 May: it lies at the neighbour's.") == []


class TestRemembering:
    MEMORY = Memory(
        brief=brief(
            "find out whether the refund for order 88123 has arrived",
            "a hurried pensioner, account number 4471-02, name Ruth Miller. Lives in Leeds, "
            "bought the kettle four months ago for 35 euros; shoe size 42, the colour is dark blue",
        ),
        variables={"contact": {"email": "ruth@example.org", "tier": "gold"}, "vip": True},
        now=NOW,
    )

    @pytest.mark.parametrize(
        ("label", "question", "value"),
        [
            ("account number", "Your account number?", "4471-02"),
            ("order number", "Your order number?", "88123"),
            ("name", "Your name, please?", "Ruth Miller"),
            ("e-mail address", "Your e-mail address?", "ruth@example.org"),
            ("tier", "Which tier?", "gold"),
            ("city", "In which city?", "Leeds"),
            ("shoe size", "Which shoe size?", "42"),
            ("colour", "Which colour?", "dark blue"),
            ("amount", "How much was the kettle?", "35"),
            ("date", "When did you buy the kettle?", "four months ago"),
        ],
    )
    def test_a_value_of_the_right_kind_and_of_the_right_thing(
        self, label: str, question: str, value: str
    ) -> None:
        assert self.MEMORY.value(label, question) == value

    @pytest.mark.parametrize(
        ("label", "question"),
        [
            ("customer number", "Your customer number?"),
            ("date of birth", "Your date of birth?"),
            ("phone number", "Your phone number?"),
            ("date", "When were you born?"),
            ("name", "And the name of your manager?"),
        ],
    )
    def test_nothing_is_passed_off_as_something_else(self, label: str, question: str) -> None:
        label = "name of your manager" if "manager" in question else label
        assert self.MEMORY.value(label, question) == ""


class TestAnswering:
    async def test_several_things_at_once_known_and_not(self) -> None:
        played = brief("renew the loan", "card number RL-2093")
        said = await says("I need your card number and your date of birth.", played)
        assert said.text == "My card number is RL-2093. I do not know the date of birth."

    async def test_a_yes_where_a_call_awaits_it_though_the_words_do_not_ask(self) -> None:
        asked = ConfirmationAskedEvent(
            call="c", tool="t", arguments={}, guidelines=(), labels={}, asked_at=NOW
        )
        said = await says("It would cost 5 euros.", brief("get a seat"), "A seat", asked)
        assert said.text == "Yes, please."

    async def test_of_several_things_the_one_that_the_goal_speaks_of(self) -> None:
        said = await says(
            "Which of these do you mean?\n- You open an account.\n- You close an account.",
            brief("close the savings account"),
        )
        assert said.text == "You close an account."

    async def test_what_the_brief_tells_of_a_fault(self) -> None:
        played = brief("get the boiler repaired", "the boiler leaks since Monday, two children")
        said = await says("Does the boiler leak?", played)
        assert "leaks" in said.text

    async def test_asked_what_they_want_they_say_it_in_other_words_and_not_for_ever(self) -> None:
        events: list[Event | str] = []
        spoken = []
        for _number in range(6):
            said = await next_message(model(), situation(*events), brief("get a new key"))
            if said.done:
                break
            spoken.append(said.text)
            events += [said.text, by_agent("How can I help you?")]
        assert len(spoken) == len(set(spoken)) == 3
        assert all("new key" in text for text in spoken)

    async def test_asked_the_same_again_they_say_so_once(self) -> None:
        played = brief("renew the loan", "card number RL-2093")
        first = "My card number is RL-2093."
        again = await says("Your card number?", played, "Renew it", by_agent("Card?"), first)
        assert again.text == f"As I said: {first}"
        third = await says("Your card number?", played, "Renew it", first, again.text)
        assert third.done


class TestEnding:
    async def test_when_the_agent_speaks_of_the_goal_and_asks_nothing_more(self) -> None:
        played = brief("find out whether the refund has arrived")
        assert (await says("Your refund arrived on 3 May.", played)).done
        assert (await says("It came: the refund arrived. Anything else?", played)).done

    async def test_not_while_the_agent_asks_or_speaks_of_something_else(self) -> None:
        played = brief("find out whether the refund has arrived")
        assert not (await says("For the refund, what is your name?", played)).done
        assert not (await says("We open at nine.", played)).done

    async def test_not_by_what_a_tool_says_while_it_works(self) -> None:
        played = brief("find out whether the refund has arrived")
        at_work = MessageEvent(
            source=Source.AGENT, text="Looking up the refund that arrived", model="tool refunds"
        )
        said = await says("We open at nine.", played, "My refund?", at_work)
        assert not said.done

    async def test_when_somebody_else_takes_over(self) -> None:
        played = brief("get a refund")
        assert (await says("I am connecting you to a colleague.", played)).done
        assert not (await says("Shall I connect you to a colleague?", played)).done
        manual = ModeEvent(mode=Mode.MANUAL)
        assert (await says("One moment, what is it?", played, "A refund", manual)).done

    async def test_after_having_said_twice_that_they_do_not_know(self) -> None:
        said = await says(
            "What is your card number?",
            brief("renew the loan"),
            "Renew it",
            by_agent("Your name?"),
            "I do not know the name.",
            by_agent("Your card?"),
            "I do not know the card number.",
        )
        assert said.done


class TestJudging:
    async def judged(self, played: CustomerBrief, *said: str) -> Kept:
        events = [event for text in said for event in (text, by_agent("Hm."))]
        return await judge_customer(model(), situation(*events), played)

    async def test_who_speaks_of_the_goal_kept_to_it(self) -> None:
        assert (await self.judged(brief("renew a loan"), "Hi", "I'd like to renew it")).kept

    async def test_who_never_speaks_of_it_did_not(self) -> None:
        kept = await self.judged(brief("renew a loan"), "Hi", "What is the weather like?")
        assert not kept.kept
        assert "something else than the goal" in kept.because

    async def test_who_said_nothing_did_not(self) -> None:
        assert not (await self.judged(brief("renew a loan"))).kept


@given(
    goal=ANY_TEXT,
    persona=ANY_TEXT,
    replies=st.lists(
        ANY_TEXT
        | st.sampled_from(
            ["How can I help?", "Shall I go ahead?", "Your name and e-mail?", "- a\n- b?", "No."]
        ),
        min_size=1,
        max_size=12,
    ),
    turns=st.integers(1, 9),
)
@settings(max_examples=150, deadline=None)
async def test_whatever_is_said_it_never_raises_and_never_runs_on_beyond_the_budget(
    goal: str, persona: str, replies: list[str], turns: int
) -> None:
    said: list[Said] = []
    events: list[Event | str] = []
    records: list[TurnRecord] = []
    played = brief(goal, persona, goal)
    while (ending := ended_by(said, records, Budget(turns=turns))) is None:
        now = situation(*events, variables={"note": persona, "n": {"goal": goal}})
        said.append(await next_message(model(), now, played))
        if not said[-1].done:
            events += [said[-1].text, by_agent(replies[len(records) % len(replies)])]
            records.append(TurnRecord(number=1, agent=agent(), events=(), trail=()))
    await judge_customer(model(), situation(*events), played, said)
    assert ending in (Ending.DONE, Ending.TURNS)
    assert sum(not one.done for one in said) <= turns
    assert all(one.text or one.done for one in said)
