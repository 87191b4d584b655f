"""Replays: recorded turns played again against a version, and what was different, turn by turn."""

import logging
import random
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Count, F, Min, Sum
from django.utils.translation import gettext as _

from engine.errors import SpecError
from studio.models import Agent as AgentRow
from studio.models import Cell, ModelConnection, Replay, ReplayedTurn, Session, Turn, Variant
from studio.operations import lanes
from studio.operations.recordings import (
    decided_in,
    recordings_of,
    turns_by_pk,
    turns_to_replay,
)
from studio.operations.rehearsals import NoLongerWantedError
from studio.operations.replay_player import Player
from studio.operations.versions import VersionUnknownError, version_named

log = logging.getLogger(__name__)

TOGETHER = 20  # turns that a lane takes at once from the record
LOOKED_AT = 50  # conversations that a lane chooses from


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
    turns: Collection[int] | None = None,
    by: str = "",
    enqueue: bool = True,
) -> Replay:
    """Ask for it; the sessions are of one agent, and of their turns only these (pks), if any are given.

    Whoever plays it without a worker does not `enqueue` it (lanes.play_here). Raises ReplayRefusedError.
    """
    sessions = list({session.pk: session for session in sessions}.values())
    agent = _agent_of(sessions)
    if model not in Replay.Model.values:
        raise ReplayRefusedError("model", _("The model is “recorded” or “live”."))
    if tools not in Replay.Tools.values:
        raise ReplayRefusedError("tools", _("Tools are “recorded”, “live” or “mock”."))
    if variant is not None:
        _check_variant(variant, sessions, tools)
    try:
        version = version_named(agent, against)
    except (VersionUnknownError, SpecError) as error:
        raise ReplayRefusedError("against", str(error)) from error
    cells = [cell for cell in _cells(sessions) if turns is None or cell.turn_id in turns]
    if not cells:
        raise ReplayRefusedError("session", _("Nothing was answered in it yet."))
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
            total=len(cells),
            started_by=by[:150],
        )
        for cell in cells:
            cell.replay = row
        ReplayedTurn.objects.bulk_create(cells, batch_size=500)
        if enqueue:
            lanes.start(CREW, row)
    return row


def _agent_of(sessions: Sequence[Session]) -> AgentRow:
    if not sessions:
        raise ReplayRefusedError("session", _("Choose the sessions to replay."))
    agents = {session.agent_id for session in sessions}
    if len(agents) > 1:
        raise ReplayRefusedError("session", _("Choose sessions of one agent."))
    return sessions[0].agent


def _check_variant(variant: Variant, sessions: Sequence[Session], tools: str) -> None:
    if [variant.session_id] != [session.pk for session in sessions]:
        raise ReplayRefusedError("variant", _("A variant is replayed with its own session alone."))
    if tools != Replay.Tools.RECORDED:
        message = _("A variant changes recorded results: replay it with the results of the record.")
        raise ReplayRefusedError("variant", message)


def _cells(sessions: Sequence[Session]) -> list[ReplayedTurn]:
    """A cell for each turn along the line of each session that ran on a version, one session after another."""
    found: dict[int, list[tuple[int, int]]] = {session.pk: [] for session in sessions}
    whole = [session.pk for session in sessions if not session.ancestry]
    rows = Turn.objects.filter(session__in=whole, version__isnull=False).order_by("number")
    for session_pk, pk, number in rows.values_list("session", "pk", "number"):
        found[session_pk].append((pk, number))
    for session in sessions:
        if session.ancestry:
            along = session.line.turns.filter(version__isnull=False).order_by("number")
            found[session.pk] = list(along.values_list("pk", "number"))
    return [
        ReplayedTurn(session_id=session_pk, turn_id=pk, number=number)
        for session_pk, turns in found.items()
        for pk, number in turns
    ]


