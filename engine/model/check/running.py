"""Asking a model the labelled set, one question after another, and telling right from wrong."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeAlias

from engine import prompts
from engine.canonical import JsonObject, canonical_json
from engine.confirming import heard
from engine.errors import ModelError, ModelErrorKind
from engine.judging import Judgement, judge
from engine.model.base import (
    ChatModel,
    InferToolCalls,
    JudgingStyle,
    MatchGuidelines,
    ModelReply,
    ModelRequest,
    ReadConfirmation,
    ScoreGuideline,
    Situation,
)
from engine.model.check import hotel, practice, provider, workshop
from engine.model.check.cases import ConfirmationCase, Scene, ToolCase, state_of
from engine.pending import Pending
from engine.prompts.read_confirmation import UNANSWERED
from engine.spec import Agent, Guideline
from engine.state import customer_messages
from engine.trail import ArgumentSource, DecisionState

BATCH_SIZES = (1, 4, 12)
LONGEST = 1_800.0
"""Seconds that a whole check may take."""

_IN_A_ROW = 3  # failures after which going on tells nothing more
# The answer was bad, and not the server: the next question may well be answered.
_OF_THE_ANSWER = frozenset(
    {
        ModelErrorKind.MALFORMED,
        ModelErrorKind.WRONG_SCHEMA,
        ModelErrorKind.TRUNCATED,
        ModelErrorKind.EMPTY,
    }
)

_DOMAINS = (workshop, hotel, practice, provider)
SCENES: tuple[Scene, ...] = tuple(domain.SCENE for domain in _DOMAINS)
TOOL_CASES: tuple[ToolCase, ...] = tuple(case for d in _DOMAINS for case in d.TOOL_CASES)
CONFIRMATION_CASES: tuple[ConfirmationCase, ...] = tuple(
    case for domain in _DOMAINS for case in domain.CONFIRMATION_CASES
)


class Kind(StrEnum):
    """What a question is about."""

    GUIDELINES = "guidelines"
    ARGUMENTS = "arguments"
    CONFIRMATIONS = "confirmations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A way of asking: `style` and `batch_size` (guidelines in one question) count for guidelines only."""

    kind: Kind
    style: JudgingStyle = JudgingStyle.REASONED
    batch_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One labelled case and what the model made of it, in words for people.

    `said` is the customer's newest message; `score` the probability of a bare verdict. A judgement that should have
    been "applies" and was not is `missed`, the other way round `overmatched`.
    """

    about: str
    said: str
    expected: str
    got: str
    right: bool
    because: str = ""
    score: float | None = None
    missed: bool = False
    overmatched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question asked, with a Finding for each case that it was about; `error` where no answer came."""

    setting: Setting
    findings: tuple[Finding, ...]
    seconds: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """`setting` (None: the whole check) was given up before its end, and why."""

    setting: Setting | None
    because: str


