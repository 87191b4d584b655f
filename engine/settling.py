"""What the customer's word on pending calls settles for the rest of the turn (ENGINE.md §1 step 1).

Read from the events of the turn alone, so that a turn that goes on after an interruption finds the same.
"""

from dataclasses import dataclass

from engine.events import Answer, ConfirmationAskedEvent, Source
from engine.pending import Answered, answered_in, pending_calls
from engine.spec import Guideline
from engine.state import TurnState, unanswered
from engine.trail import MatchState

CONFIRMED = "The customer confirmed the call that it asked for."
_CHANGED = "The customer changed a call that awaited confirmation."
_DECLINED = "The customer declined the call that it asked for."


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The state of a guideline by the customer's word. `final`: it is not judged in the first iteration."""

    guideline: Guideline
    state: MatchState
    because: str
    final: bool


def also_said(state: TurnState) -> bool:
    """Do the newest messages say more than the customer's word on the calls that awaited it?"""
    read = [a.event for a in answered_in(state.history, state.turn) if is_read(a)]
    if read:
        return any(event.also.strip() for event in read)
    return bool(unanswered(state.history, state.turn))


def is_read(answered: Answered) -> bool:
    """Was it read from the customer's words, not given by a button or the clock?"""
    return answered.event.source is Source.CUSTOMER and bool(answered.event.because)


def answered_tools(state: TurnState) -> frozenset[str]:
    """Names of the tools whose calls the customer confirmed or declined in this turn, wanting nothing besides."""
    answers: dict[str, set[Answer]] = {}
    for answered in answered_in(state.history, state.turn):
        answers.setdefault(answered.asked.tool, set()).add(answered.answer)
    if not answers or also_said(state):
        return frozenset()
    settled = {Answer.CONFIRMED, Answer.DECLINED}
    return frozenset(tool for tool, given in answers.items() if given <= settled)


def owners(state: TurnState, asked: ConfirmationAskedEvent) -> tuple[Guideline, ...]:
    """The guidelines of the agent, as it is now, that may have this call run."""
    return tuple(
        guideline
        for guideline in state.agent.guidelines
        if guideline.uid in asked.guidelines and guideline.enabled and asked.tool in guideline.tools
    )


def settlements(state: TurnState) -> list[Settlement]:
    """The guidelines whose state follows from the answers of this turn.

    One that owns a confirmed call is in force, since the call runs under it; where the customer says more, it is judged
    all the same, for what else it may ask for. One with a changed call is in force, so that the call is inferred anew.
    One whose calls were all declined is not, unless the customer says more.
    """
    more = also_said(state)
    answers: dict[str, set[Answer]] = {}
    for answered in answered_in(state.history, state.turn):
        for guideline in owners(state, answered.asked):
            answers.setdefault(guideline.uid, set()).add(answered.answer)
    still = {
        guideline.uid
        for pending in pending_calls(state.history, state.turn)
        for guideline in owners(state, pending.asked)
    }
    found = []
    for uid, given in answers.items():
        guideline = state.agent.guideline_by_uid[uid]
        if Answer.CHANGED in given:
            found.append(_settled(guideline, MatchState.MATCHED, _CHANGED))
        elif Answer.CONFIRMED in given:
            found.append(_settled(guideline, MatchState.MATCHED, CONFIRMED, final=not more))
        elif given == {Answer.DECLINED} and uid not in still and not guideline.always and not more:
            found.append(_settled(guideline, MatchState.NOT_MATCHED, _DECLINED))
    return found


def _settled(
    guideline: Guideline, state: MatchState, because: str, *, final: bool = True
) -> Settlement:
    return Settlement(guideline=guideline, state=state, because=because, final=final)
