"""The reply (ENGINE.md §1 step 8, §5): briefed by what is in force, written or chosen, with a report on it."""

import asyncio
from dataclasses import dataclass

from engine import prompts
from engine.asking import ask
from engine.briefing import brief, insights_to_tell
from engine.canonical import JsonObject
from engine.drafting import Draft, Pieces, draft, reported
from engine.events import BriefingEvent, MessageEvent, Phase, Source, StatusEvent
from engine.kit import Kit
from engine.model.base import ChooseResponse, ComposeReply
from engine.prompts.choose_response import label
from engine.responses import MOST_SHOWN, MOST_STYLE, Candidate, candidates, composition_of
from engine.spec import NO_MATCH, Composition, Guideline
from engine.state import TurnState
from engine.trail import LONGEST_REASON, Adherence, ReplySource, ToolInsight
from engine.verifying import to_verify, verified


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is said, the model that wrote or chose it, where it comes from, and which guidelines it follows."""

    text: str
    model: str
    source: ReplySource
    report: tuple[Adherence, ...]


async def write_reply(state: TurnState, kit: Kit) -> None:
    """Emit the briefing, the reply and the report on what it follows; raises ModelError.

    A reply that the model writes is streamed, unless it is checked first; one that is chosen comes as a whole.
    """
    if _replied(state):  # before an interruption that came between the reply and its checkpoint
        return
    matched = tuple(state.matched())
    told = insights_to_tell(state)
    await kit.outbox.put(StatusEvent(phase=Phase.WRITING))
    resumed = state.briefing() is not None
    if not resumed:
        briefing = BriefingEvent(
            guidelines=tuple(guideline.uid for guideline in matched),
            content=brief(state, matched, told),
        )
        await kit.outbox.put(briefing)
        state.witness(briefing)
    mode = composition_of(state.agent, matched)
    if mode is Composition.STRICT:
        reply = await _chosen(state, kit, matched, told)
    else:
        reply = await _written(state, kit, mode, matched, told, restarted=resumed)
    await kit.outbox.put(reply.source)
    await kit.outbox.put(MessageEvent(source=Source.AGENT, text=reply.text, model=reply.model))
    for entry in reply.report:
        await kit.outbox.put(entry)


def _replied(state: TurnState) -> bool:
    """Does a whole reply of this turn stand after its briefing?"""
    this_turn = [entry.event for entry in state.history if entry.turn == state.turn]
    for event in reversed(this_turn):
        if isinstance(event, BriefingEvent):
            return False
        if isinstance(event, MessageEvent) and event.source is Source.AGENT and not event.partial:
            return state.briefing() is not None
    return False


async def _written(
    state: TurnState,
    kit: Kit,
    mode: Composition,
    matched: tuple[Guideline, ...],
    told: tuple[ToolInsight, ...],
    *,
    restarted: bool,
) -> Reply:
    style: tuple[Candidate, ...] = ()
    if mode is Composition.COMPOSITED:
        style = candidates(state, matched, told, most=MOST_STYLE)
    question = ComposeReply(
        situation=state.situation,
        guidelines=matched,
        insights=told,
        style=tuple(candidate.text for candidate in style),
    )
    source = ReplySource(composition=mode, responses=tuple(c.uid for c in style))
    if must_hold := to_verify(state.agent, matched):
        checked = await verified(state, kit, question, must_hold)
        return Reply(
            text=checked.draft.text,
            model=checked.draft.model,
            source=source,
            report=checked.report,
        )
    written = await _streamed(state, kit, question, restarted=restarted)
    return Reply(text=written.text, model=written.model, source=source, report=written.report())


async def _streamed(
    state: TurnState, kit: Kit, question: ComposeReply, *, restarted: bool
) -> Draft:
    """The reply, shown as it is written; what was shown before a stop stays, marked as cut off."""
    pieces = Pieces(kit, restarted=restarted)
    try:
        return await draft(state, kit, question, on_text=pieces.add)
    except asyncio.CancelledError:
        if pieces.said.strip():
            partial = MessageEvent(source=Source.AGENT, text=pieces.said.strip(), partial=True)
            await kit.outbox.put(partial)
        raise


async def _chosen(
    state: TurnState,
    kit: Kit,
    matched: tuple[Guideline, ...],
    told: tuple[ToolInsight, ...],
) -> Reply:
    """One of the canned responses, word for word, or the agent's no-match text."""
    offered = candidates(state, matched, told, most=MOST_SHOWN)
    if not offered:
        because = (
            "No canned response could be said: there is none, or its fields are not available."
        )
        return _no_match(state, kit.models.writing.name, because)
    question = ChooseResponse(
        situation=state.situation, guidelines=matched, responses=tuple(c.text for c in offered)
    )
    answered = await ask(
        kit, kit.models.writing, prompts.build(question), iteration=state.checkpoint.iteration
    )
    because = answered.answer["because"].strip()[:LONGEST_REASON]
    chosen = _named(offered, answered.answer)
    if chosen is None:
        return _no_match(state, answered.call.model, because)
    follows = reported(state.agent, matched, answered.answer["follows"])
    version = Draft(text=chosen.text, model=answered.call.model, follows=follows)
    source = ReplySource(composition=Composition.STRICT, responses=(chosen.uid,), because=because)
    return Reply(text=version.text, model=version.model, source=source, report=version.report())


def _named(offered: tuple[Candidate, ...], answer: JsonObject) -> Candidate | None:
    """The candidate that the answer names, by its label or by its very words; small models give the words."""
    named = answer["response"].strip()
    for number, candidate in enumerate(offered):
        if named in {label(number), candidate.text}:
            return candidate
    return None


def _no_match(state: TurnState, model: str, because: str) -> Reply:
    """The agent's own text, in a model's name all the same: a message without one is a person's."""
    source = ReplySource(composition=Composition.STRICT, because=because, fits=False)
    text = state.agent.no_match.strip() or NO_MATCH
    return Reply(text=text, model=model, source=source, report=())
