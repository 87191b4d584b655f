"""Playing the turns of one session for a replay: each on the recorded history before it, or one after another."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from engine.events import ConfirmationAnsweredEvent, Event, Mode, ModeEvent, RecordedEvent
from engine.kit import Models
from engine.model.recorded import RecordedModel
from engine.pending import pending_calls
from engine.playing import Played
from engine.replaying import Difference, differences
from engine.spec import Agent
from engine.tools.mocked import MockedOutcomes
from engine.tools.recorded import RecordedCalls
from engine.tools.standing_in import StandIn
from studio import bridge
from studio.connecting import models_of
from studio.models import AcceptedChange, AgentVersion, Replay, ReplayedTurn, Session
from studio.operations import lanes
from studio.operations.accepting import key_of
from studio.operations.branches import BranchRefusedError, rehearsal_branch
from studio.operations.recordings import Recording
from studio.operations.rehearsals import (
    NoLongerWantedError,
    Stage,
    keep_turn,
    open_rehearsal,
    remembered,
    wait_for,
)
from studio.operations.situations import REMEMBERED_KINDS
from studio.operations.tool_modes import finder, mocks_as_outcomes
from studio.operations.variants import edited
from studio.toolbox import tools_for

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Result:
    recording: Recording
    said: tuple[Event, ...]
    played: Played
    stage: Stage


class Player:
    """Plays turns of one session for a replay."""

    def __init__(
        self,
        replay: Replay,
        session: Session,
        recorded: Mapping[int, Recording],
        hand: lanes.Hand,
    ) -> None:
        self._replay = replay
        self._crew = hand.crew
        self._session = session
        self._recorded = recorded
        self._hand = hand
        self._version: AgentVersion = replay.version
        self._agent: Agent = bridge.agent_spec(replay.version)
        self._tools = tools_for(() if replay.is_from_record else self._agent.tools)
        self._live: Models | None = None
        if replay.model == Replay.Model.LIVE or replay.until_it_differs:
            self._live = models_of(replay.connection or session.connection)
        self._accepted = _accepted([r.turn.pk for r in recorded.values()])

    def play_each(self, cells: Sequence[ReplayedTurn]) -> None:
        """Each turn with the recorded history before it, all at once."""
        ready: list[tuple[ReplayedTurn, Recording, Stage]] = []
        for cell in cells:
            recording = self._recorded[cell.turn_id]
            if obstacle := self._obstacle(recording):
                self._cannot(cell, obstacle)
            else:
                ready.append((cell, recording, self._stage(recording)))

        async def all_at_once() -> list[Played | BaseException]:
            return await asyncio.gather(
                *(
                    stage.play(recording.turn.number, recording.history + recording.said)
                    for _cell, recording, stage in ready
                ),
                return_exceptions=True,
            )

        played = wait_for(all_at_once(), self._hand.wanted) if ready else []
        results = [
            _Result(
                recording=recording,
                said=tuple(entry.event for entry in recording.said),
                played=outcome,
                stage=stage,
            )
            if not isinstance(outcome, BaseException)
            else outcome
            for (_cell, recording, stage), outcome in zip(ready, played, strict=True)
        ]
        # What came of them is worked out first, and then stored at once: others wait to write.
        conclusions = [
            self._conclusion(result) if isinstance(result, _Result) else None for result in results
        ]
        with transaction.atomic():
            for (cell, _recording, _stage), result, changes in zip(
                ready, results, conclusions, strict=True
            ):
                if isinstance(result, BaseException):
                    self._broke(cell, result)
                elif changes is not None:
                    self._store(cell, result, changes, self._branch_of)

    def play_on(self, cells: Sequence[ReplayedTurn], before: Sequence[ReplayedTurn]) -> None:
        """One turn after another, each on what the replay itself has said; all are kept, in one session.

        `before` are the earlier turns of the session, which are over.
        """
        run = _Run()
        for cell in before:
            run.take_up(cell, self._recorded[cell.turn_id])
        for cell in cells:
            if self._replay.cap and lanes.spent(self._crew, self._replay) >= self._replay.cap:
                return
            self._go_on(run, cell, self._recorded[cell.turn_id])

    def _go_on(self, run: "_Run", cell: ReplayedTurn, recording: Recording) -> None:
        run.hear(recording)
        if broken_off := recording.unfinished():
            self._cannot(cell, run.ended or broken_off)
            run.remember(recording.turn.number, (e.event for e in recording.happened))
            return
        if obstacle := run.ended or self._obstacle(recording):
            self._cannot(cell, obstacle)
            run.end(_not_played())
            return
        number = recording.turn.number
        said = _said_now(recording, run.history)
        if not said:
            self._cannot(
                cell,
                _("The customer pressed a button for a call that did not ask for it in this run."),
            )
            run.end(_not_played())
            return
        run.remember(number, said)
        stage = self._stage(recording)
        try:
            played = wait_for(stage.play(number, run.history), self._hand.wanted)
        except NoLongerWantedError:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever broke, it is told of this turn
            self._broke(cell, problem)
            run.end(_not_played())
            return
        run.remember(number, played.events)
        result = _Result(recording=recording, said=said, played=played, stage=stage)
        changes = self._conclusion(result)
        self._store(
            cell, result, changes, lambda _recording: run.session(self._new_session, number)
        )
        run.note(played, said)

    def _obstacle(self, recording: Recording) -> str:
        return recording.obstacle() if self._replay.is_frozen else recording.unfinished()

    def _stage(self, recording: Recording) -> Stage:
        customer = self._session.customer
        ran_with = recording.ran_with
        variables = ran_with.variables if ran_with else (customer.variables if customer else {})
        return Stage(
            agent=self._agent,
            models=self._models(recording),
            tools=self._tools,
            variables=variables,
            customer=bridge.customer_view(customer),
            place=str(self._session.pk),
            stand_in=self._stand_in(recording),
            now=lambda: recording.started_at,
            choices=recording.choices,
        )

    def _models(self, recording: Recording) -> Models:
        if self._replay.model == Replay.Model.LIVE:
            assert self._live is not None  # noqa: S101 - it was looked up
            return self._live
        ran_with = recording.ran_with
        if ran_with is None:
            assert self._live is not None  # noqa: S101 - a frozen turn without it is an obstacle
            return self._live

        def recorded(name: str, live: Any) -> RecordedModel:
            return RecordedModel(
                recording.answers,
                name=name,
                batch_size=ran_with.batch_size,
                judging_style=ran_with.judging_style,
                otherwise=live,
            )

        live = self._live
        return Models(
            judging=recorded(ran_with.judging, live.judging if live else None),
            writing=recorded(ran_with.writing, live.writing if live else None),
        )

    def _stand_in(self, recording: Recording) -> StandIn:
        """What changes something never runs in a replay: it ends as it ended, or not at all."""
        if self._replay.tools == Replay.Tools.MOCK:
            return MockedOutcomes(mocks_as_outcomes(self._session))
        calls = recording.calls
        if self._replay.variant is not None:
            calls = edited(calls, self._replay.variant)
        return RecordedCalls(
            calls,
            otherwise=None if self._replay.is_frozen else finder(self._session),
            only_consequential=self._replay.tools == Replay.Tools.LIVE,
        )

    def _conclusion(self, result: _Result) -> dict[str, Any]:
        """What came of the turn, as its cell keeps it."""
        played, recording = result.played, result.recording
        if played.not_recorded:
            return {
                "verdict": ReplayedTurn.Verdict.IMPOSSIBLE,
                "reason": _changed_question(result, self._version),
            }
        record = played.record(*result.said)
        found = differences(recording.record, record)
        verdict = self._verdict(recording, played, found)
        return {
            "verdict": verdict,
            "reason": str(played.error) if verdict == ReplayedTurn.Verdict.FAILED else "",
            "differences": [difference.to_json() for difference in found],
            "duration_ms": record.duration_ms or 0,
            "prompt_tokens": sum(call.prompt_tokens for call in record.model_calls),
            "completion_tokens": sum(call.completion_tokens for call in record.model_calls),
        }

    def _store(
        self,
        cell: ReplayedTurn,
        result: _Result,
        changes: Mapping[str, Any],
        place: Callable[[Recording], Session],
    ) -> None:
        """With the turn as it was played, in a session that `place` names, where it tells something new."""
        as_on_record = (
            changes["verdict"] == ReplayedTurn.Verdict.SAME and not self._replay.free_running
        )
        if as_on_record or changes["verdict"] == ReplayedTurn.Verdict.IMPOSSIBLE:
            self._hand.finish(cell.pk, **changes)
            return
        try:
            self._keep(cell, result, place, changes)
        except BranchRefusedError as problem:
            self._broke(cell, problem)

    def _keep(
        self,
        cell: ReplayedTurn,
        result: _Result,
        place: Callable[[Recording], Session],
        changes: Mapping[str, Any],
    ) -> None:
        with transaction.atomic():
            session = place(result.recording)
            keep_turn(
                session,
                self._version,
                result.said,
                result.played,
                tool_mode=self._replay.tools,
                ran_with=_ran_with(result.recording, result.stage),
            )
            if not self._hand.finish(cell.pk, played=session, **changes):
                transaction.set_rollback(True)

    def _verdict(
        self, recording: Recording, played: Played, found: Sequence[Difference]
    ) -> "ReplayedTurn.Verdict":
        if not found:
            return ReplayedTurn.Verdict.SAME
        if played.error is not None:
            return ReplayedTurn.Verdict.FAILED
        accepted = self._accepted.get(recording.turn.pk, set())
        if all(key_of(difference) in accepted for difference in found):
            return ReplayedTurn.Verdict.ACCEPTED
        return ReplayedTurn.Verdict.CHANGED

    def _cannot(self, cell: ReplayedTurn, reason: str) -> None:
        self._hand.finish(cell.pk, verdict=ReplayedTurn.Verdict.IMPOSSIBLE, reason=reason)

    def _broke(self, cell: ReplayedTurn, problem: BaseException) -> None:
        log.error("Turn %s could not be replayed.", cell, exc_info=problem)
        reason = f"{type(problem).__name__}: {problem}"[:4000]
        self._hand.finish(cell.pk, verdict=ReplayedTurn.Verdict.FAILED, reason=reason)

    def _branch_of(self, recording: Recording) -> Session:
        """A hidden branch that goes on from the turn before, so that the turn is read with its history."""
        return rehearsal_branch(self._session, recording.turn.number - 1)

    def _new_session(self) -> Session:
        return open_rehearsal(
            self._session.agent,
            self._version,
            Session.Purpose.REPLAY,
            title=str(self._session),
            customer=self._session.customer,
            connection=self._replay.connection or self._session.connection,
        )


class _Run:
    """How far a free-running conversation has come."""

    def __init__(self) -> None:
        self.history: tuple[RecordedEvent, ...] = ()
        self.ended = ""  # why no further turn can be played
        self._heard: set[int] = set()
        self._kept: Session | None = None

    def remember(self, number: int, events: Iterable[Event]) -> None:
        after = self.history[-1].offset if self.history else 0
        self.history += remembered(events, number, after=after)

    def hear(self, recording: Recording) -> None:
        """What people said and did outside of turns until then: it stands whatever this run says."""
        new = [entry for entry in recording.outside if entry.offset not in self._heard]
        for entry in new:
            self._heard.add(entry.offset)
            self.remember(entry.turn, [entry.event])
        if any(_hands_back(entry.event) for entry in (*new, *recording.said)):
            self.ended = "" if self.ended == _handed_over() else self.ended

    def session(self, open_new: Callable[[], Session], number: int) -> Session:
        """The one that is kept of it, in which turns have the numbers that they have on record."""
        kept = self._kept = self._kept or open_new()
        Session.objects.filter(pk=kept.pk).update(next_turn=number)
        return kept

    def note(self, played: Played, said: Sequence[Event]) -> None:
        if played.error is not None:
            self.end(_not_played())
        elif played.record(*said).handed_over:
            self.end(_handed_over())

    def end(self, reason: str) -> None:
        self.ended = self.ended or reason

    def take_up(self, cell: ReplayedTurn, recording: Recording) -> None:
        """A turn that was played before, by a lane that was stopped since."""
        self.hear(recording)
        if cell.played is None:
            if recording.unfinished():
                self.remember(cell.number, (e.event for e in recording.happened))
            else:
                self.end(_not_played())
            return
        self._kept = cell.played
        rows = cell.played.events.filter(kind__in=REMEMBERED_KINDS, turn__number=cell.number)
        shapes = rows.order_by("offset").values_list(
            "offset", "turn__number", "kind", "source", "data"
        )
        events = [entry.event for entry in bridge.recorded_events(shapes)]
        self.remember(cell.number, events)
        if cell.verdict == ReplayedTurn.Verdict.FAILED:
            self.end(_not_played())
        elif any(isinstance(event, ModeEvent) and event.mode is Mode.MANUAL for event in events):
            self.end(_handed_over())


def _hands_back(event: Event) -> bool:
    return isinstance(event, ModeEvent) and event.mode is Mode.AUTO


def _not_played() -> str:
    return _("An earlier turn of this run could not be played to its end.")


def _handed_over() -> str:
    return _("The session was handed over to a person before.")


def _said_now(recording: Recording, history: tuple[RecordedEvent, ...]) -> tuple[Event, ...]:
    """What the customer said then; a button that they pressed is pressed for the same call of this run, if it waits."""
    waiting = list(pending_calls(history, recording.turn.number))
    found: list[Event] = []
    for entry in recording.said:
        event = entry.event
        if not isinstance(event, ConfirmationAnsweredEvent):
            found.append(event)
            continue
        same = [p for p in waiting if p.asked.tool == event.tool]
        if same:
            waiting.remove(same[0])
            found.append(replace(event, call=same[0].asked.call))
    return tuple(found)


_ASKED: Final[Mapping[str, str | Promise]] = {
    "MatchGuidelines": gettext_lazy("which guidelines apply"),
    "ScoreGuideline": gettext_lazy("whether a guideline applies"),
    "ExplainMatch": gettext_lazy("why a guideline applies"),
    "ReadConfirmation": gettext_lazy("what the customer says to a call that waits"),
    "ChooseTool": gettext_lazy("which of several tools"),
    "InferToolCalls": gettext_lazy("which calls to make"),
    "ComposeReply": gettext_lazy("what to reply"),
    "ChooseResponse": gettext_lazy("which canned response"),
    "JudgeReply": gettext_lazy("whether the reply follows its guidelines"),
}


def _changed_question(result: _Result, version: AgentVersion) -> str:
    missing: list[tuple[str, str]] = []
    for model in (result.stage.models.judging, result.stage.models.writing):
        missing += model.missing if isinstance(model, RecordedModel) else []
    name, subject = missing[0] if missing else ("", "")
    asked = str(_ASKED.get(name, name))
    told = {
        "version": str(version.label).capitalize(),
        "what": f"{asked} ({subject})" if subject else asked,
    }
    if result.recording.turn.version_id == version.pk:
        words = _("The model is asked otherwise than it was: %(what)s.")
    else:
        words = _("%(version)s asks the model otherwise: %(what)s.")
    remedy = _(
        "The record has no answer to that. Replay it until it differs, or with the live model."
    )
    return f"{words % told} {remedy}"


def _ran_with(recording: Recording, stage: Stage) -> JsonObject:
    models = stage.models
    return {
        **{name: kept for name, kept in recording.turn.ran_with.items() if name != "redacted"},
        "format": 1,
        "variables": stage.variables,
        "customer": stage.customer.id if stage.customer else "",
        "judging": models.judging.name,
        "writing": models.writing.name,
        "batch_size": models.judging.batch_size,
        "judging_style": models.judging.judging_style.value,
    }


def _accepted(turns: Sequence[int]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for turn, key in AcceptedChange.objects.filter(turn__in=turns).values_list("turn", "key"):
        found.setdefault(turn, set()).add(key)
    return found
