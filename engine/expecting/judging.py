"""Judging an expectation of a conversation's replies by a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine import prompts
from engine.asking import ask_by_itself
from engine.errors import ModelError
from engine.events import BY_TOOL, Event, MessageEvent, Source
from engine.expecting.comparing import shortened
from engine.expecting.kinds import JudgedByModel, NoPromiseExpectation, wants
from engine.expecting.sightings import Sighting, concluded, no_such_turn, turns_of
from engine.expecting.verdicts import Outcome, OutcomeState
from engine.kit import Kit
from engine.model.base import JudgeStatement, Situation
from engine.trail import ModelCall
from engine.turn_record import TurnRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The outcome, and every request that was made for it, failed attempts too, in their order."""

    outcome: Outcome
    calls: tuple[ModelCall, ...]


async def judge(
    expectation: JudgedByModel,
    conversation: Sequence[TurnRecord],
    kit: Kit,
    situation_of: Callable[[TurnRecord], Situation],
) -> Judged:
    """What came of the expectation in these turns, oldest first, by the kit's judging model.

    `situation_of` gives the conversation that a turn's reply answers; whether that reply stands in it too does not
    matter. Replies are judged one after another, up to the first that decides. A model that gives no answer leaves the
    outcome unknown. The kit's outbox and tools are not touched. Turns that do not exist or failed are told of as
    `check` does.
    """
    wanted = wants(expectation)
    turns = turns_of(expectation.turn, conversation)
    if not turns:
        outcome = no_such_turn(expectation.turn, conversation, wanted=wanted)
        return Judged(outcome=outcome, calls=())
    calls: list[ModelCall] = []

    async def keep(call: ModelCall) -> None:
        calls.append(call)

    seen: dict[int, Sighting] = {}
    for record in turns:
        if not record.reply:
            seen[record.number] = Sighting(there=False, because="There is no reply.")
            continue
        question = JudgeStatement(
            situation=_before_reply(situation_of(record)),
            reply=record.reply,
            statement=statement_of(expectation),
        )
        try:
            answered = await ask_by_itself(kit.models.judging, prompts.build(question), record=keep)
        except ModelError as error:
            because = f"The reply of turn {record.number} could not be judged: {error}"
            outcome = Outcome(
                state=OutcomeState.UNKNOWN, because=shortened(because, 300), turn=record.number
            )
            return Judged(outcome=outcome, calls=tuple(calls))
        there = bool(answered.answer["holds"])
        because = shortened(answered.answer["because"], 300)
        seen[record.number] = Sighting(there=there, because=because)
        if there:
            break
    outcome = concluded(turns, lambda record: seen[record.number], wanted=wanted)
    return Judged(outcome=outcome, calls=tuple(calls))


def statement_of(expectation: JudgedByModel) -> str:
    """What a model is asked about each reply."""
    if isinstance(expectation, NoPromiseExpectation):
        return f"The reply promises {expectation.text}."
    return expectation.statement


def _before_reply(situation: Situation) -> Situation:
    """Without what the agent answered in this turn: it is what is to be judged."""
    past = tuple(
        entry
        for entry in situation.history
        if entry.turn < situation.turn or not _is_reply(entry.event)
    )
    return replace(situation, history=past)


def _is_reply(event: Event) -> bool:
    return (
        isinstance(event, MessageEvent)
        and event.source is Source.AGENT
        and not event.model.startswith(BY_TOOL)
    )