Told: TypeAlias = Answered | Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question of the check and how its answer is read; `failed` are the findings where none came."""

    request: ModelRequest
    read: Callable[[ModelReply], tuple[Finding, ...]]
    failed: tuple[Finding, ...] = field(default=())


@lru_cache(maxsize=1)
def plan() -> dict[Setting, tuple[Query, ...]]:
    """Everything that a check asks, in its order."""
    found: dict[Setting, tuple[Query, ...]] = {}
    for size in BATCH_SIZES:
        setting = Setting(kind=Kind.GUIDELINES, batch_size=size)
        found[setting] = tuple(
            _batch(scene, scene.agent.guidelines[start : start + size])
            for scene in SCENES
            for start in range(0, len(scene.agent.guidelines), size)
        )
    found[Setting(kind=Kind.GUIDELINES, style=JudgingStyle.SCORED)] = tuple(
        _scored(scene, guideline) for scene in SCENES for guideline in scene.agent.guidelines
    )
    found[Setting(kind=Kind.ARGUMENTS)] = tuple(_tool(case) for case in TOOL_CASES)
    found[Setting(kind=Kind.CONFIRMATIONS)] = tuple(
        _confirmation(case) for case in CONFIRMATION_CASES
    )
    return found


async def check(
    model: ChatModel, *, at_once: int = 1, longest: float = LONGEST
) -> AsyncIterator[Told]:
    """Ask everything, at most `at_once` questions at a time and `longest` seconds in all.

    An error is an Answered whose findings are all wrong. Three in a row end the setting, or the whole check where the
    server is at fault. Whether answers fit their schema is for `model` to see to (RetryingModel).
    """
    until = time.monotonic() + longest
    anything_came = False
    for setting, queries in plan().items():
        failures: list[ModelError] = []
        async with aclosing(_asked(model, setting, queries, at_once, until)) as answers:
            async for answered, error in answers:
                yield answered
                failures = [*failures, error] if error else []
                anything_came = anything_came or error is None
                if len(failures) >= _IN_A_ROW:
                    break
        if time.monotonic() >= until:
            yield Ended(setting=None, because=f"It took longer than {longest:g} seconds.")
            return
        if len(failures) < _IN_A_ROW:
            continue
        because = f"{_IN_A_ROW} questions in a row failed: {failures[-1]}"
        at_fault = not anything_came or all(_is_the_servers(error) for error in failures)
        yield Ended(setting=None if at_fault else setting, because=because)
        if at_fault:
            return


def _is_the_servers(error: ModelError) -> bool:
    # A server that is only too slow for long questions may well answer short ones in time.
    return error.kind not in _OF_THE_ANSWER and error.kind is not ModelErrorKind.TIMEOUT


async def _asked(
    model: ChatModel, setting: Setting, queries: Sequence[Query], at_once: int, until: float
) -> AsyncGenerator[tuple[Answered, ModelError | None], None]:
    """Each question's answer as it comes; ends early at `until`."""
    left = list(queries)
    running: set[asyncio.Task[tuple[Answered, ModelError | None]]] = set()
    try:
        while left or running:
            while left and len(running) < at_once:
                running.add(asyncio.create_task(_ask(model, setting, left.pop(0))))
            patience = max(0.0, until - time.monotonic())
            done, running = await asyncio.wait(
                running, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _ask(
    model: ChatModel, setting: Setting, query: Query
) -> tuple[Answered, ModelError | None]:
    started = time.monotonic()
    try:
        reply = await _reply(model, query.request)
    except ModelError as error:
        failed = tuple(replace(finding, because=str(error)) for finding in query.failed)
        answered = Answered(
            setting=setting,
            findings=failed,
            seconds=time.monotonic() - started,
            error=str(error),
        )
        return answered, error
    answered = Answered(
        setting=setting,
        findings=query.read(reply),
        seconds=time.monotonic() - started,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
    )
    return answered, None


async def _reply(model: ChatModel, request: ModelRequest) -> ModelReply:
    stream = model.stream(request)
    try:
        async for item in stream:
            if isinstance(item, ModelReply):
                return item
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    raise ModelError(
        f"The model {model.name!r} ended without an answer.",
        kind=ModelErrorKind.EMPTY,
        retryable=True,
    )


# --- Judging guidelines

_NO_ANSWER = "no answer"


def _situation(agent: Agent, case: Scene | ToolCase | ConfirmationCase) -> Situation:
    variables = case.variables if isinstance(case, ToolCase) else {}
    return state_of(agent, case.talk, variables).situation


def _newest(case: Scene | ToolCase | ConfirmationCase) -> str:
    return customer_messages(case.talk)[0][1]


def _batch(scene: Scene, guidelines: Sequence[Guideline]) -> Query:
    label_of = scene.agent.label_of

    def read(reply: ModelReply) -> tuple[Finding, ...]:
        judged = {each["guideline"].strip(): each for each in reply.answer["judgements"]}
        return tuple(_found(scene, g, judged.get(label_of[g.uid])) for g in guidelines)

    question = MatchGuidelines(
        situation=_situation(scene.agent, scene), guidelines=tuple(guidelines)
    )
    return Query(
        request=prompts.build(question),
        read=read,
        failed=tuple(_found(scene, guideline, None) for guideline in guidelines),
    )


def _scored(scene: Scene, guideline: Guideline) -> Query:
    def read(reply: ModelReply) -> tuple[Finding, ...]:
        score = reply.probability
        applies = reply.answer["applies"] if score is None else score >= 0.5
        found = _found(scene, guideline, {"applies": applies, "because": ""})
        return (replace(found, score=score),)

    question = ScoreGuideline(situation=_situation(scene.agent, scene), guideline=guideline)
    return Query(
        request=prompts.build(question), read=read, failed=(_found(scene, guideline, None),)
    )


_VERDICT = {True: "applies", False: "does not apply"}


def _found(scene: Scene, guideline: Guideline, judgement: JsonObject | None) -> Finding:
    expected = guideline.uid in scene.applies
    applies = judgement["applies"] if judgement is not None else None
    return Finding(
        about=guideline.condition,
        said=_newest(scene),
        expected=_VERDICT[expected],
        got=_VERDICT[applies] if applies is not None else _NO_ANSWER,
        right=applies is expected,
        because=judgement["because"] if judgement is not None else "",
        missed=expected and applies is not True,
        overmatched=not expected and applies is True,
    )


# --- Reading arguments


def _tool(case: ToolCase) -> Query:
    guideline = replace(case.guideline, tools=(case.tool.name,))
    agent = Agent(
        slug="check",
        name="Assistant",
        description="Helps customers.",
        guidelines=(guideline,),
        tools=(case.tool,),
    )

    def read(reply: ModelReply) -> tuple[Finding, ...]:
        state = state_of(agent, case.talk, case.variables)
        judgements = judge(state, case.tool, (guideline,), reply.answer)
        found = replace(
            _tool_finding(case),
            got="; ".join(map(_in_words, judgements)),
            right=_as_expected(case, judgements),
            because=str(reply.answer["because"]),
        )
        return (found,)

    question = InferToolCalls(
        situation=_situation(agent, case), tool=case.tool, guidelines=(guideline,)
    )
    return Query(request=prompts.build(question), read=read, failed=(_tool_finding(case),))


def _tool_finding(case: ToolCase) -> Finding:
    calls = [_words_of(case.decision, call, frozenset()) for call in case.calls]
    return Finding(
        about=case.tool.name,
        said=_newest(case),
        expected="; ".join(calls or [_words_of(case.decision, {}, case.missing)]),
        got=_NO_ANSWER,
        right=False,
    )


def _as_expected(case: ToolCase, judgements: Sequence[Judgement]) -> bool:
    """What the engine would do by this answer, against what it should do."""
    if any(judgement.state is not case.decision for judgement in judgements):
        return False
    if case.decision is DecisionState.CANNOT_RUN:
        return all(
            j.checked is not None and frozenset(j.checked.missing) == case.missing
            for j in judgements
        )
    if case.decision is not DecisionState.NEEDS_TO_RUN:
        return True
    return sorted(_normal(_given(j)) for j in judgements) == sorted(map(_normal, case.calls))


def _given(judgement: Judgement) -> JsonObject:
    return {
        argument.name: argument.value
        for argument in judgement.arguments
        if argument.source is not ArgumentSource.DEFAULT
    }


def _normal(value: Any) -> str:
    """Arguments compared as people would: without regard to case, spaces, or how a whole number is written."""
    return canonical_json(_plain(value))


def _plain(value: Any) -> Any:
    match value:
        case str():
            return " ".join(value.casefold().split())
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items() if each is not None}
        case _:
            return value


