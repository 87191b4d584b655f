"""The probability of a verdict: read from its token where the server tells, and done without where it does not."""

from contextlib import aclosing
from dataclasses import replace
from math import isclose, log
from typing import Any

import pytest

from engine.errors import ModelError
from engine.model.answers import probability_of
from engine.model.base import ModelReply, ModelRequest, ScoreGuideline
from engine.model.openai import OpenAIModel
from engine.prompts import build
from tests.engine.agents import agent, guideline, turn_of
from tests.openai_server import OpenAIServer


def request() -> ModelRequest:
    state = turn_of(agent(guideline("g", "the customer asks for it")), "Hello")
    spec = state.agent.guidelines[0]
    return build(ScoreGuideline(situation=state.situation, guideline=spec))


async def ask(
    server: OpenAIServer, *, times: int = 1, asked: ModelRequest | None = None
) -> list[ModelReply]:
    """The replies of one model client to the same request, asked one after another."""
    replies = []
    async with aclosing(OpenAIModel(model="m", base_url=server.base_url, timeout=5)) as model:
        for _ in range(times):
            *_, last = [item async for item in model.stream(asked or request())]
            assert isinstance(last, ModelReply)
            replies.append(last)
    return replies


@pytest.mark.parametrize(
    ("applies", "confidence", "probability"),
    [(True, 0.9, 0.9), (False, 0.9, 0.1), (True, 0.3, 0.3)],
)
async def test_a_score_is_the_probability_of_true_against_false(
    applies: bool, confidence: float, probability: float
) -> None:
    with OpenAIServer(answer={"applies": applies}, confidence=confidence) as server:
        (reply,) = await ask(server)
        body = server.completions[0].body
    assert reply.answer == {"applies": applies}
    assert reply.probability is not None
    assert isclose(reply.probability, probability, abs_tol=1e-6)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert body["response_format"]["type"] == "json_schema"


async def test_a_server_that_ignores_the_wish_gives_no_score_and_is_not_asked_again() -> None:
    with OpenAIServer(answer={"applies": True}) as server:
        replies = await ask(server, times=2)
        asked = ["logprobs" in each.body for each in server.completions]
    assert [reply.probability for reply in replies] == [None, None]
    assert asked == [True, False]


@pytest.mark.parametrize("name", ["logprobs", "top_logprobs"])
@pytest.mark.parametrize("vague", [True, False])
async def test_a_server_that_refuses_logprobs_is_asked_without_and_keeps_the_schema(
    name: str, vague: bool
) -> None:
    with OpenAIServer(answer={"applies": True}, refuses=[name], vague=vague) as server:
        replies = await ask(server, times=2)
        asked = [("logprobs" in each.body, each.form) for each in server.completions]
    assert [reply.answer["applies"] for reply in replies] == [True, True]
    assert asked == [(True, "json_schema"), (False, "json_schema"), (False, "json_schema")]


async def test_a_server_that_takes_no_schema_either_still_gives_its_score() -> None:
    with OpenAIServer(
        answer='{"applies": true}', confidence=0.75, refuses=["json_schema"]
    ) as server:
        (reply,) = await ask(server)
    assert reply.probability is not None
    assert isclose(reply.probability, 0.75, abs_tol=1e-6)


async def test_other_questions_ask_for_no_logprobs() -> None:
    with OpenAIServer(answer={"applies": True}, confidence=0.9) as server:
        (reply,) = await ask(server, asked=replace(request(), verdict=""))
        assert "logprobs" not in server.completions[0].body
    assert reply.probability is None


async def test_a_refusal_of_something_else_stays_an_error() -> None:
    with (
        OpenAIServer(answer={"applies": True}, refuses=["messages"]) as server,
        pytest.raises(ModelError, match="answered 400"),
    ):
        await ask(server)


def tokens(*texts: str, **alternatives: dict[str, float]) -> list[dict[str, Any]]:
    """Entries of `logprobs.content`; the alternatives are of the token that is named by its place: t3={...}."""
    found = []
    for place, text in enumerate(texts):
        rows = alternatives.get(f"t{place}", {text: 1.0})
        top = [{"token": token, "logprob": log(p)} for token, p in rows.items()]
        found.append({"token": text, "logprob": log(rows.get(text, 1.0)), "top_logprobs": top})
    return found


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Whole words, with spaces and without, and what a form forbade.
        (
            tokens(
                '{"', "applies", '":', " true", "}", t3={" true": 0.5, "false": 0.1, "maybe": 0.4}
            ),
            0.5 / 0.6,
        ),
        # A verdict that shares its token with what stands before it.
        (
            tokens('{"applies', '":false', "}", t1={'":false': 0.8, '":true': 0.2}),
            0.2,
        ),
        # A verdict in pieces: its first one decides.
        (tokens('{"applies":', "f", "alse", "}", t1={"f": 0.75, "t": 0.25}), 0.25),
        # The model said so before it answered: the last one is the answer.
        (
            tokens(
                '"applies": ',
                "true",
                ' no. {"applies": ',
                "false",
                "}",
                t1={"true": 1.0},
                t3={"false": 0.9, "true": 0.1},
            ),
            0.1,
        ),
        (tokens('{"applies":', " true", "}"), 1.0),
        (tokens('{"other":', " true", "}"), None),
        ([], None),
        ([{"token": '{"applies": true}'}], None),
        ([{"token": 7, "logprob": None}], None),
        ([{"token": '{"applies": true}', "logprob": -9999.0, "top_logprobs": None}], None),
    ],
)
def test_the_verdicts_token_is_found_however_the_text_is_cut(
    said: list[dict[str, Any]], expected: float | None
) -> None:
    found = probability_of("applies", said)
    assert found is expected if expected is None or found is None else isclose(found, expected)