class _Replays:
    kind: ClassVar[str] = "replay"
    batches: ClassVar[Any] = Replay.objects
    cells: ClassVar[Any] = ReplayedTurn.objects

    def cells_of(self, batch: Replay) -> Any:
        return ReplayedTurn.objects.filter(replay=batch)

    def next_keys(self, batch: Replay) -> list[int]:
        """All turns of a session where it runs free, one where a live model may be asked, else many of any session."""
        waiting = self.cells_of(batch).waiting()
        if batch.free_running:
            return self._next_conversation(batch, waiting)
        chance = random.randint(0, max(0, batch.total - 1))  # noqa: S311 - so that lanes do not meet
        first = self.cells_of(batch).aggregate(first=Min("pk"))["first"] or 0
        start = waiting.filter(pk__gte=first + chance).order_by("pk").first()
        start = start or waiting.order_by("pk").first()
        if start is None:
            return []
        onwards = waiting.filter(pk__gte=start.pk).order_by("pk")
        at_once = 1 if self.waits_long(batch) else TOGETHER
        return list(onwards.values_list("pk", flat=True)[:at_once])

    def _next_conversation(self, batch: Replay, waiting: Any) -> list[int]:
        """What is left of one session that no other lane is at: its turns are played one after another."""
        taken = self.cells_of(batch).filter(state=Cell.State.RUNNING).values("session")
        sessions = waiting.exclude(session__in=taken).values_list("session_id", flat=True)
        left = list(sessions.order_by("session_id").distinct()[:LOOKED_AT])
        if not left:
            return []
        chosen = random.choice(left)  # noqa: S311 - so that lanes do not meet
        of_session = waiting.filter(session=chosen).order_by("number")
        return list(of_session.values_list("pk", flat=True))

    def expected_tokens(self, batch: Replay, keys: Sequence[int]) -> int:
        if not self.waits_long(batch):
            return 0
        sums = ReplayedTurn.objects.filter(pk__in=keys).aggregate(
            tokens=Sum(F("turn__prompt_tokens") + F("turn__completion_tokens"))
        )
        return int(sums["tokens"] or 0)

    def waits_long(self, batch: Replay) -> bool:
        return not batch.is_from_record

    def closing(self, batch: Replay) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def play(self, batch: Replay, keys: Sequence[int], hand: lanes.Hand) -> None:
        rows = Replay.objects.select_related("version", "connection", "variant")
        replay = rows.defer("version__spec").get(pk=batch.pk)
        of_batch = self.cells_of(batch).select_related(
            "session__agent", "session__customer", "session__connection", "played"
        )
        cells = of_batch.filter(pk__in=keys).order_by("session", "number")
        try:
            if replay.free_running:
                _play_on(replay, list(cells), of_batch, hand)
            else:
                _play_each(replay, list(cells), hand)
        except NoLongerWantedError:
            log.info("Replay %s was stopped.", replay)


def _play_each(replay: Replay, cells: Sequence[ReplayedTurn], hand: lanes.Hand) -> None:
    """Turns of any sessions: what they decided is read at once, because most sessions are short."""
    turns = turns_by_pk(cell.turn_id for cell in cells)
    decided = decided_in(turns.values())
    for session, of_session in groupby(cells, key=lambda cell: cell.session):
        if hand.is_stopped():
            raise NoLongerWantedError
        own = list(of_session)
        recorded = recordings_of(session, [turns[cell.turn_id] for cell in own], decided)
        Player(replay, session, {r.turn.pk: r for r in recorded}, hand).play_each(own)


def _play_on(
    replay: Replay, cells: Sequence[ReplayedTurn], of_batch: Any, hand: lanes.Hand
) -> None:
    """Turns of one session, and those before them that are over."""
    session = cells[0].session
    earlier = of_batch.filter(session=session, number__lt=cells[-1].number)
    before = list(earlier.exclude(pk__in=[cell.pk for cell in cells]).order_by("number"))
    if any(cell.state != Cell.State.DONE for cell in before):
        return  # another lane is at the turns before
    wanted = [cell.turn_id for cell in (*before, *cells)]
    recorded = recordings_of(session, turns_to_replay(session).filter(pk__in=wanted))
    Player(replay, session, {r.turn.pk: r for r in recorded}, hand).play_on(cells, before)


CREW = _Replays()
lanes.register(CREW)


def rest_of(replay: Replay) -> Any:
    """The query of its turns that could not be replayed like this, and can be in another way."""
    ended = [Turn.State.FINISHED, Turn.State.FAILED]
    return replay.turns.filter(verdict=ReplayedTurn.Verdict.IMPOSSIBLE, turn__state__in=ended)


def replay_rest(
    replay: Replay,
    *,
    model: str,
    tools: str,
    until_it_differs: bool,
    by: str = "",
) -> Replay:
    """Another replay, of the turns that could not be replayed; of their whole sessions where it runs free."""
    rest = rest_of(replay)
    sessions = Session.objects.filter(pk__in=rest.values("session")).select_related("agent")
    return start_replay(
        list(sessions),
        against=replay.against,
        model=model,
        tools=tools if replay.variant is None else Replay.Tools.RECORDED,
        until_it_differs=until_it_differs,
        free_running=replay.free_running,
        connection=replay.connection,
        variant=replay.variant,
        cap=replay.cap,
        turns=None if replay.free_running else set(rest.values_list("turn", flat=True)),
        by=by,
    )


def verdicts_of(replay: Replay) -> dict[str, int]:
    """Verdict → turns of it; what is not over yet is not counted."""
    rows = replay.turns.exclude(verdict="").values_list("verdict").annotate(count=Count("pk"))
    return dict(rows.order_by("verdict"))
