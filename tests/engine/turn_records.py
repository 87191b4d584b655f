"""Records of one turn to compare: whole ones of a small library, and others that hypothesis makes up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind
from engine.events import (
    Answer,
    ConfirmationAnsweredEvent,
    Event,
    MessageEvent,
    Mode,
    ModeEvent,
    Source,
)
from engine.spec import Composition, RelationKind
from engine.trail import (
    Adherence,
    Argument,
    ArgumentSource,
    CallState,
    DecisionState,
    GuidelineMatch,
    LimitReached,
    MatchState,
    ModelCall,
    ReplySource,
    ToolCall,
    ToolDecision,
    TrailEntry,
)
from engine.turn_record import TurnRecord
from tests.engine.agents import agent, guideline, parameter, said_by, tool

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

LIBRARY = agent(
    guideline("fine", "asks about a fine", "explain it", tools=("find_fine",)),
    guideline("renew", "wants to renew", "renew it", tools=("renew", "find_fine")),
    guideline("polite", "", "be polite"),
    guideline("old", "asks for old books", "say no", enabled=False),
    guideline("angry", "is angry", "calm down"),
    tools=[
        tool("find_fine", parameter("account"), parameter("year", "integer", required=False)),
        tool("renew", parameter("loan"), consequential=True),
    ],
)


def matched(uid: str, state: MatchState = MatchState.MATCHED, **options: Any) -> GuidelineMatch:
    given: JsonObject = {"because": f"{uid} is {state}.", "iteration": 1, "model_call": "m1"}
    return GuidelineMatch(
        guideline=uid, state=state, started_at=NOON, ended_at=NOON, **(given | options)
    )


def argument(name: str, value: Any, **options: Any) -> Argument:
    given: JsonObject = {"source": ArgumentSource.CUSTOMER, "evidence": "words", "verified": True}
    return Argument(name=name, value=value, **(given | options))


def decided(
    uid: str,
    name: str,
    *arguments: Argument,
    state: DecisionState = DecisionState.NEEDS_TO_RUN,
    **options: Any,
) -> ToolDecision:
    given: JsonObject = {"because": "It is needed.", "iteration": 1, "model_call": "m2"}
    return ToolDecision(
        guideline=uid,
        tool=name,
        state=state,
        arguments=arguments,
        started_at=NOON,
        ended_at=NOON,
        **(given | options),
    )


def called(uid: str, name: str, arguments: JsonObject, data: Any = 1, **options: Any) -> ToolCall:
    given: JsonObject = {
        "state": CallState.DONE,
        "iteration": 1,
        "guidelines": ("fine",),
        "result": {"data": data, "metadata": {"took": 3}},
        "ended_at": NOON,
    }
    return ToolCall(uid=uid, tool=name, arguments=arguments, started_at=NOON, **(given | options))


def model_call(uid: str = "m1") -> ModelCall:
    return ModelCall(
        uid=uid,
        question="MatchGuidelines",
        model="any",
        prompt_version="1",
        request_key=uid,
        messages=(),
        schema={},
        iteration=1,
        attempt=1,
        started_at=NOON,
        ended_at=NOON,
    )


def record(*entries: TrailEntry | Event, **options: Any) -> TurnRecord:
    """A turn of the library; entries of the trail and events in any mixture, text is what the agent replies."""
    given: JsonObject = {"agent": LIBRARY, "number": 2, "started_at": NOON, "ended_at": NOON}
    return TurnRecord(
        trail=tuple(e for e in entries if isinstance(e, TrailEntry)),
        events=tuple(e for e in entries if isinstance(e, Event)),
        **(given | options),
    )


def replied(text: str = "Your fine is 3 euros.") -> MessageEvent:
    return MessageEvent(source=Source.AGENT, text=text, model="any")


FINE = argument("account", "A-1")
YEAR = argument("year", 2026, source=ArgumentSource.DEFAULT, evidence="")

WHOLE = record(
    said_by(Source.CUSTOMER, "Yes, renew it. And what about the fine?"),
    ConfirmationAnsweredEvent(call="c1", tool="renew", answer=Answer.CONFIRMED, because="“Yes”"),
    replied(),
    decided("renew", "renew", argument("loan", "L-7"), call="c1", iteration=0),
    called("c1", "renew", {"loan": "L-7"}, "renewed", iteration=0, guidelines=("renew",)),
    model_call(),
    matched("polite", because="It has no condition, so it always applies."),
    matched("old", MatchState.NOT_EVALUATED, because="It is switched off."),
    matched("fine", score=0.9),
    matched("renew"),
    matched("angry", MatchState.DROPPED, dropped_by="polite", relation=RelationKind.ALTERNATIVE_TO),
    model_call("m2"),
    decided("fine", "find_fine", FINE, YEAR, call="c2"),
    decided("renew", "find_fine", FINE, YEAR, call="c2"),
    decided("fine", "find_fine", argument("account", "A-2"), YEAR, call="c3"),
    called("c2", "find_fine", {"account": "A-1"}, {"fine": 3, "day": "today"}),
    called(
        "c3",
        "find_fine",
        {"account": "A-2"},
        state=CallState.FAILED,
        result=None,
        error=ToolError(kind=ToolErrorKind.TIMEOUT, public="it took too long", detail="5 s"),
    ),
    ReplySource(composition=Composition.FLUID),
    Adherence(guideline="fine", follows=True, note="It does.", checked=True),
    Adherence(guideline="polite", follows=True),
)
"""A confirmed call, two parallel ones, a dropped and a switched off guideline, a reply that was checked."""


def without(turn: TurnRecord, *entries: TrailEntry | Event) -> TurnRecord:
    return replace(
        turn,
        trail=tuple(e for e in turn.trail if e not in entries),
        events=tuple(e for e in turn.events if e not in entries),
    )


def with_more(turn: TurnRecord, *entries: TrailEntry | Event) -> TurnRecord:
    more = record(*entries)
    return replace(turn, trail=turn.trail + more.trail, events=turn.events + more.events)


def with_other(turn: TurnRecord, kind: type[Any], number: int = 0, **changes: Any) -> TurnRecord:
    """The record with other values in its n-th entry or event of this kind."""
    entry = [e for e in (*turn.trail, *turn.events) if isinstance(e, kind)][number]
    other = replace(entry, **changes)
    return replace(
        turn,
        trail=tuple(other if e is entry else e for e in turn.trail),
        events=tuple(other if e is entry else e for e in turn.events),
    )


# --- played again ------------------------------------------------------------------------------------------------


def played_again(turn: TurnRecord) -> TurnRecord:
    """The same turn, as another run records it: other uids, times, reasons and scores, numbers with a fraction of 0."""
    uids = {call.uid: f"again{number:03}" for number, call in enumerate(turn.calls)}
    uids |= {
        d.call: f"else{number:03}"
        for number, d in enumerate(turn.decisions)
        if d.call and d.call not in uids
    }

    def renamed(uid: str) -> str:
        call, mark, number = uid.rpartition("-") if "-" in uid else uid.rpartition(":")
        return f"{uids[call]}{mark}{number}" if call in uids else uid

    def again(entry: TrailEntry) -> TrailEntry:
        later = {"started_at": NOON + timedelta(days=1), "ended_at": NOON + timedelta(days=2)}
        match entry:
            case GuidelineMatch():
                return replace(
                    entry,
                    guideline=renamed(entry.guideline),
                    because="Otherwise put.",
                    score=0.5,
                    model_call="other",
                    **later,
                )
            case ToolDecision():
                return replace(
                    entry,
                    call=uids.get(entry.call, ""),
                    because="Otherwise put.",
                    model_call="other",
                    arguments=tuple(
                        replace(a, value=_with_fractions(a.value), evidence="other words", offset=9)
                        for a in entry.arguments
                    ),
                    **later,
                )
            case ToolCall():
                result = entry.result and entry.result | {"metadata": {"took": 5}}
                return replace(
                    entry,
                    uid=uids[entry.uid],
                    arguments=_with_fractions(entry.arguments),
                    result=_with_fractions(result),
                    error=entry.error and replace(entry.error, detail="other"),
                    log="printed",
                    **later,
                )
            case ModelCall():
                return replace(entry, uid="other", request_key="other", **later)
            case ReplySource():
                names = tuple(renamed(uid) for uid in entry.responses)
                return replace(entry, responses=names, because="Otherwise put.")
            case Adherence():
                return replace(entry, guideline=renamed(entry.guideline), note="Otherwise put.")
            case LimitReached():
                return replace(entry, detail="Otherwise put.")
            case _:
                return entry

    return replace(
        turn,
        trail=tuple(again(entry) for entry in turn.trail),
        events=tuple(
            replace(
                e, call=uids.get(e.call, f"other-{e.call}"), because="Otherwise put.", also="More."
            )
            if isinstance(e, ConfirmationAnsweredEvent)
            else e
            for e in turn.events
        ),
        number=7,
        started_at=NOON + timedelta(days=1),
        ended_at=NOON + timedelta(days=2),
        cost=0.5,
    )


def _with_fractions(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case dict():
            return {key: _with_fractions(item) for key, item in reversed(value.items())}
        case list():
            return [_with_fractions(item) for item in value]
        case _:
            return value


# --- made up -----------------------------------------------------------------------------------------------------

_VALUES = st.sampled_from([1, 2, 2.5, True, None, "A-1", "A-2", ["x", 1], {"deep": [1]}])
_NAMES = [tool.name for tool in LIBRARY.tools]
_OWN = [guideline.uid for guideline in LIBRARY.guidelines]


@st.composite
def records(draw: st.DrawFn) -> TurnRecord:
    """Any mixture of what a turn may leave behind, though not always one that the engine would make."""
    agents = [LIBRARY, replace(LIBRARY, guidelines=LIBRARY.guidelines[1:][::-1])]
    found: list[TrailEntry | Event] = []
    for iteration in range(draw(st.integers(0, 2)) + 1):
        found += [draw(_matches(uid, iteration)) for uid in _OWN if draw(st.booleans())]
        for number in range(draw(st.integers(0, 4))):
            found += draw(_decisions(f"call{iteration}{number}", iteration))
    found += draw(st.lists(st.sampled_from(_ENDINGS), max_size=5))
    found += [replied(text) for text in draw(st.lists(st.sampled_from(["Yes.", "No."])))]
    errors = draw(st.sampled_from(["", "No answer.", "Refused."]))
    return record(*found, agent=draw(st.sampled_from(agents)), error=errors)


@st.composite
def _matches(draw: st.DrawFn, uid: str, iteration: int) -> GuidelineMatch:
    return matched(
        uid,
        draw(st.sampled_from(MatchState)),
        iteration=iteration,
        dropped_by=draw(st.sampled_from(["", "polite"])),
        added_by=draw(st.sampled_from(["", "fine"])),
        relation=draw(st.sampled_from([None, RelationKind.ENTAILS])),
    )


@st.composite
def _decisions(draw: st.DrawFn, uid: str, iteration: int) -> list[TrailEntry]:
    """About one call, and the call with what its result brought, where it is made."""
    name = draw(st.sampled_from(_NAMES))
    state = draw(st.sampled_from(DecisionState))
    values: JsonObject = draw(st.dictionaries(st.sampled_from(["account", "year"]), _VALUES))
    arguments = [
        argument(
            key, value, source=draw(st.sampled_from(ArgumentSource)), verified=draw(st.booleans())
        )
        for key, value in values.items()
    ]
    askers = draw(st.lists(st.sampled_from(["fine", "renew"]), min_size=1, unique=True))
    runs = state is DecisionState.NEEDS_TO_RUN
    found: list[TrailEntry] = [
        decided(
            asker,
            name,
            *arguments,
            state=state,
            call=uid if runs else "",
            missing=tuple(draw(st.sampled_from([[], ["account"]]))),
            iteration=iteration,
        )
        for asker in askers
    ]
    if not runs or not draw(st.booleans()):
        return found
    call = called(uid, name, values, draw(_VALUES), iteration=iteration, guidelines=tuple(askers))
    match draw(st.sampled_from(["done", "failed", "brings"])):
        case "failed":
            error = ToolError(kind=draw(st.sampled_from(ToolErrorKind)), public="it failed")
            call = replace(call, state=CallState.FAILED, result=None, error=error)
        case "brings":
            brought = {"condition": "", "action": "Say so.", "criticality": "medium"}
            more = {"guidelines": [brought], "canned_responses": ["It is so."]}
            call = replace(call, result={"data": None, "metadata": {}, **more})
            found.append(matched(f"{uid}-1", iteration=iteration))
            found.append(ReplySource(composition=Composition.STRICT, responses=(f"{uid}:1",)))
    return [*found, call]


_ENDINGS: list[TrailEntry | Event] = [
    LimitReached(limit="max_calls", detail="20 at most"),
    LimitReached(limit="max_iterations", detail="3 at most"),
    ModeEvent(mode=Mode.MANUAL, tool="renew"),
    ReplySource(composition=Composition.FLUID),
    ReplySource(composition=Composition.STRICT, responses=("r1",)),
    Adherence(guideline="fine", follows=True, checked=True),
    Adherence(guideline="fine", follows=False, checked=True, attempt=2),
    Adherence(guideline="renew", follows=False),
    ConfirmationAnsweredEvent(call="call00", tool="renew", answer=Answer.CONFIRMED),
    ConfirmationAnsweredEvent(call="call01", tool="renew", answer=Answer.DECLINED),
    ConfirmationAnsweredEvent(call="earlier", tool="renew", answer=Answer.CHANGED),
]
