"""The model boundary: typed questions in, answers of a JSON Schema out (DESIGN.md §6).

`engine.prompts` turns a question into a ModelRequest; a ChatModel turns the request into an answer.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Protocol, TypeAlias

from engine.canonical import JsonObject, canonical_json, digest
from engine.customer_brief import CustomerBrief
from engine.errors import ModelError
from engine.events import ConfirmationAskedEvent, RecordedEvent
from engine.spec import Agent, Guideline, Tool
from engine.trail import Message, ToolInsight


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What every question rests on: the agent, the customer's variables and the session so far, oldest event first.

    `history` includes what this turn has done already.
    """

    agent: Agent
    history: tuple[RecordedEvent, ...]
    turn: int
    variables: JsonObject = field(default_factory=dict)
    # What prompts have rendered of this history already, for the next question of the same turn.
    rendered: dict[int, str] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class MatchGuidelines:
    """Which of `guidelines` apply now?

    Answer: `{"newest": str, "judgements": [{"guideline": "G1", "because": str, "applies": bool}]}`.
    """

    name: ClassVar[str] = "MatchGuidelines"
    situation: Situation
    guidelines: tuple[Guideline, ...]


@dataclass(frozen=True, kw_only=True)
class InferToolCalls:
    """Should `tool` run now for `guidelines`, and with which arguments?

    Answer: `{"because": str, "decision": DecisionState, "calls": [{PARAMETER: argument}]}`, where an argument is null
    or `{"evidence": str, "source": ArgumentSource, "value": JSON}`.
    """

    name: ClassVar[str] = "InferToolCalls"
    situation: Situation
    tool: Tool
    guidelines: tuple[Guideline, ...]


@dataclass(frozen=True, kw_only=True)
class ScoreGuideline:
    """Does `guideline` apply now? A bare verdict, whose probability the ModelReply carries where the server gives it.

    Answer: `{"applies": bool}`.
    """

    name: ClassVar[str] = "ScoreGuideline"
    situation: Situation
    guideline: Guideline


@dataclass(frozen=True, kw_only=True)
class ExplainMatch:
    """Why does `guideline` apply, or not? Asked after a bare verdict, so the answer explains it and is no record of it.

    Answer: `{"because": str}`.
    """

    name: ClassVar[str] = "ExplainMatch"
    situation: Situation
    guideline: Guideline
    applies: bool


@dataclass(frozen=True, kw_only=True)
class ReadConfirmation:
    """What do the customer's newest messages say about the calls that await their word?

    Calls are labelled C1, C2 … in the order of `pending`. Answer: `{"answers": [{"call": "C1", "quote": str,
    "other": str, "answer": "confirmed" | "declined" | "changed" | "unanswered"}], "also": str}`: `quote` are the
    customer's words about it, `other` the detail that they give otherwise, `also` what else they say or ask; each is
    empty where there is none.
    """

    name: ClassVar[str] = "ReadConfirmation"
    situation: Situation
    pending: tuple[ConfirmationAskedEvent, ...]


