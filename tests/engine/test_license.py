"""No guideline, no call: over generated agents and conversations, whatever the model answers.

Chance comes from a seed, so a failure is found again; hypothesis varies the seeds and the agents.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from engine.arguments import check_arguments
from engine.canonical import canonical_json
from engine.errors import ModelError, ToolErrorKind
from engine.events import (
    Answer,
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    MessageEvent,
    RecordedEvent,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
    event_adapter,
)
from engine.outbox import Emission
from engine.spec import Agent, Confirm, Guideline, ParameterSource, Tool, ToolParameter
from engine.state import Checkpoint, Limits, Step, TurnState
from engine.testing import ScriptedTools, entries, scripted_kit
from engine.trail import (
    ArgumentSource,
    CallState,
    DecisionState,
    GuidelineMatch,
    MatchState,
    ModelCall,
    ToolCall,
    ToolDecision,
    ToolInsight,
)
from engine.turn import run_turn
from tests.engine.agents import history, said_by
from tests.engine.sessions import HOSTILE, AnsweringModel, Generated, checked, play_to_its_end

TOOL_NAMES = ("balance", "convert", "transfer", "hours", "lock")
# What authors and customers write comes in through the studio's forms, which take neither NUL nor half characters.
TEXTS = (
    st.text(max_size=30)
    | st.sampled_from(["", "asks for the balance", "transfer 50 to Ann", "2.5 or 1500?", *HOSTILE])
).map(lambda text: text.replace("\x00", "").encode(errors="ignore").decode())
SCHEMAS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "enum": ["EUR", "so", "G1"]},
        {"type": "integer", "minimum": 1},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [{"type": "number"}, {"type": "null"}]},
        {
            "type": "object",
            "properties": {"iban": {"type": "string"}, "amount": {"type": "number"}},
            "required": ["iban", "amount"],
            "additionalProperties": False,
        },
    ]
)
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "string": ("EUR",),
    "integer": (5,),
    "number": (2.5, 5.0),
    "boolean": (True, False),
    "array": (["a"],),
}
NAMES = st.lists(
    st.sampled_from((*TOOL_NAMES, "unknown_tool")), unique=True, min_size=1, max_size=4
).map(tuple)


@st.composite
def agents(draw: st.DrawFn) -> Agent:
    """Agents with shared, switched-off, unconditional and re-evaluated guidelines and tools of every sort."""
    tools = tuple(
        Tool(
            uid=f"t-{name}",
            name=name,
            description=draw(TEXTS),
            parameters=tuple(
                ToolParameter(
                    name=f"p{number}",
                    schema=schema,
                    required=draw(st.booleans()),
                    default=draw(
                        st.sampled_from([None, *_DEFAULTS.get(str(schema.get("type")), ())])
                    ),
                    source=draw(st.sampled_from(ParameterSource)),
                    hidden=draw(st.booleans()),
                    precedence=draw(st.sampled_from([None, 1, 2])),
                )
                for number, schema in enumerate(draw(st.lists(SCHEMAS, max_size=2)))
            ),
            consequential=draw(st.booleans()),
            confirm=draw(st.sampled_from(Confirm)),
            timeout=0.02,
        )
        for name in TOOL_NAMES[: draw(st.sampled_from([5, 3, 1, 0]))]
    )
    guidelines = tuple(
        Guideline(
            uid=f"g-{number}",
            condition=draw(TEXTS),
            action=draw(TEXTS),
            enabled=draw(st.sampled_from([True, True, True, False])),
            tools=draw(NAMES),
            reevaluate_after=draw(NAMES),
        )
        for number in range(draw(st.sampled_from([5, 3, 2, 1, 0])))
    )
    return Agent(
        slug="a",
        name="A",
        guidelines=guidelines,
        tools=tools,
        overlaps=draw(st.sampled_from([(), (TOOL_NAMES[:2],), (TOOL_NAMES[:3], TOOL_NAMES[2:])])),
        max_iterations=draw(st.integers(1, 4)),
    )


def some_tools(seed: int) -> ScriptedTools:
    """Tools that work, fail, hang, speak, and return what they must not."""

    async def hangs(_arguments: Any, _context: Any) -> None:
        await asyncio.sleep(5)

    async def speaks(_arguments: Any, context: Any) -> Any:
        await context.emit_message("One moment")
        return {"rates": [1.1, {"EUR": 2}], "ok": True}

    def raises(_arguments: Any, _context: Any) -> None:
        raise ValueError(f"broken {seed}")

    behaviours = [lambda a, _c: a, speaks, raises, lambda _a, _c: float("nan"), hangs]
    return ScriptedTools(
        {name: behaviours[(seed + n) % 23 % 5] for n, name in enumerate(TOOL_NAMES)}
    )


@dataclass
class Word:
    """The customer's word on calls: what was asked about, and the last answer to it."""

    asked: dict[str, ConfirmationAskedEvent] = field(default_factory=dict)
    answer: dict[str, Answer] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)  # in turns before

    def hear(self, item: Any) -> None:
        match item:
            case ConfirmationAskedEvent():
                assert item.call not in self.asked
                self.asked[item.call] = item
            case ConfirmationAnsweredEvent():
                assert item.call in self.asked
                self.answer[item.call] = item.answer
            case _:
                pass

    def allows(self, call: ToolCall, tool: Tool, decision: ToolDecision) -> bool:
        """Was this very call confirmed, or was there nothing to confirm?"""
        if call.uid in self.asked:
            exactly = call.arguments == self.asked[call.uid].arguments
            return exactly and self.answer.get(call.uid) is Answer.CONFIRMED
        return tool.confirm is Confirm.INFERRED and all(a.verified for a in decision.arguments)


