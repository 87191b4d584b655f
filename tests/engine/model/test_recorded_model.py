"""RecordedModel: each request is answered as it was; what was never asked goes to another model, or stops."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.model import recorded
from engine.model.base import (
    AttemptFailed,
    JudgingStyle,
    MatchGuidelines,
    ModelReply,
    ModelRequest,
    Situation,
    TextDelta,
)
from engine.model.recorded import RecordedAnswer, RecordedModel
from engine.spec import Agent
from engine.trail import Message

SCHEMA = {"type": "object", "properties": {"applies": {"type": "boolean"}}}
YES, NO = '{"applies": true}', '{"applies": false}'


def asked(words: str = "judge now", **options: Any) -> ModelRequest:
    situation = Situation(agent=Agent(slug="a", name="A"), history=(), turn=1)
    given: dict[str, Any] = {
        "question": MatchGuidelines(situation=situation, guidelines=()),
        "prompt_version": "1",
        "messages": (Message(role="user", parts=(words,)),),
        "schema": SCHEMA,
    }
    return ModelRequest(**given | options)


def answered(text: str = "", *, to: ModelRequest | None = None, **options: Any) -> RecordedAnswer:
    request = to or asked()
    return RecordedAnswer(request_key=request.request_key, text=text, model="small", **options)


def failed(error: str, **options: Any) -> RecordedAnswer:
    return answered(error=error, **options)


class Live:
    """Another model, which answers everything with no; keeps what it was asked, and whether it was left in time."""

    name = "live"
    batch_size = 3
    judging_style = JudgingStyle.SCORED

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ModelReply]:
        self.requests.append(request)
        try:
            yield TextDelta(text=NO)
            yield ModelReply(answer={"applies": False}, text=NO, model=self.name)
        finally:
            self.closed += 1


def model(*answers: RecordedAnswer, otherwise: Live | None = None) -> RecordedModel:
    return RecordedModel(
        answers,
        name="small",
        batch_size=7,
        judging_style=JudgingStyle.REASONED,
        otherwise=otherwise,
    )


async def told(
    model: RecordedModel, request: ModelRequest | None = None
) -> list[TextDelta | AttemptFailed | ModelReply]:
    return [item async for item in model.stream(request or asked())]


async def reply(model: RecordedModel, request: ModelRequest | None = None) -> ModelReply:
    last = (await told(model, request))[-1]
    assert isinstance(last, ModelReply)
    return last


def test_it_asks_as_the_recording_did() -> None:
    recorded = model(otherwise=Live())
    assert (recorded.name, recorded.batch_size) == ("small", 7)
    assert recorded.judging_style is JudgingStyle.REASONED


async def test_a_request_is_answered_as_it_was_and_costs_nothing() -> None:
    found = await reply(model(answered(YES, probability=0.75)))
    assert (found.answer, found.text, found.model) == ({"applies": True}, YES, "small")
    assert found.probability == 0.75
    assert (found.prompt_tokens, found.completion_tokens) == (0, 0)


async def test_a_streamed_one_comes_with_its_text_before() -> None:
    items = await told(model(answered(YES)), asked(stream=True))
    assert items[0] == TextDelta(text=YES)
    assert len(items) == 2
    assert len(await told(model(answered(YES)))) == 1


@pytest.mark.parametrize(
    "other",
    [
        asked("judge later"),
        asked(prompt_version="2"),
        asked(schema={"type": "object"}),
        asked(max_tokens=2),
        asked(temperature=None),
        asked(repeat=1),
    ],
)
async def test_what_was_asked_otherwise_has_no_answer_and_is_named(other: ModelRequest) -> None:
    recorded = model(answered(YES))
    with pytest.raises(ModelError, match="MatchGuidelines was not asked like this") as error:
        await told(recorded, other)
    assert error.value.kind is ModelErrorKind.NOT_RECORDED
    assert not error.value.retryable
    assert recorded.missing == [("MatchGuidelines", "")]
    assert (await reply(recorded)).answer == {"applies": True}
    assert len(recorded.missing) == 1


async def test_what_a_question_was_about_is_named() -> None:
    recorded = model()
    with pytest.raises(ModelError, match="MatchGuidelines about G1–G3 was not asked"):
        await told(recorded, asked(subject="G1–G3"))
    assert recorded.missing == [("MatchGuidelines", "G1–G3")]


async def test_it_is_asked_of_another_model_where_there_is_one() -> None:
    live = Live()
    recorded = model(answered(YES), otherwise=live)
    other = asked("judge later")
    assert await told(recorded, other) == [
        TextDelta(text=NO),
        ModelReply(answer={"applies": False}, text=NO, model="live"),
    ]
    assert live.requests == [other]
    assert recorded.missing == [("MatchGuidelines", "")]
    assert (await reply(recorded)).model == "small"
    assert live.requests == [other]


async def test_the_other_model_is_left_at_once_by_who_leaves_this_one() -> None:
    live = Live()
    items = model(otherwise=live).stream(asked())
    async for _item in items:
        break
    await items.aclose()  # type: ignore[attr-defined]
    assert live.closed == 1


async def test_a_request_made_several_times_is_answered_in_order_and_the_last_again() -> None:
    recorded = model(answered(YES), answered(NO))
    found = [(await reply(recorded)).text for _ in range(4)]
    assert found == [YES, NO, NO, NO]


async def test_what_was_tried_again_is_answered_by_the_try_that_succeeded() -> None:
    recorded = model(failed("server: it is busy"), failed("timeout: too long"), answered(YES))
    assert [(await reply(recorded)).text for _ in range(2)] == [YES, YES]


async def test_what_failed_fails_as_at_its_last_try() -> None:
    recorded = model(failed("server: it is busy"), failed("truncated: cut off"))
    for _ in range(2):
        with pytest.raises(ModelError, match=r"^cut off$") as error:
            await told(recorded)
        assert error.value.kind is ModelErrorKind.TRUNCATED
        assert not error.value.retryable
    assert recorded.missing == []


async def test_a_failure_of_no_known_kind_keeps_its_words() -> None:
    with pytest.raises(ModelError, match=r"^odd: it broke$"):
        await told(model(failed("odd: it broke")))


async def test_an_answer_that_nobody_waited_for_is_not_waited_for_again() -> None:
    """A guess that was given up: whoever asks again gives up before anything is missed."""
    recorded = model(failed("cancelled: the answer was not needed"))
    asking = asyncio.ensure_future(told(recorded))
    await asyncio.sleep(0.05)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert recorded.missing == []


async def test_where_it_is_needed_now_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "NEVER_NEEDED", 0.01)
    cancelled = failed("cancelled: the answer was not needed")
    with pytest.raises(ModelError) as error:
        await told(model(cancelled))
    assert error.value.kind is ModelErrorKind.NOT_RECORDED
    live = Live()
    assert (await reply(model(cancelled, otherwise=live))).text == NO
    assert len(live.requests) == 1


async def test_what_was_given_up_and_then_answered_is_answered() -> None:
    recorded = model(failed("cancelled: the answer was not needed"), answered(YES))
    assert (await reply(recorded)).text == YES
