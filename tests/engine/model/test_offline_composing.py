"""The offline model composes: what awaits a word, canned responses chosen or followed in manner, replies checked."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.events import ConfirmationAskedEvent, Event, MessageEvent, Source
from engine.model.offline.demands import problem_with, put_right
from engine.model.offline.model import OfflineModel
from engine.spec import (
    Agent,
    CannedResponse,
    Composition,
    Criticality,
    RelationKind,
    Relationship,
)
from engine.testing import ScriptedTools, entries, play, scripted_kit
from engine.tools.base import ToolResult
from engine.trail import Adherence, ReplySource
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of

ORDER = tool(
    "order_seeds",
    parameter("packets", "integer"),
    parameter("plant"),
    consequential=True,
    description="Orders packets of seeds of a plant.",
)
STOCK = tool("get_stock", description="Counts what is there.")
RULES = (
    guideline(
        "order",
        "the customer wants to order seeds",
        "order the seeds and tell them that the seeds are on their way",
        tools=("order_seeds",),
    ),
    guideline("stock", "the customer asks what is in stock", "tell them", tools=("get_stock",)),
    guideline(
        "poison",
        "the customer asks whether a plant is poisonous",
        "say that you cannot judge this",
        canned_responses=("r3",),
    ),
    guideline("greeting", "the customer greets", "greet them"),
)
RESPONSES = (
    "Our garden is open from eight to six.",
    "Welcome to the garden! What are you looking for?",
    "Please ask a doctor or the poison centre; we must not judge this.",
    "We have {{ roses }} roses in stock.",
    "Do you want us to {{ confirmations|join(' and to ') }}?",
    "Please give us the {{ missing|join(' and the ') }}.",
    "You are most welcome.",
)


def nursery(composition: Composition, *more: Any, **options: Any) -> Agent:
    canned = tuple(CannedResponse(uid=f"r{n}", text=t) for n, t in enumerate(RESPONSES, start=1))
    return agent(
        *RULES,
        *more,
        tools=[ORDER, STOCK],
        canned_responses=canned,
        composition=composition,
        **options,
    )


def _stock(_arguments: Any, _context: Any) -> ToolResult:
    return ToolResult(data={"roses": 12}, canned_response_fields={"roses": 12})


async def answer(spec: Agent, *events: Event | str) -> tuple[str, ReplySource, list[Adherence]]:
    tools: dict[str, Callable[..., Any]] = {
        "get_stock": _stock,
        "order_seeds": lambda _a, _c: {"order": "S-9"},
    }
    kit = scripted_kit(OfflineModel(), ScriptedTools(tools))
    emitted = await play(turn_of(spec, *events), kit)
    (source,) = entries(emitted, ReplySource)
    return entries(emitted, MessageEvent)[-1].text, source, entries(emitted, Adherence)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Hello!", RESPONSES[1]),
        ("When is the garden open?", RESPONSES[0]),
        ("Is ivy a poisonous plant?", RESPONSES[2]),
        ("What do you have in stock?", "We have 12 roses in stock."),
        ("I want to order seeds", "Please give us the packets and the plant."),
        (
            "I want to order 3 packets of seeds of the plant Thyme",
            "Do you want us to order seeds (packets: 3, plant: Thyme)?",
        ),
        ("Thank you so much", RESPONSES[6]),
    ],
)
async def test_the_response_that_fits_is_chosen(message: str, said: str) -> None:
    reply, source, _report = await answer(nursery(Composition.STRICT), message)
    assert (reply, source.fits) == (said, True)


@pytest.mark.parametrize("message", ["Do you repair bicycles?", "¿?", "asdf qwer"])
async def test_none_is_chosen_where_none_is_close(message: str) -> None:
    spec = nursery(Composition.STRICT, no_match="Please ring the bell.")
    reply, source, _report = await answer(spec, message)
    assert (reply, source.fits) == ("Please ring the bell.", False)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Hello!", RESPONSES[1]),
        ("When is the garden open?", RESPONSES[0]),
        ("What do you have in stock?", "12"),
        ("Thank you so much", RESPONSES[6]),
    ],
)
async def test_a_reply_in_the_manner_of_responses_uses_their_words(message: str, said: str) -> None:
    reply, source, _report = await answer(nursery(Composition.COMPOSITED), message)
    assert said in reply
    assert source.composition is Composition.COMPOSITED


def _asked() -> ConfirmationAskedEvent:
    return ConfirmationAskedEvent(
        call="c1",
        tool="order_seeds",
        arguments={"packets": 3, "plant": "Thyme"},
        guidelines=("order",),
        labels={"packets": "packets", "plant": "plant"},
        asked_at=datetime.now(UTC),
    )


ASKED = ("Order 3 packets of Thyme", _asked(), said_by(Source.AGENT, "Shall I go ahead?"))


class TestWhatAwaitsTheCustomersWord:
    async def test_the_yes_is_asked_for_with_each_value_and_nothing_is_claimed(self) -> None:
        reply, *_ = await answer(
            nursery(Composition.FLUID), "I want to order 3 packets of seeds of the plant Thyme"
        )
        assert reply == "Shall I go ahead: order seeds (packets: 3, plant: Thyme)?"

    async def test_while_data_is_missing_nothing_is_claimed_either(self) -> None:
        reply, *_ = await answer(nursery(Composition.FLUID), "I want to order seeds")
        assert "on their way" not in reply
        assert reply.endswith("- Packets\n- Plant")

    async def test_after_a_yes_it_is_told_as_done(self) -> None:
        reply, *_ = await answer(nursery(Composition.FLUID), *ASKED, "yes, go ahead")
        assert reply.startswith("Done: order seeds (packets: 3, plant: Thyme).")
        assert "The seeds are on their way." in reply

    async def test_after_a_no_it_is_told_as_not_done(self) -> None:
        reply, *_ = await answer(nursery(Composition.FLUID), *ASKED, "no, leave it")
        assert reply == ("All right, I have not done this: order seeds (packets: 3, plant: Thyme).")

    async def test_another_question_is_answered_and_the_word_asked_for_again(self) -> None:
        reply, *_ = await answer(nursery(Composition.FLUID), *ASKED, "What do you have in stock?")
        first, last = reply.split("\n\n")
        assert "12" in first
        assert last.startswith("I still need your word. Shall I go ahead: order seeds")


async def test_which_is_meant_is_asked_with_the_things_to_choose_from() -> None:
    spec = agent(
        guideline("unclear", "the customer wants to water a plant", "ask which plant"),
        guideline("indoors", "the customer wants to water their indoor plant", "tell them how"),
        guideline("outdoors", "the customer wants to water their outdoor plant", "tell them how"),
        relationships=(
            Relationship(
                uid="r", kind=RelationKind.DISAMBIGUATES, source="unclear",
                targets=("indoors", "outdoors"),
            ),
        ),
    )  # fmt: skip
    reply, *_ = await answer(spec, "I want to water my plant")
    assert reply == (
        "Which of these do you mean?\n"
        "- You want to water your indoor plant.\n"
        "- You want to water your outdoor plant."
    )


async def test_a_verified_reply_is_put_right_by_what_must_hold() -> None:
    law = guideline(
        "law", "", 'Never mention weeds and say "Prices include tax."', criticality=Criticality.HIGH
    )
    spec = nursery(
        Composition.FLUID,
        law,
        guideline("soil", "the customer asks about soil", "tell them that weeds love it"),
        verified_replies=True,
    )
    reply, _source, report = await answer(spec, "How about the soil?")
    assert reply == "Prices include tax."
    found = [(a.attempt, a.follows, a.note) for a in report if a.checked]
    assert found == [
        (1, False, "The reply speaks of “weeds”."),
        (2, True, "It says what the guideline gives word for word, and nothing that it rules out."),
    ]


@pytest.mark.parametrize(
    ("action", "reply", "about"),
    [
        ('say "Calls are recorded."', "Hello! Calls are  RECORDED, by the way.", ""),
        ('say "Calls are recorded."', "Hello!", "Calls are recorded."),
        ('greet them and end with "Have a nice day!"', "Hello!", "Have a nice day!"),
        ('if they are angry, say "Sorry."', "Hello!", ""),
        ("never mention prices or dates", "The price is 20.", "prices"),
        ("do not promise a refund", "You will get a refund.", "a refund"),
        ("do not promise a refund", "I cannot promise a refund.", ""),
        ("don't give out phone numbers", "Our phone number is 555.", "phone numbers"),
        ('avoid saying "unfortunately"', "Unfortunately, it is gone.", "unfortunately"),
        ("never offer a discount unless they ask", "Here is a discount.", ""),
        ("explain how to repot it", "No.", ""),
        ("be brief", "Yes.", ""),
    ],
)
def test_what_words_can_show_of_a_guideline_is_checked(action: str, reply: str, about: str) -> None:
    problem = problem_with(reply, action)
    assert bool(problem) == bool(about)
    assert about in problem
    assert problem_with(put_right(reply, [action]), action) == ""