def license_of(
    emitted: Iterable[Emission], spec: Agent, *, resumed: bool = False, word: Word | None = None
) -> None:
    """Walks through what a turn yielded; at every point only licensed things may have happened."""
    word = word or Word()
    matched: set[str] = set()
    decided: dict[str, ToolDecision] = {}
    asked: set[str] = set()
    started: set[str] = set()
    for item in emitted:
        word.hear(item)
        match item:
            case GuidelineMatch(state=MatchState.MATCHED):
                matched.add(item.guideline)
            case ModelCall() if item.used:
                asked.add(item.uid)
            case ToolDecision():
                assert item.guideline in matched
                assert item.tool in spec.guideline_by_uid[item.guideline].tools
                assert not item.model_call or item.model_call in asked
                if item.state is DecisionState.NEEDS_TO_RUN:
                    decided[item.call] = item
            case ToolCall():
                a_licensed_call(item, spec, matched, decided, word)
            case ToolStartedEvent():
                assert item.call in decided
                assert item.call not in started
                started.add(item.call)
            case ToolFinishedEvent():
                lost = item.error and item.error.kind is ToolErrorKind.UNKNOWN_OUTCOME
                before = word.begun if lost else set()
                assert item.call in (decided if resumed else started) or item.call in before
                assert item.error is None or item.error.detail == ""
            case _:
                pass


def a_licensed_call(
    call: ToolCall, spec: Agent, matched: set[str], decided: dict[str, ToolDecision], word: Word
) -> None:
    decision = decided[call.uid]
    tool = spec.tool_by_name[call.tool]
    assert call.guidelines
    assert set(call.guidelines) <= matched
    for uid in call.guidelines:
        assert call.tool in spec.guideline_by_uid[uid].tools
        assert spec.guideline_by_uid[uid].enabled
    by_name = {a.name: a for a in decision.arguments}
    found = check_arguments(tool, call.arguments)
    assert found.ready
    assert found.values == call.arguments
    assert not found.unknown
    # What is on record is what the tool works with: what it was sent, and its own defaults for the rest.
    assert {name: a.value for name, a in by_name.items()} == found.defaults | call.arguments
    if tool.consequential:
        assert word.allows(call, tool, decision)
    for parameter in tool.parameters:
        if parameter.source is ParameterSource.CUSTOMER and parameter.name in call.arguments:
            argument = by_name[parameter.name]
            assert (argument.source, argument.verified) == (ArgumentSource.CUSTOMER, True)


