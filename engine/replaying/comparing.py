"""All differences of two runs of a turn, in the order in which they are read."""

from collections.abc import Iterable
from functools import cached_property

from engine.replaying.called import arguments, confirmations, decisions, paired_decisions
from engine.replaying.difference import Difference
from engine.replaying.ending import failures, hand_overs, limits, replies, responses
from engine.replaying.guided import adherence, guidelines
from engine.replaying.results import results
from engine.spec import Agent
from engine.turn_record import TurnRecord


def differences(before: TurnRecord, after: TurnRecord) -> tuple[Difference, ...]:
    """By kind; inside a kind by iteration, then in the author's order of guidelines."""
    place = _AuthorsOrder(before.agent, after.agent)
    decided = paired_decisions(before, after)
    by_kind: tuple[Iterable[Difference], ...] = (
        confirmations(before, after),
        guidelines(before, after),
        decisions(decided),
        arguments(decided),
        results(before, after, place),
        hand_overs(before, after),
        limits(before, after),
        failures(before, after),
        responses(before, after),
        adherence(before, after),
        replies(before, after),
    )
    return tuple(
        difference
        for found in by_kind
        for difference in sorted(found, key=lambda d: (d.iteration, *place(d.guideline)))
    )


class _AuthorsOrder:
    """Uid → a key to sort by: what only one agent has keeps its place between what both have; others come last."""

    def __init__(self, *agents: Agent) -> None:
        self._agents = agents

    def __call__(self, uid: str) -> tuple[int, str]:
        return self._places.get(uid, len(self._places)), uid

    @cached_property
    def _places(self) -> dict[str, int]:  # most turns have no difference, and need none of it
        found: dict[str, int] = {}
        for agent in self._agents:
            for number, guideline in enumerate(agent.guidelines):
                found[guideline.uid] = max(number, found.get(guideline.uid, 0))
        return found
