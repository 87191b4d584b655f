"""One module per question: VERSION, the answer's schema, and `build()` (DESIGN.md §6)."""

from typing import Final, assert_never

from engine.model.base import (
    ChooseResponse,
    ChooseTool,
    ComposeReply,
    ExplainMatch,
    InferToolCalls,
    JudgeCustomer,
    JudgeReply,
    JudgeStatement,
    MatchGuidelines,
    ModelRequest,
    PlayCustomer,
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
    judge_customer,
    judge_reply,
    judge_statement,
    match_guidelines,
    play_customer,
    read_confirmation,
    score_guideline,
)

VERSIONS: Final[dict[str, str]] = {
    MatchGuidelines.name: match_guidelines.VERSION,
    ScoreGuideline.name: score_guideline.VERSION,
    ExplainMatch.name: explain_match.VERSION,
    InferToolCalls.name: infer_tool_calls.VERSION,
    ComposeReply.name: compose_reply.VERSION,
    ChooseResponse.name: choose_response.VERSION,
    JudgeReply.name: judge_reply.VERSION,
    ReadConfirmation.name: read_confirmation.VERSION,
    ChooseTool.name: choose_tool.VERSION,
}
"""Of the questions that a turn asks: how they are worded today."""


def build(question: Question) -> ModelRequest:  # noqa: C901 - one case for each question
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
        case JudgeStatement():
            return judge_statement.build(question)
        case ReadConfirmation():
            return read_confirmation.build(question)
        case ChooseTool():
            return choose_tool.build(question)
        case PlayCustomer():
            return play_customer.build(question)
        case JudgeCustomer():
            return judge_customer.build(question)
        case _:
            assert_never(question)
