"""Checking an expectation against a conversation, where that takes no model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from engine.expecting.comparing import difference, fits, plain, shortened, shown
from engine.expecting.kinds import (
    BelowExpectation,
    Checked,
    DecisionExpectation,
    GuidelineExpectation,
    HandedOverExpectation,
    OrderExpectation,
    ReplyContainsExpectation,
    ReplyMatchesExpectation,
    ToolExpectation,
    wants,
)
from engine.expecting.measuring import measured
from engine.expecting.patterns import TooSlow, found_in
from engine.expecting.sightings import (
    Sighting,
    broken_among,
    concluded,
    no_such_turn,
    turns_of,
)
from engine.expecting.verdicts import Outcome, OutcomeState
from engine.trail import (
    DecisionState,
    GuidelineMatch,
    MatchState,
    ToolCall,
)
from engine.turn_record import TurnRecord

_AROUND = 40  # characters shown on either side of what was found


def check(expectation: Checked, conversation: Sequence[TurnRecord]) -> Outcome:
    """What came of the expectation in these turns, oldest first.

    Where the turn that it speaks of does not exist, what it wants has not been found: it failed. One that wants
    something to be nowhere, or a measure to be small, is unknown then. Of a turn that failed on its way, only what is
    on record counts: what is missing there is unknown.
    """
    turns = turns_of(expectation.turn, conversation)
    if not turns:
        return no_such_turn(expectation.turn, conversation, wanted=wants(expectation))
    match expectation:
        case OrderExpectation():
            return _ordered(expectation.tools, turns)
        case BelowExpectation():
            return measured(expectation, turns)
        case _:
            try:
                return concluded(turns, _seeing(expectation), wanted=wants(expectation))
            except TooSlow:
                because = "The pattern was given up on: it tries too many ways. Make it simpler."
                return Outcome(state=OutcomeState.UNKNOWN, because=because)


def _seeing(
    expectation: GuidelineExpectation
    | ToolExpectation
    | DecisionExpectation
    | ReplyContainsExpectation
    | ReplyMatchesExpectation
    | HandedOverExpectation,
) -> Callable[[TurnRecord], Sighting]:
    match expectation:
        case GuidelineExpectation():
            return partial(_see_guideline, expectation)
        case ToolExpectation():
            return partial(_see_call, expectation)
        case DecisionExpectation():
            return partial(_see_decision, expectation)
        case ReplyContainsExpectation():
            return partial(_see_text, expectation)
        case ReplyMatchesExpectation():
            return partial(_see_pattern, expectation)
        case HandedOverExpectation():
            return _see_hand_over
        case _:
            assert_never(expectation)


# --- Guidelines


def _see_guideline(expectation: GuidelineExpectation, record: TurnRecord) -> Sighting:
    uid = _uid_in(record, expectation.guideline)
    match = record.matches.get(uid)
    label = _label(record, uid)
    if match is None:
        known = record.guideline(uid) is not None
        because = f"{label} was not evaluated." if known else f"The agent has no guideline {uid!r}."
        return Sighting(there=False, because=because)
    there = match.state is MatchState.MATCHED
    because = _sentence(f"{label} {_came_to(match, record)}", match.because)
    return Sighting(there=there, because=because, near=match.state is MatchState.DROPPED)


def _uid_in(record: TurnRecord, lasting: str) -> str:
    """The uid in this turn of the guideline that has this lasting one."""
    if lasting in record.matches:
        return lasting
    return next((uid for uid in record.matches if record.lasting_uid(uid) == lasting), lasting)


def _came_to(match: GuidelineMatch, record: TurnRecord) -> str:
    match match.state:
        case MatchState.MATCHED:
            return "matched"
        case MatchState.NOT_MATCHED:
            return "did not match"
        case MatchState.NOT_EVALUATED:
            return "was not evaluated"
        case MatchState.DROPPED:
            by = f" by {_label(record, match.dropped_by)}" if match.dropped_by else ""
            return f"was dropped{by}"
        case _:
            assert_never(match.state)


def _label(record: TurnRecord, uid: str) -> str:
    """G3 for one of the agent's own, else what a result brought, by its condition."""
    own = record.agent.label_of.get(uid)
    if own:
        return own
    brought = record.guideline(uid)
    return f"“{shortened(brought.condition or brought.action)}”" if brought else f"guideline {uid}"


# --- Tools


def _see_call(expectation: ToolExpectation, record: TurnRecord) -> Sighting:
    tool = expectation.tool
    calls = [call for call in record.ran if call.tool == tool]
    for call in calls:
        if all(fits(expected, call.arguments) for expected in expectation.arguments):
            return Sighting(there=True, because=f"{_call(call)}.")
    if calls:
        told = "; ".join(difference(call, expectation.arguments) for call in calls[:3])
        return Sighting(there=False, because=f"{tool} ran {told}.", near=True)
    return Sighting(there=False, because=_why_not_run(tool, record), near=_is_decided(tool, record))