def _in_words(judgement: Judgement) -> str:
    missing = judgement.checked.missing if judgement.checked else ()
    return _words_of(judgement.state, _given(judgement), frozenset(missing))


def _words_of(state: DecisionState, values: JsonObject, missing: frozenset[str]) -> str:
    said = state.value
    if values:
        said += f" {canonical_json(values)}"
    if missing:
        said += f" without {', '.join(sorted(missing))}"
    return said


# --- Reading confirmations


def _confirmation(case: ConfirmationCase) -> Query:
    state = state_of(case.agent, case.talk)
    pending = tuple(entry.event for entry in case.talk if entry.event.kind == "confirmation.asked")
    found = Finding(
        about=", ".join(asked.tool for asked in pending),
        said=_newest(case),
        expected=_answers(case.answers, also=case.also),
        got=_NO_ANSWER,
        right=False,
    )

    def read(reply: ModelReply) -> tuple[Finding, ...]:
        waiting = [Pending(asked=asked, turn=1) for asked in pending]
        verdicts, besides = heard(state, waiting, reply.answer)
        given = tuple(
            verdicts[asked.call].answer.value if asked.call in verdicts else UNANSWERED
            for asked in pending
        )
        # A question too many is only judged once more; one too few is lost.
        right = given == case.answers and (bool(besides) or not case.also)
        because = "; ".join(verdict.because for verdict in verdicts.values())
        got = _answers(given, also=bool(besides))
        return (replace(found, got=got, right=right, because=because),)

    question = ReadConfirmation(situation=state.situation, pending=pending)
    return Query(request=prompts.build(question), read=read, failed=(found,))


def _answers(answers: tuple[str, ...], *, also: bool) -> str:
    return ", ".join(answers) + (" (and asks something else)" if also else "")
