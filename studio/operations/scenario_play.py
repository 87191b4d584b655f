"""A scenario's conversation, had once with one version, and what came of its expectations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from engine.customer_brief import CustomerBrief
from engine.errors import ModelError
from engine.events import (
    Answer,
    ConfirmationAnsweredEvent,
    Event,
    MessageEvent,
    RecordedEvent,
    Source,
)
from engine.expecting import (
    JudgedExpectation,
    NoPromiseExpectation,
    Outcome,
    check,
    judge,
    read_expectation,
)
from engine.model.base import Situation
from engine.pending import pending_calls
from engine.playing import play_turn
from engine.simulating import Budget, Ending, Said, ended_by, judge_customer, next_message
from engine.tools.recorded import RecordedCalls
from engine.trail import ModelCall
from engine.turn_record import TurnRecord
from studio import bridge
from studio.connecting import models_of
from studio.costs import PriceList, Usage
from studio.models import AgentVersion, Customer, Scenario, Session
from studio.operations.rehearsals import (
    NoLongerWantedError,
    Stage,
    keep_turn,
    remembered,
    wait_for,
)
from studio.operations.scenario_messages import turns_said
from studio.operations.scenarios import recorded_calls
from studio.operations.situations import ran_with
from studio.toolbox import tools_for

SCRIPT: Final = "script"
"""It ended because everything was said; the other endings are engine.simulating.Ending and UNASKED."""
UNASKED: Final = "unasked"
"""It ended because a button was to be pressed and no call waited for it."""


@dataclass(kw_only=True)
class Had:
    """A conversation that was had. `calls` are the requests of the simulated customer, of its judge, of expectations.

    `invalid` says why it says nothing of the agent, `error` why it could not be had to its end. Where it `tells`
    nothing of the agent, nothing is expected of it; of one whose last turn failed, what it shows counts.
    """

    records: list[TurnRecord] = field(default_factory=list)
    ended_by: str = ""
    invalid: str = ""
    error: str = ""
    tells: bool = True
    outcomes: list[JsonObject] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)

    @property
    def prompt_tokens(self) -> int:
        return sum(call.prompt_tokens for call in self._all_calls)

    @property
    def completion_tokens(self) -> int:
        return sum(call.completion_tokens for call in self._all_calls)

    @property
    def duration_ms(self) -> int:
        """Of the agent's turns."""
        return sum(record.duration_ms or 0 for record in self.records)

    @property
    def _all_calls(self) -> list[ModelCall]:
        return [call for record in self.records for call in record.model_calls] + self.calls


def have(
    session: Session,
    version: AgentVersion,
    scenario: Scenario,
    expectations: Sequence[JsonObject],
    wanted: Callable[[], bool],
) -> Had:
    """Have it in this empty session, turn by turn, and check the expectations ({"uid", "data"}).

    Raises NoLongerWantedError as soon as it is not wanted any more.
    """
    conversation = _Conversation(session, version, scenario, wanted)
    if scenario.kind == Scenario.Kind.SIMULATED:
        conversation.simulate()
    else:
        conversation.follow_script()
    if conversation.had.tells:
        conversation.check(expectations)
    return conversation.had


