"""The customer's word on calls that await it (ENGINE.md §1 step 1): what was confirmed runs, exactly, at most once.

This step is iteration 0 of the trail: it comes before the first round of the loop.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine import prompts
from engine.arguments import check_arguments
from engine.asking import ask
from engine.canonical import JsonObject
from engine.choices import offered
from engine.errors import ToolError, ToolErrorKind
from engine.events import (
    Answer,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    Phase,
    Source,
    StatusEvent,
    ToolFinishedEvent,
)
from engine.executing import run_calls
from engine.judging import as_called
from engine.kit import Kit
from engine.model.answers import shortened
from engine.model.base import ReadConfirmation
from engine.pending import Answered, Pending, answered_in, lost_calls, pending_calls
from engine.provenance import Grounds
from engine.settling import CONFIRMED, is_read, owners, settlements
from engine.spec import ParameterSource, Tool
from engine.state import TurnState, unanswered
from engine.together import together
from engine.trail import (
    LONGEST_REASON,
    Argument,
    ArgumentSource,
    DecisionState,
    GuidelineMatch,
    MatchState,
    ToolDecision,
)

BY_CONFIRMATION = "confirmed by the customer"
"""The evidence of an argument that rests on nothing but the customer's word on the whole call."""

_READ = "It was read from the customer's words."
_BEFORE = "The customer confirmed it before; the turn had ended before the call began."
_LATE = "Nobody answered in time."
_GONE = "The agent no longer has the tool or the guideline that this call rests on."
_UNKNOWN = "it is not known whether it was done; a person has to look"


async def confirm(state: TurnState, kit: Kit) -> None:
    """Settle what awaits the customer's word, and run what is confirmed; raises ModelError.

    Everything is read from the session's events and the trail, so going on after an interruption repeats nothing.
    """
    await _tell_lost(state, kit)
    await _let_expire(state, kit)
    model_call = await _read(state, kit)
    await _refuse(state, kit)
    await _settle(state, kit, model_call)
    await _run(state, kit, model_call)


async def keep_confirmed(state: TurnState, kit: Kit) -> None:
    """Keep the guidelines of confirmed calls in force for the reply, though they were judged again since.

    They are recorded under iteration 0, so that they ask for no tool in this one.
    """
    for settlement in settlements(state):
        guideline, match = settlement.guideline, state.matches.get(settlement.guideline.uid)
        if (
            settlement.because == CONFIRMED
            and match is not None
            and match.state in {MatchState.NOT_MATCHED, MatchState.NOT_EVALUATED}
        ):
            await _match(state, kit, guideline.uid, MatchState.MATCHED, CONFIRMED, iteration=0)


async def _tell_lost(state: TurnState, kit: Kit) -> None:
    """Say of calls that began in an earlier turn and that nobody saw end that their outcome is unknown."""
    asked = {
        entry.event.call
        for entry in state.history
        if isinstance(entry.event, ConfirmationAskedEvent)
    }
    for started in lost_calls(state.history, state.turn):
        tool = state.agent.tool_by_name.get(started.tool)
        if started.call in asked or (tool is not None and tool.consequential):
            await _tell(
                state,
                kit,
                ToolFinishedEvent(
                    call=started.call,
                    tool=started.tool,
                    arguments=started.arguments,
                    error=ToolError(kind=ToolErrorKind.UNKNOWN_OUTCOME, public=_UNKNOWN),
                ),
            )


async def _let_expire(state: TurnState, kit: Kit) -> None:
    now = kit.now()
    for pending in pending_calls(state.history, state.turn):
        if pending.is_expired(turn=state.turn, now=now, limits=state.limits):
            await _answer(state, kit, pending.asked, Answer.EXPIRED, _LATE)
        elif _is_gone(state, pending.asked):
            await _answer(state, kit, pending.asked, Answer.EXPIRED, _GONE)


def _is_gone(state: TurnState, asked: ConfirmationAskedEvent) -> bool:
    return asked.tool not in state.agent.tool_by_name or not owners(state, asked)


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a customer says about one call, in the model's reading as far as it bears checking."""

    answer: Answer
    because: str


