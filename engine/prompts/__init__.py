"""One module per question: VERSION, the answer's schema, and `build()` (DESIGN.md §6)."""

from typing import assert_never

from engine.model.base import (
    ChooseResponse,
    ChooseTool,
    ComposeReply,
    ExplainMatch,
    InferToolCalls,
    JudgeReply,
    MatchGuidelines,
    ModelRequest,
    Question,
    ReadConfirmation,
    ScoreGuideline,
)
from engine.prompts import (
    choose_response,
    choose_tool,
    compose_reply,
    explain_match,
    infer_tool_calls,
    judge_reply,
    match_guidelines,
    read_confirmation,
    score_guideline,
)


def build(question: Question) -> ModelRequest:
    """The request that puts this question to a model."""
    match question:
        case MatchGuidelines():
            return match_guidelines.build(question)
        case ScoreGuideline():
            return score_guideline.build(question)
        case ExplainMatch():
            return explain_match.build(question)
        case InferToolCalls():
            return infer_tool_calls.build(question)
        case ComposeReply():
            return compose_reply.build(question)
        case ChooseResponse():
            return choose_response.build(question)
        case JudgeReply():
            return judge_reply.build(question)
        case ReadConfirmation():
            return read_confirmation.build(question)
        case ChooseTool():
            return choose_tool.build(question)
        case _:
            assert_never(question)
