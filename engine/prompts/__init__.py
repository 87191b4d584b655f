"""One module per question: VERSION, the answer's schema, and `build()` (DESIGN.md §6)."""

from typing import assert_never

from engine.model.base import (
    ComposeReply,
    ExplainMatch,
    InferToolCalls,
    MatchGuidelines,
    ModelRequest,
    Question,
    ScoreGuideline,
)
from engine.prompts import (
    compose_reply,
    explain_match,
    infer_tool_calls,
    match_guidelines,
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
        case _:
            assert_never(question)
