"""Replays: recorded turns played again against a version, and what was different, turn by turn."""

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import F, Sum
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from engine.events import ConfirmationAnsweredEvent, Event, RecordedEvent
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
from studio.models import (
    AcceptedChange,
    AgentVersion,
    ModelConnection,
    Replay,
    ReplayedTurn,
    Session,
    Variant,
)
from studio.models import Agent as AgentRow
from studio.operations import lanes
from studio.operations.accepting import key_of
from studio.operations.branches import rehearsal_branch
from studio.operations.recordings import Recording, recordings_of, turns_to_replay
from studio.operations.rehearsals import (
    NoLongerWantedError,
    Stage,
    keep_turn,
    open_rehearsal,
    remembered,
    wait_for,
)
from studio.operations.tool_modes import finder, mocks_as_outcomes
from studio.operations.variants import edited
from studio.operations.versions import VersionUnknownError, version_named
from studio.toolbox import tools_for

log = logging.getLogger(__name__)

TOGETHER = 20  # turns of one session that a lane plays at once from the record


class ReplayRefusedError(Exception):
    """Nothing can be replayed like that; `field` names what to change, the text says how."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def start_replay(
    sessions: Sequence[Session],
    *,
    against: str | int,
    model: str = Replay.Model.RECORDED,
    tools: str = Replay.Tools.RECORDED,
    until_it_differs: bool = False,
    free_running: bool = False,
    connection: ModelConnection | None = None,
    variant: Variant | None = None,
    cap: int = 0,
    by: str = "",
) -> Replay:
    """Ask for it; the sessions are of one agent. Raises ReplayRefusedError."""
    agent = _agent_of(sessions)
    if model not in Replay.Model.values:
        raise ReplayRefusedError("model", _("The model is “recorded” or “live”."))
    if tools not in Replay.Tools.values:
        raise ReplayRefusedError("tools", _("Tools are “recorded”, “live” or “mock”."))
    if variant is not None and [variant.session_id] != [session.pk for session in sessions]:
        raise ReplayRefusedError("variant", _("A variant is replayed with its own session alone."))
    try:
        version = version_named(agent, against)
    except VersionUnknownError as error:
        raise ReplayRefusedError("against", str(error)) from error
    with transaction.atomic():
        row = Replay.objects.create(
            agent=agent,
            against=str(against),
            version=version,
            model=model,
            tools=tools,
            until_it_differs=until_it_differs,
            free_running=free_running,
            connection=connection,
            variant=variant,
            cap=cap,
            started_by=by[:150],
        )
        cells = [
            ReplayedTurn(replay=row, session=session, turn_id=turn, number=number)
            for session in sessions
            for turn, number in session.line.turns.filter(version__isnull=False)
            .order_by("number")
            .values_list("pk", "number")
        ]
        if not cells:
            raise ReplayRefusedError("session", _("Nothing was answered in it yet."))
        ReplayedTurn.objects.bulk_create(cells, batch_size=500)
        row.total = len(cells)
        row.save(update_fields=["total"])
        lanes.start(CREW, row)
    return row


def _agent_of(sessions: Sequence[Session]) -> AgentRow:
    if not sessions:
        raise ReplayRefusedError("session", _("Choose the sessions to replay."))
    agents = {session.agent_id for session in sessions}
    if len(agents) > 1:
        raise ReplayRefusedError("session", _("Choose sessions of one agent."))
    return sessions[0].agent


class _Replays:
    kind: ClassVar[str] = "replay"
    batches: ClassVar[Any] = Replay.objects
    cells: ClassVar[Any] = ReplayedTurn.objects

    def cells_of(self, batch: Replay) -> Any:
        return ReplayedTurn.objects.filter(replay=batch)

    def next_keys(self, batch: Replay) -> list[int]:
        """Turns of one session: all of it where it runs free, one where a live model may be asked, else many."""
        waiting = self.cells_of(batch).waiting()
        chance = random.randint(0, max(0, batch.total - 1))  # noqa: S311 - so that lanes do not meet
        first = ReplayedTurn.objects.filter(replay=batch).order_by("pk").values_list("pk").first()
        start = waiting.filter(pk__gte=(first[0] if first else 0) + chance).order_by("pk").first()
        start = start or waiting.order_by("pk").first()
        if start is None:
            return []
        at_once = TOGETHER
        if self.waits_long(batch):
            at_once = 1
        if batch.free_running:
            at_once = 10_000
        of_session = waiting.filter(session=start.session_id).order_by("number")
        if not batch.free_running:
            of_session = of_session.filter(number__gte=start.number)
        return list(of_session.values_list("pk", flat=True)[:at_once])

    def expected_tokens(self, batch: Replay, keys: Sequence[int]) -> int:
        if not self.waits_long(batch):
            return 0
        sums = ReplayedTurn.objects.filter(pk__in=keys).aggregate(
            tokens=Sum(F("turn__prompt_tokens") + F("turn__completion_tokens"))
        )
        return int(sums["tokens"] or 0)

    def waits_long(self, batch: Replay) -> bool:
        return (
            batch.model == Replay.Model.LIVE
            or batch.until_it_differs
            or batch.tools == Replay.Tools.LIVE
        )

    def closing(self, batch: Replay) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def play(self, batch: Replay, keys: Sequence[int], hand: lanes.Hand) -> None:
        cells = list(
            ReplayedTurn.objects.filter(pk__in=keys)
            .select_related("session__agent", "session__customer", "session__connection")
            .order_by("number")
        )
        replay = Replay.objects.select_related("version", "connection", "variant").get(pk=batch.pk)
        session = cells[0].session
        turns = turns_to_replay(session).filter(pk__in=[cell.turn_id for cell in cells])
        recorded = {r.turn.pk: r for r in recordings_of(session, turns)}
        player = _Player(replay, session, recorded, hand)
        try:
            if replay.free_running:
                player.play_on(cells)
            else:
                player.play_each(cells)
        except NoLongerWantedError:
            log.info("Replay %s was stopped.", replay)


CREW = _Replays()
lanes.register(CREW)


@dataclass(frozen=True, kw_only=True)
class _Result:
    recording: Recording
    said: tuple[Event, ...]
    played: Played
    stage: Stage


class _Player:
    """Plays turns of one session for a replay."""

    def __init__(
        self,
        replay: Replay,
        session: Session,
        recorded: Mapping[int, Recording],
        hand: lanes.Hand,
    ) -> None:
        self._replay = replay
        self._session = session
        self._recorded = recorded
        self._hand = hand
        self._version: AgentVersion = replay.version
        self._agent: Agent = bridge.agent_spec(replay.version)
        self._tools = tools_for(self._agent.tools if self._is_live else ())
        self._live: Models | None = None
        if replay.model == Replay.Model.LIVE or replay.until_it_differs:
            self._live = models_of(replay.connection or session.connection)
        self._accepted = _accepted([r.turn.pk for r in recorded.values()])

    @property
    def _is_live(self) -> bool:
        """May anything but the record be asked?"""
        return CREW.waits_long(self._replay)

    @property
    def _frozen(self) -> bool:
        return self._replay.model == Replay.Model.RECORDED and not self._replay.until_it_differs

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
        for (cell, recording, stage), outcome in zip(ready, played, strict=True):
            if isinstance(outcome, BaseException):
                self._broke(cell, outcome)
                continue
            said = tuple(entry.event for entry in recording.said)
            result = _Result(recording=recording, said=said, played=outcome, stage=stage)
            self._conclude(cell, result, self._branch_of)

    def play_on(self, cells: Sequence[ReplayedTurn]) -> None:
        """One turn after another, each on what the replay itself has said; all are kept, in one session."""
        history: tuple[RecordedEvent, ...] = ()
        kept: Session | None = None
        ended = ""
        for cell in cells:
            recording = self._recorded[cell.turn_id]
            obstacle = ended or self._obstacle(recording)
            if obstacle:
                self._cannot(cell, obstacle)
                continue
            number = recording.turn.number
            said = _said_now(recording, history)
            after = history[-1].offset if history else 0
            history += remembered(said, number, after=after)
            stage = self._stage(recording)
            try:
                played = wait_for(stage.play(number, history), self._hand.wanted)
            except NoLongerWantedError:
                raise
            except Exception as problem:  # noqa: BLE001 - whatever broke, it is told of this turn
                self._broke(cell, problem)
                ended = _("An earlier turn of this run could not be played.")
                continue
            history += remembered(played.events, number, after=history[-1].offset)
            kept = kept or self._new_session()
            result = _Result(recording=recording, said=said, played=played, stage=stage)
            session = kept
            self._conclude(cell, result, lambda _recording, session=session: session)
            if played.error is not None:
                ended = _("An earlier turn of this run failed.")
            elif result.played.record(*said).handed_over:
                ended = _("The session was handed over to a person before.")

    def _obstacle(self, recording: Recording) -> str:
        if self._frozen or self._replay.model == Replay.Model.RECORDED:
            frozen = recording.obstacle()
            if frozen and not self._replay.until_it_differs:
                return frozen
        return recording.unfinished()

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
            otherwise=None if self._frozen else finder(self._session),
            only_consequential=self._replay.tools == Replay.Tools.LIVE,
        )

    def _conclude(self, cell: ReplayedTurn, result: _Result, place: Any) -> None:
        played, recording = result.played, result.recording
        if played.not_recorded:
            self._cannot(cell, _changed_question(played, recording, self._version))
            return
        record = played.record(*result.said)
        found = differences(recording.record, record)
        verdict = self._verdict(recording, played, found)
        changes: dict[str, Any] = {
            "verdict": verdict,
            "reason": str(played.error) if verdict == ReplayedTurn.Verdict.FAILED else "",
            "differences": [difference.to_json() for difference in found],
            "duration_ms": record.duration_ms or 0,
        }
        used = [c for c in record.model_calls if c.prompt_tokens or c.completion_tokens]
        changes["prompt_tokens"] = sum(call.prompt_tokens for call in used)
        changes["completion_tokens"] = sum(call.completion_tokens for call in used)
        if verdict == ReplayedTurn.Verdict.SAME and not self._replay.free_running:
            self._hand.finish(cell.pk, **changes)
            return
        with transaction.atomic():
            session = place(recording)
            keep_turn(
                session,
                self._version,
                result.said,
                played,
                tool_mode=self._replay.tools,
                ran_with=_ran_with(recording, result.stage),
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


def _changed_question(played: Played, recording: Recording, version: AgentVersion) -> str:
    if recording.turn.version_id == version.pk:
        return _("%(what)s Replay it until it differs, or with the live model.") % {
            "what": played.error
        }
    return _(
        "%(version)s asks otherwise: %(what)s Replay it until it differs, or with the live model."
    ) % {"version": str(version.label).capitalize(), "what": played.error}


def _ran_with(recording: Recording, stage: Stage) -> JsonObject:
    models = stage.models
    return {
        **recording.turn.ran_with,
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


def verdicts_of(replay: Replay) -> dict[str, int]:
    """Verdict → turns of it; what is not over yet is not counted."""
    from django.db.models import Count

    rows = replay.turns.exclude(verdict="").values_list("verdict").annotate(count=Count("pk"))
    return dict(rows.order_by("verdict"))
