"""The offline model as a ChatModel: its answers fit their schemas, are the same every time, and never fail."""

import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine import prompts
from engine.errors import ToolError, ToolErrorKind
from engine.events import (
    BriefingEvent,
    Event,
    MessageEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
)
from engine.model.base import (
    ComposeReply,
    InferToolCalls,
    MatchGuidelines,
    ModelReply,
    Question,
    Situation,
    TextDelta,
)
from engine.spec import Agent, Example, Guideline, ParameterSource, Tool, ToolParameter
from engine.trail import InsightKind, ToolInsight
from tests.engine.agents import history
from tests.engine.model.offline_talk import model, one_of, rule, tool, wants

AGENT = Agent(
    slug="museum",
    name="Museum",
    guidelines=(
        rule("hours", "the visitor asks about opening hours", "tell them", "opening_hours"),
        rule("tour", "the visitor wants to book a tour", "book it", "book_tour"),
    ),
    tools=(
        tool("opening_hours", "When the museum is open", wants("day", "date", required=False)),
        tool(
            "book_tour",
            "Book a tour",
            wants("people", "integer"),
            wants("language", one_of("en", "de")),
        ),
    ),
)


def situation(*events: Event | str, agent: Agent = AGENT) -> Situation:
    past = history(*events)
    return Situation(agent=agent, history=past, turn=past[-1].turn if past else 1)


def questions(now: Situation) -> Iterator[Question]:
    guidelines = now.agent.guidelines
    yield MatchGuidelines(situation=now, guidelines=guidelines)
    for asked in now.agent.tools:
        yield InferToolCalls(situation=now, tool=asked, guidelines=guidelines)
    yield ComposeReply(situation=now, guidelines=guidelines)


async def test_a_streamed_answer_is_its_text_in_pieces_and_then_the_reply() -> None:
    request = prompts.build(ComposeReply(situation=situation("hi"), guidelines=()))

    items = [item async for item in model().stream(request)]

    pieces = [item.text for item in items if isinstance(item, TextDelta)]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert len(pieces) == len(items) - 1 > 1
    assert json.loads("".join(pieces)) == reply.answer
    assert (reply.model, reply.prompt_tokens, reply.completion_tokens) == ("offline", 0, 0)


async def test_without_streaming_only_the_reply_comes() -> None:
    request = prompts.build(MatchGuidelines(situation=situation("hi"), guidelines=AGENT.guidelines))

    items = [item async for item in model().stream(request)]

    assert [type(item) for item in items] == [ModelReply]


def test_the_same_question_has_the_same_answer() -> None:
    for question in questions(situation("can I book a tour for 5 people in German on Friday?")):
        assert model().answer(question) == model().answer(question)


STRANGE = [
    "",
    "   \n\n ",
    "?",
    "<script>alert(1)</script> & [x](javascript:1)",
    "{0} %s {{x}} \\",
    "你好,我想订两张票",
    "مرحبا، متى تفتحون؟",
    "🙂🙂🙂",
    "\x00\u202e\ud83d ﬀ İ ß",
    "9" * 5_000,
    "a " * 5_000,
    "send 5 to Ann and " * 300,
    "1 may to 2 may " * 300,
    '"' * 4_000,
    " " * 100_000,
    "x" * 100_000,
]


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_strange_messages_get_a_fitting_answer_in_good_time(text: str) -> None:
    started = time.perf_counter()
    for question in questions(situation(text)):
        answer = model().answer(question)
        Draft202012Validator(prompts.build(question).schema).validate(answer)
    assert time.perf_counter() - started < 5  # a guard against running away, not a measurement


WORDS = (
    "hello|€|50|1.2.3|--|#|@|a@b|{}|99:99|Paris|the|I|to|from|and|,|-5|1e400|no|yes|cheapest|first|\n|?|!|in 2 days|"
    "tomorrow|31 February 2027|30.02.2026|half past ten|an hour and a half|two hundred|ORD-1|NB 20|"
    "dollars|USD/EUR|“x”|it|that|again"
).split("|")
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer", "minimum": 3},
    {"type": "number"},
    {"type": "boolean"},
    *(
        {"type": "string", "format": f}
        for f in ("date", "date-time", "time", "duration", "email", "uuid")
    ),
    {"enum": ["a", "b", None]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": {"type": "integer"}},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"type": ["string", "null"]},
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "n": {"type": "number"}},
        "required": ["n"],
    },
    {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"oneOf": [{"const": "a", "title": "Ay"}, {"const": 2}]},
    {"type": "array", "prefixItems": [{"type": "string"}]},
    {"type": "string", "pattern": "^[A-Z]+$"},
    {"allOf": [{"type": "integer"}]},
    {"const": 3},
)
NAMES = (
    "amount date id order_id query name city from_currency to_currency reason start end email items address x"
).split()
CONDITIONS = (
    "",
    "the customer says hello",
    "the balance is below",
    "more than more than 5",
    "between and",
    "is between 1 and 2",
    "no results",
    "the customer does not mention",
    "or or or",
    "the customer wants x or y",
    "first message",
    "off-topic",
    "the order is late",
    "above € 1.5k",
    "and and if",
    "the tool fails",
    "the customer picks one",
)
ACTIONS = (
    "",
    'say "x',
    "tell them",
    "ask",
    "offer them",
    "apologise",
    "say that",
    "if x then y",
    "ask for",
    "\x01 0\x01",
)