async def _read(state: TurnState, kit: Kit) -> str:
    """Ask what the newest messages say about the pending calls; the uid of the ModelCall, if one was made."""
    pending = pending_calls(state.history, state.turn)
    if not pending or any(is_read(a) for a in answered_in(state.history, state.turn)):
        # Read before an interruption: what has no answer by then was left unanswered.
        return ""
    verdicts: dict[str, Verdict] = {}
    also, model_call = "", ""
    if unanswered(state.history, state.turn):
        tools = tuple(dict.fromkeys(p.asked.tool for p in pending))
        await kit.outbox.put(StatusEvent(phase=Phase.INFERRING, tools=tools))
        question = ReadConfirmation(
            situation=state.situation, pending=tuple(p.asked for p in pending)
        )
        answered = await ask(kit, kit.models.judging, prompts.build(question), iteration=0)
        verdicts, also = heard(state, pending, answered.answer)
        model_call = answered.call.uid
    events = []
    for waiting in pending:
        verdict = verdicts.get(waiting.asked.call)
        if verdict is None and waiting.confirmed:
            verdict = Verdict(answer=Answer.CONFIRMED, because=_BEFORE)
        if verdict is not None:
            events.append(
                ConfirmationAnsweredEvent(
                    call=waiting.asked.call,
                    tool=waiting.asked.tool,
                    answer=verdict.answer,
                    because=verdict.because,
                    also=shortened(also, LONGEST_REASON),
                )
            )
    for event in events:
        state.witness(event)
    # All at once, so that an interruption hardly finds some of them on record and others not.
    await together(kit.outbox.put(event) for event in events)
    return model_call


def heard(
    state: TurnState, pending: Iterable[Pending], answer: JsonObject
) -> tuple[dict[str, Verdict], str]:
    """The answer to ReadConfirmation, checked: call uid → what is said about it, and what else the customer says."""
    return _verdicts(pending, answer, _said(state)), _besides(answer)


def _said(state: TurnState) -> str:
    return _squeezed(" ".join(unanswered(state.history, state.turn)))


