"""A customer played by a model, for tests: what they say next, when the conversation ends, and whether they kept to
their brief.

Whoever has the session drives it, one turn after another:

    said, turns = [], []
    while (ending := ended_by(said, turns, budget)) is None:
        said.append(await next_message(model, situation, brief))
        if not said[-1].done:
            turns.append(...)  # the turn that answers said[-1].text, as a TurnRecord
    kept = await judge_customer(model, situation, brief, said)

`situation` holds the session so far; before the first message its history is empty. A run whose customer did not keep
to the brief says nothing of the agent: it is invalid, not failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine import prompts
from engine.asking import Answered, ask_by_itself
from engine.brief_faults import certain_fault, customer_messages, judged_fault
from engine.customer_brief import CustomerBrief
from engine.model.base import ChatModel, JudgeCustomer, PlayCustomer, Situation
from engine.trail import ModelCall
from engine.turn_record import TurnRecord

EMPTY = "The customer's next message was empty."
REPEATED = "The customer's next message was the same for the third time."
KEPT = "The customer asks for the goal and says nothing that the brief says otherwise."


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long a conversation may become: the agent's turns, and the tokens of the customer's own questions.

    No question is asked once the tokens are spent; the last one may go beyond them. What the agent's turns cost is
    bounded elsewhere.
    """

    turns: int = 8
    tokens: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The customer's next message, or `done` and no text; `because` is their reason, `calls` every request for it."""

    text: str
    done: bool
    because: str
    calls: tuple[ModelCall, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(call.prompt_tokens + call.completion_tokens for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Did the customer keep to the brief, and why; `calls` is every request for it, failed attempts too."""

    kept: bool
    because: str
    calls: tuple[ModelCall, ...] = ()


class Ending(StrEnum):
    """Why a conversation with a simulated customer ended."""

    DONE = "done"  # the customer's word
    TURNS = "turns"
    TOKENS = "tokens"
    HANDED_OVER = "handed_over"  # nobody simulates the person who answers now
    FAILED = "failed"  # a turn of the agent's


def ended_by(said: Sequence[Said], turns: Sequence[TurnRecord], budget: Budget) -> Ending | None:
    """Why the conversation is over, or None while the customer should speak. Both sequences oldest first."""
    last = turns[-1] if turns else None
    if last and last.error:
        return Ending.FAILED
    if said and said[-1].done:
        return Ending.DONE
    if last and last.handed_over:
        return Ending.HANDED_OVER
    if len(turns) >= budget.turns:
        return Ending.TURNS
    if sum(one.tokens for one in said) >= budget.tokens:
        return Ending.TOKENS
    return None


async def next_message(model: ChatModel, situation: Situation, brief: CustomerBrief) -> Said:
    """What the customer says now. An empty message, and the last two once more, end it. Raises ModelError."""
    answered, calls = await _asked(model, PlayCustomer(situation=situation, brief=brief))
    text, because = answered.answer["message"].strip(), answered.answer["because"]
    if answered.answer["done"]:
        return Said(text="", done=True, because=because, calls=calls)
    before = customer_messages(situation)[-2:]
    if not text:
        return Said(text="", done=True, because=EMPTY, calls=calls)
    if before == [text, text]:
        return Said(text="", done=True, because=REPEATED, calls=calls)
    return Said(text=text, done=False, because=because, calls=calls)


async def judge_customer(
    model: ChatModel, situation: Situation, brief: CustomerBrief, said: Sequence[Said] = ()
) -> Kept:
    """Whether the customer of the whole conversation kept to the brief; `said` tells how they ended it.

    The model is not asked where a fault is certain without it. Raises ModelError.
    """
    ended = said[-1].because if said and said[-1].done else ""
    fault = certain_fault(situation, brief, repeated=ended == REPEATED)
    if fault:
        return Kept(kept=False, because=fault)
    question = JudgeCustomer(situation=situation, brief=brief, ended=ended)
    answered, calls = await _asked(model, question)
    fault = judged_fault(answered.answer, situation, brief, ended)
    return Kept(kept=not fault, because=fault or KEPT, calls=calls)


async def _asked(
    model: ChatModel, question: PlayCustomer | JudgeCustomer
) -> tuple[Answered, tuple[ModelCall, ...]]:
    calls: list[ModelCall] = []

    async def record(call: ModelCall) -> None:
        calls.append(call)

    answered = await ask_by_itself(model, prompts.build(question), record=record)
    return answered, tuple(calls)