class Generator:
    """Random agents, sessions and questions; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.choice((0, 1, 3, 9))))

    def data(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if depth > 3 or kind < 0.4:
            return self.random.choice(
                (None, True, 1, -2.5, "x", "", self.text(), "2026-11-21", 10**18, 1e300)
            )
        if kind < 0.7:
            return [self.data(depth + 1) for _ in range(self.random.randint(0, 4))]
        keys = self.random.sample(
            ["id", "name", "balance", "currency", "due_date", "a b", "", "message", "_x"], 3
        )
        return {key: self.data(depth + 1) for key in keys}

    def tool(self, number: int) -> Tool:
        parameters = tuple(
            ToolParameter(
                name=name,
                schema=self.random.choice(SCHEMAS),
                required=self.random.random() < 0.6,
                description=self.text(),
                source=self.random.choice(list(ParameterSource)),
            )
            for name in self.random.sample(NAMES, self.random.randint(0, 4))
        )
        return tool(
            f"t{number}", self.text(), *parameters, consequential=self.random.random() < 0.3
        )

    def guideline(self, number: int, tools: tuple[Tool, ...]) -> Guideline:
        named = [t.name for t in tools if self.random.random() < 0.5]
        return rule(
            f"g{number}",
            self.random.choice((*CONDITIONS, self.text())),
            self.random.choice((*ACTIONS, self.text())),
            *named,
            reevaluate_after=("t0",) if self.random.random() < 0.3 else (),
            examples=(Example(text=self.text(), matches=self.random.random() < 0.5),),
        )

    def event(self) -> Event:
        error = ToolError(kind=ToolErrorKind.TIMEOUT, public=self.text())
        told = {"ask for": [{"what": "amount", "needed for": "t0"}]}
        makers: tuple[Callable[[], Event], ...] = (
            lambda: MessageEvent(source=self.random.choice(list(Source)), text=self.text()),
            lambda: ToolFinishedEvent(
                call="c", tool="t1", arguments={"amount": 3}, data=self.data()
            ),
            lambda: ToolFinishedEvent(call="c", tool="gone", arguments={}, error=error),
            lambda: BriefingEvent(guidelines=("g1", "g2"), content=told),
        )
        return self.random.choice(makers)()

    def questions(self) -> Iterator[Question]:
        tools = tuple(self.tool(number) for number in range(3))
        guidelines = tuple(self.guideline(number, tools) for number in range(6))
        agent = Agent(slug="s", name="n", guidelines=guidelines, tools=tools)
        past: list[RecordedEvent] = []
        turn = 1
        for offset in range(self.random.randint(0, 12)):
            turn += self.random.random() < 0.3
            past.append(RecordedEvent(offset=offset, turn=turn, event=self.event()))
        now = Situation(
            agent=agent, history=tuple(past), turn=turn, variables={"city": "x", "n": {"id": 1}}
        )
        yield from questions(now)
        insights = tuple(
            ToolInsight(
                tool="t0",
                parameter="p",
                kind=kind,
                label=self.random.choice(NAMES),
                iteration=1,
                reason=self.text(),
                description=self.text(),
                choices=(1, "a", None),
                value=self.data(2),
            )
            for kind in InsightKind
        )
        yield ComposeReply(situation=now, guidelines=guidelines[:2], insights=insights)


@pytest.mark.parametrize("seed", range(60))
def test_generated_sessions_get_fitting_answers(seed: int) -> None:
    for question in Generator(seed).questions():
        answer = model().answer(question)

        Draft202012Validator(prompts.build(question).schema).validate(answer)
        assert answer == model().answer(question)
        if isinstance(question, MatchGuidelines):
            labels = [entry["guideline"] for entry in answer["judgements"]]
            assert labels == [f"G{number}" for number in range(1, 7)]
        if isinstance(question, ComposeReply):
            assert answer["reply"].strip()
