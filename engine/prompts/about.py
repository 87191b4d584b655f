"""What every prompt says of the agent, right after the rules: who it is, how it speaks, and what its words mean."""

from engine.canonical import JsonObject
from engine.prompts.transcript import line
from engine.spec import Agent, Term


def about(agent: Agent) -> str:
    """One line of JSON for the agent and one for each term; the same in every turn.

    Only what was written is told, so that an agent without tone and terms keeps the prompts that it had without them.
    """
    told: JsonObject = {"agent": agent.name, "described as": agent.description}
    if agent.tone:
        told["tone"] = agent.tone
    words = "".join(_term(term) for term in agent.terms)
    return line(told) + ("Words that it uses, and what they mean:\n" + words if words else "")


def _term(term: Term) -> str:
    told: JsonObject = {"term": term.name, "means": term.description}
    if term.synonyms:
        told["also called"] = list(term.synonyms)
    return line(told)