def only_what_was_decided_ran(
    emitted: list[Emission], tools: ScriptedTools, error: ModelError | None
) -> None:
    calls = {call.uid: call for call in entries(emitted, ToolCall)}
    ran = sorted(canonical_json([name, arguments]) for name, arguments in tools.called)
    recorded = sorted(canonical_json([c.tool, c.arguments]) for c in calls.values())
    assert ran == recorded
    ends = {CallState.DONE, CallState.FAILED, CallState.UNKNOWN, CallState.CANCELLED}
    assert all(call.state in ends for call in calls.values())
    needed = {
        d.call for d in entries(emitted, ToolDecision) if d.state is DecisionState.NEEDS_TO_RUN
    }
    assert set(calls) <= needed
    if error is None:
        assert set(calls) == needed


def no_change_was_made_twice(emitted: list[Emission], spec: Agent) -> None:
    changes = [
        canonical_json(
            [
                c.tool,
                check_arguments(spec.tool_by_name[c.tool], c.arguments).defaults | c.arguments,
            ]
        )
        for c in entries(emitted, ToolCall)
        if c.state is CallState.STARTED and spec.tool_by_name[c.tool].consequential
    ]
    assert len(changes) == len(set(changes))


def every_guideline_has_a_state(emitted: list[Emission], spec: Agent) -> None:
    states = {m.guideline: m.state for m in entries(emitted, GuidelineMatch)}
    assert states.keys() == {g.uid for g in spec.guidelines}
    for guideline in spec.guidelines:
        if not guideline.enabled:
            assert states[guideline.uid] is MatchState.NOT_EVALUATED
        elif guideline.always:
            assert states[guideline.uid] is MatchState.MATCHED


_adapter = lru_cache(maxsize=None)(TypeAdapter)


def everything_can_be_stored(emitted: list[Emission]) -> None:
    for item in emitted:
        value = _adapter(type(item)).dump_python(item, mode="json")
        text = json.dumps(value, allow_nan=False)
        if not isinstance(item, ModelCall):
            assert "\\u0000" not in text.replace("\\\\", "")
    kinds = (*KEPT, StatusEvent)
    for found in entries(emitted, kinds):  # type: ignore[arg-type]
        again = event_adapter().validate_json(event_adapter().dump_json(found))
        assert again == found


KEPT = (
    MessageEvent,
    ToolStartedEvent,
    ToolFinishedEvent,
    ConfirmationAskedEvent,
    ConfirmationAnsweredEvent,
    BriefingEvent,
)


async def play_one(
    spec: Agent, text: str, model: AnsweringModel, seed: int, *, attempts: int
) -> tuple[list[Emission], ModelError | None]:
    """A turn, with everything that must be true of any turn asserted."""
    tools = some_tools(seed)
    state = TurnState(
        agent=spec,
        turn=1,
        history=history(text),
        limits=Limits(max_calls=6, likely_tools=seed % 3),
    )
    emitted, error = await play_to_its_end(state, scripted_kit(checked(model, attempts), tools))
    license_of(emitted, spec)
    only_what_was_decided_ran(emitted, tools, error)
    no_change_was_made_twice(emitted, spec)
    everything_can_be_stored(emitted)
    if error is None:
        assert isinstance(emitted[-1], Checkpoint)
        assert emitted[-1].step is Step.FINISHED
        replies = [m for m in entries(emitted, MessageEvent) if m.source is Source.AGENT]
        assert replies[-1].text
        every_guideline_has_a_state(emitted, spec)
    else:
        assert not any(item == Checkpoint(step=Step.FINISHED) for item in emitted)
        failed = [c for c in entries(emitted, ModelCall) if c.error]
        silent = "judged none" in str(error) or "empty reply" in str(error)
        assert failed or silent
    return emitted, error


SLOW = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(spec=agents(), text=TEXTS, seed=st.integers(0, 10**6), size=st.sampled_from([1, 3, 12]))
@SLOW
async def test_with_answers_of_the_right_schema_nothing_runs_without_its_guideline(
    spec: Agent, text: str, seed: int, size: int
) -> None:
    words = [text, "EUR", *text.split()[:4], *(tool.name for tool in spec.tools)]
    model = AnsweringModel(Generated(seed, words), batch_size=size)
    emitted, error = await play_one(spec, text, model, seed, attempts=1)
    assert error is None or "judged none" in str(error)
    event(f"calls: {bool(entries(emitted, ToolCall))}")


