"""The prompt of ExplainMatch: the same opening as ScoreGuideline, and another task at its end."""

from engine.canonical import JsonObject
from engine.model.base import ExplainMatch, ModelRequest
from engine.prompts.score_guideline import described, opening
from engine.trail import LONGEST_REASON

VERSION = "explain-1"

_ASKED = {
    True: "It was judged that this guideline applies now.",
    False: "It was judged that this guideline does not apply now.",
}


def answer_schema() -> JsonObject:
    """The JSON Schema of the answer."""
    return {
        "type": "object",
        "properties": {"because": {"type": "string", "maxLength": LONGEST_REASON}},
        "required": ["because"],
        "additionalProperties": False,
    }


def build(question: ExplainMatch) -> ModelRequest:
    situation, guideline = question.situation, question.guideline
    task = (
        f"The guideline:\n{described(situation, guideline)}{_ASKED[question.applies]} Say why, in one short sentence "
        'that compares the newest message or result with the condition. Answer {"because": that sentence}.\n'
    )
    return ModelRequest(
        question=question,
        prompt_version=VERSION,
        messages=opening(situation, task),
        schema=answer_schema(),
        subject=situation.agent.label_of[guideline.uid],
        max_tokens=400,
    )
