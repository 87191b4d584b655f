"""What the engine finds wrong with an agent as a whole, before a change of it is stored."""

from engine import spec
from engine.soundness import SpecProblem, problems
from studio.operations.contents import AgentContent


def new_problems(before: spec.Agent, after: spec.Agent) -> list[str]:
    """What a change makes wrong: what was wrong before it is not its fault."""
    known = {problem.message for problem in problems(before)}
    return [problem.message for problem in problems(after) if problem.message not in known]


def problems_of(content: AgentContent) -> tuple[SpecProblem, ...]:
    """What is wrong with a content every item of which has a uid, and whose fields are each right by themselves."""
    return problems(_spec_of(content))


def _spec_of(content: AgentContent) -> spec.Agent:
    """As much of the agent as its soundness rests on."""
    return spec.Agent(
        slug=content.slug,
        name=content.name,
        tools=tuple(spec.Tool(uid=name, name=name, description="") for name in content.tools),
        terms=tuple(
            spec.Term(uid=term.uid, name=term.name, description=term.description)
            for term in content.terms
        ),
        canned_responses=tuple(
            spec.CannedResponse(uid=response.uid, text=response.text)
            for response in content.canned_responses
        ),
        guidelines=tuple(
            spec.Guideline(
                uid=guideline.uid,
                condition=guideline.condition,
                action=guideline.action,
                priority=guideline.priority,
                enabled=guideline.enabled,
                tools=tuple(guideline.tools),
                reevaluate_after=tuple(guideline.reevaluate_after),
                canned_responses=tuple(guideline.canned_responses),
            )
            for guideline in content.guidelines
        ),
        relationships=tuple(
            spec.Relationship(
                uid=relationship.uid,
                kind=spec.RelationKind(relationship.kind),
                source=relationship.source,
                targets=tuple(relationship.targets),
            )
            for relationship in content.relationships
        ),
        overlaps=tuple(tuple(overlap.tools) for overlap in content.overlaps),
    )
