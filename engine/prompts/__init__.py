"""One module per question: VERSION, the answer's schema, and `build()` (DESIGN.md §6)."""

from typing import assert_never

from engine.model.base import (
    ComposeReply,
    InferToolCalls,
    MatchGuidelines,
    ModelRequest,
    Question,
)
from engine.prompts import compose_reply, infer_tool_calls, match_guidelines


def build(question: Question) -> ModelRequest:
    """The request that puts this question to a model."""
    match question:
        case MatchGuidelines():
            return match_guidelines.build(question)
        case InferToolCalls():
            return infer_tool_calls.build(question)
        case ComposeReply():
            return compose_reply.build(question)
        case _:
            assert_never(question)
