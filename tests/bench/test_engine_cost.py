"""What the engine itself costs: CPU, model calls, prompt text, and how much of it is the turn before's."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from engine.events import MessageEvent, RecordedEvent, Source
from engine.kit import Kit, Models
from engine.model.base import JudgingStyle, ModelReply, ModelRequest
from engine.spec import Agent
from engine.state import TurnState
from engine.testing import entries, play
from engine.tools.base import ToolContext
from engine.tools.function import FunctionToolService
from engine.trail import ModelCall
from studio.views.ledger import round_trips
from tests.bench.scenario import MESSAGE, agent, answer, fetch_balance

CHARACTERS_PER_TOKEN = 4.0


class Instant:
    """Plays the scenario in no time; keeps the requests."""

    name = "instant"

    def __init__(self, batch_size: int = 12, latency: float = 0.0) -> None:
        self.batch_size = batch_size
        self.judging_style = JudgingStyle.REASONED
        self.latency = latency  # seconds
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        self.requests.append(request)
        if self.latency:
            await asyncio.sleep(self.latency)
        body = {
            "messages": [{"content": message.content} for message in request.messages],
            "response_format": {"json_schema": {"name": request.schema_name}},
        }
        given = answer(body)
        yield ModelReply(answer=given, text=json.dumps(given), model=self.name)


def kit(model: Instant) -> Kit:
    return Kit(
        models=Models.same(model),
        tools=FunctionToolService([fetch_balance]),
        context=ToolContext(agent_id="a", session_id="s", turn_id="t", customer_id="c"),
    )


async def converse(spec: Agent, model: Instant, turns: int) -> list[list[ModelRequest]]:
    """The requests of each turn."""
    history: tuple[RecordedEvent, ...] = ()
    asked = []
    for turn in range(1, turns + 1):
        told = MessageEvent(source=Source.CUSTOMER, text=f"{MESSAGE} ({turn})")
        state = TurnState(agent=spec, turn=turn, history=_and(history, turn, told))
        model.requests.clear()
        emitted = await play(state, kit(model))
        asked.append(list(model.requests))
        history = _and(state.history, turn, entries(emitted, MessageEvent)[-1])
    return asked


def _and(
    history: tuple[RecordedEvent, ...], turn: int, event: MessageEvent
) -> tuple[RecordedEvent, ...]:
    return (*history, RecordedEvent(offset=len(history) + 1, turn=turn, event=event))


def _prompt(request: ModelRequest) -> str:
    return "".join(message.content for message in request.messages)


def _shared(one: str, other: str) -> int:
    """Characters of the beginning that both have."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _tokens(requests: list[ModelRequest]) -> float:
    return sum(len(_prompt(request)) for request in requests) / CHARACTERS_PER_TOKEN


@pytest.mark.parametrize(
    ("guidelines", "peer_calls", "peer_tokens", "calls", "tokens"),
    [
        (10, "14", "42 k", "4", "≤ 6 k"),
        (200, "44", "153 k", "≤ 8 with the shortlist", "≤ 15 k with the shortlist"),
        (1000, "204", "714 k", "≤ 8 with the shortlist", "≤ 15 k with the shortlist"),
    ],
)
def test_model_calls_and_prompt_tokens(
    figure: Callable[..., None],
    guidelines: int,
    peer_calls: str,
    peer_tokens: str,
    calls: str,
    tokens: str,
) -> None:
    model = Instant()
    (asked,) = asyncio.run(converse(agent(guidelines), model, 1))

    figure(
        f"model calls in the scenario, N = {guidelines}",
        str(len(asked)),
        budget=calls,
        peer=peer_calls,
    )
    figure(
        f"prompt tokens (characters / 4), N = {guidelines}",
        f"{_tokens(asked) / 1000:.1f} k",
        budget=tokens,
        peer=peer_tokens,
    )


@pytest.mark.parametrize(
    ("turn", "message", "reevaluates", "peer", "budget"),
    [
        ("no tool", "Good morning.", True, "2", "2"),
        ("one tool", MESSAGE, False, "", "2"),
        ("tool + re-evaluation", MESSAGE, True, "4 (+1 after the reply)", "3"),
    ],
)
def test_round_trips_of_a_turn(
    figure: Callable[..., None],
    turn: str,
    message: str,
    *,
    reevaluates: bool,
    peer: str,
    budget: str,
) -> None:
    """Model calls one after another; those side by side count once."""
    spec = agent(10)
    if not reevaluates:
        guidelines = tuple(replace(g, reevaluate_after=()) for g in spec.guidelines)
        spec = replace(spec, guidelines=guidelines)
    told = MessageEvent(source=Source.CUSTOMER, text=message)
    state = TurnState(agent=spec, turn=1, history=_and((), 1, told))

    emitted = asyncio.run(play(state, kit(Instant(latency=0.05))))

    count = round_trips(
        {"started_at": call.started_at, "ended_at": call.ended_at}
        for call in entries(emitted, ModelCall)
        if call.used
    )
    figure(f"round trips to the model: {turn}", str(count), budget=budget, peer=peer)
    assert count <= int(budget)


def test_share_of_a_prompt_that_the_turn_before_had(figure: Callable[..., None]) -> None:
    """Per turn from the third: of all prompts of the turn before, how much begins a prompt of this turn."""
    asked = asyncio.run(converse(agent(10), Instant(), 12))

    kept, new = [], []
    for before, now in list(pairwise(asked))[1:]:
        old, fresh = [_prompt(r) for r in before], [_prompt(r) for r in now]
        reused = [max(_shared(o, f) for f in fresh) / len(o) for o in old]
        known = [max(_shared(o, f) for o in old) for f in fresh]
        kept.append(sum(reused) / len(reused))
        new.append(sum(known) / sum(map(len, fresh)))

    figure(
        "share of the turn before's prompts that are a prefix now, lowest turn",
        f"{100 * min(kept):.1f} %",
        budget="≥ 95 %",
        peer="64–87 %",
    )
    figure(
        "share of this turn's prompts that the turn before had, mean",
        f"{100 * sum(new) / len(new):.1f} %",
    )
    assert kept


@pytest.mark.parametrize("turn", [1, 500])
def test_cpu_of_the_engine(figure: Callable[..., None], turn: int) -> None:
    spec = agent(50)
    history: tuple[RecordedEvent, ...] = ()
    for number in range(max(1, turn - 40), turn):
        for source in (Source.CUSTOMER, Source.AGENT):
            history = _and(history, number, MessageEvent(source=source, text="Hello, hello."))
    message = MessageEvent(source=Source.CUSTOMER, text=MESSAGE)

    async def many(count: int) -> float:
        model = Instant()
        began = time.process_time()
        for _ in range(count):
            state = TurnState(agent=spec, turn=turn, history=_and(history, turn, message))
            await play(state, kit(model))
        return (time.process_time() - began) / count

    async def measure() -> float:
        await many(20)
        return min([await many(40) for _ in range(3)])

    cpu = asyncio.run(measure())
    figure(
        f"engine CPU per turn, 50 guidelines, turn {turn}",
        f"{1000 * cpu:.1f} ms",
        budget="≤ 8 ms",
        peer="40 ms",
    )