class _Conversation:
    def __init__(
        self,
        session: Session,
        version: AgentVersion,
        scenario: Scenario,
        wanted: Callable[[], bool],
    ) -> None:
        self.had = Had()
        self._session = session
        self._version = version
        self._scenario = scenario
        self._wanted = wanted
        self._prices = PriceList.today()
        self._models = models_of(session.connection)
        self._stage = self._set_up()
        self._history: tuple[RecordedEvent, ...] = ()
        self._situations: dict[int, Situation] = {}  # by turn, as its end found it

    def _set_up(self) -> Stage:
        agent, scenario = bridge.agent_spec(self._version), self._scenario
        live = scenario.tools == Scenario.Tools.LIVE
        return Stage(
            agent=agent,
            models=self._models,
            # Also where results are recorded: tools are asked which choices a parameter has.
            tools=tools_for(agent.tools),
            variables=scenario.variables,
            customer=bridge.customer_view(self._session.customer),
            place=str(self._session.pk),
            # What changes something never runs in a test.
            stand_in=RecordedCalls(recorded_calls(scenario), only_consequential=live),
        )

    @property
    def _number(self) -> int:
        """Of the next turn."""
        return len(self.had.records) + 1

    def follow_script(self) -> None:
        for entries in turns_said(self._scenario.messages):
            said = self._said(entries)
            if said is None:
                self.had.ended_by = UNASKED
                return
            record = self._play(said)
            if record.error:
                self.had.ended_by = Ending.FAILED
                self.had.error = record.error
                return
            if record.handed_over:
                self.had.ended_by = Ending.HANDED_OVER
                return
        self.had.ended_by = SCRIPT

    def _said(self, entries: Sequence[JsonObject]) -> list[Event] | None:
        """The customer's words and buttons of a turn; None where a button is pressed that nothing waits for."""
        waiting = list(pending_calls(self._history, self._number))
        found: list[Event] = []
        for entry in entries:
            if "answer" not in entry:
                found.append(MessageEvent(source=Source.CUSTOMER, text=entry["text"]))
                continue
            tool = entry.get("tool", "")
            same = [p for p in waiting if tool in ("", p.asked.tool)]
            if not same:
                return None
            waiting.remove(same[0])
            asked, answer = same[0].asked, Answer(entry["answer"])
            found.append(ConfirmationAnsweredEvent(call=asked.call, tool=asked.tool, answer=answer))
        return found

    def simulate(self) -> None:
        """A model plays the customer; whether it kept to its brief is judged before anything is said of the agent."""
        brief, budget = _brief(self._scenario.brief)
        said: list[Said] = []
        try:
            while (ending := ended_by(said, self.had.records, budget)) is None:
                asking = next_message(self._models.writing, self._situation, brief)
                said.append(wait_for(asking, self._wanted))
                self.had.calls += said[-1].calls
                if not said[-1].done:
                    self._play([MessageEvent(source=Source.CUSTOMER, text=said[-1].text)])
            self.had.ended_by = ending
            if ending is Ending.FAILED:
                self.had.error = self.had.records[-1].error
                return
            judging = judge_customer(self._models.judging, self._situation, brief, said)
            kept = wait_for(judging, self._wanted)
        except ModelError as error:
            self.had.tells = False
            self.had.error = _("The customer could not be simulated: %(why)s") % {"why": error}
            return
        self.had.calls += kept.calls
        if not kept.kept:
            self.had.tells = False
            self.had.invalid = kept.because or _("The customer did not keep to the brief.")

    @property
    def _situation(self) -> Situation:
        """The session so far."""
        return Situation(
            agent=self._stage.agent,
            history=self._history,
            turn=self._number,
            variables=self._stage.variables,
        )

    def _play(self, said: Sequence[Event]) -> TurnRecord:
        """Play the next turn, which becomes rows, and read it."""
        if not self._wanted():
            raise NoLongerWantedError
        number = self._number
        self._remember(said, number)
        state, kit = self._stage.set(number, self._history)
        played = wait_for(play_turn(state, kit), self._wanted)
        self._remember(played.events, number)
        keep_turn(
            self._session,
            self._version,
            said,
            played,
            tool_mode=self._session.tool_mode,
            ran_with=ran_with(self._session, self._models, self._stage.variables),
        )
        self._situations[number] = state.situation
        record = played.record(*said)
        record = played.record(*said, cost=self._cost(record.model_calls))
        self.had.records.append(record)
        return record

    def _remember(self, events: Sequence[Event], number: int) -> None:
        last = self._history[-1].offset if self._history else 0
        self._history += remembered(events, number, after=last)

    def _cost(self, calls: Sequence[ModelCall]) -> float | None:
        """At today's prices, in the one currency that they are in; None where that cannot be told."""
        cost = self._prices.cost(
            Usage(
                model=call.model,
                prompt_tokens=call.prompt_tokens,
                cached_tokens=call.cached_tokens,
                completion_tokens=call.completion_tokens,
            )
            for call in calls
        )
        amounts = cost["amounts"]
        if cost["unpriced"] or len(amounts) > 1:
            return None
        return float(amounts[0]["amount"]) if amounts else 0.0

    def check(self, expectations: Sequence[JsonObject]) -> None:
        for stored in expectations:
            outcome = self._outcome(stored["data"])
            self.had.outcomes.append(
                {
                    "expectation": stored["uid"],
                    "state": outcome.state.value,
                    "because": outcome.because,
                    "turn": outcome.turn,
                }
            )

    def _outcome(self, data: Any) -> Outcome:
        expectation = read_expectation(data)
        records = self.had.records
        if not isinstance(expectation, NoPromiseExpectation | JudgedExpectation):
            return check(expectation, records)
        _state, kit = self._stage.set(self._number, self._history)
        judging = judge(expectation, records, kit, lambda record: self._situations[record.number])
        judged = wait_for(judging, self._wanted)
        self.had.calls += judged.calls
        return judged.outcome


def _brief(stored: JsonObject) -> tuple[CustomerBrief, Budget]:
    usual = Budget()
    return (
        CustomerBrief(
            persona=stored.get("persona", ""),
            goal=stored.get("goal", ""),
            stop=stored.get("stop", ""),
        ),
        Budget(
            turns=stored.get("turns") or usual.turns, tokens=stored.get("tokens") or usual.tokens
        ),
    )


def customer_of(uid: str) -> Customer | None:
    """Whom the agent talks to, where that customer is still there."""
    return Customer.objects.filter(uid=uid).first() if uid else None