def _call(call: ToolCall) -> str:
    """ "get_balance ran with account = 'A-1'"."""
    told = ", ".join(f"{name} = {shown(value)}" for name, value in call.arguments.items())
    return f"{call.tool} ran with {shortened(told, 300)}" if told else f"{call.tool} ran"


def _is_decided(tool: str, record: TurnRecord) -> bool:
    return any(decision.tool == tool for decision in record.decisions)


def _why_not_run(tool: str, record: TurnRecord) -> str:
    decisions = [decision for decision in record.decisions if decision.tool == tool]
    if decisions:
        return _sentence(
            f"{tool} did not run; it {_STATES[decisions[-1].state]}", decisions[-1].because
        )
    if tool not in record.agent.tool_by_name:
        return f"{tool} did not run; the agent has no such tool."
    return f"{tool} did not run; no guideline in force asked for it."


_STATES = {
    DecisionState.NEEDS_TO_RUN: "needs to run",
    DecisionState.DATA_ALREADY_IN_CONTEXT: "has its data in context already",
    DecisionState.CANNOT_RUN: "cannot run",
    DecisionState.NOT_NEEDED: "is not needed",
    DecisionState.AWAITING_CONFIRMATION: "awaits confirmation",
}


def _see_decision(expectation: DecisionExpectation, record: TurnRecord) -> Sighting:
    tool = expectation.tool
    decisions = [
        decision
        for decision in record.decisions
        if decision.tool == tool and expectation.guideline in {"", decision.guideline}
    ]
    for decision in decisions:
        if decision.state is expectation.state:
            because = _sentence(f"{tool} {_STATES[decision.state]}", decision.because)
            return Sighting(there=True, because=because)
    if decisions:
        last, wanted = decisions[-1], _STATES[expectation.state]
        what = f"It was decided that {tool} {_STATES[last.state]}, not that it {wanted}"
        return Sighting(there=False, because=_sentence(what, last.because), near=True)
    under = f" under {_label(record, expectation.guideline)}" if expectation.guideline else ""
    return Sighting(there=False, because=f"Nothing was decided about {tool}{under}.")


def _ordered(tools: Sequence[str], turns: Sequence[TurnRecord]) -> Outcome:
    """There is at least one turn."""
    begun: dict[
        str, int
    ] = {}  # tool → the turn of its first call, in the order in which they began
    for record in turns:
        for call in record.ran:
            begun.setdefault(call.tool, record.number)
    turn = turns[0].number if len(turns) == 1 else None
    if missing := [tool for tool in tools if tool not in begun]:
        because = f"{_listed(missing)} did not run."
        failed = Outcome(state=OutcomeState.FAILED, because=because, turn=turn)
        return broken_among(turns) or failed
    found = [tool for tool in begun if tool in tools]
    for early, wanted in zip(found, tools, strict=True):
        if early != wanted:
            because = f"{early} ran before {wanted}."
            return Outcome(state=OutcomeState.FAILED, because=because, turn=begun[early])
    because = f"They ran in this order: {', '.join(found)}."
    return Outcome(state=OutcomeState.HELD, because=because, turn=turn)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# --- Replies


def _see_text(expectation: ReplyContainsExpectation, record: TurnRecord) -> Sighting:
    reply, text = plain(record.reply), plain(expectation.text)
    place = reply.find(text)
    if place >= 0:
        around = reply[max(0, place - _AROUND) : place + len(text) + _AROUND]
        return Sighting(there=True, because=f"The reply says “{shortened(around, 300)}”.")
    return _not_said(record, f"does not say “{shortened(expectation.text)}”")


def _see_pattern(expectation: ReplyMatchesExpectation, record: TurnRecord) -> Sighting:
    found = found_in(record.reply, expectation.pattern)
    if found is not None:
        return Sighting(there=True, because=f"The reply says “{shortened(found)}”.")
    return _not_said(record, f"has nothing that matches {shortened(expectation.pattern)!r}")


def _not_said(record: TurnRecord, what: str) -> Sighting:
    if not record.reply:
        return Sighting(there=False, because="There is no reply.")
    return Sighting(there=False, because=f"The reply {what}; it is “{shortened(record.reply)}”.")


def _see_hand_over(record: TurnRecord) -> Sighting:
    if record.handed_over:
        return Sighting(there=True, because="The session was handed over to a person.")
    return Sighting(there=False, because="The session was not handed over to a person.")


def _sentence(what: str, because: str) -> str:
    """ "G3 did not match: the customer asks for …", with the recorded reason where there is one."""
    reason = shortened(because, 300)
    if not reason:
        return f"{what}."
    return f"{what}: {reason}" + "." * (reason[-1] not in ".!?…")
