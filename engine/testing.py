"""Playing a turn without a model or a tool: for tests of the engine and of agents built on it.

ScriptedModel fails on a question nobody expected and, in `assert_used_up`, on an answer nobody asked for.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.brief_faults import Does, Ended
from engine.canonical import JsonObject
from engine.errors import ModelError
from engine.kit import Kit, Models
from engine.model.base import (
    AttemptFailed,
    ChatModel,
    ExplainMatch,
    InferToolCalls,
    JudgingStyle,
    MatchGuidelines,
    ModelReply,
    ModelRequest,
    Question,
    ScoreGuideline,
    TextDelta,
)
from engine.outbox import Emission
from engine.spec import Tool
from engine.state import TurnState, customer_messages
from engine.tools.base import ToolContext, ToolResult
from engine.tools.standing_in import StandIn
from engine.trail import ArgumentSource, DecisionState
from engine.turn import run_turn

Answer = JsonObject | ModelError | Callable[[ModelRequest], JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One question to come, by its name and what it is about (a tool's name, a guideline's label), and the answer."""

    question: str
    answer: Answer
    about: str = ""
    probability: float | None = None

    def fits(self, question: Question) -> bool:
        return question.name == self.question and self.about == _about(question)


def _about(question: Question) -> str:
    match question:
        case InferToolCalls():
            return question.tool.name
        case ScoreGuideline() | ExplainMatch():
            return question.situation.agent.label_of[question.guideline.uid]
        case _:
            return ""


def matches(*labels: str, because: str = "The customer says so.") -> Expected:
    """MatchGuidelines: these labels (G1 …) apply, all others of the batch do not."""

    def answer(request: ModelRequest) -> JsonObject:
        question = request.question
        assert isinstance(question, MatchGuidelines)  # noqa: S101 - only MatchGuidelines comes here
        label_of = question.situation.agent.label_of
        asked = [label_of[guideline.uid] for guideline in question.guidelines]
        return {
            "newest": "",
            "judgements": [
                {"guideline": label, "because": because, "applies": label in labels}
                for label in asked
            ],
        }

    return Expected(question="MatchGuidelines", answer=answer)


def scores(label: str, applies: bool | float) -> Expected:
    """ScoreGuideline about this guideline: a bare verdict, or the probability that it applies."""
    return Expected(
        question="ScoreGuideline",
        about=label,
        answer={"applies": applies >= 0.5},
        probability=None if isinstance(applies, bool) else applies,
    )


def explains(label: str, because: str) -> Expected:
    """ExplainMatch about this guideline."""
    return Expected(question="ExplainMatch", about=label, answer={"because": because})


def reads(*answers: str, also: str = "", quote: str | None = None, other: str = "") -> Expected:
    """ReadConfirmation: "confirmed", "declined", "changed" or "unanswered" for C1, C2 …, in order.

    Each rests on `quote`: the customer's whole newest message unless given.
    """

    def read(request: ModelRequest) -> JsonObject:
        newest = next(iter(customer_messages(request.question.situation.history)))[1]
        words = newest if quote is None else quote
        given = [
            {"call": f"C{number}", "quote": words, "other": other, "answer": answer}
            for number, answer in enumerate(answers, start=1)
        ]
        return {"answers": given, "also": also}

    return Expected(question="ReadConfirmation", answer=read)


def chooses(tool: str, because: str = "It is closer.") -> Expected:
    """ChooseTool: this tool, or none where it is empty."""
    return Expected(question="ChooseTool", answer={"because": because, "tool": tool})


def infers(
    tool: str,
    *calls: dict[str, Any],
    decision: DecisionState = DecisionState.NEEDS_TO_RUN,
    because: str = "It is needed.",
) -> Expected:
    """InferToolCalls about `tool`. A call maps parameters to `said(…)`, `known(…)`, or None."""
    answer: JsonObject = {"because": because, "decision": decision.value, "calls": list(calls)}
    return Expected(question="InferToolCalls", about=tool, answer=answer)


def said(value: Any, evidence: str = "") -> JsonObject:
    """An argument that the model takes from the customer's words."""
    return _claim(value, ArgumentSource.CUSTOMER, evidence or str(value))


def known(value: Any, path: str = "") -> JsonObject:
    """An argument that the model takes from a tool result."""
    return _claim(value, ArgumentSource.RESULT, path)


def inferred(value: Any) -> JsonObject:
    """An argument that is the model's own conclusion."""
    return _claim(value, ArgumentSource.INFERRED, "")


def _claim(value: Any, source: ArgumentSource, evidence: str) -> JsonObject:
    return {"value": value, "source": source.value, "evidence": evidence}


def replies(text: str, *followed: str) -> Expected:
    """ComposeReply: this text, following the guidelines of these labels."""
    follows = [{"guideline": label, "follows": True} for label in followed]
    return Expected(question="ComposeReply", answer={"reply": text, "follows": follows})


