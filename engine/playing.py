"""A turn played to its end with nobody watching: for replays, scenarios and tests of agents."""

from dataclasses import dataclass
from datetime import UTC, datetime

from engine.errors import ModelError, ModelErrorKind
from engine.events import Event, MessagePartEvent
from engine.kit import Kit
from engine.outbox import Emission
from engine.spec import Agent
from engine.state import Checkpoint, Step, TurnState
from engine.trail import TrailEntry
from engine.turn import run_turn
from engine.turn_record import TurnRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Everything that the turn yielded, in order, without the pieces of messages that were replaced by the whole.

    `error` is the model's, where it could not be played to its end.
    """

    agent: Agent
    number: int
    emissions: tuple[Emission, ...]
    started_at: datetime
    ended_at: datetime
    error: ModelError | None = None

    @property
    def step(self) -> Step:
        """Where it ended."""
        reached = [item.step for item in self.emissions if isinstance(item, Checkpoint)]
        return reached[-1] if reached else Step.CONFIRMING

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(i for i in self.emissions if not isinstance(i, TrailEntry | Checkpoint))

    @property
    def trail(self) -> tuple[TrailEntry, ...]:
        return tuple(item for item in self.emissions if isinstance(item, TrailEntry))

    @property
    def not_recorded(self) -> bool:
        """Did it end because something was asked that the record does not hold?"""
        return self.error is not None and self.error.kind is ModelErrorKind.NOT_RECORDED

    def record(self, *said: Event, cost: float | None = None) -> TurnRecord:
        """What came of it; `said` is what the customer had said to begin it."""
        return TurnRecord(
            number=self.number,
            agent=self.agent,
            events=(*said, *self.events),
            trail=self.trail,
            started_at=self.started_at,
            ended_at=self.ended_at,
            error=str(self.error) if self.error is not None else "",
            cost=cost,
        )


async def play_turn(state: TurnState, kit: Kit) -> Played:
    """Never raises ModelError; what else goes wrong is raised."""
    agent, started, found = state.agent, datetime.now(UTC), list[Emission]()
    error: ModelError | None = None
    try:
        async for item in run_turn(state, kit):
            if not isinstance(item, MessagePartEvent):
                found.append(item)
    except ModelError as problem:
        error = problem
    return Played(
        agent=agent,
        number=state.turn,
        emissions=tuple(found),
        started_at=started,
        ended_at=datetime.now(UTC),
        error=error,
    )