def _squeezed(text: str) -> str:
    """Letters and digits alone: quotes differ in capitals, spaces and marks."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _besides(answer: JsonObject) -> str:
    """What else the customer says; empty where it is only the words of the answers again."""
    also = str(answer["also"]).strip()
    read = {value.value for value in _READABLE}
    quoted = {_squeezed(e["quote"]) for e in answer["answers"] if e["answer"] in read}
    return "" if _squeezed(also) in quoted else also


def _verdicts(pending: Iterable[Pending], answer: JsonObject, said: str) -> dict[str, Verdict]:
    """Call uid → what the customer says about it. What is labelled wrongly, or judged in two ways, is left out.

    A yes must stand in what was `said` (squeezed), and is none where another detail is wanted.
    """
    uid_of = {f"C{number}": p.asked.call for number, p in enumerate(pending, start=1)}
    found: dict[str, set[str]] = {}
    because: dict[str, str] = {}
    for entry in answer["answers"]:
        uid = uid_of.get(entry["call"].strip())
        if uid is not None:
            found.setdefault(uid, set()).add(_checked(entry, said))
            because[uid] = _because(entry)
    read = {answer.value for answer in _READABLE}
    return {
        uid: Verdict(answer=Answer(next(iter(given))), because=because[uid])
        for uid, given in found.items()
        if len(given) == 1 and given <= read
    }


def _checked(entry: JsonObject, said: str) -> str:
    answer = str(entry["answer"])
    if answer != Answer.CONFIRMED:
        return answer
    if entry["other"].strip():
        return Answer.CHANGED.value
    quote = _squeezed(entry["quote"])
    return answer if quote and quote in said else ""


def _because(entry: JsonObject) -> str:
    quote, other = entry["quote"].strip(), entry["other"].strip()
    told = f"“{quote}”" if quote else ""
    if other:
        told = f"{told} gives {other}".strip()
    return shortened(told, LONGEST_REASON) or _READ


_READABLE = (Answer.CONFIRMED, Answer.DECLINED, Answer.CHANGED)


# --- acting ------------------------------------------------------------------------------------------------------


async def _refuse(state: TurnState, kit: Kit) -> None:
    """Take back the confirmation of what can no longer run as it was confirmed."""
    now = kit.now()
    for answered in _to_run(state):
        asked = answered.asked
        if asked.call in state.calls:
            continue  # it began before an interruption of this turn
        late = Pending(asked=asked, turn=answered.turn)
        if late.is_expired(turn=state.turn, now=now, limits=state.limits):
            await _answer(state, kit, asked, Answer.EXPIRED, _LATE)
        elif _is_gone(state, asked):
            await _answer(state, kit, asked, Answer.EXPIRED, _GONE)
        elif problem := await _problem(state, kit, asked):
            await _answer(state, kit, asked, Answer.CHANGED, problem)


async def _problem(state: TurnState, kit: Kit, asked: ConfirmationAskedEvent) -> str:
    """Why the tool no longer takes the stored arguments; empty where it does."""
    tool = await offered(state, kit, state.agent.tool_by_name[asked.tool])
    if isinstance(tool, str):
        return tool
    checked = check_arguments(tool, asked.arguments)
    label = {parameter.name: parameter.label for parameter in tool.parameters}
    problems = [f"{label[name]} is missing" for name in checked.missing]
    problems += [f"{label[invalid.name]} {invalid.reason}" for invalid in checked.invalid]
    problems += [f"{name} is none of its parameters" for name in checked.unknown]
    if not problems:
        return ""
    return shortened(f"The tool has changed: {'; '.join(problems)}.", LONGEST_REASON)


def _to_run(state: TurnState) -> list[Answered]:
    found = answered_in(state.history, state.turn)
    return [answered for answered in found if answered.answer is Answer.CONFIRMED]


async def _settle(state: TurnState, kit: Kit, model_call: str) -> None:
    """Record the guidelines whose state follows from the answers; those on record stay as they are."""
    for settlement in settlements(state):
        iteration = 1 if settlement.final else 0
        if settlement.guideline.uid not in state.matches:
            await _match(
                state,
                kit,
                settlement.guideline.uid,
                settlement.state,
                settlement.because,
                iteration=iteration,
                model_call=model_call,
            )


async def _run(state: TurnState, kit: Kit, model_call: str) -> None:
    """Record the decision under each owning guideline, then run; no inference, the stored arguments alone."""
    confirmed = _to_run(state)
    if not confirmed:
        return
    # A turn is picked up from where it was only once it has reached a point: this one comes before anything starts.
    await kit.outbox.put(state.checkpoint)
    for answered in confirmed:
        decided = {d.guideline for d in state.decisions if d.call == answered.asked.call}
        decisions = [
            _decision(state, answered, guideline.uid, model_call)
            for guideline in owners(state, answered.asked)
            if guideline.uid not in decided and state.in_force(guideline)
        ]
        for decision in decisions:
            state.learn(decision)
        await together(kit.outbox.put(decision) for decision in decisions)
    await run_calls(state, kit)


def _decision(
    state: TurnState, answered: Answered, guideline: str, model_call: str
) -> ToolDecision:
    now = datetime.now(UTC)
    asked = answered.asked
    return ToolDecision(
        guideline=guideline,
        tool=asked.tool,
        state=DecisionState.NEEDS_TO_RUN,
        because="The customer confirmed it.",
        iteration=state.checkpoint.iteration,
        started_at=now,
        ended_at=now,
        arguments=_confirmed_arguments(state, state.agent.tool_by_name[asked.tool], answered),
        call=asked.call,
        model_call=model_call,
    )


def _confirmed_arguments(state: TurnState, tool: Tool, answered: Answered) -> tuple[Argument, ...]:
    """The stored arguments. What rests on nothing else, a default too, rests on the customer's confirmation."""
    asked = answered.asked
    grounds = Grounds(
        history=state.history, variables=state.variables, guidelines=owners(state, asked)
    )
    nothing: JsonObject = {"source": ArgumentSource.INFERRED.value, "evidence": ""}
    place = next(e.offset for e in state.history if e.event is answered.event)
    checked = replace(check_arguments(tool, asked.arguments), defaults={})
    traced = []
    for parameter in tool.parameters:
        if parameter.name not in checked.values:
            continue
        argument = grounds.trace(parameter, checked.values[parameter.name], nothing)
        only_customer = parameter.source is ParameterSource.CUSTOMER
        if not argument.verified or (
            only_customer and argument.source is not ArgumentSource.CUSTOMER
        ):
            # That a result says the same is no ground for what only the customer may give; their yes to it is.
            argument = replace(
                argument,
                source=ArgumentSource.CUSTOMER,
                evidence=BY_CONFIRMATION,
                verified=True,
                offset=place,
            )
        traced.append(argument)
    return as_called(tool, traced, checked)


async def _answer(
    state: TurnState, kit: Kit, asked: ConfirmationAskedEvent, answer: Answer, because: str
) -> None:
    """Answer in the customer's stead."""
    event = ConfirmationAnsweredEvent(
        source=Source.SYSTEM, call=asked.call, tool=asked.tool, answer=answer, because=because
    )
    await _tell(state, kit, event)


async def _tell(state: TurnState, kit: Kit, event: Event) -> None:
    state.witness(event)
    await kit.outbox.put(event)


async def _match(
    state: TurnState,
    kit: Kit,
    guideline: str,
    found: MatchState,
    because: str,
    *,
    iteration: int,
    model_call: str = "",
) -> None:
    now = datetime.now(UTC)
    match = GuidelineMatch(
        guideline=guideline,
        state=found,
        because=because,
        iteration=iteration,
        started_at=now,
        ended_at=now,
        model_call=model_call,
    )
    state.learn(match)
    await kit.outbox.put(match)