@given(spec=agents(), text=TEXTS, seed=st.integers(0, 10**6), size=st.sampled_from([1, 3, 12]))
@SLOW
async def test_with_any_answers_at_all_nothing_runs_without_its_guideline(
    spec: Agent, text: str, seed: int, size: int
) -> None:
    words = [text, "EUR", *text.split()[:4], *(tool.name for tool in spec.tools)]
    model = AnsweringModel(Generated(seed, words).anything, batch_size=size)
    emitted, _error = await play_one(spec, text, model, seed, attempts=3)
    event(f"calls: {bool(entries(emitted, ToolCall))}")


@given(
    spec=agents(),
    text=TEXTS,
    seed=st.integers(0, 10**6),
    cut=st.integers(1, 40),
    delay=st.booleans(),
)
@SLOW
async def test_a_turn_that_is_interrupted_anywhere_and_goes_on_keeps_to_the_same_rules(
    spec: Agent, text: str, seed: int, cut: int, delay: bool
) -> None:
    tools = some_tools(seed)
    model = checked(AnsweringModel(Generated(seed, [text, "Ann"])), attempts=1)
    first = TurnState(agent=spec, turn=1, history=history(text), limits=Limits(likely_tools=0))
    turn = run_turn(first, scripted_kit(model, tools))
    on_record: list[Emission] = []
    with suppress(ModelError):
        async for item in turn:
            on_record.append(item)
            if delay:
                await asyncio.sleep(0)
            if len(on_record) == cut:
                break
    await turn.aclose()  # type: ignore[attr-defined]

    state = resumed(spec, text, on_record)
    emitted, error = await play_to_its_end(state, scripted_kit(model, tools))

    event(f"went on from {state.checkpoint.step}")
    whole = [*on_record, *emitted]
    license_of_resumed(whole, spec)
    ran = [
        canonical_json([name, arguments])
        for name, arguments in tools.called
        if spec.tool_by_name[name].consequential
    ]
    assert len(ran) == len(set(ran))
    if error is None:
        every_guideline_has_a_state(whole, spec)
        told = [e.call for e in entries(whole, ToolFinishedEvent)]
        assert len(told) == len(set(told))
        ended = {c.uid for c in entries(whole, ToolCall) if c.state in _ENDS}
        assert set(told) == ended


_ENDS = {CallState.DONE, CallState.FAILED, CallState.UNKNOWN}


def resumed(spec: Agent, text: str, on_record: list[Emission]) -> TurnState:
    """The state that the studio builds from what is on record."""
    past = history(text, *entries(on_record, KEPT))  # type: ignore[arg-type]
    return taken_up(spec, 1, past, on_record)


def taken_up(
    spec: Agent, turn: int, past: tuple[RecordedEvent, ...], on_record: list[Emission]
) -> TurnState:
    state = TurnState(agent=spec, turn=turn, history=past, limits=Limits(likely_tools=0))
    reached = [c for c in entries(on_record, Checkpoint) if c.step is not Step.STOPPED]
    if reached:  # without any point reached the studio starts afresh
        state.checkpoint = reached[-1]
        trail = (GuidelineMatch, ToolDecision, ToolCall, ToolInsight)
        state.recall(entries(on_record, trail))  # type: ignore[arg-type]
    return state


def license_of_resumed(whole: list[Emission], spec: Agent, word: Word | None = None) -> None:
    """As `license_of`; only that a call which changes nothing may have been started twice."""
    seen: set[str] = set()
    once: list[Emission] = []
    for item in whole:
        if isinstance(item, ToolStartedEvent):
            if item.call in seen:
                assert not spec.tool_by_name[item.tool].consequential
                continue
            seen.add(item.call)
        once.append(item)
    license_of(once, spec, resumed=True, word=word)


