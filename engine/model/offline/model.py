"""OfflineModel: a ChatModel that reads the question itself."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import assert_never

from engine.canonical import JsonObject
from engine.model.base import (
    AttemptFailed,
    ChooseResponse,
    ChooseTool,
    ComposeReply,
    ExplainMatch,
    InferToolCalls,
    JudgeCustomer,
    JudgeReply,
    JudgeStatement,
    JudgingStyle,
    MatchGuidelines,
    ModelReply,
    ModelRequest,
    PlayCustomer,
    Question,
    ReadConfirmation,
    ScoreGuideline,
    TextDelta,
)
from engine.model.offline.calls import CallInferrer
from engine.model.offline.choosing import choose
from engine.model.offline.confirmations import ConfirmationReader
from engine.model.offline.customers import CustomerPlayer, judged_customer
from engine.model.offline.judging import judged
from engine.model.offline.matching import GuidelineMatcher
from engine.model.offline.replies import ReplyWriter
from engine.model.offline.responses import ResponseChooser
from engine.model.offline.statements import told_of

_PIECE = 20  # characters


def _utc_now() -> datetime:
    return datetime.now(UTC)


class OfflineModel:
    """Answers every question by general lexical methods; the same question at the same time has one answer.

    `now` gives the moment that relative dates refer to (aware, UTC).
    """

    name = "offline"
    batch_size = 1_000
    judging_style = JudgingStyle.REASONED

    def __init__(self, now: Callable[[], datetime] = _utc_now) -> None:
        self._now = now

    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | AttemptFailed | ModelReply]:
        """Yields the answer's text in pieces when `request.stream`, then the reply. Never raises ModelError."""
        answer = self.answer(request.question)
        text = json.dumps(answer, ensure_ascii=False)
        if request.stream:
            for start in range(0, len(text), _PIECE):
                yield TextDelta(text=text[start : start + _PIECE])
                await asyncio.sleep(0)
        yield ModelReply(answer=answer, text=text, model=self.name)

    def answer(self, question: Question) -> JsonObject:  # noqa: C901 - one case for each question
        """The answer to a question, of the shape that `engine.model.base` describes."""
        match question:
            case MatchGuidelines():
                return GuidelineMatcher(question, self._now().date()).answer()
            case ScoreGuideline():
                return {"applies": self._judgement(question)["applies"]}
            case ExplainMatch():
                return {"because": self._explanation(question)}
            case InferToolCalls():
                return CallInferrer(question, self._now()).answer()
            case ComposeReply():
                return ReplyWriter(question).answer()
            case ChooseResponse():
                return ResponseChooser(question).answer()
            case JudgeReply():
                return judged(question)
            case JudgeStatement():
                return told_of(question)
            case ReadConfirmation():
                return ConfirmationReader(question, self._now()).answer()
            case ChooseTool():
                return choose(question)
            case PlayCustomer():
                return CustomerPlayer(question, self._now()).answer()
            case JudgeCustomer():
                return judged_customer(question)
            case _:
                assert_never(question)

    def _judgement(self, question: ScoreGuideline | ExplainMatch) -> JsonObject:
        alone = MatchGuidelines(situation=question.situation, guidelines=(question.guideline,))
        judgement: JsonObject = self.answer(alone)["judgements"][0]
        return judgement

    def _explanation(self, question: ExplainMatch) -> str:
        """Its own reason; a verdict that it would not have reached, it does not make reasons up for."""
        judgement = self._judgement(question)
        because = str(judgement["because"])
        if judgement["applies"] is question.applies:
            return because
        return f"By its words it would be judged otherwise: {because}"
