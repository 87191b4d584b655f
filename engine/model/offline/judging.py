"""JudgeReply: whether a reply says what a guideline gives word for word, and nothing that it rules out."""

from engine.canonical import JsonObject
from engine.model.base import JudgeReply
from engine.model.offline.demands import demands_of, problem_with


def judged(question: JudgeReply) -> JsonObject:
    """The answer to JudgeReply. What words cannot show is taken to be followed, and the reason says so."""
    agent = question.situation.agent
    judgements = []
    for guideline in question.guidelines:
        action = agent.action_of(guideline)
        problem = problem_with(question.reply, action)
        judgements.append(
            {
                "guideline": agent.label_of[guideline.uid],
                "because": problem or _nothing_against(action),
                "follows": not problem,
            }
        )
    return {"judgements": judgements}


def _nothing_against(action: str) -> str:
    demands = demands_of(action)
    if demands.literal or demands.unsayable or demands.subjects:
        return "It says what the guideline gives word for word, and nothing that it rules out."
    return "Its words show nothing against it; more than that this model cannot tell."
