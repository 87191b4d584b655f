"""RetryingModel: which failures are asked again, after which pause, and what the trail can see of it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.model.base import (
    AttemptFailed,
    JudgingStyle,
    MatchGuidelines,
    ModelReply,
    ModelRequest,
    Situation,
    TextDelta,
)
from engine.model.openai import OpenAIModel
from engine.model.retrying import RetryingModel
from engine.spec import Agent
from engine.trail import Message
from tests.openai_server import BreakOff, Hang, NoChoices, OpenAIServer, Raw, Say, Status

SCHEMA = {
    "type": "object",
    "properties": {"applies": {"type": "boolean"}},
    "required": ["applies"],
    "additionalProperties": False,
}
GOOD = {"applies": True}
Item: TypeAlias = TextDelta | AttemptFailed | ModelReply


def make_request(**overrides: Any) -> ModelRequest:
    situation = Situation(agent=Agent(slug="a", name="A"), history=(), turn=1)
    values: dict[str, Any] = {
        "question": MatchGuidelines(situation=situation, guidelines=()),
        "prompt_version": "1",
        "messages": (Message(role="user", parts=("judge now",)),),
        "schema": SCHEMA,
    }
    return ModelRequest(**values | overrides)


def good(answer: Any = None) -> ModelReply:
    return ModelReply(answer=GOOD if answer is None else answer, text="said", model="fake")


def error(
    kind: ModelErrorKind = ModelErrorKind.SERVER,
    *,
    retryable: bool = True,
    wish: float | None = None,
) -> ModelError:
    return ModelError("it failed", kind=kind, retryable=retryable, retry_after=wish)


class FakeModel:
    """Plays one list of items per attempt, errors raised; notes how often it was asked and left."""

    name = "fake"
    batch_size = 4
    judging_style = JudgingStyle.SCORED

    def __init__(self, *attempts: Sequence[Item | ModelError]) -> None:
        self.attempts = list(attempts)
        self.asked = 0
        self.left = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Item]:
        items = self.attempts[self.asked]
        self.asked += 1
        try:
            for item in items:
                if isinstance(item, ModelError):
                    raise item
                yield item
        finally:
            self.left += 1


@dataclass
class Time:
    """A clock that only sleeping moves."""

    now: float = 1000.0
    pauses: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def retrying(
    inner: Any, time: Time, chance: Callable[[], float] = lambda: 1.0, **settings: Any
) -> RetryingModel:
    return RetryingModel(inner, sleep=time.sleep, chance=chance, clock=lambda: time.now, **settings)


async def outcome(
    model: RetryingModel, request: ModelRequest | None = None
) -> tuple[list[Item], ModelError | None]:
    items: list[Item] = []
    try:
        async for item in model.stream(request or make_request()):
            items.append(item)  # noqa: PERF401 - those before the error count
    except ModelError as raised:
        return items, raised
    return items, None


async def test_a_good_answer_is_passed_on_at_once() -> None:
    time, inner = Time(), FakeModel([TextDelta(text="{"), good()])
    items, raised = await outcome(retrying(inner, time))
    assert (items, raised) == ([TextDelta(text="{"), good()], None)
    assert (inner.asked, inner.left, time.pauses) == (1, 1, [])


async def test_name_batch_size_and_judging_style_are_those_of_the_model() -> None:
    model = retrying(FakeModel(), Time())
    assert (model.name, model.batch_size) == ("fake", 4)
    assert model.judging_style is JudgingStyle.SCORED


async def test_after_a_failure_the_model_is_asked_again_and_the_trail_can_see_both() -> None:
    failed = error()
    inner = FakeModel([TextDelta(text="{"), failed], [good()])
    items, raised = await outcome(retrying(inner, Time()))
    assert raised is None
    assert inner.asked == 2
    delta, attempt, reply = items
    assert delta == TextDelta(text="{")
    assert isinstance(attempt, AttemptFailed)
    assert attempt.error is failed
    assert attempt.started_at.tzinfo is not None
    assert attempt.started_at <= attempt.ended_at
    assert reply == good()


async def test_the_last_failure_is_raised_and_only_the_earlier_ones_are_told() -> None:
    errors = [error(), error(ModelErrorKind.TIMEOUT), error(ModelErrorKind.EMPTY)]
    inner = FakeModel(*([each] for each in errors))
    items, raised = await outcome(retrying(inner, Time(), attempts=3))
    assert [item.error for item in items if isinstance(item, AttemptFailed)] == errors[:2]
    assert raised is errors[2]
    assert inner.asked == inner.left == 3


async def test_a_failure_that_asking_again_cannot_cure_is_raised_at_once() -> None:
    inner = FakeModel([error(ModelErrorKind.REFUSED, retryable=False)], [good()])
    items, raised = await outcome(retrying(inner, Time()))
    assert (items, inner.asked) == ([], 1)
    assert raised is not None
    assert raised.kind is ModelErrorKind.REFUSED


async def test_other_exceptions_are_not_retried() -> None:
    class Broken(FakeModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Item]:
            self.asked += 1
            raise KeyError("a bug of ours")
            yield

    inner = Broken()
    with pytest.raises(KeyError):
        await outcome(retrying(inner, Time()))
    assert inner.asked == 1


async def test_pauses_double_up_to_the_longest_and_jitter_takes_any_part_of_them() -> None:
    for part in (1.0, 0.25, 0.0):
        time = Time()
        inner = FakeModel(*([error()] for _ in range(6)))
        await outcome(
            retrying(
                inner, time, partial(float, part), attempts=6, first_pause=0.5, longest_pause=3.0
            )
        )
        assert time.pauses == [part * pause for pause in (0.5, 1.0, 2.0, 3.0, 3.0)]


async def test_the_wish_of_a_server_is_honoured_up_to_a_cap() -> None:
    time = Time()
    inner = FakeModel([error(wish=7.0)], [error(wish=3600.0)], [error(wish=0.0)], [good()])
    await outcome(retrying(inner, time, lambda: 0.0, attempts=4, longest_wish=20.0))
    assert time.pauses == [7.0, 20.0, 0.0]


async def test_sessions_told_to_wait_equally_long_do_not_return_at_the_same_moment() -> None:
    pauses = []
    for part in (0.1, 0.9):
        time = Time()
        inner = FakeModel([error(wish=7.0)], [good()])
        await outcome(retrying(inner, time, partial(float, part)))
        pauses += time.pauses
    assert 7.0 < pauses[0] < pauses[1] < 8.0


async def test_no_attempt_begins_after_the_deadline() -> None:
    time = Time()
    inner = FakeModel([error(wish=10.0)], [error(wish=10.0)], [good()])
    items, raised = await outcome(retrying(inner, time, lambda: 0.0, deadline=15.0))
    assert inner.asked == 2
    assert len(items) == 1
    assert raised is not None
    assert time.pauses == [10.0], "the second pause would have passed the deadline: not even begun"


async def test_an_answer_that_does_not_fit_the_schema_is_asked_again() -> None:
    inner = FakeModel([good({"applies": "yes"})], [good({})], [good()])
    items, raised = await outcome(retrying(inner, Time()))
    first, second, reply = items
    assert (reply, raised) == (good(), None)
    assert isinstance(first, AttemptFailed)
    assert isinstance(second, AttemptFailed)
    assert first.error.kind is ModelErrorKind.WRONG_SCHEMA
    assert first.error.answer_text == "said"
    assert "$.applies" in str(first.error)
    assert "'yes' is not of type 'boolean'" in str(first.error)
    assert "'applies' is a required property" in str(second.error)


async def test_each_schema_is_checked_as_its_own() -> None:
    other = SCHEMA | {"properties": {"applies": {"type": "string"}}}
    model = retrying(FakeModel([good()], [good()]), Time(), attempts=1)
    assert (await outcome(model, make_request()))[1] is None
    raised = (await outcome(model, make_request(schema=other)))[1]
    assert raised is not None
    assert raised.kind is ModelErrorKind.WRONG_SCHEMA


async def test_a_reference_out_of_the_schema_is_not_fetched() -> None:
    with OpenAIServer() as server:
        away = {"type": "object", "properties": {"applies": {"$ref": f"{server.base_url}/models"}}}
        with pytest.raises(Exception, match="Unresolvable"):
            await outcome(retrying(FakeModel([good()]), Time()), make_request(schema=away))
        assert server.requests == []


async def test_a_model_that_ends_without_an_answer_has_failed() -> None:
    inner = FakeModel([TextDelta(text="{")], [good()])
    items, raised = await outcome(retrying(inner, Time()))
    assert raised is None
    assert isinstance(items[1], AttemptFailed)
    assert items[1].error.kind is ModelErrorKind.EMPTY


async def test_leaving_in_the_middle_leaves_the_model_too() -> None:
    inner = FakeModel([TextDelta(text="{"), good()])
    async with aclosing(retrying(inner, Time()).stream(make_request())) as items:  # type: ignore[type-var]
        async for _ in items:
            break
    assert inner.left == 1


BAD = [
    Status(429, headers={"Retry-After": "2"}),
    Status(500),
    Hang(),
    Raw(b'{"choices": ['),
    NoChoices(),
    Say(""),
    Say("I would rather talk."),
    Say('{"applies": "maybe"}'),
    BreakOff(1),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("step", BAD, ids=lambda step: type(step).__name__)
async def test_one_bad_answer_of_a_real_server_costs_one_attempt(step: Any, stream: bool) -> None:
    time = Time()
    with OpenAIServer(answer=GOOD, piece_length=4) as server:
        server.plan(step)
        async with aclosing(OpenAIModel(model="m", base_url=server.base_url, timeout=0.5)) as inner:
            items, raised = await outcome(retrying(inner, time), make_request(stream=stream))
        assert len(server.completions) == 2
    assert raised is None
    assert sum(isinstance(item, AttemptFailed) for item in items) == 1
    assert isinstance(items[-1], ModelReply)
    assert items[-1].answer == GOOD
    after = [type(item) for item in items].index(AttemptFailed)
    said = "".join(item.text for item in items[after:] if isinstance(item, TextDelta))
    assert said == (items[-1].text if stream else "")
    assert len(time.pauses) == 1


async def test_a_server_that_ignores_schemas_is_understood_at_the_second_attempt() -> None:
    def answer(body: dict[str, Any]) -> str:
        told = "<answer_schema>" in body["messages"][-1]["content"]
        return '{"applies": true}' if told else '{"verdict": "applies"}'

    with OpenAIServer(answer=answer) as server:
        async with aclosing(OpenAIModel(model="m", base_url=server.base_url)) as inner:
            items, raised = await outcome(retrying(inner, Time()))
    assert raised is None
    assert [type(item) for item in items] == [AttemptFailed, ModelReply]


async def test_refused_ways_of_asking_are_no_failed_attempts() -> None:
    refuses = ["json_schema", "json_object", "temperature", "max_tokens"]
    with OpenAIServer(answer=GOOD, refuses=refuses) as server:
        async with aclosing(OpenAIModel(model="m", base_url=server.base_url)) as inner:
            items, raised = await outcome(retrying(inner, Time(), attempts=1))
    assert raised is None
    assert [type(item) for item in items] == [ModelReply]
