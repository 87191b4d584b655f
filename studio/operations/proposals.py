"""From what is on record of a turn to what may be expected of it: row by row, and of a whole session."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.canonical import JsonObject, canonical_json, digest
from engine.expecting import (
    ArgumentExpectation,
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    ToolExpectation,
    to_json,
)
from engine.trail import DecisionState, ToolCall, ToolDecision
from engine.turn_record import TurnRecord
from studio.models import Session
from studio.operations.recordings import recordings_of, turns_to_replay
from studio.operations.scenario_messages import SaidTurn, place_of_turn

_RAN = DecisionState.NEEDS_TO_RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`likely`: it is what most people want, and is chosen already. `key` names it among the proposals of a page."""

    expectation: Expectation
    likely: bool = True

    @property
    def key(self) -> str:
        return digest(canonical_json(to_json(self.expectation)))[:16]

    @property
    def turn(self) -> int | None:
        return self.expectation.turn


def record_of(session: Session, number: int) -> TurnRecord | None:
    """A turn of the session's line as it is on record; None where it has run on no version yet."""
    found = recordings_of(session, turns_to_replay(session).filter(number=number))
    return found[0].record if found else None


def of_guideline(record: TurnRecord, uid: str) -> list[Proposal]:
    """What became of the guideline in this turn, as it is; then the same of every turn."""
    if uid not in record.matches:
        return []
    here = GuidelineExpectation(
        guideline=record.lasting_uid(uid), matches=uid in record.matched, turn=record.number
    )
    return [
        Proposal(expectation=here),
        Proposal(expectation=replace(here, turn=None), likely=False),
    ]


def of_call(record: TurnRecord, uid: str) -> list[Proposal]:
    """That the tool runs with exactly these arguments; then with any; then that it does not run at all."""
    call = next((call for call in record.ran if call.uid == uid), None)
    return _of_call(call, record.number) if call is not None else []


def of_decision(record: TurnRecord, place: int) -> list[Proposal]:
    """Of the decision at this place, from 1: of the call that it led to, or of the decision itself."""
    if not 1 <= place <= len(record.decisions):
        return []
    decision = record.decisions[place - 1]
    call = next((call for call in record.ran if call.uid == decision.call), None)
    if decision.state is _RAN and call is not None:
        return _of_call(call, record.number)
    return _of_decision(decision, record)


def of_hand_over(record: TurnRecord) -> list[Proposal]:
    return [
        Proposal(expectation=HandedOverExpectation(expected=record.handed_over, turn=record.number))
    ]


def of_turn(record: TurnRecord) -> list[Proposal]:
    """Everything that was decided: guidelines in force, calls, what kept tools from running, a hand-over."""
    found = [
        Proposal(
            expectation=GuidelineExpectation(guideline=record.lasting_uid(uid), turn=record.number),
            likely=not _always(record, uid),
        )
        for uid in record.matches
        if uid in record.matched
    ]
    for call in record.ran:
        found += _of_call(call, record.number)[:1]
    for decision in record.decisions:
        if decision.state in {DecisionState.CANNOT_RUN, DecisionState.AWAITING_CONFIRMATION}:
            found += _of_decision(decision, record)[:1]
    if record.handed_over:
        found += of_hand_over(record)
    return _once(found)


def of_session(session: Session, *, up_to: int | None = None) -> list[Proposal]:
    """What was decided in each turn of the session's line; turns are numbered as in the session."""
    turns = turns_to_replay(session)
    if up_to is not None:
        turns = turns.filter(number__lte=up_to)
    return [
        proposal
        for recording in recordings_of(session, turns)
        for proposal in of_turn(recording.record)
    ]


def in_scenario(expectation: Expectation, said: Sequence[SaidTurn]) -> Expectation | None:
    """The same of the scenario that is kept of the session; None where the turn is not part of it."""
    if expectation.turn is None:
        return expectation
    place = place_of_turn(said, expectation.turn)
    return None if place is None else replace(expectation, turn=place)


def _always(record: TurnRecord, uid: str) -> bool:
    guideline = record.guideline(uid)
    return guideline is not None and guideline.always


def _of_call(call: ToolCall, turn: int) -> list[Proposal]:
    exact = ToolExpectation(tool=call.tool, turn=turn, arguments=_arguments(call.arguments))
    loose = ToolExpectation(tool=call.tool, turn=turn)
    never = ToolExpectation(tool=call.tool, turn=turn, runs=False)
    found = [Proposal(expectation=exact)]
    if loose != exact:
        found.append(Proposal(expectation=loose, likely=False))
    return [*found, Proposal(expectation=never, likely=False)]


def _arguments(arguments: JsonObject) -> tuple[ArgumentExpectation, ...]:
    """What was left empty is not expected to be empty."""
    return tuple(
        ArgumentExpectation(name=name, value=value)
        for name, value in arguments.items()
        if value is not None
    )


def _of_decision(decision: ToolDecision, record: TurnRecord) -> list[Proposal]:
    under = record.lasting_uid(decision.guideline)
    own = (
        under if under in record.agent.guideline_by_uid else ""
    )  # others have another uid each run
    here = DecisionExpectation(
        tool=decision.tool, state=decision.state, guideline=own, turn=record.number
    )
    found = [Proposal(expectation=here)]
    if decision.state is not _RAN:
        silent = ToolExpectation(tool=decision.tool, runs=False, turn=record.number)
        found.append(Proposal(expectation=silent, likely=False))
    return found


def _once(proposals: Iterable[Proposal]) -> list[Proposal]:
    return list({proposal.key: proposal for proposal in proposals}.values())