@dataclass(frozen=True, kw_only=True)
class ChooseTool:
    """Which of these overlapping `tools` serves `guidelines` best now?

    Answer: `{"because": str, "tool": NAME}`; the name is empty where none is called for.
    """

    name: ClassVar[str] = "ChooseTool"
    situation: Situation
    tools: tuple[Tool, ...]
    guidelines: tuple[Guideline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A reply that did not follow all its guidelines: its text, and per guideline label what was wrong."""

    reply: str
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ComposeReply:
    """Write the reply. The last event of the history is the briefing that says what it must rest on.

    `style` are rendered canned responses to write in the manner of; `revision` is an earlier try to be put right.
    Answer: `{"reply": str, "follows": [{"guideline": "G1", "follows": bool}]}`, the reply first, to be streamed.
    """

    name: ClassVar[str] = "ComposeReply"
    situation: Situation
    guidelines: tuple[Guideline, ...]
    insights: tuple[ToolInsight, ...] = ()
    style: tuple[str, ...] = ()
    revision: Revision | None = None


@dataclass(frozen=True, kw_only=True)
class ChooseResponse:
    """Which of these rendered canned `responses` (labelled R1, R2 …) is the reply? The briefing stands last.

    Answer: `{"because": str, "response": "R1", "follows": [{"guideline": "G1", "follows": bool}]}`; the response is
    empty where none fits.
    """

    name: ClassVar[str] = "ChooseResponse"
    situation: Situation
    guidelines: tuple[Guideline, ...]
    responses: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class JudgeReply:
    """Does `reply` follow each of these guidelines?

    Answer: `{"judgements": [{"guideline": "G1", "because": str, "follows": bool}]}`.
    """

    name: ClassVar[str] = "JudgeReply"
    situation: Situation
    guidelines: tuple[Guideline, ...]
    reply: str


@dataclass(frozen=True, kw_only=True)
class JudgeStatement:
    """Is `statement`, in a tester's words, true of `reply`, the agent's answer to the conversation so far?

    Answer: `{"because": str, "holds": bool}`.
    """

    name: ClassVar[str] = "JudgeStatement"
    situation: Situation
    reply: str
    statement: str


@dataclass(frozen=True, kw_only=True)
class PlayCustomer:
    """What does the customer of `brief` say next, or is the conversation over for them?

    Answer: `{"because": str, "done": bool, "message": str}`; the message is empty where it is over.
    """

    name: ClassVar[str] = "PlayCustomer"
    situation: Situation
    brief: CustomerBrief


@dataclass(frozen=True, kw_only=True)
class JudgeCustomer:
    """Did the customer of the conversation keep to `brief`: did they act its persona and follow its goal?

    `ended` is why the customer ended the conversation, empty where it was not they who did.
    Answer: `{"messages": [{"says", "does"}, …], "details": [{"what", "customer", "part", "fits": bool}, …],
    "ended": str}`: for each of the customer's messages what it does, what it says that the brief may say otherwise, and
    how the customer ended it (`Does` and `Ended` in engine.brief_faults, which concludes whether they kept to it).
    """

    name: ClassVar[str] = "JudgeCustomer"
    situation: Situation
    brief: CustomerBrief
    ended: str = ""


Question: TypeAlias = (
    MatchGuidelines
    | ScoreGuideline
    | ExplainMatch
    | ReadConfirmation
    | ChooseTool
    | InferToolCalls
    | ComposeReply
    | ChooseResponse
    | JudgeReply
    | JudgeStatement
    | PlayCustomer
    | JudgeCustomer
)


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A question with the prompt built from it. `schema` is the JSON Schema of the answer, named `schema_name`."""

    question: Question
    prompt_version: str
    messages: tuple[Message, ...]
    schema: JsonObject
    subject: str = ""
    max_tokens: int = 1024
    temperature: float | None = 0.0
    stream: bool = False
    repeat: int = 0
    # The property of the answer, true or false, whose probability is wanted where the server can tell it.
    verdict: str = ""

    @property
    def schema_name(self) -> str:
        return self.question.name

    @property
    def settings(self) -> JsonObject:
        return {"max_tokens": self.max_tokens, "temperature": self.temperature}

    @cached_property
    def request_key(self) -> str:
        """Names the request in recordings: the same question asked the same way has the same key."""
        return digest(
            canonical_json(
                [
                    self.question.name,
                    self.prompt_version,
                    [[message.role, message.content] for message in self.messages],
                    self.schema,
                    self.settings,
                    self.repeat,
                ]
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next piece of the answer's raw text (JSON text), while streaming."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """An attempt that will be followed by another; all TextDelta before it are void."""

    error: ModelError
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A usable answer: `answer` fits the request's schema; token counts are the server's (0 where it gives none)."""

    answer: JsonObject
    text: str
    model: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    probability: float | None = None  # that a bare verdict is "true", where the server tells


class JudgingStyle(StrEnum):
    """How a model is asked whether guidelines apply; which one suits it, `engine.model.check` finds out."""

    REASONED = "reasoned"  # MatchGuidelines: the reason first, then the verdict, several at once
    SCORED = "scored"  # ScoreGuideline: a bare verdict each, the reason afterwards (ExplainMatch)


class ChatModel(Protocol):
    """Turns a request into its answer. One generator for both ways: who does not stream drains it."""

    @property
    def name(self) -> str:
        """The model's name, for the trail."""
        ...

    @property
    def batch_size(self) -> int:
        """How many guidelines one MatchGuidelines question may carry."""
        ...

    @property
    def judging_style(self) -> JudgingStyle:
        """How it is asked which guidelines apply."""
        ...

    def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | AttemptFailed | ModelReply]:
        """Yields TextDelta only when `request.stream`, and ends with exactly one ModelReply; raises ModelError."""
        ...