class Confirmed:
    """A session of several turns in which every change is asked about, some by words, some by buttons."""

    def __init__(self, spec: Agent, seed: int) -> None:
        self.spec = spec
        self.random = Random(seed)
        self.tools = some_tools(seed)
        self.history: tuple[RecordedEvent, ...] = ()
        self.word = Word()
        self.turn = 0
        self.started: list[str] = []

    def keep(self, *events: Any) -> None:
        for item in events:
            place = len(self.history) + 1
            self.history += (RecordedEvent(offset=place, turn=self.turn, event=item),)

    def begin(self, text: str) -> None:
        """A new turn: with words, and perhaps with buttons for what waits, for what is over, and for nothing."""
        self.turn += 1
        if self.random.random() < 0.8:
            self.keep(said_by(Source.CUSTOMER, text))
        for call, asked in self.word.asked.items():
            if self.random.random() < 0.3:
                answer = self.random.choice([Answer.CONFIRMED, Answer.DECLINED])
                button = ConfirmationAnsweredEvent(call=call, tool=asked.tool, answer=answer)
                self.word.hear(button)
                self.keep(button)

    def take(self, emitted: list[Emission], *, resumed: bool = False) -> None:
        """What a turn yielded is licensed, started nothing twice, and is kept."""
        license_of_resumed(emitted, self.spec, self.word)
        changes = [
            item.call
            for item in entries(emitted, ToolStartedEvent)
            if self.spec.tool_by_name[item.tool].consequential
        ]
        assert not set(changes) & set(self.started)
        assert len(changes) == len(set(changes))
        self.started += changes
        self.word.begun |= set(changes)
        if not resumed:
            self.keep(*entries(emitted, KEPT))  # type: ignore[arg-type]


WORDS = ("so", "Ann", "EUR", "yes", "no")


def all_of_it_changes_something(spec: Agent) -> Agent:
    """The agent with nothing but consequential tools, and guidelines that are on and have some of them."""
    names = tuple(tool.name for tool in spec.tools)
    return replace(
        spec,
        tools=tuple(replace(tool, consequential=True) for tool in spec.tools),
        guidelines=tuple(
            replace(
                guideline,
                enabled=True,
                condition=guideline.condition if number % 2 else "",
                tools=tuple(name for name in guideline.tools if name in names) or names[:1],
            )
            for number, guideline in enumerate(spec.guidelines)
        ),
    )


CHANGING = agents().map(all_of_it_changes_something)
SESSIONS = settings(SLOW, max_examples=150)


@given(spec=CHANGING, text=TEXTS, seed=st.integers(0, 10**6), wild=st.booleans())
@SESSIONS
async def test_over_several_turns_no_change_is_made_unconfirmed_or_twice(
    spec: Agent, text: str, seed: int, wild: bool
) -> None:
    session = Confirmed(spec, seed)
    generated = Generated(seed, (*WORDS, text))
    model = AnsweringModel(generated.anything if wild else generated)
    for _ in range(3):
        session.begin(text)
        state = TurnState(agent=spec, turn=session.turn, history=session.history)
        emitted, error = await play_to_its_end(
            state, scripted_kit(checked(model, attempts=3), session.tools)
        )
        session.take(emitted)
        everything_can_be_stored(emitted)
        if error is None:
            assert emitted[-1].step is Step.FINISHED  # type: ignore[union-attr]
            every_guideline_has_a_state(emitted, spec)
    event(f"asked: {bool(session.word.asked)}")
    event(f"confirmed and ran: {bool(set(session.started) & set(session.word.asked))}")