def responds(response: str, *followed: str, because: str = "It answers the customer.") -> Expected:
    """ChooseResponse: this one, by its label (R1 …) or "" for none, following the guidelines of these labels."""
    follows = [{"guideline": label, "follows": True} for label in followed]
    answer = {"because": because, "response": response, "follows": follows}
    return Expected(question="ChooseResponse", answer=answer)


def judges(**verdicts: bool | str) -> Expected:
    """JudgeReply: True per guideline that the reply follows, or what is wrong where it does not."""
    judgements = [
        {
            "guideline": label,
            "because": "It does." if verdict is True else str(verdict or "It does not."),
            "follows": verdict is True,
        }
        for label, verdict in verdicts.items()
    ]
    return Expected(question="JudgeReply", answer={"judgements": judgements})


def holds(verdict: bool, because: str = "Its words say so.") -> Expected:
    """JudgeStatement: whether the statement is true of the reply."""
    return Expected(question="JudgeStatement", answer={"because": because, "holds": verdict})


def plays(message: str, because: str = "They answer the agent.") -> Expected:
    """PlayCustomer: the customer says this, or is done where it is empty."""
    answer = {"because": because, "done": not message, "message": message}
    return Expected(question="PlayCustomer", answer=answer)


def keeps_to_brief(first: Does = Does.ASKS, ended: Ended = Ended.REACHED) -> Expected:
    """JudgeCustomer: what the customer's first message does, and how they ended the conversation; no details."""
    judged = [{"says": "", "does": first.value}]
    answer: JsonObject = {"messages": judged, "details": [], "ended": ended.value}
    return Expected(question="JudgeCustomer", answer=answer)


class ScriptedModel:
    """Answers each question with the first unused expectation that fits it."""

    name = "scripted"

    def __init__(
        self,
        *expected: Expected,
        batch_size: int = 12,
        judging_style: JudgingStyle = JudgingStyle.REASONED,
    ) -> None:
        self._left = list(expected)
        self.batch_size = batch_size
        self.judging_style = judging_style
        self.requests: list[ModelRequest] = []

    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | AttemptFailed | ModelReply]:
        self.requests.append(request)
        expected = next((e for e in self._left if e.fits(request.question)), None)
        if expected is None:
            waiting = [f"{e.question} {e.about}".strip() for e in self._left]
            asked = f"{request.question.name} {request.subject}".strip()
            message = f"Nobody expected the question {asked!r}; left in the script: {waiting!r}"
            raise AssertionError(message)
        self._left.remove(expected)
        if isinstance(expected.answer, ModelError):
            raise expected.answer
        answer = expected.answer(request) if callable(expected.answer) else expected.answer
        text = json.dumps(answer, ensure_ascii=False)
        if request.stream:
            for start in range(0, len(text), 16):
                yield TextDelta(text=text[start : start + 16])
        yield ModelReply(
            answer=answer, text=text, model=self.name, probability=expected.probability
        )

    def assert_used_up(self) -> None:
        left = [f"{e.question} {e.about}".strip() for e in self._left]
        if left:
            message = f"The script was not played to its end; nobody asked: {left!r}"
            raise AssertionError(message)

    def questions(self) -> list[str]:
        """What was asked, in order: "InferToolCalls get_balance"."""
        return [f"{r.question.name} {r.subject}".strip() for r in self.requests]


ScriptedTool = Callable[[JsonObject, ToolContext], Any]


@dataclass(slots=True)
class ScriptedTools:
    """A ToolService whose tools are plain functions of (arguments, context); keeps what was called."""

    functions: dict[str, ScriptedTool] = field(default_factory=dict)
    # Tool name → the choices of its parameters, or a function of the context that names them.
    provided: dict[str, Any] = field(default_factory=dict)
    called: list[tuple[str, JsonObject]] = field(default_factory=list)

    async def describe(self) -> tuple[Tool, ...]:
        return ()

    async def choices(self, tool: Tool, context: ToolContext) -> dict[str, tuple[Any, ...]]:
        named = self.provided.get(tool.name, {})
        if callable(named):
            named = named(context)
        if hasattr(named, "__await__"):
            named = await named
        return {name: tuple(values) for name, values in named.items()}

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.called.append((tool.name, arguments))
        data = self.functions[tool.name](arguments, context)
        if hasattr(data, "__await__"):
            data = await data
        return data if isinstance(data, ToolResult) else ToolResult(data=data)


def scripted_kit(
    model: ChatModel, tools: ScriptedTools | None = None, *, stand_in: StandIn | None = None
) -> Kit:
    """A Kit of one model and scripted tools, or of what stands in for them."""
    return Kit(
        models=Models.same(model),
        tools=tools or ScriptedTools(),
        context=ToolContext(agent_id="a", session_id="s", turn_id="t", customer_id="c"),
        stand_in=stand_in,
    )


async def play(state: TurnState, kit: Kit) -> list[Emission]:
    """Run the turn to its end; everything it yielded, in order."""
    return [item async for item in run_turn(state, kit)]


def entries(emitted: Iterable[Emission], kind: type[Any]) -> list[Any]:
    """Those of one type."""
    return [item for item in emitted if isinstance(item, kind)]
