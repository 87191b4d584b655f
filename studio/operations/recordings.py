"""Recorded turns read back whole: what each knew as it began, what it was answered, and what it decided.

A constant number of queries for any number of turns of one session.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from engine import prompts, trail
from engine.canonical import JsonObject
from engine.events import (
    BY_TOOL,
    ConfirmationAnsweredEvent,
    Event,
    MessageEvent,
    ModeEvent,
    RecordedEvent,
    Source,
    ToolFinishedEvent,
)
from engine.model.base import JudgingStyle
from engine.model.recorded import RecordedAnswer
from engine.prompts.transcript import WINDOW_TURNS
from engine.spec import Agent
from engine.tools.recorded import Record, RecordedCall
from engine.turn_record import TurnRecord
from studio import bridge
from studio.models import ModelCall, Session, Turn
from studio.operations.situations import REMEMBERED_KINDS

FORMAT = 1
"""Of Turn.ran_with; turns recorded before it was kept have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanWith:
    """What a turn ran with besides its version: Turn.ran_with, read."""

    variables: JsonObject
    customer: str
    judging: str
    writing: str
    batch_size: int
    judging_style: JudgingStyle
    connection: str = ""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recorded turn. `happened` in it, begun by what was `said`; `history` stood before that.

    It begins with the customer's words or buttons, or with the hand-over to the agent that lets it answer. Of the
    history, `outside` is what belongs to no turn: what people said and did while no turn ran.
    """

    turn: Turn
    agent: Agent
    record: TurnRecord
    said: tuple[RecordedEvent, ...]
    happened: tuple[RecordedEvent, ...]
    history: tuple[RecordedEvent, ...]
    outside: tuple[RecordedEvent, ...]
    answers: tuple[RecordedAnswer, ...]
    calls: tuple[RecordedCall, ...]  # in the order in which they ended
    choices: Mapping[str, trail.ChoicesOffered]
    ran_with: RanWith | None
    prompt_versions: Mapping[str, str] = field(
        default_factory=dict
    )  # question → as it was asked then

    @property
    def started_at(self) -> datetime:
        return self.turn.started_at or self.turn.created_at

    def obstacle(self) -> str:
        """Why this turn cannot be played from its record; empty where nothing speaks against it."""
        return obstacle_to(self.turn.state, self.turn.ran_with, self.prompt_versions)

    def unfinished(self) -> str:
        """Why there is nothing to compare with; empty where the turn came to an end of its own."""
        return _unfinished(self.turn.state)


def obstacle_to(state: str, ran_with: JsonObject, prompt_versions: Mapping[str, str]) -> str:
    """As Recording.obstacle, of a Turn's fields and of question → the version of the prompt that it was asked in."""
    if broken_off := _unfinished(state):
        return broken_off
    if read_ran_with(ran_with) is None:
        return _(
            "It was recorded in an older format, which kept neither the customer's variables nor the model's "
            "settings. Replay it with the live model."
        )
    if ran_with.get("redacted"):
        return _(
            "It was redacted when it was exported, so that it is not known word for word what was asked and "
            "answered. Replay it with the live model."
        )
    changed = [
        f"{question} ({then} → {now})"
        for question, then in sorted(prompt_versions.items())
        if (now := prompts.VERSIONS.get(question, "")) != then
    ]
    if changed:
        return _(
            "The studio asks in other words by now: %(changed)s. The record answers only what was asked then. "
            "Replay it with the live model."
        ) % {"changed": ", ".join(changed)}
    return ""