@given(
    spec=CHANGING,
    text=TEXTS,
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.integers(1, 40), max_size=3),
)
@SESSIONS
async def test_turns_that_are_interrupted_anywhere_make_no_change_unconfirmed_or_twice(
    spec: Agent, text: str, seed: int, cuts: list[int]
) -> None:
    """Each turn is cut once, and goes on or is given up for the next one."""
    session = Confirmed(spec, seed)
    model = checked(AnsweringModel(Generated(seed, (*WORDS, text))), attempts=3)
    for cut in [*cuts, 1000]:
        session.begin(text)
        past = session.history
        state = TurnState(
            agent=spec, turn=session.turn, history=past, limits=Limits(likely_tools=0)
        )
        on_record: list[Emission] = []
        turn = run_turn(state, scripted_kit(model, session.tools))
        with suppress(ModelError):
            async for item in turn:
                on_record.append(item)
                if len(on_record) == cut:
                    break
        await turn.aclose()  # type: ignore[attr-defined]
        session.keep(*entries(on_record, KEPT))  # type: ignore[arg-type]
        emitted: list[Emission] = []
        if seed % 3:
            again = taken_up(spec, session.turn, session.history, on_record)
            emitted, _error = await play_to_its_end(again, scripted_kit(model, session.tools))
            session.keep(*entries(emitted, KEPT))  # type: ignore[arg-type]
        session.take([*on_record, *emitted], resumed=True)
    ran = [
        name for name, _arguments in session.tools.called if spec.tool_by_name[name].consequential
    ]
    assert len(ran) <= len(session.started)


@pytest.mark.parametrize("wild", [False, True])
async def test_the_generated_turns_do_reach_what_they_are_to_prove(wild: bool) -> None:
    """The properties above would hold of turns in which nothing happens: most of these run tools."""
    parameters = (
        ToolParameter(name="p0", schema={"type": "string"}),
        ToolParameter(name="p1", schema={"type": "number"}, required=False),
    )
    tools = tuple(
        Tool(
            uid=name,
            name=name,
            description="",
            parameters=parameters[: number % 3],
            consequential=number % 2 == 0,
            confirm=Confirm.INFERRED if number else Confirm.ALWAYS,
            timeout=0.01,
        )
        for number, name in enumerate(TOOL_NAMES)
    )
    guidelines = tuple(
        Guideline(
            uid=f"g-{n}",
            condition=f"asks for {name}",
            tools=(name, TOOL_NAMES[n - 1]),
            reevaluate_after=(TOOL_NAMES[n - 2],),
        )
        for n, name in enumerate(TOOL_NAMES)
    )
    spec = Agent(slug="a", name="A", guidelines=guidelines, tools=tools)
    ran = finished = failed = denied = unused = again = 0
    for seed in range(50):
        generated = Generated(seed, ["so", "Ann"])
        model = AnsweringModel(generated.anything if wild else generated)
        emitted, error = await play_one(
            spec, "asks for balance and convert, so Ann 50", model, seed, attempts=2
        )
        ran += bool(entries(emitted, ToolCall))
        finished += error is None
        failed += error is not None
        decisions = entries(emitted, ToolDecision)
        denied += any(d.state is DecisionState.CANNOT_RUN for d in decisions)
        unused += any(not c.used and not c.error for c in entries(emitted, ModelCall))
        again += any(d.iteration > 1 for d in decisions)
    assert min(ran, finished, denied) >= 15
    assert min(unused, again) >= 3
    assert wild is (failed > 0)


async def test_the_generated_sessions_do_confirm_decline_and_run() -> None:
    """As above, of the properties over several turns."""
    payee = ToolParameter(name="p0", schema={"type": "string"})
    tools = tuple(
        Tool(uid=n, name=n, description="", parameters=(payee,), consequential=True, timeout=0.01)
        for n in TOOL_NAMES[:3]
    )
    guidelines = tuple(
        Guideline(uid=f"g-{name}", condition=f"asks for {name}", tools=(name,))
        for name in TOOL_NAMES[:3]
    )
    spec = Agent(slug="a", name="A", guidelines=guidelines, tools=tools)
    ran = 0
    answers: Counter[Answer] = Counter()
    for seed in range(60):
        session = Confirmed(spec, seed)
        model = AnsweringModel(Generated(seed, WORDS))
        for _ in range(3):
            session.begin("asks for balance, so Ann")
            state = TurnState(agent=spec, turn=session.turn, history=session.history)
            kit = scripted_kit(checked(model, attempts=2), session.tools)
            emitted, _error = await play_to_its_end(state, kit)
            session.take(emitted)
        ran += len(session.started)
        answers.update(session.word.answer.values())
    assert ran >= 20
    assert min(answers[a] for a in (Answer.CONFIRMED, Answer.DECLINED, Answer.CHANGED)) >= 3