def _unfinished(state: str) -> str:
    if state in {Turn.State.FINISHED, Turn.State.FAILED}:
        return ""
    if state == Turn.State.STOPPED:
        return _("It was stopped before its end: there is no whole turn to compare with.")
    if state == Turn.State.SUPERSEDED:
        return _("A newer message took over before its end; the next turn answers both.")
    return _("It is not over yet: wait for its end.")


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What turns decided and what they were answered, by pk of the turn."""

    trails: Mapping[int, Sequence[trail.TrailEntry]]
    answers: Mapping[int, tuple[RecordedAnswer, ...]]
    prompt_versions: Mapping[int, Mapping[str, str]]


def decided_in(turns: Iterable[Turn]) -> Decided:
    """A constant number of queries for any number of turns of any sessions."""
    wanted = list(turns)
    answers, versions = _answers(wanted)
    return Decided(trails=bridge.read_trails(wanted), answers=answers, prompt_versions=versions)


def recordings_of(
    session: Session, turns: Iterable[Turn], decided: Decided | None = None
) -> list[Recording]:
    """These turns of the session's line, whose `version` is loaded, by number; turns without a version are left out.

    `decided` is what was read of them before, for many sessions at once.
    """
    wanted = sorted((t for t in turns if t.version is not None), key=lambda t: t.number)
    if not wanted:
        return []
    happened = _happened(session, wanted)
    decided = decided or decided_in(wanted)
    found = []
    for turn in wanted:
        assert turn.version is not None  # noqa: S101 - those without were left out
        agent = bridge.agent_spec(turn.version)
        own = tuple(happened.of(turn.number))
        history = happened.before(turn)
        entries = tuple(decided.trails[turn.pk])
        record = TurnRecord(
            number=turn.number,
            agent=agent,
            events=tuple(e.event for e in own),
            trail=entries,
            started_at=turn.started_at,
            ended_at=turn.finished_at,
            error=turn.error if turn.state == Turn.State.FAILED else "",
        )
        found.append(
            Recording(
                turn=turn,
                agent=agent,
                record=record,
                said=tuple(e for e in own if _begins(e.event)),
                happened=own,
                history=history,
                outside=tuple(e for e in history if e.offset in happened.loose),
                answers=decided.answers[turn.pk],
                calls=_calls(turn, record),
                choices={e.tool: e for e in entries if isinstance(e, trail.ChoicesOffered)},
                ran_with=read_ran_with(turn.ran_with),
                prompt_versions=decided.prompt_versions[turn.pk],
            )
        )
    return found


def read_ran_with(stored: JsonObject) -> RanWith | None:
    """None for what was recorded in no format that is known here."""
    if stored.get("format") != FORMAT:
        return None
    return RanWith(
        variables=stored["variables"],
        customer=stored["customer"],
        judging=stored["judging"],
        writing=stored["writing"],
        batch_size=stored["batch_size"],
        judging_style=JudgingStyle(stored["judging_style"]),
        connection=stored.get("connection", ""),
    )


class _Happened:
    """The remembered events of a line, in order, with when they were stored."""

    def __init__(
        self, events: Sequence[tuple[RecordedEvent, bool, datetime]], starts: dict[int, int]
    ) -> None:
        self._events = events
        self._starts = starts
        self.loose = frozenset(entry.offset for entry, loose, _at in events if loose)
        self._own: dict[int, list[RecordedEvent]] = defaultdict(list)
        for entry, loose, _at in events:
            if not loose:
                self._own[entry.turn].append(entry)

    def of(self, number: int) -> list[RecordedEvent]:
        return self._own[number]

    def before(self, turn: Turn) -> tuple[RecordedEvent, ...]:
        """What earlier turns did, and what belonged to none and was there as the turn began; the prompts' window."""
        begun = turn.started_at or turn.created_at
        first = self._starts.get(turn.number - WINDOW_TURNS, 0)
        return tuple(
            entry
            for entry, loose, at in self._events
            if entry.offset >= first
            and (
                entry.offset < turn.first_offset or at <= begun
                if loose
                else entry.turn < turn.number
            )
        )


def _happened(session: Session, turns: Sequence[Turn]) -> _Happened:
    last = turns[-1].number
    starts = dict(session.line.turns.filter(number__lte=last).values_list("number", "first_offset"))
    oldest = starts.get(turns[0].number - WINDOW_TURNS, 0)
    rows = list(
        session.line.events.filter(kind__in=REMEMBERED_KINDS, offset__gte=oldest)
        .order_by("offset")
        .values_list("offset", "turn__number", "kind", "source", "data", "created_at")
    )
    entries = bridge.recorded_events(row[:5] for row in rows)
    return _Happened(
        [
            (entry, row[1] is None, row[5])
            for entry, row in zip(entries, rows, strict=True)
            if row[1] is None or row[1] <= last
        ],
        starts,
    )


def _begins(event: Event) -> bool:
    """Did a person say or press this? What was read from the customer's words will be read again."""
    match event:
        case MessageEvent(source=source):
            return source is Source.CUSTOMER
        case ModeEvent(source=source):
            return source is Source.OPERATOR
        case ConfirmationAnsweredEvent(source=source, because=because):
            return source is Source.CUSTOMER and not because
        case _:
            return False


def _answers(
    turns: Sequence[Turn],
) -> tuple[dict[int, tuple[RecordedAnswer, ...]], dict[int, dict[str, str]]]:
    found: dict[int, list[RecordedAnswer]] = {turn.pk: [] for turn in turns}
    versions: dict[int, dict[str, str]] = {turn.pk: {} for turn in turns}
    rows = (
        ModelCall.objects.filter(turn__in=list(found))
        .order_by("pk")
        .values_list(
            "turn",
            "request_key",
            "answer_text",
            "model",
            "error",
            "probability",
            "question",
            "prompt_version",
        )
    )
    for turn, key, text, model, error, probability, question, version in rows:
        found[turn].append(
            RecordedAnswer(
                request_key=key, text=text, model=model, error=error, probability=probability
            )
        )
        versions[turn][question] = version
    return {pk: tuple(answers) for pk, answers in found.items()}, versions


def _calls(turn: Turn, record: TurnRecord) -> tuple[RecordedCall, ...]:
    """In the order of their ends, each with what was said to the customer since the one before."""
    known = {call.uid: call for call in record.calls}
    found, said = [], list[tuple[str, str]]()
    for event in record.events:
        if isinstance(event, MessageEvent) and event.model.startswith(BY_TOOL):
            said.append((event.text, event.model))
        if not isinstance(event, ToolFinishedEvent) or event.call not in known:
            continue
        call = known[event.call]
        place = call.served_from or f"{turn.session_id}/{turn.number}/{call.uid}"
        outcome = Record(place=place, result=call.result, error=call.error, said=tuple(said))
        found.append(
            RecordedCall(tool=call.tool, arguments=call.arguments, record=outcome, uid=call.uid)
        )
        said = []
    return tuple(found)


def turns_to_replay(session: Session) -> Any:
    """The query of the turns along the session's line, with what `recordings_of` reads of them."""
    return _with_versions(session.line.turns)


def turns_by_pk(keys: Iterable[int]) -> dict[int, Turn]:
    """Turns of any sessions, with what `recordings_of` reads of them."""
    return {turn.pk: turn for turn in _with_versions(Turn.objects.filter(pk__in=list(keys)))}


def _with_versions(turns: Any) -> Any:
    return turns.select_related("version").defer("version__spec", "checkpoint").order_by("number")
